"""Recurrent ops in a form that can be cut: states that nobody reads are left out, and the others have all axes.

A result [steps, directions, batch, hidden] and a last state [directions, batch, hidden] have no axis in common. As
[1, directions, batch, hidden], with a view behind it, the state is cut along batch or hidden units as the result is.
"""

from __future__ import annotations

from dataclasses import replace

from ...estimate.work import number
from ...graph.graph import Graph, Op, Tensor
from ...graph.kinds import Family


def align_states(graph: Graph) -> Graph:
    """The graph with the outputs of every recurrent op that somebody reads, all of one rank."""
    read = {*graph.outputs, *(t for op in graph.ops for t in op.inputs)}
    tensors, ops = list(graph.tensors), list[Op]()
    for op in graph.ops:
        if op.family is not Family.RECURRENT or op.scope:
            ops.append(op)
            continue
        kept = tuple(t for t in op.outputs if t in read) or op.outputs[:1]
        rank = max(len(tensors[t].shape or ()) for t in kept)
        made = dict(zip(kept, kept, strict=True))  # tensor of the graph → what the op makes
        for t in kept:
            shape = tensors[t].shape
            if shape is not None and len(shape) == rank - 1:
                made[t] = len(tensors)
                tensors.append(_with_a_step(tensors[t], op, shape))
        ops.append(replace(op, outputs=tuple(made.values())))
        ops += [op.beside("reshape", (own,), (t,)) for t, own in made.items() if own != t]
    return replace(graph, ops=tuple(ops), tensors=tuple(tensors))


def _with_a_step(state: Tensor, op: Op, shape: tuple[int, ...]) -> Tensor:
    """A state with an axis of one step: before its axes, or behind the batch where that comes first."""
    place = 1 if shape[0] == number(op, "batch", 1) != number(op, "directions", 1) else 0
    return replace(state, name=f"{state.name}/step", shape=(*shape[:place], 1, *shape[place:]))
