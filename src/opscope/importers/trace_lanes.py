"""Spans that nest or overlap on a thread → lanes on which they do not.

A lane of a Trace holds one span at a time, so that busy + idle = wall on it. A thread whose spans nest becomes as
many lanes as they nest deep: the outermost on the thread's own lane, the next on "NAME 2", and so on. Spans that
overlap without nesting are kept the same way. None is dropped.

    thread   |----- outer -----|          lane "main"     |----- outer -----|
             |-- a --| |-- b --|     →    lane "main 2"   |-- a --| |-- b --|
                |-c-|                     lane "main 3"      |-c-|
"""

from __future__ import annotations

import numpy as np

from ..core.columns import Numbers
from ..core.sublanes import lowest_free

_ROUNDS = 8  # so often a level may hold few of the spans; then they overlap, and are laid out one by one


def levels(thread: Numbers, start: Numbers, end: Numbers) -> Numbers:
    """Level of every span on its thread, from 0. For spans that nest, how deep."""
    level = np.zeros(len(thread), np.int64)
    if ((thread[1:] > thread[:-1]) | ((thread[1:] == thread[:-1]) & (start[1:] >= end[:-1]))).all():
        return level  # one after the other already, as in logs of one unit
    order = np.lexsort((-end, end > start, start, thread))  # an empty span fits in front of one that starts with it
    t, s, e = thread[order], start[order], end[order]
    meets = (t[1:] == t[:-1]) & (s[1:] < e[:-1])
    if not meets.any():
        return level
    crowded = np.zeros(int(t.max()) + 1, np.bool_)
    crowded[t[1:][meets]] = True
    # Only threads on which spans meet are looked at further. In each round the spans that begin behind all before
    # them form one level; those inside of one go to the next round, of which there are as many as spans nest deep.
    left = order[crowded[t]]
    low, high = _one_axis(thread[left], start[left], end[left])
    depth, poor = 0, 0
    while len(left) and poor < _ROUNDS:
        free = np.concatenate(([True], low[1:] >= np.maximum.accumulate(high)[:-1]))
        level[left[free]] = depth
        depth, poor = depth + 1, poor + (int(free.sum()) * 64 < len(left))
        left, low, high = left[~free], low[~free], high[~free]
    # Spans that cross, such as requests of a server: nesting would take a round each, so the lowest free lane is taken.
    level[left] = depth + np.array(lowest_free(low.tolist(), high.tolist()), np.int64)
    return level


def _one_axis(thread: Numbers, start: Numbers, end: Numbers) -> tuple[Numbers, Numbers]:
    """Starts and ends in the same order, all of one thread before all of the next."""
    first, length = int(start.min()), int(end.max() - start.min()) + 1
    if (int(thread.max()) + 1) * length < 2**62:
        base = thread * length - first
        return base + start, base + end
    times, rank = np.unique(np.concatenate((start, end)), return_inverse=True)
    base, rank = thread * len(times), rank.reshape(-1)
    return base + rank[: len(start)], base + rank[len(start) :]
