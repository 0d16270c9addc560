"""Scales and shifts by channel, taken into the weights of the op before or after."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from .rule import Array, Maker, Match, array_of, attribute, is_op, only_reader, producer, shape_of
from .windows import extents_of, window_of

AFFINE = ("BatchNormalization", "Mul", "Div", "Add", "Sub")
PRODUCTS = ("Conv", "ConvTranspose", "Gemm", "MatMul")
TYPES = (ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.DOUBLE)


@dataclass(frozen=True, slots=True)
class Affine:
    """An op that multiplies a value by constants and adds others, by channel."""

    node: ir.Node
    source: ir.Value
    scale: Array | None  # one element, or one for each channel; None: as it is
    shift: Array | None


@dataclass(frozen=True, slots=True)
class Product:
    """An op that multiplies by constant weights."""

    node: ir.Node
    weights: Array
    bias: Array | None
    group: int = 1

    @property
    def is_convolution(self) -> bool:
        return is_op(self.node, "Conv", "ConvTranspose")

    @property
    def outputs(self) -> int:
        if is_op(self.node, "ConvTranspose"):
            return int(self.weights.shape[1] * self.group)
        if is_op(self.node, "Conv") or attribute(self.node, "transB", 0):
            return int(self.weights.shape[0])
        return int(self.weights.shape[1])

    @property
    def inputs(self) -> int:
        if is_op(self.node, "Conv"):
            return int(self.weights.shape[1] * self.group)
        if is_op(self.node, "Gemm") and attribute(self.node, "transB", 0):
            return int(self.weights.shape[1])
        return int(self.weights.shape[0])

    def scaled(self, *, by_output: Array | None = None, by_input: Array | None = None) -> Array:
        """The weights of each group, outputs × inputs × taps, times numbers, laid out as they were."""
        parts = self._apart(self.weights.astype(np.float64))
        if by_output is not None:
            parts = parts * np.broadcast_to(by_output, self.outputs).reshape(self.group, -1, 1, 1)
        if by_input is not None:
            parts = parts * np.broadcast_to(by_input, self.inputs).reshape(self.group, 1, -1, 1)
        return self._back(parts).astype(self.weights.dtype)

    def of_constant(self, value: Array) -> Array:
        """What comes out, without the bias, where the input is the same everywhere: a number for each channel."""
        parts = self._apart(self.weights.astype(np.float64)).sum(-1)
        found: Array = parts @ np.broadcast_to(value, self.inputs).reshape(self.group, -1, 1)
        return found.ravel()

    def _apart(self, weights: Array) -> Array:
        group = self.group
        if is_op(self.node, "ConvTranspose"):
            return weights.reshape(group, self.inputs // group, self.outputs // group, -1).swapaxes(1, 2)
        if is_op(self.node, "MatMul") or (is_op(self.node, "Gemm") and not attribute(self.node, "transB", 0)):
            weights = weights.T
        return weights.reshape(group, self.outputs // group, self.inputs // group, -1)

    def _back(self, parts: Array) -> Array:
        if is_op(self.node, "ConvTranspose"):
            return parts.swapaxes(1, 2).reshape(self.weights.shape)
        if is_op(self.node, "MatMul") or (is_op(self.node, "Gemm") and not attribute(self.node, "transB", 0)):
            return parts.reshape(self.outputs, self.inputs).T
        return parts.reshape(self.weights.shape)

    def again(self, make: Maker, source: ir.Value | None, weights: Array, bias: Array | None) -> ir.Value:
        """The op once more with other weights; a MatMul is followed by an Add where there is a bias."""
        dtype, kept = self.weights.dtype, {name: each.value for name, each in self.node.attributes.items()}
        inputs = [source, make.constant(weights, "weights")]
        added = None if bias is None else make.constant(np.asarray(bias, dtype), "bias")
        if is_op(self.node, "Gemm"):
            kept["beta"] = 1.0
        if added is not None and not is_op(self.node, "MatMul"):
            inputs.append(added)
        made = make.op(self.node.op_type, *inputs, shape=shape_of(self.node.outputs[0]), **kept)
        return make.op("Add", made, added) if added is not None and is_op(self.node, "MatMul") else made


def fold_into_previous(node: ir.Node) -> Match | None:
    """Scale and shift by channel after a product with constant weights → other weights and another bias."""
    affine = _affine(node)
    before = None if affine is None else producer(affine.source, *PRODUCTS)
    product = None if before is None else _product(before)
    if affine is None or product is None or only_reader(affine.source) is not node:
        return None
    if is_op(product.node, "MatMul") and affine.scale is None:
        return None  # a product and an Add are as short as can be
    sizes = {1, product.outputs}
    if any(part is not None and part.size not in sizes for part in (affine.scale, affine.shift)):
        return None

    def build(make: Maker) -> Mapping[ir.Value, ir.Value]:
        bias = None if product.bias is None else product.bias.astype(np.float64)
        if bias is not None and affine.scale is not None:
            bias = bias * affine.scale
        if affine.shift is not None:
            bias = np.broadcast_to(affine.shift, product.outputs) + (0 if bias is None else bias)
        weights = product.scaled(by_output=affine.scale)
        return {node.outputs[0]: product.again(make, product.node.inputs[0], weights, bias)}

    return Match((node, product.node), build)


def fold_into_next(node: ir.Node) -> Match | None:
    """Scale and shift by channel before a product with constant weights → other weights and another bias."""
    product = _product(node) if is_op(node, *PRODUCTS) else None
    before = None if product is None else producer(node.inputs[0], *AFFINE)
    affine = None if before is None else _affine(before, by_last=not is_op(node, "Conv", "ConvTranspose"))
    if product is None or affine is None or only_reader(affine.node.outputs[0]) is not node:
        return None
    if attribute(node, "transA", 0):
        return None
    if affine.shift is not None and (is_op(node, "ConvTranspose") or _is_padded(product)):
        return None  # padding is not shifted
    if any(part is not None and part.size not in (1, product.inputs) for part in (affine.scale, affine.shift)):
        return None

    def build(make: Maker) -> Mapping[ir.Value, ir.Value]:
        bias = None if product.bias is None else product.bias.astype(np.float64)
        if affine.shift is not None:
            more = product.of_constant(affine.shift) * attribute(node, "alpha", 1.0)
            bias = more if bias is None else bias + more
        weights = product.scaled(by_input=affine.scale)
        return {node.outputs[0]: product.again(make, affine.source, weights, bias)}

    return Match((node, affine.node), build)


def batch_norm_to_mul_add(node: ir.Node) -> Match | None:
    """BatchNormalization with constant statistics → a product and a sum by channel."""
    affine = _affine(node) if is_op(node, "BatchNormalization") else None
    if affine is None or affine.scale is None or affine.shift is None:
        return None
    dtype, rank = node.outputs[0].dtype, len(extents_of(node.inputs[0]))
    scale, shift = (
        part.reshape(-1, *[1] * (rank - 2)).astype((dtype or ir.DataType.FLOAT).numpy())
        for part in (affine.scale, affine.shift)
    )

    def build(make: Maker) -> Mapping[ir.Value, ir.Value]:
        shape = shape_of(node.outputs[0])
        product = make.op("Mul", affine.source, make.constant(scale, "scale"), shape=shape)
        return {node.outputs[0]: make.op("Add", product, make.constant(shift, "shift"), shape=shape)}

    return Match((node,), build)


def _product(node: ir.Node) -> Product | None:
    """What is known of a product, where weights and bias are constants that are not quantised."""
    weights, bias = array_of(node.inputs[1]), None
    given = node.inputs[2] if len(node.inputs) > 2 and not is_op(node, "MatMul") else None
    if given is not None:
        bias = array_of(given)
    if weights is None or node.outputs[0].dtype not in TYPES or (given is not None and bias is None):
        return None
    if weights.ndim < 2 or len(extents_of(node.inputs[0])) < 2:
        return None
    if not is_op(node, "Conv", "ConvTranspose") and weights.ndim != 2:
        return None
    group = attribute(node, "group", 1)
    product = Product(node, weights, bias, group)
    if group < 1 or product.outputs % group or product.inputs % group:
        return None
    if is_op(node, "Gemm") and bias is not None:
        if bias.size not in (1, product.outputs) or (bias.ndim == 2 and bias.shape[0] != 1):
            return None
        product = Product(node, weights, np.broadcast_to(bias.ravel() * attribute(node, "beta", 1.0), product.outputs))
    return product


def _is_padded(product: Product) -> bool:
    """Whether a convolution reads padding, or may."""
    window = window_of(product.node, product.weights.shape[2:]) if product.is_convolution else None
    return product.is_convolution and (window is None or window.is_padded)


def _affine(node: ir.Node, *, by_last: bool | None = None) -> Affine | None:
    """The scale and shift that an op is.

    Args:
        by_last: whether channels are along the last axis, not the second; None: as what computes the value has them.
    """
    if not is_op(node, *AFFINE) or node.outputs[0].dtype not in TYPES:
        return None
    if is_op(node, "BatchNormalization"):
        rank = len(extents_of(node.inputs[0]))
        return _normalised(node) if rank >= 2 and (rank == 2 or not by_last) else None
    first, second = node.inputs[:2]
    constant, source = (second, first) if array_of(second) is not None else (first, second)
    array, rank = array_of(constant), len(extents_of(source))
    if source is None or array is None or array_of(source) is not None or rank < 2:
        return None
    last = by_last if by_last is not None else producer(source, "Gemm", "MatMul") is not None
    numbers = _by_channel(array.astype(np.float64), rank, rank - 1 if last else 1)
    if numbers is None or (is_op(node, "Div") and (constant is first or not np.all(numbers))):
        return None
    if is_op(node, "Mul", "Div"):
        return Affine(node, source, numbers if is_op(node, "Mul") else 1 / numbers, None)
    if is_op(node, "Add"):
        return Affine(node, source, None, numbers)
    return Affine(node, source, None, -numbers) if constant is second else Affine(node, source, -np.ones(1), numbers)


def _by_channel(array: Array, rank: int, axis: int) -> Array | None:
    """Numbers that differ along the axis of channels alone; None where they differ along another, or add axes."""
    shape = (*[1] * (rank - array.ndim), *array.shape)
    if array.ndim > rank or any(extent != 1 for place, extent in enumerate(shape) if place != axis):
        return None
    return array.ravel()


def _normalised(node: ir.Node) -> Affine | None:
    source, parts = node.inputs[0], [array_of(value) for value in node.inputs[1:5]]
    found = [part.astype(np.float64) for part in parts if part is not None]
    if source is None or len(found) != 4 or attribute(node, "training_mode", 0) or len(node.outputs) > 1:
        return None
    if len({part.shape for part in found}) != 1 or found[0].ndim != 1:
        return None
    scale, shift, mean, variance = found
    factor = scale / np.sqrt(variance + attribute(node, "epsilon", 1e-5))
    return Affine(node, source, factor, shift - mean * factor) if np.all(np.isfinite(factor)) else None
