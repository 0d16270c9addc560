"""Schedule: plan → what runs, in order: every op once for each batch tile, with the exchanges between lanes.

Parts of the batch follow each other. In a part, a tile group is a run of neighbouring ops with one number of tiles: all
of its ops for the first tile, then all for the second. A tensor that crosses into a group with fewer tiles is joined,
into one with more divided; both are views. An input that lanes hold otherwise than an op needs it is exchanged first;
readers that need the same share the result.

Example: ops a, b, c with 2, 2 and 1 tiles become a₁ b₁ a₂ b₂ join(b₁, b₂) c. Numbers that do not divide each other
go through their greatest common divisor: from 6 tiles to 4, two joins of three, then two divisions in two.

Parts may also be interleaved, op by op. Of 16 images on 14 cores, 14 run with one on each core, and all cores share
the two that are left: a₂ a₁ b₂ b₁ c₂ c₁. What cores send each other of a₂ passes while they compute a₁.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from math import gcd

from ...estimate.placement import Placement
from ...estimate.price import Task
from ...estimate.work import Work
from ...graph.batch import batch_size
from ...graph.graph import ABSENT, Op, Role
from ..plan import Join, Part, Placed, Plan, Schedule, Split, spans
from ..sharding import Sharding, exchange
from .batch import batch_axes, some_of


def schedule(
    plan: Plan,
    parts: tuple[Part, ...] | None = None,
    *,
    axes: Mapping[int, int] | None = None,
    interleaved: bool = False,
) -> Schedule:
    """The parts of a plan written out, one after the other, or op by op; `axes` are those of the batch, where they are
    known.
    """
    scheduler = _Scheduler(plan, plan.parts if parts is None else parts, axes or batch_axes(plan.graph))
    return scheduler.run(interleaved=interleaved)


@dataclass(frozen=True, slots=True)
class _Tiled:
    """A tensor of the plan's graph, as the tensors of the schedule that hold it now."""

    ids: tuple[int, ...]  # one per tile
    maker: int
    sharding: Sharding


