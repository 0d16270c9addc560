"""Who is at work during the wall time? Disjoint parts: an engine computes; else bytes are in flight; else nothing."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from ...recording.summary import OCCUPANCY, Share
from ..timeline.intervals import Stretches, union
from .work import Flags, Numbers, Work


def occupancy_shares(work: Work) -> tuple[Share, ...]:
    """Averaged over cores, so that the parts add up to the wall time of the inference."""
    index, part = work.index, work.commands
    windows = work.windows
    ends, starts = [end for _, end in windows.values()], [start for start, _ in windows.values()]
    wall = max(ends, default=0) - min(starts, default=0)
    if not wall or not len(work.ops):
        return ()
    moving, flush = index.moves[part.command], index.is_flush[part.command]

    def stretches(chosen: Flags) -> Stretches:
        some = part.where(chosen)
        return union(index.core[some.command], some.start, some.end)

    def mean(found: Stretches) -> float:
        return int((found.end - found.start).sum()) / len(windows)

    computing, moved, flushed = stretches(~moving), stretches(moving & ~flush), stretches(moving & flush)
    useful = _both(computing, moved)
    reached = [mean(computing), mean(useful), mean(_both(useful, flushed)), float(wall)]
    parts = [end - before for before, end in pairwise([0.0, *reached])]
    return tuple(Share(cause, ns, ns / wall) for cause, ns in zip(OCCUPANCY, parts, strict=True))


def _both(one: Stretches, other: Stretches) -> Stretches:
    def column(name: str) -> Numbers:
        return np.concatenate((getattr(one, name), getattr(other, name)))

    return union(column("key"), column("start"), column("end"))
