"""Compiler: Graph, Target → Program. A visible list of passes, each in its own module, then code generation.

A pass is a function from Plan to Plan; each fills one more field:

    canonicalise    graph: fused, with the target's data types        place      engine of every op
    split           parts of the batch, how lanes share every op      tile       batch tiles of every op, commands

Code generation writes the batch tiles out, emits commands op by op, and sorts them by lane.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial

import numpy as np
import numpy.typing as npt

from ..core.errors import UsageError
from ..core.meaning import Carries, Does
from ..estimate.canonical import canonicalise, form_of
from ..estimate.machines import at_clock_of
from ..estimate.precision import in_precision
from ..estimate.price import Machine
from ..graph.batch import batch_size
from ..graph.graph import Graph
from ..machine.corners import Corner, at_corner
from ..machine.target import Target
from ..options import CompileOptions
from ..program.bounds import Bounds
from ..program.program import (
    NO_METRICS,
    NO_OP,
    OP_LEVEL,
    OP_PMU_LEVEL,
    Detail,
    MemoryMetrics,
    OpInfo,
    Program,
    StatsOptions,
)
from ..program.wire import OP_PMU_RECORD, OP_RECORD
from .codegen.context import channels, memories
from .codegen.emit import Columns
from .codegen.lower import Lowering
from .codegen.timing import retime_columns
from .memory_metrics import memory_metrics
from .passes.parts import split
from .passes.place import place, reprice
from .passes.recurrent_states import align_states
from .passes.scale_folding import drop_absent_outputs, fold_scales
from .passes.tiling import tile
from .plan import Placed, Plan, Schedule
from .program_bounds import graph_macs, program_bounds, with_peaks
from .stats_options import stats_notes, stats_options


def _canonicalise(plan: Plan) -> Plan:
    target, options = plan.machine.target, plan.options
    graph = align_states(drop_absent_outputs(plan.graph))
    graph = in_precision(graph, target, options.precision, kv_cache=options.kv_cache)
    return _of_graph(plan, fold_scales(canonicalise(graph, target)))


def _of_graph(plan: Plan, graph: Graph) -> Plan:
    """The plan for a canonical graph: what it multiplies decides the clock."""
    return replace(plan, graph=graph, machine=at_clock_of(graph, plan.machine))


# The names are those of the files that `--dump-phases-to` writes.
PASSES: tuple[tuple[str, Callable[[Plan], Plan]], ...] = (
    ("canonicalise", _canonicalise),
    ("place", place),
    ("split", split),
    ("tile", tile),
)


AfterPass = Callable[[str, Plan], None]


def compile_graph(
    graph: Graph, machine: Machine, options: CompileOptions, *, after_pass: AfterPass | None = None
) -> Program:
    """The program of a graph for so many cores and devices of a target."""
    return Compiler(graph).compile(machine, options, after_pass=after_pass)


@dataclass(frozen=True)
class _Built:
    """A finished compilation, at the typical figures of a machine."""

    machine: Machine
    options: CompileOptions
    plan: Plan
    passes: tuple[tuple[str, Plan], ...]  # every pass with the plan that it left
    lowering: Lowering
    columns: Columns  # whose ops are those of the schedule
    bounds: Bounds

    @cached_property
    def metrics(self) -> MemoryMetrics:
        return memory_metrics(self.plan, self.lowering, self.columns)


class Compiler:
    """Compiles one graph for one machine after the other; what did not change in between is not done again.

    A program is made for the typical figures of a target. At a corner of their ranges the same program is faster or
    slower: only the cycles of its commands are computed anew. The canonical graph is kept per form of the target, and
    the placement per target.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._canonical: list[tuple[tuple[object, ...], Graph]] = []
        self._placed: list[tuple[Graph, Target, tuple[Placed, ...]]] = []
        self._built: list[_Built] = []

    def compile(
        self,
        machine: Machine,
        options: CompileOptions,
        *,
        corner: Corner = Corner.TYPICAL,
        after_pass: AfterPass | None = None,
        timed_only: bool = False,
    ) -> Program:
        """The program for a machine, with every figure of its target at a corner of its range.

        Args:
            timed_only: it is simulated and not kept: it gets no memory metrics.
        """
        _check(machine)
        stats = stats_options(machine.target, options, batch=batch_size(self.graph))
        built = next((b for b in self._built if (b.machine, b.options) == (machine, options)), None)
        if built is None:
            built = self._build(machine, options, stats, after_pass)
        elif after_pass is not None:
            for name, plan in built.passes:
                after_pass(name, plan)
        return _program(self.graph, built, stats, corner, NO_METRICS if timed_only else built.metrics)

    @cached_property
    def _macs(self) -> int | None:
        return graph_macs(self.graph)

    def _build(
        self, machine: Machine, options: CompileOptions, stats: StatsOptions, after_pass: AfterPass | None
    ) -> _Built:
        """Run the passes; the last one emits the commands."""
        plan = Plan(self.graph, machine, options)
        passes: list[tuple[str, Plan]] = []
        for name, run in PASSES:
            plan = self._cached_pass(name, plan) or self._cache_pass(name, run(plan))
            passes.append((name, plan))
            if after_pass is not None:
                after_pass(name, plan)
        lowering = plan.lowered
        if lowering is None:
            raise ValueError("the last pass leaves no commands; expected them")
        _flush_stats(stats, lowering)
        columns = lowering.context.emitter.named_columns()
        bounds = program_bounds(self._macs, plan, lowering)
        built = _Built(machine, options, plan, tuple(passes), lowering, columns, bounds)
        self._built.append(built)
        return built

    def _cached_pass(self, name: str, plan: Plan) -> Plan | None:
        """The plan after a pass, where the pass has had the same inputs before; None: it has to run."""
        target = plan.machine.target
        if name == "canonicalise":
            graphs = (graph for form, graph in self._canonical if form == _canonical_form(plan))
            return next((_of_graph(plan, graph) for graph in graphs), None)
        if name == "place":
            known = (placed for graph, other, placed in self._placed if graph is plan.graph and other == target)
            return next((replace(plan, placed=placed) for placed in known), None)
        return None

    def _cache_pass(self, name: str, plan: Plan) -> Plan:
        if name == "canonicalise":
            self._canonical.append((_canonical_form(plan), plan.graph))
        elif name == "place":
            self._placed.append((plan.graph, plan.machine.target, plan.placed))
        return plan


