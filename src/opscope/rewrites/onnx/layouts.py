"""Layouts: what a chain of reshapes, transposes and selections does to the elements of a value, as algebra.

Every axis of a value is written as factors of the axes of the value that the chain starts from. However a chain is
spelled, one layout stands for it, and one short form of it can be made: Reshape, Transpose, Reshape, each only where
it does something.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import prod

import numpy as np
import onnx_ir as ir

from .grids import Grid
from .rule import Array, Maker, Shape, attribute, extents_of, is_op, is_open, numbers_of, opset_of

MOVES = ("Reshape", "Squeeze", "Unsqueeze", "Flatten", "Identity", "Transpose")  # keep every element
COMMON_RANK = 4
SELECTIONS = ("Gather", "Slice", "Split")  # keep some of one axis


@dataclass(frozen=True, slots=True)
class Factor:
    """Part of an axis: `extent` elements of a source axis, `stride` apart."""

    axis: int
    stride: int
    extent: int  # never 1


@dataclass(frozen=True, slots=True)
class Layout:
    """A value whose elements are elements of another, the source: which, and in what order."""

    source: Shape
    axes: tuple[tuple[Factor, ...], ...]  # the outermost factor of an axis first
    starts: tuple[int, ...]  # element of each source axis that comes first

    @property
    def shape(self) -> Shape:
        return tuple(prod(factor.extent for factor in axis) for axis in self.axes)

    def transposed(self, order: Sequence[int]) -> Layout:
        return replace(self, axes=tuple(self.axes[axis] for axis in order))

    def reshaped(self, shape: Shape) -> Layout | None:
        """The layout with other axes; None where one of them would be no product of factors."""
        if prod(shape) != prod(self.shape) or not all(shape):
            return None
        left = [factor for axis in self.axes for factor in axis]
        axes: list[tuple[Factor, ...]] = []
        for extent in shape:
            axis: list[Factor] = []
            missing = extent
            while missing > 1:
                factor = left.pop(0)
                if missing % factor.extent == 0:
                    axis = _joined(axis, factor)
                    missing //= factor.extent
                elif factor.extent % missing == 0:
                    inner = factor.extent // missing
                    axis = _joined(axis, Factor(factor.axis, factor.stride * inner, missing))
                    left.insert(0, Factor(factor.axis, factor.stride, inner))
                    missing = 1
                else:
                    return None
            axes.append(tuple(axis))
        return replace(self, axes=tuple(axes))

    def selected(self, axis: int, start: int, count: int, step: int = 1) -> Layout | None:
        """The layout of some elements of an axis; None where they are no evenly spaced part of its outer factor."""
        factors = self.axes[axis]
        if not factors or (start, count, step) == (0, self.shape[axis], 1):
            return self if (start, count) == (0, self.shape[axis]) else None
        outer, inner = factors[0], prod(factor.extent for factor in factors[1:])
        if start % inner or count % inner or (inner > 1 and step != 1) or count == 0:
            return None
        kept = Factor(outer.axis, outer.stride * step, count // inner)
        starts = list(self.starts)
        starts[outer.axis] += start // inner * outer.stride
        changed = (*((kept,) if kept.extent > 1 else ()), *factors[1:])
        return replace(self, axes=(*self.axes[:axis], changed, *self.axes[axis + 1 :]), starts=tuple(starts))

    def factors_of(self, axis: int) -> list[Factor]:
        """What is left of a source axis, in its own order."""
        found = (factor for each in self.axes for factor in each if factor.axis == axis)
        return sorted(found, key=lambda factor: -factor.stride)

    def is_whole(self, axis: int) -> bool:
        """Whether all of a source axis is kept."""
        return prod(factor.extent for factor in self.factors_of(axis)) == self.source[axis]

    def picked(self, axis: int) -> Array:
        """The elements of a source axis that are kept, in its own order."""
        grid = np.array([self.starts[axis]])
        for factor in self.factors_of(axis):
            grid = (grid[:, None] + np.arange(factor.extent) * factor.stride).ravel()
        return grid


def _joined(factors: list[Factor], factor: Factor) -> list[Factor]:
    """The factors and one more, which joins the last where both are one run of a source axis."""
    if factors and factors[-1].axis == factor.axis and factors[-1].stride == factor.stride * factor.extent:
        return [*factors[:-1], Factor(factor.axis, factor.stride, factors[-1].extent * factor.extent)]
    return [*factors, factor]


def layout_of(shape: Shape) -> Layout:
    """The layout of a value as it is."""
    axes = tuple((Factor(axis, 1, extent),) if extent > 1 else () for axis, extent in enumerate(shape))
    return Layout(shape, axes, (0,) * len(shape))


def follow(layout: Layout, node: ir.Node) -> list[tuple[ir.Value, Layout]] | None:
    """The results of a node that moves or selects elements of a value of that layout; None for any other node."""
    if is_op(node, "Transpose"):
        order = attribute(node, "perm", range(len(layout.axes))[::-1])
        return [(node.outputs[0], layout.transposed(order))] if sorted(order) == list(range(len(layout.axes))) else None
    found = list(_followed(layout, node))
    results = [(value, result) for value, result in found if result is not None and result.shape == extents_of(value)]
    return results if results and len(results) == len(found) else None


def _followed(layout: Layout, node: ir.Node) -> Iterator[tuple[ir.Value, Layout | None]]:
    first = node.outputs[0]
    shape = extents_of(first)
    if shape is None:
        return
    if is_op(node, *MOVES):
        yield first, layout.reshaped(shape)
    elif is_op(node, "Gather"):
        yield first, _gathered(layout, node, shape)
    elif is_op(node, "Slice"):
        yield first, _sliced(layout, node, shape)
    elif is_op(node, "Split"):
        axis, start = attribute(node, "axis", 0) % len(layout.axes), 0
        for value in node.outputs:
            part = extents_of(value)
            yield value, None if part is None else layout.selected(axis, start, part[axis])
            start += 0 if part is None else part[axis]


def _gathered(layout: Layout, node: ir.Node, shape: Shape) -> Layout | None:
    axis, places = attribute(node, "axis", 0) % len(layout.axes), numbers_of(node.inputs[1])
    rank = None if node.inputs[1] is None or node.inputs[1].shape is None else len(node.inputs[1].shape)
    if not places or rank is None or rank > 1:
        return None
    places = [place % layout.shape[axis] for place in places]
    steps = {after - before for before, after in pairwise(places)} or {1}
    if len(steps) > 1 or min(steps) < 1:
        return None
    found = layout.selected(axis, places[0], len(places), steps.pop())
    return found if found is None or rank == 1 else found.reshaped(shape)


def _sliced(layout: Layout, node: ir.Node, shape: Shape) -> Layout | None:
    cuts = slices_of(node, layout.shape)
    found: Layout | None = layout
    for axis, start, step in cuts or ():
        found = None if found is None or step < 1 else found.selected(axis, start, shape[axis], step)
    return found if cuts else None


def slices_of(node: ir.Node, shape: Shape) -> list[tuple[int, int, int]] | None:
    """Axis, first element and step of each cut of a Slice, where they are constants."""
    if opset_of(node) < 10:
        lists = [attribute(node, "starts"), attribute(node, "axes"), None]
    else:
        given = [*node.inputs, None, None, None]
        if any(value is not None and numbers_of(value) is None for value in given[1:5]):
            return None
        lists = [numbers_of(given[1]), numbers_of(given[3]), numbers_of(given[4])]
    starts = lists[0]
    if starts is None:
        return None
    axes = [axis % len(shape) for axis in lists[1] or range(len(starts))]
    steps = lists[2] or [1] * len(starts)
    firsts = [max(start + shape[axis], 0) if start < 0 else start for start, axis in zip(starts, axes, strict=True)]
    return list(zip(axes, firsts, steps, strict=True))


@dataclass(frozen=True, slots=True)
class Form:
    """A layout as at most three ops: to a shape, transposed, to the shape of the layout."""

    held: Shape  # of the source, with what is kept of it
    shape: Shape  # to transpose in
    order: tuple[int, ...]
    result: Shape

    @property
    def transposed(self) -> Shape:
        return tuple(self.shape[axis] for axis in self.order)

    @property
    def moves(self) -> bool:
        return self.order != tuple(sorted(self.order))

    @property
    def ops(self) -> int:
        return (self.held != self.shape) + self.moves + (self.transposed != self.result)

    @property
    def cost(self) -> tuple[int, int, int]:
        """Ops, transposes, and axes that are transposed, where those are more than the four that every engine has."""
        return self.ops, self.moves, max(len(self.order), COMMON_RANK) if self.moves else 0


def short_form(layout: Layout) -> Form:
    """The cheapest form; of those, the one that has the axes of the result when it transposes."""
    return min((_form(layout, by_axis) for by_axis in (True, False)), key=lambda form: form.cost)


def _form(layout: Layout, by_axis: bool) -> Form:
    """A form that transposes runs of factors that stay side by side; cut at the axes of the result, or not."""
    held = tuple(prod(factor.extent for factor in layout.factors_of(axis)) for axis in range(len(layout.source)))
    before = [factor for axis in range(len(layout.source)) for factor in layout.factors_of(axis)]
    place = {factor: number for number, factor in enumerate(before)}
    runs: list[list[Factor]] = []
    for axis in layout.axes:
        for number, factor in enumerate(axis):
            goes_on = bool(runs) and place[runs[-1][-1]] + 1 == place[factor]
            if goes_on and (number or not by_axis):
                runs[-1].append(factor)
            else:
                runs.append([factor])
    ordered = sorted(runs, key=lambda run: place[run[0]])
    order = [ordered.index(run) for run in runs]
    if order == sorted(order):
        return Form(held, layout.shape, tuple(range(len(layout.shape))), layout.shape)
    extents = [prod(factor.extent for factor in run) for run in ordered]
    plain = Form(held, tuple(extents), tuple(order), layout.shape)
    return min((plain, *(_with_ones(plain, like) for like in (layout.shape, held))), key=lambda form: form.cost)


def _with_ones(form: Form, like: Shape) -> Form:
    """The form with axes of 1 where a shape has them, so that no reshape has to add or take them."""
    extents, order = list(form.shape), list(form.order)
    for axis, extent in enumerate(like):
        if extent == 1:
            at = min(axis, len(extents))
            extents.insert(at, 1)
            order = [each + (each >= at) for each in order]
            order.insert(min(axis, len(order)), at)
    return replace(form, shape=tuple(extents), order=tuple(order))


def make_layout(
    make: Maker, value: ir.Value, layout: Layout, grid: Grid | None = None, *, is_put: bool = False
) -> ir.Value:
    """A layout of a value, whose axes hold just the elements of the source's that are kept.

    Between its ops are pairs of the grid that the value is on, and one after them where the result `is_put` on it.
    """
    form = short_form(layout)
    steps: list[Callable[[ir.Value], ir.Value]] = []
    if form.held != form.shape:
        steps.append(lambda each: reshape(make, each, form.held, form.shape))
    if form.moves:
        steps.append(lambda each: make.op("Transpose", each, perm=list(form.order), shape=form.transposed))
    if form.transposed != form.result:
        steps.append(lambda each: reshape(make, each, form.transposed, form.result))
    source = value
    for number, step in enumerate(steps, 1):
        value = step(value)
        if grid is not None and (is_put or number < len(steps)):
            value = grid.put(make, value, source)
    return value


def reshape(make: Maker, value: ir.Value, before: Shape, after: Shape) -> ir.Value:
    """A value of one shape in another; as it is where both are the same. What is open follows from all else."""
    if before == after:
        return value
    wanted = [-1 if is_open(extent) else extent for extent in after]
    return make.op("Reshape", value, make.constant(wanted, "shape"), shape=after)
