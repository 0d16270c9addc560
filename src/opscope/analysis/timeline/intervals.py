"""Sums over intervals: how long at least one is open, how many are open at once, how much lies in which window."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...core.columns import Numbers, rising


def total(keys: Numbers, weights: npt.NDArray[np.generic], count: int) -> Numbers:
    """Whole numbers added up per key: keys [1, 0, 1] with weights [5, 7, 2] are [7, 7]."""
    return np.rint(np.bincount(keys, weights, minlength=count)).astype(np.int64)


def largest(values: Numbers, most: int) -> Numbers:
    """Positions of so many of the largest values, from the largest on; equal ones keep their order."""
    if len(values) > most:
        least = np.partition(values, len(values) - most)[len(values) - most]
        found = np.flatnonzero(values >= least)
        return found[np.argsort(-values[found], kind="stable")][:most]
    return np.argsort(-values, kind="stable")


def ranked(*columns: Numbers) -> tuple[Numbers, list[Numbers]]:
    """The distinct values of all columns, rising; and the place among them of every entry of each column."""
    values = np.concatenate(columns)
    order = rising(values - values.min(initial=0))
    ordered = values[order]
    first = np.ones(len(values), np.bool_)
    first[1:] = ordered[1:] != ordered[:-1]
    place = np.empty(len(values), np.int64)
    place[order] = np.cumsum(first) - 1
    return ordered[first], np.split(place, np.cumsum([len(column) for column in columns[:-1]]))


@dataclass(frozen=True, slots=True)
class Intervals:
    """Intervals that do not overlap within a key, sorted by key and start."""

    key: Numbers
    start: Numbers
    end: Numbers

    def total(self, count: int) -> Numbers:
        """Per key, the length of all its intervals."""
        return total(self.key, self.end - self.start, count)


def union(keys: Numbers, start: Numbers, end: Numbers) -> Intervals:
    """Per key, the intervals in which at least one of those given is open."""
    if not len(keys):
        return Intervals(keys, start, end)
    low = int(start.min())
    width = int(end.max()) - low + 1
    base = keys * width - low  # keys lie one behind the other on one axis, so that one running maximum serves all
    first = start + base
    order = rising(first)
    first, reach = first[order], np.maximum.accumulate((end + base)[order])
    begins = np.concatenate(([True], (first[1:] > reach[:-1]) | (first[1:] // width != first[:-1] // width)))
    at = np.flatnonzero(begins)
    owner = keys[order][at]
    shift = owner * width - low
    return Intervals(owner, first[at] - shift, reach[np.append(at[1:], len(reach)) - 1] - shift)


def most_open(keys: Numbers, start: Numbers, end: Numbers, count: int) -> Numbers:
    """Per key, most intervals open at once; one that ends when another starts is over."""
    most = np.zeros(count, np.int64)
    if not len(keys):
        return most
    low = int(start.min())
    width = int(end.max()) - low + 1
    base = keys * width - low
    moment = np.concatenate(((end + base) * 2, (start + base) * 2 + 1))
    order = rising(moment)
    depth = np.cumsum(np.where(order < len(keys), -1, 1))  # comes back to zero after every key
    owner = moment[order] // (2 * width)
    first = np.flatnonzero(np.diff(owner, prepend=-1))
    most[owner[first]] = np.maximum.reduceat(depth, first)
    return most


def total_between(edges: Numbers, start: Numbers, end: Numbers, amount: Numbers) -> npt.NDArray[np.float64]:
    """How much falls between each pair of edges, where every interval brings its amount evenly over its length."""
    if not len(start):
        return np.zeros(len(edges) - 1)
    length = np.maximum(end - start, 1)  # an empty interval brings all of it in its nanosecond
    rate = amount / length
    moment = np.concatenate((start, start + length))
    change = np.concatenate((rate, -rate))
    order = np.argsort(moment, kind="stable")
    times, slope = moment[order], np.cumsum(change[order])
    brought = np.concatenate(([0.0], np.cumsum(slope[:-1] * np.diff(times))))
    return np.diff(np.interp(edges, times, brought))
