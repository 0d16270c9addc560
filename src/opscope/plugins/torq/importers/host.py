"""Host logs of the Torq runtime → Recording: what the host did, and the jobs of the device between start and wait."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ....core.columns import Numbers, places, rising
from ....core.meaning import Does
from ....importers.column_trace import MOST_OPS, SpanColumns, column_trace, op_totals, timed_ops
from ....importers.expected_causes import NOT_DIVIDED
from ....recording.recording import LATENCY, Metric, OpRecord, Placed, Recording
from ....recording.trace import NONE, Lane, SpanKind
from ..annotate.annotated import ActionTimes
from ..manifest import HOST_LOGS
from .event_pairs import ranked
from .host_log import PARTS, read_actions
from .runtime_csv import NOT_TOLD, PROVENANCE, TOOL

_JOBS = "NSS Jobs"
NSS_START, NSS_WAIT = "NSS_START", "NSS_WAIT"
_AS_OPS = (NSS_START, "HOST_COPY", "HOST_START", "HOST_PROGRAM")


class TorqHost:
    """Begin and end events."""

    def __init__(self, form: str) -> None:
        self.form = form
        self.name = HOST_LOGS[form].name

    def read(self, path: Path) -> Recording:
        """Actions as spans, and jobs on a lane of their own, from start to the end of the wait."""
        log = read_actions(path, self.form)
        start, wait = jobs_of(log)
        lanes, lane = _lanes(log)
        op, ops, more = _ops(log)
        rounds = _rounds(log)
        columns = SpanColumns(
            lane=np.concatenate((lane, np.full(len(start), len(lanes)))),
            name=np.concatenate((log.type, np.full(len(start), len(log.types)))),
            start_ns=np.concatenate((log.start_ns, log.start_ns[start])),
            end_ns=np.concatenate((log.end_ns, log.end_ns[wait])),
            op=np.concatenate((np.where(log.type == _code(log, NSS_START), NONE, op), op[start])),
            kind=np.concatenate((np.full(len(lane), SpanKind.HOST), np.full(len(start), SpanKind.OP))),
            inference=np.concatenate((np.full(len(lane), NONE), rounds.of(log.start_ns[start]))),
            does=np.concatenate((np.full(len(lane), Does.UNKNOWN), np.full(len(start), Does.MIXED))),
        )
        all_lanes = (*lanes, Lane(0, NONE, _JOBS))
        trace = column_trace(columns, all_lanes, (*log.types, "job"), provenance=PROVENANCE)
        totals = op_totals(np.asarray(columns.op), columns.end_ns - columns.start_ns, len(ops))
        return Recording(
            maker=self.name,
            tool=TOOL,
            provenance=PROVENANCE,
            trace=trace,
            ops=timed_ops(ops, totals, inferences=rounds.count),
            metrics=tuple(_metrics(log, start, wait, rounds)),
            notes=(*log.notes, *more, *rounds.notes(), NOT_TOLD, *([NOT_DIVIDED] if len(start) else [])),
            inferences=rounds.count,
        )


def _code(log: ActionTimes, kind: str) -> int:
    return log.types.index(kind) if kind in log.types else len(log.types)


def jobs_of(log: ActionTimes) -> tuple[Numbers, Numbers]:
    """Rows that start a job and rows that wait for it: of an invocation, the first start with the first wait."""
    start, wait = (np.flatnonzero(log.type == _code(log, kind)) for kind in (NSS_START, NSS_WAIT))
    if not len(start) or not len(wait):
        return start[:0], wait[:0]
    keys = [log.invocation[rows] * len(log.dispatches) + log.dispatch[rows] for rows in (start, wait)]
    if np.array_equal(keys[0], keys[1]) and (np.diff(keys[0]) >= 0).all():  # the usual: each start has its wait
        good = log.end_ns[wait] >= log.start_ns[start]
        return start[good], wait[good]
    dense = places(np.concatenate(keys))[1]
    keys = [dense[: len(start)], dense[len(start) :]]
    ranks = [_rank_within(key) for key in keys]
    width = max(int(rank.max()) for rank in ranks) + 1
    _, of_start, of_wait = np.intersect1d(keys[0] * width + ranks[0], keys[1] * width + ranks[1], return_indices=True)
    first, last = start[of_start], wait[of_wait]
    good = log.end_ns[last] >= log.start_ns[first]
    return first[good], last[good]


def _rank_within(key: Numbers) -> Numbers:
    """Of every row, how many before it have the same key."""
    order = rising(key)
    fresh = np.concatenate(([True], key[order][1:] != key[order][:-1]))
    begin = np.flatnonzero(fresh)
    rank = np.empty(len(key), np.int64)
    rank[order] = np.arange(len(key)) - np.repeat(begin, np.diff(np.append(begin, len(key))))
    return rank


@dataclass(frozen=True, slots=True)
class _Rounds:
    """Inferences, as far as a log tells them: from the begin of the first dispatch of each to the end of the last."""

    begin_ns: Numbers
    end_ns: Numbers
    dispatches: int  # of one inference

    @property
    def count(self) -> int | None:
        return len(self.begin_ns) or None

    def of(self, start_ns: Numbers) -> Numbers:
        """The inference of what starts at these times."""
        return (
            np.searchsorted(self.begin_ns, start_ns, side="right") - 1 if self.count else np.full_like(start_ns, NONE)
        )

    def notes(self) -> Iterator[str]:
        if self.count is not None and self.count > 1:
            each = "the dispatch" if self.dispatches == 1 else f"each of {self.dispatches} dispatches"
            yield f"{self.count} inferences: {each} is taken to run once in every one"


def _rounds(log: ActionTimes) -> _Rounds:
    """Dispatches that follow each other in the same order time and again; none where they do not."""
    rows = np.flatnonzero((log.type == _code(log, "DISPATCH")) & log.ended)
    rows = rows[np.argsort(log.start_ns[rows], kind="stable")]
    period = len(places(log.dispatch[rows])[0])
    none = np.zeros(0, np.int64)
    if not period or len(rows) % period or (log.type == _code(log, "DISPATCH")).sum() != len(rows):
        return _Rounds(none, none, period)
    table = log.dispatch[rows].reshape(-1, period)
    if len(places(table[0])[0]) != period or (table != table[0]).any():
        return _Rounds(none, none, period)
    return _Rounds(log.start_ns[rows[::period]], log.end_ns[rows].reshape(-1, period).max(axis=1), period)


def _lanes(log: ActionTimes) -> tuple[tuple[Lane, ...], Numbers]:
    used = [part for part in dict.fromkeys(part for _, part in PARTS) if part in log.parts]
    place = np.array([used.index(part) for part in log.parts] or [0], np.int64)
    return tuple(Lane(NONE, NONE, name) for name in used), place[log.type]


def _ops(log: ActionTimes) -> tuple[Numbers, tuple[OpRecord, ...], tuple[str, ...]]:
    """Jobs, host programs and copies: by location where the log has it, else by dispatch and action."""
    wanted = np.flatnonzero(np.isin(log.type, [_code(log, kind) for kind in _AS_OPS]))
    by_action = ranked(ranked(log.dispatch[wanted], log.action[wanted]), log.type[wanted])
    location = log.location[wanted]
    by_place = NONE - ranked(np.maximum(location, 0), log.type[wanted])
    keys, place = places(np.where(location >= 0, by_place, by_action))
    op = np.full(len(log.type), NONE)
    if len(keys) > MOST_OPS:
        return op, (), (f"{len(keys)} different actions: no rows per op, only the timeline",)
    op[wanted] = place
    first = np.zeros(len(keys), np.int64)
    first[place[::-1]] = wanted[::-1]
    return op, tuple(_op(log, row) for row in first.tolist()), ()


def _op(log: ActionTimes, row: int) -> OpRecord:
    """What a row is a part of."""
    place, kind = int(log.location[row]), log.types[log.type[row]]
    if place >= 0:
        name = log.locations[place]
    else:
        name = f"{log.dispatches[log.dispatch[row]]} action {log.action[row]}".strip()
    on_device = kind == NSS_START
    return OpRecord(
        name,
        type="job" if on_device else kind,
        placed=Placed.ACCELERATOR if on_device else Placed.CPU,
        engines=("NPU" if on_device else "host",),
        covers=(name,) if place >= 0 else (),
    )


def _metrics(log: ActionTimes, start: Numbers, wait: Numbers, rounds: _Rounds) -> list[Metric]:
    """Latency of a round, wall time, and how long jobs ran."""
    if not len(log.start_ns):
        return []
    result = []
    if rounds.count is not None:
        result = [
            Metric(LATENCY, round(float((rounds.end_ns - rounds.begin_ns).mean())), "ns"),
            Metric("inferences", rounds.count, "1"),
        ]
    result += [Metric("wall", int(log.end_ns.max() - log.start_ns.min()), "ns"), Metric("jobs", len(start), "1")]
    if len(start):
        result.append(Metric("jobs running", int((log.end_ns[wait] - log.start_ns[start]).sum()), "ns"))
    dispatches = np.flatnonzero((log.type == _code(log, "DISPATCH")) & log.ended)
    if len(dispatches):
        took = log.end_ns[dispatches] - log.start_ns[dispatches]
        result += [Metric("dispatches", len(dispatches), "1"), Metric("dispatch time", int(took.sum()), "ns")]
    return result


H1, H2, H3 = (TorqHost(form) for form in HOST_LOGS)
