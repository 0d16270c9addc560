"""Convolutions and pools: their padding, their dilation, and what stands around them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any

import numpy as np

from .layout import reshape
from .rule import (
    NO_ACTIVATION,
    RELU,
    RELU6,
    RELU_N1_TO_1,
    SAME,
    VALID,
    Array,
    Graph,
    Maker,
    Match,
    Op,
    Tensor,
    activation,
    array_of,
    extents,
    is_alike,
    is_float,
    numbers_of,
    options,
    scale_of,
    shape_of,
    with_options,
)

CONVOLUTIONS = ("CONV_2D", "DEPTHWISE_CONV_2D")


def fold_pad(op: Op, graph: Graph) -> Match | None:
    """Zeros that are added before a window of padding VALID, where SAME would add just these."""
    is_pool = op.kind == "MAX_POOL_2D"
    pad = graph.writer(op.inputs[0], "PAD", "PADV2") if is_pool or op.kind in CONVOLUTIONS else None
    if pad is None or op.options.padding != VALID or pad.inputs[0] is None:
        return None
    source = pad.inputs[0]
    if not is_alike(source, pad.outputs[0]) or not _adds_zeros(pad) or (is_pool and not _is_lowest(source, graph)):
        return None
    wanted, added = _same_padding(op, source), numbers_of(pad.inputs[1])
    if wanted is None or added != wanted:
        return None

    def build(make: Maker) -> Mapping[Tensor, Tensor]:
        same = with_options(op, padding=SAME)
        return {op.outputs[0]: make.op(op.kind, source, *op.inputs[1:], like=op.outputs[0], options=same)}

    return Match((op, pad), build)


def _adds_zeros(pad: Op) -> bool:
    """Whether the value that is added stands for zero."""
    if pad.kind == "PAD":
        return True
    value, scale = array_of(pad.inputs[2]), scale_of(pad.outputs[0])
    zero = 0 if scale is None else scale.zero_points[0]
    return value is not None and bool((value == zero).all())


def _is_lowest(source: Tensor, graph: Graph) -> bool:
    """Whether no value of a tensor is below zero, so that zeros never are the largest but with others."""
    scale = scale_of(source)
    if scale is not None:
        return source.dtype in _LOWEST and scale.zero_points == (_LOWEST[source.dtype],)
    writer = graph.writer(source)
    return writer is not None and (writer.kind in ("RELU", "RELU6") or activation(writer) in (RELU, RELU6))


_LOWEST = {9: -128, 3: 0}  # of TensorType INT8 and UINT8


def _window(op: Op) -> tuple[tuple[int, int], tuple[int, int], tuple[int, int]] | None:
    """Height and width of a window, its strides and dilations."""
    given = op.options
    if op.kind in ("MAX_POOL_2D", "AVERAGE_POOL_2D"):
        size: Any = (given.filterHeight, given.filterWidth)
        return size, (given.strideH, given.strideW), (1, 1)
    kernel = extents(op.inputs[1])
    if kernel is None or len(kernel) != 4:
        return None
    dilation = (max(given.dilationHFactor, 1), max(given.dilationWFactor, 1))
    return (kernel[1], kernel[2]), (given.strideH, given.strideW), dilation


def _same_padding(op: Op, source: Tensor) -> list[int] | None:
    """What SAME adds before and after each axis of the input."""
    shape, window = extents(source), _window(op)
    if shape is None or len(shape) != 4 or window is None or min(shape[1:3]) < 1:
        return None
    result = [0, 0]
    for size, kernel, stride, dilation in zip(shape[1:3], *window, strict=True):
        reach = (kernel - 1) * dilation + 1
        total = max((-(-size // stride) - 1) * stride + reach - size, 0)
        result += [total // 2, total - total // 2]
    return [*result, 0, 0]


def fold_dilation(op: Op, graph: Graph) -> Match | None:
    """A convolution between SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND is one with a dilation."""
    conv = graph.writer(op.inputs[0], *CONVOLUTIONS) if op.kind == "BATCH_TO_SPACE_ND" else None
    before = None if conv is None else graph.writer(conv.inputs[0], "SPACE_TO_BATCH_ND")
    if conv is None or before is None or before.inputs[0] is None or graph.only_reader(conv.outputs[0]) is None:
        return None
    source, result = before.inputs[0], op.outputs[0]
    blocks, padding, others, crops = (numbers_of(each) for each in (*before.inputs[1:3], *op.inputs[1:3]))
    window = _window(conv)
    if blocks is None or padding is None or crops is None or blocks != others or len(blocks) != 2 or window is None:
        return None
    kernel, strides, dilations = window
    if conv.options.padding != VALID or strides != (1, 1) or dilations != (1, 1):
        return None
    alike = is_alike(source, before.outputs[0]) and is_alike(conv.outputs[0], result)
    shapes = shape_of(source), shape_of(result)
    if not alike or shapes[0] is None or shapes[1] is None:
        return None
    # A crop takes off rows that were added to fill the last block; what stays of the padding is the convolution's.
    kept = [padding[n] - crops[n] for n in range(4)]
    reach = [(size - 1) * block for size, block in zip(kernel, blocks, strict=True)]
    dilated = with_options(conv, dilationHFactor=blocks[0], dilationWFactor=blocks[1])
    if crops[0] or crops[2]:
        return None
    if kept == [0, 0, 0, 0]:
        mode = VALID
    elif kept == [each for size in reach for each in (size // 2, size - size // 2)]:
        mode = SAME
    else:
        return None
    if any(new != old - (reach[n] if mode == VALID else 0) for n, (new, old) in enumerate(_spatial(shapes))):
        return None
    dilated.padding = mode  # type: ignore[attr-defined]

    def build(make: Maker) -> Mapping[Tensor, Tensor]:
        return {result: make.op(conv.kind, source, *conv.inputs[1:], like=result, options=dilated)}

    return Match((op, conv, before), build)


def _spatial(shapes: Sequence[Any]) -> list[tuple[int, int]]:
    """Rows and columns of a result and of what it is made from."""
    source, result = shapes
    return [(result[1], source[1]), (result[2], source[2])]


def fuse_activation(op: Op, graph: Graph) -> Match | None:
    """RELU and RELU6 after an operator that can have them within."""
    within = {"RELU": RELU, "RELU6": RELU6, "RELU_N1_TO_1": RELU_N1_TO_1}.get(op.kind)
    first = graph.writer(op.inputs[0]) if within is not None else None
    if first is None or first.kind not in _FUSING or graph.only_reader(first.outputs[0]) is not op:
        return None
    if activation(first) != NO_ACTIVATION or first.options is None or not is_alike(first.outputs[0], op.outputs[0]):
        return None
    if not is_float(op.outputs[0]) and scale_of(op.outputs[0]) is None:
        return None

    def build(make: Maker) -> Mapping[Tensor, Tensor]:
        fused = with_options(first, fusedActivationFunction=within)
        result = make.op(first.kind, *first.inputs, like=op.outputs[0], options=fused)
        make.ops[-1].code = first.code
        return {op.outputs[0]: result}

    return Match((op, first), build)


_FUSING = frozenset((*CONVOLUTIONS, "FULLY_CONNECTED", "ADD", "SUB", "MUL", "AVERAGE_POOL_2D", "MAX_POOL_2D"))


def unit_stride(op: Op, graph: Graph) -> Match | None:
    """A window that fits once along an axis needs no stride there."""
    pools = ("AVERAGE_POOL_2D", "MAX_POOL_2D")
    shape = shape_of(op.outputs[0]) if op.kind in (*pools, *CONVOLUTIONS) else None
    if shape is None or len(shape) != 4 or op.options.padding != VALID:
        return None
    source, window = shape_of(op.inputs[0]), _window(op)
    if source is None or window is None:
        return None
    kernel, strides, dilations = window
    reach = [(size - 1) * step + 1 for size, step in zip(kernel, dilations, strict=True)]
    once = [shape[1 + n] == 1 and source[1 + n] == reach[n] and strides[n] > 1 for n in (0, 1)]
    if not any(once):
        return None
    high, wide = (1 if once[n] else strides[n] for n in (0, 1))

    def build(make: Maker) -> Mapping[Tensor, Tensor]:
        less = with_options(op, strideH=high, strideW=wide)
        result = make.op(op.kind, *op.inputs, like=op.outputs[0], options=less)
        make.ops[-1].code = op.code
        return {op.outputs[0]: result}

    return Match((op,), build)


def grouped_conv_to_convs(op: Op, graph: Graph) -> Match | None:
    """A convolution in groups is one for each, of parts that are joined again."""
    source, weights = op.inputs[:2] if op.kind == "CONV_2D" else (None, None)
    shape, kernel, target = shape_of(source), array_of(weights), shape_of(op.outputs[0])
    if source is None or weights is None or shape is None or kernel is None or target is None:
        return None
    groups = shape[3] // kernel.shape[3]
    bias = op.inputs[2] if len(op.inputs) > 2 else None
    sums = array_of(bias)
    if not 1 < groups <= _MOST_GROUPS or (bias is not None and sums is None) or kernel.shape[0] % groups:
        return None
    units, deep = kernel.shape[0] // groups, kernel.shape[3]

    def build(make: Maker) -> Mapping[Tensor, Tensor]:
        axis = make.constant(np.asarray(3, np.int32), name="axis")
        parts = [(*shape[:3], deep)] * groups
        cut = make.parts(
            "SPLIT", axis, source, like=source, shapes=parts, options=options("SplitOptions", numSplits=groups)
        )
        made: list[Tensor] = []
        for number, part in enumerate(cut):
            rows = slice(number * units, (number + 1) * units)
            own = make.constant(kernel[rows], like=weights, name="weights")
            _cut_scales(own, rows)
            offset = [] if sums is None else [make.constant(sums[rows], like=bias, name="bias")]
            for each in offset:
                _cut_scales(each, rows)
            size = (*target[:3], units)
            made.append(make.op("CONV_2D", part, own, *offset, like=op.outputs[0], shape=size, options=op.options))
        joined = options("ConcatenationOptions", axis=3)
        return {op.outputs[0]: make.op("CONCATENATION", *made, like=op.outputs[0], options=joined)}

    return Match((op,), build)


_MOST_GROUPS = 32


def _cut_scales(tensor: Tensor, rows: slice) -> None:
    """Keep the scales of some units."""
    table = tensor.table.quantization
    if table is None or table.scale is None or len(table.scale) < 2:
        return
    table = copy(table)
    table.scale = np.asarray(table.scale)[rows]
    table.zeroPoint = None if table.zeroPoint is None else np.asarray(table.zeroPoint)[rows]
    table.min = table.max = None
    tensor.table.quantization = table


def mean_to_average_pool(op: Op, graph: Graph) -> Match | None:
    """The mean over rows and columns is a pool of a window as large as the picture."""
    source = op.inputs[0] if op.kind == "MEAN" else None
    shape, axes = extents(source), numbers_of(op.inputs[1]) if source is not None else None
    target = extents(op.outputs[0])
    if source is None or shape is None or axes is None or len(shape) != 4 or target is None or min(shape[1:]) < 1:
        return None
    if sorted(axis % 4 for axis in axes) != [1, 2] or not is_float(source):  # integers round otherwise
        return None

    def build(make: Maker) -> Mapping[Tensor, Tensor]:
        size = {"filterHeight": shape[1], "filterWidth": shape[2], "strideH": shape[1], "strideW": shape[2]}
        pool = options("Pool2DOptions", padding=VALID, **size)
        pooled = make.op("AVERAGE_POOL_2D", source, like=source, shape=(shape[0], 1, 1, shape[3]), options=pool)
        return {op.outputs[0]: pooled if len(target) == 4 else reshape(make, pooled, target, op.outputs[0])}

    return Match((op,), build) if sum(extent < 0 for extent in target) <= 1 else None


def average_pool_to_mean(op: Op, graph: Graph) -> Match | None:
    """A pool of a window as large as the picture is the mean over rows and columns."""
    source = op.inputs[0] if op.kind == "AVERAGE_POOL_2D" else None
    shape, window = extents(source), None if source is None else _window(op)
    if source is None or shape is None or window is None or not is_float(source) or activation(op):
        return None
    if op.options.padding != VALID or window[0] != shape[1:3]:
        return None

    def build(make: Maker) -> Mapping[Tensor, Tensor]:
        axes = make.constant([1, 2], name="axes")
        keep = options("ReducerOptions", keepDims=True)
        return {op.outputs[0]: make.op("MEAN", source, axes, like=op.outputs[0], options=keep)}

    return Match((op,), build)


def fold_focus(op: Op, graph: Graph) -> Match | None:
    """Strided slices joined, or SPACE_TO_DEPTH, and a convolution of stride 1 as one of a larger kernel and stride."""
    weights = op.inputs[1] if op.kind == "CONV_2D" else None
    kernel = array_of(weights)
    taps = squares(op.inputs[0], graph) if kernel is not None else None
    if weights is None or kernel is None or taps is None:
        return None
    source, block, corners, pattern = taps
    shape, result = extents(source), op.outputs[0]
    window = _window(op)
    if shape is None or window is None or window[1:] != ((1, 1), (1, 1)) or not is_alike(source, pattern[0].outputs[0]):
        return None
    size = window[0]
    if any(extent % block or extent < 1 for extent in shape[1:3]):
        return None
    # SAME pads an even number of rows of the larger picture evenly only if the small one was padded evenly.
    if op.options.padding == SAME and not (size[0] % 2 and size[1] % 2):
        return None

    def build(make: Maker) -> Mapping[Tensor, Tensor]:
        wide = make.constant(_spread(kernel, shape[3], block, corners), like=weights, name="weights")
        strided = with_options(op, strideH=block, strideW=block)
        return {result: make.op("CONV_2D", source, wide, *op.inputs[2:], like=result, options=strided)}

    return Match((op, *pattern), build)


def _spread(kernel: Array, channels: int, block: int, corners: Sequence[tuple[int, int]]) -> Array:
    """The weights of a convolution over squares of pixels, as those over the pixels themselves."""
    units, height, width, _ = kernel.shape
    wide = np.zeros((units, height, block, width, block, channels), kernel.dtype)
    for number, (row, column) in enumerate(corners):
        wide[:, :, row, :, column] = kernel[..., number * channels : (number + 1) * channels]
    return wide.reshape(units, height * block, width * block, channels)


def squares(tensor: Tensor | None, graph: Graph) -> tuple[Tensor, int, list[tuple[int, int]], tuple[Op, ...]] | None:
    """What squares of pixels were joined to channels: picture, side of a square, corners in order, operators."""
    op = graph.writer(tensor, "SPACE_TO_DEPTH", "CONCATENATION")
    if op is None or op.inputs[0] is None:
        return None
    if op.kind == "SPACE_TO_DEPTH":
        block = int(op.options.blockSize)
        return op.inputs[0], block, [(row, column) for row in range(block) for column in range(block)], (op,)
    rank = len(extents(op.inputs[0]) or ())
    if rank != 4 or op.options.axis % 4 != 3 or activation(op):
        return None
    cuts = [_corner(part, graph) for part in op.inputs]
    first = cuts[0]
    if first is None or any(cut is None or cut[0] is not first[0] or cut[1] != first[1] for cut in cuts):
        return None
    corners = [cut[2] for cut in cuts if cut is not None]
    block = first[1]
    if sorted(corners) != [(row, column) for row in range(block) for column in range(block)]:
        return None
    return first[0], block, corners, (op, *dict.fromkeys(each for cut in cuts if cut is not None for each in cut[3]))


def _corner(tensor: Tensor | None, graph: Graph) -> tuple[Tensor, int, tuple[int, int], tuple[Op, ...]] | None:
    """The picture that a chain of strided slices takes one pixel of each square from, the square's side, and which."""
    start, steps, ops = [0, 0, 0, 0], [1, 1, 1, 1], []
    while (op := graph.writer(tensor, "STRIDED_SLICE")) is not None:
        cut = _strided(op)
        if cut is None or not is_alike(op.outputs[0], op.inputs[0] or op.outputs[0]):
            return None
        start = [begin + step * inner for begin, step, inner in zip(cut[0], cut[1], start, strict=True)]
        steps = [step * inner for step, inner in zip(cut[1], steps, strict=True)]
        ops.append(op)
        tensor = op.inputs[0]
    block = steps[1]
    shape = shape_of(tensor) if tensor is not None else None
    if tensor is None or not ops or steps != [1, block, block, 1] or block < 2 or start[0] or start[3]:
        return None
    if shape is None or start[1] >= block or start[2] >= block:
        return None
    return tensor, block, (start[1], start[2]), tuple(ops)


def _strided(op: Op) -> tuple[list[int], list[int]] | None:
    """First element and step of each of four axes of a slice that goes on to the end of each."""
    given, shape = op.options, shape_of(op.inputs[0])
    begin, end, steps = (numbers_of(each) for each in op.inputs[1:4])
    if shape is None or len(shape) != 4 or begin is None or end is None or steps is None or len(begin) != 4:
        return None
    if given.ellipsisMask or given.newAxisMask or given.shrinkAxisMask or getattr(given, "offset", False):
        return None
    first = [0 if given.beginMask >> axis & 1 else begin[axis] for axis in range(4)]
    last = [shape[axis] if given.endMask >> axis & 1 else min(end[axis], shape[axis]) for axis in range(4)]
    # The last elements may be left out only as far as a step does anyway.
    whole = all(
        a >= 0 and s > 0 and n - b < s and (b > a) for a, b, s, n in zip(first, last, steps, shape, strict=True)
    )
    counts = [(b - a + s - 1) // s for a, b, s in zip(first, last, steps, strict=True)]
    full = [(n - a + s - 1) // s for a, s, n in zip(first, steps, shape, strict=True)]
    return (first, steps) if whole and counts == full else None
