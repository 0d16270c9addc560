"""Weight streaming: weights are read from outer memory tile by tile, into a ring of slots in local memory.

With n slots, tile k goes to slot k mod n, and is read as soon as the commands that used tile k - n are done. So while
an engine computes with one tile, the next n - 1 are on their way (double buffering for n = 2). With 3 slots:

    read       t0 t1 t2       t3 (after c0)  t4 (after c1)
    compute          c0 (t0)  c1 (t1)        c2 (t2)  …

Where all cores of a device need the same tile, one of them reads it and multicasts it to the others; the reader
changes with every tile, so that all DMA queues share the work. Where an op is split by channel, each core reads the
weights of its own channels.
"""

from __future__ import annotations

from math import ceil

from ...core.meaning import Carries
from ..passes.residency import constants_per_core
from ..plan import Placed, Split, channel_axis
from .context import LoweringContext
from .emit import share


class WeightStream:
    """The ring of weight slots of every lane, at the top of its local memory. Unused where weights are resident."""

    def __init__(self, context: LoweringContext) -> None:
        self.context = context
        self.slot_bytes = round(context.tiling.weight_bytes.value)
        self.slots = round(context.tiling.buffers.value)
        self.resident = context.plan.resident
        self._users: list[list[list[int]]] = [
            [] for _ in range(context.lane_count)
        ]  # lane → tile → commands that computed with it

    @property
    def reserved_bytes(self) -> int:
        """Bytes of local memory that constants take on every lane: resident ones, and the ring."""
        context = self.context
        if self.resident:
            return round(constants_per_core(context.plan))
        return (
            sum(context.graph.tensors[t].bytes or 0 for t in context.resident_constants) + self.slots * self.slot_bytes
        )

    def tiles(self, placed: Placed, split: Split, lane: int) -> int:
        """Number of tiles that the weights of an op are read in on a lane."""
        part = self.context.portion(split, lane) if self.context.splits_channels(placed.op, split) else 1.0
        return max(self._units(placed), ceil(self.context.tensor_bytes(placed.op.inputs[1]) * part / self.slot_bytes))

    def _units(self, placed: Placed) -> int:
        """Units of the engine, which take tiles in turn; 1 where the op has fewer channels than units."""
        units, shape = self.context.engines[placed.engine].units, self.context.out_shape(placed.op) or ()
        axis = channel_axis(placed.op, self.context.graph)
        return units if 0 <= axis < len(shape) and shape[axis] >= units else 1

    def load_tile(self, index: int, step: int, counts: dict[int, int]) -> dict[int, list[int]]:
        """Load tile `step` on every lane that has so many tiles. Returns lane → commands after which it is there."""
        arrivals: dict[int, list[int]] = {}
        if self.resident:
            return arrivals
        context = self.context
        placed, split = context.plan.placed[index], context.plan.splits[index]
        size = context.tensor_bytes(placed.op.inputs[1])
        own = context.splits_channels(placed.op, split)
        for lanes in context.lanes_by_device(split):
            active = [lane for lane in lanes if step < counts.get(lane, 0)]
            if own or len(active) == 1:
                for lane in active:
                    part = context.portion(split, lane) if own else 1.0
                    arrivals[lane] = [self._read(index, lane, step, share(size * part, step, counts[lane]), [lane])]
            elif active:
                arrivals.update(self._read_and_multicast(index, active, step, share(size, step, counts[active[0]])))
            for lane in active:
                self._users[lane].append([])
        return arrivals

    def _read_and_multicast(self, index: int, lanes: list[int], step: int, size: float) -> dict[int, list[int]]:
        """Let one lane read a tile and send it to the others."""
        context = self.context
        reader = lanes[step % len(lanes)]
        read = self._read(index, reader, step, size, lanes)
        tensor = context.plan.placed[index].op.inputs[1]
        multicast = context.emitter.emit(
            context.transfer(Carries.MULTICAST, reader, index, size, step=step, tensor=tensor), [read]
        )
        return {lane: [read] if lane == reader else [multicast] for lane in lanes}

    def _read(self, index: int, lane: int, step: int, size: float, destinations: list[int]) -> int:
        """Read a tile into the next slot, after every destination has stopped using what was in it."""
        context = self.context
        guards = [c for d in destinations if len(self._users[d]) >= self.slots for c in self._users[d][-self.slots]]
        slot = len(self._users[lane]) % self.slots
        spec = context.transfer(
            Carries.READ,
            lane,
            index,
            size,
            step=step,
            tensor=context.plan.placed[index].op.inputs[1],
            address=context.capacity - (self.slots - slot) * self.slot_bytes,
            local_bytes=size,
        )
        return context.emitter.emit(spec, (), guards)

    def loaded_bytes(self, index: int, lane: int, steps: int) -> float:
        """Bytes of one of `steps` weight tiles, all of which must enter the engine."""
        context = self.context
        placed, split = context.plan.placed[index], context.plan.splits[index]
        part = context.portion(split, lane) if context.splits_channels(placed.op, split) else 1.0
        return context.tensor_bytes(placed.op.inputs[1]) * part / steps

    def record_use(self, lane: int, command: int) -> None:
        """Note that a command computes with the tile that was loaded last."""
        if not self.resident:
            self._users[lane][-1].append(command)
