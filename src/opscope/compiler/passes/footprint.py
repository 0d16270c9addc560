"""Footprint: local memory and weight traffic of every op, were the whole batch run at once.

Batch tiling divides these numbers by a number of tiles to see what fits. Liveness works as in register allocation: a
tensor is alive from the op that makes it to the last op that reads it, and a view shares the bytes of its source. A
result of the graph is written out in any case, and needs no room behind its last reader.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ...estimate.kernels import has_weights
from ...graph.graph import ABSENT, Op, Role
from ...graph.kinds import Family
from ..codegen.context import LoweringContext
from ..codegen.weights import WeightStream
from ..plan import Part, Placed, Plan, Schedule, Split, leaves_by_tiles
from ..sharding import Sharding
from .batch import for_images
from .residency import is_resident
from .split_prices import weight_cuts


@dataclass(frozen=True, slots=True)
class Footprint:
    """The footprint of one op on the lane with the largest portion; bytes unless said otherwise."""

    alive: float  # of tensors made before, and read by this op or later
    views: int  # number of live tensors that are views of others
    need: float  # of everything that is in local memory while the op runs
    gaps: float  # bytes between them that may be too small for anything: beside each, less than the largest new one
    others: float  # of those, what the op itself does not read
    read: tuple[float, ...]  # of those, the tensors that it reads, the largest first
    made: float  # of those, what it makes
    weights: float  # bytes of weights that are read for it, by all lanes together
    lane_weights: float  # bytes of weights that meet its operands on a lane
    by_tiles: bool  # its results can leave as they are made, tile by tile of the weights
    lanes: int
    divisible: int  # the op can run in as many parts of the batch as divide this


def footprints(plan: Schedule, context: LoweringContext, axes: dict[int, int], units: int) -> Iterator[Footprint]:
    """Yield the footprint of every op in order; the last one is the end of the graph, where nothing is tiled.

    `axes` are those that count images, and there are so many units of images.
    """
    liveness = _Liveness(plan, context, axes, units)
    for index, placed in enumerate(plan.placed):
        yield liveness.step(index, placed)
    yield end_of_graph(views=len(liveness.views))


def end_of_graph(*, views: int = 0) -> Footprint:
    """The footprint of what comes behind the last op."""
    return Footprint(
        alive=0.0,
        views=views,
        need=0.0,
        gaps=0.0,
        others=0.0,
        read=(),
        made=0.0,
        weights=0.0,
        lane_weights=0.0,
        by_tiles=False,
        lanes=1,
        divisible=1,
    )


@dataclass(frozen=True, slots=True)
class PartFootprints:
    """What the ops of a part need, and the local memory that there is for it."""

    steps: list[Footprint]
    room: float  # beside constants that stay, or tiles of weights
    resident: bool = False  # all constants stay

    @property
    def may_spill(self) -> bool:
        """Whether an op may not fit, were tensors packed as badly as they can be."""
        return any(step.need + step.gaps > self.room for step in self.steps)


def part_footprints(plan: Plan, part: Part, axes: dict[int, int]) -> PartFootprints:
    """Footprints of a part's ops, were all of it run at once; `axes` are those that count images."""
    target = plan.machine.target
    if target.local is None or target.tiling is None:
        return PartFootprints([], 0.0)
    some = for_images(plan, axes, part.images)
    whole = Schedule(some.graph, plan.machine, some.placed, part.splits, tuple(range(len(some.placed))))
    whole = replace(whole, resident=is_resident(whole, some.graph))
    context = LoweringContext(whole, target.tiling, target.local)
    room = context.capacity - WeightStream(context).reserved_bytes
    return PartFootprints(list(footprints(whole, context, axes, part.units)), room, whole.resident)


