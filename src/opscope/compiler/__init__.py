"""Graph, Target → Program: a visible list of passes, each in its own module."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ..core.errors import UsageError
from ..estimate.canonical import canonicalise
from ..estimate.price import Machine
from ..graph.graph import Graph
from ..machine.target import Corner, Target, at_corner
from ..options import CompileOptions
from ..program.program import MemoryMetrics, OpInfo, Program, StatsOptions
from .codegen.context import channels, memories
from .codegen.emit import Columns
from .codegen.instrument import instrument
from .codegen.lower import Lowering, lower
from .codegen.timing import timed_for
from .memory_metrics import memory_metrics
from .passes.batch_tiling import batch_of, stretch
from .passes.place import place
from .passes.residency import settle
from .passes.scale_folding import drop_absent_outputs, fold_scales
from .passes.split import split
from .passes.unroll import unroll
from .plan import Placed, Plan
from .stats_options import stats_options


def _canonicalise(plan: Plan) -> Plan:
    graph = canonicalise(drop_absent_outputs(plan.graph), plan.machine.target)
    return replace(plan, graph=fold_scales(graph))


PASSES: tuple[tuple[str, Callable[[Plan], Plan]], ...] = (
    ("canonicalise", _canonicalise),
    ("place", place),
    ("split", split),
    ("settle", settle),
    ("stretch", stretch),
)


AfterPass = Callable[[str, Plan], None]


def compile_graph(
    graph: Graph, machine: Machine, options: CompileOptions, *, after_pass: AfterPass | None = None
) -> Program:
    """Compile a graph for so many cores and devices of a target."""
    return Compiler(graph).compile(machine, options, after_pass=after_pass)


@dataclass(frozen=True, slots=True)
class _Built:
    """What was compiled, kept for machines on which nothing but the cycles of its commands differs."""

    machine: Machine  # at typical figures
    plan: Plan
    lowering: Lowering
    columns: Columns  # whose ops are those of the unrolled plan
    metrics: MemoryMetrics

    def holds_for(self, machine: Machine, plan: Plan) -> bool:
        """Whether the passes decided the same on the same machine, at whatever end of its figures.

        Everything behind them – parts of the batch, tiles, places in memory, order – follows from sizes alone.
        """
        return plan.graph is self.plan.graph and machine == self.machine and _decided(plan) == _decided(self.plan)


def _decided(plan: Plan) -> tuple[object, ...]:
    return plan.options, plan.splits, plan.resident, [(placed.engine, placed.form) for placed in plan.placed]


class Compiler:
    """Compiles one graph for one machine after the other; what did not change in between is not done again."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._canonical: list[tuple[Target, Graph]] = []
        self._placed: list[tuple[Graph, Target, tuple[Placed, ...]]] = []
        self._built: list[_Built] = []

    def compile(
        self,
        machine: Machine,
        options: CompileOptions,
        *,
        corner: Corner = Corner.TYPICAL,
        after_pass: AfterPass | None = None,
    ) -> Program:
        """The program, with every figure of the target at a corner of its range."""
        _check(machine)
        stats = stats_options(machine.target, options, batch=batch_of(self.graph))
        plan = Plan(self.graph, replace(machine, target=at_corner(machine.target, corner)), options)
        for name, run in PASSES:
            plan = self._known(name, plan, machine) or self._remembered(name, run(plan))
            if after_pass is not None:
                after_pass(name, plan)
        built = self._alike(machine, plan) or self._build(machine, plan)
        return _program(self.graph, plan, built, stats)

    def _known(self, name: str, plan: Plan, machine: Machine) -> Plan | None:
        """The plan after a pass, where the pass has been given the same before."""
        target = plan.machine.target
        if name == "canonicalise":
            graphs = (graph for other, graph in self._canonical if _runs_alike(other, target))
            return next((replace(plan, graph=graph) for graph in graphs), None)
        if name == "place":
            known = (placed for graph, other, placed in self._placed if graph is plan.graph and other == target)
            return next((replace(plan, placed=placed) for placed in known), None)
        built = self._alike(machine, plan) if name == "stretch" else None
        return None if built is None else replace(plan, parts=built.plan.parts)

    def _remembered(self, name: str, plan: Plan) -> Plan:
        if name == "canonicalise":
            self._canonical.append((plan.machine.target, plan.graph))
        elif name == "place":
            self._placed.append((plan.graph, plan.machine.target, plan.placed))
        return plan

    def _alike(self, machine: Machine, plan: Plan) -> _Built | None:
        return next((built for built in self._built if built.holds_for(machine, plan)), None)

    def _build(self, machine: Machine, plan: Plan) -> _Built:
        lowered = plan.lowered or lower(plan)
        lowering = lowered.lowering
        instrument(plan, lowering)
        columns = lowering.bench.emitter.columns()
        whole = lowered.unrolled.in_whole_ops(columns)
        built = _Built(machine, plan, lowering, columns, memory_metrics(plan, lowering, whole))
        self._built.append(built)
        return built


