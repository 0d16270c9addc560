"""The distinct values of a column, by sorting: `numpy.unique` hashes, which may take many times longer."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64]


def distinct(values: Numbers) -> Numbers:
    """Every value once, rising."""
    ordered = np.sort(values, kind="stable")  # most columns come nearly sorted: it merges runs
    first = np.ones(len(ordered), np.bool_)
    first[1:] = ordered[1:] != ordered[:-1]
    return ordered[first]
