"""Normalisations over axes: layer norm, RMS norm and softmax, named and spelled out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import onnx_ir as ir

from ..catalogue import named
from ..rewrite import RewriteContext, everywhere
from . import editor
from .libraries import by_library
from .library_worker import LAYER_NORM_SINCE, RAISED
from .rule import (
    Maker,
    Match,
    array_of,
    attribute,
    extents_of,
    is_op,
    is_open,
    numbers_of,
    only_reader,
    opset_of,
    producer,
    whole,
)

FLOATS = (ir.DataType.FLOAT, ir.DataType.FLOAT16)


@dataclass(frozen=True, slots=True)
class _Scaled:
    """A value over the root of its mean square."""

    value: ir.Value
    epsilon: float
    axis: int  # the first that is normalised, counted from the front; all after it are too
    nodes: tuple[ir.Node, ...]


def name_layer_norm(node: ir.Node) -> Match | None:
    """A layer norm that is spelled out, as LayerNormalization; scale and shift are taken in."""
    found = _scaled(node) if opset_of(node) >= LAYER_NORM_SINCE else None
    centred = None if found is None else producer(found.value, "Sub")
    mean = None if centred is None else producer(centred.inputs[1], "ReduceMean")
    if found is None or centred is None or mean is None or mean.inputs[0] is not centred.inputs[0]:
        return None
    x = centred.inputs[0]
    shape = extents_of(x)
    if x is None or shape is None or _reduced(mean) != list(range(found.axis, len(shape))):
        return None
    return _named(node, "LayerNormalization", x, found, (centred, mean))


def name_rms_norm(node: ir.Node) -> Match | None:
    """An RMS norm that is spelled out, as RMSNormalization."""
    found = _scaled(node) if opset_of(node) >= 23 else None
    return None if found is None else _named(node, "RMSNormalization", found.value, found, ())


@whole
def raise_for_layer_norm(model: ir.Model, context: RewriteContext) -> ir.Model:
    """A model of a version that has no LayerNormalization, in the first that has, with its layer norms named."""
    kinds = {node.op_type for node in model.graph}
    if model.graph.opset_imports.get("", LAYER_NORM_SINCE) >= LAYER_NORM_SINCE or not kinds >= {"ReduceMean", "Sqrt"}:
        return model
    raised = by_library(model, RAISED, context)
    changed, sites = editor.apply(raised, named("name-layer-norms", "onnx"), everywhere)
    return changed if sites else model


def _named(node: ir.Node, kind: str, x: ir.Value, found: _Scaled, more: tuple[ir.Node, ...]) -> Match | None:
    shape = extents_of(x)
    normal = () if shape is None else shape[found.axis :]
    if shape is None or x.dtype not in FLOATS or any(map(is_open, normal)):
        return None
    scale, scaled = _by_constant(node, "Mul", normal)
    last = node if scaled is None else scaled
    shift, shifted = _by_constant(last, "Add", normal) if kind == "LayerNormalization" else (None, None)
    last = last if shifted is None else shifted
    dtype = x.dtype.numpy()

    def build(make: Maker) -> Mapping[ir.Value, ir.Value]:
        factors = make.constant(np.broadcast_to(np.ones((), dtype) if scale is None else scale, normal), "scale")
        terms = () if shift is None else (make.constant(np.broadcast_to(shift, normal), "shift"),)
        made = make.op(kind, x, factors, *terms, shape=shape, axis=found.axis, epsilon=found.epsilon)
        return {last.outputs[0]: made}

    touched = [each for each in (last, scaled, node, *found.nodes, *more) if each is not None]
    return Match(list(dict.fromkeys(touched)), build)


def _by_constant(node: ir.Node, kind: str, normal: tuple[int, ...]) -> tuple[np.ndarray | None, ir.Node | None]:
    """The constant that alone is applied next, where it is the same for everything that is normalised apart."""
    reader = only_reader(node.outputs[0], kind)
    others = [] if reader is None else [value for value in reader.inputs if value is not node.outputs[0]]
    array = array_of(others[0]) if len(others) == 1 else None
    if reader is None or array is None or extents_of(reader.outputs[0]) != extents_of(node.outputs[0]):
        return None, None
    while array.ndim > len(normal) and array.shape[0] == 1:
        array = array[0]
    return (array, reader) if array.ndim <= len(normal) else (None, None)


def _scaled(node: ir.Node) -> _Scaled | None:
    """What a node that is the last of x ÷ √(mean x² + ε), or of x · (1 ÷ √…), normalises."""
    if is_op(node, "Div"):
        choices = [(node.inputs[0], _rooted(node.inputs[1]))]
    elif is_op(node, "Mul") and len(node.inputs) == 2:
        choices = [(value, _inverse_rooted(other)) for value, other in (node.inputs, node.inputs[::-1])]
    else:
        return None
    for value, under in choices:
        found = None if under is None else _mean_square(value, under[0])
        if found is not None and under is not None:
            return replace(found, nodes=(*under[1], *found.nodes))
    return None


_Under = tuple[ir.Value | None, tuple[ir.Node, ...]]  # a value whose root is taken, and the ops that do


def _rooted(value: ir.Value | None) -> _Under | None:
    """What a value is the root of."""
    root = producer(value, "Sqrt", "Pow")
    if root is None or (is_op(root, "Pow") and _number(root.inputs[1]) != 0.5):
        return None
    return root.inputs[0], (root,)


def _inverse_rooted(value: ir.Value | None) -> _Under | None:
    """What a value is one over the root of."""
    turned = producer(value, "Reciprocal", "Div", "Pow")
    if turned is None:
        return None
    if is_op(turned, "Pow"):
        return (turned.inputs[0], (turned,)) if _number(turned.inputs[1]) == -0.5 else None
    if is_op(turned, "Div") and _number(turned.inputs[0]) != 1:
        return None
    under = _rooted(turned.inputs[-1])
    return None if under is None else (under[0], (turned, *under[1]))


def _mean_square(value: ir.Value | None, total: ir.Value | None) -> _Scaled | None:
    """ε and the axis, where `total` is the mean of the square of a value, plus ε."""
    plus = producer(total, "Add")
    if plus is None or value is None:
        return None
    for mean_value, number in (plus.inputs, plus.inputs[::-1]):
        epsilon, mean = _number(number), producer(mean_value, "ReduceMean")
        axes = None if mean is None else _reduced(mean)
        rank = None if value.shape is None else len(value.shape)
        if epsilon is None or mean is None or axes is None or rank is None or axes != list(range(axes[0], rank)):
            continue
        square = producer(mean.inputs[0], "Pow", "Mul")
        base = None if square is None else square.inputs[0]
        is_square = square is not None and (
            _number(square.inputs[1]) == 2 if is_op(square, "Pow") else square.inputs[1] is base
        )
        if square is not None and is_square and _is_same(base, value):
            again = producer(base, "Sub")
            also = () if again is None or base is value else (again,)
            return _Scaled(value, epsilon, axes[0], (plus, mean, square, *also))
    return None


def _is_same(one: ir.Value | None, other: ir.Value | None) -> bool:
    """Whether two values are one, or are the same difference: exporters may write it twice."""
    if one is other:
        return True
    first, second = producer(one, "Sub"), producer(other, "Sub")
    return first is not None and second is not None and list(first.inputs) == list(second.inputs)


def _reduced(node: ir.Node) -> list[int] | None:
    """Axes of a reduction that keeps them, from the front; None where they are not known."""
    rank = None if node.inputs[0] is None or node.inputs[0].shape is None else len(node.inputs[0].shape)
    axes = attribute(node, "axes") if len(node.inputs) < 2 else numbers_of(node.inputs[1])
    if rank is None or not axes or not attribute(node, "keepdims", 1):
        return None
    return sorted(axis % rank for axis in axes)


def _number(value: ir.Value | None) -> float | None:
    array = array_of(value)
    return None if array is None or array.size != 1 else float(array.ravel()[0])


def spell_layer_norm(node: ir.Node) -> Match | None:
    """LayerNormalization or RMSNormalization in means, products and a root."""
    if not is_op(node, "LayerNormalization", "RMSNormalization") or len(node.outputs) > 1:
        return None
    x, shape = node.inputs[0], extents_of(node.inputs[0])
    if x is None or shape is None or x.dtype is not ir.DataType.FLOAT:
        return None  # halves are summed in float inside of the op
    axes = list(range(attribute(node, "axis", -1) % len(shape), len(shape)))
    epsilon = np.float32(attribute(node, "epsilon", 1e-5))
    reduced = tuple(1 if axis in axes else extent for axis, extent in enumerate(shape))
    by_input = opset_of(node) >= 18

    def mean(make: Maker, value: ir.Value) -> ir.Value:
        if by_input:
            return make.op("ReduceMean", value, make.constant(axes, "axes"), shape=reduced, keepdims=1)
        return make.op("ReduceMean", value, shape=reduced, axes=axes, keepdims=1)

    def build(make: Maker) -> Mapping[ir.Value, ir.Value]:
        value = x
        if is_op(node, "LayerNormalization"):
            value = make.op("Sub", x, mean(make, x), shape=shape)
        square = mean(make, make.op("Mul", value, value, shape=shape))
        root = make.op("Sqrt", make.op("Add", square, make.constant(np.asarray(epsilon)), shape=reduced), shape=reduced)
        value = make.op("Div", value, root, shape=shape)
        for kind, constant in zip(("Mul", "Add"), node.inputs[1:], strict=False):
            value = value if constant is None else make.op(kind, value, constant, shape=shape)
        return {node.outputs[0]: value}

    return Match((node,), build)


def name_softmax(node: ir.Node) -> Match | None:
    """Exp over its own sum, as Softmax; the largest that was taken away before is what Softmax does itself."""
    exp = producer(node.inputs[0], "Exp") if is_op(node, "Div") and opset_of(node) >= 13 else None
    total = producer(node.inputs[1], "ReduceSum") if exp is not None else None
    axes = None if total is None or exp is None or total.inputs[0] is not exp.outputs[0] else _reduced(total)
    if exp is None or total is None or axes is None or len(axes) != 1:
        return None
    less = producer(exp.inputs[0], "Sub")
    most = None if less is None else producer(less.inputs[1], "ReduceMax")
    is_less = less is not None and most is not None and most.inputs[0] is less.inputs[0] and _reduced(most) == axes
    x = less.inputs[0] if is_less and less is not None else exp.inputs[0]
    more = (less, most) if is_less else ()
    if x is None or x.dtype not in FLOATS:
        return None

    def build(make: Maker) -> Mapping[ir.Value, ir.Value]:
        made = make.op("Softmax", x, axis=axes[0])
        made.shape = node.outputs[0].shape
        return {node.outputs[0]: made}

    return Match([each for each in (node, exp, total, *more) if each is not None], build)
