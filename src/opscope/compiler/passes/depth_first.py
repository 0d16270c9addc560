"""Depth first: neighbouring ops that do not fit local memory run slice by slice of rows, one behind the other.

    whole       a ───────────▶ b ───────────▶ c         a and b are written to outer memory, and read back
    by rows     a₁ ▶ b₁ ▶ c₁   a₂ ▶ b₂ ▶ c₂   join      what passes between them stays local

A slice of rows of the last op needs some rows of the one before it, and windows that overlap need rows that the slice
before had computed too: they are computed again. Weights are read again for every slice.

Ops are looked at from the last to the first. One whose operands and results do not fit is the root of a group; ops
whose results only the group reads may join it. Of all groups that end with the root the one is taken that saves most:
bytes that need not travel, at the rate that is left for a core when all of them are busy, less what is done again.
Example: a 3 × 3 convolution and an addition make 10 MB each. Apart they move 10 MB out, 10 MB in, and the sum out; in
5 slices of 40 rows the sum alone leaves, and 8 of 200 rows are convolved twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf

from ...core.meaning import Carries
from ...estimate.kernels import has_weights
from ...estimate.placement import Placement
from ...estimate.price import Task
from ...estimate.work import Work, numbers
from ...graph.graph import ABSENT, Graph, Op, Role
from ...graph.kinds import Family
from ..codegen.context import LoweringContext, channels
from ..codegen.weights import WeightStream
from ..plan import Placed, Schedule, Split
from .place import place_op
from .rows import Rows, axes_of_rows, extent, row_axes, rows_needed

_MOST_SLICES = 256
_MOST_OPS = 24  # of a group


def depth_first(schedule: Schedule) -> Schedule:
    """The schedule with every group of large neighbours written out slice by slice."""
    target = schedule.machine.target
    if target.tiling is None or target.local is None or not target.tiling.depth_first:
        return schedule
    axes = row_axes(schedule.graph)
    if not axes:
        return schedule
    groups = _Groups(schedule, LoweringContext(schedule, target.tiling, target.local), axes).find()
    return _Unrolled(schedule, groups, axes).run() if groups else schedule


@dataclass(frozen=True, slots=True)
class _Group:
    """Ops that run slice by slice, in order; the last is the root, whose rows are cut."""

    ops: tuple[int, ...]
    slices: tuple[Rows, ...]


class _Groups:
    """Finds the groups of a schedule."""

    def __init__(self, schedule: Schedule, context: LoweringContext, axes: dict[int, int]) -> None:
        self.schedule, self.graph, self.context, self.axes = schedule, schedule.graph, context, axes
        self.ops = [placed.op for placed in schedule.placed]
        self.whole_weights = context.tiling.whole_weights  # they lie beside the operands
        self.room = context.capacity - WeightStream(context).reserved_bytes
        self.rate = _rate(schedule)
        self.readers: dict[int, set[int]] = {}
        self.root: dict[int, int] = {}  # view → the tensor whose bytes it is
        for index, op in enumerate(self.ops):
            for t in op.inputs:
                self.readers.setdefault(t, set()).add(index)
            if self._is_view(index):
                self.root.update(dict.fromkeys(op.outputs, self.root.get(op.inputs[0], op.inputs[0])))
        self.maker = {t: index for index, op in enumerate(self.ops) for t in op.outputs}
        self.travels = {t for index in range(len(self.ops)) for t in self._streamed(index)}

    def find(self) -> list[_Group]:
        taken: set[int] = set()
        found = []
        for root in reversed(range(len(self.ops))):
            if root in taken or self._is_view(root) or not self._runs_by_rows(root):
                continue
            if self.travels.isdisjoint(self._activations(root)):
                continue
            best, most = self._alone(root), 0.0
            for members, slices in self._growing(root, taken):
                saved = self._saved_cycles(members, slices)
                if saved > most:
                    best, most = _Group(members, slices), saved
            if best is not None:
                taken.update(best.ops)
                found.append(best)
        return found

    def _alone(self, root: int) -> _Group | None:
        """An op by itself, where weights are read whole: then slices of its operands do not pass panels of weights."""
        if not self.whole_weights or not self._streamed(root):
            return None
        slices = self._cut((root,), 2)
        return None if slices is None else _Group((root,), slices)

    def _is_cut_by_channels(self, index: int) -> bool:
        """Whether a product holds all it reads, and makes its channels one tile of weights at a time.

        What a window with strides reads is held twice: as it is, and with the pixels in the order that it takes them.
        """
        op = self.ops[index]
        copies = 2 if max(numbers(op, "strides"), default=1) > 1 else 1
        product = has_weights(op, self.graph) and op.attributes.get("groups", 1) == 1
        return product and copies * self._bytes(op.inputs[0]) <= self.room

    def _growing(self, root: int, taken: set[int]) -> Iterator[tuple[tuple[int, ...], tuple[Rows, ...]]]:
        """Yield the groups that end with a root, each with an op more than the one before, in as few slices as fit."""
        members, count = [root], 2
        for index in range(root, -1, -1):
            if index != root:
                made = self.ops[index].outputs
                readers = {r for t in made for r in self.readers.get(t, ())}
                inside = bool(readers) and readers <= set(members) and set(made).isdisjoint(self.graph.outputs)
                if not inside or index in taken or not self._runs_by_rows(index) or not self._holds_weights(index):
                    continue
                members.insert(0, index)
            if self.schedule.splits[index].sharding is not self.schedule.splits[root].sharding:
                return
            slices = self._cut(members, count)
            if slices is None or len(members) > _MOST_OPS:
                return
            count = len(slices)
            yield tuple(members), slices

    def _runs_by_rows(self, index: int) -> bool:
        """Whether an op makes rows from rows, on lanes that have images of their own."""
        op, sharding = self.ops[index], self.schedule.splits[index].sharding
        runs = bool(self.schedule.placed[index].engine) or self._is_view(index)
        if not runs or op.scope or op.trips != 1 or len(op.outputs) != 1:
            return False
        axis = self.axes.get(op.outputs[0])
        alone = all(cut.axis == 0 for cut in sharding.cuts)
        return axis is not None and axis > 0 and alone and axes_of_rows(op, self.graph, axis) is not None

    def _is_view(self, index: int) -> bool:
        op = self.ops[index]
        return op.family is Family.VIEW and bool(op.inputs) and op.inputs[0] != ABSENT

    def _holds_weights(self, index: int) -> bool:
        """Whether all weights of an op fit: for some rows of its reader it makes all channels."""
        return self._constant_bytes(index) <= self.room

    def _constant_bytes(self, index: int) -> float:
        tensors = [self.graph.tensors[t] for t in self.ops[index].inputs if t != ABSENT]
        return sum(tensor.bytes or 0 for tensor in tensors if tensor.role is Role.CONSTANT)

    # ---- slices ---------------------------------------------------------------------------------------------------

    def _cut(self, members: Sequence[int], least: int) -> tuple[Rows, ...] | None:
        """The slices of the root's rows, as few as fit and at least so many."""
        rows = extent(self.graph, self.axes, self.ops[members[-1]].outputs[0])
        for count in range(least, min(rows, _MOST_SLICES) + 1):
            size = -(-rows // count)
            middle = size * (count // 2)
            if -(-rows // size) == count and self._need(members, (middle, min(rows, middle + size))) <= self.room:
                return tuple((low, min(rows, low + size)) for low in range(0, rows, size))
        return None

    def _need(self, members: Sequence[int], rows: Rows) -> float:
        """Most bytes that a slice needs at a time, on the lane that has most images."""
        ops = [self.ops[index] for index in members]
        needed = rows_needed(ops, self.graph, self.axes, rows)
        sizes = {t: self._bytes(t) * self._share(t, span) for t, span in needed.items()}
        last = {t: number for number, op in enumerate(ops) for t in op.inputs}
        most, live = 0.0, set[int]()
        for number, op in enumerate(ops):
            live |= {t for t in (*op.inputs, *op.outputs) if t in sizes}
            if not self._is_view(members[number]):
                most = max(most, sum(sizes[t] for t in live))
            live = {t for t in live if last.get(t, -1) > number}
        return most

    def _share(self, tensor: int, rows: Rows) -> float:
        return (rows[1] - rows[0]) / extent(self.graph, self.axes, tensor)

    def _bytes(self, tensor: int) -> float:
        """Bytes of a tensor on the lane that has most of it."""
        sharding = self.context.sharding_of(tensor)
        return (self.graph.tensors[tensor].bytes or 0) * (1.0 if sharding is None else sharding.largest)

    # ---- what a group saves ---------------------------------------------------------------------------------------

    def _activations(self, index: int) -> list[int]:
        """What an op reads and makes, as the tensors that own the bytes."""
        op = self.ops[index]
        tensors = dict.fromkeys(self.root.get(t, t) for t in (*op.inputs, *op.outputs) if t != ABSENT)
        return [t for t in tensors if self.graph.tensors[t].role is not Role.CONSTANT]

    def _streamed(self, index: int) -> list[int]:
        """What passes through outer memory where an op runs whole: its largest tensors, until the others fit."""
        if not self.schedule.placed[index].engine:
            return []
        sizes = sorted((self._bytes(t), t) for t in self._activations(index))
        beside = self._constant_bytes(index) if self.whole_weights and not self._is_cut_by_channels(index) else 0.0
        over, found = sum(size for size, _ in sizes) + beside - self.room, list[int]()
        while over > 0 and sizes:
            size, tensor = sizes.pop()
            over -= size
            found.append(tensor)
        return found

    def _saved_cycles(self, members: Sequence[int], slices: Sequence[Rows]) -> float:
        """Cycles that a group saves; below zero where it does more again than it spares."""
        ops, inside = [self.ops[index] for index in members], set(members)
        needed = [rows_needed(ops, self.graph, self.axes, rows) for rows in slices]
        saved = again = 0.0
        for t in needed[0]:
            size, owner = self._bytes(t), self.root.get(t, t)
            reading = sum(not self._is_view(index) for index in self.readers.get(t, set()) & inside)
            read = sum(self._share(t, found[t]) for found in needed)
            if self.maker.get(t) in inside:
                again += self._cycles(self.maker[t]) * max(0.0, read - 1)
                if t != ops[-1].outputs[0] and owner in self.travels:
                    saved += size * ((t == owner) + reading)
            else:  # slices of it are read from outer memory, where it has to be
                saved += size * reading - size * read if owner in self.travels else -size * (1 + read)
        for index in members:
            if has_weights(self.ops[index], self.graph) and not self._stays(index):
                saved -= (self.graph.tensors[self.ops[index].inputs[1]].bytes or 0) * (len(slices) - 1)
        return saved / self.rate - again

    def _cycles(self, index: int) -> float:
        return self.schedule.placed[index].cycles * self.schedule.splits[index].sharding.largest

    def _stays(self, index: int) -> bool:
        return self.schedule.resident or self.ops[index].inputs[1] in self.context.resident_constants


def _rate(schedule: Schedule) -> float:
    """Bytes of outer memory in a cycle of a core, when all cores are busy: other programs have the others."""
    cores = schedule.machine.target.topology.cores.value
    read = (channel for channel in channels(schedule) if channel.carries is Carries.READ)
    return sum(min(each.core_bytes_per_cycle, each.bytes_per_cycle / cores) for each in read) or inf


class _Unrolled:
    """Writes groups out: what they read is divided into slices, and what they make is joined."""

    def __init__(self, schedule: Schedule, groups: Sequence[_Group], axes: dict[int, int]) -> None:
        self.schedule, self.graph, self.axes = schedule, schedule.graph, axes
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
        needed = [rows_needed(ops, self.graph, self.axes, rows) for rows in group.slices]
        names: list[dict[int, int]] = [{} for _ in needed]  # tensor → the slice of it
        for t in needed[0]:
            for number, found in enumerate(needed):
                names[number][t] = self._slice(t, found[t], number, len(needed))
        for t in needed[0]:
            if t not in made and self.graph.tensors[t].role is not Role.INPUT:
                self._add("divide", (t,), tuple(part[t] for part in names), group.ops[-1], ops[-1])
        for part in names:
            for index, op in zip(group.ops, ops, strict=True):
                inputs, outputs = (tuple(part.get(t, t) for t in side) for side in (op.inputs, op.outputs))
                self.rows.append((replace(op, inputs=inputs, outputs=outputs), index, self.schedule.splits[index]))
        self._add("join", tuple(part[root] for part in names), (root,), group.ops[-1], ops[-1])
        self.repeated_macs += sum(self._repeated(index, needed) for index in group.ops)

    def _repeated(self, index: int, needed: Sequence[dict[int, Rows]]) -> float:
        """MACs of an op for rows that slices overlap in: slices of 6 and 6 rows make 10 rows, 2 of them twice."""
        placed = self.schedule.placed[index]
        (result,) = placed.op.outputs
        made = sum(high - low for low, high in (found[result] for found in needed))
        return placed.task.work.macs * (made / extent(self.graph, self.axes, result) - 1)

    def _slice(self, tensor: int, rows: Rows, number: int, count: int) -> int:
        whole, axis = self.graph.tensors[tensor], self.axes[tensor]
        shape = whole.shape or ()
        cut = (*shape[:axis], rows[1] - rows[0], *shape[axis + 1 :])
        self.tensors.append(replace(whole, name=f"{whole.name}/rows{number + 1}of{count}", shape=cut))
        return len(self.tensors) - 1

    def _add(self, kind: str, inputs: tuple[int, ...], outputs: tuple[int, ...], index: int, near: Op) -> None:
        op = near.beside(kind, inputs, outputs)
        sharding = self.schedule.splits[index].sharding
        self.rows.append((op, index, Split(sharding, (sharding,) * len(inputs))))
