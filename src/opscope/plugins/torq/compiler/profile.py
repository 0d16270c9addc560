"""Compilation by the vendor's compiler → Recording. Cycles are its schedule's; times only where a clock is known."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from ....backends.model_facts import with_model
from ....core.meaning import Carries, Does
from ....core.provenance import Provenance
from ....importers.column_trace import Clock
from ....program.program import COMMAND, NO_ROUTE, Detail
from ....recording.recording import CLOCK, Metric, Recording, empty_trace
from ....recording.run import CommandTable, RunRoute, graph_edges
from ....recording.summary import Latency, MemoryTotal
from ....recording.trace import COUNTER, EDGE, Lane, SpanKind, Trace, blank_spans
from ..annotate.annotated import Listing
from ..importers.compile_csv import computes, role_of
from .compilation import compile_model, read_graph
from .nodes import Ops, fused_names, host_programs, leads_of, ops_of
from .options import TorqOptions
from .schedule import Schedule, join

_ROUTES = {"DMA In": Carries.READ, "DMA Out": Carries.WRITE}
_NUMBER = re.compile(r"_\d+$")  # behind the name of a slice's program


def profile_model(model: Path, options: TorqOptions, *, shapes: Mapping[str, tuple[int, ...]]) -> Recording:
    """Compile, and tell what the compiler's own schedule says."""
    graph = read_graph(model, shapes)
    found = compile_model(model, options)
    schedule = join(found.rows, found.listing, leads_of(graph))
    clock = None if options.clock_hz is None else Clock(round(options.clock_hz), "")
    ops = ops_of(graph, schedule, clock)
    table, trace = _timeline(schedule, ops, options, clock) if clock else (None, empty_trace(Provenance.VENDOR_MODEL))
    total = int(found.rows.end.max(initial=0))
    latency = Latency(int(clock.ns(np.array([total]))[0]), None, None, Provenance.VENDOR_MODEL) if clock else None
    result = Recording(
        maker="torq",
        model=str(model),
        network=model.stem,
        target=f"torq-{options.hw.lower()}",
        machine={"title": f"Torq {options.hw}", "slices": options.hardware.slices, "clock_hz": options.clock_hz},
        clocks_hz={"core": options.clock_hz} if options.clock_hz else {},
        options=options.shown(),
        provenance=Provenance.VENDOR_MODEL,
        latency=latency,
        metrics=tuple(_metrics(schedule, total, options)),
        ops=ops.records,
        devices=1,
        cores=1,
        graph=None if len(ops.records) != len(graph.ops) else graph_edges(graph),
        memory=tuple(_memory(schedule, found.listing, options)),
        notes=(*_notes(options), *fused_names(ops.records), *host_programs(schedule.host), *found.notes),
        trace=trace,
        commands=table,
        producer=found.producer,
        inferences=1,
        numbers=(0,),
        files=found.files,
    )
    return with_model(result, graph)


