"""Channels in another order: shuffled by reshapes, gathered, or read so by a convolution; and put together again."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx_ir as ir

from .convolutions import convolution_of
from .rule import Maker, Match, array_of, attribute, is_op, numbers_of, only_reader, producer, reads_as, shape_of
from .windows import extents_of, grid_of, moved_from

MOST_CHANNELS = 2048  # of a permutation that is written as a matrix
FLOATS = (ir.DataType.FLOAT, ir.DataType.FLOAT16)


def shuffle_to_gather(node: ir.Node) -> Match | None:
    """Channels shuffled by Reshape, Transpose and Reshape → a Gather."""
    found = _shuffle(node)
    if found is None:
        return None
    source, order, nodes = found

    def build(make: Maker) -> Mapping[ir.Value, ir.Value]:
        shape = shape_of(node.outputs[0])
        return {node.outputs[0]: make.op("Gather", source, make.constant(order, "order"), shape=shape, axis=1)}

    return Match((node, *nodes), build)


def shuffle_to_conv(node: ir.Node) -> Match | None:
    """Channels shuffled by Reshape, Transpose and Reshape → a 1×1 convolution that picks them."""
    found = _shuffle(node)
    if found is None or not _is_pickable(found[0]):
        return None
    source, order, nodes = found
    return Match((node, *nodes), lambda make: {node.outputs[0]: _picked(make, source, order)})


def _shuffle(node: ir.Node) -> tuple[ir.Value, list[int], list[ir.Node]] | None:
    """The source of shuffled channels, which of its channels each is, and the ops before the last that shuffle them."""
    found = moved_from(node.inputs[0], ("Transpose",), ("Reshape",)) if is_op(node, "Reshape") else None
    if found is None:
        return None
    source, (turn, apart), nodes = found
    shape, groups, order = shape_of(source), shape_of(apart.outputs[0]), [*attribute(turn, "perm", ())]
    if shape is None or groups is None or shape_of(node.outputs[0]) != shape or len(groups) != len(shape) + 1:
        return None
    if (groups[0], *groups[3:]) != (shape[0], *shape[2:]) or order != [0, 2, 1, *range(3, len(groups))]:
        return None
    return source, np.arange(shape[1]).reshape(groups[1:3]).T.ravel().tolist(), nodes


def _is_pickable(source: ir.Value | None) -> bool:
    """Whether channels of a value can be picked by a product with floats; quantised, it needs a grid for them."""
    shape = shape_of(source)
    if source is None or shape is None or len(shape) != 4 or shape[1] > MOST_CHANNELS or source.dtype not in FLOATS:
        return False
    return grid_of(producer(source)) is None


def _picked(make: Maker, source: ir.Value, order: list[int]) -> ir.Value:
    """Channels of a value, by a 1×1 convolution."""
    batch, channels, *rest = shape_of(source) or (0, 0)
    picked = np.zeros((len(order), channels, 1, 1), np.float32 if source.dtype == ir.DataType.FLOAT else np.float16)
    picked[np.arange(len(order)), order] = 1
    return make.op("Conv", source, make.constant(picked, "picked"), shape=(batch, len(order), *rest))


def gather_to_conv(node: ir.Node) -> Match | None:
    """A Gather of channels → a 1×1 convolution that picks them."""
    order, source = _gathered(node), node.inputs[0] if is_op(node, "Gather") else None
    if source is None or order is None or not _is_pickable(source) or len(order) > MOST_CHANNELS:
        return None
    return Match((node,), lambda make: {node.outputs[0]: _picked(make, source, order)})


def gather_into_conv(node: ir.Node) -> Match | None:
    """A Gather of channels before or after a convolution → the convolution with its weights in that order."""
    return _into_next(node) or _into_previous(node)


def _into_next(node: ir.Node) -> Match | None:
    conv = convolution_of(node)
    gather = None if conv is None or conv.group != 1 else producer(conv.source, "Gather")
    order = None if gather is None else _gathered(gather)
    channels = (*extents_of(gather.inputs[0]), None, None)[1] if gather is not None else None
    if conv is None or gather is None or order is None or channels is None or conv.weights.by_axis == 1:
        return None
    if conv.weights.dequantize is not None and (conv.weights.zero is None or len(set(order)) < len(order)):
        return None  # a channel that is read twice has the sum of two weights, which has no place in the scale

    def build(make: Maker) -> Mapping[ir.Value, ir.Value]:
        array = conv.weights.array
        zero = 0 if conv.weights.dequantize is None else conv.weights.zero
        spread = np.full((array.shape[0], channels, *array.shape[2:]), zero, array.dtype)
        for place, channel in enumerate(order):
            spread[:, channel] = spread[:, channel] + array[:, place] if zero == 0 else array[:, place]
        made = conv.again(make, gather.inputs[0], spread, conv.window, group=1, bias=conv.bias)
        made.shape = node.outputs[0].shape
        return {node.outputs[0]: made}

    return Match((node, gather), build)


def _into_previous(node: ir.Node) -> Match | None:
    order = _gathered(node)
    before = None if order is None else producer(node.inputs[0], "Conv")
    conv = None if before is None else convolution_of(before)
    if conv is None or order is None or conv.group != 1 or conv.weights.by_axis == 0:
        return None
    bias = array_of(conv.bias)
    if only_reader(conv.node.outputs[0]) is not node or (conv.bias is not None and bias is None):
        return None

    def build(make: Maker) -> Mapping[ir.Value, ir.Value]:
        moved = None if bias is None else make.constant(bias[order], "bias")
        made = conv.again(make, conv.source, conv.weights.array[order], conv.window, group=1, bias=moved)
        made.shape = node.outputs[0].shape
        return {node.outputs[0]: made}

    return Match((node, conv.node), build)


def flatten_concats(node: ir.Node) -> Match | None:
    """A Concat of what another Concat along the same axis gives → one."""
    if not is_op(node, "Concat"):
        return None
    inner = [producer(value, "Concat") for value in node.inputs]
    taken = [
        each is not None and only_reader(each.outputs[0]) is node and _axis(each) == _axis(node) is not None
        for each in inner
    ]
    if not any(taken):
        return None
    inputs: list[ir.Value | None] = []
    for value, each, is_taken in zip(node.inputs, inner, taken, strict=True):
        inputs += each.inputs if each is not None and is_taken else [value]
    gone = [each for each, is_taken in zip(inner, taken, strict=True) if each is not None and is_taken]

    def build(make: Maker) -> Mapping[ir.Value, ir.Value]:
        return {
            node.outputs[0]: make.op("Concat", *inputs, shape=shape_of(node.outputs[0]), axis=attribute(node, "axis"))
        }

    return Match((node, *dict.fromkeys(gone)), build)


def undo_slices(node: ir.Node) -> Match | None:
    """A Concat of the parts of one value, all of them in their order, → the value."""
    axis = _axis(node) if is_op(node, "Concat") else None
    pieces = [] if axis is None else [_piece(value, axis) for value in node.inputs]
    found = [piece for piece in pieces if piece is not None]
    if not found or len(found) != len(pieces) or len({piece[0] for piece in found}) != 1:
        return None
    source, extent = found[0][0], extents_of(found[0][0])[axis or 0]
    ends = [0, *(end for _, _, end, _ in found)]
    if [begin for _, begin, _, _ in found] != ends[:-1] or ends[-1] != extent or not reads_as(node.outputs[0], source):
        return None
    parts = dict.fromkeys(part for *_, part in found)
    return Match((node, *parts), lambda _: {node.outputs[0]: source})


def _piece(value: ir.Value | None, axis: int) -> tuple[ir.Value, int, int, ir.Node] | None:
    """What a value is a part of along an axis: the source, where it begins and ends, and the op that cuts it."""
    node = producer(value, "Split", "Slice")
    source = None if node is None else node.inputs[0]
    extent = extents_of(source)[axis] if len(extents_of(source)) > axis else None
    if value is None or node is None or source is None or extent is None:
        return None
    if is_op(node, "Split"):
        lengths = [extents_of(part)[axis] if len(extents_of(part)) > axis else None for part in node.outputs]
        if attribute(node, "axis", 0) % len(extents_of(source)) != axis or None in lengths:
            return None
        place = list(node.outputs).index(value)
        begin = sum(length or 0 for length in lengths[:place])
        return source, begin, begin + (lengths[place] or 0), node
    _, starts, ends, axes, steps = (*node.inputs, None, None, None, None)[:5]
    along, begins, stops = numbers_of(axes), numbers_of(starts), numbers_of(ends)
    if (
        along is None
        or begins is None
        or stops is None
        or len(along) != 1
        or along[0] % len(extents_of(source)) != axis
    ):
        return None
    if steps is not None and numbers_of(steps) != [1]:
        return None
    begin, end = (min(each, extent) if each >= 0 else max(0, each + extent) for each in (begins[0], stops[0]))
    return source, begin, end, node


def _gathered(node: ir.Node) -> list[int] | None:
    """The channels that a Gather along the second axis takes, counted from the first."""
    numbers = numbers_of(node.inputs[1]) if is_op(node, "Gather") and attribute(node, "axis", 0) == 1 else None
    extents = extents_of(node.inputs[0]) if numbers is not None else ()
    channels = extents[1] if len(extents) > 1 else None
    if numbers is None or channels is None or shape_of(node.inputs[1]) != (len(numbers),):
        return None
    return [each % channels for each in numbers] if all(-channels <= each < channels for each in numbers) else None


def _axis(node: ir.Node) -> int | None:
    """The axis of a Concat, counted from the first; None where the rank is not known."""
    rank, axis = len(extents_of(node.outputs[0])), attribute(node, "axis")
    return axis % rank if axis is not None and -rank <= axis < rank else None
