"""Masked softmax: an addition of a mask to scores, and the softmax behind it, run as one kernel.

    add [1,16,384,384] + [1,1,384,384] → softmax    becomes    masked_softmax of scores and mask

A mask with a value for every query and key, alike for all heads, is read beside the scores. One with a row of keys
alone, which is added to every query, is no operand of such a kernel.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from ...graph.graph import ABSENT, Graph, Op

KIND = "masked_softmax"


def fuse_masks(graph: Graph) -> Graph:
    """Return the graph with masks added inside the softmax that alone reads the sum."""
    uses = Counter(t for op in graph.ops for t in op.inputs)
    uses.update(graph.outputs)
    sums = {op.outputs[0]: op for op in graph.ops if op.kind == "add" and uses[op.outputs[0]] == 1}
    fused: dict[int, Op] = {}  # output of a softmax → the op in its place
    gone: set[int] = set()
    for op in graph.ops:
        before = sums.get(op.inputs[0]) if op.kind == "softmax" else None
        operands = _scores_and_mask(before, graph) if before is not None else None
        if before is None or operands is None or before.scope != op.scope or not _is_over_keys(op, graph):
            continue
        sources = (*(before.sources or (before.name,)), *(op.sources or (op.name,)))
        fused[op.outputs[0]] = replace(op, kind=KIND, inputs=operands, sources=sources)
        gone.update(before.outputs)
    ops = (fused.get(op.outputs[0], op) if op.outputs else op for op in graph.ops)
    return replace(graph, ops=tuple(op for op in ops if not op.outputs or op.outputs[0] not in gone))


def _scores_and_mask(op: Op, graph: Graph) -> tuple[int, int] | None:
    """The operands of an addition, where one is a value for every query and key that all heads share."""
    if ABSENT in op.inputs or len(op.inputs) != 2:
        return None
    out = graph.tensors[op.outputs[0]].shape or ()
    for scores, mask in (op.inputs, op.inputs[::-1]):
        wide, own = graph.tensors[scores].shape, graph.tensors[mask].shape or ()
        smaller = (graph.tensors[mask].elements or 0) < (graph.tensors[scores].elements or 0)
        if wide == out and smaller and len(out) > 2 and own[-2:] == out[-2:] and out[-2] > 1:
            return scores, mask
    return None


def _is_over_keys(op: Op, graph: Graph) -> bool:
    return op.attributes.get("axes") == (len(graph.tensors[op.outputs[0]].shape or ()) - 1,)
