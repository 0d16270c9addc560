"""Report → Run: an estimate in the form that every profile has, its layers one behind the other on their engines."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..finding import Trial
from ..program import COMMAND, NO_ROUTE, OpInfo, Program, bare_program
from ..report import PROVENANCE, Layer, Report
from ..run import CommandTable, Run, RunInfo, graph_edges
from ..summary import Energy, LaneTotal, Latency, MemoryTotal, OpTotal, Share, Summary
from ..target import ANY, Holds
from ..trace import COUNTER, EDGE, NONE, SPAN, CounterTrack, Lane, SpanKind, Trace

NANO = 1e9


def estimated_run(report: Report, *, command: tuple[str, ...], created: str) -> tuple[Run, Program]:
    """The Run of an estimate; without times where one layer's cost is unknown."""
    edges = graph_edges(report.graph)
    trace = _trace(report, edges)
    program = _program(report, edges)
    target = report.target
    info = RunInfo(
        command=command,
        created=created,
        model=report.model.path,
        sha256=report.model.sha256,
        target=target.name,
        provenance=PROVENANCE,
        network=report.model.name,
        devices=report.devices,
        cores=report.cores,
        batch=program.batch,
        clocks_hz={"core": target.clocks.core_hz.value},
        inferences=(0,),
        options={"backend": "estimate"},
        limits=_limits(report),
    )
    summary = _summary(report, trace, program.batch)
    return Run(info, program.ops, CommandTable.of(program), trace, summary, edges), program


def suggested(report: Report) -> tuple[Trial, ...]:
    """What the report suggests and estimates to be faster."""
    found = [
        Trial(suggestion.text, round(after * NANO), before / after)
        for suggestion in report.suggestions
        if (before := suggestion.before.latency_s) and (after := suggestion.after.latency_s) and after < before
    ]
    return tuple(sorted(found, key=lambda trial: trial.latency_ns))


def _limits(report: Report) -> dict[str, float]:
    """What the engines that the layers run on, and the memory they read from, can do at the most."""
    target, lanes = report.target, report.devices * report.cores
    clock, home = target.clocks.core_hz.value, target.home(Holds.ACTIVATIONS)
    engines = {engine.name: engine for engine in target.engines}
    used = {(layer.engine, layer.dtype) for layer in report.layers if layer.engine and layer.macs}
    tables = [(engines[name].macs_per_cycle, dtype) for name, dtype in used if name in engines]
    rates = [found.value for table, dtype in tables if (found := table.get(dtype, table.get(ANY))) is not None]
    limits = {"macs_per_s": max(rates) * clock * lanes} if rates else {}
    if home.bytes_per_second is not None:
        limits["outer_bytes_per_s"] = home.bytes_per_second.value * report.devices
    elif home.bytes_per_cycle is not None:
        limits["outer_bytes_per_s"] = home.bytes_per_cycle.value * clock * report.devices
    return limits


def _ns(layer: Layer) -> int:
    return round((layer.latency_s or 0.0) * NANO)


def _ends(report: Report) -> list[int]:
    """When each layer is done. Rounded sums, not sums of rounded parts: the last one is the latency."""
    seconds = np.cumsum([layer.latency_s or 0.0 for layer in report.layers])
    return [round(float(end) * NANO) for end in seconds]


def _trace(report: Report, edges: npt.NDArray[np.void]) -> Trace:
    """One span for each layer that takes time; none where the times do not make a whole."""
    known = report.totals.latency_s is not None
    lanes: dict[str, int] = {}
    spans = np.zeros(len(report.layers) if known else 0, SPAN)
    start = 0
    for number, (layer, end) in enumerate(zip(report.layers, _ends(report), strict=True)) if known else ():
        lane = lanes.setdefault(layer.engine or "CPU", len(lanes))
        spans[number] = (lane, SpanKind.OP, 0, number, number, start, end, NONE, NONE, NONE, number)
        start = end
    table = np.zeros(len(edges), EDGE)
    table["source"], table["target"], table["data"] = edges["source"], edges["target"], True
    names = tuple(layer.name for layer in report.layers)
    rows = tuple(Lane(0, 0, engine) for engine in lanes)
    counters, samples = _occupancy(report, known=known)
    return Trace(rows, names, spans, table, counters, samples, PROVENANCE)


