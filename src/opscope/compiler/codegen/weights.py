"""Weight streaming: weights are read from outer memory tile by tile, into a ring of slots in local memory.

With n slots, tile k goes to slot k mod n, and is read as soon as the commands that used tile k - n are done. So while
an engine computes with one tile, the next n - 1 are on their way (double buffering for n = 2). With 3 slots:

    read       t0 t1 t2       t3 (after c0)  t4 (after c1)
    compute          c0 (t0)  c1 (t1)        c2 (t2)  …

An op that runs in slices of rows would read its weights once for every slice. Where local memory has room it gets a
ring of its own, large enough for all its weights or for a panel of them, and they stay there for all slices.

Where several cores of a device need the same tile, one of them reads it and multicasts it to the others; the reader
changes with every tile, so that all DMA queues share the work.

Weights in blocks are unpacked in the slot that they are read into. Those that stay in local memory stay packed, and
are unpacked into a slot, tile by tile, in every inference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import NamedTuple

from ...core.meaning import Carries, Does
from ...estimate.work import DEQUANTIZE
from ..passes.residency import constants_per_core, has_packed_weights, kept_bytes
from ..plan import Placed, channel_axis
from .context import VECTOR_GROUP, LoweringContext
from .emit import CommandSpec, share
from .timing import VectorCost


@dataclass(slots=True)
class Ring:
    """Slots for weight tiles in the local memory of every lane that has them."""

    slots: int
    slot_bytes: int
    address: dict[int, int]  # lane → of its first slot
    guards: dict[int, tuple[int, ...]] = field(default_factory=dict)  # lane → commands that used the memory before
    users: dict[int, list[list[int]]] = field(default_factory=dict)  # lane → tile → commands that computed with it
    together: bool = False  # slots are filled anew when all of them are free

    def before(self, lane: int) -> list[int]:
        """Commands after which the next slot of a lane is free."""
        users = self.users.get(lane, [])
        if self.together and len(users) >= self.slots:
            first = len(users) // self.slots * self.slots
            return [command for tile in users[first - self.slots : first] for command in tile]
        return users[-self.slots] if len(users) >= self.slots else list(self.guards.get(lane, ()))

    def record_use(self, lane: int, tile: int, command: int) -> None:
        """Note that a command computes with a tile, by its number on the lane."""
        self.users[lane][tile].append(command)


class LoadedTile(NamedTuple):
    """A tile in the ring of a lane."""

    number: int  # of all tiles that the ring has held there
    commands: list[int]  # after which it can be used


class StreamedWeights(NamedTuple):
    """What all tiles of an op's weights have in common."""

    tensor: int
    passes: int  # how often they are read
    unpacks: bool
    lanes: list[tuple[list[int], float]]  # lanes of a device that need the same of them, together; and bytes of that


