"""What rounding alone does to the outputs of a model: how far a rewrite that is exact may be from it.

Two sources. By count: every op rounds its result, and every sum the terms that it adds. N such roundings on the way to
an output are a random walk of √N steps of half a unit in the last place; the furthest of many elements is some
standard deviations out. By trial: the model itself is run with and without the runtime's own optimisations, and on
inputs that are off by one rounding, which shows how much it amplifies; both move its outputs as a rewrite may.

A limit holds for an element by what its neighbours are: those of the same place on an axis, so that scores beside
coordinates are not held to the size of coordinates.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import prod, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from ..core.columns import Floats
from ..estimate.work import work_of
from ..graph.graph import ABSENT, DType, Graph

Array = npt.NDArray[Any]
DEVIATIONS = 5.0  # of a random walk, that the furthest of a million elements lies within
MARGIN = 4.0  # of what a trial showed: it saw a few inputs
FEWEST_NEIGHBOURS = 64  # elements that tell how large their like are
_UNITS = {  # largest relative error of one rounding
    DType.F64: 2.0**-53,
    DType.F32: 2.0**-24,
    DType.F16: 2.0**-11,
    DType.BF16: 2.0**-8,
}
_SUMS_IN = DType.F32  # what runtimes add terms of narrower types in


@dataclass(frozen=True, slots=True)
class Walk:
    """The longest way to an output."""

    deviation: float  # relative, of all roundings on it
    ops: int


def longest_walk(graph: Graph) -> Walk:
    """Roundings add up along the graph; ways that meet count once, the longest."""
    variance, depth = dict[int, float](), dict[int, int]()
    for op in graph.ops:
        inputs = [number for number in op.inputs if number != ABSENT]
        outputs = [graph.tensors[number] for number in op.outputs if number != ABSENT]
        work = work_of(op, graph)
        elements = sum(tensor.elements or 0 for tensor in outputs)
        terms = (work.macs + work.element_ops) / elements if elements else 0.0
        kind = next((tensor.dtype for tensor in outputs if tensor.dtype in _UNITS), None)
        before = max((variance.get(number, 0.0) for number in inputs), default=0.0)
        deep = max((depth.get(number, 0) for number in inputs), default=0)
        for number in op.outputs:
            if number != ABSENT:
                inner = _UNITS[DType.F64 if kind is DType.F64 else _SUMS_IN]
                variance[number] = before + (0.0 if kind is None else _UNITS[kind] ** 2 + terms * inner**2)
                depth[number] = deep + 1
    return Walk(sqrt(max(variance.values(), default=0.0)), max(depth.values(), default=0))


@dataclass(slots=True)
class Limits:
    """How far the elements of one output may be off, from what was seen of it."""

    share: float  # of the size of their like, by count
    shape: tuple[int, ...] | None = None  # behind the batch; None: nothing seen, or it is another for every sample
    sizes: dict[int | None, Any] = field(default_factory=dict)  # axis → the largest by place on it; None: of all
    moved: dict[int | None, Any] = field(default_factory=dict)  # the same of what a trial changed
    samples: int = 0

    def see(self, wanted: Array, others: Iterable[Array], factors: Sequence[float]) -> None:
        """Take a sample in: the output, and what it became under roundings, each with a factor."""
        size = _finite(np.abs(wanted.astype(np.float64)))
        change = np.zeros_like(size)
        for other, factor in zip(others, factors, strict=True):
            if other.shape == wanted.shape:
                change = np.maximum(change, factor * _finite(apart(wanted, other)))
        self.shape = wanted.shape[1:] if self.samples == 0 or self.shape == wanted.shape[1:] else None
        self.samples += 1
        for axis in (None, *range(1, wanted.ndim)):
            places = None if axis is None else tuple(other for other in range(wanted.ndim) if other != axis)
            for kept, array in ((self.sizes, size), (self.moved, change)):
                found = array.max(axis=places, initial=0.0)
                same = axis in kept and np.shape(kept[axis]) == found.shape
                kept[axis] = np.maximum(kept[axis], found) if same else found

    def allowed(self, shape: tuple[int, ...]) -> Floats:
        """For every element of an output of that shape."""
        limit = np.full(shape, self.share * float(self.sizes[None]) + MARGIN * float(self.moved[None]))
        for axis, extent in enumerate(shape):
            alike = prod(shape) // max(extent, 1) * self.samples
            if axis and self.shape == shape[1:] and alike >= FEWEST_NEIGHBOURS:
                own = self.share * self.sizes[axis] + MARGIN * self.moved[axis]
                limit = np.minimum(limit, own.reshape([-1 if each == axis else 1 for each in range(len(shape))]))
        return limit


def apart(one: Array, other: Array) -> Floats:
    """How far elements are apart; those that are the same infinity, or no number in both, are not."""
    a, b = one.astype(np.float64), other.astype(np.float64)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(invalid="ignore"):
        return np.where(same, 0.0, np.abs(a - b))


def _finite(array: Floats) -> Floats:
    return np.where(np.isfinite(array), array, 0.0)