class _Scheduler:
    """One pass over the parts and their tile groups."""

    def __init__(self, plan: Plan, parts: tuple[Part, ...], axes: Mapping[int, int]) -> None:
        self.plan, self.graph, self.parts = plan, plan.graph, parts
        self.batch = batch_size(plan.graph)
        self.axes = axes
        self.tensors = list(plan.graph.tensors)
        self.placed: list[Placed] = []
        self.splits: list[Split] = []
        self.origin: list[int] = []
        self.made: dict[int, _Tiled] = {}  # tensor of the graph that an op makes → its tiles now
        self.read: dict[tuple[int, int], tuple[int, ...]] = {}  # graph input and tiles → one tensor per tile
        self.versions: dict[int, list[tuple[Sharding, int]]] = {}  # tensor → its exchanged copies

    def run(self, *, interleaved: bool) -> Schedule:
        join, all_spans = self.parts[-1].joined, spans(self.parts)
        apart = list(zip(self.parts, all_spans, strict=True))[: len(self.parts) - (join is not None)]
        made = self._interleave(apart) if interleaved else [self._run_part(*each) for each in apart]
        if join is not None:
            self._join(made, join)
            made.append(self._run_part(self.parts[-1], all_spans[-1]))
        outputs: list[int] = []
        for t in self.graph.outputs:  # every tile leaves on its own
            outputs += [part for each in made if t in each for part in each[t].ids] or [t]
        ops = tuple(placed.op for placed in self.placed)
        graph = replace(
            self.graph,
            tensors=tuple(self.tensors),
            ops=ops,
            outputs=tuple(dict.fromkeys(outputs)),
        )
        return Schedule(
            graph,
            self.plan.machine,
            tuple(self.placed),
            tuple(self.splits),
            tuple(self.origin),
            overlap_parts=self.plan.options.overlap_parts,
        )

    def _interleave(self, parts: Sequence[tuple[Part, range]]) -> list[dict[int, _Tiled]]:
        """Append every op for all parts, which have one tile each, before the next op. Returns what each has made.

        The rest of the batch comes first: it has more to send, which passes while cores compute their own images.
        """
        made: list[dict[int, _Tiled]] = [{} for _ in parts]
        read: list[dict[tuple[int, int], tuple[int, ...]]] = [{} for _ in parts]
        for index in parts[0][1]:
            placed = self.plan.placed[index]
            for number, (part, _) in reversed(list(enumerate(parts))):
                self.made, self.read = made[number], read[number]
                for t in placed.op.inputs:
                    self._retile(t, 1, part)
                self._add(index, 0, 1, part)
        return made

    def _join(self, made: Sequence[dict[int, _Tiled]], join: Join) -> None:
        """Append what makes one of all that parts have made and later ops read, on every core."""
        self.made, self.read = {}, {}
        read = {t for placed in self.plan.placed[join.begin :] for t in placed.op.inputs}
        for t, maker in ((t, tiled.maker) for t, tiled in made[0].items() if t in read):
            parts = []
            for each in made:
                (part,) = each[t].ids
                if exchange(each[t].sharding, join.held).sources:
                    part = self._exchanged(part, each[t].sharding, join.held, join.begin)
                parts.append(part)
            joined = self._moved("join", tuple(parts), (t,), self.plan.placed[maker].op)
            self._append(joined, Split(join.held, (join.held,) * len(parts)), maker)
            self.made[t] = _Tiled((t,), maker, join.held)

    def _run_part(self, part: Part, span: range) -> dict[int, _Tiled]:
        """Per tile group: make its inputs available in its number of tiles, then append its ops tile by tile."""
        if part.joined is None:
            self.made, self.read = {}, {}
        for tiles, indices in _tile_groups(part, span):
            for index in indices:
                for t in self.plan.placed[index].op.inputs:
                    self._retile(t, tiles, part)
            for tile in range(tiles):
                for index in indices:
                    self._add(index, tile, tiles, part)
        return self.made

    def _append(self, placed: Placed, split: Split, origin: int) -> None:
        self.placed.append(placed)
        self.splits.append(split)
        self.origin.append(origin)

    # ---- ops ------------------------------------------------------------------------------------------------------

    def _add(self, index: int, tile: int, tiles: int, part: Part) -> None:
        """Append one tile of an op; the first tile makes the tensors for all of them."""
        placed, split = self.plan.placed[index], part.splits[index]
        whole = tiles == 1 and part.images == self.batch
        if tile == 0:
            for t in placed.op.outputs:
                ids = (t,) if whole else self._new_tensors(t, tiles, part)
                self.made[t] = _Tiled(ids, index, split.sharding.made)
        inputs = [self._at(t, tile, tiles) for t in placed.op.inputs]
        for position in split.exchanges:
            held = self.made[placed.op.inputs[position]].sharding
            inputs[position] = self._exchanged(inputs[position], held, split.needs[position], index)
        outputs = tuple(self.made[t].ids[tile] for t in placed.op.outputs)
        op, ends = placed.op, (tuple(inputs), outputs)
        if ends != (op.inputs, op.outputs):
            op = replace(op, inputs=ends[0], outputs=ends[1])
        scaled = any(t in self.axes for t in placed.op.outputs)
        share = part.images / self.batch / tiles if scaled else 1.0
        self._append(some_of(placed, op, share), replace(split, exchanges=()) if split.exchanges else split, index)

    def _exchanged(self, tensor: int, held: Sharding, needed: Sharding, reader: int) -> int:
        """The tensor as an op needs it: a copy that has been exchanged before, or a new one."""
        versions = self.versions.setdefault(tensor, [])
        for sharding, copy in versions:
            if not exchange(sharding, needed).sources:
                return copy
        self.tensors.append(self.tensors[tensor])
        copy = len(self.tensors) - 1
        versions.append((needed, copy))
        op = self.plan.placed[reader].op
        self._append(self._moved("exchange", (tensor,), (copy,), op), Split(needed, (held,)), reader)
        return copy

    def _moved(self, kind: str, inputs: tuple[int, ...], outputs: tuple[int, ...], near: Op) -> Placed:
        """An op of the schedule's own, which belongs to an op of the network."""
        op = near.beside(kind, inputs, outputs)
        return Placed(op, Task(op, Work(), Placement(None, self.tensors[inputs[0]].dtype), {}), "", 0.0, kind)

    def _at(self, tensor: int, tile: int, tiles: int) -> int:
        if tensor in self.made:
            return self.made[tensor].ids[tile]
        return self.read[tensor, tiles][tile] if (tensor, tiles) in self.read else tensor

    # ---- tensors --------------------------------------------------------------------------------------------------

    def _new_tensors(self, tensor: int, tiles: int, part: Part) -> tuple[int, ...]:
        """New tensors, one for each tile of a part of a tensor."""
        whole, axis = self.graph.tensors[tensor], self.axes.get(tensor)
        shape = whole.shape
        if axis is not None and shape is not None:
            shape = (*shape[:axis], shape[axis] * part.images // self.batch // tiles, *shape[axis + 1 :])
        first = len(self.tensors)
        for number in range(tiles):
            name = f"{whole.name}/part{number + 1}of{tiles}" if tiles > 1 else whole.name
            self.tensors.append(replace(whole, name=name, shape=shape))
        return tuple(range(first, len(self.tensors)))

    def _retile(self, tensor: int, tiles: int, part: Part) -> None:
        """Make a tensor available in so many tiles, by joining and dividing the ones that there are."""
        if tensor == ABSENT:
            return
        if tensor not in self.made:
            fewer = tiles > 1 or part.images < self.batch
            is_cut = self.graph.tensors[tensor].role is Role.INPUT and tensor in self.axes
            if fewer and is_cut and (tensor, tiles) not in self.read:
                self.read[tensor, tiles] = self._new_tensors(tensor, tiles, part)
            return
        fewer_tiles = gcd(len(self.made[tensor].ids), tiles)
        if fewer_tiles < len(self.made[tensor].ids):
            self._regroup(tensor, fewer_tiles, part)
        if fewer_tiles < tiles:
            self._regroup(tensor, tiles, part)

    def _regroup(self, tensor: int, tiles: int, part: Part) -> None:
        """Append the ops that join neighbouring tiles, or divide each, so that there are `tiles` of them."""
        now = self.made[tensor]
        ids = self._new_tensors(tensor, tiles, part)
        count = min(tiles, len(now.ids))
        old, new = len(now.ids) // count, tiles // count
        kind = "join" if new == 1 else "divide"
        for number in range(count):
            ends = now.ids[number * old : (number + 1) * old], ids[number * new : (number + 1) * new]
            split = Split(now.sharding, (now.sharding,) * len(ends[0]))
            self._append(self._moved(kind, *ends, self.plan.placed[now.maker].op), split, now.maker)
        self.made[tensor] = replace(now, ids=ids)


def _tile_groups(part: Part, span: range) -> Iterator[tuple[int, list[int]]]:
    for tiles, indices in groupby(span, key=lambda index: part.tiles[index]):
        yield tiles, list(indices)