def _runs_alike(one: Target, other: Target) -> bool:
    """Whether a graph takes the same form on both."""
    return (one.runtime.fuses, one.precision) == (other.runtime.fuses, other.precision)


def _check(machine: Machine) -> None:
    """Refuse a target whose file does not say what a compiler needs."""
    target = machine.target
    if not target.is_compilable:
        raise UsageError(f"{target.name}: cannot be compiled for; its file has no [tiling], [[routes]] or local memory")
    apart = any(engine.memory for engine in target.engines)
    needed = {
        "read": True,
        "write": True,
        "multicast": machine.cores > 1,
        "link": machine.devices > 1,
        "bring": apart,
        "fetch": apart,
    }
    carried = {route.carries for route in target.routes}
    missing = [carries for carries, is_needed in needed.items() if is_needed and carries not in carried]
    if missing:
        place = f"{machine.devices} × {machine.cores} cores"
        raise UsageError(f"{target.name}: no route carries {missing[0]!r}; expected one to compile for {place}")


def _program(graph: Graph, plan: Plan, built: _Built, stats: StatsOptions) -> Program:
    machine, stats_hz = plan.machine, plan.machine.target.clocks.stats_hz
    unrolled = unroll(plan)
    columns = built.columns
    if plan is not built.plan:
        columns = timed_for(unrolled.plan, columns, built.lowering.tiles.costs)
    columns = unrolled.in_whole_ops(columns)
    return Program(
        name=plan.options.network or machine.target.runtime.network,
        target=machine.target.name,
        devices=machine.devices,
        cores=machine.cores,
        batch=batch_of(graph),
        clock_hz=machine.clock_hz,
        stats_hz=stats_hz.value if stats_hz is not None else machine.clock_hz,
        groups=built.lowering.bench.groups,
        routes=channels(plan),
        memories=memories(machine.target),
        kinds=columns.kinds,
        ops=tuple(OpInfo(p.op.name, p.op.type, p.op.kind, p.op.location) for p in plan.placed),
        details=columns.details,
        commands=columns.commands,
        dependency_offsets=columns.offsets,
        dependency_sources=columns.sources,
        dependency_kinds=columns.kinds_of_dependency,
        stats=stats,
        metrics=built.metrics,
        inputs=_ports(graph, graph.inputs),
        outputs=_ports(graph, graph.outputs),
        host_microseconds=_host(machine),
        simulation=_simulation(machine) | _peak(plan),
    )


def _ports(graph: Graph, tensors: tuple[int, ...]) -> tuple[tuple[str, str, tuple[int, ...]], ...]:
    """Name, data type in the model, and shape."""
    found = (graph.tensors[t] for t in tensors)
    return tuple((tensor.name, tensor.dtype.label, tensor.shape or ()) for tensor in found)


def _host(machine: Machine) -> dict[str, float]:
    host = machine.target.host
    names = ("enqueue", "preprocess", "submit", "driver", "transfer", "postprocess")
    return {} if host is None else {name: getattr(host, name).value for name in names}


def _simulation(machine: Machine) -> dict[str, float]:
    simulation = machine.target.simulation
    if simulation is None:
        return {}
    names = ("thread_spread", "activate_ticks", "inference_spread", "clock_spread")
    figures = {name: getattr(simulation, name) for name in names}
    return {name: figure.value for name, figure in figures.items() if figure is not None}


def _peak(plan: Plan) -> dict[str, float]:
    """MACs a cycle of one core at the most, of the engines and data types that this program uses."""
    engines = {engine.name: engine for engine in plan.machine.target.engines}
    working = [placed for placed in plan.placed if placed.engine and placed.task.work.macs]
    used = {(placed.engine, placed.task.placement.dtype) for placed in working}
    rates = [(engines[name].rate(engines[name].macs_per_cycle, dtype), engines[name].units) for name, dtype in used]
    known = [rate.value * units for rate, units in rates if rate is not None]
    return {"macs_per_cycle": max(known)} if known else {}
