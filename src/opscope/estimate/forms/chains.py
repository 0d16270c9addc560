"""Two things that compilers of vector machines do to a graph: elementwise chains run as one, layout changes vanish.

A chain is a run of elementwise ops of one size, each reading the one before. As one kernel it reads what comes from
outside once and writes what leaves once; the values between stay in registers:

    x ─▶ div ─▶ erf ─▶ add ─▶ mul ─▶ mul ─▶ y      runs as one op that reads x and writes y (a GELU)
    └───────────────────────────┘

An op joins the chain of an op that it reads if everything else that it reads was there before the chain began, so that
the chain can run where its first op stands, and if nobody but the chain reads the values that it takes over.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...graph.graph import ABSENT, Graph, Op, Role
from ...graph.kinds import Family
from ...graph.work_families import TRANSCENDENTAL_KINDS, WorkFamily, work_family


@dataclass(slots=True)
class _Chain:
    first: int  # position of its first op
    ops: list[Op]


def fuse_chains(graph: Graph) -> Graph:
    """Merge every chain of elementwise ops into one op, which stands where the first of them stood."""
    uses = Counter(t for op in graph.ops for t in op.inputs)
    uses.update(graph.outputs)
    made_at = {t: position for position, op in enumerate(graph.ops) for t in op.outputs}
    chain_of: dict[int, _Chain] = {}  # tensor → the chain that makes it
    chains: list[_Chain] = []
    for position, op in enumerate(graph.ops):
        chain = _joined(op, graph, chain_of, uses, made_at)
        if chain is None:
            chain = _Chain(position, [op])
            chains.append(chain)
        else:
            chain.ops.append(op)
        if op.family is Family.ELEMENTWISE:
            chain_of.update(dict.fromkeys(op.outputs, chain))
    return replace(graph, ops=tuple(_as_one(chain.ops) for chain in chains))


def _joined(
    op: Op, graph: Graph, chain_of: dict[int, _Chain], uses: Counter[int], made_at: dict[int, int]
) -> _Chain | None:
    """The chain that an op becomes part of; None if it begins one."""
    if op.family is not Family.ELEMENTWISE or len(op.outputs) != 1:
        return None
    elements = graph.tensors[op.outputs[0]].elements
    for tensor in op.inputs:
        chain = chain_of.get(tensor)
        if chain is None or elements is None or graph.tensors[tensor].elements != elements:
            continue
        taken = [t for t in op.inputs if chain_of.get(t) is chain]
        others = [t for t in op.inputs if t != ABSENT and chain_of.get(t) is not chain]
        same_loop = chain.ops[0].scope == op.scope and chain.ops[0].trips == op.trips
        alone = all(uses[t] == op.inputs.count(t) for t in taken)
        if same_loop and alone and all(made_at.get(t, -1) < chain.first for t in others):
            return chain
    return None


def _as_one(ops: Sequence[Op]) -> Op:
    """One op for a chain: of the kind that takes longest, with the operands that come from outside."""
    if len(ops) == 1:
        return ops[0]
    inside = {t for op in ops for t in op.outputs}
    outside = tuple(dict.fromkeys(t for op in ops for t in op.inputs if t != ABSENT and t not in inside))
    kinds = [op.kind for op in ops]
    kind = next((kind for kind in kinds if kind in TRANSCENDENTAL_KINDS), kinds[0])
    names = tuple(name for op in ops for name in (op.sources or (op.name,)))
    attributes = {**ops[-1].attributes, "chain": " ".join(kinds)}
    return replace(ops[-1], kind=kind, inputs=outside, attributes=attributes, sources=names)


def in_passing(graph: Graph, activation: str) -> Graph:
    """Let products with weights apply the error functions that read nothing but their result, on its way out."""
    uses = Counter(t for op in graph.ops for t in op.inputs)
    uses.update(graph.outputs)
    made_by = {t: position for position, op in enumerate(graph.ops) for t in op.outputs}
    ops: list[Op | None] = list(graph.ops)
    for position, op in enumerate(graph.ops):
        values = [t for t in op.inputs if t != ABSENT and graph.tensors[t].role is not Role.CONSTANT]
        maker = made_by.get(values[0]) if len(values) == 1 and uses[values[0]] == 1 else None
        product = None if maker is None else ops[maker]
        if maker is None or product is None or work_family(op, graph) is not WorkFamily.ERROR_FUNCTION:
            continue
        takes = work_family(product, graph) is WorkFamily.WEIGHTS_PRODUCT and "activation" not in product.attributes
        if takes and product.scope == op.scope:
            names = (*(product.sources or (product.name,)), *(op.sources or (op.name,)))
            attributes = {**product.attributes, "activation": activation}
            ops[maker] = replace(product, outputs=op.outputs, attributes=attributes, sources=names)
            ops[position] = None
            made_by.update(dict.fromkeys(op.outputs, maker))
    return replace(graph, ops=tuple(op for op in ops if op is not None))


def rescaled_joins(graph: Graph) -> Graph:
    """Rescale what several concatenations of integers read: a tensor has one scale, each of them has its own.

    The first that reads it has the scale that the tensor is made with.
    """
    ops: list[Op] = []
    tensors = list(graph.tensors)
    joined: set[int] = set()
    for op in graph.ops:
        inputs = list(op.inputs)
        for place, t in enumerate(op.inputs if op.kind == "concat" else ()):
            if t in joined and not tensors[t].dtype.is_float:
                tensors.append(replace(tensors[t], name=f"{tensors[t].name}/rescaled{len(ops)}", role=Role.ACTIVATION))
                name = f"{op.name}/rescale{place}"
                ops.append(Op("quantize", "Rescale", name, (t,), (len(tensors) - 1,), scope=op.scope, trips=op.trips))
                inputs[place] = len(tensors) - 1
            joined.add(t)
        ops.append(replace(op, inputs=tuple(inputs)))
    return replace(graph, ops=tuple(ops), tensors=tuple(tensors))


def rename_layouts(graph: Graph) -> Graph:
    """Turn transpositions between channels first and channels last into views: on a machine that keeps channels
    innermost, whatever a file calls their axis, nothing moves."""
    ops = [replace(op, kind="identity") if _moves_channels(op) else op for op in graph.ops]
    return replace(graph, ops=tuple(ops))


def free_joins(graph: Graph) -> Graph:
    """Turn concatenations into views where each operand is made by an op and read by nobody else: their makers write
    side by side, so that nothing moves."""
    uses = Counter(t for op in graph.ops for t in op.inputs)
    uses.update(graph.outputs)
    made = {t for op in graph.ops for t in op.outputs}
    return replace(graph, ops=tuple(_joined_by_makers(op, uses, made) for op in graph.ops))


def _joined_by_makers(op: Op, uses: Counter[int], made: set[int]) -> Op:
    free = op.kind == "concat" and all(t in made and uses[t] == 1 for t in op.inputs)
    return replace(op, kind="identity") if free else op


def _moves_channels(op: Op) -> bool:
    order = op.attributes.get("permutation") if op.kind == "transpose" else None
    if not isinstance(order, tuple) or len(order) < 3:  # batch, channels, and something between
        return False
    rank = len(order)
    return order in ((0, *range(2, rank), 1), (0, rank - 1, *range(1, rank - 1)))
