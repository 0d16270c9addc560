"""Shape inference for common operators, so that a plain convolutional model need not wait for `onnx` to load.

All or nothing: at the first node that is not in the table, or has an unusual form, the whole model is left to `onnx`. A
test compares every result with that package's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from .model import Body, Element, Node, Value

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Operand:
    """A tensor of known element type and shape."""

    element: int
    shape: Shape
    integers: tuple[int, ...] | None = None


Operands = Sequence[Operand | None]
_Rule = Callable[[Node, Operands], Operand | None]


def quick_shapes(body: Body) -> Body | None:
    """Return the body with every shape inferred; None if a node is not covered by the table."""
    known = {
        name: Operand(value.element, shape)
        for name, value in body.values.items()
        if value.is_tensor and value.element and (shape := value.shape) is not None
    }
    for constant in body.constants.values():
        known[constant.name] = Operand(constant.element, constant.dims, constant.integers)
    values = dict(body.values)
    for node in body.nodes:
        outputs = [name for name in node.outputs if name]
        has_bodies = any(True for _ in node.bodies())
        if all(name in known for name in outputs) and not has_bodies:
            continue
        found = _infer(node, [known.get(name) for name in node.inputs]) if len(outputs) == 1 else None
        if found is None or has_bodies:
            return None
        known[outputs[0]] = found
        values[outputs[0]] = Value(outputs[0], found.element, found.shape)
    return replace(body, values=values)


def _infer(node: Node, operands: Operands) -> Operand | None:
    """Apply the node's rule; None if it has none or an operand is unknown."""
    rule = _RULES.get(node.op_type)
    all_known = all(operand is not None for operand, name in zip(operands, node.inputs, strict=True) if name)
    if rule is None or node.domain or not all_known or not operands or operands[0] is None or not node.outputs[0]:
        return None
    return rule(node, operands)


def _operand(operands: Operands, index: int) -> Operand | None:
    return operands[index] if index < len(operands) else None


def _same_shape(node: Node, operands: Operands) -> Operand | None:
    first = operands[0]
    return Operand(first.element, first.shape) if first else None


def _broadcast(node: Node, operands: Operands) -> Operand | None:
    shape: Shape | None = ()
    for operand in operands:
        shape = _broadcast_shapes(shape, operand.shape) if operand and shape is not None else None
    first = operands[0]
    return Operand(first.element, shape) if first and shape is not None else None


def _broadcast_shapes(left: Shape, right: Shape) -> Shape | None:
    """Broadcast two shapes by NumPy's rules; None if they do not match. (8, 1, 5) and (3, 1) give (8, 3, 5)."""
    rank = max(len(left), len(right))
    padded = zip((1,) * (rank - len(left)) + left, (1,) * (rank - len(right)) + right, strict=True)
    extents = [b if a == 1 else a if b in (1, a) else None for a, b in padded]
    known = tuple(extent for extent in extents if extent is not None)
    return known if len(known) == rank else None


def _quantize(node: Node, operands: Operands) -> Operand | None:
    data, zero = operands[0], _operand(operands, 2)
    if data is None or node.integer("output_dtype", 0):
        return None
    return Operand(zero.element if zero else Element.UINT8, data.shape)


def _dequantize(node: Node, operands: Operands) -> Operand | None:
    data, scale = operands[0], _operand(operands, 1)
    return Operand(scale.element, data.shape) if data and scale and not node.integer("output_dtype", 0) else None


def _conv(node: Node, operands: Operands) -> Operand | None:
    return _conv_output(node, operands[0], _operand(operands, 1))


def _quantised_conv(node: Node, operands: Operands) -> Operand | None:
    out, zero = _conv_output(node, operands[0], _operand(operands, 3)), _operand(operands, 7)
    return Operand(zero.element, out.shape) if out and zero else None


def _conv_output(node: Node, data: Operand | None, weights: Operand | None) -> Operand | None:
    if data is None or weights is None or len(data.shape) != len(weights.shape) or len(data.shape) < 3:
        return None
    spatial = _window_counts(node, data.shape[2:], node.integers("kernel_shape") or weights.shape[2:])
    return Operand(data.element, (data.shape[0], weights.shape[0], *spatial)) if spatial is not None else None


def _pool(node: Node, operands: Operands) -> Operand | None:
    data, kernel = operands[0], node.integers("kernel_shape")
    if data is None or kernel is None or node.integer("ceil_mode", 0):
        return None
    spatial = _window_counts(node, data.shape[2:], kernel)
    return Operand(data.element, (*data.shape[:2], *spatial)) if spatial is not None else None


