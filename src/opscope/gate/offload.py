"""Offload: how much of a run an accelerator takes, and which ops are left to the processor."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from ..recording.recording import Placed
from ..recording.run import Run
from .figures import Figures

_NO_WORK = (Placed.FUSED, Placed.REMOVED, Placed.INSERTED)  # ops that are none, or that nobody chose a place for
MOST_LEFT = 20  # kinds of ops that are named


@dataclass(frozen=True, slots=True)
class LeftToCpu:
    """Ops of one type that the processor runs for one reason."""

    type: str
    count: int
    reason: str  # empty: nobody said why


@dataclass(frozen=True, slots=True)
class Offload:
    """Shares are of the ops of the model that somebody runs; None is not known."""

    time_share: float | None  # of the clock that ops of an accelerator take
    op_share: float | None
    left: tuple[LeftToCpu, ...]  # most ops first


def offload_of(figures: Figures, run: Run) -> Offload:
    """Who runs the ops of a run; `figures` are those of the run, whose op times do not overlap."""
    totals = [total for total in run.summary.ops if total.op is not None and total.placed not in _NO_WORK]
    if not totals:
        return Offload(None, None, ())
    counts = Counter((total.type, total.reason) for total in totals if total.on_cpu)
    left = tuple(LeftToCpu(kind, count, reason) for (kind, reason), count in counts.most_common(MOST_LEFT))
    own = any(op.own_ns is not None for op in figures.ops)
    times = [op.own_ns if own else op.wall_ns for op in figures.ops]
    spent = {True: 0, False: 0}  # on the processor or not → ns
    for total in totals:
        spent[total.on_cpu] += 0 if total.op is None or figures.unknown else times[total.op] or 0
    whole = sum(spent.values())
    return Offload(spent[False] / whole if whole else None, 1 - counts.total() / len(totals), left)
