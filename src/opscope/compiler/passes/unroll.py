"""Unroll: plan → plan in which every op occurs once for every batch tile that it runs in.

A tile group is a run of neighbouring ops with one number of tiles: all of its ops for the first tile, then all for
the second. A tensor that crosses into a group with fewer tiles is joined, into one with more divided; both are views.

Example: ops a, b, c with 2, 2 and 1 tiles become a₁ b₁ a₂ b₂ join(b₁, b₂) c. Numbers that do not divide each other
go through their greatest common divisor: from 6 tiles to 4, two joins of three, then two divisions in two.
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
    """The unrolled plan, and for each of its ops the op of the original plan that it is a tile of."""

    plan: Plan
    origin: tuple[int, ...]

    def map_to_plan_ops(self, columns: Columns) -> Columns:
        """The same commands, each pointing to an op of the original plan instead of the unrolled one."""
        commands = columns.commands.copy()
        origin = np.array((*self.origin, NO_OP), dtype=commands["op"].dtype)  # the last is where NO_OP points
        commands["op"] = origin[commands["op"]]
        return replace(columns, commands=commands)


def unroll(plan: Plan) -> Unrolled:
    """The tile groups of a plan written out, one after the other."""
    if max(plan.batch_tiles, default=1) == 1:
        return Unrolled(plan, tuple(range(len(plan.placed))))
    return _Unroller(plan).run()


@dataclass(frozen=True, slots=True)
class _TiledTensor:
    """A tensor of the original plan, as the tensors of the unrolled plan that hold it now."""

    ids: tuple[int, ...]  # one per tile
    maker: int
    split: Split


@dataclass(slots=True)
class _PlanBuilder:
    """The ops of the unrolled plan so far."""

    placed: list[Placed] = field(default_factory=list)
    splits: list[Split] = field(default_factory=list)
    origin: list[int] = field(default_factory=list)

    def add(self, placed: Placed, split: Split, origin: int) -> None:
        self.placed.append(placed)
        self.splits.append(split)
        self.origin.append(origin)


class _Unroller:
    """One pass over the tile groups; `run` returns the unrolled plan."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self.graph = plan, plan.graph
        self.tensors = list(plan.graph.tensors)
        self.builder = _PlanBuilder()
        self.made: dict[int, _TiledTensor] = {}  # tensor of the original plan that an op makes → its tiles now
        self.read: dict[tuple[int, int], tuple[int, ...]] = {}  # graph input and tiles → one tensor per tile

    def run(self) -> Unrolled:
        """Per tile group: make its inputs available in its number of tiles, then append its ops tile by tile."""
        for tiles, indices in self._tile_groups():
            for index in indices:
                for t in self.plan.placed[index].op.inputs:
                    self._retile(t, tiles)
            for tile in range(tiles):
                for index in indices:
                    self._add(index, tile, tiles)
        for t in self.graph.outputs:
            self._retile(t, 1)
        outputs = tuple(self.made[t].ids[0] if t in self.made else t for t in self.graph.outputs)
        ops = tuple(placed.op for placed in self.builder.placed)
        graph = replace(self.graph, tensors=tuple(self.tensors), ops=ops, outputs=outputs)
        plan = replace(
            self.plan,
            graph=graph,
            placed=tuple(self.builder.placed),
            splits=tuple(self.builder.splits),
            batch_tiles=(1,) * len(ops),
        )
        return Unrolled(plan, tuple(self.builder.origin))

    def _tile_groups(self) -> Iterator[tuple[int, list[int]]]:
        for tiles, indices in groupby(
            range(len(self.plan.batch_tiles)), key=lambda index: self.plan.batch_tiles[index]
        ):
            yield tiles, list(indices)

    # ---- ops ------------------------------------------------------------------------------------------------------

    def _add(self, index: int, tile: int, tiles: int) -> None:
        """Append one tile of an op; the first tile makes the tensors for all of them."""
        placed, split = self.plan.placed[index], self.plan.splits[index]
        if tile == 0:
            for t in placed.op.outputs:
                self.made[t] = _TiledTensor(self._new_tensors(t, tiles) if tiles > 1 else (t,), index, split)
        if tiles > 1:
            inputs = tuple(self._at(t, tile, tiles) for t in placed.op.inputs)
            outputs = tuple(self.made[t].ids[tile] for t in placed.op.outputs)
            placed = _one_tile_of(placed, replace(placed.op, inputs=inputs, outputs=outputs), tiles)
            split = replace(split, extent=split.extent // tiles) if split.axis == 0 else split
        else:
            inputs = tuple(self._at(t, 0, 1) for t in placed.op.inputs)
            gathers = tuple(self._at(t, 0, 1) for t in split.gathers)
            op = replace(placed.op, inputs=inputs)
            placed, split = replace(placed, op=op, task=replace(placed.task, op=op)), replace(split, gathers=gathers)
            self._record_gathers(self.plan.splits[index])
        self.builder.add(placed, split, index)

    def _record_gathers(self, split: Split) -> None:
        """A gathered tensor is whole on every lane from here on."""
        for t in split.gathers:
            if t in self.made:
                self.made[t] = replace(self.made[t], split=Split(None, 1, split.devices))

    def _at(self, tensor: int, tile: int, tiles: int) -> int:
        if tensor in self.made:
            return self.made[tensor].ids[tile]
        return self.read[tensor, tiles][tile] if (tensor, tiles) in self.read else tensor

    # ---- tensors --------------------------------------------------------------------------------------------------

    def _new_tensors(self, tensor: int, tiles: int) -> tuple[int, ...]:
        """New tensors, one for each tile of a tensor."""
        whole = self.tensors[tensor]
        shape = whole.shape or ()
        first = len(self.tensors)
        for number in range(tiles):
            name = f"{whole.name}/part{number + 1}of{tiles}" if tiles > 1 else whole.name
            self.tensors.append(replace(whole, name=name, shape=(shape[0] // tiles, *shape[1:])))
        return tuple(range(first, len(self.tensors)))

    def _retile(self, tensor: int, tiles: int) -> None:
        """Make a tensor available in so many tiles, by joining and dividing the ones that there are."""
        if tensor == ABSENT:
            return
        if tensor not in self.made:
            if tiles > 1 and self.tensors[tensor].role is Role.INPUT and (tensor, tiles) not in self.read:
                self.read[tensor, tiles] = self._new_tensors(tensor, tiles)
            return
        fewer = gcd(len(self.made[tensor].ids), tiles)
        if fewer < len(self.made[tensor].ids):
            self._regroup(tensor, fewer)
        if fewer < tiles:
            self._regroup(tensor, tiles)

    def _regroup(self, tensor: int, tiles: int) -> None:
        """Append the ops that join neighbouring tiles, or divide each, so that there are `tiles` of them."""
        now = self.made[tensor]
        ids, split = self._new_tensors(tensor, tiles), now.split
        count = min(tiles, len(now.ids))
        old, new = len(now.ids) // count, tiles // count
        kind = "join" if new == 1 else "divide"
        if split.axis == 0:
            split = replace(split, extent=split.extent // count)
        for number in range(count):
            ends = now.ids[number * old : (number + 1) * old], ids[number * new : (number + 1) * new]
            maker = self.plan.placed[now.maker].op
            op = Op(kind, kind, f"{maker.name}/{kind}", *ends, location=maker.location)
            task = Task(op, Work(), Placement(None, self.tensors[tensor].dtype), {})
            self.builder.add(Placed(op, task, "", 0.0, kind), replace(split, gathers=()), now.maker)
        self.made[tensor] = replace(now, ids=ids)


def _one_tile_of(placed: Placed, op: Op, tiles: int) -> Placed:
    """One of `tiles` equal tiles of an op: its share of the work and of the cycles."""
    work = placed.task.work
    smaller = replace(
        work,
        macs=work.macs // tiles,
        element_ops=work.element_ops // tiles,
        read_bytes=work.read_bytes // tiles,
        write_bytes=work.write_bytes // tiles,
    )
    return replace(placed, op=op, task=replace(placed.task, op=op, work=smaller), cycles=placed.cycles / tiles)
