"""Tensors that lanes hold in parts and need whole: multicast inside a device, links between devices."""

from __future__ import annotations

from collections.abc import Iterable

from .emit import Order
from .tensors import ROWS, Held, Piece, Tensors
from .workbench import VECTOR_GROUP, Workbench


def exchange(bench: Workbench, tensors: Tensors, index: int) -> None:
    """Hand around what an op's split says must be whole."""
    for t in bench.plan.splits[index].gathers:
        _Gather(bench, tensors, index, tensors.root(t)).run()


class _Gather:
    """One tensor, from the lanes that hold parts of it to all lanes of an op."""

    def __init__(self, bench: Workbench, tensors: Tensors, index: int, tensor: int) -> None:
        self.bench, self.tensors, self.index, self.tensor = bench, tensors, index, tensor
        self.lanes = bench.lanes(bench.plan.splits[index])
        self.cores = bench.plan.machine.cores
        holders = list(tensors.lanes_holding(tensor))
        self.tiled = any(tiled for _, tiled, _ in holders)
        self.sources = [(lane, held) for lane, tiled, held in holders if tiled is self.tiled]

    def run(self) -> None:
        if not self.sources:
            return
        whole = self.bench.tensor_bytes(self.tensor)
        places = {lane: self.tensors.place(whole, lane, keep={self.tensor}) for lane in self.lanes}
        meeting = self._meet([command for place in places.values() if place is not None for command in place[1]])
        inside, across = self._send(meeting)
        received = self._receive(across)
        self.tensors.drop(self.tensor)
        for lane in self.lanes:
            device, place = lane // self.cores, places[lane]
            commands = [*inside.get(device, ()), *received.get(device, ())]
            pieces = [Piece(0.0, 1.0, command) for command in commands]
            held = Held(pieces, whole, along=ROWS, address=place[0] if place else None)
            self.tensors.store(self.tensor, lane, held, tiled=self.tiled)

    def _meet(self, guards: Iterable[int]) -> list[int]:
        """One command after which every destination is free, instead of every sender waiting for every lane."""
        latest = self.bench.emitter.latest(guards)
        if len(latest) <= len(self.sources):
            return latest
        return [self._mark(self.lanes[0], latest)]

    def _mark(self, lane: int, after: Iterable[int]) -> int:
        bench = self.bench
        detail = bench.move_detail(self.index, 0, bench.local_name, self.tensor)
        order = Order(lane, VECTOR_GROUP, bench.command_name("receive"), self.index, detail, 1.0)
        return bench.emitter.emit(order, after)

    def _send(self, meeting: list[int]) -> tuple[dict[int, list[int]], list[tuple[int, int]]]:
        """Multicasts by device, and sends to other devices as (device, command)."""
        inside: dict[int, list[int]] = {}
        across: list[tuple[int, int]] = []
        for step, (lane, held) in enumerate(self.sources):
            made = [piece.command for piece in held.pieces]
            for carries in self._ways(lane):
                form = "send" if carries == "link" else "multicast"
                order = self.bench.transfer(carries, lane, self.index, held.size, form=form, group=VECTOR_GROUP,
                                            tensor=self.tensor, step=step)  # fmt: skip
                command = self.bench.emitter.emit(order, made, meeting)
                held.touched[VECTOR_GROUP] = command
                if carries == "link":
                    across.append((lane // self.cores, command))
                else:
                    inside.setdefault(lane // self.cores, []).append(command)
            if self.cores == 1:
                inside.setdefault(lane, []).extend(made)
        return inside, across

    def _receive(self, across: list[tuple[int, int]]) -> dict[int, list[int]]:
        """On each device one command that is done when all parts from other devices have come."""
        devices = sorted({lane // self.cores for lane in self.lanes})
        received: dict[int, list[int]] = {}
        for device in devices:
            coming = [command for source, command in across if source != device]
            if coming:
                received[device] = [self._mark(device * self.cores, coming)]
        return received

    def _ways(self, lane: int) -> list[str]:
        """How a lane's part reaches the others."""
        devices = {other // self.cores for other in self.lanes}
        ways = ["multicast"] if lane // self.cores in devices and self.cores > 1 else []
        return ways + (["link"] if devices - {lane // self.cores} and "link" in self.bench.routes else [])
