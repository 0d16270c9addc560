"""Measured jobs divided by what a modelled timeline expects them to be bound by.

A log of jobs says how long each took, and not what it did. The modelled timeline of the same program does: a job is
there the time from the end of the one before to its own, in which transfers and engines of any op are at work.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..core.columns import Numbers
from ..core.meaning import Does
from ..recording.trace import NONE, SpanKind, Trace

Shares = np.ndarray[tuple[int, int], np.dtype[np.float64]]
NOT_DIVIDED = (
    "a log of jobs does not tell what a job is bound by, transfers or engines; the compiler's timeline beside it does: "
    "`opscope import trace.csv runtime.csv`"
)
DIVIDED = (
    "what a job is bound by is the estimate's: the log tells how long it took, and its time is divided as the estimate "
    "divides its own"
)
PARTS = (Does.MOVE, Does.COMPUTE, Does.LAYOUT, Does.MIXED)


def divide(measured: Trace, shares: Shares) -> Trace:
    """The measured trace with every span of several things cut in parts; its time stays what it is.

    `shares` are those of every measured op.
    """
    spans = measured.spans
    known = (spans["does"] == Does.MIXED) & (spans["op"] >= 0)
    known[known] = shares[spans["op"][known]].sum(axis=1) > 0
    if not known.any() or len(measured.edges):
        return measured
    share = np.zeros((len(spans), len(PARTS)))
    share[~known, PARTS.index(Does.MIXED)] = 1.0  # whole, as it is
    share[known] = shares[spans["op"][known]]
    length = (spans["end_ns"] - spans["start_ns"])[:, None]
    until = np.rint(np.cumsum(share, axis=1) * length).astype(np.int64)
    begin = np.hstack((np.zeros((len(spans), 1), np.int64), until[:, :-1]))
    kept = (share > 0) & ((until > begin) | ~known[:, None])
    kept[known & ~kept.any(axis=1), -1] = True  # of no length: one part of it
    row, part = np.nonzero(kept)
    cut = spans[row]
    cut["start_ns"] += begin[row, part]
    cut["end_ns"] = spans["start_ns"][row] + until[row, part]
    inside = known[row]
    cut["does"][inside] = np.array(PARTS)[part[inside]]
    return replace(measured, spans=cut)


def expected_shares(model: Trace, op: Numbers, ops: int) -> Shares:
    """Of every op the shares of its time in the order of PARTS; zeros for an op without modelled spans.

    `op` is the measured op of every modelled span, or NONE; `ops` is how many measured ops there are.
    """
    start, end = (model.spans[name].astype(np.int64) for name in ("start_ns", "end_ns"))
    found = np.zeros((ops, len(PARTS)))
    last = np.full(ops, NONE, np.int64)
    np.maximum.at(last, op[op >= 0], end[op >= 0])
    order = [n for n in np.argsort(last, kind="stable").tolist() if last[n] >= 0]
    if not order:
        return found
    does = model.spans["does"]
    moves = (does == Does.MOVE) | (model.spans["kind"] == SpanKind.TRANSFER)
    chosen = {
        Does.MOVE: moves,
        Does.COMPUTE: (does == Does.COMPUTE) & ~moves,
        Does.LAYOUT: (does == Does.LAYOUT) & ~moves,
    }
    cuts = np.unique(np.concatenate((start, end, last[order])))
    busy = {part: _covered(cuts, start[rows], end[rows]) for part, rows in chosen.items()}
    step = np.diff(cuts)
    bounds = np.searchsorted(cuts, [int(start.min()), *(int(last[n]) for n in order)])
    for number, first, behind in zip(order, bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        found[number] = _shares({part: at[first:behind] for part, at in busy.items()}, step[first:behind])
    return found


def _covered(cuts: Numbers, start: Numbers, end: Numbers) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Of every stretch between two cuts, whether one of these spans covers it."""
    depth = np.zeros(len(cuts), np.int64)
    np.add.at(depth, np.searchsorted(cuts, start), 1)
    np.add.at(depth, np.searchsorted(cuts, end), -1)
    return np.cumsum(depth)[:-1] > 0


def _shares(busy: dict[Does, np.ndarray[tuple[int], np.dtype[np.bool_]]], step: Numbers) -> list[float]:
    """Shares of a stretch of time. Where several are at work, it is the one that is longest at work in all of it.

    Transfers of 100 cycles beside engines at work for 30 of them: whatever the engines do, it takes 100.
    """
    whole = int(step.sum())
    if not whole:
        return [0.0] * len(PARTS)
    left = np.ones(len(step), bool)
    times: dict[Does, int] = {}
    for part in sorted(busy, key=lambda part: -int(step[busy[part]].sum())):
        times[part] = int(step[busy[part] & left].sum())
        left &= ~busy[part]
    times[Does.MIXED] = int(step[left].sum())
    return [times[part] / whole for part in PARTS]
