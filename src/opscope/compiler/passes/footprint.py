"""Footprint: local memory and weight traffic of every op, were the whole batch run at once.

Batch tiling divides these numbers by a number of tiles to see what fits. Liveness works as in register allocation: a
tensor is alive from the op that makes it to the last op that reads it, and a view shares the bytes of its source.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import gcd

from ...graph.graph import ABSENT, Graph, Op, Role
from ...graph.kinds import Family
from ..codegen.context import LoweringContext
from ..plan import Placed, Plan, Split
from .axes import WHOLE, input_axes
from .place import has_weights


@dataclass(frozen=True, slots=True)
class Footprint:
    """The footprint of one op on the lane with the largest portion; bytes unless said otherwise."""

    alive: float  # of tensors made before, and read by this op or later
    views: int  # number of live tensors that are views of others
    need: float  # of everything that is in local memory while the op runs
    gaps: float  # bytes between them that may be too small for anything: beside each, less than the largest new one
    others: float  # of those, what the op itself does not read
    own: tuple[float, ...]  # of those, the tensors that it reads and writes, the largest first
    weights: float  # bytes of weights that are read for it, by all lanes together
    lanes: int
    divisible: int  # the op can run in as many parts of the batch as divide this


def footprints(plan: Plan, context: LoweringContext) -> Iterator[Footprint]:
    """Yield the footprint of every op in order; the last one is the end of the graph, where nothing is tiled."""
    liveness = _Liveness(plan, context)
    for index, placed in enumerate(plan.placed):
        yield liveness.step(index, placed)
    yield Footprint(
        alive=0.0, views=len(liveness.views), need=0.0, gaps=0.0, others=0.0, own=(), weights=0.0, lanes=1, divisible=1
    )


class _Liveness:
    """Follows tensors from the op that makes them to the last that reads them."""

    def __init__(self, plan: Plan, context: LoweringContext) -> None:
        self.plan, self.graph, self.context = plan, plan.graph, context
        self.gathered = {t for split in plan.splits for t in split.gathers}
        self.root: dict[int, int] = {}  # view → the tensor whose bytes it is
        self.last = self._last_reads()
        self.alive: dict[int, float] = {}  # tensor that was made → bytes on a lane
        self.bytes = 0.0
        self.views: set[int] = set()
        self.tiled: set[int] = set()  # tensors whose elements are in the order of a tiled layout

    def _last_reads(self) -> dict[int, int]:
        last: dict[int, int] = {}
        for index, op in enumerate(self.graph.ops):
            if op.family is Family.VIEW and op.inputs and op.inputs[0] != ABSENT:
                source = self.root.get(op.inputs[0], op.inputs[0])
                self.root.update(dict.fromkeys(op.outputs, source))
            for t in op.inputs:
                last[t] = last[self.root.get(t, t)] = index
        for t in self.graph.outputs:
            last[t] = last[self.root.get(t, t)] = len(self.graph.ops)
        return last

    def step(self, index: int, placed: Placed) -> Footprint:
        """The footprint of the next op. Call once per op, in order: it advances what is alive."""
        op, split = placed.op, self.plan.splits[index]
        made = {t: self._lane_bytes(t, split) for t in op.outputs if t not in self.root}
        read = {root: size for t in op.inputs if (size := self._read_bytes(root := self.root.get(t, t), split))}
        own = tuple(sorted((*read.values(), *made.values()), reverse=True))
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
            own=own,
            weights=self._weights(op, split),
            lanes=len(self.context.all_lanes(split)),
            divisible=self._divisible(placed, split),
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
            if self.last.get(t, index) <= index:
                self.bytes -= self.alive.pop(t, 0.0)
        if not self.alive:
            self.bytes = 0.0

    def _lane_bytes(self, tensor: int, split: Split) -> float:
        """Bytes of what an op makes on the lane with the largest portion."""
        whole = split.axis is None or tensor in self.gathered
        return self.context.tensor_bytes(tensor) * (1.0 if whole else max(self.context.portions(split).values()))

    def _read_bytes(self, tensor: int, split: Split) -> float:
        """Bytes of what an op reads: as it was made, or its portion of a graph input."""
        if tensor in self.alive:
            return self.alive[tensor]
        is_input = tensor != ABSENT and self.graph.tensors[tensor].role is Role.INPUT
        return self._lane_bytes(tensor, split) if is_input else 0.0

    def _written_over(self, op: Op, index: int, read: dict[int, float], made: dict[int, float]) -> float:
        """Bytes of a result that takes the place of an operand."""
        if op.family is not Family.ELEMENTWISE or len(made) != 1:
            return 0.0
        size = next(iter(made.values()))
        dying = any(t in self.alive and self.last[t] == index and read[t] == size for t in read)
        return size if dying else 0.0

    def _weights(self, op: Op, split: Split) -> float:
        if not has_weights(op, self.graph):
            return 0.0
        times = 1 if self.context.splits_channels(op, split) else len(split.devices)
        return self.context.tensor_bytes(op.inputs[1]) * times

    def _divisible(self, placed: Placed, split: Split) -> int:
        """The number that every possible number of tiles divides: the common batch of one lane; 1 where it is not cut.

        Lanes that share the batch of 16 four ways have 4 images each, so the op may run in 1, 2 or 4 tiles.
        """
        op = placed.op
        if op.scope or op.trips != 1 or split.gathers or not (placed.engine or op.family is Family.VIEW):
            return 1
        tensors = _batched(op, self.graph)
        if tensors is None:
            return 1
        lanes = len(self.context.all_lanes(split)) if split.axis == 0 else 1
        found = placed.task.work.macs
        for t in tensors:
            tensor = self.graph.tensors[t]
            extent = tensor.shape[0] if tensor.shape else 1
            even = extent % lanes == 0 and (tensor.bytes or 0) % extent == 0 if extent else False
            found = gcd(found, extent // lanes) if even else 1
        return found


def _batched(op: Op, graph: Graph) -> list[int] | None:
    """Tensors of an op that are cut where the batch is cut; None where an op needs more than a part of one."""
    extents = {(graph.tensors[t].shape or (0,))[0] for t in op.outputs}
    axes = input_axes(op, graph, 0) if len(extents) == 1 and extents != {0} else None
    if axes is None:
        return None
    found = list(op.outputs)
    for t, axis in zip(op.inputs, axes, strict=True):
        if t == ABSENT:
            continue
        constant = graph.tensors[t].role is Role.CONSTANT
        if axis != (WHOLE if constant else 0) or graph.tensors[t].role is Role.VARIABLE:
            return None
        if not constant:
            found.append(t)
    return found
