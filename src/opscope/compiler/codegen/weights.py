"""Weights on their way to the engines: tiles read into a ring of slots, once per device, and multicast to the cores."""

from __future__ import annotations

from math import ceil

from ...core.meaning import Carries
from ..passes.residency import constants_per_core
from ..plan import Placed, Split, channel_axis
from .context import Workbench
from .emit import share


class WeightStream:
    """The ring of weight tiles of every lane. A slot is filled again when the commands that used it are done."""

    def __init__(self, bench: Workbench) -> None:
        self.bench = bench
        self.slot_bytes = round(bench.tiling.weight_bytes.value)
        self.slots = round(bench.tiling.buffers.value)
        self.resident = bench.plan.resident
        self._users: list[list[list[int]]] = [[] for _ in range(bench.lane_count)]  # lane → tile → commands

    @property
    def reserved(self) -> int:
        """Local memory that constants take on every lane: those that stay, and the ring."""
        bench = self.bench
        if self.resident:
            return round(constants_per_core(bench.plan))
        return sum(bench.graph.tensors[t].bytes or 0 for t in bench.settled) + self.slots * self.slot_bytes

    def tiles(self, placed: Placed, split: Split, lane: int) -> int:
        """Pieces that the weights of an op come in on a lane."""
        part = self.bench.portion(split, lane) if self.bench.cuts_channels(placed.op, split) else 1.0
        return max(self._units(placed), ceil(self.bench.tensor_bytes(placed.op.inputs[1]) * part / self.slot_bytes))

    def _units(self, placed: Placed) -> int:
        """Units of the engine, which take tiles in turn; 1 where the op makes fewer channels."""
        units, shape = self.bench.engines[placed.engine].units, self.bench.out_shape(placed.op) or ()
        axis = channel_axis(placed.op, self.bench.graph)
        return units if 0 <= axis < len(shape) and shape[axis] >= units else 1

    def bring(self, index: int, step: int, counts: dict[int, int]) -> dict[int, list[int]]:
        """Commands that bring tile `step` to each lane that has so many: read once and multicast, or each its own."""
        arrivals: dict[int, list[int]] = {}
        if self.resident:
            return arrivals
        bench = self.bench
        placed, split = bench.plan.placed[index], bench.plan.splits[index]
        size = bench.tensor_bytes(placed.op.inputs[1])
        own = bench.cuts_channels(placed.op, split)
        for lanes in bench.lanes_by_device(split):
            active = [lane for lane in lanes if step < counts.get(lane, 0)]
            if own or len(active) == 1:
                for lane in active:
                    part = bench.portion(split, lane) if own else 1.0
                    arrivals[lane] = [self._read(index, lane, step, share(size * part, step, counts[lane]), [lane])]
            elif active:
                arrivals.update(self._share(index, active, step, share(size, step, counts[active[0]])))
            for lane in active:
                self._users[lane].append([])
        return arrivals

    def _share(self, index: int, lanes: list[int], step: int, size: float) -> dict[int, list[int]]:
        bench = self.bench
        reader = lanes[step % len(lanes)]
        read = self._read(index, reader, step, size, lanes)
        tensor = bench.plan.placed[index].op.inputs[1]
        multicast = bench.emitter.emit(
            bench.transfer(Carries.MULTICAST, reader, index, size, step=step, tensor=tensor), [read]
        )
        return {lane: [read] if lane == reader else [multicast] for lane in lanes}

    def _read(self, index: int, lane: int, step: int, size: float, destinations: list[int]) -> int:
        """Read a tile into a slot that every destination has stopped using."""
        bench = self.bench
        guards = [c for d in destinations if len(self._users[d]) >= self.slots for c in self._users[d][-self.slots]]
        slot = len(self._users[lane]) % self.slots
        order = bench.transfer(
            Carries.READ,
            lane,
            index,
            size,
            step=step,
            tensor=bench.plan.placed[index].op.inputs[1],
            address=bench.capacity - (self.slots - slot) * self.slot_bytes,
            local_bytes=size,
        )
        return bench.emitter.emit(order, (), guards)

    def loaded_bytes(self, index: int, lane: int, steps: int) -> float:
        """Bytes of one of so many weight tiles that must enter the engine."""
        bench = self.bench
        placed, split = bench.plan.placed[index], bench.plan.splits[index]
        part = bench.portion(split, lane) if bench.cuts_channels(placed.op, split) else 1.0
        return bench.tensor_bytes(placed.op.inputs[1]) * part / steps

    def used(self, lane: int, command: int) -> None:
        """A command computes from the tile that was brought last."""
        if not self.resident:
            self._users[lane][-1].append(command)
