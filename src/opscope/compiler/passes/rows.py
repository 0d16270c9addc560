"""Rows: which axis of every tensor counts the rows of an image, and which rows of it some rows of a result need.

Layouts differ, so windows tell: a convolution slides along the first axis behind the batch that is not its channels.
From there the axis is followed through ops that leave it alone: of `reshape [1,36,50,80] → [1,9,4,50,80]` it is axis
3, of `transpose → [1,50,80,9,4]` axis 1, of `reshape → [1,36000,4]` axis 1 with 720 rows for each.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...estimate.work import numbers
from ...graph.graph import ABSENT, Graph, Op, Role
from .axes import WHOLE, input_axes

Rows = tuple[int, int]  # from, to


def row_axes(graph: Graph) -> dict[int, int]:
    """Tensor → the axis of its rows, for those that some windows slide over or that are made of such."""
    found: dict[int, int] = {}
    if not any(numbers(op, "kernel") for op in graph.ops):
        return found
    for op in reversed(graph.ops):  # before the first window too
        _follow(op, graph, found)
    for op in graph.ops:
        _follow(op, graph, found)
    return found


def _follow(op: Op, graph: Graph, found: dict[int, int]) -> None:
    """Add the axes of what an op reads and makes, as far as they follow from those that are known."""
    if len(op.outputs) != 1:
        return
    (made,) = op.outputs
    rank = len(graph.tensors[made].shape or ())
    if numbers(op, "kernel") and rank == len(graph.tensors[op.inputs[0]].shape or ()) == _IMAGE:
        axis = 2 if op.attributes.get("channel_axis") == 1 else 1
        found.setdefault(op.inputs[0], axis)
        found.setdefault(made, axis)
    for axis in [found[made]] if made in found else range(1, rank):
        axes = axes_of_rows(op, graph, axis)
        agrees = axes is not None and all(found.get(t, own) == own for t, own in axes.items())
        if axes is not None and agrees and (made in found or not axes.keys().isdisjoint(found)):
            found.update({made: axis, **axes})
            return


_IMAGE = 4  # axes: batch, rows, columns and channels


def axes_of_rows(op: Op, graph: Graph, axis: int) -> dict[int, int] | None:
    """Activation that an op reads → its axis that corresponds to one of the result; None: not every one has such."""
    if len(op.outputs) != 1 or axis >= len(shape := graph.tensors[op.outputs[0]].shape or ()) or shape[axis] < 2:
        return None
    if op.kind == "conv_transpose":  # a row of its result is made of rows that windows of others slide over, too
        return None
    if op.kind == "space_to_depth" and graph.tensors[op.inputs[0]].shape == shape:  # pixels change places in rows
        return {op.inputs[0]: axis}
    axes = input_axes(op, graph, axis)
    if axes is None:
        return None
    pairs = [(t, own) for t, own in zip(op.inputs, axes, strict=True) if t != ABSENT]
    moving = {t: own for t, own in pairs if graph.tensors[t].role is not Role.CONSTANT}
    return moving if moving and WHOLE not in moving.values() else None


def rows_needed(ops: Sequence[Op], graph: Graph, axes: dict[int, int], rows: Rows) -> dict[int, Rows]:
    """The rows of every activation that ops read or make for some rows of the last of them."""
    found = {ops[-1].outputs[0]: rows}
    for op in reversed(ops):
        (result,) = op.outputs
        for t in axes_of_rows(op, graph, axes[result]) or ():
            low, high = _window(op, graph, t, axes, found[result])
            if t in found:
                low, high = min(low, found[t][0]), max(high, found[t][1])
            found[t] = low, high
    return found


def extent(graph: Graph, axes: dict[int, int], tensor: int) -> int:
    """Rows of a tensor."""
    return (graph.tensors[tensor].shape or ())[axes[tensor]]


def _window(op: Op, graph: Graph, tensor: int, axes: dict[int, int], made: Rows) -> Rows:
    """Rows of an input that some rows of the output are made from."""
    own, out = (extent(graph, axes, t) for t in (tensor, op.outputs[0]))
    kernel, strides, dilations = (numbers(op, key) for key in ("kernel", "strides", "dilations"))
    if not kernel:
        beside = 1 if op.kind == "resize" and own != out else 0  # interpolation between two rows
        return max(0, made[0] * own // out - beside), min(own, -(-made[1] * own // out) + beside)
    stride = strides[0] if strides else 1
    taps = (kernel[0] - 1) * (dilations[0] if dilations else 1) + 1
    before = max(0, (out - 1) * stride + taps - own) // 2  # rows of padding
    low, high = made[0] * stride - before, (made[1] - 1) * stride - before + taps
    return max(0, min(low, own - 1)), max(1, min(high, own))
