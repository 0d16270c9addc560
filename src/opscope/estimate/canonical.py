"""Graph → Graph as a runtime executes it: constants folded, quantisation pairs absorbed, activations fused.

Each pass is linear in the graph and returns a new one. An op that absorbed others lists their names in `sources`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace

from ..core.units import Bytes
from ..graph.graph import ABSENT, DType, Graph, Op, Role, Tensor
from ..graph.kinds import Family
from ..machine.target import Target

_FUSES_INTO = (Family.CONTRACTION, Family.RECURRENT)
_ALSO_FUSES_INTO = {"add", "batch_norm", "average_pool", "max_pool"}


def canonicalise(graph: Graph, target: Target) -> Graph:
    """The graph in the form the target runs it."""
    graph = fold_constants(graph)
    graph = fuse(graph, target.runtime.fuses)
    if graph.quantize_ops_annotate:
        graph = fuse(fold_quantisation(graph), target.runtime.fuses)  # ops that a pair kept apart now meet
    return retype(graph, target.precision)


def fold_constants(graph: Graph) -> Graph:
    """Drop ops that depend on constants and shapes alone: a compiler computes them once."""
    tensors = list(graph.tensors)
    kept: list[Op] = []
    for op in graph.ops:
        static = op.kind == "shape" or (
            bool(op.inputs)
            and op.family not in (Family.CONTROL, Family.OPAQUE)
            and op.kind not in ("dequantize", "random")
            and all(t == ABSENT or tensors[t].role is Role.CONSTANT for t in op.inputs)
        )
        if not static or op.scope or any(t in graph.outputs for t in op.outputs):
            kept.append(op)
            continue
        for t in op.outputs:
            if t != ABSENT:
                tensors[t] = replace(tensors[t], role=Role.CONSTANT)
    return replace(graph, ops=tuple(kept), tensors=tuple(tensors))


def fuse(graph: Graph, kinds: Collection[str]) -> Graph:
    """Merge activations, normalisations and bias additions of the listed kinds into the op that feeds them."""
    return _Fusion(graph, kinds).run() if kinds else graph


class _Fusion:
    """One walk over the ops; an op either stays or goes into an earlier one."""

    def __init__(self, graph: Graph, kinds: Collection[str]) -> None:
        self.graph = graph
        self.kinds = kinds
        self.uses = Counter(t for op in graph.ops for t in op.inputs)
        self.uses.update(graph.outputs)
        self.made_by: dict[int, int] = {}  # tensor → position in `ops`
        self.ops: list[Op] = []

    def run(self) -> Graph:
        for op in self.graph.ops:
            position = self._leader(op)
            if position is None:
                position = len(self.ops)
                self.ops.append(op)
            else:
                self.ops[position] = _merged(self.ops[position], op, self.graph)
            self.made_by.update(dict.fromkeys(op.outputs, position))
        return replace(self.graph, ops=tuple(self.ops))

    def _leader(self, op: Op) -> int | None:
        """Position of the op that `op` disappears into, if it does."""
        adds_bias = op.kind == "add" and _bias(op, self.graph) is not None
        if (op.kind not in self.kinds and not adds_bias) or not op.inputs or len(op.outputs) != 1:
            return None
        data = _data(op, self.graph)
        position = self.made_by.get(data)
        if position is None or self.uses[data] != 1:
            return None
        first = self.ops[position]
        if first.scope != op.scope or first.attributes.get("activation", "quantize") != "quantize":
            return None
        if adds_bias or op.kind == "batch_norm":
            takes = first.family is Family.CONTRACTION and len(first.inputs) == 2
            takes = takes and (not adds_bias or _along_channels(first, op, self.graph))
        else:
            takes = first.family in _FUSES_INTO or first.kind in _ALSO_FUSES_INTO
        return position if takes else None


def _data(op: Op, graph: Graph) -> int:
    """The operand that is not constant."""
    return next((t for t in op.inputs if t != ABSENT and graph.tensors[t].role is not Role.CONSTANT), op.inputs[0])


def _bias(op: Op, graph: Graph) -> int | None:
    """The constant vector that an addition adds to every row, if that is all it does."""
    constants = [t for t in op.inputs if t != ABSENT and graph.tensors[t].role is Role.CONSTANT]
    if len(op.inputs) != 2 or len(constants) != 1:
        return None
    shape = graph.tensors[constants[0]].shape
    return constants[0] if shape is not None and sum(extent > 1 for extent in shape) <= 1 else None


def _along_channels(first: Op, op: Op, graph: Graph) -> bool:
    """Whether an addition adds one number per channel that `first` makes, not per row or column."""
    bias, out = graph.tensors[_bias(op, graph) or 0].shape or (), graph.tensors[op.outputs[0]].shape
    if out is None:
        return False
    long = [axis + len(out) - len(bias) for axis, extent in enumerate(bias) if extent > 1]
    return not long or long[0] == first.attributes.get("channel_axis", len(out) - 1)


def _merged(first: Op, op: Op, graph: Graph) -> Op:
    sources = (*(first.sources or (first.name,)), op.name)
    bias = _bias(op, graph) if op.kind == "add" else None
    if bias is not None:
        return replace(first, inputs=(*first.inputs, bias), outputs=op.outputs, sources=sources)
    if op.kind == "batch_norm":  # scale goes into the weights, shift becomes the bias
        return replace(first, inputs=(*first.inputs, *op.inputs[2:3]), outputs=op.outputs, sources=sources)
    scales = op.inputs[1:] if op.kind == "quantize" else ()
    inputs = (*first.inputs, *(ABSENT,) * (3 - len(first.inputs)), *scales) if scales else first.inputs
    attributes = {**first.attributes, "activation": op.kind}
    return replace(first, inputs=inputs, outputs=op.outputs, attributes=attributes, sources=sources)


def fold_quantisation(graph: Graph) -> Graph:
    """Let ops between dequantize and quantize work on the quantised tensors, and drop the pairs around them."""
    return _QuantisationFolding(graph).run()


class _QuantisationFolding:
    """Absorbs a quantize into its producer and a dequantize into its readers."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.outputs = set(graph.outputs)
        self.dequantized = {op.outputs[0]: op for op in graph.ops if op.kind == "dequantize"}
        self.readers: dict[int, list[Op]] = {}
        for op in graph.ops:
            for t in op.inputs:
                self.readers.setdefault(t, []).append(op)
        self.absorbed: set[int] = set()  # outputs of quantize ops that went into their producer

    def run(self) -> Graph:
        ops = [self._quantised(op) for op in self.graph.ops]
        kept = [op for op in ops if op.kind != "quantize" or op.outputs[0] not in self.absorbed]
        used = {t for op in kept for t in op.inputs} | self.outputs
        return replace(self.graph, ops=tuple(op for op in kept if op.kind != "dequantize" or op.outputs[0] in used))

    def _quantised(self, op: Op) -> Op:
        if op.kind in ("quantize", "dequantize") or op.family in (Family.CONTROL, Family.OPAQUE):
            return op
        quantizers = self._quantizers_after(op)
        operands = [t for t in op.inputs if t != ABSENT and self.graph.tensors[t].role is not Role.CONSTANT]
        activations = [t for t in operands if not self._is_stored(t)]
        if not quantizers or not activations or any(t not in self.dequantized for t in activations):
            return self._with_stored_constants(op)
        self.absorbed.update(quantizer.outputs[0] for quantizer in quantizers)
        around = [*(self.dequantized[t] for t in op.inputs if t in self.dequantized), *quantizers]
        return replace(
            op,
            inputs=tuple(self.dequantized[t].inputs[0] if t in self.dequantized else t for t in op.inputs),
            outputs=tuple(quantizer.outputs[0] for quantizer in quantizers),
            sources=(*(op.sources or (op.name,)), *(other.name for other in around)),
        )

    def _quantizers_after(self, op: Op) -> list[Op]:
        """The quantize op behind each output, if every output goes to one and nowhere else."""
        after = [self.readers.get(t, []) for t in op.outputs]
        alone = all(len(ops) == 1 and ops[0].kind == "quantize" for ops in after)
        return [ops[0] for ops in after] if alone and not self.outputs & set(op.outputs) else []

    def _is_stored(self, tensor: int) -> bool:
        """Whether a tensor is a constant that the file holds quantised."""
        source = self.dequantized.get(tensor)
        return source is not None and self.graph.tensors[source.inputs[0]].role is Role.CONSTANT

    def _with_stored_constants(self, op: Op) -> Op:
        """Weights that are stored quantised are read quantised, even where the arithmetic is not."""
        if not any(self._is_stored(t) for t in op.inputs):
            return op
        inputs = tuple(self.dequantized[t].inputs[0] if self._is_stored(t) else t for t in op.inputs)
        return replace(op, inputs=inputs)


def retype(graph: Graph, precision: Mapping[str, str]) -> Graph:
    """Run data types the target does not have as the ones it runs them as."""
    if not precision:
        return graph
    by_label = {dtype.label: dtype for dtype in DType}
    runs_as = {by_label[key]: by_label[value] for key, value in precision.items()}
    tensors = tuple(_retyped(t, runs_as[t.dtype]) if t.dtype in runs_as else t for t in graph.tensors)
    return replace(graph, tensors=tensors)


def _retyped(tensor: Tensor, dtype: DType) -> Tensor:
    stored = tensor.stored_bytes
    if stored is not None and tensor.dtype.bits:
        stored = Bytes(stored * dtype.bits // tensor.dtype.bits)
    return replace(tensor, dtype=dtype, stored_bytes=stored)
