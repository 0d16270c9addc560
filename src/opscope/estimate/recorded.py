"""Report → Recording: an estimate in the form of every profile, its layers one behind the other on their engines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from ..core.meaning import Carries, Does, LaneRole
from ..graph.batch import batch_size
from ..graph.kinds import what_kind_does
from ..machine.target import ANY, Holds, Target
from ..program.program import COMMAND, NO_OP, NO_ROUTE, OpCycles, OpInfo
from ..recording.build import program_ops
from ..recording.finding import Trial
from ..recording.recording import Recording
from ..recording.resources import MemoryUse
from ..recording.run import MACS_PER_S, OUTER_BYTES_PER_S, CommandTable, RunRoute, graph_edges
from ..recording.summary import Energy, LaneTotal, Latency, MemoryTotal, OpTotal, Summary
from ..recording.trace import COUNTER, EDGE, NONE, CounterTrack, Lane, SpanKind, Trace, blank_spans
from .cost import CALL, EXCHANGE
from .peaks import peaks_of
from .recorded_arena import MARKS, Arena, Mark, arena_of
from .recorded_operands import details_of, memories_of
from .recorded_resources import outer_bytes, resource_cycles, resources_of
from .report import Layer, Report

NANO = 1e9
_CPU = "CPU"  # what runs a layer that no engine takes
_SPAN_KEYS = ("lane", "op", "command", "name", "does", "start_ns", "end_ns")

EXCHANGES = (RunRoute(EXCHANGE.name, Carries.MULTICAST),)  # the one route that formulas tell of: between cores


def estimated(report: Report) -> Recording:
    """The recording of an estimate; without times where one layer's cost is unknown."""
    edges = graph_edges(report.graph)
    arena = arena_of(report, edges)
    commands = _commands(report, arena)[np.array(arena.order, np.int64)]
    details = details_of(report, arena)
    trace = _trace(report, arena, commands, [detail.name for detail in details], _command_edges(report, arena, edges))
    batch = batch_size(report.graph)
    totals = _summary(report, arena, trace, batch)
    target = report.target
    ops = [
        OpInfo(each.name, each.operator, each.kind, each.location, each.unknown, each.module, each.line)
        for each in report.layers
    ]
    return Recording(
        maker="estimate",
        provenance=report.provenance,
        trace=trace,
        ops=program_ops(ops, totals),
        model=report.model.path,
        network=report.model.name,
        target=target.name,
        words=target.words,
        limits=limits_of(report.target, report.devices * report.cores, report.devices, report.layers),
        clocks_hz={"core": target.clocks.core_hz.value},
        devices=report.devices,
        cores=report.cores,
        batch=batch,
        inferences=1,
        numbers=(0,),
        notes=report.graph.assumptions,
        commands=CommandTable.from_details(
            commands,
            details,
            kinds=("", *MARKS),
            routes=EXCHANGES,
            places=memories_of(target),
            op_cycles=tuple(_op_cycles(report)),
        ),
        graph=edges,
        resources=resources_of(report),
        bounds=peaks_of(target, ((engine.name, engine, engine.units) for engine in target.engines)),
        totals=totals,
        caveats=tuple(_caveats(report)),
    )


def _caveats(report: Report) -> Iterator[str]:
    count = report.memory.unknown_tensors
    if count:
        yield f"{count} {'tensor has' if count == 1 else 'tensors have'} no size in the model: peak memory is not known"


def _op_cycles(report: Report) -> Iterator[OpCycles]:
    for number, layer in enumerate(report.layers):
        for row in resource_cycles(layer, report.target):
            yield OpCycles(number, row.resource, row.is_memory, row.cycles)


def _command_edges(report: Report, arena: Arena, edges: npt.NDArray[np.void]) -> npt.NDArray[np.void]:
    """From layers and marks to commands, which stand in the order of the arena.

    Layers run one behind the other: where the next one is on another engine, an edge without data says so.
    """
    place = np.argsort(np.array(arena.order, np.int64))
    engines = [layer.engine for layer in report.layers]
    data = [*arena.edges[::-1], *((source, target) for source, target in edges.tolist())]
    known = set(data)
    turns = [(n, n + 1) for n in range(len(engines) - 1) if engines[n] != engines[n + 1] and (n, n + 1) not in known]
    # Of those that end at once, analysis takes the last as what was waited for: a layer before an input before scratch.
    pairs = place[np.array([*turns, *data], np.int64).reshape(-1, 2)]
    table = np.zeros(len(pairs), EDGE)
    table["source"], table["target"], table["data"] = pairs[:, 0], pairs[:, 1], np.arange(len(pairs)) >= len(turns)
    return table[np.argsort(table["target"], kind="stable")]


def suggested(report: Report) -> tuple[Trial, ...]:
    """What the report suggests and estimates to be faster."""
    found = [
        Trial(suggestion.text, round(after * NANO), before / after)
        for suggestion in report.suggestions
        if (before := suggestion.before.latency_s) and (after := suggestion.after.latency_s) and after < before
    ]
    return tuple(sorted(found, key=lambda trial: trial.latency_ns))


