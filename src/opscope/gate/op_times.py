"""Spans → time of every op in every inference: its part of the clock, and how long it was at work."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..recording.trace import NONE, OpSpans, SpanKind

Numbers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_MOST_CELLS = 1 << 24  # of a table inference × op; above it, only cells that have a time are kept


@dataclass(frozen=True, slots=True)
class OpTimes:
    """One row for every inference and op that was at work in it, sorted by both."""

    inferences: Numbers  # their numbers, sorted
    inference: Numbers  # position in `inferences`
    op: Numbers  # number of ops: of no op
    ns: Floats

    def of(self, inference: int, ops: int) -> Floats:
        """Times of one inference, by op; the last is of no op."""
        chosen = self.inference == inference
        return np.bincount(self.op[chosen], self.ns[chosen], minlength=ops + 1).astype(np.float64)

    def samples(self) -> dict[int, Floats]:
        """Times of every op, one per inference that it was at work in, in the order of inferences."""
        order = np.argsort(self.op, kind="stable")
        ops, first = np.unique(self.op[order], return_index=True)
        return dict(zip(ops.tolist(), np.split(self.ns[order], first[1:]), strict=True)) if len(ops) else {}


@dataclass(frozen=True, slots=True)
class Work:
    """Spans at work, with inferences behind one another on one axis so that they do not overlap."""

    ops: int
    inferences: Numbers
    inference: Numbers
    op: Numbers  # `ops`: of no op
    start: Numbers
    end: Numbers
    in_flight: npt.NDArray[np.bool_]  # bytes on their way, not a lane at work

    @classmethod
    def of(cls, spans: OpSpans, ops: int) -> Work:
        kind = np.asarray(spans.kind)
        at = np.flatnonzero((kind == SpanKind.OP) | (kind == SpanKind.TRANSFER))
        op, inference, start, end = (np.asarray(column)[at].astype(np.int64) for column in spans[1:])
        numbers, place, start, end = _apart(inference, start, end)
        return cls(ops, numbers, place, np.where(op == NONE, ops, op), start, end, kind[at] == SpanKind.TRANSFER)


def _apart(inference: Numbers, start: Numbers, end: Numbers) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    """Numbers of the inferences, the place of each span among them, and times with one inference after the other."""
    if not len(inference) or int(inference.min()) == int(inference.max()):
        return inference[:1], np.zeros(len(inference), np.int64), start, end
    numbers, place = np.unique(inference, return_inverse=True)
    order = np.argsort(place, kind="stable")
    first = np.searchsorted(place[order], np.arange(len(numbers)))
    begin = np.minimum.reduceat(start[order], first)
    length = np.maximum.reduceat(end[order], first) - begin
    shift = (np.concatenate(([0], np.cumsum(length)[:-1])) - begin)[place]
    return numbers, place.reshape(-1), start + shift, end + shift


def own_times(work: Work) -> OpTimes:
    """Parts of the clock: every instant is divided equally among the commands at work in it.

    Transfers count only where no lane is at work: what is hidden behind computing costs nothing. The times of all
    ops of an inference add up to the time in which anything was at work.
    """
    return _added(work.inferences, work.inference, work.op, _shares(work), work.ops)


def _shares(work: Work) -> Floats:
    """Part of the clock of every span: the integral, from its start to its end, of one over the spans at work."""
    count = len(work.start)
    times = np.concatenate((work.start, work.end))
    order = np.argsort(times, kind="stable")  # quicker than the default on what is mostly sorted
    step = np.diff(times[order]).astype(np.float64)
    turn = np.where(order < count, np.int32(1), np.int32(-1))
    flying = np.concatenate((work.in_flight, work.in_flight))[order]
    at_work = np.cumsum(np.where(flying, 0, turn))[:-1]
    shares = _integral(np.where(at_work > 0, step, 0.0), at_work, order)
    if work.in_flight.any():
        in_flight = np.cumsum(np.where(flying, turn, 0))[:-1]
        moved = _integral(np.where((at_work == 0) & (in_flight > 0), step, 0.0), in_flight, order)
        shares = np.where(work.in_flight, moved, shares)
    return shares


def _integral(step: Floats, active: Numbers, order: npt.NDArray[np.intp]) -> Floats:
    """Of step ÷ active from the start of every span to its end; `order` sorts all starts and, behind them, all ends."""
    value = np.zeros(len(order))
    np.cumsum(step / np.maximum(active, 1), out=value[1:])
    at = np.empty(len(order))
    at[order] = value
    count = len(order) // 2
    return at[count:] - at[:count]


def wall_times(work: Work) -> OpTimes:
    """Time in which at least one command of an op is at work or in flight, by inference."""
    key = work.inference * (work.ops + 1) + work.op
    order = np.lexsort((work.start, key))
    key, start, end = key[order], work.start[order], work.end[order]
    latest = _latest_before(key, end)
    new = np.maximum(end - np.maximum(start, latest), 0)
    return _added(work.inferences, work.inference[order], work.op[order], new.astype(np.float64), work.ops)


def _latest_before(key: Numbers, end: Numbers) -> Numbers:
    """The latest end among earlier rows with the same key; `key` is sorted."""
    if not len(key):
        return end
    span = int(end.max()) - int(end.min()) + 1
    rank = np.cumsum(np.concatenate(([0], np.diff(key) > 0)))
    lifted = end - int(end.min()) + rank * span  # ends of a later key are later than all of an earlier one
    latest = np.maximum.accumulate(lifted)
    before = np.concatenate((latest[:1], latest[:-1])) - rank * span + int(end.min())
    is_first = np.concatenate(([True], np.diff(key) > 0))
    return np.where(is_first, np.iinfo(np.int64).min, before)


def _added(inferences: Numbers, inference: Numbers, op: Numbers, ns: Floats, ops: int) -> OpTimes:
    """Times of the same inference and op added up."""
    key = inference * (ops + 1) + op
    cells = len(inferences) * (ops + 1)
    if cells <= _MOST_CELLS:
        present = np.flatnonzero(np.bincount(key, minlength=cells))
        total = np.bincount(key, ns, minlength=cells)[present]
    else:
        present, place = np.unique(key, return_inverse=True)
        total = np.bincount(place.reshape(-1), ns)
    return OpTimes(inferences, present // (ops + 1), present % (ops + 1), total.astype(np.float64))
