"""Block formats: weights stored as MXFP6 and a cache of keys and values stored as MXINT8.

Both are formats of storage (OCP Microscaling Formats specification 1.0: 32 elements share a scale of 8 bits). Fewer
bytes lie in memory and are moved, and the vector engine turns them into floats before anything is computed with them.

Weights are converted tile by tile while a product streams them in, so there is no op for it: the operand keeps its
type, `Work.unpacked_bytes` says how much is written, and the kernel is `dequantize_mxfp6`.

A cache is a tensor that a network is given, extends and gives out again. It stays in its format on that whole way; what
is new is converted before it is appended, and what is read for attention is converted once, behind it:

    past ─────────────▶ concat ─ present ─▶ (given out)
    new ─▶ quantize ─▶ concat      └─▶ dequantize ─▶ attention
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from ..graph.graph import ABSENT, DType, Graph, Op, Role
from ..graph.kinds import Family
from .canonical import fold_constants
from .quantiser import is_float
from .work import DEQUANTIZE

QUANTIZE = "quantize_mxint8"
_CACHE = DType.MXINT8
_TYPES = {DEQUANTIZE[_CACHE]: "DequantizeMxint8", QUANTIZE: "QuantizeMxint8"}
_EXTENDS = frozenset(("concat", "scatter", "dynamic_update"))  # kinds that put what is new into what was kept
_CARRIES = _EXTENDS | {"reshape", "identity", "transpose", "slice", "split", "gather"}
_WEIGHTS = 1  # operand of a product


def store_weights(graph: Graph) -> Graph:
    """Return the graph with the weight matrices of products as MXFP6: not those of convolutions, nor tables that rows
    are gathered from, which are not converted on the way."""
    graph = fold_constants(graph)  # weights that the model transposes are constants too
    tensors = list(graph.tensors)
    stored: dict[int, int] = {}

    def in_blocks(op: Op) -> Op:
        if op.kind != "matmul" or len(op.inputs) <= _WEIGHTS or not _is_matrix(graph, op.inputs[_WEIGHTS]):
            return op
        weights = op.inputs[_WEIGHTS]
        if weights not in stored:  # the constant itself stays for other readers
            stored[weights] = len(tensors)
            tensors.append(replace(graph.tensors[weights], dtype=DType.MXFP6, stored_bytes=None))
        return replace(op, inputs=(*op.inputs[:_WEIGHTS], stored[weights], *op.inputs[_WEIGHTS + 1 :]))

    ops = tuple(in_blocks(op) for op in graph.ops)
    return replace(graph, ops=ops, tensors=tuple(tensors))


def _is_matrix(graph: Graph, tensor: int) -> bool:
    """Whether a tensor is a float constant with at least two axes longer than 1."""
    if not is_float(graph, tensor) or graph.tensors[tensor].role is not Role.CONSTANT:
        return False
    return sum(extent > 1 for extent in graph.tensors[tensor].shape or ()) > 1


def store_cache(graph: Graph) -> Graph:
    """Return the graph with its cache of keys and values as MXINT8, converted where it is extended and where read."""
    cached = cached_tensors(graph)
    fresh = _fresh_keys(graph).intersection(graph.outputs) - cached
    return _CacheStorage(graph, cached).run(fresh) if cached or fresh else graph


def cached_tensors(graph: Graph) -> frozenset[int]:
    """Return the float tensors on the way from an input of the graph, through ops that extend it, to an output.

    They are found by what is done with them, not by their names. One that no product reads is no cache of attention.
    """
    way = _after_inputs(graph) & _before_outputs(graph)
    parts = _Parts(way)
    extended, fed = set(), _feeding_products(graph.ops)
    for op in graph.ops:
        if op.kind in _CARRIES:
            parts.join([t for t in (*_carried(op), *op.outputs) if t in way])
        if op.kind in _EXTENDS:
            extended.update(way.intersection(op.outputs))
    kept = {parts.of(t) for t in extended} & {parts.of(t) for t in way if t in fed}
    return frozenset(t for t in way if parts.of(t) in kept) | _fused_cache(graph)


class _Parts:
    """Tensors in parts that ops join: union-find with path halving."""

    def __init__(self, tensors: Iterable[int]) -> None:
        self.above = {t: t for t in tensors}

    def of(self, tensor: int) -> int:
        while self.above[tensor] != tensor:
            self.above[tensor] = self.above[self.above[tensor]]
            tensor = self.above[tensor]
        return tensor

    def join(self, tensors: Iterable[int]) -> None:
        roots = [self.of(t) for t in tensors]
        self.above.update(dict.fromkeys(roots, roots[0]) if roots else {})


def _carried(op: Op) -> tuple[int, ...]:
    """Return the operands that an op passes on; scatter and update change their first one."""
    return op.inputs if op.kind == "concat" else op.inputs[:1]


def _after_inputs(graph: Graph) -> set[int]:
    found = {t for t in graph.inputs if is_float(graph, t)}
    for op in graph.ops:
        if op.kind in _CARRIES and not found.isdisjoint(_carried(op)):
            found.update(op.outputs)
    return found


def _before_outputs(graph: Graph) -> set[int]:
    found = {t for t in graph.outputs if is_float(graph, t)}
    for op in reversed(graph.ops):
        if op.kind in _CARRIES and not found.isdisjoint(op.outputs):
            found.update(_carried(op), op.outputs)  # all parts of what is split are stored alike
    return found


def _feeding_products(ops: Sequence[Op]) -> set[int]:
    """Return the tensors that a product reads, itself or what ops that only move data make of them."""
    found: set[int] = set()
    for op in reversed(ops):
        if op.family is Family.CONTRACTION or (
            op.family in (Family.MOVE, Family.VIEW) and not found.isdisjoint(op.outputs)
        ):
            found.update(op.inputs)
    return found


def _fused_cache(graph: Graph) -> set[int]:
    """Return the inputs that an attention op extends itself: as many axes as what it gives out beside its result."""
    given, given_out = frozenset(graph.inputs), frozenset(graph.outputs)
    found: set[int] = set()
    for op in (op for op in graph.ops if op.kind == "attention"):
        ranks = {_rank(graph, t) for t in given_out.intersection(op.outputs[1:]) if is_float(graph, t)}
        found.update(t for t in given.intersection(op.inputs[1:]) if is_float(graph, t) and _rank(graph, t) in ranks)
    return found


def _rank(graph: Graph, tensor: int) -> int:
    return len(graph.tensors[tensor].shape or ())


def _fresh_keys(graph: Graph) -> set[int]:
    """Return what attention makes for a cache without having been given one: it multiplies them by activations."""
    multiplied = {t for op in graph.ops if op.kind == "attention" for t in op.outputs[1:]}
    for op in reversed(graph.ops):
        both = op.inputs[:2]
        is_product = op.family is Family.CONTRACTION and len(both) > 1 and op.kind != "attention"
        if is_product and all(t != ABSENT and graph.tensors[t].role is not Role.CONSTANT for t in both):
            multiplied.update(both)
        elif op.family in (Family.MOVE, Family.VIEW) and not multiplied.isdisjoint(op.outputs):
            multiplied.update(op.inputs)
    return {t for t in multiplied if is_float(graph, t)}


class _CacheStorage:
    """Writes the ops again, with one conversion per tensor behind or before the cache."""

    def __init__(self, graph: Graph, cached: frozenset[int]) -> None:
        self.graph = graph
        self.cached = cached
        self.ops: list[Op] = []
        self.tensors = [
            replace(tensor, dtype=_CACHE, stored_bytes=None) if t in cached else tensor
            for t, tensor in enumerate(graph.tensors)
        ]
        self.converted: dict[int, int] = {}

    def run(self, fresh: Collection[int]) -> Graph:
        for op in self.graph.ops:
            extends = not self.cached.isdisjoint(op.outputs)
            self.ops.append(replace(op, inputs=tuple(self._operand(op, t, extends=extends) for t in op.inputs)))
            for t in op.outputs:
                if t in fresh:
                    self._given_out(t, op)
        outputs = tuple(self.converted[t] if t in fresh else t for t in self.graph.outputs)
        return replace(self.graph, ops=tuple(self.ops), tensors=tuple(self.tensors), outputs=outputs)

    def _operand(self, op: Op, tensor: int, *, extends: bool) -> int:
        """Return what an op reads: an op that extends the cache its format, any other one floats."""
        is_cached = tensor in self.cached
        if not is_float(self.graph, tensor) or is_cached == extends:
            return tensor
        return self._convert(tensor, DEQUANTIZE[_CACHE] if is_cached else QUANTIZE, op)

    def _given_out(self, tensor: int, maker: Op) -> None:
        """Convert what is given out; it keeps its name, by which the user knows it."""
        result, named = self._convert(tensor, QUANTIZE, maker), self.tensors[tensor]
        self.tensors[tensor] = replace(named, name=f"{named.name}_float")
        self.tensors[result] = replace(self.tensors[result], name=named.name)

    def _convert(self, tensor: int, kind: str, beside: Op) -> int:
        """Return the converted form of a tensor, by an op that is there once and runs as often as the one beside."""
        if tensor not in self.converted:
            source = self.graph.tensors[tensor]
            name, dtype = f"{source.name}/{kind}", _CACHE if kind == QUANTIZE else source.dtype
            self.tensors.append(replace(source, name=name, dtype=dtype, role=Role.ACTIVATION, stored_bytes=None))
            self.converted[tensor] = len(self.tensors) - 1
            op = Op(kind, _TYPES[kind], name, (tensor,), (self.converted[tensor],))
            self.ops.append(replace(op, scope=beside.scope, trips=beside.trips))
        return self.converted[tensor]