class WeightStream:
    """The ring of weight slots of every lane, at the top of its local memory. Unused where weights are resident."""

    def __init__(self, context: LoweringContext) -> None:
        self.context = context
        self.slot_bytes = round(context.tiling.weight_bytes.value)
        self.slots = context.plan.slots or round(context.tiling.buffers.value)
        self.resident = context.plan.resident
        first = context.capacity - self.slots * self.slot_bytes
        self._streamed: dict[int, StreamedWeights] = {}  # by op
        self.ring = Ring(self.slots, self.slot_bytes, dict.fromkeys(range(context.lane_count), first))

    @property
    def reserved_bytes(self) -> int:
        """Bytes of local memory that constants take on every lane: those that stay, and the ring."""
        return self.staying_bytes + (self.slots * self.slot_bytes if self._has_ring else 0)

    @property
    def _has_ring(self) -> bool:
        """Whether weights pass through the ring: some do not stay, or have to be unpacked."""
        return not self.resident or has_packed_weights(self.context.graph)

    @property
    def staying_bytes(self) -> int:
        """Bytes of constants that lie in the local memory of every lane from inference to inference."""
        context = self.context
        if self.resident:
            return round(constants_per_core(context.plan))
        small = context.resident_constants - context.plan.kept
        kept = kept_bytes(context.plan, context.plan.kept)
        return sum(context.graph.tensors[t].bytes or 0 for t in small) + round(kept)

    def stays(self, index: int) -> bool:
        """Whether the weights of an op are in local memory before it runs."""
        return self.context.plan.placed[index].op.inputs[1] in self.context.resident_constants

    def are_at_hand(self, index: int) -> bool:
        """Whether the weights of an op are in local memory as its engine takes them."""
        return self.stays(index) and self.context.dequantizing(index) is None

    def tiles(self, index: int, lane: int) -> int:
        """Number of tiles that the weights of an op are read or unpacked in on a lane."""
        placed, unpacks = self.context.plan.placed[index], self.context.dequantizing(index) is not None
        size = self.context.unpacked_weights(index)
        if unpacks and not self.stays(index):  # a slot holds a tile as it is read and as it is used
            size += self.context.tensor_bytes(placed.op.inputs[1])
        return max(self.units(placed), ceil(size * self.context.weight_share(index, lane) / self.slot_bytes))

    def units(self, placed: Placed) -> int:
        """Units of the engine that take tiles in turn; 1 where the op has fewer channels than units."""
        units = self.context.engines[placed.engine].units_for(placed.task.family)
        shape = self.context.out_shape(placed.op) or ()
        axis = channel_axis(placed.op, self.context.graph)
        return units if 0 <= axis < len(shape) and shape[axis] >= units else 1

    def load_tile(self, ring: Ring, index: int, step: int, counts: dict[int, int]) -> dict[int, LoadedTile]:
        """Load tile `step` on every lane that has so many tiles. Returns lane → the tile."""
        found: dict[int, LoadedTile] = {}
        if self.are_at_hand(index):
            return found
        streamed, stays = self._streamed_weights(index), self.stays(index)
        for lanes, needed in streamed.lanes:
            active = [lane for lane in lanes if step < counts.get(lane, 0)]
            if not active:
                continue
            own = share(needed, step, counts[active[0]])
            if stays:
                arrivals = {lane: list[int]() for lane in active}
            elif len(active) == 1:
                arrivals = {active[0]: [self._read(ring, index, step, own, active)]}
            else:
                arrivals = self._read_and_multicast(ring, index, active, step, own)
            for lane in active:
                ready = arrivals[lane]
                if streamed.unpacks:  # what stays is unpacked once nobody uses what was in the slot
                    free = ring.before(lane) if stays else ()
                    ready = self._dequantize(index, lane, step, counts[lane], ready, guards=free)
                users = ring.users.setdefault(lane, [])
                found[lane] = LoadedTile(len(users), ready)
                users.append([])
        return found

    def _dequantize(
        self, index: int, lane: int, step: int, steps: int, arrived: Sequence[int], *, guards: Sequence[int]
    ) -> list[int]:
        """Convert a tile that is stored in blocks. Returns the commands after which it can be used."""
        context = self.context
        tensor = context.plan.placed[index].op.inputs[1]
        form = DEQUANTIZE[context.graph.tensors[tensor].dtype]
        cost = VectorCost(form, self.loaded_bytes(index, lane, steps))
        spec = CommandSpec(
            lane,
            VECTOR_GROUP,
            context.command_name(form),
            Does.LAYOUT,
            index,
            context.move_detail(index, step, context.local_name, tensor),
            context.vector_cycles(cost),
            cost.size,
        )
        done = context.emitter.emit(spec, arrived, guards)
        context.vector_costs[done] = cost
        return [done]

    def _streamed_weights(self, index: int) -> StreamedWeights:
        if index not in self._streamed:
            context = self.context
            tensor, passes = context.plan.placed[index].op.inputs[1], context.passes(index)
            sharding, cores, size = (
                context.weight_sharding(index),
                context.plan.machine.cores,
                context.tensor_bytes(tensor),
            )
            found: dict[object, list[int]] = {}
            for lane in sharding.lanes():
                found.setdefault((lane // cores, sharding.boxes.get(lane)), []).append(lane)
            lanes = [(lanes, size * sharding.share(lanes[0]) * passes) for lanes in found.values()]
            self._streamed[index] = StreamedWeights(tensor, passes, context.dequantizing(index) is not None, lanes)
        return self._streamed[index]

    def _read_and_multicast(
        self, ring: Ring, index: int, lanes: list[int], step: int, size: float
    ) -> dict[int, list[int]]:
        """Let one lane read a tile and send it to the others."""
        context = self.context
        reader = lanes[step % len(lanes)]
        read = self._read(ring, index, step, size, [reader, *(lane for lane in lanes if lane != reader)])
        tensor = self._streamed_weights(index).tensor
        multicast = context.emitter.emit(
            context.transfer(Carries.MULTICAST, reader, index, size, step=step, tensor=tensor), [read]
        )
        return {lane: [read] if lane == reader else [multicast] for lane in lanes}

    def _read(self, ring: Ring, index: int, step: int, size: float, destinations: list[int]) -> int:
        """Read a tile on the first lane into its next slot, once no destination uses what was in it."""
        context, lane, streamed = self.context, destinations[0], self._streamed_weights(index)
        guards = [command for destination in destinations for command in ring.before(destination)]
        slot = len(ring.users.get(lane, ())) % ring.slots
        spec = context.transfer(
            Carries.READ,
            lane,
            index,
            size,
            step=step,
            tensor=streamed.tensor,
            address=ring.address[lane] + slot * ring.slot_bytes,
            local_bytes=size / streamed.passes,
        )
        return context.emitter.emit(spec, (), guards)

    def state_bytes(self, index: int, lane: int, tiles: int) -> float:
        """Bytes of weights that meet a state, which enter the engine in every step of a recurrent op; of one tile."""
        work = self.context.plan.placed[index].task.work
        return work.steps * work.state_weight_bytes * self.context.weight_share(index, lane) / tiles

    def loaded_bytes(self, index: int, lane: int, steps: int) -> float:
        """Bytes of one of `steps` weight tiles, all of which must enter the engine."""
        return self.context.unpacked_weights(index) * self.context.weight_share(index, lane) / steps


_AHEAD = 2  # tiles: while one is used, the next is on its way and the one after it is asked for


class TileLoads:
    """The loads of an op's weight tiles, in the order in which tiles run; some are emitted ahead of their turn.

    A core issues its transfers in order. Where results leave tile by tile, the write of a result waits until it is
    computed, and loads that are issued behind it would start only then. So the loads of the next tiles come before it:

        load t0   load t1   load t2   write r0   load t3   write r1   load t4   …
    """

    def __init__(self, stream: WeightStream, ring: Ring, index: int) -> None:
        self.stream, self.ring, self.index = stream, ring, index
        # Slots that are filled together are free together: a tile of the next filling cannot come ahead.
        self.ahead = 0 if ring.together else min(_AHEAD, ring.slots - 1)
        self.turns: list[tuple[int, dict[int, int]]] = []
        self.loaded: list[dict[int, LoadedTile]] = []

    def follow(self, turns: list[tuple[int, dict[int, int]]]) -> None:
        """Begin anew, with the tiles that are loaded from now on: number of the tile, and lanes with their tiles."""
        self.turns, self.loaded = turns, []

    def emit(self, turn: int) -> None:
        """Emit the loads up to a turn, as far as they have not been."""
        for step, lanes in self.turns[len(self.loaded) : turn + 1]:
            self.loaded.append(self.stream.load_tile(self.ring, self.index, step, lanes))

    def emit_ahead(self, turn: int) -> None:
        self.emit(turn + self.ahead)

    def tile(self, turn: int, lane: int) -> LoadedTile | None:
        """The tile of a turn on a lane; None where nothing was loaded for it."""
        return self.loaded[turn].get(lane) if turn < len(self.loaded) else None
