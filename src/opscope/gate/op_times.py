"""Time of every op in every inference: its share of the clock (own time), and its wall time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..core.columns import Floats, Numbers
from ..recording.trace import NONE, OpSpans, SpanKind

_MOST_CELLS = 1 << 24  # size limit of a dense inference × op table; larger ones are kept sparse


@dataclass(frozen=True, slots=True)
class OpTimes:
    """One row per inference and op that worked in it, sorted by both."""

    inferences: Numbers  # their numbers, sorted
    inference: Numbers  # position in `inferences`
    op: Numbers  # equal to the number of ops for work of no op
    ns: Floats

    def of(self, inference: int, ops: int) -> Floats:
        """Return the times of one inference by op; the last entry is work of no op."""
        chosen = self.inference == inference
        return np.bincount(self.op[chosen], self.ns[chosen], minlength=ops + 1).astype(np.float64)

    def samples(self) -> dict[int, Floats]:
        """Return the times of every op, one per inference it worked in, in the order of inferences."""
        order = np.argsort(self.op, kind="stable")
        ops, first = np.unique(self.op[order], return_index=True)
        return dict(zip(ops.tolist(), np.split(self.ns[order], first[1:]), strict=True)) if len(ops) else {}


@dataclass(frozen=True, slots=True)
class WorkSpans:
    """Spans of work on one time axis, where inferences follow each other without overlap."""

    ops: int
    inferences: Numbers
    inference: Numbers
    op: Numbers  # equal to `ops` for work of no op
    start: Numbers
    end: Numbers
    in_flight: npt.NDArray[np.bool_]  # a transfer, not a lane at work

    @classmethod
    def of(cls, spans: OpSpans, ops: int) -> WorkSpans:
        """Select op and transfer spans and lay the inferences out one after another."""
        kind = np.asarray(spans.kind)
        at = np.flatnonzero((kind == SpanKind.OP) | (kind == SpanKind.TRANSFER))
        op, inference, start, end = (np.asarray(column)[at].astype(np.int64) for column in spans[1:])
        numbers, place, start, end = _separate_inferences(inference, start, end)
        return cls(ops, numbers, place, np.where(op == NONE, ops, op), start, end, kind[at] == SpanKind.TRANSFER)


def _separate_inferences(inference: Numbers, start: Numbers, end: Numbers) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    """Return the inference numbers, each span's position among them, and shifted times.

    Pipelined inferences overlap in time; shifting each one behind the previous keeps their shares separate. Inferences
    at [0, 10] and [5, 15] become [0, 10] and [10, 20].
    """
    if not len(inference) or int(inference.min()) == int(inference.max()):
        return inference[:1], np.zeros(len(inference), np.int64), start, end
    numbers, position = np.unique(inference, return_inverse=True)
    order = np.argsort(position, kind="stable")
    first = np.searchsorted(position[order], np.arange(len(numbers)))
    begin = np.minimum.reduceat(start[order], first)
    length = np.maximum.reduceat(end[order], first) - begin
    shift = (np.concatenate(([0], np.cumsum(length)[:-1])) - begin)[position]
    return numbers, position.reshape(-1), start + shift, end + shift


def own_times(work: WorkSpans) -> OpTimes:
    """Return each op's share of the clock: every instant is divided equally among the commands at work in it.

    Transfers count only while no lane works: a transfer hidden behind computation costs nothing. The own times of all
    ops of an inference add up to the time during which anything worked.

    Example: A works 0–10 and B 5–10. A gets 5 + 2.5, B gets 2.5.
    """
    return _sum_by_op(work.inferences, work.inference, work.op, _shares(work), work.ops)


def _shares(work: WorkSpans) -> Floats:
    """Return the own time of every span: the integral of 1 ÷ (spans at work) from its start to its end."""
    count = len(work.start)
    # Sweep over all starts and ends in time order; the running sum of +1 and -1 is the number of active spans.
    times = np.concatenate((work.start, work.end))
    order = np.argsort(times, kind="stable")  # a stable sort is faster on nearly sorted times
    step = np.diff(times[order]).astype(np.float64)
    delta = np.where(order < count, np.int32(1), np.int32(-1))
    is_transfer = np.concatenate((work.in_flight, work.in_flight))[order]
    at_work = np.cumsum(np.where(is_transfer, 0, delta))[:-1]
    shares = _integral(np.where(at_work > 0, step, 0.0), at_work, order)
    if work.in_flight.any():
        in_flight = np.cumsum(np.where(is_transfer, delta, 0))[:-1]
        moved = _integral(np.where((at_work == 0) & (in_flight > 0), step, 0.0), in_flight, order)
        shares = np.where(work.in_flight, moved, shares)
    return shares


def _integral(step: Floats, active: Numbers, order: npt.NDArray[np.intp]) -> Floats:
    """Return the integral of step ÷ active over every span; `order` sorts all starts followed by all ends."""
    # The running integral at each event, scattered back to event order: end minus start is the span's own part.
    value = np.zeros(len(order))
    np.cumsum(step / np.maximum(active, 1), out=value[1:])
    at = np.empty(len(order))
    at[order] = value
    count = len(order) // 2
    return at[count:] - at[:count]


def wall_times(work: WorkSpans) -> OpTimes:
    """Return the time during which at least one command of an op is at work or in flight, by inference."""
    key = work.inference * (work.ops + 1) + work.op
    order = np.lexsort((work.start, key))
    key, start, end = key[order], work.start[order], work.end[order]
    # Per op in order of start, each span adds only what reaches past the latest end so far: the length of the union.
    latest = _latest_before(key, end)
    added = np.maximum(end - np.maximum(start, latest), 0)
    return _sum_by_op(work.inferences, work.inference[order], work.op[order], added.astype(np.float64), work.ops)


def _latest_before(key: Numbers, end: Numbers) -> Numbers:
    """Return the latest end among earlier rows with the same key; `key` is sorted."""
    if not len(key):
        return end
    # A running maximum per key without a loop: lift the ends of each key above those of the key before it, take one
    # running maximum over everything, and lower them again.
    span = int(end.max()) - int(end.min()) + 1
    rank = np.cumsum(np.concatenate(([0], np.diff(key) > 0)))
    lifted = end - int(end.min()) + rank * span  # every end of a key is above all ends of earlier keys
    latest = np.maximum.accumulate(lifted)
    before = np.concatenate((latest[:1], latest[:-1])) - rank * span + int(end.min())
    is_first = np.concatenate(([True], np.diff(key) > 0))
    return np.where(is_first, np.iinfo(np.int64).min, before)


def _sum_by_op(inferences: Numbers, inference: Numbers, op: Numbers, ns: Floats, ops: int) -> OpTimes:
    """Add up the times of each inference and op."""
    key = inference * (ops + 1) + op
    cells = len(inferences) * (ops + 1)
    if cells <= _MOST_CELLS:
        present = np.flatnonzero(np.bincount(key, minlength=cells))
        total = np.bincount(key, ns, minlength=cells)[present]
    else:
        present, position = np.unique(key, return_inverse=True)
        total = np.bincount(position.reshape(-1), ns)
    return OpTimes(inferences, present // (ops + 1), present % (ops + 1), total.astype(np.float64))
