"""Tensors that lanes hold in parts and need whole: multicast inside a device, links between devices.

Where the whole does not fit every lane, or a part was moved out, they meet in outer memory instead.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...core.meaning import Carries, Does
from .context import VECTOR_GROUP, Workbench
from .emit import Order
from .tensors import ROWS, Held, Outside, Piece, Tensors

Places = dict[int, tuple[int, tuple[int, ...]]]  # lane → address, commands to wait for


def exchange(bench: Workbench, tensors: Tensors, index: int) -> None:
    """Hand around what an op's split says must be whole."""
    for t in bench.plan.splits[index].gathers:
        _Gather(bench, tensors, index, tensors.root(t)).run()


class _Gather:
    """One tensor, from the lanes that hold parts of it to all lanes of an op."""

    def __init__(self, bench: Workbench, tensors: Tensors, index: int, tensor: int) -> None:
        self.bench, self.tensors, self.index, self.tensor = bench, tensors, index, tensor
        self.lanes = bench.all_lanes(bench.plan.splits[index])
        self.cores = bench.plan.machine.cores
        self.devices = sorted({lane // self.cores for lane in self.lanes})
        self.whole = bench.tensor_bytes(tensor)

    def run(self) -> None:
        parts = list(self.tensors.holders(self.tensor))
        outside = self.tensors.lanes_outside(self.tensor)
        everything = next((lane for lane in outside if self._is_whole(self.tensors.outside(self.tensor, lane))), None)
        if everything is not None:
            self._meet_outside([everything])
            return
        entire = [part for part in parts if self._is_whole(part[2])]
        if entire:  # one lane that has all of it is enough
            parts, outside = entire[:1], []
        same_order = len({tiled for _, tiled, _ in parts}) == 1
        places = self._places() if same_order and not set(outside) - {lane for lane, *_ in parts} else None
        if places is not None:
            self._hand_around(places, [(lane, held) for lane, _, held in parts], tiled=parts[0][1])
        elif parts or outside:
            self._meet_outside(sorted({*(lane for lane, *_ in parts), *outside}))

    def _is_whole(self, state: Held | Outside | None) -> bool:
        return state is not None and self.tensors.is_whole(self.tensor, state.size)

    def _places(self) -> Places | None:
        """A place for all of the tensor on every lane, or none at all."""
        found: Places = {}
        for lane in self.lanes:
            place = self.tensors.place(self.whole, lane, keep={self.tensor}) if self.whole else (0, ())
            if place is None:
                for other, (address, guards) in found.items():
                    self.tensors.memory[other].release(address, guards)
                return None
            found[lane] = place
        return found

    # ---- through local memories -----------------------------------------------------------------------------------

    def _hand_around(self, places: Places, sources: list[tuple[int, Held]], *, tiled: bool) -> None:
        meeting = self._meet([command for _, guards in places.values() for command in guards], len(sources))
        inside: dict[int, list[int]] = {}
        across: dict[int, list[int]] = {}
        emit = self.bench.emitter.emit
        for step, (lane, held) in enumerate(sources):
            device, made = lane // self.cores, [piece.command for piece in held.pieces]
            for carries in self._ways(lane) if held.size else ():
                command = emit(self._order(carries, lane, step, held.size), made, meeting)
                self.tensors.touch(held, command)
                (across if carries is Carries.LINK else inside).setdefault(device, []).append(command)
            if self.cores == 1 or not held.size:
                inside.setdefault(device, []).extend(made)
        received = self._receive(across)
        self.tensors.drop(self.tensor)
        for lane, (address, _) in places.items():
            device = lane // self.cores
            commands = [*inside.get(device, ()), *received.get(device, ())]
            pieces = [Piece(0.0, 1.0, command) for command in commands]
            held = Held(pieces, self.whole, along=ROWS, address=address if self.whole else None)
            self.tensors.store(self.tensor, lane, held, tiled=tiled)

    def _meet(self, guards: Iterable[int], senders: int) -> list[int]:
        """One command after which every destination is free, instead of every sender waiting for every lane."""
        latest = self.bench.emitter.latest(guards)
        return latest if len(latest) <= senders else [self._mark(self.lanes[0], latest)]

    def _mark(self, lane: int, after: Iterable[int]) -> int:
        bench = self.bench
        detail = bench.move_detail(self.index, 0, bench.local_name, self.tensor)
        order = Order(lane, VECTOR_GROUP, bench.command_name("receive"), Does.SYNC, self.index, detail, 1.0)
        return bench.emitter.emit(order, after)

    def _order(self, carries: Carries, lane: int, step: int, size: float) -> Order:
        form = "send" if carries is Carries.LINK else "multicast"
        return self.bench.transfer(
            carries, lane, self.index, size, form=form, group=VECTOR_GROUP, tensor=self.tensor, step=step
        )

    def _receive(self, across: dict[int, list[int]]) -> dict[int, list[int]]:
        """On each device one command that is done when all parts from other devices have come."""
        received: dict[int, list[int]] = {}
        for device in self.devices:
            coming = [command for source, commands in across.items() if source != device for command in commands]
            if coming:
                received[device] = [self._mark(device * self.cores, coming)]
        return received

    def _ways(self, lane: int) -> list[Carries]:
        """How a lane's part reaches the others."""
        device = lane // self.cores
        ways = [Carries.MULTICAST] if device in self.devices and self.cores > 1 else []
        return ways + ([Carries.LINK] if set(self.devices) - {device} else [])

    # ---- through outer memory -------------------------------------------------------------------------------------

    def _meet_outside(self, sources: list[int]) -> None:
        """Every part is written to the outer memory of its device and linked to the others; lanes read it there."""
        inside: dict[int, list[int]] = {}
        across: dict[int, list[int]] = {}
        tiled = False
        for step, lane in enumerate(sources):
            self.tensors.move_out(self.tensor, lane)
            part = self.tensors.outside(self.tensor, lane)
            if part is None:
                continue
            device, tiled = lane // self.cores, part.tiled
            inside.setdefault(device, []).extend(part.writes)
            if set(self.devices) - {device}:
                order = self._order(Carries.LINK, lane, step, part.size)
                across.setdefault(device, []).append(self.bench.emitter.emit(order, part.writes))
        received = self._receive(across)
        self.tensors.drop(self.tensor)
        for lane in self.lanes:
            device = lane // self.cores
            writes = [*inside.get(device, ()), *received.get(device, ())]
            self.tensors.put_outside(self.tensor, lane, Outside(tiled, self.whole, writes))
