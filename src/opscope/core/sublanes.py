"""Intervals that overlap → lanes on which they do not."""

from __future__ import annotations

from heapq import heappop, heappush

import numpy as np

from .columns import Numbers


def sublanes(start: Numbers, end: Numbers) -> Numbers:
    """The lane of every interval, numbered from 0; as few lanes as there are intervals open at once.

    Where intervals end in the order in which they start, as in a queue, turns are taken: with at most n open at
    once, an interval is over before the n-th one after it starts.
    """
    order = np.lexsort((end, start))
    first, last = start[order], end[order]
    level = np.empty(len(start), np.int64)
    if bool((last[1:] >= last[:-1]).all()):
        level[order] = np.arange(len(order)) % _most_open(first, last)
    else:
        level[order] = lowest_free(first.tolist(), last.tolist())
    return level


def _most_open(start: Numbers, end: Numbers) -> int:
    """Most intervals open at once, where both columns are sorted; one that ends when another starts is over."""
    over = np.searchsorted(end, start, side="right")
    over = np.minimum(over, np.arange(len(start)))  # an empty interval is open at its own start
    return int((np.arange(len(start)) + 1 - over).max(initial=1))


def lowest_free(start: list[int], end: list[int]) -> list[int]:
    """Of intervals in the order of their starts, each on the lowest lane that is free when it starts."""
    busy: list[tuple[int, int]] = []
    free: list[int] = []
    level, lanes = [], 0
    for first, last in zip(start, end, strict=True):
        while busy and busy[0][0] <= first:
            heappush(free, heappop(busy)[1])
        if free:
            lane = heappop(free)
        else:
            lane, lanes = lanes, lanes + 1
        heappush(busy, (last, lane))
        level.append(lane)
    return level
