"""How many images a graph takes at once, and which axis of its inputs counts them.

It is the first axis, but where a recurrent op takes steps first. Data of ONNX are [steps, batch, size] unless they are
transposed before, so what an axis of an input counts is told from the recurrent ops back:

    x [64,1,512] ─▶ lstm                      axis 1 of x: one sequence of 64 steps
    x [8,64,512] ─▶ transpose ─▶ lstm         axis 0 of x: eight sequences
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from .graph import ABSENT, Graph, Op, Role
from .kinds import Family


def batch_size(graph: Graph) -> int:
    """How many images the first input that has axes holds; 1 where there is none."""
    first = next((t for t in graph.inputs if graph.tensors[t].shape), None)
    shape = None if first is None else graph.tensors[first].shape
    return 1 if first is None or not shape else shape[axes_of_images(graph).get(first, 0)]


def axes_of_images(graph: Graph) -> Mapping[int, int]:
    """Tensor → the axis that becomes the batch of a recurrent op, for those that lead to one; the first of others."""
    found: dict[int, int] = {}
    for op in reversed(graph.ops):
        if op.family is Family.RECURRENT:
            found.update(_of_recurrent(op, graph))
        elif op.outputs and (axis := found.get(op.outputs[0])) is not None:
            own = _before(op, graph, axis)
            found.update({} if own is None else {op.inputs[0]: own})
    return found


def _of_recurrent(op: Op, graph: Graph) -> Iterator[tuple[int, int]]:
    """Data of a recurrent op and its first states, [directions, batch, hidden].

    Steps are never cut, so that they tell the axes apart in a graph for fewer images, too. Where there are as many of
    both, a result [steps, directions, batch, hidden] does.
    """
    steps, directions = op.attributes.get("steps"), op.attributes.get("directions", 1)
    data = graph.tensors[op.inputs[0]].shape or ()
    results = [graph.tensors[t].shape or () for t in op.outputs if t != ABSENT]
    is_told = any(len(shape) == 4 and shape[:2] == (steps, directions) for shape in results)
    if len(data) == 3:
        yield op.inputs[0], int(data[0] == steps and (data[1] != steps or is_told))
    for t in (t for t in op.inputs[1:] if t != ABSENT):
        if graph.tensors[t].role is not Role.CONSTANT and len(graph.tensors[t].shape or ()) == 3:
            yield t, 1


def _before(op: Op, graph: Graph, axis: int) -> int | None:
    """The axis of an op's data that an axis of its result comes from; None: not known."""
    if not op.inputs or op.inputs[0] == ABSENT:
        return None
    permutation = op.attributes.get("permutation")
    if op.kind == "transpose":
        own = permutation[axis] if isinstance(permutation, tuple) and axis < len(permutation) else None
        return own if isinstance(own, int) else None
    data, result = (graph.tensors[t].shape or () for t in (op.inputs[0], op.outputs[0]))
    keeps = len(data) == len(result) and data[: axis + 1] == result[: axis + 1]
    return axis if keeps else None
