"""Products with constant weights: in the form and the rank that a target likes, with scales and biases taken in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

import numpy as np
import onnx_ir as ir

from .layouts import MOVES, Layout, follow, layout_of, make_layout, reshape
from .rule import Array, Maker, Match, Shape, array_of, attribute, extents_of, is_op, only_reader, producer

FLOATS = (ir.DataType.FLOAT, ir.DataType.FLOAT16)


@dataclass(frozen=True, slots=True)
class Linear:
    """x · W + b over the last axis of x, however it is written."""

    x: ir.Value
    weights: Array  # [inputs, outputs]
    bias: Array | None  # [outputs]
    nodes: tuple[ir.Node, ...]  # the last first

    @property
    def result(self) -> ir.Value:
        return self.nodes[0].outputs[0]

    @property
    def shape(self) -> Shape:
        return (*(extents_of(self.x) or ())[:-1], self.weights.shape[1])


def linear_of(node: ir.Node) -> Linear | None:
    """The product that a MatMul or Gemm with constant weights is, with the bias that alone is added to it."""
    x, weights = (node.inputs[0], array_of(node.inputs[1])) if is_op(node, "MatMul", "Gemm") else (None, None)
    if x is None or weights is None or array_of(x) is not None or x.dtype not in FLOATS or not extents_of(x):
        return None
    while weights.ndim > 2 and weights.shape[0] == 1:
        weights = weights[0]
    if weights.ndim != 2 or 0 in (extents_of(x) or ()) or len(extents_of(x) or ()) < 2:
        return None
    bias: Array | None = None
    if is_op(node, "Gemm"):
        if attribute(node, "transA", 0):
            return None
        weights = weights.T if attribute(node, "transB", 0) else weights
        weights = _times(weights, attribute(node, "alpha", 1.0))
        if len(node.inputs) > 2 and node.inputs[2] is not None:
            given = array_of(node.inputs[2])
            bias = None if given is None else _per_channel(given, weights.shape[1])
            if bias is None:
                return None
            bias = _times(bias, attribute(node, "beta", 1.0))
    found = Linear(x, weights, bias, (node,))
    if extents_of(node.outputs[0]) != found.shape:
        return None
    after = only_reader(node.outputs[0], "Add") if bias is None else None
    others = [] if after is None else [value for value in after.inputs if value is not node.outputs[0]]
    added = _per_channel(array_of(others[0]), weights.shape[1]) if len(others) == 1 else None
    if after is None or added is None or extents_of(after.outputs[0]) != found.shape:
        return found
    return Linear(x, weights, added, (after, node))


def _times(array: Array, factor: float) -> Array:
    return array if factor == 1 else array * array.dtype.type(factor)


def _per_channel(array: Array | None, channels: int) -> Array | None:
    """A constant as one number for each channel; None where it is not the same for all else."""
    if array is None or array.size not in (1, channels) or (array.size > 1 and array.shape[-1] != channels):
        return None
    return np.broadcast_to(array.ravel(), (channels,))


def _anchored(node: ir.Node, kind: str) -> Linear | None:
    """The product whose last op a node is, where the product itself is of a kind."""
    product = producer(node.inputs[0], kind) or producer(node.inputs[-1], kind) if is_op(node, "Add") else node
    found = linear_of(product) if product is not None and is_op(product, kind) else None
    return found if found is not None and found.nodes[0] is node else None


def gemm_to_matmul(node: ir.Node) -> Match | None:
    """Gemm with constant weights as MatMul and Add."""
    found = _anchored(node, "Gemm")
    if found is None:
        return None

    def build(make: Maker) -> Mapping[ir.Value, ir.Value]:
        return {found.result: _matmul(make, found.x, found)}

    return Match(found.nodes, build)


def matmul_to_gemm(node: ir.Node) -> Match | None:
    """MatMul with constant weights, and the bias that is added, as Gemm of two axes."""
    found = _anchored(node, "MatMul")
    if found is None:
        return None
    bias = found.bias if found.bias is not None else np.zeros(found.weights.shape[1], found.weights.dtype)

    def build(make: Maker) -> Mapping[ir.Value, ir.Value]:
        flat = _flat(make, found.x)
        constants = make.constant(found.weights, "weights"), make.constant(bias, "bias")
        made = make.op("Gemm", flat, *constants, shape=_flat_shape(found.shape))
        return {found.result: reshape(make, made, _flat_shape(found.shape), found.shape)}

    return Match(found.nodes, build)


def flatten_matmul(node: ir.Node) -> Match | None:
    """MatMul of more than two axes with constant weights, as one of two axes between reshapes."""
    found = _anchored(node, "MatMul")
    if found is None or len(found.shape) < 3:
        return None

    def build(make: Maker) -> Mapping[ir.Value, ir.Value]:
        made = _matmul(make, _flat(make, found.x), found)
        return {found.result: reshape(make, made, _flat_shape(found.shape), found.shape)}

    return Match(found.nodes, build)


def unflatten_matmul(node: ir.Node) -> Match | None:
    """MatMul between two reshapes that leave the last axis alone, without them."""
    last = producer(node.inputs[0], "MatMul", "Add", "Gemm") if is_op(node, "Reshape") else None
    found = None if last is None else (_anchored(last, "MatMul") or _anchored(last, "Gemm"))
    before = None if found is None else producer(found.x, "Reshape")
    source = None if before is None else before.inputs[0]
    shape, wanted = extents_of(source), extents_of(node.outputs[0])
    if found is None or before is None or source is None or shape is None or wanted is None or len(shape) < 2:
        return None
    if wanted != (*shape[:-1], found.weights.shape[1]) or shape[-1] != found.weights.shape[0]:
        return None
    if only_reader(found.result) is not node:
        return None
    return Match((node, *found.nodes, before), lambda make: {node.outputs[0]: _matmul(make, source, found)})


def matmul_to_conv(node: ir.Node) -> Match | None:
    """MatMul with constant weights, and its bias, as a 1×1 convolution; channels go to the second axis and back."""
    found = _anchored(node, "MatMul") or _anchored(node, "Gemm")
    if found is None or not 2 <= len(found.shape) <= 4:
        return None
    shape = extents_of(found.x) or ()
    image = {2: (1, 1, shape[0]), 3: (shape[0], 1, shape[-2]), 4: shape[:-1]}[len(shape)]
    batch, rows, columns = image
    inputs, outputs = found.weights.shape

    def build(make: Maker) -> Mapping[ir.Value, ir.Value]:
        before = layout_of(shape).reshaped((*image, inputs))
        after = layout_of((batch, outputs, rows, columns)).transposed((0, 2, 3, 1)).reshaped(found.shape)
        if before is None or after is None:
            raise ValueError("axes of one are no factors; all others stay")
        value = make_layout(make, found.x, before.transposed((0, 3, 1, 2)))
        constants = [make.constant(found.weights.T[:, :, None, None], "weights")]
        if found.bias is not None:
            constants.append(make.constant(found.bias, "bias"))
        value = make.op("Conv", value, *constants, shape=(batch, outputs, rows, columns), kernel_shape=[1, 1])
        return {found.result: make_layout(make, value, after)}

    return Match(found.nodes, build)


def conv_to_matmul(node: ir.Node) -> Match | None:
    """A 1×1 convolution of constant weights as MatMul and Add; channels go to the last axis and back."""
    x, shape = (node.inputs[0], extents_of(node.inputs[0])) if is_op(node, "Conv") else (None, None)
    arrays = [array_of(value) for value in node.inputs[1:] if value is not None] if shape is not None else []
    if x is None or shape is None or 0 in shape or not arrays or x.dtype not in FLOATS:
        return None
    weights, bias = arrays[0], arrays[1] if len(arrays) > 1 else None
    is_plain = (
        weights is not None
        and weights.ndim >= 2
        and prod(weights.shape[2:]) == 1
        and attribute(node, "group", 1) == 1
        and set(attribute(node, "strides", [1])) == {1}
        and not any(attribute(node, "pads", [0]))
        and (len(arrays) == 1 or bias is not None)
    )
    if weights is None or not is_plain:
        return None
    outputs, inputs = weights.shape[:2]
    rank, result = len(shape), (shape[0], outputs, *shape[2:])
    last = [0, *range(2, rank), 1]
    linear = Linear(x, weights.reshape(outputs, inputs).T, bias, (node,))

    def build(make: Maker) -> Mapping[ir.Value, ir.Value]:
        value = make.op("Transpose", x, perm=last, shape=tuple(shape[axis] for axis in last))
        value = _matmul(make, value, linear)
        return {node.outputs[0]: make.op("Transpose", value, perm=[0, rank - 1, *range(1, rank - 1)], shape=result)}

    return Match((node,), build)


def turn_product(node: ir.Node) -> Match | None:
    """A projection whose result is turned, as keys are, from the turned input: weights on the left, channels first."""
    found = _anchored(node, "MatMul") or _anchored(node, "Gemm")
    if found is None:
        return None
    shape, value = found.shape, found.result
    layout, moves = layout_of(shape), []
    while (reader := only_reader(value, *MOVES)) is not None and reader.inputs[0] is value:
        results = follow(layout, reader)
        if results is None:
            return None
        moves.append(reader)
        ((value, layout),) = results
    order = [*range(len(shape) - 2), len(shape) - 1, len(shape) - 2]
    turned = layout_of(shape).transposed(order)
    if not moves or 1 in shape[-2:] or turned.reshaped(layout.shape) != layout:
        return None

    def build(make: Maker) -> Mapping[ir.Value, ir.Value]:
        given = tuple((extents_of(found.x) or ())[axis] for axis in order)
        made = make.op("Transpose", found.x, perm=order, shape=given)
        made = make.op("MatMul", make.constant(found.weights.T, "weights"), made, shape=turned.shape)
        made.type = found.x.type
        if found.bias is not None:
            made = make.op("Add", made, make.constant(found.bias[:, None], "bias"), shape=turned.shape)
        return {value: reshape(make, made, turned.shape, layout.shape)}

    return Match((*found.nodes, *moves), build)


def fold_scale(node: ir.Node) -> Match | None:
    """A constant factor after a product, or after the product of two projections, in the weights of one of them."""
    found = _factor(node)
    if found is None or only_reader(found[0]) is not node:
        return None
    value, scale = found
    both = producer(value, "MatMul") if scale.size == 1 else None
    for side in (value, *(both.inputs if both is not None else ())):
        linear = _projection_above(side, past_moves=scale.size == 1)
        factor = None if linear is None else _per_channel(scale, linear.weights.shape[1])
        if linear is not None and factor is not None:
            return _rescaled(node, value, linear, factor)
    return None


def fold_scale_ahead(node: ir.Node) -> Match | None:
    """A constant factor on the input of a product, in its weights."""
    linear = _anchored(node, "MatMul") or _anchored(node, "Gemm")
    maker = None if linear is None else linear.x.producer()
    found = None if maker is None else _factor(maker)
    factor = None if linear is None or found is None else _per_channel(found[1], linear.weights.shape[0])
    if linear is None or maker is None or found is None or factor is None or only_reader(linear.x) is None:
        return None
    weights = (linear.weights * factor[:, None]).astype(linear.weights.dtype)
    scaled = Linear(found[0], weights, linear.bias, linear.nodes)
    return Match((*linear.nodes, maker), lambda make: {linear.result: _matmul(make, scaled.x, scaled)})


def fold_norm(node: ir.Node) -> Match | None:
    """BatchNormalization of the channels of a product that was moved, in its weights and bias."""
    value = node.inputs[0] if is_op(node, "BatchNormalization") and len(node.outputs) == 1 else None
    linear = _projection_above(value, past_moves=True)
    arrays = [array_of(each) for each in node.inputs[1:5]] if linear is not None else []
    if linear is None or value is None or len(arrays) < 4 or attribute(node, "training_mode", 0):
        return None
    scale, shift, mean, spread = arrays
    if scale is None or shift is None or mean is None or spread is None or not _is_second(linear, value):
        return None
    if not np.all(spread >= 0):
        return None
    root = np.sqrt(spread.astype(np.float64) + attribute(node, "epsilon", 1e-5))
    factor, before = scale / root, 0 if linear.bias is None else linear.bias
    dtype = linear.weights.dtype
    bias = ((before - mean) * factor + shift).astype(dtype)
    folded = Linear(linear.x, (linear.weights * factor).astype(dtype), bias, linear.nodes)

    def build(make: Maker) -> Mapping[ir.Value, ir.Value]:
        made = _matmul(make, folded.x, folded)
        return {linear.result: made, node.outputs[0]: made if value is linear.result else value}

    return Match((node, *linear.nodes), build)


def _is_second(linear: Linear, value: ir.Value) -> bool:
    """Whether the second axis of a value that was moved from a product counts its channels."""
    moves: list[ir.Node] = []
    end: ir.Value | None = value
    while end is not None and end is not linear.result and (maker := producer(end, *MOVES)) is not None:
        moves.append(maker)
        end = maker.inputs[0]
    layout: Layout | None = layout_of(linear.shape)
    for move in reversed(moves):
        results = None if layout is None else follow(layout, move)
        layout = None if results is None else results[0][1]
    channels = layout_of(linear.shape).axes[-1]
    return layout is not None and len(layout.axes) > 1 and bool(channels) and layout.axes[1] == channels


def _factor(node: ir.Node) -> tuple[ir.Value, Array] | None:
    """The value that a node multiplies by a constant, and the constant."""
    if not is_op(node, "Mul", "Div") or len(node.inputs) != 2:
        return None
    for value, other in (node.inputs, node.inputs[::-1])[: 1 if is_op(node, "Div") else 2]:
        factor = array_of(other)
        if value is None or factor is None or factor.dtype.kind != "f" or array_of(value) is not None:
            continue
        if extents_of(value) is None or extents_of(value) != extents_of(node.outputs[0]):
            continue
        wide = factor.astype(np.float64)
        if is_op(node, "Mul"):
            return value, wide
        return (value, 1 / wide) if factor.all() else None
    return None


def _projection_above(value: ir.Value | None, *, past_moves: bool) -> Linear | None:
    """The product that a value is, or that it is moved from, where nothing else reads it."""
    above = None if value is None or only_reader(value) is None else value.producer()
    if above is None:
        return None
    found = _anchored(above, "MatMul") or _anchored(above, "Gemm")
    if found is None and past_moves and is_op(above, *MOVES):
        return _projection_above(above.inputs[0], past_moves=True)
    return found


def _rescaled(node: ir.Node, start: ir.Value, found: Linear, factor: Array) -> Match:
    def build(make: Maker) -> Mapping[ir.Value, ir.Value]:
        weights = (found.weights * factor).astype(found.weights.dtype)
        bias = None if found.bias is None else (found.bias * factor).astype(found.bias.dtype)
        made = _matmul(make, found.x, Linear(found.x, weights, bias, found.nodes))
        return {found.result: made, node.outputs[0]: made if start is found.result else start}

    return Match((node, *found.nodes), build)


def _matmul(make: Maker, x: ir.Value, linear: Linear) -> ir.Value:
    shape = (*(extents_of(x) or ())[:-1], linear.weights.shape[1])
    made = make.op("MatMul", x, make.constant(linear.weights, "weights"), shape=shape)
    return made if linear.bias is None else make.op("Add", made, make.constant(linear.bias, "bias"), shape=shape)


def _flat_shape(shape: Shape) -> Shape:
    return prod(shape[:-1]), shape[-1]


def _flat(make: Maker, value: ir.Value) -> ir.Value:
    shape = extents_of(value) or ()
    return reshape(make, value, shape, _flat_shape(shape))
