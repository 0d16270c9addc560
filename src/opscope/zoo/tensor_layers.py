"""Layers of transformers, one function per operator that an exporter would write. Values have any rank."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import numpy as np

from .blueprint import Attribute, Blueprint, Operand, OperandRole, Shape, Value, ValueKind, Weight, parameter_name
from .image_layers import BIAS_REACH, kernel_weight

_LARGEST_SHARE = 32.0  # largest attention weight relative to the mean: e⁴ / √e for unit normal scores within ±4


def binary(
    plan: Blueprint, op: str, at: str, a: Operand, b: Operand, *, rms: float = 1.0, precise: bool = True
) -> Value:
    """Add an elementwise operator of two operands, with broadcasting; floating point by default."""
    kind = next((x.kind for x in (a, b) if isinstance(x, Value)), ValueKind.FLOAT)
    return plan.step(op, at, (a, b), np.broadcast_shapes(a.shape, b.shape), kind=kind, rms=rms, precise=precise)


def unary(plan: Blueprint, op: str, at: str, x: Value) -> Value:
    return plan.step(op, at, [x], x.shape, kind=x.kind, rms=x.rms, precise=True)


def add(plan: Blueprint, at: str, a: Value, b: Operand) -> Value:
    """Add a residual connection or an embedding; quantised like the products around it."""
    other = b.rms if isinstance(b, Value) else 0.5
    return binary(plan, "Add", at, a, b, rms=sqrt(a.rms**2 + other**2), precise=False)


def matmul(plan: Blueprint, at: str, a: Value, b: Value, *, rms: float) -> Value:
    """Add a product of two computed values."""
    batch_shape = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return plan.step("MatMul", at, (a, b), (*batch_shape, a.shape[-2], b.shape[-1]), rms=rms)


def attend(plan: Blueprint, at: str, shares: Value, x: Value) -> Value:
    """Average the values by their attention weights; the rms stays, as tokens become alike with depth."""
    return matmul(plan, at, shares, x, rms=x.rms)


def query_key_value(plan: Blueprint, at: str, x: Value, heads: int, *, packed: bool) -> list[Value]:
    """Add the projections of an attention, each (batch, heads, tokens, size); as one product where they are packed."""
    batch, length, hidden = x.shape
    size = hidden // heads
    if packed:
        joint = reshape(plan, at, linear(plan, f"{at}/qkv", x, 3 * hidden), (batch, length, 3, heads, size))
        joint = transpose(plan, at, joint, (2, 0, 3, 1, 4))
        return [select(plan, at, joint, part, axis=0) for part in range(3)]
    parts = [linear(plan, f"{at}/{name}", x, hidden) for name in ("query", "key", "value")]
    return [transpose(plan, at, reshape(plan, at, part, (batch, length, heads, size)), (0, 2, 1, 3)) for part in parts]


def packed_in_front(plan: Blueprint, at: str, x: Value, heads: int) -> list[Value]:
    """Add the same as one product whose three parts `torch.nn.MultiheadAttention` moves to the first of five axes.

    Its exporter marks every Reshape to take a 0 as an extent, which keeps compilers from seeing through it.
    """
    batch, length, hidden = x.shape
    size = hidden // heads
    joint = linear(plan, f"{at}/qkv", transpose(plan, at, x, (1, 0, 2)), 3 * hidden)
    joint = unsqueeze(plan, at, reshape(plan, at, joint, (length, batch, 3, hidden), allow_zero=True), 0)
    joint = squeeze(plan, at, transpose(plan, at, joint, (3, 1, 2, 0, 4)), 3)
    found = []
    for part in range(3):
        rows = select(plan, at, joint, part, axis=0)
        rows = reshape(plan, at, rows, (length, batch * heads, size), allow_zero=True)
        rows = transpose(plan, at, rows, (1, 0, 2))
        found.append(reshape(plan, at, rows, (batch, heads, length, size), allow_zero=True))
    return found


def linear(plan: Blueprint, at: str, x: Value, units: int, *, bias: bool = True) -> Value:
    """Add a product with trained weights, then the bias: exporters write MatMul and Add for inputs of rank 3."""
    features = x.shape[-1]
    weight = kernel_weight(at, (features, units), features, x.rms, channel_axis=1)
    product = plan.step("MatMul", at, (x, weight), (*x.shape[:-1], units))
    if not bias:
        return product
    addend = Weight(parameter_name(at, "bias"), (units,), OperandRole.TENSOR, BIAS_REACH)
    return plan.step("Add", at, (addend, product), product.shape)


def embedding(plan: Blueprint, at: str, table: tuple[int, int], ids: Operand) -> Value:
    """Look up rows of a trained table."""
    weight = Weight(parameter_name(at, "weight"), table, OperandRole.TENSOR, sqrt(3.0))
    shape = (*ids.shape, table[1])
    return plan.step("Gather", at, (weight, ids), shape, span=(-weight.reach, weight.reach), attributes={"axis": 0})


def select(plan: Blueprint, at: str, x: Value, index: int, *, axis: int) -> Value:
    """Take one slice along `axis`, which is removed."""
    inputs = (x, plan.literal(at, index))
    shape = x.shape[:axis] + x.shape[axis + 1 :]
    return plan.step("Gather", at, inputs, shape, rms=x.rms, span=x.span, attributes={"axis": axis})


def layer_norm(plan: Blueprint, at: str, x: Value, *, epsilon: float) -> Value:
    inputs = (
        x,
        gain(at, x.shape[-1]),
        Weight(parameter_name(at, "bias"), x.shape[-1:], OperandRole.PRECISE, BIAS_REACH),
    )
    attributes = {"axis": -1, "epsilon": epsilon}
    return plan.step("LayerNormalization", at, inputs, x.shape, attributes=attributes, precise=True)


def rms_norm(plan: Blueprint, at: str, x: Value, *, epsilon: float) -> Value:
    """Add root-mean-square normalisation as plain operators; in f32 even if the model is f16."""
    wide = widen(plan, at, x)
    square = binary(plan, "Pow", at, wide, plan.literal(at, 2.0, ValueKind.F32))
    shape = (*x.shape[:-1], 1)
    attributes: dict[str, Attribute] = {"axes": (-1,), "keepdims": 1}
    mean = plan.step("ReduceMean", at, [square], shape, kind=wide.kind, attributes=attributes, precise=True)
    shifted = binary(plan, "Add", at, mean, plan.literal(at, epsilon, ValueKind.F32))
    root = unary(plan, "Sqrt", at, shifted)
    inverse = binary(plan, "Div", at, plan.literal(at, 1.0, ValueKind.F32), root)
    normal = narrow(plan, at, binary(plan, "Mul", at, wide, inverse))
    return binary(plan, "Mul", at, gain(at, x.shape[-1]), normal)


def gain(at: str, features: int) -> Weight:
    return Weight(parameter_name(at, "weight"), (features,), OperandRole.PRECISE, BIAS_REACH, centre=1.0)


def gelu(plan: Blueprint, at: str, x: Value) -> Value:
    """Add the exact GELU, as exporters write it: x · (1 + erf(x / √2)) · ½."""
    scaled = binary(plan, "Div", at, x, plan.literal(at, sqrt(2.0), ValueKind.FLOAT))
    curve = unary(plan, "Erf", at, scaled)
    shifted = binary(plan, "Add", at, curve, plan.literal(at, 1.0, ValueKind.FLOAT))
    product = binary(plan, "Mul", at, x, shifted)
    return binary(plan, "Mul", at, product, plan.literal(at, 0.5, ValueKind.FLOAT), rms=0.65)


def silu(plan: Blueprint, at: str, x: Value) -> Value:
    return binary(plan, "Mul", at, x, unary(plan, "Sigmoid", at, x), rms=0.6)


def softmax(plan: Blueprint, at: str, x: Value, *, keys: int = 1) -> Value:
    """Add a softmax over at least `keys` scores; the range shrinks with their number.

    With unit normal scores, no probability exceeds about 32 times the mean, 1 / keys.
    """
    span = (0.0, min(1.0, _LARGEST_SHARE / keys))
    return plan.step("Softmax", at, [x], x.shape, rms=0.25, span=span, attributes={"axis": -1}, precise=True)


def reshape(plan: Blueprint, at: str, x: Value, shape: Shape, *, allow_zero: bool = False) -> Value:
    inputs, attributes = (x, plan.literal(at, shape)), {"allowzero": 1} if allow_zero else {}
    return plan.step("Reshape", at, inputs, shape, kind=x.kind, rms=x.rms, span=x.span, attributes=attributes)


def transpose(plan: Blueprint, at: str, x: Value, order: Sequence[int]) -> Value:
    shape = tuple(x.shape[axis] for axis in order)
    attributes = {"perm": tuple(order)}
    return plan.step("Transpose", at, [x], shape, kind=x.kind, rms=x.rms, span=x.span, attributes=attributes)


def unsqueeze(plan: Blueprint, at: str, x: Value, axis: int) -> Value:
    shape = (*x.shape[:axis], 1, *x.shape[axis:])
    return plan.step("Unsqueeze", at, (x, plan.literal(at, [axis])), shape, kind=x.kind, rms=x.rms, span=x.span)


def squeeze(plan: Blueprint, at: str, x: Value, axis: int) -> Value:
    shape = (*x.shape[:axis], *x.shape[axis + 1 :])
    return plan.step("Squeeze", at, (x, plan.literal(at, [axis])), shape, kind=x.kind, rms=x.rms, span=x.span)


def expand(plan: Blueprint, at: str, x: Value | Weight, shape: Shape) -> Value:
    kind, rms = (x.kind, x.rms) if isinstance(x, Value) else (ValueKind.FLOAT, 1.0)
    return plan.step("Expand", at, (x, plan.literal(at, shape)), shape, kind=kind, rms=rms)


def concat(plan: Blueprint, at: str, parts: Sequence[Value], *, axis: int, precise: bool = False) -> Value:
    first = parts[0]
    shape = list(first.shape)
    shape[axis] = sum(part.shape[axis] for part in parts)
    attributes = {"axis": axis}
    return plan.step(
        "Concat", at, parts, tuple(shape), kind=first.kind, rms=first.rms, attributes=attributes, precise=precise
    )


def last_slice(plan: Blueprint, at: str, x: Value, start: int, end: int) -> Value:
    """Take the elements `start` to `end` of the last axis."""
    bounds = [plan.literal(at, [number]) for number in (start, end, len(x.shape) - 1)]
    return plan.step("Slice", at, (x, *bounds), (*x.shape[:-1], end - start), rms=x.rms, span=x.span, precise=True)


def cast(plan: Blueprint, at: str, x: Value, kind: ValueKind) -> Value:
    return plan.step("Cast", at, [x], x.shape, kind=kind, rms=x.rms, span=x.span, precise=True)


def widen(plan: Blueprint, at: str, x: Value) -> Value:
    """Cast to f32 if the model is f16; exporters omit the cast otherwise."""
    return cast(plan, at, x, ValueKind.F32) if plan.half else x


def narrow(plan: Blueprint, at: str, x: Value) -> Value:
    return cast(plan, at, x, ValueKind.FLOAT) if plan.half else x
