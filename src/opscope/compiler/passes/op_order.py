"""Order of ops: what needs nothing but inputs of the graph runs when its result is wanted.

A decoder converts its whole cache where the model file has it, before the first layer. The results do not fit local
memory and would be written out and read back, layer after layer, while the cache lies in outer memory anyway; where
they fit, they take the room of weights that could be read ahead:

    as in the file    convert k0   convert v0   convert k1   convert v1   layer 0     layer 1
    here              convert k0   convert v0   layer 0      convert k1   convert v1  layer 1
"""

from __future__ import annotations

from dataclasses import replace

from ...graph.graph import ABSENT, Graph, Op, Role
from ...graph.kinds import Family
from ..plan import Plan


def run_when_wanted(plan: Plan) -> Plan:
    """The plan with every op that reads inputs of the graph alone right before the first op that reads its result."""
    graph = plan.graph
    inside = {t for op in graph.ops if op.scope for t in op.inputs}  # of loops and branches, which stay as they are
    early = [
        index for index, op in enumerate(graph.ops) if _reads_inputs_alone(op, graph) and inside.isdisjoint(op.outputs)
    ]
    makers = {t: index for index in early for t in graph.ops[index].outputs}
    held = set(early)
    order: dict[int, None] = {}  # what comes a second time stays where it is
    for index, op in enumerate(graph.ops):
        order.update(dict.fromkeys(makers[t] for t in op.inputs if t in makers))
        order.update({} if index in held else {index: None})
    order.update(dict.fromkeys(early))  # what only the outside reads
    ops = tuple(graph.ops[index] for index in order)
    return replace(plan, graph=replace(graph, ops=ops), placed=tuple(plan.placed[index] for index in order))


def _reads_inputs_alone(op: Op, graph: Graph) -> bool:
    """Whether an op reads an input of the graph and nothing else but constants, outside of loops and branches."""
    roles = [graph.tensors[t].role for t in op.inputs if t != ABSENT]
    free = not op.scope and op.family is not Family.CONTROL and bool(op.outputs)
    return free and Role.INPUT in roles and all(role in (Role.INPUT, Role.CONSTANT) for role in roles)
