"""Tensors that lanes hold in parts and need whole: multicast inside a device, links between devices."""

from __future__ import annotations

from collections.abc import Iterable

from .tensors import ROWS, Held, Piece, Tensors
from .workbench import VECTOR_GROUP, Workbench


def exchange(bench: Workbench, tensors: Tensors, index: int) -> None:
    """Hand around what an op's split says must be whole."""
    for t in bench.plan.splits[index].gathers:
        _gather(bench, tensors, index, tensors.root(t))


def _gather(bench: Workbench, tensors: Tensors, index: int, tensor: int) -> None:
    sources = list(tensors.lanes_holding(tensor))
    if not sources:
        return
    tiled = any(tiled for _, tiled, _ in sources)
    sources = [source for source in sources if source[1] is tiled]
    lanes = bench.lanes(bench.plan.splits[index])
    whole = bench.tensor_bytes(tensor)
    places = {lane: tensors.place(whole, lane, keep={tensor}) for lane in lanes}
    guards = [command for place in places.values() if place is not None for command in place[1]]
    arrivals = []
    for step, (lane, _, held) in enumerate(sources):
        for carries in _ways(bench, lane, lanes):
            order = bench.transfer(
                carries, lane, index, held.size, form="send" if carries == "link" else "multicast", group=VECTOR_GROUP,
                tensor=tensor, step=step,
            )  # fmt: skip
            command = bench.emitter.emit(order, [piece.command for piece in held.pieces], guards)
            held.touched[VECTOR_GROUP] = command
            arrivals.append(Piece(0.0, 1.0, command))
    tensors.drop(tensor)
    for lane in lanes:
        place = places[lane]
        held = Held(list(arrivals), whole, along=ROWS, address=place[0] if place else None)
        held.touched = {-1 - i: piece.command for i, piece in enumerate(arrivals)}
        tensors.store(tensor, lane, held, tiled=tiled)


def _ways(bench: Workbench, lane: int, lanes: Iterable[int]) -> list[str]:
    """How a lane's part reaches the others."""
    cores = bench.plan.machine.cores
    devices = {other // cores for other in lanes}
    ways = ["multicast"] if lane // cores in devices and cores > 1 else []
    return ways + (["link"] if devices - {lane // cores} and "link" in bench.routes else [])
