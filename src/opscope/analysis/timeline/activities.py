"""The work of one inference of a Run: every stretch in which a lane was at work or bytes were in flight, in columns.

Waits are no work: what a lane waited for is found from dependencies. Nested calls of a thread become the innermost
call at every moment, so that nothing of a lane overlaps.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median_low

import numpy as np
import numpy.typing as npt

from ...core.columns import Flags, Numbers, distinct, rising
from ...core.meaning import LaneRole
from ...recording.run import Run
from ...recording.trace import NONE, SpanKind, Trace, nested_lanes
from ..causes import WAIT, causes_of
from .intervals import ranked

NO_LANE = NONE  # of transfers in flight: a lane has issued them and goes on, they keep nobody's order
_WORK = np.isin(np.arange(256), (SpanKind.OP, SpanKind.TRANSFER, SpanKind.HOST))  # kind → is work
_WAITS = np.isin(np.arange(256), (SpanKind.WAIT, SpanKind.BARRIER))


@dataclass(frozen=True, slots=True)
class Activities:
    """Columns, in order of their start."""

    run: Run
    inference: int  # that it is about; NONE: the trace does not tell them apart
    start_ns: int  # of the window; every activity lies in it
    end_ns: int
    row: Numbers  # of the spans table
    lane: Numbers  # position in Trace.lanes of the lane whose order it keeps; NO_LANE: of none
    own_lane: Numbers  # the lane that it is drawn in
    start: Numbers
    end: Numbers
    op: Numbers
    command: Numbers
    cause: Numbers  # of causes.CAUSES
    waits: Numbers  # rows of the spans table: waits of the same inference
    staged: bool  # the inference is marked: what the host did are its stages, one after the other

    @property
    def wall_ns(self) -> int:
        return self.end_ns - self.start_ns

    @property
    def ns(self) -> Numbers:
        return self.end - self.start

    def __len__(self) -> int:
        return len(self.row)

    def name(self, position: int) -> str:
        """The op, or where it belongs to none the name of the span."""
        op = int(self.op[position])
        return self.run.ops[op].name if op != NONE else self.run.trace.names[self.span(position)["name"]]

    def span(self, position: int) -> np.void:
        found: np.void = self.run.trace.spans[int(self.row[position])]
        return found


def activities_of(run: Run) -> Activities:
    """Of the inference that the summary describes."""
    spans = run.trace.spans
    inference = typical_inference(run)
    chosen = np.flatnonzero(spans["inference"] == inference) if inference != NONE else np.arange(len(spans))
    own = run.trace.own_lanes
    chosen = chosen if own.all() else chosen[own[spans["lane"][chosen]]]
    kind = spans["kind"][chosen]
    rows, waits = (chosen[wanted[kind]] for wanted in (_WORK, _WAITS))
    marks = execution_marks(run.trace, inference)
    parts = _in_order(run, rows[~_spans_whole_device(spans, rows, marks)])
    window = _window(run, marks if len(marks) else waits, parts)
    return _sorted(run, inference, window, parts, waits=waits, staged=len(marks) > 0)


def execution_marks(trace: Trace, inference: int = NONE) -> Numbers:
    """Rows that say when an inference started and ended on a core; NONE: any inference."""
    spans = trace.spans
    of_core = np.array([lane.role is LaneRole.EXECUTION and lane.core != NONE for lane in trace.lanes] or [False])
    marks = np.flatnonzero(spans["kind"] == SpanKind.PHASE)
    marks = marks[of_core[spans["lane"][marks]]]
    return marks if inference == NONE else np.asarray(marks[spans["inference"][marks] == inference], np.int64)


def _spans_whole_device(spans: npt.NDArray[np.void], rows: Numbers, marks: Numbers) -> Flags:
    """Stages of the host that are nothing but the time of the device as the host sees it."""
    host = spans["kind"][rows] == SpanKind.HOST
    if not len(marks) or not host.any():
        return np.zeros(len(rows), np.bool_)
    first, last = spans["start_ns"][marks].min(), spans["end_ns"][marks].max()
    return np.asarray(host & (spans["start_ns"][rows] <= first) & (spans["end_ns"][rows] >= last), np.bool_)


def typical_inference(run: Run) -> int:
    """The one of median latency, as in the summary; NONE where spans are not told apart."""
    inferences, samples = run.info.inferences, run.summary.samples_ns
    if len(inferences) <= 1:
        return inferences[0] if inferences else NONE
    if len(samples) == len(inferences) and run.summary.latency.value_ns in samples:
        return inferences[samples.index(run.summary.latency.known_ns)]
    return _of_median_length(run)


def _of_median_length(run: Run) -> int:
    """Spans of an inference mostly lie together in the table: stretches of it are looked at, not spans."""
    spans = run.trace.spans
    begins = np.flatnonzero(np.diff(spans["inference"], prepend=NONE - 1))
    numbers, place = np.unique(spans["inference"][begins], return_inverse=True)
    first, last = np.full(len(numbers), np.iinfo(np.int64).max), np.full(len(numbers), np.iinfo(np.int64).min)
    np.minimum.at(first, place, np.minimum.reduceat(spans["start_ns"], begins))
    np.maximum.at(last, place, np.maximum.reduceat(spans["end_ns"], begins))
    known = np.isin(numbers, run.info.inferences)
    lengths = zip((last - first)[known].tolist(), numbers[known].tolist(), strict=True)
    return int(median_low(lengths)[1]) if known.any() else NONE


@dataclass(frozen=True, slots=True)
class _Parts:
    row: Numbers
    lane: Numbers
    start: Numbers
    end: Numbers


def _in_order(run: Run, rows: Numbers) -> _Parts:
    """Each row with the lane whose order it keeps; nested calls are cut into what was innermost."""
    spans = run.trace.spans.take(rows)
    lane = spans["lane"].astype(np.int64)
    lane[_issued_transfers(spans)] = NO_LANE
    plain = _Parts(rows, lane, spans["start_ns"].copy(), spans["end_ns"].copy())
    base = _base_lanes(run, lane)
    if base is None:
        return plain
    flat = [
        _innermost(plain, np.flatnonzero((lane != NO_LANE) & (base[lane] == number)), number)
        for number in distinct(base[lane[lane != NO_LANE]]).tolist()
    ]
    flights = np.flatnonzero(lane == NO_LANE)
    flat.append(_Parts(rows[flights], lane[flights], plain.start[flights], plain.end[flights]))
    return _Parts(*(np.concatenate([getattr(part, key) for part in flat]) for key in ("row", "lane", "start", "end")))


def _issued_transfers(spans: npt.NDArray[np.void]) -> Flags:
    """Transfers in flight that another span of the same command has issued."""
    moves = spans["kind"] == SpanKind.TRANSFER
    known = moves & (spans["command"] != NONE)
    if not known.any():
        return np.asarray(known, np.bool_)
    issued = distinct(spans["command"][~moves])
    return np.asarray(known & np.isin(spans["command"], issued), np.bool_)


def _base_lanes(run: Run, lane: Numbers) -> Numbers | None:
    """Lane → the lane whose deeper calls it holds: `thread` for `thread 2`; None: no lane has deeper ones."""
    used = set(distinct(lane[lane != NO_LANE]).tolist())
    lanes = run.trace.lanes
    base = np.arange(len(lanes))
    for number, owner in nested_lanes(lanes).items():
        if {number, owner} <= used:
            base[number] = owner
    return None if bool((base == np.arange(len(lanes))).all()) else base


def _innermost(parts: _Parts, chosen: Numbers, lane: int) -> _Parts:
    """The deepest call at every moment. Lanes come from outer to inner ones.

    Two levels, with times of calls; `b` is called by `a`, and `c` starts when `a` ends:

        level 0   a: 0–10        c: 10–12        moments          0   3   5   10   12
        level 1       b: 3–5                     owner of each      a   b   a    c
                                                 what is returned a: 0–3, b: 3–5, a: 5–10, c: 10–12

    Between two neighbouring moments nothing starts or ends. Every call takes all of these steps that it covers; deeper
    levels come later and overwrite what an outer one has taken. Steps of one owner in a row become one part.
    """
    start, end, level = parts.start[chosen], parts.end[chosen], parts.lane[chosen]
    moments, (first, last) = ranked(start, end)
    owner = np.full(max(len(moments) - 1, 0), NONE)
    for number in distinct(level).tolist():
        own = np.flatnonzero((level == number) & (last > first))
        length = last[own] - first[own]  # steps that each call covers, which lie in a row from its `first` on
        owner[np.repeat(first[own] - (np.cumsum(length) - length), length) + np.arange(length.sum())] = np.repeat(
            own, length
        )
    change = np.flatnonzero(np.diff(owner, prepend=NONE - 1))
    until = np.append(change[1:], len(owner))
    kept = owner[change] != NONE
    at, stop = change[kept], until[kept]
    empty = np.flatnonzero(start == end)  # marks nothing, but others may depend on it
    row = np.concatenate((chosen[owner[at]], chosen[empty]))
    return _Parts(
        parts.row[row],
        np.full(len(row), lane),
        np.concatenate((moments[at], start[empty])),
        np.concatenate((moments[stop], end[empty])),
    )


def _window(run: Run, others: Numbers, parts: _Parts) -> tuple[int, int]:
    """From the first to the last that happened; marks of the inference count, and waits where there are none."""
    spans = run.trace.spans.take(others)
    starts, ends = np.concatenate((parts.start, spans["start_ns"])), np.concatenate((parts.end, spans["end_ns"]))
    return (int(starts.min()), int(ends.max())) if len(starts) else (0, 0)


def _sorted(
    run: Run, inference: int, window: tuple[int, int], parts: _Parts, *, waits: Numbers, staged: bool
) -> Activities:
    """The parts as activities in the order of their start, on which the search for dependencies relies.

    Of two that start together the one without length comes first, as a mark that another one follows. Without stages,
    a call that waits for the device begins where the device's last work in it has ended.
    """
    spans = run.trace.spans.take(parts.row)
    cause = causes_of(spans, run.routes)
    start = parts.start if staged else _after_device(spans, cause, parts.start, parts.end)
    order = rising((start - window[0]) * 2 + (parts.end > start))  # what takes no time comes before what follows it
    lane = parts.lane[order]
    own_lane = np.where(lane == NO_LANE, spans["lane"][order], lane)
    op, command = spans["op"][order].astype(np.int64), spans["command"][order]
    return Activities(
        run,
        inference,
        *window,
        parts.row[order],
        lane,
        own_lane,
        start[order],
        parts.end[order],
        op,
        command,
        cause[order],
        waits,
        staged,
    )


def _after_device(spans: npt.NDArray[np.void], cause: Numbers, start: Numbers, end: Numbers) -> Numbers:
    """A host call that waits for the device counts from when the last work of the device inside it was done."""
    calls = np.flatnonzero((spans["kind"] == SpanKind.HOST) & (cause == WAIT))
    work = np.flatnonzero(spans["kind"] != SpanKind.HOST)
    if not len(calls) or not len(work):
        return start
    done = np.sort(end[work])
    last = np.searchsorted(done, end[calls], "right") - 1
    start = start.copy()
    start[calls] = np.maximum(start[calls], np.where(last >= 0, done[last], 0))
    return start