def limits_of(target: Target, lanes: int, devices: int, layers: Sequence[Layer]) -> dict[str, float]:
    """What the engines that the layers run on, and the memory they read from, can do at the most.

    Args:
        lanes: cores that share the work, of all devices.
    """
    clock, home = target.clocks.core_hz.value, target.home(Holds.ACTIVATIONS)
    engines = {engine.name: engine for engine in target.engines}
    used = {(layer.engine, layer.dtype) for layer in layers if layer.engine and layer.macs}
    tables = [(engines[name].macs_per_cycle, dtype) for name, dtype in used if name in engines]
    rates = [found.value for table, dtype in tables if (found := table.get(dtype, table.get(ANY))) is not None]
    limits = {MACS_PER_S: max(rates) * clock * lanes} if rates else {}
    if home.bytes_per_second is not None:
        limits[OUTER_BYTES_PER_S] = home.bytes_per_second.value * devices
    elif home.bytes_per_cycle is not None:
        limits[OUTER_BYTES_PER_S] = home.bytes_per_cycle.value * clock * devices
    return limits


def _ns(layer: Layer) -> int:
    return round((layer.latency_s or 0.0) * NANO)


def _bounds(report: Report) -> list[int]:
    """When the first layer starts, behind the call, and when each is done. Rounded sums, not sums of rounded parts: the
    last one is the latency."""
    seconds = np.cumsum([report.call_s, *(layer.latency_s or 0.0 for layer in report.layers)])
    return [round(float(end) * NANO) for end in seconds]


_Row = tuple[int, int, int, int, Does, int, int]  # lane, op, command, name, does, start, end


def _trace(
    report: Report, arena: Arena, commands: npt.NDArray[np.void], words: Sequence[str], edges: npt.NDArray[np.void]
) -> Trace:
    """A span for every command, and before it what comes before its work; none where the times do not make a whole."""
    known = bool(report.layers) and report.totals.latency_s is not None
    engines = list(dict.fromkeys(layer.engine or _CPU for layer in report.layers))
    rows = list(_rows(report, arena, engines)) if known else []
    spans = blank_spans(len(rows))
    spans["kind"] = SpanKind.OP
    for key, column in zip(_SPAN_KEYS, np.array(rows, np.int64).reshape(-1, len(_SPAN_KEYS)).T, strict=True):
        spans[key] = column
    spans["route"][(spans["does"] == Does.MOVE) & (spans["op"] != NONE)] = 0
    core = 0 if report.cores == report.devices == 1 else NONE  # else a lane stands for the engines of all cores
    lanes = tuple(Lane(0, core, engine, role=LaneRole.ENGINE) for engine in (engines if known else ()))
    names = (*(words[detail] for detail in commands["detail"]), *(does.label for does in Does), CALL.name)
    counters, samples = _occupancy(report, arena) if known else ((), np.zeros(0, COUNTER))
    return Trace(lanes, names, spans, edges, counters, samples, report.provenance)


def _rows(report: Report, arena: Arena, engines: Sequence[str]) -> Iterator[_Row]:
    """Spans in order of commands; what comes before work is named by what it does, behind the names of commands."""
    layers, bounds, steps = report.layers, _bounds(report), arena.steps
    for command, number in enumerate(arena.order):
        step = steps[number]
        lane, start = engines.index(layers[min(step, len(layers) - 1)].engine or _CPU), bounds[step]
        if number >= len(layers):  # a mark is no op's work
            yield lane, NONE, command, command, Does.MOVE, start, start
            continue
        *before, (work, end) = spent_until(_spent(layers[number]), start, bounds[step + 1])
        for does, until in before:
            yield lane, number, command, len(steps) + does, does, start, until
            start = until
        yield lane, number, command, command, work, start, end
    if bounds[0] > 0:  # before the first layer, on its engine: nothing else runs
        yield 0, NONE, NONE, len(steps) + len(Does), Does.LAUNCH, 0, bounds[0]


def spent_until(spent: Mapping[Does, float], start_ns: int, end_ns: int) -> list[tuple[Does, int]]:
    """What a time is spent on, one after the other, each with its end; the last one is there if it has no time too."""
    whole, at = sum(spent.values()), 0.0
    found = []
    for does, part in spent.items():
        at += part
        found.append((does, start_ns + round((end_ns - start_ns) * at / whole) if whole else end_ns))
    starts = [start_ns, *(end for _, end in found)]
    return [*(row for row, start in zip(found[:-1], starts, strict=False) if row[1] > start), found[-1]]


def _occupancy(report: Report, arena: Arena) -> tuple[tuple[CounterTrack, ...], npt.NDArray[np.void]]:
    """Bytes in use while each layer runs, and how far they reach: holes between them are of no use to others."""
    tracks = {"in use": arena.in_use_bytes, "reach": arena.reach_bytes}
    starts = _bounds(report)
    samples = np.zeros(len(tracks) * len(starts), COUNTER)
    samples["counter"] = np.repeat(np.arange(len(tracks)), len(starts))
    samples["time_ns"] = starts * len(tracks)
    samples["value"] = [value for values in tracks.values() for value in (*values, 0)]
    memory = report.memory.uses[0].name
    return tuple(CounterTrack(0, NONE, f"{memory}: arena {what}", "bytes") for what in tracks), samples


