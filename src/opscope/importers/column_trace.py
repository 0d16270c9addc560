"""Columns of spans that a table held → Trace, and their totals per op."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import gcd

import numpy as np

from ..core.columns import Numbers
from ..core.meaning import Does
from ..core.provenance import Provenance
from ..recording.recording import OpRecord
from ..recording.trace import NONE, Lane, SpanKind, Trace
from .trace_build import Marks, build_trace
from .trace_events import CounterSamples, Spans

MOST_OPS = 200_000  # rows per op beyond this are no help to a reader; the timeline keeps them all


@dataclass(frozen=True, slots=True)
class SpanColumns:
    """Spans in file order. `name` is a position in a list of names, `op` one in a list of ops or NONE."""

    lane: Numbers
    name: Numbers
    start_ns: Numbers
    end_ns: Numbers
    op: Numbers | int = NONE
    kind: Numbers | int = int(SpanKind.OP)
    inference: Numbers | int = NONE
    cycles: Numbers | int = NONE
    does: Numbers | int = int(Does.UNKNOWN)


def column_trace(columns: SpanColumns, lanes: Sequence[Lane], names: Sequence[str], *, provenance: Provenance) -> Trace:
    """A Trace that starts with the first span; spans of a lane that overlap get lanes of their own."""
    spans = Spans([], list(names), columns.lane, columns.name, columns.start_ns, columns.end_ns, columns.lane)
    empty = np.zeros(0, np.int64)
    marks = Marks(columns.kind, columns.op, columns.inference, cycles=columns.cycles, does=columns.does)
    return build_trace(
        spans, CounterSamples([], empty, empty, empty.astype(np.float64)), lanes, (), marks=marks, provenance=provenance
    )


@dataclass(frozen=True, slots=True)
class OpTotals:
    """Per op: how often, how long in all, least, most."""

    calls: Numbers
    total: Numbers
    least: Numbers
    most: Numbers


def op_totals(op: Numbers, length: Numbers, count: int) -> OpTotals:
    """Totals over the spans that belong to an op."""
    kept = op >= 0
    owner, value = op[kept], length[kept]
    calls = np.bincount(owner, minlength=count)
    total = np.rint(np.bincount(owner, value, minlength=count)).astype(np.int64)
    least = np.full(count, np.iinfo(np.int64).max)
    most = np.zeros(count, np.int64)
    np.minimum.at(least, owner, value)
    np.maximum.at(most, owner, value)
    return OpTotals(calls, total, least, most)


def timed_ops(ops: Sequence[OpRecord], totals: OpTotals, *, inferences: int | None) -> tuple[OpRecord, ...]:
    """Ops with their times, per inference where these are told apart."""
    rounds = inferences or 1
    columns = (totals.calls.tolist(), totals.total.tolist(), totals.least.tolist(), totals.most.tolist())
    return tuple(
        replace(op, calls=calls / rounds, time_ns=round(total / rounds), low_ns=least, high_ns=most) if calls else op
        for op, calls, total, least, most in zip(ops, *columns, strict=True)
    )


def open_length(key: Numbers, start: Numbers, end: Numbers, count: int) -> Numbers:
    """Per key, how long at least one of its spans is open."""
    order = np.lexsort((start, key))
    owner, first, last = key[order], start[order], end[order]
    if not len(owner):
        return np.zeros(count, np.int64)
    base = owner * (int(last.max()) - int(first.min()) + 1)  # keys one behind the other: one running maximum serves all
    reach = np.maximum.accumulate(last + base)
    before = np.concatenate(([np.iinfo(np.int64).min], reach[:-1]))
    added = np.maximum(last + base, before) - np.maximum(first + base, before)
    return np.rint(np.bincount(owner, np.maximum(added, 0), minlength=count)).astype(np.int64)


@dataclass(frozen=True, slots=True)
class Clock:
    """Turns cycles into nanoseconds without loss where the ratio is a small one."""

    hz: int
    source: str = field(default="", compare=False)

    def ns(self, cycles: Numbers) -> Numbers:
        common = gcd(self.hz, 10**9)
        above, below = 10**9 // common, self.hz // common
        result: Numbers = (cycles // below) * above + (cycles % below * above + below // 2) // below
        return result
