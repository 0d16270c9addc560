"""Graph, Target → Program: a visible list of passes, each in its own module."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..core.errors import UsageError
from ..estimate.canonical import canonicalise
from ..estimate.price import Machine
from ..graph.graph import Graph
from ..program.program import OpInfo, Program
from .codegen.context import channels, memories
from .codegen.instrument import instrument
from .codegen.lower import Lowering
from .memory_metrics import memory_metrics
from .passes.batch_tiling import batch_of, stretch
from .passes.place import place
from .passes.residency import settle
from .passes.scale_folding import drop_absent_outputs, fold_scales
from .passes.split import split
from .passes.unroll import Unrolled, unroll
from .plan import CompileOptions, Plan


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


def compile_graph(
    graph: Graph,
    machine: Machine,
    options: CompileOptions,
    *,
    after_pass: Callable[[str, Plan], None] | None = None,
) -> Program:
    """Compile a graph for so many cores and devices of a target."""
    _check(machine)
    plan = Plan(graph, machine, options)
    for name, run in PASSES:
        plan = run(plan)
        if after_pass is not None:
            after_pass(name, plan)
    unrolled = unroll(plan)
    lowering = Lowering(unrolled.plan)
    lowering.run()
    instrument(plan, lowering)
    return _program(graph, plan, lowering, unrolled)


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


def _program(graph: Graph, plan: Plan, lowering: Lowering, unrolled: Unrolled) -> Program:
    machine, stats_hz = plan.machine, plan.machine.target.clocks.stats_hz
    columns = unrolled.in_whole_ops(lowering.bench.emitter.columns())
    return Program(
        name=plan.options.network,
        target=machine.target.name,
        devices=machine.devices,
        cores=machine.cores,
        batch=batch_of(graph),
        clock_hz=machine.clock_hz,
        stats_hz=stats_hz.value if stats_hz is not None else machine.clock_hz,
        groups=lowering.bench.groups,
        routes=channels(plan),
        memories=memories(machine.target),
        kinds=columns.kinds,
        ops=tuple(OpInfo(p.op.name, p.op.type, p.op.kind, p.op.location) for p in plan.placed),
        details=columns.details,
        commands=columns.commands,
        dependency_offsets=columns.offsets,
        dependency_sources=columns.sources,
        dependency_kinds=columns.kinds_of_dependency,
        stats=plan.options.stats,
        metrics=memory_metrics(plan, lowering, columns),
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