def _window_counts(node: Node, extents: Shape, kernel: Shape) -> Shape | None:
    """Return the window positions along each spatial dimension; explicit padding only."""
    rank = len(extents)
    strides, dilations = node.integers("strides") or (1,) * rank, node.integers("dilations") or (1,) * rank
    pads = node.integers("pads") or (0,) * (2 * rank)
    lengths = (len(kernel), len(strides), len(dilations), len(pads))
    if node.text("auto_pad", "NOTSET") != "NOTSET" or lengths != (rank, rank, rank, 2 * rank) or min(strides) < 1:
        return None
    counts = []
    for axis, extent in enumerate(extents):
        padded = extent + pads[axis] + pads[axis + rank]
        # A 3-wide kernel with dilation 2 spans 5 elements: 2 × (3 - 1) + 1.
        counts.append((padded - dilations[axis] * (kernel[axis] - 1) - 1) // strides[axis] + 1)
    return tuple(counts) if min(counts) > 0 else None


def _global_pool(node: Node, operands: Operands) -> Operand | None:
    data = operands[0]
    return Operand(data.element, (*data.shape[:2], *(1,) * (len(data.shape) - 2))) if data else None


def _gemm(node: Node, operands: Operands) -> Operand | None:
    left, right = operands[0], _operand(operands, 1)
    if left is None or right is None or len(left.shape) != 2 or len(right.shape) != 2:
        return None
    rows = left.shape[1 if node.integer("transA", 0) else 0]
    columns = right.shape[0 if node.integer("transB", 0) else 1]
    return Operand(left.element, (rows, columns))


def _matmul(node: Node, operands: Operands) -> Operand | None:
    left, right = operands[0], _operand(operands, 1)
    if left is None or right is None or len(left.shape) < 2 or len(right.shape) < 2:
        return None
    batch = _broadcast_shapes(left.shape[:-2], right.shape[:-2])
    if batch is None or left.shape[-1] != right.shape[-2]:
        return None
    return Operand(left.element, (*batch, left.shape[-2], right.shape[-1]))


def _flatten(node: Node, operands: Operands) -> Operand | None:
    data, axis = operands[0], node.integer("axis", 1)
    if data is None or not 0 <= axis <= len(data.shape):
        return None
    return Operand(data.element, (prod(data.shape[:axis]), prod(data.shape[axis:])))


def _reshape(node: Node, operands: Operands) -> Operand | None:
    """A constant target: 0 keeps an extent, one -1 takes the remaining elements."""
    data, target = operands[0], _operand(operands, 1)
    if data is None or target is None or target.integers is None or node.integer("allowzero", 0):
        return None
    target_shape = target.integers
    if any(extent == 0 and place >= len(data.shape) for place, extent in enumerate(target_shape)):
        return None
    shape = [data.shape[place] if extent == 0 else extent for place, extent in enumerate(target_shape)]
    total, rest = prod(data.shape), prod(extent for extent in shape if extent != -1)
    if shape.count(-1) == 1 and rest and total % rest == 0:
        shape[shape.index(-1)] = total // rest
    return Operand(data.element, tuple(shape)) if min(shape, default=0) >= 0 and prod(shape) == total else None


def _transpose(node: Node, operands: Operands) -> Operand | None:
    data = operands[0]
    if data is None:
        return None
    order = node.integers("perm") or tuple(reversed(range(len(data.shape))))
    if sorted(order) != list(range(len(data.shape))):
        return None
    return Operand(data.element, tuple(data.shape[axis] for axis in order))


def _concat(node: Node, operands: Operands) -> Operand | None:
    first, axis = operands[0], node.integer("axis", 0)
    shapes = [operand.shape for operand in operands if operand]
    if first is None or len(shapes) != len(operands) or not -len(first.shape) <= axis < len(first.shape):
        return None
    axis %= len(first.shape)
    if len({(*shape[:axis], *shape[axis + 1 :]) for shape in shapes if len(shape) == len(first.shape)}) != 1:
        return None
    total = sum(shape[axis] for shape in shapes)
    return Operand(first.element, (*first.shape[:axis], total, *first.shape[axis + 1 :]))


_SAME_SHAPE = (
    "Relu LeakyRelu Sigmoid Tanh Clip Elu Selu Softmax LogSoftmax Softplus HardSigmoid HardSwish Identity Erf Exp Log "
    "Sqrt Neg Abs Floor Ceil Reciprocal BatchNormalization InstanceNormalization LayerNormalization LRN Dropout "
    "Sin Cos Tan Asin Acos Atan Sinh Cosh Asinh Acosh Atanh Round Sign Softsign Celu ThresholdedRelu Mish Gelu Swish"
)

_RULES: Mapping[str, _Rule] = (
    dict.fromkeys(_SAME_SHAPE.split(), _same_shape)
    | dict.fromkeys(("Add", "Sub", "Mul", "Div", "Sum"), _broadcast)
    | {
        "QuantizeLinear": _quantize,
        "DequantizeLinear": _dequantize,
        "Conv": _conv,
        "QLinearConv": _quantised_conv,
        "MaxPool": _pool,
        "AveragePool": _pool,
        "GlobalAveragePool": _global_pool,
        "GlobalMaxPool": _global_pool,
        "Gemm": _gemm,
        "MatMul": _matmul,
        "Flatten": _flatten,
        "Reshape": _reshape,
        "Transpose": _transpose,
        "Concat": _concat,
    }
)
