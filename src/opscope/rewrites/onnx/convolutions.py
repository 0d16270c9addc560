"""Convolutions in the forms that engines are made for: two axes, small kernels, no dilation, one group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np
import onnx_ir as ir

from .rule import Array, Maker, Match, array_of, attribute, is_op, numbers_of, only_reader, opset_of, producer, shape_of
from .windows import Weights, Window, extents_of, on_grid_of, weights_of, window_of

LARGEST_KERNEL = 7  # taps along an axis: what kernels of vendors are made for ends here
MOST_GROUPS = 32  # that are worth an op each
MOST_GROWTH = 64  # times as many weights, zeros included, as a convolution without groups or dilation may have
MOST_BLOCK = 8  # pixels along an edge of a block
AXES_AS_INPUT = 13  # the version from which Squeeze, Unsqueeze and Split take numbers as inputs
ELEMENTWISE = (
    *("Relu", "LeakyRelu", "Elu", "Sigmoid", "Tanh", "HardSigmoid", "HardSwish", "Clip", "Erf", "Exp", "Log", "Sqrt"),
    *("Neg", "Abs", "Softplus", "Mish", "Gelu", "Selu", "Celu", "Reciprocal", "Identity", "Cast"),
    *("Add", "Mul", "Sub", "Div", "Pow", "Max", "Min"),
)


@dataclass(frozen=True, slots=True)
class Convolution:
    """A Conv or ConvTranspose with constant weights."""

    node: ir.Node
    source: ir.Value
    weights: Weights
    window: Window
    group: int

    def again(
        self, make: Maker, source: ir.Value | None, array: Array, window: Window, *, group: int, bias: ir.Value | None
    ) -> ir.Value:
        """A convolution like this one of another value, with other weights."""
        inputs = [source, self.weights.made(make, array), *([] if bias is None else [bias])]
        return make.op("Conv", *inputs, dtype=self.node.outputs[0].dtype, group=group, **window.attributes())

    @property
    def bias(self) -> ir.Value | None:
        return self.node.inputs[2] if len(self.node.inputs) > 2 else None


def convolution_of(node: ir.Node, *kinds: str) -> Convolution | None:
    """What is known of a convolution, if that is enough to write it in another form."""
    source = node.inputs[0] if is_op(node, *(kinds or ("Conv",))) else None
    weights = None if source is None else weights_of(node.inputs[1])
    window = None if weights is None else window_of(node, weights.array.shape[2:])
    if source is None or weights is None or window is None:
        return None
    return Convolution(node, source, weights, window, attribute(node, "group", 1))


def conv_1d_to_2d(node: ir.Node) -> Match | None:
    """A convolution or pooling op along one axis → one along two, of which the first has one element."""
    source = node.inputs[0] if is_op(node, "Conv", "ConvTranspose", "MaxPool", "AveragePool") else None
    if source is None or len(extents_of(source)) != 3 or any(each.uses() for each in node.outputs[1:]):
        return None
    weights = weights_of(node.inputs[1]) if is_op(node, "Conv", "ConvTranspose") else None
    window = window_of(node, None if weights is None else weights.array.shape[2:])
    if window is None or (weights is None and not is_op(node, "MaxPool", "AveragePool")):
        return None
    if "output_shape" in node.attributes or (weights is not None and weights.by_axis == 2):
        return None
    kept = {
        name: node.attributes[name].value
        for name in ("group", "ceil_mode", "count_include_pad", "output_padding")
        if name in node.attributes
    }
    kept |= Window(*((alone, *along) for alone, along in _two_axes(window))).attributes()
    if "output_padding" in kept:
        kept["output_padding"] = [0, *kept["output_padding"]]
    if is_op(node, "AveragePool"):  # below version 19 it has none
        kept = {name: value for name, value in kept.items() if name != "dilations" or max(window.dilations) > 1}

    def build(make: Maker) -> Mapping[ir.Value, ir.Value]:
        inputs = [_with_axes(make, node, "Unsqueeze", source, [2]), *node.inputs[1:]]
        if weights is not None:
            inputs[1] = weights.made(make, np.expand_dims(weights.array, 2))
        made = make.op(node.op_type, *inputs, dtype=node.outputs[0].dtype, **kept)
        return {node.outputs[0]: _with_axes(make, node, "Squeeze", made, [2])}

    return Match((node,), build)


def sink_squeeze(node: ir.Node) -> Match | None:
    """Elementwise ops on squeezed values → the same on the values as they were, squeezed after."""
    if not is_op(node, *ELEMENTWISE) or len(node.outputs) != 1:
        return None
    squeezes = [None if value is None else producer(value, "Squeeze") for value in node.inputs]
    first = next((each for each in squeezes if each is not None), None)
    axes, shape = (None, None) if first is None else (_axes_of(first), shape_of(first.inputs[0]))
    if first is None or axes is None or shape is None:
        return None
    for value, squeeze in zip(node.inputs, squeezes, strict=True):
        if squeeze is not None and (_axes_of(squeeze) != axes or shape_of(squeeze.inputs[0]) != shape):
            return None
        if squeeze is None and value is not None and prod(shape_of(value) or (2,)) != 1:
            return None  # an operand that would have to be unsqueezed
        if squeeze is None and value is not None and len(shape_of(value) or ()) > len(shape):
            return None

    def build(make: Maker) -> Mapping[ir.Value, ir.Value]:
        inputs = [value if each is None else each.inputs[0] for value, each in zip(node.inputs, squeezes, strict=True)]
        kept = {name: each.value for name, each in node.attributes.items()}
        made = make.op(node.op_type, *inputs, shape=shape, dtype=node.outputs[0].dtype, **kept)
        squeezed = _with_axes(make, node, "Squeeze", made, axes)
        squeezed.shape = node.outputs[0].shape
        return {node.outputs[0]: squeezed}

    return Match((node, *dict.fromkeys(each for each in squeezes if each is not None)), build)


def dilation_to_blocks(node: ir.Node) -> Match | None:
    """A dilated convolution → SpaceToDepth, the convolution on each of the interleaved pictures, DepthToSpace."""
    conv, shape = convolution_of(node), shape_of(node.inputs[0]) if is_op(node, "Conv") else None
    if conv is None or shape is None or len(shape) != 4 or set(conv.window.strides) != {1} or conv.weights.by_axis == 0:
        return None
    window, block = conv.window, conv.window.dilations[0]
    if window.dilations != (block, block) or not 1 < block <= MOST_BLOCK or window.outputs(shape[2:]) != shape[2:]:
        return None
    if any(each % block for each in (*shape[2:], *window.begins, *window.ends)):
        return None
    begins, ends = (tuple(each // block for each in part) for part in (window.begins, window.ends))
    dense = replace(window, dilations=(1, 1), begins=begins, ends=ends)

    def build(make: Maker) -> Mapping[ir.Value, ir.Value]:
        pictures = block * block
        value = on_grid_of(make, make.op("SpaceToDepth", conv.source, blocksize=block), conv.source)
        array = np.concatenate([conv.weights.array] * pictures)
        bias = _together(make, [conv.bias] * pictures)
        value = conv.again(make, value, array, dense, group=conv.group * pictures, bias=bias)
        return {node.outputs[0]: make.op("DepthToSpace", value, blocksize=block)}

    return Match((node,), build)


def dilation_to_zeros(node: ir.Node) -> Match | None:
    """A dilated convolution → one of a larger kernel, with zeros between the taps."""
    conv = convolution_of(node)
    if conv is None or set(conv.window.dilations) == {1} or conv.weights.zero is None:
        return None
    reach = conv.window.reach
    if prod(reach) > MOST_GROWTH * prod(conv.window.kernel):
        return None
    dense = replace(conv.window, kernel=reach, dilations=(1,) * conv.window.rank)

    def build(make: Maker) -> Mapping[ir.Value, ir.Value]:
        array = np.full((*conv.weights.array.shape[:2], *reach), conv.weights.zero, conv.weights.array.dtype)
        taps = tuple(slice(None, None, step) for step in (1, 1, *conv.window.dilations))
        array[taps] = conv.weights.array
        return {node.outputs[0]: conv.again(make, conv.source, array, dense, group=conv.group, bias=conv.bias)}

    return Match((node,), build)


def split_large_kernel(node: ir.Node) -> Match | None:
    """A convolution of a large kernel → the sum of convolutions of parts of it, of what is padded once."""
    conv, shape = convolution_of(node), shape_of(node.outputs[0])
    if conv is None or shape is None or conv.window.rank != 2 or max(conv.window.kernel) <= LARGEST_KERNEL:
        return None
    window = conv.window
    parts = [[(at, min(LARGEST_KERNEL, size - at)) for at in range(0, size, LARGEST_KERNEL)] for size in window.kernel]

    def build(make: Maker) -> Mapping[ir.Value, ir.Value]:
        source = _padded(make, conv) if window.is_padded else conv.source
        pieces: list[ir.Value] = []
        for row, high in parts[0]:
            for column, wide in parts[1]:
                starts = [row * window.dilations[0], column * window.dilations[1]]
                small = Window((high, wide), window.strides, window.dilations, (0, 0), (0, 0))
                spans = [
                    (count - 1) * stride + reach
                    for count, stride, reach in zip(shape[2:], window.strides, small.reach, strict=True)
                ]
                stops = [start + span for start, span in zip(starts, spans, strict=True)]
                bounds = make.constant(starts, "starts"), make.constant(stops, "ends")
                cut = make.op("Slice", source, *bounds, make.constant([2, 3], "axes"))
                array = conv.weights.array[:, :, row : row + high, column : column + wide]
                bias = None if pieces else conv.bias
                pieces.append(conv.again(make, cut, array, small, group=conv.group, bias=bias))
        while len(pieces) > 1:
            pieces[:2] = [make.op("Add", *pieces[:2], shape=shape)]
        return {node.outputs[0]: pieces[0]}

    return Match((node,), build)


def grouped_conv_to_convs(node: ir.Node) -> Match | None:
    """A convolution in a few groups → a convolution for each, of a part of the channels."""
    conv, shape = convolution_of(node), shape_of(node.inputs[0]) if is_op(node, "Conv") else None
    if conv is None or shape is None or not 1 < conv.group <= MOST_GROUPS or conv.weights.by_axis == 0:
        return None
    if len(shape) != conv.window.rank + 2:
        return None
    count, width = conv.group, shape[1] // conv.group
    if width == 1 or shape[1] % count or conv.weights.array.shape[0] % count:
        return None

    def build(make: Maker) -> Mapping[ir.Value, ir.Value]:
        part = (shape[0], width, *shape[2:])
        outputs = conv.weights.array.shape[0] // count
        biases = _parts(make, conv, outputs)
        pieces = [
            conv.again(make, value, array, conv.window, group=1, bias=bias)
            for value, array, bias in zip(
                split(make, node, conv.source, [part] * count, 1),
                np.split(conv.weights.array, count),
                biases,
                strict=True,
            )
        ]
        return {node.outputs[0]: make.op("Concat", *pieces, axis=1)}

    return Match((node,), build)


def grouped_conv_to_dense(node: ir.Node) -> Match | None:
    """A convolution in groups, or of single channels, → one of all channels with zeros between groups."""
    conv = convolution_of(node)
    if conv is None or not 1 < conv.group <= MOST_GROWTH or conv.weights.zero is None:
        return None
    group, (outputs, width, *kernel) = conv.group, conv.weights.array.shape
    if outputs % group:
        return None

    def build(make: Maker) -> Mapping[ir.Value, ir.Value]:
        array = np.full((outputs, group * width, *kernel), conv.weights.zero, conv.weights.array.dtype)
        for number, part in enumerate(np.split(conv.weights.array, group)):
            rows = slice(number * len(part), (number + 1) * len(part))
            array[rows, number * width : (number + 1) * width] = part
        return {node.outputs[0]: conv.again(make, conv.source, array, conv.window, group=1, bias=conv.bias)}

    return Match((node,), build)


def convs_to_grouped_conv(node: ir.Node) -> Match | None:
    """Convolutions of the parts of a Split, put together again, → one convolution in groups."""
    convs = [conv for value in node.inputs if (conv := _alone(value))] if is_op(node, "Concat") else []
    parted = producer(convs[0].source, "Split") if convs else None
    if parted is None or len(convs) != len(node.inputs):
        return None
    first, parts = convs[0], [conv.source for conv in convs]
    channels = (1, -1 - first.window.rank)  # the axis, counted from either end
    if attribute(node, "axis") not in channels or attribute(parted, "axis", 0) not in channels:
        return None
    if parts != list(parted.outputs):
        return None
    alike = all(
        (each.window, each.group, each.weights.array.shape) == (first.window, 1, first.weights.array.shape)
        and each.weights.dequantize is None
        and (each.bias is None) == (first.bias is None)
        for each in convs
    )
    if not alike or parted.inputs[0] is None or len({extents_of(part) for part in parts}) != 1:
        return None

    def build(make: Maker) -> Mapping[ir.Value, ir.Value]:
        bias = _together(make, [conv.bias for conv in convs])
        array = np.concatenate([conv.weights.array for conv in convs])
        return {node.outputs[0]: first.again(make, parted.inputs[0], array, first.window, group=len(convs), bias=bias)}

    return Match((node, *(conv.node for conv in convs), parted), build)


def conv_transpose_to_blocks(node: ir.Node) -> Match | None:
    """A ConvTranspose that enlarges by its stride → a Conv for each pixel of a block, and DepthToSpace."""
    shape = shape_of(node.inputs[0]) if is_op(node, "ConvTranspose") else None
    conv = convolution_of(node, "ConvTranspose")
    if conv is None or shape is None or len(shape) != 4 or conv.group != 1 or conv.weights.by_axis is not None:
        return None
    window, block = conv.window, conv.window.strides[0]
    if window.strides != (block, block) or not 1 < block <= MOST_BLOCK or window.dilations != (1, 1):
        return None
    if _enlarged(node, window, shape[2:]) != [block * extent for extent in shape[2:]] or conv.weights.zero is None:
        return None
    spans = [_steps(size, block, begin) for size, begin in zip(window.kernel, window.begins, strict=True)]
    kernel = tuple(last - first + 1 for first, last in spans)
    begins, ends = tuple(last for _, last in spans), tuple(-first for first, _ in spans)
    if min(*begins, *ends) < 0:
        return None
    dense = Window(kernel, (1, 1), (1, 1), begins, ends)

    def build(make: Maker) -> Mapping[ir.Value, ir.Value]:
        bias = _together(make, [conv.bias] * block**2)
        value = conv.again(make, conv.source, _pixel_weights(conv, spans), dense, group=1, bias=bias)
        return {node.outputs[0]: make.op("DepthToSpace", value, blocksize=block)}

    return Match((node,), build)


def _enlarged(node: ir.Node, window: Window, extents: Sequence[int]) -> list[int] | None:
    """Extents of the result of a ConvTranspose; None: it states them itself."""
    if "output_shape" in node.attributes:
        return None
    ends = attribute(node, "output_padding", [0, 0])
    sides = zip(extents, window.strides, window.kernel, window.begins, window.ends, ends, strict=True)
    return [(extent - 1) * stride + size - begin - end + more for extent, stride, size, begin, end, more in sides]


def _pixel_weights(conv: Convolution, spans: Sequence[tuple[int, int]]) -> Array:
    """Weights of a Conv with an output for every channel and every pixel of a block.

    Along one axis with stride 2, 4 taps and 1 element cut off in front, the output at 2 m + p gets tap t of element
    m - j where t = 2 j + p + 1: pixel 0 tap 1 of element m and tap 3 of m - 1, pixel 1 tap 2 of m and tap 0 of m + 1.
    So j is from -1 to 1 (`spans`), the Conv has 3 taps, read from j = 1 on, and those without a t are zero:

        tap of the Conv    0 (m - 1)   1 (m)   2 (m + 1)
        pixel 0                 3        1         -
        pixel 1                 -        2         0
    """
    window, block = conv.window, conv.window.strides[0]
    inputs, outputs, *_ = conv.weights.array.shape
    kernel = tuple(last - first + 1 for first, last in spans)
    array = np.full((block, block, outputs, inputs, *kernel), conv.weights.zero, conv.weights.array.dtype)
    for row, column, down, across in np.ndindex(block, block, *kernel):
        taps = [
            block * (last - at) + pixel + begin
            for (_, last), at, pixel, begin in zip(spans, (down, across), (row, column), window.begins, strict=True)
        ]
        if all(0 <= tap < size for tap, size in zip(taps, window.kernel, strict=True)):
            array[row, column, :, :, down, across] = conv.weights.array[:, :, taps[0], taps[1]].T
    return array.reshape(block**2 * outputs, inputs, *kernel)


def _steps(size: int, block: int, begin: int) -> tuple[int, int]:
    """How far before an output's block, in blocks, the pictures' elements lie that it is made of: at least, at most.

    Tap t adds an element m to the output at block × m + t - begin, which is pixel p of block m + j with
    t = block × j + p + begin. With t from 0 to size - 1 and p from 0 to block - 1, that bounds j.
    """
    return -((block - 1 + begin) // block), (size - 1 - begin) // block


def _two_axes(window: Window) -> tuple[tuple[int, tuple[int, ...]], ...]:
    """What an axis of one element has, and what is there, in the order of the fields of a window."""
    return (1, window.kernel), (1, window.strides), (1, window.dilations), (0, window.begins), (0, window.ends)


def _padded(make: Maker, conv: Convolution) -> ir.Value:
    window = conv.window
    pads = make.constant([0, 0, *window.begins, 0, 0, *window.ends], "pads")
    return make.op("Pad", conv.source, pads)


def _together(make: Maker, biases: list[ir.Value | None]) -> ir.Value | None:
    """Biases one after the other; all of them are there, or none."""
    if biases[0] is None:
        return None
    arrays = [array for bias in biases if (array := array_of(bias)) is not None]
    if len(arrays) == len(biases):
        return make.constant(np.concatenate(arrays), "bias")
    return make.op("Concat", *biases, axis=0)


def _parts(make: Maker, conv: Convolution, length: int) -> list[ir.Value | None]:
    """The bias of each group."""
    array = array_of(conv.bias)
    if conv.bias is None:
        return [None] * conv.group
    if array is not None:
        return [make.constant(part, "bias") for part in np.split(array, conv.group)]
    return [*split(make, conv.node, conv.bias, [(length,)] * conv.group, 0)]


def _alone(value: ir.Value | None) -> Convolution | None:
    """The convolution that computes a value which only one op reads."""
    node = producer(value, "Conv")
    return None if value is None or node is None or only_reader(value) is None else convolution_of(node)


def split(make: Maker, node: ir.Node, value: ir.Value, shapes: list[tuple[int, ...]], axis: int) -> list[ir.Value]:
    """The parts of a value along an axis."""
    lengths = [shape[axis] for shape in shapes]
    if opset_of(node) >= AXES_AS_INPUT:
        return list(make.ops("Split", value, make.constant(lengths, "lengths"), shapes=shapes, axis=axis))
    return list(make.ops("Split", value, shapes=shapes, axis=axis, split=lengths))


def _with_axes(make: Maker, node: ir.Node, kind: str, value: ir.Value, axes: list[int]) -> ir.Value:
    if opset_of(node) >= AXES_AS_INPUT:
        return make.op(kind, value, make.constant(axes, "axes"))
    return make.op(kind, value, axes=axes)


def _axes_of(node: ir.Node) -> list[int] | None:
    """The axes that a Squeeze takes away, counted from the first."""
    found = numbers_of(node.inputs[1]) if len(node.inputs) > 1 else attribute(node, "axes")
    rank = len(extents_of(node.inputs[0]))
    return sorted(axis % rank for axis in found) if found and rank else None
