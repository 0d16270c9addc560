"""Channels in another order: shuffled by reshapes, gathered, or read so by a convolution; and put together again."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx_ir as ir

from .convolutions import convolution_of
from .rule import Maker, Match, array_of, attribute, is_op, numbers_of, only_reader, producer, reads_as, shape_of
from .windows import extents_of

MOST_CHANNELS = 2048  # of a permutation that is written as a matrix
FLOATS = (ir.DataType.FLOAT, ir.DataType.FLOAT16)
TO_THE_END = 2**31 - 1


def shuffle_to_gather(node: ir.Node) -> Match | None:
    """Channels shuffled by Reshape, Transpose and Reshape → a Gather."""
    turn = producer(node.inputs[0], "Transpose") if is_op(node, "Reshape") else None
    apart = None if turn is None else producer(turn.inputs[0], "Reshape")
    if turn is None or apart is None:
        return None
    shape, groups = shape_of(apart.inputs[0]), shape_of(apart.outputs[0])
    if shape is None or groups is None or shape_of(node.outputs[0]) != shape or len(groups) != len(shape) + 1:
        return None
    if (groups[0], *groups[3:]) != (shape[0], *shape[2:]) or list(attribute(turn, "perm", ())[:3]) != [0, 2, 1]:
        return None
    if list(attribute(turn, "perm"))[3:] != list(range(3, len(groups))):
        return None
    order = np.arange(shape[1]).reshape(groups[1:3]).T.ravel()

    def build(make: Maker) -> Mapping[ir.Value, ir.Value]:
        return {node.outputs[0]: make.op("Gather", apart.inputs[0], make.constant(order, "order"), shape=shape, axis=1)}

    return Match((node, turn, apart), build)


def gather_to_conv(node: ir.Node) -> Match | None:
    """A Gather of channels → a 1×1 convolution that picks them."""
    order, shape = _gathered(node), shape_of(node.inputs[0]) if is_op(node, "Gather") else None
    dtype = node.outputs[0].dtype if order is not None else None
    if (
        order is None
        or shape is None
        or len(shape) != 4
        or dtype not in FLOATS
        or max(shape[1], len(order)) > MOST_CHANNELS
    ):
        return None

    def build(make: Maker) -> Mapping[ir.Value, ir.Value]:
        picked = np.zeros((len(order), shape[1], 1, 1), np.float32 if dtype == ir.DataType.FLOAT else np.float16)
        picked[np.arange(len(order)), order] = 1
        weights = make.constant(picked, "picked")
        return {node.outputs[0]: make.op("Conv", node.inputs[0], weights, shape=(shape[0], len(order), *shape[2:]))}

    return Match((node,), build)


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
        lengths = [extents_of(part)[axis] if extents_of(part) else None for part in node.outputs]
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
    return None if axis is None else axis if axis >= 0 else axis + rank if rank else None
