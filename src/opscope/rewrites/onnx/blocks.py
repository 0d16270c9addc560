"""Pixels moved between blocks and channels by reshapes and a transpose, and pictures enlarged by repeating pixels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx_ir as ir

from .rule import Maker, Match, Shape, array_of, attribute, is_op, shape_of
from .windows import moved_from, on_grid_of

DTYPES = {ir.DataType.FLOAT: np.float32, ir.DataType.FLOAT16: np.float16}
MOST_REPEATS = 8  # of a pixel along an axis
# Where a Resize to a multiple of the size repeats each pixel: modes of coordinates → of rounding. A pixel r of s lies
# at r / s of its block, or at (r + 0.5) / s - 0.5 of it, which is less than half a pixel from the block's own.
REPEATING = {
    "asymmetric": ("floor",),
    "half_pixel": ("round_prefer_floor", "round_prefer_ceil"),
    "half_pixel_symmetric": ("round_prefer_floor", "round_prefer_ceil"),
    "pytorch_half_pixel": ("round_prefer_floor", "round_prefer_ceil"),
}


def reshapes_to_blocks(node: ir.Node) -> Match | None:
    """Reshape, Transpose and Reshape that move pixels → SpaceToDepth or DepthToSpace."""
    found = moved_from(node.inputs[0], ("Transpose",), ("Reshape",)) if is_op(node, "Reshape") else None
    if found is None:
        return None
    source, (turn, apart), nodes = found
    before, between, after = (shape_of(value) for value in (source, apart.outputs[0], node.outputs[0]))
    if before is None or between is None or after is None or (len(before), len(between), len(after)) != (4, 6, 4):
        return None
    form = _form(before, between, tuple(attribute(turn, "perm", ())), after)
    if form is None:
        return None
    kind, block, attributes, is_last, order = form

    def build(make: Maker) -> Mapping[ir.Value, ir.Value]:
        value = on_grid_of(make, make.op("Transpose", source, perm=[0, 3, 1, 2]), source) if is_last else source
        value = make.op(kind, value, blocksize=block, **attributes)
        if is_last:
            value = make.op("Transpose", on_grid_of(make, value, source), perm=[0, 2, 3, 1])
        if order is not None:
            value = make.op("Gather", on_grid_of(make, value, source), make.constant(order, "order"), axis=1)
        value.shape = ir.Shape(after)
        return {node.outputs[0]: value}

    return Match((node, *nodes), build)


Form = tuple[str, int, Mapping[str, Any], bool, list[int] | None]


def _form(before: Shape, between: Shape, order: Shape, after: Shape) -> Form | None:
    """The op that moves pixels so: its kind, block and mode, whether channels are last, and their order after it."""
    batch, *inner = between
    if order in ((0, 3, 5, 1, 2, 4), (0, 1, 3, 5, 2, 4)):
        channels, rows, block, columns, other = inner
        fits = before == (batch, channels, rows * block, columns * block) and after[1:3] == (channels * block**2, rows)
        taken = np.arange(channels * block**2).reshape(block**2, channels).T.ravel().tolist()
        moved = None if order[1] == 3 else taken
        return ("SpaceToDepth", block, {}, False, moved) if fits and block == other > 1 else None
    if order == (0, 3, 4, 1, 5, 2):
        block, other, channels, rows, columns = inner
        mode = "DCR"
    elif order == (0, 1, 4, 2, 5, 3):
        channels, block, other, rows, columns = inner
        mode = "CRD"
    elif order == (0, 1, 3, 2, 4, 5):
        return _channels_last(before, between, after)
    else:
        return None
    if block != other or block < 2 or before != (batch, channels * block**2, rows, columns):
        return None
    fits = after == (batch, channels, rows * block, columns * block)
    return ("DepthToSpace", block, {"mode": mode}, False, None) if fits else None


def _channels_last(before: Shape, between: Shape, after: Shape) -> Form | None:
    batch, first, second, third, fourth, channels = between
    if second == fourth > 1 and before == (batch, first * second, third * fourth, channels):
        fits = after == (batch, first, third, channels * second**2)
        return ("SpaceToDepth", second, {}, True, None) if fits else None
    if third == fourth > 1 and before == (batch, first, second, channels * third**2):
        fits = after == (batch, first * third, second * third, channels)
        return ("DepthToSpace", third, {"mode": "DCR"}, True, None) if fits else None
    return None


def resize_to_depth_to_space(node: ir.Node) -> Match | None:
    """A Resize that repeats pixels → copies of the channels and DepthToSpace."""
    found = _repeats(node)
    if found is None or found[1][0] != found[1][1]:
        return None
    shape, (times, _) = found

    def build(make: Maker) -> Mapping[ir.Value, ir.Value]:
        batch, channels, rows, columns = shape
        wide = (batch, channels * times**2, rows, columns)
        copies = make.op("Concat", *[node.inputs[0]] * times**2, shape=wide, axis=1)
        return {node.outputs[0]: make.op("DepthToSpace", copies, shape=shape_of(node.outputs[0]), blocksize=times)}

    return Match((node,), build)


def resize_to_conv_transpose(node: ir.Node) -> Match | None:
    """A Resize that repeats pixels → a ConvTranspose of each channel with ones."""
    found, dtype = _repeats(node), node.outputs[0].dtype if is_op(node, "Resize") else None
    if found is None or dtype not in DTYPES:
        return None
    shape, times = found

    def build(make: Maker) -> Mapping[ir.Value, ir.Value]:
        ones = make.constant(np.ones((shape[1], 1, *times), DTYPES[dtype]), "ones")
        made = make.op(
            "ConvTranspose", node.inputs[0], ones, shape=shape_of(node.outputs[0]), group=shape[1], strides=[*times]
        )
        return {node.outputs[0]: made}

    return Match((node,), build)


def resize_to_expand(node: ir.Node) -> Match | None:
    """A Resize that repeats pixels → Reshape, Expand and Reshape."""
    found = _repeats(node)
    if found is None:
        return None
    (batch, channels, rows, columns), (down, across) = found

    def build(make: Maker) -> Mapping[ir.Value, ir.Value]:
        thin, wide = (batch, channels, rows, 1, columns, 1), (batch, channels, rows, down, columns, across)
        value = make.op("Reshape", node.inputs[0], make.constant([*thin], "shape"), shape=thin)
        value = make.op("Expand", value, make.constant([*wide], "shape"), shape=wide)
        after = (batch, channels, rows * down, columns * across)
        return {node.outputs[0]: make.op("Reshape", value, make.constant([*after], "shape"), shape=after)}

    return Match((node,), build)


def expand_to_resize(node: ir.Node) -> Match | None:
    """Reshape or Unsqueeze, Expand or Tile, and Reshape, which repeat pixels, → a Resize."""
    kinds = ("Expand", "Tile"), ("Reshape", "Unsqueeze")
    found = moved_from(node.inputs[0], *kinds) if is_op(node, "Reshape") else None
    if found is None or node.outputs[0].dtype not in DTYPES:
        return None
    source, (spread, apart), nodes = found
    before, thin, wide, after = (
        shape_of(value) for value in (source, apart.outputs[0], spread.outputs[0], node.outputs[0])
    )
    if before is None or thin is None or wide is None or after is None or len(before) != 4 or len(wide) != 6:
        return None
    batch, channels, rows, columns = before
    times = wide[3], wide[5]
    if thin != (batch, channels, rows, 1, columns, 1) or wide != (batch, channels, rows, times[0], columns, times[1]):
        return None
    if after != (batch, channels, rows * times[0], columns * times[1]):
        return None

    def build(make: Maker) -> Mapping[ir.Value, ir.Value]:
        scales = make.constant(np.array([1, 1, *times], np.float32), "scales")
        modes: dict[str, Any] = {
            "mode": "nearest",
            "coordinate_transformation_mode": "asymmetric",
            "nearest_mode": "floor",
        }
        return {node.outputs[0]: make.op("Resize", source, None, scales, shape=after, **modes)}

    return Match((node, *nodes), build)


def _repeats(node: ir.Node) -> tuple[Shape, tuple[int, int]] | None:
    """The shape of the picture that a Resize reads, and how often it repeats a pixel down and across."""
    if not is_op(node, "Resize") or attribute(node, "mode", "nearest") != "nearest":
        return None
    coordinates = attribute(node, "coordinate_transformation_mode", "half_pixel")
    if attribute(node, "nearest_mode", "round_prefer_floor") not in REPEATING.get(coordinates, ()):
        return None
    before, after = shape_of(node.inputs[0]), shape_of(node.outputs[0])
    if before is None or after is None or len(before) != 4 or before[:2] != after[:2]:
        return None
    if any(old < 1 or new % old or not 1 <= new // old <= MOST_REPEATS for old, new in zip(before, after, strict=True)):
        return None
    times = after[2] // before[2], after[3] // before[3]
    return None if times == (1, 1) or not _is_whole(node, (1, 1, *times)) else (before, times)


def _is_whole(node: ir.Node, times: tuple[int, ...]) -> bool:
    """Whether the scales of a Resize, if it has any, are just as many times; one of 2.3 would give other pixels."""
    scales = node.inputs[2] if len(node.inputs) > 2 else None
    if scales is None or shape_of(scales) == (0,):
        return True
    array, axes = array_of(scales), attribute(node, "axes")
    wanted = times if axes is None else tuple(times[axis] for axis in axes)
    return array is not None and tuple(array.ravel().tolist()) == wanted