def _occupancy(report: Report, *, known: bool) -> tuple[tuple[CounterTrack, ...], npt.NDArray[np.void]]:
    """Bytes of tensors alive while each layer runs, none after the last; arena, scratch and runtime are more."""
    from ..estimate.memory import plan_memory

    alive = plan_memory(report.graph, report.target.runtime).live_bytes
    if not known or not alive or not report.memory.uses:
        return (), np.zeros(0, COUNTER)
    starts = [0, *_ends(report)]
    samples = np.zeros(len(starts), COUNTER)
    samples["time_ns"], samples["value"] = starts, [*alive, 0]
    return (CounterTrack(0, NONE, f"{report.memory.uses[0].name}: tensors alive", "bytes"),), samples


def _program(report: Report, edges: npt.NDArray[np.void]) -> Program:
    commands = np.zeros(len(report.layers), COMMAND)
    commands["op"], commands["route"] = np.arange(len(commands)), NO_ROUTE
    commands["macs"] = [layer.macs for layer in report.layers]
    commands["out_bytes"] = [layer.write_bytes for layer in report.layers]
    sources, targets = (edges[key].astype(np.int64) for key in ("source", "target"))
    shapes = [report.graph.tensors[tensor].shape for tensor in report.graph.inputs]
    return bare_program(
        report.model.name, report.target.name,
        [OpInfo(layer.name, layer.operator, layer.kind, layer.location) for layer in report.layers],
        devices=report.devices, cores=report.cores, batch=next((shape[0] for shape in shapes if shape), 1),
        clock_hz=report.target.clocks.core_hz.value, commands=commands, edges=(sources, targets),
    )  # fmt: skip


def _summary(report: Report, trace: Trace, batch: int) -> Summary:
    value, low, high = _latency_ns(report)
    return Summary(
        latency=Latency(value, low, high, PROVENANCE),
        throughput_per_s=batch * NANO / value if value else None,
        batch=batch,
        lanes=_lanes(trace, value),
        memory=tuple(
            MemoryTotal(use.name, 0, None, use.required_bytes, None, use.available_bytes, None, None)
            for use in report.memory.uses
        ),
        breakdown=_breakdown(report, value),
        energy=_energy(report),
        ops=tuple(sorted((_op(layer, value) for layer in report.layers), key=lambda op: -(op.busy_ns or 0))),
    )


def _latency_ns(report: Report) -> tuple[int | None, int | None, int | None]:
    """Value, low and high; a target whose figures have no ranges gives none."""
    latency = report.totals.latency_s
    if latency is None:
        return None, None, None
    value, low, high = (round(seconds * NANO) for seconds in (latency.value, latency.low, latency.high))
    return (value, low, high) if low < high else (value, None, None)


def _energy(report: Report) -> Energy | None:
    found = report.totals.energy_j
    if found is None:
        return None
    low, high = (found.low, found.high) if found.low < found.high else (None, None)
    return Energy(found.value, low, high, PROVENANCE, report.totals.energy_note)


def _lanes(trace: Trace, wall: int | None) -> tuple[LaneTotal, ...]:
    """Formulas know what is at work, and not who waits for whom."""
    length = trace.spans["end_ns"] - trace.spans["start_ns"]
    busy = np.bincount(trace.spans["lane"], length, minlength=len(trace.lanes)).tolist()
    return tuple(
        LaneTotal(0, 0, lane.name, round(ns), None, (wall or 0) - round(ns))
        for lane, ns in zip(trace.lanes, busy, strict=True)
    )


def _breakdown(report: Report, value: int | None) -> tuple[Share, ...]:
    """By what binds each layer; without a total there is nothing to divide."""
    if not value:
        return ()
    causes: dict[str, float] = {}
    for layer in report.layers:
        causes[layer.bound] = causes.get(layer.bound, 0.0) + (layer.latency_s or 0.0) * NANO
    return tuple(Share(cause, ns, ns / value) for cause, ns in sorted(causes.items(), key=lambda item: -item[1]) if ns)


def _op(layer: Layer, value: int | None) -> OpTotal:
    ns = None if layer.latency_s is None else _ns(layer)
    return OpTotal(
        name=layer.name,
        type=layer.operator,
        wall_ns=ns,
        busy_ns=ns,
        wait_ns=None,
        share=ns / value if ns is not None and value else None,
        commands=layer.trips,
        out_bytes=layer.write_bytes,
        moved_bytes=sum(layer.traffic.values()) or None,
        macs=layer.macs,
        engine=layer.engine or "",
        placed="accelerator" if layer.accelerated else "cpu",
        reason=layer.reason,
        energy_j=layer.energy_j,
    )
