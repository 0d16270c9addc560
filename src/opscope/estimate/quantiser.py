"""Quantiser: a float graph → what post-training quantisation to integers leaves of it, on types alone.

Which of two forms it takes depends on the target. Where every op has a kernel for integers, as on micro-controllers,
all tensors become integers, those that the network is given and gives out too (full-integer quantisation). Where some
kinds are computed in float (`runtime.floats` of the target), the graph is mixed, by the rules that static quantisers
follow by default (ONNX Runtime's, for one):

- Products run in integers: convolutions, products with weights, products of two activations. They are what integers
  make faster. Weights may be narrower than activations (w8a16): fewer bytes, at the rate of the activations' type.
- What only passes values on, or adds and scales them, runs in integers where everything it reads is quantised already:
  residual additions, pools, rectifiers, reshapes. One float operand keeps such an op float: a second quantisation would
  cost accuracy and time, and gain nothing.
- The rest stays float: softmax, normalisations, functions such as erf and sigmoid lose too much in 8 bits. So do tables
  that rows are gathered from, and what the network is given and gives out.

Every tensor that an op in integers reads or writes passes through one pair, which all its readers share:

    float op ─ x ─▶ quantize ─ x_quantized ─▶ dequantize ─ x_dequantized ─▶ readers

A pair only says that a tensor may be held as integers. `canonical.fold_quantisation` then drops those that lie between
two ops in integers, as for every model that comes with pairs, so that conversions are left where the type changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..graph.graph import ABSENT, DType, Graph, Op, Role, Tensor
from ..graph.kinds import Family
from ..machine.target import Target
from .canonical import change_dtype, fold_constants, retype

FLOATS = (DType.F64, DType.F32, DType.F16, DType.BF16)
_SCALES = frozenset(
    ("add", "mul", "batch_norm", "relu", "clip", "leaky_relu", "max_pool", "average_pool", "resize", "resize_nearest")
)
_MOVES = frozenset(("reshape", "identity", "transpose", "concat", "split", "slice", "gather", "pad", "tile", "expand"))
_FOLLOWS = _SCALES | _MOVES | {"space_to_depth", "depth_to_space", "reverse"}
_FOLLOWS_WITH_CONSTANTS = frozenset(("add", "mul", "concat"))  # of other kinds constants are settings, or fold away
_WEIGHTS = 1  # operands of a product: data, weights, biases


def quantise(graph: Graph, target: Target, dtype: DType = DType.I8, weights: DType | None = None) -> Graph:
    """Return the graph as a quantiser leaves it for a target; unchanged if it is quantised, or has no floats.

    Args:
        graph: a model.
        target: says which kinds stay float.
        dtype: of activations, which is what arithmetic is done in.
        weights: type that weights of products are stored as; None: that of activations.
    """
    if not any(tensor.dtype in FLOATS for tensor in graph.tensors):
        return graph
    if target.runtime.floats:
        return add_pairs(graph, dtype, weights)
    if weights not in (None, dtype):
        graph = _store_weights(graph, weights)
    return retype(graph, {other.label: dtype.label for other in FLOATS})


def _store_weights(graph: Graph, dtype: DType) -> Graph:
    """Return the graph with weights that products alone read in another type."""
    graph = fold_constants(graph)
    is_weights: dict[int, bool] = {}
    for op in graph.ops:
        for place, t in enumerate(op.inputs):
            is_weights[t] = is_weights.get(t, True) and place == _WEIGHTS and _is_product(op, graph)
    tensors = tuple(
        change_dtype(tensor, dtype)
        if is_weights.get(t) and is_float(graph, t) and tensor.role is Role.CONSTANT
        else tensor
        for t, tensor in enumerate(graph.tensors)
    )
    return replace(graph, tensors=tensors)


def add_pairs(graph: Graph, dtype: DType = DType.I8, weights: DType | None = None) -> Graph:
    """Return the graph with pairs around everything that runs as `dtype`; unchanged if it has pairs, or no products.

    Weights are stored as `weights`, or as `dtype` too, and biases as 32-bit sums, which is what a product accumulates
    in.
    """
    if any(op.kind == "quantize" for op in graph.ops):
        return graph
    folded = fold_constants(graph)  # weights that the model transposes or reshapes are constants too
    steps, quantised = _integer_steps(folded)
    return _Pairs(folded, steps, quantised, dtype, weights or dtype).run() if steps else graph


def _integer_steps(graph: Graph) -> tuple[set[int], set[int]]:
    """Return the positions of the ops that run in integers, and the tensors that they read and write."""
    steps = {position for position, op in enumerate(graph.ops) if _is_product(op, graph)}
    quantised = {t for position in steps for t in _values(graph, graph.ops[position].inputs)}
    for position, op in enumerate(graph.ops):
        values = _values(graph, op.inputs)
        if position not in steps and op.kind in _FOLLOWS and values and quantised.issuperset(values):
            steps.add(position)
        if position in steps:
            quantised.update(_values(graph, op.outputs))
    return steps, quantised


def _is_product(op: Op, graph: Graph) -> bool:
    """Whether an op multiplies activations by weights or by activations; a constant times data is arithmetic of its
    own, such as the angles of a rotary embedding."""
    first = op.inputs[0] if op.inputs else ABSENT
    return op.family is Family.CONTRACTION and len(op.inputs) > 1 and bool(_values(graph, (first,)))


def _values(graph: Graph, tensors: Sequence[int]) -> list[int]:
    """Return those of the tensors that are float and not constant."""
    return [t for t in tensors if is_float(graph, t) and graph.tensors[t].role is not Role.CONSTANT]


def is_float(graph: Graph, tensor: int) -> bool:
    """Whether an operand is there and holds floats."""
    return tensor != ABSENT and graph.tensors[tensor].dtype in FLOATS


class _Pairs:
    """Writes the ops again, each tensor to be quantised with its pair right behind the op that makes it."""

    def __init__(self, graph: Graph, steps: set[int], quantised: set[int], dtype: DType, weights: DType) -> None:
        self.graph = graph
        self.steps = steps
        self.quantised = quantised
        self.dtype = dtype
        self.weights = weights
        self.ops: list[Op] = []
        self.tensors = list(graph.tensors)
        self.outputs = frozenset(graph.outputs)
        self.read_as: dict[int, int] = {}  # tensor → its dequantised form
        self.stored: dict[int, int] = {}  # constant → the dequantised form of its integers, for ops in integers
        self.parameters = (
            self._add(Tensor("quantisation/scale", (), DType.F32, Role.CONSTANT)),
            self._add(Tensor("quantisation/zero_point", (), dtype, Role.CONSTANT)),
        )

    def run(self) -> Graph:
        for t in self.graph.inputs:
            self._add_pair(t)
        for position, op in enumerate(self.graph.ops):
            for t in op.inputs:
                self._add_pair(t, op)  # a value that the body of a loop is handed has no op that makes it
            self.ops.append(replace(op, inputs=tuple(self._operand(op, place, position) for place in _places(op))))
            for t in op.outputs:
                self._add_pair(t, op)
        return replace(
            self.graph,
            ops=tuple(self.ops),
            tensors=tuple(self.tensors),
            outputs=tuple(self.read_as.get(t, t) for t in self.graph.outputs),
            quantize_ops_annotate=True,
        )

    def _add(self, tensor: Tensor) -> int:
        self.tensors.append(tensor)
        return len(self.tensors) - 1

    def _add_pair(self, tensor: int, beside: Op | None = None) -> None:
        """Append the pair of a tensor, if it is to be quantised and has none yet, to run as often as the op beside."""
        if tensor not in self.quantised or tensor in self.read_as:
            return
        value = self.tensors[tensor]
        integers = self._add(replace(value, name=f"{value.name}_quantized", dtype=self.dtype, role=Role.ACTIVATION))
        self._convert("quantize", value.name, tensor, integers, beside)
        self.read_as[tensor] = self._dequantise(value, integers, beside)
        if tensor in self.outputs:  # the user knows what comes out by its name
            self.tensors[tensor] = replace(value, name=f"{value.name}_float")
            self.tensors[self.read_as[tensor]] = replace(value, role=Role.ACTIVATION)

    def _dequantise(self, value: Tensor, integers: int, beside: Op | None) -> int:
        name = f"{value.name}_dequantized"
        floats = self._add(replace(value, name=name, role=Role.ACTIVATION, stored_bytes=None))
        self._convert("dequantize", value.name, integers, floats, beside)
        return floats

    def _convert(self, kind: str, name: str, source: int, result: int, beside: Op | None) -> None:
        scope, trips = ("", 1) if beside is None else (beside.scope, beside.trips)
        op = Op(kind, kind.capitalize(), f"{name}/{kind}", (source, *self.parameters), (result,))
        self.ops.append(replace(op, scope=scope, trips=trips))

    def _operand(self, op: Op, place: int, position: int) -> int:
        """Return what an op reads at a place: the dequantised form of values and, of ops in integers, of constants."""
        t = op.inputs[place]
        if position not in self.steps or not self._is_stored_as_integers(op, t):
            return self.read_as.get(t, t)
        if t not in self.stored:
            stored = change_dtype(self.tensors[t], self._stored_dtype(op, place))
            integers = self._add(replace(stored, name=f"{stored.name}_quantized"))
            self.stored[t] = self._dequantise(self.tensors[t], integers, op)
        return self.stored[t]

    def _stored_dtype(self, op: Op, place: int) -> DType:
        """Return the type of a constant that an op in integers reads at a place."""
        if op.family is not Family.CONTRACTION:
            return self.dtype
        return DType.I32 if place > _WEIGHTS else self.weights

    def _is_stored_as_integers(self, op: Op, tensor: int) -> bool:
        """Whether an operand of an op in integers is a constant that becomes integers; a single number is part of the
        rescaling instead."""
        if not is_float(self.graph, tensor) or self.graph.tensors[tensor].role is not Role.CONSTANT:
            return False
        takes = op.family is Family.CONTRACTION or op.kind in _FOLLOWS_WITH_CONSTANTS
        return takes and self.graph.tensors[tensor].elements != 1


def _places(op: Op) -> range:
    return range(len(op.inputs))
