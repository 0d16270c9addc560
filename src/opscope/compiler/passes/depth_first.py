"""Depth first: neighbouring ops that do not fit local memory run slice by slice of rows, one behind the other.

    whole       a ───────────▶ b ───────────▶ c         a and b are written to outer memory, and read back
    by rows     a₁ ▶ b₁ ▶ c₁   a₂ ▶ b₂ ▶ c₂   join      what passes between them stays local

A slice of rows of the last op needs some rows of the one before it, and windows that overlap need rows that the slice
before had computed too: they are computed again. Slices are as few as fit.

Ops are looked at from the last to the first. One whose operands and results do not fit is the root of a group; the ops
whose results only the group reads, and which do not fit either but for their weights, join it. Weights are read again
for every slice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...estimate.kernels import has_weights
from ...estimate.placement import Placement
from ...estimate.price import Task
from ...estimate.work import Work, numbers
from ...graph.graph import ABSENT, Graph, Op, Role, Tensor
from ..codegen.context import LoweringContext
from ..codegen.weights import WeightStream
from ..plan import Placed, Schedule, Split
from .axes import WHOLE, input_axes
from .place import place_op

_MOST_SLICES = 256

Rows = tuple[int, int]  # from, to


def depth_first(schedule: Schedule) -> Schedule:
    """The schedule with every group of large neighbours written out slice by slice; only of one lane."""
    target = schedule.machine.target
    tiling, local = target.tiling, target.local
    if tiling is None or local is None or not tiling.depth_first or schedule.machine.lanes > 1:
        return schedule
    context = LoweringContext(schedule, tiling, local)
    room = context.capacity - WeightStream(context).reserved_bytes
    groups = _Groups(schedule, room).find()
    return _Unrolled(schedule, groups).run() if groups else schedule


@dataclass(frozen=True, slots=True)
class _Group:
    """Ops that run slice by slice, in order; the last is the root, whose rows are cut."""

    ops: tuple[int, ...]
    slices: tuple[Rows, ...]


class _Groups:
    """Finds the groups of a schedule."""

    def __init__(self, schedule: Schedule, room: float) -> None:
        self.graph, self.ops, self.room = schedule.graph, [placed.op for placed in schedule.placed], room
        self.runs = [bool(placed.engine) for placed in schedule.placed]
        self.readers: dict[int, set[int]] = {}
        for index, op in enumerate(self.ops):
            for t in op.inputs:
                self.readers.setdefault(t, set()).add(index)

    def find(self) -> list[_Group]:
        taken: set[int] = set()
        found = []
        for root in reversed(range(len(self.ops))):
            if root in taken or not self._is_large(root):
                continue
            members = [root]
            for index in range(root - 1, -1, -1):
                readers = {r for t in self.ops[index].outputs for r in self.readers.get(t, ())}
                inside = bool(readers) and readers <= set(members)
                leaves = not set(self.ops[index].outputs).isdisjoint(self.graph.outputs)
                if inside and not leaves and self._is_large(index) and self._holds_weights(index):
                    members.insert(0, index)
            if self._is_cut_by_channels(members):
                continue
            group = self._cut(tuple(members)) or self._cut((root,))
            if group is not None:
                taken.update(group.ops)
                found.append(group)
        return found

    def _is_large(self, index: int) -> bool:
        """Whether an op can run by rows, and does not fit as a whole."""
        op = self.ops[index]
        if not self.runs[index] or op.scope or op.trips != 1 or row_axes(op, self.graph) is None:
            return False
        operands = {t for t in (*op.inputs, *op.outputs) if t != ABSENT}
        return sum(self.graph.tensors[t].bytes or 0 for t in operands) > self.room

    def _holds_weights(self, index: int) -> bool:
        """Whether all weights of an op fit: for some rows of its reader it makes all channels."""
        constants = (t for t in self.ops[index].inputs if t != ABSENT)
        sizes = (self.graph.tensors[t].bytes or 0 for t in constants if self.graph.tensors[t].role is Role.CONSTANT)
        return sum(sizes) <= self.room

    def _is_cut_by_channels(self, members: Sequence[int]) -> bool:
        """Whether a product on its own holds all it reads, and makes its channels one tile of weights at a time.

        What a window with strides reads is held twice: as it is, and with the pixels in the order that it takes them.
        """
        op = self.ops[members[-1]]
        copies = 2 if max(numbers(op, "strides"), default=1) > 1 else 1
        whole = len(members) == 1 and has_weights(op, self.graph) and not _is_depthwise(op)
        return whole and copies * (self.graph.tensors[op.inputs[0]].bytes or 0) <= self.room

    def _cut(self, members: tuple[int, ...]) -> _Group | None:
        """The group in as few slices as fit."""
        ops = [self.ops[index] for index in members]
        extent = (self.graph.tensors[ops[-1].outputs[0]].shape or ())[_axis(ops[-1])]
        for count in range(2, min(extent, _MOST_SLICES) + 1):
            size = -(-extent // count)
            if -(-extent // size) != count:
                continue
            middle = size * (count // 2)
            if self._need(ops, (middle, min(extent, middle + size))) <= self.room:
                edges = range(0, extent, size)
                return _Group(members, tuple((low, min(extent, low + size)) for low in edges))
        return None

    def _need(self, ops: Sequence[Op], rows: Rows) -> float:
        """Most bytes that a slice needs at a time."""
        needed = rows_needed(ops, self.graph, rows)
        sizes = {t: _slice_bytes(self.graph.tensors[t], axis, span) for t, (axis, span) in needed.items()}
        most, live = 0.0, set[int]()
        for number, op in enumerate(ops):
            live |= {t for t in (*op.inputs, *op.outputs) if t in sizes}
            most = max(most, sum(sizes[t] for t in live))
            later = {t for other in ops[number + 1 :] for t in other.inputs}
            live = {t for t in live if t in later}
        return most


def _is_depthwise(op: Op) -> bool:
    return op.attributes.get("groups", 1) != 1


def _axis(op: Op) -> int:
    """The axis of rows: the first behind the batch that does not count channels."""
    channel = op.attributes.get("channel_axis")
    return 2 if channel == 1 else 1


def row_axes(op: Op, graph: Graph) -> tuple[int, ...] | None:
    """The axis of rows of every input, or WHOLE; None where an op does not make rows from rows."""
    shape = graph.tensors[op.outputs[0]].shape or () if len(op.outputs) == 1 else ()
    if len(shape) != 4 or shape[_axis(op)] < 2:
        return None
    axis = _axis(op)
    if op.kind == "space_to_depth" and graph.tensors[op.inputs[0]].shape == shape:  # pixels change places in rows
        return (axis,)
    axes = input_axes(op, graph, axis)
    if axes is None:
        return None
    inputs = [(t, found) for t, found in zip(op.inputs, axes, strict=True) if t != ABSENT]
    moving = [found for t, found in inputs if graph.tensors[t].role is not Role.CONSTANT]
    return axes if moving and WHOLE not in moving else None


def rows_needed(ops: Sequence[Op], graph: Graph, rows: Rows) -> dict[int, tuple[int, Rows]]:
    """Of every tensor that a group reads or makes for some rows of its last op: the axis of rows, and which."""
    found = {ops[-1].outputs[0]: (_axis(ops[-1]), rows)}
    for op in reversed(ops):
        _, made = found[op.outputs[0]]
        for t, axis in zip(op.inputs, row_axes(op, graph) or (), strict=True):
            if t == ABSENT or axis == WHOLE or graph.tensors[t].role is Role.CONSTANT:
                continue
            low, high = _window(op, graph, t, axis, made)
            if t in found:
                low, high = min(low, found[t][1][0]), max(high, found[t][1][1])
            found[t] = axis, (low, high)
    return found


def _window(op: Op, graph: Graph, tensor: int, axis: int, made: Rows) -> Rows:
    """Rows of an input that some rows of the output are made from."""
    extent = (graph.tensors[tensor].shape or ())[axis]
    kernel, strides, dilations = (numbers(op, key) for key in ("kernel", "strides", "dilations"))
    if not kernel:
        return made
    stride = strides[0] if strides else 1
    taps = (kernel[0] - 1) * (dilations[0] if dilations else 1) + 1
    out = (graph.tensors[op.outputs[0]].shape or ())[_axis(op)]
    before = max(0, (out - 1) * stride + taps - extent) // 2  # rows of padding
    low, high = made[0] * stride - before, (made[1] - 1) * stride - before + taps
    return max(0, min(low, extent - 1)), max(1, min(high, extent))


def _slice_bytes(tensor: Tensor, axis: int, rows: Rows) -> float:
    extent = (tensor.shape or ())[axis]
    return (tensor.bytes or 0) * (rows[1] - rows[0]) / extent


class _Unrolled:
    """Writes groups out: what they read is divided into slices, and what they make is joined."""

    def __init__(self, schedule: Schedule, groups: Sequence[_Group]) -> None:
        self.schedule, self.graph = schedule, schedule.graph
        self.last = {group.ops[-1]: group for group in groups}  # where a group runs: where its root stood
        self.inside = {index for group in groups for index in group.ops}
        self.tensors = list(schedule.graph.tensors)
        self.rows: list[tuple[Op, int, Split]] = []  # op, its position in the schedule before, its split
        self.repeated_macs = 0.0

    def run(self) -> Schedule:
        for index, each in enumerate(self.schedule.placed):
            if index in self.last:
                self._write_out(self.last[index])
            elif index not in self.inside:
                self.rows.append((each.op, index, self.schedule.splits[index]))
        graph = replace(self.graph, tensors=tuple(self.tensors), ops=tuple(op for op, _, _ in self.rows))
        before = self.schedule
        placed = [
            replace(before.placed[index], op=op) if op is before.placed[index].op else self._placed(op, graph, index)
            for op, index, _ in self.rows
        ]
        origin = tuple(before.origin[index] for _, index, _ in self.rows)
        return replace(
            before,
            graph=graph,
            placed=tuple(placed),
            splits=tuple(split for _, _, split in self.rows),
            origin=origin,
            repeated_macs=before.repeated_macs + self.repeated_macs,
        )

    def _placed(self, op: Op, graph: Graph, index: int) -> Placed:
        if op.kind in ("divide", "join"):
            task = Task(op, Work(), Placement(None, self.tensors[op.inputs[0]].dtype), {})
            return Placed(op, task, "", 0.0, op.kind)
        found = place_op(op, graph, self.schedule.machine.target)
        return replace(found, engine=self.schedule.placed[index].engine)

    def _write_out(self, group: _Group) -> None:
        ops = [self.schedule.placed[index].op for index in group.ops]
        root, made = ops[-1].outputs[0], {t for op in ops for t in op.outputs}
        needed = [rows_needed(ops, self.graph, rows) for rows in group.slices]
        names: list[dict[int, int]] = [{} for _ in needed]  # tensor → the slice of it
        for t in needed[0]:
            for number, found in enumerate(needed):
                names[number][t] = self._slice(t, *found[t], number, len(needed))
        for t in needed[0]:
            if t not in made and self.graph.tensors[t].role is not Role.INPUT:
                self._add("divide", (t,), tuple(part[t] for part in names), group.ops[-1], ops[-1])
        for part in names:
            for index, op in zip(group.ops, ops, strict=True):
                inputs, outputs = (tuple(part.get(t, t) for t in side) for side in (op.inputs, op.outputs))
                self.rows.append((replace(op, inputs=inputs, outputs=outputs), index, self.schedule.splits[index]))
        self._add("join", tuple(part[root] for part in names), (root,), group.ops[-1], ops[-1])
        self.repeated_macs += sum(self._repeated(index, needed) for index in group.ops)

    def _repeated(self, index: int, needed: Sequence[dict[int, tuple[int, Rows]]]) -> float:
        """MACs of an op for rows that slices overlap in: slices of 6 and 6 rows make 10 rows, 2 of them twice."""
        placed = self.schedule.placed[index]
        (result,) = placed.op.outputs
        made = sum(high - low for _, (low, high) in (found[result] for found in needed))
        rows = (self.graph.tensors[result].shape or ())[_axis(placed.op)]
        return placed.task.work.macs * (made / rows - 1)

    def _slice(self, tensor: int, axis: int, rows: Rows, number: int, count: int) -> int:
        whole = self.graph.tensors[tensor]
        shape = whole.shape or ()
        cut = (*shape[:axis], rows[1] - rows[0], *shape[axis + 1 :])
        self.tensors.append(replace(whole, name=f"{whole.name}/rows{number + 1}of{count}", shape=cut))
        return len(self.tensors) - 1

    def _add(self, kind: str, inputs: tuple[int, ...], outputs: tuple[int, ...], index: int, near: Op) -> None:
        op = near.beside(kind, inputs, outputs)
        sharding = self.schedule.splits[index].sharding
        self.rows.append((op, index, Split(sharding, (sharding,) * len(inputs))))