class _Liveness:
    """Follows tensors from the op that makes them to the last that reads them."""

    def __init__(self, plan: Schedule, context: LoweringContext, axes: dict[int, int], units: int) -> None:
        self.plan, self.graph, self.context, self.axes, self.units = plan, plan.graph, context, axes, units
        self.root: dict[int, int] = {}  # view → the tensor whose bytes it is
        self.last_reader = self._last_readers()
        self.last = self.last_reader | self._results()  # the same, with the end of the graph as a reader
        self.alive: dict[int, float] = {}  # tensor that was made → bytes on a lane
        self.bytes = 0.0
        self.views: set[int] = set()
        self.tiled: set[int] = set()  # tensors whose elements are in the order of a tiled layout

    def _last_readers(self) -> dict[int, int]:
        last: dict[int, int] = {}
        for index, op in enumerate(self.graph.ops):
            if op.family is Family.VIEW and op.inputs and op.inputs[0] != ABSENT:
                source = self.root.get(op.inputs[0], op.inputs[0])
                self.root.update(dict.fromkeys(op.outputs, source))
            for t in op.inputs:
                last[t] = last[self.root.get(t, t)] = index
        return last

    def _results(self) -> dict[int, int]:
        own = (t for output in self.graph.outputs for t in (output, self.root.get(output, output)))
        return dict.fromkeys(own, len(self.graph.ops))

    def step(self, index: int, placed: Placed) -> Footprint:
        """The footprint of the next op. Call once per op, in order: it advances what is alive."""
        op, split = placed.op, self.plan.splits[index]
        made = {t: self._bytes(t, split.sharding.made) for t in op.outputs if t not in self.root}
        read: dict[int, float] = {}
        for position, t in enumerate(op.inputs):
            root = self.root.get(t, t)
            if size := self._read_bytes(root, position, split):
                read[root] = max(size, read.get(root, 0.0))
        over = self._written_over(op, index, read, made)
        tiled = self._order(placed, read)
        fresh = [size for t, size in (*read.items(), *made.items()) if t not in self.alive]
        if placed.engine:  # an operand in the other layout is converted, and there are two copies meanwhile
            fresh += [size for t, size in read.items() if (t in self.tiled) != tiled]
        footprint = Footprint(
            alive=self.bytes,
            views=len(self.views),
            need=self.bytes + sum(fresh) - over,
            gaps=0.0 if over else len(self.alive) * max(fresh, default=0.0),
            others=max(0.0, self.bytes - sum(size for t, size in read.items() if t in self.alive)),
            read=tuple(sorted(read.values(), reverse=True)),
            made=sum(made.values()),
            weights=self._weights(op, split),
            lane_weights=(here := self._lane_weights(index, op)),
            by_tiles=leaves_by_tiles(here / self.context.tiling.weight_bytes.value),
            lanes=len(split.sharding.lanes()),
            divisible=self._divisible(placed),
        )
        self.tiled.update(made if tiled else ())
        self._pass(index, op, made)
        return footprint

    def _order(self, placed: Placed, read: dict[int, float]) -> bool:
        """Whether an op works in the tiled layout: its engine does, or it keeps the layout that an operand has."""
        keeps = self.context.keeps_layout(placed.op) and any(t in self.tiled for t in read)
        return self.context.layout is not None and (keeps or self.context.is_tiled(placed))

    def _pass(self, index: int, op: Op, made: dict[int, float]) -> None:
        """Advance past an op: what it made is alive now, what it read for the last time is not."""
        self.alive.update(made)
        self.views.update(t for t in op.outputs if t in self.root)
        for t in (*op.inputs, *op.outputs):
            if self.last.get(t, index) <= index:
                self.views.discard(t)
        self.bytes += sum(made.values())
        for t in {self.root.get(t, t) for t in (*op.inputs, *op.outputs)}:
            if self.last_reader.get(t, index) <= index:
                self.bytes -= self.alive.pop(t, 0.0)
        if not self.alive:
            self.bytes = 0.0

    def _bytes(self, tensor: int, sharding: Sharding) -> float:
        """Bytes of a tensor on the lane that has most of it."""
        return self.context.tensor_bytes(tensor) * max(sharding.shares.values(), default=0.0)

    def _read_bytes(self, tensor: int, position: int, split: Split) -> float:
        """Bytes of what an op reads: as it was made or exchanged, or its part of a graph input."""
        is_input = tensor != ABSENT and self.graph.tensors[tensor].role is Role.INPUT
        if tensor not in self.alive and not is_input:
            return 0.0
        needed = self._bytes(tensor, split.needs[position]) if split.needs else 0.0
        return max(self.alive.get(tensor, 0.0), needed)

    def _written_over(self, op: Op, index: int, read: dict[int, float], made: dict[int, float]) -> float:
        """Bytes of a result that takes the place of an operand."""
        if op.family is not Family.ELEMENTWISE or len(made) != 1:
            return 0.0
        size = next(iter(made.values()))
        dying = any(t in self.alive and self.last[t] == index and read[t] == size for t in read)
        return size if dying else 0.0

    def _weights(self, op: Op, split: Split) -> float:
        """Bytes of weights that all devices together read for an op; none where they stay in local memory."""
        if self.plan.resident or not has_weights(op, self.graph):
            return 0.0
        cuts, cores = weight_cuts(op, self.graph, split.sharding), self.plan.machine.cores
        read = {(lane // cores, cuts.boxes.get(lane)): cuts.share(lane) for lane in cuts.lanes()}
        return self.context.tensor_bytes(op.inputs[1]) * sum(read.values())

    def _lane_weights(self, index: int, op: Op) -> float:
        """Bytes of an op's weights, as they are used, on the lane that has most of them."""
        if not has_weights(op, self.graph):
            return 0.0
        return self.context.unpacked_weights(index) * self.context.weight_sharding(index).largest

    def _divisible(self, placed: Placed) -> int:
        """The number that every possible number of tiles divides: the units of the batch; 1 where it is not cut."""
        op = placed.op
        batched = all(t in self.axes for t in op.outputs)
        is_run = placed.engine or op.family is Family.VIEW or op.kind == "exchange"
        return self.units if batched and is_run and not op.scope and op.trips == 1 else 1
