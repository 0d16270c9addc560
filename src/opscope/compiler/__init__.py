"""Graph, Target → Program: a visible list of passes, each in its own module."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..errors import UsageError
from ..estimate.canonical import canonicalise
from ..estimate.price import Machine
from ..graph import Graph
from ..program import OpInfo, Program
from .fold import drop_absent_outputs, fold_scales
from .instrument import instrument
from .lower import Lowering
from .metrics import memory_metrics
from .place import place
from .plan import CompileOptions, Plan
from .settle import settle
from .split import split
from .workbench import channels


def _canonicalise(plan: Plan) -> Plan:
    graph = canonicalise(drop_absent_outputs(plan.graph), plan.machine.target)
    return replace(plan, graph=fold_scales(graph))


PASSES: tuple[tuple[str, Callable[[Plan], Plan]], ...] = (
    ("canonicalise", _canonicalise),
    ("place", place),
    ("split", split),
    ("settle", settle),
)


def compile_graph(
    graph: Graph,
    machine: Machine,
    options: CompileOptions,
    *,
    after_pass: Callable[[str, Plan], None] | None = None,
) -> Program:
    """Compile a graph for so many cores and devices of a target."""
    target = machine.target
    if target.tiling is None or target.local is None or not target.routes or target.clocks.stats_hz is None:
        raise UsageError(f"{target.name}: cannot be compiled for; its file has no [tiling], [[routes]] or local memory")
    plan = Plan(graph, machine, options)
    for name, run in PASSES:
        plan = run(plan)
        if after_pass is not None:
            after_pass(name, plan)
    lowering = Lowering(plan)
    lowering.run()
    instrument(plan, lowering)
    columns = lowering.bench.emitter.columns()
    tensors = plan.graph.tensors
    return Program(
        name=options.network,
        target=target.name,
        devices=machine.devices,
        cores=machine.cores,
        batch=_batch(graph),
        clock_hz=machine.clock_hz,
        stats_hz=target.clocks.stats_hz.value,
        groups=lowering.bench.groups,
        routes=channels(plan),
        kinds=columns.kinds,
        ops=tuple(OpInfo(p.op.name, p.op.type, p.op.kind, p.op.location) for p in plan.placed),
        details=columns.details,
        commands=columns.commands,
        dependency_offsets=columns.offsets,
        dependency_sources=columns.sources,
        dependency_kinds=columns.kinds_of_dependency,
        stats=options.stats,
        metrics=memory_metrics(plan, lowering, columns),
        inputs=tuple((tensors[t].name, graph.tensors[t].dtype.label, tensors[t].shape or ()) for t in graph.inputs),
        outputs=tuple((tensors[t].name, graph.tensors[t].dtype.label, tensors[t].shape or ()) for t in graph.outputs),
        host_microseconds=_host(machine),
        simulation=_simulation(machine),
    )


def _batch(graph: Graph) -> int:
    shape = graph.tensors[graph.inputs[0]].shape if graph.inputs else None
    return shape[0] if shape else 1


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