def _commands(report: Report, arena: Arena) -> npt.NDArray[np.void]:
    """Of layers, then of marks."""
    count = len(report.layers)
    commands = np.zeros(count + len(arena.marks), COMMAND)
    commands["op"], commands["route"] = [*range(count), *(mark.op for mark in arena.marks)], NO_ROUTE
    commands["kind"][count:] = [1 + MARKS.index(mark.kind) for mark in arena.marks]
    commands["detail"] = np.arange(len(commands))
    commands["does"] = [*map(_does, report.layers), *(_does_of_mark(mark, report.layers) for mark in arena.marks)]
    commands["ordinal"] = np.argsort(np.array(arena.order, np.int64))
    commands["macs"][:count] = [layer.macs for layer in report.layers]
    commands["out_bytes"][:count] = [layer.write_bytes for layer in report.layers]
    holders = [block.holder for block in arena.blocks]
    commands["local_address"][holders] = [block.address for block in arena.blocks]
    commands["local_bytes"][holders] = [block.size_bytes for block in arena.blocks]
    return commands


def _does(layer: Layer) -> Does:
    return what_kind_does(layer.kind)


def _does_of_mark(mark: Mark, layers: Sequence[Layer]) -> Does:
    """Scratch is there for what its op does; inputs and outputs lie where they lie, and nothing is done."""
    return Does.UNKNOWN if mark.op == NO_OP else _does(layers[mark.op])


def _spent(layer: Layer) -> Mapping[Does, float]:
    return {_does(layer): 1.0} if layer.cost is None else layer.cost.spent(_does(layer))


def _summary(report: Report, arena: Arena, trace: Trace, batch: int) -> Summary:
    value, low, high = _latency_ns(report)
    return Summary(
        latency=Latency(value, low, high, report.provenance),
        throughput_per_s=batch * NANO / value if value else None,
        batch=batch,
        lanes=_lanes(trace, value),
        memory=tuple(
            MemoryTotal(use.name, 0, None, _peak_bytes(report, use), mean, use.available_bytes, None, None)
            for use, mean in zip(report.memory.uses, _means(report, arena, value), strict=True)
        ),
        energy=_energy(report),
        ops=_op_totals(report, value),
    )


def _peak_bytes(report: Report, use: MemoryUse) -> int | None:
    """None where tensors that lie there have no size: the report says what the others take."""
    return None if report.memory.is_lower_bound and "activations" in use.holds else use.required_bytes


def _op_totals(report: Report, value: int | None) -> tuple[OpTotal, ...]:
    rows = (_op(number, layer, value, report.target) for number, layer in enumerate(report.layers))
    return tuple(sorted(rows, key=lambda op: -(op.busy_ns or 0)))


def _means(report: Report, arena: Arena, value: int | None) -> Iterator[float | None]:
    """Of every memory the bytes in use over time; constants stay where they are."""
    held, times = np.array(arena.in_use_bytes, np.float64), np.diff(_bounds(report))
    for number, use in enumerate(report.memory.uses):
        arena_bytes = report.memory.peak_bytes if number == 0 else 0
        over_time = float((held * times).sum()) / value if number == 0 and value else 0.0
        yield use.required_bytes - arena_bytes + over_time if value else None


def _latency_ns(report: Report) -> tuple[int | None, int | None, int | None]:
    """Value, low and high; a target whose figures have no ranges gives none."""
    latency, least = report.totals.latency_s, report.totals.known_latency_s
    if latency is None:
        return None, None if least is None else round(least * NANO), None
    value, low, high = (round(seconds * NANO) for seconds in (latency.value, latency.low, latency.high))
    return (value, low, high) if low < high else (value, None, None)


def _energy(report: Report) -> Energy | None:
    found = report.totals.energy_j
    if found is None:
        return None
    low, high = (found.low, found.high) if found.low < found.high else (None, None)
    return Energy(found.value, low, high, report.provenance, report.totals.energy_note)


def _lanes(trace: Trace, wall: int | None) -> tuple[LaneTotal, ...]:
    """Formulas know what is at work, and not who waits for whom."""
    length = trace.spans["end_ns"] - trace.spans["start_ns"]
    busy = np.bincount(trace.spans["lane"], length, minlength=len(trace.lanes)).tolist()
    return tuple(
        LaneTotal(lane.device, lane.core, lane.name, round(ns), None, (wall or 0) - round(ns), engine=lane.name)
        for lane, ns in zip(trace.lanes, busy, strict=True)
    )


def _op(number: int, layer: Layer, value: int | None, target: Target) -> OpTotal:
    """A layer as the total of its op. Layers lie end to end: busy and wall time are the same, and nobody waits."""
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
        moved_bytes=outer_bytes(layer, target) or None,
        macs=layer.macs,
        engine=layer.engine or "",
        placed="accelerator" if layer.accelerated else "cpu",
        reason=layer.reason,
        energy_j=layer.energy_j,
        op=number,
        does=_does(layer).label,
        on_cpu=not layer.accelerated,
    )
