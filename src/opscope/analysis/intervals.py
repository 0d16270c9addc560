"""Sums over intervals: how long at least one is open, how many are open at once, how much lies in which window."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64]


def union_ns(keys: Numbers, start: Numbers, end: Numbers, count: int) -> Numbers:
    """Per key, the time in which at least one of its intervals is open."""
    if not len(keys):
        return np.zeros(count, np.int64)
    low = int(start.min())
    width = int(end.max()) - low + 1
    base = keys * width - low  # keys lie one behind the other on one axis, so that one running maximum serves all
    order = np.lexsort((start, keys))
    first, last = (start + base)[order], (end + base)[order]
    reach = np.maximum.accumulate(last)
    begin = np.maximum(first, np.concatenate(([first[0]], reach[:-1])))
    added = np.maximum(reach - begin, 0)
    return np.bincount(keys[order], added, minlength=count).astype(np.int64)


def most_open(keys: Numbers, start: Numbers, end: Numbers, count: int) -> Numbers:
    """Per key, most intervals open at once; one that ends when another starts is over."""
    moment = np.concatenate((end, start))
    step = np.repeat(np.array([-1, 1]), len(start))
    both = np.concatenate((keys, keys))
    order = np.lexsort((step, moment, both))
    depth = np.cumsum(step[order])  # comes back to zero after every key
    most = np.zeros(count, np.int64)
    np.maximum.at(most, both[order], depth)
    return most


def total_between(edges: Numbers, start: Numbers, end: Numbers, amount: Numbers) -> npt.NDArray[np.float64]:
    """How much falls between each pair of edges, where every interval brings its amount evenly over its length."""
    length = np.maximum(end - start, 1)  # an empty interval brings all of it in its nanosecond
    rate = amount / length
    moment = np.concatenate((start, start + length))
    change = np.concatenate((rate, -rate))
    order = np.argsort(moment, kind="stable")
    times, slope = moment[order], np.cumsum(change[order])
    brought = np.concatenate(([0.0], np.cumsum(slope[:-1] * np.diff(times)))) if len(times) else np.zeros(0)
    if not len(times):
        return np.zeros(len(edges) - 1)
    return np.diff(np.interp(edges, times, brought))