def _flush_stats(stats: StatsOptions, lowering: Lowering) -> None:
    """Append the flush of operator statistics, if asked for: every thread group writes its part of the stats buffer."""
    if stats.level < OP_LEVEL:
        return
    context = lowering.context
    each = [group.threads * (OP_RECORD.itemsize + _counter_bytes(stats, group.name)) for group in context.groups]
    size = sum(each[row[2]] for row in context.emitter.rows)
    detail = context.emitter.detail(partial(Detail, "stats buffer", context.outer_name, "i8", "", (), ""))
    own = size / (context.lane_count * len(context.groups))
    for lane in range(context.lane_count):
        for group in range(len(context.groups)):
            spec = context.transfer(Carries.WRITE, lane, NO_OP, own, form="end_of_stats", group=group)
            context.emitter.emit(spec._replace(does=Does.STATS, detail=detail, out_bytes=size))


def _counter_bytes(stats: StatsOptions, group: str) -> int:
    """Of the PMU counters of one command, on one thread of a group."""
    if stats.level < OP_PMU_LEVEL:
        return 0
    return OP_PMU_RECORD.itemsize * sum(
        counts.partition(":")[2] in ("", group) for counts in stats.event_counts if counts
    )


def _canonical_form(plan: Plan) -> tuple[object, ...]:
    """What the canonical graph depends on beside the model."""
    return form_of(plan.machine.target), plan.options.precision, plan.options.kv_cache


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


