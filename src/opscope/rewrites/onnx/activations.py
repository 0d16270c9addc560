"""Activations: recognised by what they compute, however they are spelled, and written as one op or as many."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import erf, pi, sqrt
from typing import Any

import numpy as np
import onnx_ir as ir

from .rule import Array, Maker, Match, array_of, attribute, is_op, opset_of

MOST_NODES = 12  # of an activation: the longest spelling in use has nine
MOST_NUMBERS = 4096  # that are looked at to see that they are one
MICROSOFT = "com.microsoft"
_POINTS = np.concatenate([np.linspace(-9, 9, 181), [-30.0, 25.0]])  # where activations are told apart
_ERF = np.vectorize(erf, otypes=[np.float64])
_TANH_CUBE, _TANH_SCALE = 0.044715, sqrt(2 / pi)  # of the tanh form of GELU (Hendrycks and Gimpel, arXiv 1606.08415)
_SIGMOID_SCALE = 1.702  # of its sigmoid form, there too


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def _clip(node: ir.Node, x: Array, *bounds: Array) -> Array:
    low = bounds[0] if bounds else attribute(node, "min", -np.inf)
    high = bounds[1] if len(bounds) > 1 else attribute(node, "max", np.inf)
    return np.clip(x, low, high)


_OPS: Mapping[str, Callable[..., Array]] = {
    "Add": lambda _, x, y: x + y,
    "Sub": lambda _, x, y: x - y,
    "Mul": lambda _, x, y: x * y,
    "Div": lambda _, x, y: x / y,
    "Pow": lambda _, x, y: np.power(x, y),
    "Min": lambda _, *xs: np.minimum.reduce(np.broadcast_arrays(*xs)),
    "Max": lambda _, *xs: np.maximum.reduce(np.broadcast_arrays(*xs)),
    "Neg": lambda _, x: -x,
    "Abs": lambda _, x: np.abs(x),
    "Exp": lambda _, x: np.exp(x),
    "Log": lambda _, x: np.log(x),
    "Sqrt": lambda _, x: np.sqrt(x),
    "Reciprocal": lambda _, x: 1 / x,
    "Identity": lambda _, x: x,
    "Erf": lambda _, x: _ERF(x),
    "Tanh": lambda _, x: np.tanh(x),
    "Sigmoid": lambda _, x: _sigmoid(x),
    "Softplus": lambda _, x: np.logaddexp(0, x),
    "Relu": lambda _, x: np.maximum(x, 0),
    "Clip": _clip,
    "HardSigmoid": lambda node, x: np.clip(attribute(node, "alpha", 0.2) * x + attribute(node, "beta", 0.5), 0, 1),
    "HardSwish": lambda _, x: x * np.clip(x / 6 + 0.5, 0, 1),
    "Mish": lambda _, x: x * np.tanh(np.logaddexp(0, x)),
    "Gelu": lambda node, x: _gelu_tanh(x) if attribute(node, "approximate", "none") == "tanh" else _gelu(x),
}


def _gelu(x: Array) -> Array:
    return np.asarray(x * 0.5 * (1 + _ERF(x / sqrt(2))))


def _gelu_tanh(x: Array) -> Array:
    return np.asarray(0.5 * x * (1 + np.tanh(_TANH_SCALE * (x + _TANH_CUBE * x**3))))


class _Writer:
    """Writes an activation: ops with numbers in the type of the value that they are applied to."""

    def __init__(self, make: Maker, x: ir.Value, opset: int) -> None:
        self.make, self.x, self.opset = make, x, opset

    def __call__(self, kind: str, *inputs: ir.Value | float, domain: str = "", **attributes: Any) -> ir.Value:
        values = [each if isinstance(each, ir.Value) else self._number(each) for each in inputs]
        made = self.make.op(kind, *values, domain=domain, **attributes)
        made.shape = self.x.shape
        return made

    def _number(self, number: float) -> ir.Value:
        dtype = (self.x.dtype or ir.DataType.FLOAT).numpy()
        return self.make.constant(np.asarray(number, dtype), "number")


Writing = Callable[[_Writer], ir.Value]


@dataclass(frozen=True, slots=True)
class Activation:
    """A function of one value, and how it is written."""

    compute: Callable[[Array], Array]
    long: Writing  # in ops that every target has, and every version of ONNX
    long_nodes: int
    op: Writing | None = None  # as one op
    since: int = 1  # version of ONNX that has it


def _write_gelu(w: _Writer) -> ir.Value:
    return w("Mul", w("Mul", w.x, 0.5), w("Add", w("Erf", w("Mul", w.x, sqrt(0.5))), 1.0))


def _write_gelu_tanh(w: _Writer) -> ir.Value:
    cube = w("Mul", w("Mul", w.x, w.x), w.x)
    inner = w("Mul", w("Add", w.x, w("Mul", cube, _TANH_CUBE)), _TANH_SCALE)
    return w("Mul", w("Mul", w.x, 0.5), w("Add", w("Tanh", inner), 1.0))


def _write_gelu_sigmoid(w: _Writer) -> ir.Value:
    return w("Mul", w.x, w("Sigmoid", w("Mul", w.x, _SIGMOID_SCALE)))


def _gelu_op(w: _Writer) -> ir.Value:
    return w("Gelu", w.x, domain="" if w.opset >= 20 else MICROSOFT)


def _gelu_tanh_op(w: _Writer) -> ir.Value:
    return w("Gelu", w.x, approximate="tanh") if w.opset >= 20 else w("FastGelu", w.x, domain=MICROSOFT)


_GELU = Activation(_gelu, _write_gelu, 5, _gelu_op)
_GELU_TANH = Activation(_gelu_tanh, _write_gelu_tanh, 8, _gelu_tanh_op)
ACTIVATIONS = (
    _GELU,
    _GELU_TANH,
    Activation(lambda x: x * _sigmoid(_SIGMOID_SCALE * x), _write_gelu_sigmoid, 3),
    Activation(lambda x: x * _sigmoid(x), lambda w: w("Mul", w.x, w("Sigmoid", w.x)), 2),
    Activation(
        lambda x: x * np.clip(x / 6 + 0.5, 0, 1),
        lambda w: w("Mul", w.x, w("HardSigmoid", w.x, alpha=1 / 6, beta=0.5)),
        2,
        lambda w: w("HardSwish", w.x),
        14,
    ),
    Activation(
        lambda x: x * np.tanh(np.logaddexp(0, x)),
        lambda w: w("Mul", w.x, w("Tanh", w("Softplus", w.x))),
        3,
        lambda w: w("Mish", w.x),
        18,
    ),
    Activation(
        lambda x: np.clip(x / 6 + 0.5, 0, 1), lambda w: w("HardSigmoid", w.x, alpha=1 / 6, beta=0.5), long_nodes=1
    ),
    Activation(_sigmoid, lambda w: w("Sigmoid", w.x), long_nodes=1),
    Activation(lambda x: np.logaddexp(0, x), lambda w: w("Softplus", w.x), long_nodes=1),
)


def name_activation(node: ir.Node) -> Match | None:
    """An activation that is spelled out, as the op that it is, or in fewer ops."""
    for x, region in _regions(node):
        known = _known(node, x, region)
        if known is None:
            continue
        opset, is_op_there = opset_of(node), known.op is not None and opset_of(node) >= known.since
        write = known.op if is_op_there and known.op is not None else known.long
        if len(region) > (1 if is_op_there else known.long_nodes):
            return _written(node, x, region, write, opset)
    return None


def spell_activation(node: ir.Node) -> Match | None:
    """An activation that is one op of its own, in ops that every target has."""
    x = node.inputs[0] if len(node.inputs) == 1 else None
    known = None
    if x is not None and node.domain == MICROSOFT:
        known = {"Gelu": _GELU, "FastGelu": _GELU_TANH}.get(node.op_type)
    elif x is not None and is_op(node, "Gelu", "HardSwish", "Mish"):
        known = _known(node, x, [node])
    return None if known is None or x is None else _written(node, x, [node], known.long, opset_of(node))


def gelu_to_tanh(node: ir.Node) -> Match | None:
    """GELU by erf, in its tanh form: as one op where that is one, else spelled out."""
    return _gelu_as(node, lambda w: _gelu_tanh_op(w) if is_op(node, "Gelu") else _write_gelu_tanh(w))


def gelu_to_sigmoid(node: ir.Node) -> Match | None:
    """GELU by erf, in its sigmoid form."""
    return _gelu_as(node, _write_gelu_sigmoid)


def erf_to_tanh(node: ir.Node) -> Match | None:
    """Erf by Tanh of a cubic, as the tanh form of GELU has it."""
    x = node.inputs[0] if is_op(node, "Erf") else None
    if x is None:
        return None

    def write(w: _Writer) -> ir.Value:
        square = w("Add", w("Mul", w("Mul", x, x), 2 * _TANH_CUBE), 1.0)
        return w("Tanh", w("Mul", w("Mul", x, sqrt(2) * _TANH_SCALE), square))

    return _written(node, x, [node], write, opset_of(node))


def _gelu_as(node: ir.Node, write: Writing) -> Match | None:
    if node.domain == MICROSOFT and node.op_type == "Gelu" and node.inputs[0] is not None:
        return _written(node, node.inputs[0], [node], write, opset_of(node))
    for x, region in _regions(node):
        if _known(node, x, region) is _GELU:
            return _written(node, x, region, write, opset_of(node))
    return None


def _written(node: ir.Node, x: ir.Value, region: list[ir.Node], write: Writing, opset: int) -> Match:
    return Match(region, lambda make: {node.outputs[0]: write(_Writer(make, x, opset))})


def _regions(node: ir.Node) -> Iterator[tuple[ir.Value, list[ir.Node]]]:
    """Values of which a node's result is a function of one variable, the farthest first, with the ops of the function.

    Readers of a value that is on the way stay as they are, and so does what they read.
    """
    found: list[tuple[ir.Value, list[ir.Node]]] = []
    region: list[ir.Node] = []
    latest: ir.Node | None = node if _is_pointwise(node) else None
    while latest is not None and len(region) < MOST_NODES:
        region.append(latest)
        read = {value for each in region for value in each.inputs if value is not None and array_of(value) is None}
        sources = read - {each.outputs[0] for each in region}
        if len(sources) == 1:
            (x,) = sources
            if x.shape is not None and x.shape == node.outputs[0].shape:
                found.append((x, list(region)))
        latest = _latest([maker for value in sources if (maker := value.producer()) is not None])
    return iter(reversed(found))


def _latest(nodes: list[ir.Node]) -> ir.Node | None:
    """A node of single elements from which none of the others is computed."""
    for node in filter(_is_pointwise, nodes):
        if not any(node in _above(other) for other in nodes if other is not node):
            return node
    return None


def _above(node: ir.Node) -> set[ir.Node]:
    """Nodes that a node is computed from, a few steps up."""
    found: set[ir.Node] = set()
    level = {node}
    for _ in range(MOST_NODES):
        makers = {value.producer() for each in level for value in each.inputs if value is not None}
        level = {maker for maker in makers if maker is not None and is_op(maker, *_OPS)} - found
        found |= level
    return found


def _is_pointwise(node: ir.Node) -> bool:
    """Whether an op is a function of single elements, with numbers that are the same for all."""
    arrays = [array_of(value) for value in node.inputs if value is not None] if is_op(node, *_OPS) else []
    same = (
        a is None or (a.dtype.kind in "fi" and 0 < a.size <= MOST_NUMBERS and np.all(a == a.flat[0])) for a in arrays
    )
    return bool(arrays) and all(same)


def _known(node: ir.Node, x: ir.Value, region: list[ir.Node]) -> Activation | None:
    """The activation that ops compute, to the rounding of the numbers in them."""
    if x.dtype not in (ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.BFLOAT16):
        return None
    values: dict[ir.Value, Array] = {x: _POINTS}
    with np.errstate(all="ignore"):
        for each in reversed(region):  # which has what is read after what reads it
            _evaluate(each, values)
        found = values.get(node.outputs[0])
        if found is None or not np.isfinite(found).all():
            return None
        errors = [
            float((np.abs(found - known.compute(_POINTS)) / (1 + np.abs(_POINTS))).max()) for known in ACTIVATIONS
        ]
    best = int(np.argmin(errors))
    limit = 1e-6 if x.dtype is ir.DataType.FLOAT else 2e-4  # below what tells the tanh form of GELU from the other
    return ACTIVATIONS[best] if errors[best] < limit else None


def _evaluate(node: ir.Node, values: dict[ir.Value, Array]) -> None:
    inputs = []
    for value in node.inputs:
        if value is None:
            continue
        array = values.get(value)
        if array is None:
            constant = array_of(value)
            if constant is None:
                return
            array = np.asarray(constant.ravel()[0], np.float64)
        inputs.append(array)
    values[node.outputs[0]] = np.asarray(_OPS[node.op_type](node, *inputs), np.float64)