def _timeline(schedule: Schedule, ops: Ops, options: TorqOptions, clock: Clock) -> tuple[CommandTable, Trace]:
    """A command and a span per row, by lane and then by time."""
    rows = schedule.rows
    order = np.lexsort((rows.start, rows.unit))
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    words = [_word(schedule, row) for row in order.tolist()]
    kinds = tuple(dict.fromkeys(words))
    moves = np.array([unit in _ROUTES for unit in rows.units])[rows.unit[order]]
    table = np.zeros(len(order), COMMAND)
    table["group"], table["op"] = rows.unit[order], ops.of_row[order]
    table["kind"] = [kinds.index(word) for word in words]
    table["detail"] = table["ordinal"] = np.arange(len(order))
    routes = [list(_ROUTES).index(unit) if unit in _ROUTES else NO_ROUTE for unit in rows.units]
    table["route"] = NO_ROUTE  # only a program of ours has its transfers issued by commands that go on
    table["moved_bytes"] = np.maximum(rows.bytes[order], 0)
    table["cycles"] = np.where(moves, 0, rows.end[order] - rows.start[order])
    does = np.array([_does(schedule, row) for row in order.tolist()])
    table["does"] = does
    details = [Detail(f"task {rows.task[row]}", "", "", "", (), "") for row in order.tolist()]
    rate = options.hardware.dma_bytes_per_cycle
    known = tuple(RunRoute(n, way, "XRAM", rate * clock.hz if rate else None) for n, way in _ROUTES.items())
    commands = CommandTable.from_details(table, details, kinds=kinds, groups=rows.units, routes=known)
    spans = blank_spans(len(order))
    spans["lane"], spans["op"], spans["command"] = rows.unit[order], ops.of_row[order], np.arange(len(order))
    spans["kind"] = np.where(moves, SpanKind.TRANSFER, SpanKind.OP)
    spans["does"], spans["route"], spans["name"] = does, np.array(routes)[rows.unit[order]], table["kind"]
    spans["start_ns"], spans["end_ns"] = clock.ns(rows.start[order]), clock.ns(rows.end[order])
    spans["ucycles"] = spans["pcycles"] = rows.end[order] - rows.start[order]
    edges = np.zeros(len(schedule.edges), EDGE)
    for at, (source, target, data) in enumerate(schedule.edges):
        edges[at] = (place[source], place[target], data)
    lanes = tuple(Lane(0, 0, unit, role=role_of(unit)) for unit in rows.units)
    return commands, Trace(lanes, kinds, spans, edges, (), np.zeros(0, COUNTER), Provenance.VENDOR_MODEL)


def _word(schedule: Schedule, row: int) -> str:
    unit = schedule.rows.units[schedule.rows.unit[row]]
    return _NUMBER.sub("", schedule.kernel[row]) or f"{unit} {schedule.payload[row]}".strip()


def _does(schedule: Schedule, row: int) -> Does:
    if schedule.payload[row].is_control:
        return Does.LAUNCH
    unit = schedule.rows.units[schedule.rows.unit[row]]
    return Does.UNKNOWN if computes(unit) else Does.MOVE


def _metrics(schedule: Schedule, total: int, options: TorqOptions) -> Iterator[Metric]:
    rows, control = schedule.rows, schedule.is_control
    if options.clock_hz:
        yield Metric(CLOCK, options.clock_hz, "Hz")
    yield Metric("cycles", total, "cycles", Provenance.VENDOR_MODEL)
    for number, unit in enumerate(rows.units):
        own = rows.unit == number
        name = unit.lower().replace(" ", "_")
        yield Metric(f"{name}_cycles", int((rows.end - rows.start)[own].sum()), "cycles", Provenance.VENDOR_MODEL)
        if unit in _ROUTES:
            yield Metric(f"{name}_bytes", int(rows.bytes[own].sum()), "bytes", Provenance.COMPILER_FACT)
    if any(schedule.payload):
        note = "programs of the sequencer and descriptors of slices"
        yield Metric("control_bytes", int(rows.bytes[control].sum()), "bytes", Provenance.COMPILER_FACT, note)
        cycles = int((rows.end - rows.start)[control].sum())
        yield Metric("control_cycles", cycles, "cycles", Provenance.VENDOR_MODEL, note)


def _memory(schedule: Schedule, listing: Listing | None, options: TorqOptions) -> Iterator[MemoryTotal]:
    rows = schedule.rows
    moved = [
        int(rows.bytes[rows.unit == rows.units.index(unit)].sum()) if unit in rows.units else 0 for unit in _ROUTES
    ]
    uses = [use for dispatch in (() if listing is None else listing.dispatches) for use in dispatch.memories]
    peaks = {name: max(use.peak_bytes for use in uses if use.name == name) for name in {use.name for use in uses}}
    yield MemoryTotal("LRAM", 0, 0, peaks.get("LRAM"), None, options.hardware.lram_bytes, None, None)
    yield MemoryTotal("XRAM", 0, None, peaks.get("XRAM"), None, None, *moved)


def _notes(options: TorqOptions) -> Iterator[str]:
    yield "cycles are those of the schedule that the vendor's compiler makes; nothing was measured"
    if options.clock_hz is None:
        yield f"no clock is published for {options.hw}: cycles are told, times are not; --torq-clock-mhz gives one"
    else:
        yield f"cycles are shown as time at {options.clock_hz / 1e6:g} MHz"