def _program(graph: Graph, built: _Built, stats: StatsOptions, corner: Corner, metrics: MemoryMetrics) -> Program:
    """The program of a compilation; at a corner of the figures only the cycles of its commands are computed anew."""
    target = at_corner(built.plan.machine.target, corner)
    machine, schedule = replace(built.plan.machine, target=target), built.lowering.context.plan
    plan, columns, stats_hz = replace(built.plan, machine=machine), built.columns, target.clocks.stats_hz
    if corner is not Corner.TYPICAL:
        placed = reprice(built.plan, schedule, target)
        context, slower = built.lowering.context, replace(schedule, machine=machine, placed=placed)
        columns = retime_columns(
            slower, columns, built.lowering.tiles.costs, context.vector_costs, vector=context.vector_engine
        )
    columns = replace(columns, commands=_of_plan(columns.commands, schedule))
    return Program(
        name=plan.options.network or machine.target.runtime.network,
        target=machine.target.name,
        words=machine.target.words,
        devices=machine.devices,
        cores=machine.cores,
        device_cores=round(machine.target.topology.cores.value),
        card_devices=round(machine.target.topology.devices.value),
        batch=batch_size(graph),
        clock_hz=machine.clock_hz,
        stats_hz=stats_hz.value if stats_hz is not None else machine.clock_hz,
        groups=built.lowering.context.groups,
        routes=channels(plan),
        memories=memories(machine.target),
        kinds=columns.kinds,
        ops=tuple(_op_info(placed) for placed in plan.placed),
        details=columns.details,
        commands=columns.commands,
        dependency_offsets=columns.offsets,
        dependency_sources=columns.sources,
        dependency_kinds=columns.kinds_of_dependency,
        stats=stats,
        metrics=metrics,
        notes=(*plan.graph.assumptions, *stats_notes(plan.options, stats)),
        inputs=_ports(graph, graph.inputs),
        outputs=_ports(graph, graph.outputs),
        stored_types=_stored_types(graph, plan.graph),
        host_microseconds=_host(machine, _HOST_STAGES),
        host_bytes_per_second=_host(machine, _HOST_RATES, suffix="_bytes_per_second"),
        simulation=_simulation(machine) | _peak(plan),
        bounds=with_peaks(built.bounds, plan, built.lowering.context.groups),
    )


def _of_plan(commands: npt.NDArray[np.void], schedule: Schedule) -> npt.NDArray[np.void]:
    """The same commands, each pointing to an op of the plan instead of the schedule."""
    found = commands.copy()
    origin = np.array((*schedule.origin, NO_OP), dtype=found["op"].dtype)  # the last is where NO_OP points
    found["op"] = origin[found["op"]]
    return found


def _ports(graph: Graph, tensors: tuple[int, ...]) -> tuple[tuple[str, str, tuple[int, ...]], ...]:
    """Name, data type in the model, and shape of every input or output."""
    found = (graph.tensors[t] for t in tensors)
    return tuple((tensor.name, tensor.dtype.label, tensor.shape or ()) for tensor in found)


def _stored_types(model: Graph, graph: Graph) -> dict[str, str]:
    """Types of inputs and outputs, by the names that the model has, that the passes have changed.

    A device reads and writes them in these types and has no command that converts: the host does, which handles every
    input and output anyway (`-p`, pre- and post-processing, of the vendor's runner).
    """
    found = {}
    for own, made in ((model.inputs, graph.inputs), (model.outputs, graph.outputs)):
        for before, after in zip(own, made, strict=True):
            tensor, stored = model.tensors[before], graph.tensors[after].dtype
            if stored is not tensor.dtype:
                found[tensor.name] = stored.label
    return found


_HOST_STAGES = (
    "enqueue",
    "preprocess",
    "submit",
    "driver",
    "link_latency",
    "completion",
    "postprocess",
    "dequeue",
    "application",
    "open_decoder",
)
_HOST_RATES = ("link", "memory")


def _host(machine: Machine, names: tuple[str, ...], *, suffix: str = "") -> dict[str, float]:
    host = machine.target.host
    return {} if host is None else {name: getattr(host, name + suffix).value for name in names}


def _simulation(machine: Machine) -> dict[str, float]:
    simulation = machine.target.simulation
    if simulation is None:
        return {}
    figures = {part.name: getattr(simulation, part.name) for part in fields(simulation)}
    return {name: figure.value for name, figure in figures.items() if figure is not None}


def _peak(plan: Plan) -> dict[str, float]:
    """Peak MACs per cycle of one core, of the engines and data types that this program uses."""
    engines = {engine.name: engine for engine in plan.machine.target.engines}
    working = [placed for placed in plan.placed if placed.engine and placed.task.work.macs]
    used = {(placed.engine, placed.task.placement.dtype) for placed in working}
    rates = [(engines[name].rate(engines[name].macs_per_cycle, dtype), engines[name].units) for name, dtype in used]
    known = [rate.value * units for rate, units in rates if rate is not None]
    return {"macs_per_cycle": max(known)} if known else {}


def _op_info(placed: Placed) -> OpInfo:
    op = placed.op
    return OpInfo(op.name, op.type, op.kind, op.location, placed.unknown, op.module, op.line)
