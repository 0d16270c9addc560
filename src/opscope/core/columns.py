"""Columns of whole numbers in order: each value once, and where it stands. By sorting, faster than numpy's own ways."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]


def rising(values: Numbers) -> Numbers:
    """Positions in rising order of values of at least 0; equal ones keep their order.

    Short words are sorted by counting. Else value and position share a word where they fit: words are sorted many
    times faster than positions.
    """
    bits, most = len(values).bit_length(), int(values.max(initial=0))
    if most <= np.iinfo(np.uint16).max:
        return np.argsort(values.astype(np.uint16), kind="stable")
    if most.bit_length() + bits > 63:
        return np.argsort(values, kind="stable")
    words = values << bits | np.arange(len(values))
    words.sort(kind="stable")  # lanes come sorted: it merges runs
    return words & ((1 << bits) - 1)


def distinct(values: Numbers) -> Numbers:
    """Every value once, rising; `numpy.unique` hashes, which may take many times longer."""
    ordered = np.sort(values, kind="stable")  # most columns come nearly sorted: it merges runs
    first = np.ones(len(ordered), np.bool_)
    first[1:] = ordered[1:] != ordered[:-1]
    return ordered[first]


def places(values: Numbers) -> tuple[Numbers, Numbers]:
    """Every value once, rising, and the place of every row among them."""
    if not len(values):
        return values, values
    low, width = int(values.min()), int(values.max()) - int(values.min()) + 1
    if width > 4 * len(values) + 1024:
        found, place = np.unique(values, return_inverse=True)
        return found, place.reshape(-1)
    there = np.zeros(width, np.bool_)
    there[values - low] = True
    rank = np.cumsum(there) - 1
    return np.flatnonzero(there) + low, rank[values - low]
