"""Where the samples of a batch lie in a value, and which ops keep them apart.

Samples lie along one axis of a value, each an equal run of it: the batch itself, as a rule, or rows that windows or
tokens of a batch were joined to. An op keeps samples apart where each of its results, cut along an axis, comes from the
operands cut alike; then it can be made of one sample where it was of many, or of many where it was of one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import onnx_ir as ir

from ..layouts import slices_of
from ..reshapes import RESHAPES
from ..rule import Maker, Shape, attribute, is_op, numbers_of, opset_of, shape_of

ELEMENTWISE = (
    *("Abs", "Acos", "Add", "And", "Asin", "Atan", "BitShift", "Cast", "Ceil", "Celu", "Clip", "Cos", "Div", "Elu"),
    *("Equal", "Erf", "Exp", "Floor", "Gelu", "Greater", "GreaterOrEqual", "HardSigmoid", "HardSwish", "Identity"),
    *("IsInf", "IsNaN", "LeakyRelu", "Less", "LessOrEqual", "Log", "Max", "Mean", "Min", "Mish", "Mod", "Mul", "Neg"),
    *("Not", "Or", "PRelu", "Pow", "Reciprocal", "Relu", "Round", "Selu", "Sigmoid", "Sign", "Sin", "Softplus"),
    *("Softsign", "Sqrt", "Sub", "Sum", "Swish", "Tan", "Tanh", "ThresholdedRelu", "Where", "Xor"),
)
PICTURES = (  # the batch is the first axis of their first operand; others are the same for all samples
    *("AveragePool", "BatchNormalization", "Conv", "ConvTranspose", "DepthToSpace", "GlobalAveragePool"),
    *("GlobalLpPool", "GlobalMaxPool", "GroupNormalization", "InstanceNormalization", "LRN", "LpPool", "MaxPool"),
    *("SpaceToDepth",),
)
ALONG = ("Hardmax", "LogSoftmax", "LpNormalization", "Softmax", "Split", "TopK")  # one axis, which the results have
REDUCTIONS = tuple(
    f"Reduce{how}" for how in ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")
)


@dataclass(frozen=True, slots=True)
class Apart:
    """The axes of an op along which samples lie."""

    inputs: tuple[int | None, ...]  # None: all samples read the same
    outputs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Asked:
    """An op, and where samples lie in what it reads."""

    node: ir.Node
    axes: tuple[int | None, ...]
    shapes: tuple[Shape, ...]
    results: tuple[Shape, ...]
    samples: int  # to cut it in; 1: it is of one

    @property
    def first(self) -> int | None:
        """The axis of the first operand, where samples lie in no other."""
        return self.axes[0] if all(axis is None for axis in self.axes[1:]) else None

    def answer(self, axis: int | None) -> Apart | None:
        """That samples lie along an axis of all results."""
        return None if axis is None else Apart(self.axes, (axis,) * len(self.results))

    @property
    def along(self) -> int:
        """The axis that an attribute names, from the front."""
        default = {"Concat": 0, "Gather": 0, "Split": 0, "ArgMax": 0, "ArgMin": 0}.get(self.node.op_type, -1)
        return int(attribute(self.node, "axis", default)) % max(len(self.shapes[0]), 1)


def kept_apart(node: ir.Node, axes: Sequence[int | None], samples: int) -> Apart | None:
    """Where samples lie in the results of an op; None where it does not keep them apart, or shapes are not known.

    Args:
        axes: along which they lie in each operand; None: all samples read the same.
        samples: that it is of, and to be cut in; 1 for an op of one sample.
    """
    rule = RULES.get(node.op_type) if is_op(node, node.op_type) and any(axis is not None for axis in axes) else None
    shapes = [() if value is None else shape_of(value) for value in node.inputs]
    results = [shape_of(value) for value in node.outputs]
    known, made = [shape for shape in shapes if shape is not None], [shape for shape in results if shape is not None]
    if rule is None or len(known) < len(shapes) or len(made) < len(results) or any(0 in each for each in known + made):
        return None
    found = rule(_Asked(node, tuple(axes), tuple(known), tuple(made), samples))
    if found is None or any(shape[axis] % samples for shape, axis in zip(made, found.outputs, strict=True)):
        return None
    return found


def remade(
    make: Maker, node: ir.Node, inputs: Sequence[ir.Value | None], found: Apart, extent: Callable[[int], int]
) -> Sequence[ir.Value]:
    """An op of other operands: of one sample where it was of many, or of many where it was of one.

    Args:
        extent: of an axis of samples, from what it was.
    """
    shapes = []
    for value, axis in zip(node.outputs, found.outputs, strict=True):
        shape = list(shape_of(value) or ())
        shape[axis] = extent(shape[axis])
        shapes.append(shape)
    kind, operands = node.op_type, list(inputs)
    if is_op(node, *RESHAPES, "Expand"):
        kind = "Expand" if is_op(node, "Expand") else "Reshape"
        made = make.tape.op_multi_out(kind, [operands[0], make.constant(shapes[0], "shape")], num_outputs=1)
    else:
        if is_op(node, "Resize") and len(operands) > 3 and operands[3] is not None:
            operands[3] = make.constant(shapes[0], "sizes")
        made = make.tape.op_multi_out(kind, operands, node.attributes, num_outputs=len(node.outputs))
    for value, old, shape in zip(made, node.outputs, shapes, strict=True):
        value.type, value.shape = old.type, ir.Shape(shape)
    return made


def _elementwise(asked: _Asked) -> Apart | None:
    return _broadcast(asked, asked.shapes)


def _broadcast(asked: _Asked, shapes: Sequence[Shape], ends: int = 0) -> Apart | None:
    """Operands whose axes are counted from the last; the `ends` last are none of these."""
    places = {axis - len(shape) for axis, shape in zip(asked.axes, shapes, strict=True) if axis is not None}
    place, result = places.pop(), asked.results[0]
    if places or place >= -ends or -place > len(result):
        return None
    found: list[int | None] = []
    for axis, shape in zip(asked.axes, shapes, strict=True):
        has = len(shape) >= -place and shape[place] == result[place]
        if axis is not None and not has:
            return None  # one sample would be spread over what others fill
        found.append(len(shape) + place if has and (axis is not None or result[place] > 1) else None)
    return Apart(tuple(found), (len(result) + place,))


def _picture(asked: _Asked) -> Apart | None:
    is_training = attribute(asked.node, "training_mode", 0)
    return asked.answer(0) if asked.first == 0 and len(asked.results) == 1 and not is_training else None


def _along(asked: _Asked) -> Apart | None:
    axis, along = asked.first, asked.along
    if is_op(asked.node, "Softmax", "LogSoftmax", "Hardmax") and opset_of(asked.node) < 13:  # of all axes from it on
        along = int(attribute(asked.node, "axis", 1)) % len(asked.shapes[0])
        return asked.answer(axis) if axis is not None and axis < along else None
    return asked.answer(axis) if axis != along else None


def _normalized(asked: _Asked) -> Apart | None:
    axis = asked.first
    return asked.answer(axis) if axis is not None and axis < asked.along and len(asked.results) == 1 else None


def _reduced(asked: _Asked) -> Apart | None:
    rank = len(asked.shapes[0])
    axes = [asked.along] if is_op(asked.node, "ArgMax", "ArgMin") else _axes(asked.node)
    axis = asked.first
    if axis is None or not axes or axis in {each % rank for each in axes}:
        return None
    gone = 0 if attribute(asked.node, "keepdims", 1) else sum(each % rank < axis for each in axes)
    return asked.answer(axis - gone)


def _axes(node: ir.Node) -> list[int]:
    """Axes that an attribute or a constant names; none where neither does."""
    given = attribute(node, "axes")
    return list(given) if given else (numbers_of(node.inputs[1]) or []) if len(node.inputs) > 1 else []


def _transposed(asked: _Asked) -> Apart | None:
    axis, order = asked.first, list(attribute(asked.node, "perm", range(len(asked.shapes[0]))[::-1]))
    return asked.answer(order.index(axis)) if axis in order else None


def _reshaped(asked: _Asked) -> Apart | None:
    """The axis before which there are as many elements as before the one of the samples."""
    axis, shape, result = asked.first, asked.shapes[0], asked.results[0]
    if axis is None:
        return None
    before = prod(shape[:axis])
    places = [
        place for place, extent in enumerate(result) if prod(result[:place]) == before and extent % asked.samples == 0
    ]
    return asked.answer(axis if axis in places else places[0]) if places else None


def _expanded(asked: _Asked) -> Apart | None:
    axis, shape, result = asked.first, asked.shapes[0], asked.results[0]
    place = None if axis is None else axis + len(result) - len(shape)
    return None if place is None or axis is None or shape[axis] != result[place] else asked.answer(place)


def _matmul(asked: _Asked) -> Apart | None:
    """Rows of the first, columns of the second, or what is the same axis of both."""
    (one, other), (rows, columns) = asked.shapes[:2], asked.axes[:2]
    if len(one) < 2 or len(other) < 2:
        return None
    rank = len(asked.results[0])
    if columns is None and rows == len(one) - 2:
        return asked.answer(rank - 2)
    if rows is None and columns == len(other) - 1:
        return asked.answer(rank - 1)
    return _broadcast(asked, asked.shapes, ends=2)


def _gemm(asked: _Asked) -> Apart | None:
    added = asked.shapes[2] if len(asked.shapes) > 2 else ()
    if asked.first != 0 or attribute(asked.node, "transA", 0) or (len(added) == 2 and added[0] > 1):
        return None
    return asked.answer(0)


def _joined(asked: _Asked) -> Apart | None:
    axes = {axis for axis in asked.axes if axis is not None}
    axis = axes.pop()
    return None if axes or axis == asked.along else Apart((axis,) * len(asked.axes), (axis,))


def _sliced(asked: _Asked) -> Apart | None:
    axis, (shape, *_), (result, *_) = asked.first, asked.shapes, asked.results
    cuts = slices_of(asked.node, shape)
    for place, start, step in cuts or ():
        is_all = asked.samples > 1 and (start, step) == (0, 1) and shape[place] == result[place]
        if place == axis and not is_all:
            return None
    return asked.answer(axis) if cuts else None


def _gathered(asked: _Asked) -> Apart | None:
    along, (values, places) = asked.along, asked.axes
    if values is None:
        return None if places is None else asked.answer(along + places)
    if places is not None or values == along:
        return None
    return asked.answer(values + (len(asked.shapes[1]) - 1 if values > along else 0))


def _padded(asked: _Asked) -> Apart | None:
    pads = attribute(asked.node, "pads") or (numbers_of(asked.node.inputs[1]) if len(asked.node.inputs) > 1 else None)
    axis, rank = asked.first, len(asked.shapes[0])
    if axis is None or pads is None or len(pads) != 2 * rank or len(asked.node.inputs) > 3:
        return None
    return None if pads[axis] or pads[axis + rank] else asked.answer(axis)


def _resized(asked: _Asked) -> Apart | None:
    plain = attribute(asked.node, "axes") is None and attribute(asked.node, "keep_aspect_ratio_policy") is None
    return asked.answer(0) if asked.first == 0 and plain and asked.shapes[0][0] == asked.results[0][0] else None


def _quantized(asked: _Asked) -> Apart | None:
    """Steps of a grid that are the same for all samples."""
    by_axis = any(prod(shape) > 1 for shape in asked.shapes[1:])
    along = int(attribute(asked.node, "axis", 1)) % max(len(asked.shapes[0]), 1)
    if attribute(asked.node, "block_size", 0) or (by_axis and along == asked.first):
        return None
    return asked.answer(asked.first)


def _recurrent(asked: _Asked) -> Apart | None:
    """Of a sequence whose second axis is the batch; so it is of states, and the third of results."""
    node, states = asked.node, {0, 5, 6}
    given = {place for place, value in enumerate(node.inputs) if value is not None}
    others = [axis for place, axis in enumerate(asked.axes) if axis is not None and (place not in states or axis != 1)]
    if asked.axes[0] != 1 or others or given & {4, 7} or attribute(node, "layout", 0):
        return None  # lengths of sequences, or peepholes
    inputs = tuple(1 if place in given & states else None for place in range(len(asked.axes)))
    return Apart(inputs, (2, 1, 1)[: len(asked.results)])


RULES: Mapping[str, Callable[[_Asked], Apart | None]] = {
    **dict.fromkeys(ELEMENTWISE, _elementwise),
    **dict.fromkeys(PICTURES, _picture),
    **dict.fromkeys(ALONG, _along),
    **dict.fromkeys((*REDUCTIONS, "ArgMax", "ArgMin"), _reduced),
    **dict.fromkeys(("LayerNormalization", "RMSNormalization"), _normalized),
    **dict.fromkeys(RESHAPES, _reshaped),
    **dict.fromkeys(("QuantizeLinear", "DequantizeLinear"), _quantized),
    **dict.fromkeys(("GRU", "LSTM", "RNN"), _recurrent),
    "Concat": _joined,
    "Expand": _expanded,
    "Gather": _gathered,
    "Gemm": _gemm,
    "MatMul": _matmul,
    "Pad": _padded,
    "Resize": _resized,
    "Slice": _sliced,
    "Transpose": _transposed,
}
