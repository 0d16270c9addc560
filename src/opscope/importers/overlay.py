"""A modelled timeline laid over a measured one: ops joined by source location, each estimate pinned where its op began.

Estimates have lanes of their own that say how they were obtained. An estimate whose location the measured file does
not know keeps its distance to the one before it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from ..core.columns import Numbers
from ..core.provenance import Provenance
from ..recording.recording import CLOCK, Metric, OpRecord, Recording
from ..recording.trace import EDGE, NONE, SPAN, SpanKind, Trace
from .column_trace import SpanColumns, column_trace, open_length
from .expected_causes import DIVIDED, NOT_DIVIDED, divide, expected_shares
from .mlir_location import Position, positions

MEASURED = (Provenance.MEASURED, Provenance.SIMULATED)
MODELLED = (Provenance.VENDOR_MODEL, Provenance.ESTIMATED)
_MOST_CANDIDATES = 64  # ops that share one position of the source; more are not told apart by it


def find_pair(parts: Sequence[Recording]) -> tuple[Recording, Recording] | None:
    """The measured and the modelled timeline among files, where there is one of each."""
    lines = [part for part in parts if len(part.trace.spans)]
    measured = [part for part in lines if part.provenance in MEASURED]
    modelled = [part for part in lines if part.provenance in MODELLED]
    return (measured[0], modelled[0]) if len(measured) == len(modelled) == 1 else None


def overlay(measured: Recording, model: Recording) -> Recording:
    """One Recording with both timelines, and the estimate of every op beside its measured time."""
    place = np.array([*_matches(measured.ops, model.ops), NONE], np.int64)  # the last is for spans without an op
    of_span = place[model.trace.spans["op"]]
    shift, unmatched = _shifts(measured.trace, model.trace, of_span)
    known = of_span >= 0
    start, end = model.trace.spans["start_ns"].astype(np.int64), model.trace.spans["end_ns"].astype(np.int64)
    estimate = open_length(of_span[known], start[known], end[known], len(measured.ops)).tolist()
    matched = set(of_span[known].tolist())
    divided = divide(measured.trace, expected_shares(model.trace, of_span, len(measured.ops)))
    ops = [replace(op, estimated_ns=estimate[n]) if n in matched else op for n, op in enumerate(measured.ops)]
    ops += [_estimated_only(op) for op, at in zip(model.ops, place[:-1].tolist(), strict=True) if at < 0]
    return replace(
        measured,
        maker=f"{measured.maker} + {model.maker}",
        source=f"{measured.source} + {model.source}",
        tool=" + ".join(dict.fromkeys((measured.tool, model.tool))),
        trace=_both(divided, model.trace, shift, model.provenance),
        ops=tuple(ops),
        metrics=tuple(_metrics(measured, model)),
        checks=(*measured.checks, *model.checks),
        notes=(
            *(DIVIDED if note == NOT_DIVIDED and divided is not measured.trace else note for note in measured.notes),
            *model.notes,
            *_notes(measured, model, matched, unmatched),
        ),
    )


def _estimated_only(op: OpRecord) -> OpRecord:
    return replace(op, estimated_ns=op.time_ns, time_ns=None, cycles=None, calls=None, resource_cycles=())


def _matches(measured: Sequence[OpRecord], model: Sequence[OpRecord]) -> Iterator[int]:
    """Of every modelled op, the measured one: of the same location, or the one that shares most positions of it."""
    by_place = {_place(op): n for n, op in reversed(list(enumerate(measured)))}
    sizes: list[int] = []
    at: defaultdict[Position, list[int]] = defaultdict(list)
    for number, op in enumerate(measured):
        found = positions(_place(op))
        sizes.append(len(found))
        for position in found:
            if len(at[position]) < _MOST_CANDIDATES:
                at[position].append(number)
    for op in model:
        if _place(op) in by_place:
            yield by_place[_place(op)]
            continue
        hits = Counter(number for position in positions(_place(op)) for number in at.get(position, ()))
        yield min(hits, key=lambda n: (-hits[n], sizes[n], n)) if hits else NONE


def _place(op: OpRecord) -> str:
    return op.location or op.name


def _shifts(measured: Trace, model: Trace, of_span: Numbers) -> tuple[Numbers, int]:
    """How far every modelled span moves, and how many move with the one before them for want of an op."""
    start = model.spans["start_ns"].astype(np.int64)
    work = measured.spans[measured.spans["op"] >= 0]
    count = int(max(work["op"].max(initial=NONE), of_span.max(initial=NONE))) + 1
    begin, first = (np.full(count, np.iinfo(np.int64).max) for _ in range(2))
    np.minimum.at(begin, work["op"], work["start_ns"])
    known = of_span >= 0
    np.minimum.at(first, of_span[known], start[known])
    if not known.any():
        origin = work["start_ns"] if len(work) else measured.spans["start_ns"][measured.spans["kind"] == SpanKind.OP]
        first_start = int(origin.min()) if len(origin) else 0
        return np.full(len(start), first_start - int(start.min())), len(start)
    shift = np.zeros(len(start), np.int64)
    shift[known] = (begin - first)[of_span[known]]
    order = np.lexsort((~known, start))
    last = np.maximum.accumulate(np.where(known[order], np.arange(len(order)), NONE))
    last = np.where(last < 0, np.argmax(known[order]), last)
    shift[order] = np.where(known[order], shift[order], shift[order][last])
    return np.maximum(shift, -start), int((~known).sum())


def _both(measured: Trace, model: Trace, shift: Numbers, provenance: Provenance) -> Trace:
    """One trace with the lanes of both, those of the model marked by how its times were obtained."""
    spans = model.spans
    columns = SpanColumns(
        spans["lane"].astype(np.int64),
        spans["name"].astype(np.int64),
        spans["start_ns"] + shift,
        spans["end_ns"] + shift,
        kind=spans["kind"].astype(np.int64),
        cycles=spans["pcycles"],
        does=spans["does"].astype(np.int64),
    )
    lanes = [replace(lane, name=f"{lane.name} ({provenance})", provenance=provenance) for lane in model.lanes]
    moved = column_trace(columns, lanes, model.names, provenance=measured.provenance)
    rows = np.concatenate((measured.spans, moved.spans)).astype(SPAN)
    added = rows[len(measured.spans) :]
    added["lane"] += len(measured.lanes)
    added["name"] += len(measured.names)
    added["start_ns"] += int(columns.start_ns.min())
    added["end_ns"] += int(columns.start_ns.min())
    return Trace(
        (*measured.lanes, *moved.lanes),
        (*measured.names, *moved.names),
        rows,
        measured.edges if len(measured.edges) else np.zeros(0, EDGE),
        measured.counters,
        measured.samples,
        measured.provenance,
    )


def _metrics(measured: Recording, model: Recording) -> Iterator[Metric]:
    yield from measured.metrics
    for metric in model.metrics:  # marked, so that an estimate never stands for what was measured
        yield metric if metric.name == CLOCK else replace(metric, name=f"{metric.name} ({model.provenance})")
    whole, estimate = measured.latency_ns, model.latency_ns
    if whole is not None and estimate:
        yield Metric("measured ÷ estimated", whole / estimate, "1")


def _notes(measured: Recording, model: Recording, matched: set[int], unmatched: int) -> Iterator[str]:
    lanes = f"lanes marked ({model.provenance}) are estimates"
    if not matched:
        yield (
            f"{lanes}, laid from the first measured job on: no location of {model.source} is in {measured.source}, so "
            "there is no ratio per op; a log with locations has it, and `opscope annotate` where there is the dump"
        )
        return
    yield f"{lanes}, each laid where the first measured span of its op begins"
    if unmatched:
        yield f"{unmatched} of {len(model.trace.spans)} estimated spans have no measured op: laid behind those before"
    alone = [op.name for n, op in enumerate(measured.ops) if n not in matched]
    if alone:
        yield f"{len(alone)} of {len(measured.ops)} measured ops have no estimate, first {alone[0]}"
