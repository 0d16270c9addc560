"""Plan → plan in which every op stands once for every part of the batch that it runs in.

Stretches are runs of ops with one number of parts: all of their ops for the first part, then all for the second. What
one stretch makes and another reads in fewer parts is joined; in more, divided. Both are views.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import groupby
from math import gcd

import numpy as np

from ...estimate.placement import Placement
from ...estimate.price import Task
from ...estimate.work import Work
from ...graph.graph import ABSENT, Op, Role
from ...program.program import NO_OP
from ..codegen.emit import Columns
from ..plan import Placed, Plan, Split


@dataclass(frozen=True, slots=True)
class Unrolled:
    """A plan to be lowered, and which op of the plan before each of its ops is a part of."""

    plan: Plan
    origin: tuple[int, ...]

    def in_whole_ops(self, columns: Columns) -> Columns:
        """Commands of parts, as those of the ops that they are parts of."""
        commands = columns.commands.copy()
        origin = np.array((*self.origin, NO_OP), dtype=commands["op"].dtype)  # the last is where NO_OP points
        commands["op"] = origin[commands["op"]]
        return replace(columns, commands=commands)


def unroll(plan: Plan) -> Unrolled:
    """Lay out the parts of all stretches, one after the other."""
    if max(plan.parts, default=1) == 1:
        return Unrolled(plan, tuple(range(len(plan.placed))))
    return _Unroller(plan).run()


@dataclass(frozen=True, slots=True)
class _Made:
    """A tensor as it is at present."""

    ids: tuple[int, ...]  # one per part
    maker: int
    split: Split


@dataclass(slots=True)
class _Sheet:
    """The plan that grows."""

    placed: list[Placed] = field(default_factory=list)
    splits: list[Split] = field(default_factory=list)
    origin: list[int] = field(default_factory=list)

    def add(self, placed: Placed, split: Split, origin: int) -> None:
        self.placed.append(placed)
        self.splits.append(split)
        self.origin.append(origin)


class _Unroller:
    def __init__(self, plan: Plan) -> None:
        self.plan, self.graph = plan, plan.graph
        self.tensors = list(plan.graph.tensors)
        self.sheet = _Sheet()
        self.made: dict[int, _Made] = {}  # tensor that an op makes → as it is
        self.read: dict[tuple[int, int], tuple[int, ...]] = {}  # graph input and parts → one tensor per part

    def run(self) -> Unrolled:
        for parts, indices in self._stretches():
            for index in indices:
                for t in self.plan.placed[index].op.inputs:
                    self._bring(t, parts)
            for part in range(parts):
                for index in indices:
                    self._add(index, part, parts)
        for t in self.graph.outputs:
            self._bring(t, 1)
        outputs = tuple(self.made[t].ids[0] if t in self.made else t for t in self.graph.outputs)
        ops = tuple(placed.op for placed in self.sheet.placed)
        graph = replace(self.graph, tensors=tuple(self.tensors), ops=ops, outputs=outputs)
        plan = replace(
            self.plan,
            graph=graph,
            placed=tuple(self.sheet.placed),
            splits=tuple(self.sheet.splits),
            parts=(1,) * len(ops),
        )
        return Unrolled(plan, tuple(self.sheet.origin))

    def _stretches(self) -> Iterator[tuple[int, list[int]]]:
        for parts, indices in groupby(range(len(self.plan.parts)), key=lambda index: self.plan.parts[index]):
            yield parts, list(indices)

    # ---- ops ------------------------------------------------------------------------------------------------------

    def _add(self, index: int, part: int, parts: int) -> None:
        placed, split = self.plan.placed[index], self.plan.splits[index]
        if part == 0:
            for t in placed.op.outputs:
                self.made[t] = _Made(self._fresh(t, parts) if parts > 1 else (t,), index, split)
        if parts > 1:
            inputs = tuple(self._at(t, part, parts) for t in placed.op.inputs)
            outputs = tuple(self.made[t].ids[part] for t in placed.op.outputs)
            placed = _part_of(placed, replace(placed.op, inputs=inputs, outputs=outputs), parts)
            split = replace(split, extent=split.extent // parts) if split.axis == 0 else split
        else:
            inputs = tuple(self._at(t, 0, 1) for t in placed.op.inputs)
            gathers = tuple(self._at(t, 0, 1) for t in split.gathers)
            op = replace(placed.op, inputs=inputs)
            placed, split = replace(placed, op=op, task=replace(placed.task, op=op)), replace(split, gathers=gathers)
            self._note_gathers(self.plan.splits[index])
        self.sheet.add(placed, split, index)

    def _note_gathers(self, split: Split) -> None:
        """What was handed around is whole on every lane."""
        for t in split.gathers:
            if t in self.made:
                self.made[t] = replace(self.made[t], split=Split(None, 1, split.devices))

    def _at(self, tensor: int, part: int, parts: int) -> int:
        if tensor in self.made:
            return self.made[tensor].ids[part]
        return self.read[tensor, parts][part] if (tensor, parts) in self.read else tensor

    # ---- tensors --------------------------------------------------------------------------------------------------

    def _fresh(self, tensor: int, parts: int) -> tuple[int, ...]:
        """New tensors, one for each part of a tensor."""
        whole = self.tensors[tensor]
        shape = whole.shape or ()
        first = len(self.tensors)
        for number in range(parts):
            name = f"{whole.name}/part{number + 1}of{parts}" if parts > 1 else whole.name
            self.tensors.append(replace(whole, name=name, shape=(shape[0] // parts, *shape[1:])))
        return tuple(range(first, len(self.tensors)))

    def _bring(self, tensor: int, parts: int) -> None:
        """Let a tensor be there in so many parts."""
        if tensor == ABSENT:
            return
        if tensor not in self.made:
            if parts > 1 and self.tensors[tensor].role is Role.INPUT and (tensor, parts) not in self.read:
                self.read[tensor, parts] = self._fresh(tensor, parts)
            return
        fewer = gcd(len(self.made[tensor].ids), parts)
        if fewer < len(self.made[tensor].ids):
            self._regroup(tensor, fewer)
        if fewer < parts:
            self._regroup(tensor, parts)

    def _regroup(self, tensor: int, parts: int) -> None:
        """Join neighbouring parts, or divide each, so that there are so many."""
        now = self.made[tensor]
        ids, split = self._fresh(tensor, parts), now.split
        count = min(parts, len(now.ids))
        old, new = len(now.ids) // count, parts // count
        kind = "join" if new == 1 else "divide"
        if split.axis == 0:
            split = replace(split, extent=split.extent // count)
        for number in range(count):
            ends = now.ids[number * old : (number + 1) * old], ids[number * new : (number + 1) * new]
            maker = self.plan.placed[now.maker].op
            op = Op(kind, kind, f"{maker.name}/{kind}", *ends, location=maker.location)
            task = Task(op, Work(), Placement(None, self.tensors[tensor].dtype), {})
            self.sheet.add(Placed(op, task, "", 0.0, kind), replace(split, gathers=()), now.maker)
        self.made[tensor] = replace(now, ids=ids)


def _part_of(placed: Placed, op: Op, parts: int) -> Placed:
    """One of several equal parts of an op."""
    work = placed.task.work
    smaller = replace(
        work,
        macs=work.macs // parts,
        element_ops=work.element_ops // parts,
        read_bytes=work.read_bytes // parts,
        write_bytes=work.write_bytes // parts,
    )
    return replace(placed, op=op, task=replace(placed.task, op=op, work=smaller), cycles=placed.cycles / parts)
