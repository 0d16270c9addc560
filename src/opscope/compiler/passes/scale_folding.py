"""Scale folding: a multiplication by a constant behind a product or a dequantize disappears in its own scale."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from ...graph.graph import ABSENT, Graph, Op, Role
from ...graph.kinds import Family

_SCALES = ("mul", "div")


def drop_absent_outputs(graph: Graph) -> Graph:
    """Leave out outputs that the model does not name, and ops that then make nothing."""
    ops = (replace(op, outputs=tuple(t for t in op.outputs if t != ABSENT)) for op in graph.ops)
    return replace(graph, ops=tuple(op for op in ops if op.outputs))


def fold_scales(graph: Graph) -> Graph:
    """The graph with `matmul` or `dequantize` `→ × constant` merged into one op where nothing else reads the first."""
    uses = Counter(t for op in graph.ops for t in op.inputs)
    uses.update(graph.outputs)
    producers: dict[int, int] = {}
    ops: list[Op] = []
    for op in graph.ops:
        data = _scaled_operand(op, graph)
        position = producers.get(data) if data is not None else None
        first = ops[position] if position is not None else None
        if (
            position is not None
            and first is not None
            and data is not None
            and uses[data] == 1
            and (first.family is Family.CONTRACTION or first.kind == "dequantize")
            and "activation" not in first.attributes
            and first.scope == op.scope
        ):
            sources = (*(first.sources or (first.name,)), op.name)
            ops[position] = replace(first, outputs=op.outputs, sources=sources)
        else:
            position = len(ops)
            ops.append(op)
        producers.update(dict.fromkeys(op.outputs, position))
    return replace(graph, ops=tuple(ops))


def _scaled_operand(op: Op, graph: Graph) -> int | None:
    """The tensor that an op does nothing to but multiply by one constant number."""
    if op.kind not in _SCALES or len(op.inputs) != 2 or len(op.outputs) != 1:
        return None
    left, right = op.inputs
    if right != ABSENT and _is_number(graph, right):
        return left
    return right if op.kind == "mul" and left != ABSENT and _is_number(graph, left) else None


def _is_number(graph: Graph, tensor: int) -> bool:
    return graph.tensors[tensor].role is Role.CONSTANT and graph.tensors[tensor].elements == 1
