"""Blocks of pixels that become channels: by strided slices, by SpaceToDepth, or read so by a strided convolution."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import onnx_ir as ir

from .rule import Array, Maker, Match, attribute, is_op, numbers_of, only_reader, producer, shape_of
from .windows import Weights, Window, extents_of, grid_of, on_grid_of, pair_of, weights_of, window_of

TO_THE_END = 2**31 - 1  # an end that is this or more means the last element, however many there are
FEW_CHANNELS = 8  # of a picture: more than these fill the lanes of an engine without being gathered from a block

Pixel = tuple[int, int]  # row and column in a block
Cut = Mapping[int, int]  # by axis: the element of each block that is kept


@dataclass(frozen=True, slots=True)
class Blocks:
    """A picture whose blocks of pixels are laid out as channels."""

    nodes: tuple[ir.Node, ...]  # that do it, the last first
    source: ir.Value
    block: int
    last: bool  # whether channels are the last axis, not the second
    order: tuple[Pixel, ...]  # which pixel of the block the first channels are from, the next, and so on
    pair: tuple[ir.Node, ...] = ()  # ops that put the channels on a grid, before they are read

    @property
    def channels(self) -> int | None:
        return extents_of(self.source)[-1 if self.last else 1]

    @property
    def ranks(self) -> list[int]:
        """Where each group of channels is when pixels are taken row by row."""
        return [row * self.block + column for row, column in self.order]

    @property
    def is_by_rows(self) -> bool:
        return self.ranks == sorted(self.ranks)


def focus_to_space_to_depth(node: ir.Node) -> Match | None:
    """Strided slices and a Concat → SpaceToDepth; the convolution that reads it takes the other order of channels."""
    blocks = _slices(node)
    if blocks is None:
        return None
    reader, pair = (None, ()) if blocks.last or blocks.is_by_rows else _read_by(node.outputs[0])
    weights = None if reader is None else _input_weights(reader, reader.inputs[0])
    if reader is not None and weights is not None:
        return _with_convolution(replace(blocks, nodes=(*pair[::-1], *blocks.nodes), pair=pair), reader, weights)
    if not blocks.is_by_rows and blocks.channels is None:
        return None

    def build(make: Maker) -> Mapping[ir.Value, ir.Value]:
        value = blocks.source
        if blocks.last:
            value = make.op("Transpose", value, perm=[0, 3, 1, 2])
        value = make.op("SpaceToDepth", value, blocksize=blocks.block)
        if blocks.last:
            value = make.op("Transpose", value, perm=[0, 2, 3, 1])
        if not blocks.is_by_rows:
            value = make.op("Gather", value, make.constant(_taken(blocks), "order"), axis=3 if blocks.last else 1)
        return {node.outputs[0]: value}

    return Match(blocks.nodes, build)


def _with_convolution(blocks: Blocks, reader: ir.Node, weights: Weights) -> Match:
    def build(make: Maker) -> Mapping[ir.Value, ir.Value]:
        value = _on_grid(make, make.op("SpaceToDepth", blocks.source, blocksize=blocks.block), blocks)
        array = _by_rows(weights.array, blocks).reshape(weights.array.shape)
        return {reader.outputs[0]: _again(make, reader, value, weights.made(make, array), window=None)}

    return Match((reader, *blocks.nodes), build)


def focus_to_reshapes(node: ir.Node) -> Match | None:
    """Strided slices and a Concat → one Transpose between two Reshapes, where pixels are in a regular order."""
    blocks = _slices(node)
    if blocks is None:
        return None
    columns_first = sorted(blocks.order, key=lambda pixel: pixel[::-1])
    if not blocks.is_by_rows and list(blocks.order) != columns_first:
        return None
    extents, size = extents_of(blocks.source), blocks.block
    if None in extents[1:]:
        return None
    _, *inner = (extent or 0 for extent in extents)
    first, second = (2, 4) if blocks.is_by_rows else (4, 2)  # of the axes of six, the outer one and the inner one
    if blocks.last:
        rows, columns, channels = inner
        apart = [rows // size, size, columns // size, size, channels]
        order = [0, 1, 3, first, second, 5]
        together = [rows // size, columns // size, channels * size**2]
    else:
        channels, rows, columns = inner
        apart = [channels, rows // size, size, columns // size, size]
        order = [0, first + 1, second + 1, 1, 2, 4]
        together = [channels * size**2, rows // size, columns // size]

    def build(make: Maker) -> Mapping[ir.Value, ir.Value]:
        value = make.op("Reshape", blocks.source, make.constant([0, *apart], "shape"))
        value = make.op("Transpose", value, perm=order)
        return {node.outputs[0]: make.op("Reshape", value, make.constant([0, *together], "shape"))}

    return Match(blocks.nodes, build)


def focus_to_strided_conv(node: ir.Node) -> Match | None:
    """Blocks as channels, read by a convolution → a convolution with a larger kernel and stride on the picture."""
    blocks = _blocks(node.inputs[0]) if is_op(node, "Conv") else None
    weights = None if blocks is None else _input_weights(node, node.inputs[0])
    window = None if weights is None else window_of(node, weights.array.shape[2:])
    if blocks is None or blocks.last or weights is None or window is None or window.rank != 2:
        return None
    if any(step > 1 and size > 1 for step, size in zip(window.dilations, window.kernel, strict=True)):
        return None  # taps of a block would lie apart
    size = blocks.block
    kernel, strides, begins, ends = (
        tuple(size * each for each in part) for part in (window.kernel, window.strides, window.begins, window.ends)
    )
    larger = Window(kernel, strides, (1, 1), begins, ends)

    def build(make: Maker) -> Mapping[ir.Value, ir.Value]:
        outputs, channels, *_ = weights.array.shape
        taps = _by_rows(weights.array, blocks).reshape(outputs, size, size, channels // size**2, *window.kernel)
        array = taps.transpose(0, 3, 4, 1, 5, 2).reshape(outputs, channels // size**2, *larger.kernel)
        picture = _on_grid(make, blocks.source, blocks)
        return {node.outputs[0]: _again(make, node, picture, weights.made(make, array), window=larger)}

    return Match((node, *blocks.nodes), build)


def strided_conv_to_space_to_depth(node: ir.Node) -> Match | None:
    """A convolution of stride 2 on a picture of few channels → one of stride 1 on its blocks as channels."""
    source = node.inputs[0] if is_op(node, "Conv") else None
    weights = None if source is None else _input_weights(node, source)
    window, shape = None if weights is None else window_of(node, weights.array.shape[2:]), shape_of(source)
    if source is None or weights is None or weights.zero is None or window is None or shape is None or len(shape) != 4:
        return None
    _, channels, rows, columns = shape
    if window.strides != (2, 2) or window.dilations != (1, 1) or channels > FEW_CHANNELS or rows % 2 or columns % 2:
        return None
    # A row that the window reads lies `begin` before twice the output's row. Where that is odd, a row of zeros goes
    # before the kernel, so that blocks are read whole: 3 taps padded by 1 are 4 taps padded by 2, 2 blocks padded by 1.
    begins = [-(-begin // 2) for begin in window.begins]
    shifts = [2 * blocks - begin for blocks, begin in zip(begins, window.begins, strict=True)]
    kernel = [-(-(size + shift) // 2) for size, shift in zip(window.kernel, shifts, strict=True)]
    outputs = window.outputs((rows, columns))
    ends = [
        output - 1 + size - begin - extent // 2
        for output, size, begin, extent in zip(outputs, kernel, begins, (rows, columns), strict=True)
    ]
    if min(ends) < 0:  # the last rows are not read
        return None
    smaller = Window(tuple(kernel), (1, 1), (1, 1), tuple(begins), tuple(ends))

    def build(make: Maker) -> Mapping[ir.Value, ir.Value]:
        count = weights.array.shape[0]
        wide = np.full((count, channels, 2 * kernel[0], 2 * kernel[1]), weights.zero, weights.array.dtype)
        (down, across), (high, broad) = shifts, window.kernel
        wide[:, :, down : down + high, across : across + broad] = weights.array
        taps = wide.reshape(count, channels, kernel[0], 2, kernel[1], 2).transpose(0, 3, 5, 1, 2, 4)
        value = on_grid_of(make, make.op("SpaceToDepth", source, blocksize=2), source)
        filled = weights.made(make, taps.reshape(count, 4 * channels, *kernel))
        return {node.outputs[0]: _again(make, node, value, filled, window=smaller)}

    return Match((node,), build)


def _again(make: Maker, node: ir.Node, value: ir.Value, weights: ir.Value, *, window: Window | None) -> ir.Value:
    """The same convolution of another value with other weights, and another window if one is given."""
    kept = {name: each.value for name, each in node.attributes.items()}
    if window is not None:
        kept = {"group": attribute(node, "group", 1), **window.attributes()}
    shape = shape_of(node.outputs[0])
    return make.op("Conv", value, weights, *node.inputs[2:], dtype=node.outputs[0].dtype, shape=shape, **kept)


def _by_rows(weights: Array, blocks: Blocks) -> Array:
    """Weights with the groups of input channels where they are when pixels are taken row by row."""
    outputs, channels, *kernel = weights.shape
    groups = weights.reshape(outputs, blocks.block**2, channels // blocks.block**2, *kernel)
    places = blocks.ranks
    return groups[:, [places.index(rank) for rank in range(blocks.block**2)]]


def _taken(blocks: Blocks) -> list[int]:
    """For each channel, which one it is when pixels are taken row by row."""
    channels = blocks.channels or 0
    return [rank * channels + channel for rank in blocks.ranks for channel in range(channels)]


def _input_weights(node: ir.Node, value: ir.Value | None) -> Weights | None:
    """The weights of a convolution in one group that reads a value as its picture only."""
    if attribute(node, "group", 1) != 1 or node.inputs[0] is not value or value in node.inputs[1:]:
        return None
    weights = weights_of(node.inputs[1])
    return None if weights is None or weights.by_axis == 1 else weights


def _read_by(value: ir.Value) -> tuple[ir.Node | None, tuple[ir.Node, ...]]:
    """The one convolution that reads a value, and the ops that put it on a grid before."""
    first = only_reader(value, "QuantizeLinear")
    second = None if first is None else only_reader(first.outputs[0], "DequantizeLinear")
    if first is None or second is None or grid_of(first) is None or grid_of(first) != grid_of(second):
        return only_reader(value, "Conv"), ()
    return only_reader(second.outputs[0], "Conv"), (first, second)


def _on_grid(make: Maker, value: ir.Value, blocks: Blocks) -> ir.Value:
    """A value on the grid that the channels were put on; one that is on it already stays."""
    if blocks.pair and grid_of(blocks.pair[0]) != grid_of(producer(value)):
        for node in blocks.pair:
            value = make.op(node.op_type, value, *node.inputs[1:], dtype=node.outputs[0].dtype)
    return value


def _blocks(value: ir.Value | None) -> Blocks | None:
    """Blocks as channels, maybe put on a grid."""
    pair = pair_of(value)
    found = _bare_blocks(value if pair is None else pair[0].inputs[0])
    if found is None or pair is None:
        return found
    return replace(found, nodes=(*pair[::-1], *found.nodes), pair=pair)


def _bare_blocks(value: ir.Value | None) -> Blocks | None:
    node = producer(value, "Concat", "SpaceToDepth")
    if node is None or node.op_type == "Concat":
        return None if node is None else _slices(node)
    size, source = attribute(node, "blocksize", 0), node.inputs[0]
    if source is None or size < 1:
        return None
    return Blocks((node,), source, size, False, tuple((row, column) for row in range(size) for column in range(size)))


def _slices(node: ir.Node) -> Blocks | None:
    """Blocks that a Concat makes of strided slices of one value, each pixel of the block once."""
    found = [_pieces(value) for value in node.inputs] if is_op(node, "Concat") else []
    if not found or any(piece is None for piece in found):
        return None
    pieces = [piece for piece in found if piece is not None]
    source, size, axes, nodes = pieces[0][0], pieces[0][1], sorted(pieces[0][2]), [node]
    if any(each[:2] != (source, size) or sorted(each[2]) != axes for each in pieces) or len(axes) != 2:
        return None
    order = tuple((cut[axes[0]], cut[axes[1]]) for _, _, cut, _ in pieces)
    last, rank = axes == [1, 2], len(extents_of(source))
    if rank != 4 or axes not in ([1, 2], [2, 3]) or attribute(node, "axis", 0) % rank != (3 if last else 1):
        return None
    if len(order) != size**2 or len(set(order)) != size**2:
        return None
    for _, _, _, slices in pieces:
        nodes += [each for each in slices if each not in nodes]
    return Blocks(tuple(nodes), source, size, last, order)


def _pieces(value: ir.Value | None) -> tuple[ir.Value, int, Cut, list[ir.Node]] | None:
    """The source of a chain of strided slices, their one step, what they keep by axis, and the ops of the chain.

    What is cut from a value on a grid, and put on the same grid again, is as it was.
    """
    cut: dict[int, int] = {}
    steps, grids, nodes = set(), set(), list[ir.Node]()
    while value is not None:
        pair = pair_of(value)
        node = producer(value if pair is None else pair[0].inputs[0], "Slice")
        found = None if node is None else _strided(node)
        if node is None or found is None or not cut.keys().isdisjoint(found[1]):
            break
        if pair is not None:
            nodes += pair[::-1]
            grids.add(grid_of(pair[0]))
        steps.add(found[0])
        cut.update(found[1])
        nodes.append(node)
        value = node.inputs[0]
    if value is None or len(steps) != 1 or (grids and grids != {grid_of(producer(value))}):
        return None
    return value, steps.pop(), cut, nodes


def _strided(node: ir.Node) -> tuple[int, Cut] | None:
    """The step of a slice and the element of each block that it keeps, where blocks are whole and none is left out."""
    data, starts, ends, axes, steps = (*node.inputs, None, None, None, None)[:5]  # old versions have attributes
    extents = extents_of(data)
    begins, stops, strides = numbers_of(starts), numbers_of(ends), numbers_of(steps)
    along = list(range(len(begins or ()))) if axes is None else numbers_of(axes)
    if not extents or begins is None or stops is None or along is None or strides is None:
        return None
    if not len(begins) == len(stops) == len(along) == len(strides) or any(axis >= len(extents) for axis in along):
        return None
    cut, taken = {}, set()
    for axis, begin, stop, step in zip(along, begins, stops, strides, strict=True):
        if not 0 <= begin < step or not _is_all(extents[axis], begin, stop, step):
            return None
        if step > 1:
            cut[axis % len(extents)] = begin
            taken.add(step)
    return (taken.pop(), cut) if len(taken) == 1 else None


def _is_all(extent: int | None, begin: int, stop: int, step: int) -> bool:
    """Whether a slice reaches into every block of an axis; of unknown length it has whole blocks or does not run."""
    if extent is None:
        return stop >= TO_THE_END
    end = min(stop, extent) if stop >= 0 else stop + extent
    return extent % step == 0 and -(-(end - begin) // step) == extent // step
