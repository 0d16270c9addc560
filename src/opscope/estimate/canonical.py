"""Rewrites a graph into the form a runtime executes: constants folded, quantise pairs absorbed, activations fused.

Each pass is linear in the graph and returns a new one. An op that absorbed others lists their names in `sources`.

    rescale → add → rescale        becomes   add on the tensors before and behind   (fold_rescales)
    dequantize → conv → quantize   becomes   int8 conv          (fold_quantisation)
    conv → add(constant) → relu    becomes   conv with bias and activation "relu"   (fuse)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from ..core.units import Bytes
from ..graph.graph import ABSENT, DType, Graph, Note, Op, Role, Tensor
from ..graph.kinds import Family
from ..machine.target import Target
from .forms.chains import free_joins, fuse_chains, in_passing, rename_layouts, rescaled_joins
from .forms.masks import KIND as MASKED_SOFTMAX
from .forms.masks import fuse_masks
from .forms.planes import on_planes, with_scales
from .forms.tiles import in_tiles

_FUSES_INTO = (Family.CONTRACTION, Family.RECURRENT)
_ALSO_FUSES_INTO = {"add", "batch_norm", "average_pool", "max_pool"}
_GELU = "gelu"
_RESCALES_OUTPUT = {"sub", "mul"}  # take a quantize behind them, and nothing else


def form_of(target: Target) -> tuple[object, ...]:
    """Return all that `canonicalise` reads of a target: those that are alike in it run a graph in one form."""
    return target.name, target.runtime, target.precision, _masks_softmax(target)


def _masks_softmax(target: Target) -> bool:
    return any(MASKED_SOFTMAX in engine.kernels for engine in target.engines)


def canonicalise(graph: Graph, target: Target) -> Graph:
    """Return the graph in the form the target runs it."""
    graph = fold_constants(graph)
    graph = fold_rescales(fuse(graph, target.runtime.fuses), target.runtime.rescales)
    if graph.quantize_ops_annotate:
        graph = fold_quantisation(graph, target.runtime.floats)
        graph = fuse(graph, target.runtime.fuses)  # ops that a pair separated are adjacent now
    if _masks_softmax(target):
        graph = fuse_masks(graph)
    if target.runtime.channels_last:
        graph = rename_layouts(graph)
    if target.runtime.joins_in_place:
        graph = free_joins(graph)
    if target.runtime.rescales_joins:
        graph = rescaled_joins(graph)
    if target.runtime.fuses_chains:
        graph = fuse_chains(graph)
    if _GELU in target.runtime.fuses:
        graph = in_passing(graph, _GELU)
    if target.runtime.scale_bytes is not None:
        graph = with_scales(graph, target.runtime.scale_bytes.value)
    if target.runtime.planes:
        graph = on_planes(graph, target.runtime)
    graph = retype(graph, target.precision, _runs_as_notes(graph, target))
    return in_tiles(graph, *target.runtime.tile) if target.runtime.tile else graph


def _runs_as_notes(graph: Graph, target: Target) -> tuple[Note, ...]:
    """Say where a model's own type is replaced by one of a smaller range: f16 ends at 65,504, bf16 does not.

    Files in f32 are the rule, and every tool runs them in half precision where that is what the hardware has.
    """
    runs_as = target.precision.get(DType.BF16.label)
    if runs_as is None or not any(tensor.dtype is DType.BF16 for tensor in graph.tensors):
        return ()
    return (Note("runs-as", f"tensors of bf16 run as {runs_as}: {target.name} has no bf16"),)


def fold_constants(graph: Graph) -> Graph:
    """Drop ops that depend only on constants and shapes: a compiler evaluates them once."""
    tensors = list(graph.tensors)
    kept: list[Op] = []
    for op in graph.ops:
        if not _is_static(op, tensors) or op.scope or any(t in graph.outputs for t in op.outputs):
            kept.append(op)
            continue
        for t in op.outputs:
            if t != ABSENT:
                tensors[t] = replace(tensors[t], role=Role.CONSTANT)
    return replace(graph, ops=tuple(kept), tensors=tuple(tensors))


def _is_static(op: Op, tensors: Sequence[Tensor]) -> bool:
    """Whether an op depends on constants and shapes alone.

    A dequantize of integers does not count: fold_quantisation must see it to read weights as they are stored. Weights
    that are stored as float16 it only widens, which runtimes do once, when they load the model.
    """
    if op.kind == "shape":
        return True
    if not op.inputs or op.kind == "random" or op.family in (Family.CONTROL, Family.OPAQUE):
        return False
    if op.kind == "dequantize" and not tensors[op.inputs[0]].dtype.is_float:
        return False
    return all(t == ABSENT or tensors[t].role is Role.CONSTANT for t in op.inputs)


def fuse(graph: Graph, kinds: Collection[str]) -> Graph:
    """Merge activations, normalisations and bias additions of the listed kinds into the op that feeds them."""
    return _Fusion(graph, kinds).run() if kinds else graph


class _Fusion:
    """One pass over the ops; each op is kept or merged into the earlier op that feeds it."""

    def __init__(self, graph: Graph, kinds: Collection[str]) -> None:
        self.graph = graph
        self.kinds = kinds
        self.uses = Counter(t for op in graph.ops for t in op.inputs)
        self.uses.update(graph.outputs)
        self.producer: dict[int, int] = {}  # tensor → position of its producer in `ops`
        self.ops: list[Op] = []

    def run(self) -> Graph:
        for op in self.graph.ops:
            position = self._fusion_target(op)
            if position is None:
                position = len(self.ops)
                self.ops.append(op)
            else:
                self.ops[position] = _merge(self.ops[position], op, self.graph)
            self.producer.update(dict.fromkeys(op.outputs, position))
        return replace(self.graph, ops=tuple(self.ops))

    def _fusion_target(self, op: Op) -> int | None:
        """Return the position of the op that `op` can be merged into; None if it stays."""
        adds_bias = op.kind == "add" and _bias(op, self.graph) is not None
        if (op.kind not in self.kinds and not adds_bias) or not op.inputs or len(op.outputs) != 1:
            return None
        data = _data_operand(op, self.graph)
        # The intermediate tensor disappears, so nothing else may read it and it must not be a graph output.
        position = self.producer.get(data)
        if position is None or self.uses[data] != 1:
            return None
        first = self.ops[position]
        # One activation per op; a fused quantize is only a rescale of the output and leaves room for one.
        if first.scope != op.scope or first.attributes.get("activation", "quantize") != "quantize":
            return None
        if adds_bias or op.kind == "batch_norm":
            # Two inputs, data and weights: the bias is still free.
            takes = first.family is Family.CONTRACTION and len(first.inputs) == 2
            takes = takes and (not adds_bias or _is_per_channel(first, op, self.graph))
        else:
            takes = first.family in _FUSES_INTO or first.kind in _ALSO_FUSES_INTO
            takes = takes or (op.kind == "quantize" and first.kind in _RESCALES_OUTPUT)
            takes = takes and not self._widens(op)
        return position if takes else None

    def _widens(self, op: Op) -> bool:
        """Whether an op rescales to more bits: that is how its reader takes its input, and no output stage."""
        bits = [self.graph.tensors[t].dtype.bits for t in (op.inputs[0], op.outputs[0])]
        return op.kind == "quantize" and bits[1] > bits[0]


def _data_operand(op: Op, graph: Graph) -> int:
    """Return the first operand that is not constant."""
    return next((t for t in op.inputs if t != ABSENT and graph.tensors[t].role is not Role.CONSTANT), op.inputs[0])


def _bias(op: Op, graph: Graph) -> int | None:
    """Return the constant operand of an addition if it has at most one axis longer than 1, else None."""
    constants = [t for t in op.inputs if t != ABSENT and graph.tensors[t].role is Role.CONSTANT]
    if len(op.inputs) != 2 or len(constants) != 1:
        return None
    shape = graph.tensors[constants[0]].shape
    return constants[0] if shape is not None and sum(extent > 1 for extent in shape) <= 1 else None


def _is_per_channel(first: Op, op: Op, graph: Graph) -> bool:
    """Whether an addition adds one number per output channel of `first`, not per row or column."""
    bias, out = graph.tensors[_bias(op, graph) or 0].shape or (), graph.tensors[op.outputs[0]].shape
    if out is None:
        return False
    # Broadcasting aligns shapes at the end: bias [64, 1, 1] on output [1, 64, 28, 28] varies along axis 1.
    long = [axis + len(out) - len(bias) for axis, extent in enumerate(bias) if extent > 1]
    return not long or long[0] == first.attributes.get("channel_axis", len(out) - 1)


def _merge(first: Op, op: Op, graph: Graph) -> Op:
    """Return `first` with the bias, normalisation, rescale or activation of `op` merged in."""
    sources = (*(first.sources or (first.name,)), op.name)
    bias = _bias(op, graph) if op.kind == "add" else None
    if bias is not None:
        return replace(first, inputs=(*first.inputs, bias), outputs=op.outputs, sources=sources)
    if op.kind == "batch_norm":  # scale goes into the weights, shift becomes the bias
        return replace(first, inputs=(*first.inputs, *op.inputs[2:3]), outputs=op.outputs, sources=sources)
    # Scales come after data, weights and bias; an absent bias keeps its position.
    scales = op.inputs[1:] if op.kind == "quantize" else ()
    inputs = (*first.inputs, *(ABSENT,) * (3 - len(first.inputs)), *scales) if scales else first.inputs
    attributes = {**first.attributes, "activation": op.kind}
    return replace(first, inputs=inputs, outputs=op.outputs, attributes=attributes, sources=sources)


def fold_rescales(graph: Graph, kinds: Collection[str]) -> Graph:
    """Make ops of the listed kinds read the tensors before the rescales of their inputs.

    Only an op that rescales its output too does so: the scales of its inputs and of its output are multiplied. A
    rescale by one number counts; one that others read as well stays for them.
    """
    rescaled = {op.outputs[0]: op for op in graph.ops if _is_rescale(op)}
    ops = []
    for op in graph.ops:
        takes = op.kind in kinds and _rescales_output(op, graph)
        folded: dict[int, str] = {}  # by their output: tensors are numbered in the order of the file
        inputs = list(op.inputs)
        for place in range(len(inputs)) if takes else ():
            while (rescale := rescaled.get(inputs[place])) is not None and rescale.scope == op.scope:
                folded[inputs[place]] = rescale.name
                inputs[place] = rescale.inputs[0]
        sources = (*(folded[tensor] for tensor in sorted(folded)), *(op.sources or (op.name,)))
        ops.append(replace(op, inputs=tuple(inputs), sources=sources) if folded else op)
    kept: list[Op] = []
    read = set(graph.outputs)
    for op in reversed(ops):  # readers first: a rescale of a rescale may have none left either
        if op.outputs[0] not in rescaled or op.outputs[0] in read:
            kept.append(op)
            read.update(op.inputs)
    return replace(graph, ops=tuple(reversed(kept)))


def _rescales_output(op: Op, graph: Graph) -> bool:
    """Whether a rescale was merged into an op: alone, or below an activation, which shows by fewer bits."""
    first, made = (graph.tensors[t].dtype.bits for t in (op.inputs[0], op.outputs[0]))
    return op.attributes.get("activation") == "quantize" or ("activation" in op.attributes and made < first)


def _is_rescale(op: Op) -> bool:
    """Whether an op is a quantize by one number, of one tensor to one tensor, with nothing merged into it."""
    return op.kind == "quantize" and len(op.inputs) == len(op.outputs) == 1 and not op.sources


def fold_quantisation(graph: Graph, floats: Collection[str] = ()) -> Graph:
    """Make ops between dequantize and quantize work on the quantised tensors, and drop the pairs.

    Ops of the kinds `floats` have no kernel for integers: they work on floats, and the conversions around them stay.
    """
    return _QuantisationFolding(graph, floats).run()


class _QuantisationFolding:
    """Absorbs each quantize into its producer and each dequantize into its readers."""

    def __init__(self, graph: Graph, floats: Collection[str]) -> None:
        self.graph = graph
        self.floats = floats
        self.outputs = set(graph.outputs)
        self.dequantized = {op.outputs[0]: op for op in graph.ops if op.kind == "dequantize"}
        self.readers: dict[int, list[Op]] = {}
        for op in graph.ops:
            for t in op.inputs:
                self.readers.setdefault(t, []).append(op)
        self.absorbed: set[int] = set()  # outputs of quantize ops merged into their producer

    def run(self) -> Graph:
        ops = [self._quantise(op) for op in self.graph.ops]
        kept = [op for op in ops if op.kind != "quantize" or op.outputs[0] not in self.absorbed]
        used = {t for op in kept for t in op.inputs} | self.outputs
        return replace(self.graph, ops=tuple(op for op in kept if op.kind != "dequantize" or op.outputs[0] in used))

    def _quantise(self, op: Op) -> Op:
        """Return the op on quantised tensors if all its activations and outputs are quantised.

        Otherwise only weights that are stored quantised are read as such, and the arithmetic stays float.
        """
        if op.kind in ("quantize", "dequantize") or op.family in (Family.CONTROL, Family.OPAQUE):
            return op
        quantizers = self._quantizers_after(op) if op.kind not in self.floats else []
        operands = [t for t in op.inputs if t != ABSENT and self.graph.tensors[t].role is not Role.CONSTANT]
        activations = [t for t in operands if not self._is_stored_quantised(t)]
        if not quantizers or not activations or any(t not in self.dequantized for t in activations):
            return self._with_stored_constants(op)
        self.absorbed.update(quantizer.outputs[0] for quantizer in quantizers)
        absorbed_ops = [*(self.dequantized[t] for t in op.inputs if t in self.dequantized), *quantizers]
        return replace(
            op,
            inputs=tuple(self.dequantized[t].inputs[0] if t in self.dequantized else t for t in op.inputs),
            outputs=tuple(quantizer.outputs[0] for quantizer in quantizers),
            sources=(*(op.sources or (op.name,)), *(other.name for other in absorbed_ops)),
        )

    def _quantizers_after(self, op: Op) -> list[Op]:
        """Return the quantize op after each output; empty unless every output is read by exactly one."""
        readers = [self.readers.get(t, []) for t in op.outputs]
        all_quantized = all(len(ops) == 1 and ops[0].kind == "quantize" for ops in readers)
        return [ops[0] for ops in readers] if all_quantized and not self.outputs & set(op.outputs) else []

    def _is_stored_quantised(self, tensor: int) -> bool:
        """Whether a tensor is a constant that the file stores quantised."""
        source = self.dequantized.get(tensor)
        return source is not None and self.graph.tensors[source.inputs[0]].role is Role.CONSTANT

    def _with_stored_constants(self, op: Op) -> Op:
        """Read weights that are stored quantised directly; the arithmetic stays as it is."""
        if not any(self._is_stored_quantised(t) for t in op.inputs):
            return op
        inputs = tuple(self.dequantized[t].inputs[0] if self._is_stored_quantised(t) else t for t in op.inputs)
        return replace(op, inputs=inputs)


def retype(graph: Graph, precision: Mapping[str, str], notes: Sequence[Note] = ()) -> Graph:
    """Replace data types the target lacks by those it runs instead."""
    if not precision:
        return graph
    by_label = {dtype.label: dtype for dtype in DType}
    runs_as = {by_label[key]: by_label[value] for key, value in precision.items()}
    tensors = tuple(change_dtype(t, runs_as[t.dtype]) if t.dtype in runs_as else t for t in graph.tensors)
    return replace(graph, tensors=tensors, notes=(*graph.notes, *notes))


def change_dtype(tensor: Tensor, dtype: DType) -> Tensor:
    """Return the tensor in another type, its stored bytes scaled to the new width."""
    stored = tensor.stored_bytes
    if stored is not None and tensor.dtype.bits:
        stored = Bytes(stored * dtype.bits // tensor.dtype.bits)
    return replace(tensor, dtype=dtype, stored_bytes=stored)
