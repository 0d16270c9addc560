"""Batch: which axis of every tensor counts the images of a batch, and a plan for fewer images of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ...graph.batch import axes_of_images, batch_size
from ...graph.graph import ABSENT, Graph, Op, Role
from ...graph.kinds import Family
from ..plan import Placed, Plan
from .axes import WHOLE, input_axes


def batch_axes(graph: Graph) -> dict[int, int]:
    """Tensor → the axis that counts images, for those that depend on the batch and can be cut along it.

    From the inputs that begin with images on, op by op: of `transpose [8,16,32] → [16,8,32]` it is axis 1, of
    `reshape [8,16,32] → [128,32]` axis 0, with 16 rows for every image.
    """
    images, recurrent = batch_size(graph), axes_of_images(graph)
    begin = (t for t in graph.inputs if not recurrent.get(t))
    found = {t: 0 for t in begin if (graph.tensors[t].shape or (0,))[0] == images}
    fixed = {t for t, tensor in enumerate(graph.tensors) if tensor.role is Role.CONSTANT}
    for op in graph.ops:
        axis = _batch_axis(op, graph, found, fixed, images) if op.outputs else None
        if axis is not None:
            found.update(dict.fromkeys(op.outputs, axis))
        elif all(t in fixed for t in op.inputs if t != ABSENT):
            fixed.update(op.outputs)
    return found


def _batch_axis(op: Op, graph: Graph, known: dict[int, int], fixed: set[int], images: int) -> int | None:
    """The axis of an op's outputs that counts images; None: it does not depend on the batch, or cannot be cut.

    Of an input that all images share they read the same, or it is `fixed` by constants and has a part for each.
    """
    inputs = [(position, t) for position, t in enumerate(op.inputs) if t != ABSENT]
    batched = {position for position, t in inputs if t in known}
    shapes = [graph.tensors[t].shape or () for t in op.outputs]
    if not batched or op.scope or op.trips != 1:
        return None
    for axis, extent in enumerate(shapes[0]):
        if extent % images or any(len(shape) <= axis or shape[axis] != extent for shape in shapes):
            continue
        axes = input_axes(op, graph, axis)
        if axes is not None and all(
            axes[position] == known[t] if position in batched else axes[position] == WHOLE or t in fixed
            for position, t in inputs
        ):
            return axis
    return None


def is_cuttable(graph: Graph, axes: dict[int, int]) -> bool:
    """Whether the whole network can run for some images at a time: every op that depends on the batch can be cut."""
    depends = {t for t in graph.inputs if t in axes}
    for op in graph.ops:
        if op.scope or any(t in depends for t in op.inputs):
            if op.scope or any(t not in axes for t in op.outputs):
                return False
            depends.update(op.outputs)
    roles = (graph.tensors[t].role for op in graph.ops for t in op.inputs if t != ABSENT)
    return all(t in axes for t in graph.outputs) and Role.VARIABLE not in roles


def passing(graph: Graph, axes: dict[int, int]) -> Iterator[list[int] | None]:
    """Yield for every op what ops before it have made that it or later ones read; None where that is not of the batch,
    is a view, or leaves the network too: then a batch that ran in parts before cannot become one there.
    """
    last = {t: index for index, op in enumerate(graph.ops) for t in op.inputs}
    alive: dict[int, bool] = {}  # tensor → whether what parts have made of it can be joined
    for index, op in enumerate(graph.ops):
        yield list(alive) if alive and all(alive.values()) and not op.scope else None
        kept = op.family is not Family.VIEW and not op.scope
        alive.update({t: kept and t in axes and t not in graph.outputs for t in op.outputs if last.get(t, -1) > index})
        alive = {t: can_be for t, can_be in alive.items() if last[t] > index}


def with_images(graph: Graph, axes: dict[int, int], images: int) -> Graph:
    """The graph for fewer images: the same ops on smaller tensors."""
    batch = batch_size(graph)
    if images == batch:
        return graph
    tensors = list(graph.tensors)
    for t, axis in axes.items():
        shape = tensors[t].shape or ()
        smaller = (*shape[:axis], shape[axis] * images // batch, *shape[axis + 1 :])
        tensors[t] = replace(tensors[t], shape=smaller)
    return replace(graph, tensors=tuple(tensors))


def for_images(plan: Plan, axes: dict[int, int], images: int) -> Plan:
    """The plan for fewer images: its graph, and of every op that depends on the batch a share."""
    batch = batch_size(plan.graph)
    if images == batch:
        return plan
    shares = (images / batch if any(t in axes for t in each.op.outputs) else 1.0 for each in plan.placed)
    placed = tuple(some_of(each, each.op, share) for each, share in zip(plan.placed, shares, strict=True))
    return replace(plan, graph=with_images(plan.graph, axes, images), placed=placed)


def some_of(placed: Placed, op: Op, share: float) -> Placed:
    """An op for a share of the batch: that share of the work and of the cycles."""
    work = placed.task.work
    if share == 1.0:
        return placed if op is placed.op else replace(placed, op=op, task=replace(placed.task, op=op))
    work = replace(
        work,
        macs=round(work.macs * share),
        element_ops=round(work.element_ops * share),
        read_bytes=round(work.read_bytes * share),
        write_bytes=round(work.write_bytes * share),
    )
    return replace(placed, op=op, task=replace(placed.task, op=op, work=work), cycles=placed.cycles * share)
