"""Shared reads: a graph input or a constant that several cores of a device need alike is read once and multicast.

Weights of products have a ring of their own (`weights.py`), and do the same tile by tile.
"""

from __future__ import annotations

from math import ceil

from ...core.meaning import Carries
from .context import LoweringContext
from .emit import share
from .tensors import LocalCopy, Piece, Tensors
from .timing import issue_cycles

Places = dict[int, tuple[int, tuple[int, ...]]]  # lane → address, commands to wait for


def read_together(tensors: Tensors, index: int, position: int) -> None:
    """Bring an input of an op to all lanes that need the same of it; where they have no room, each reads its own."""
    context, cores = tensors.context, tensors.context.plan.machine.cores
    need, root = context.plan.splits[index].needs[position], tensors.root(context.graph.ops[index].inputs[position])
    together: dict[object, list[int]] = {}
    for lane, box in need.boxes.items():
        tensors.discard_other_parts(index, position, lane)
        if all(tensors.get(root, lane, tiled=tiled) is None for tiled in (True, False)):
            together.setdefault((lane // cores, box), []).append(lane)
    for lanes in together.values():
        size, _ = tensors.bytes_to_read(index, position, lanes[0])
        places = [tensors.memory[lane].allocate(size) for lane in lanes] if len(lanes) > 1 and size else []
        found = [place for place in places if place is not None]
        if len(found) == len(lanes):
            _read_and_send(tensors, index, position, dict(zip(lanes, found, strict=True)))
            continue
        for lane, place in zip(lanes, places, strict=False):
            if place is not None:
                tensors.memory[lane].release(*place)


def _read_and_send(tensors: Tensors, index: int, position: int, places: Places) -> None:
    """Let lanes read an input piece by piece, in turn, each sending its pieces to the others."""
    context, lanes = tensors.context, list(places)
    tensor = context.graph.ops[index].inputs[position]
    size, part = tensors.bytes_to_read(index, position, lanes[0])
    root, count = tensors.root(tensor), max(context.piece_count(size), _queues(context, size, len(lanes)))
    copies = {lane: LocalCopy([], size, address=place[0], part=part) for lane, place in places.items()}
    free = context.emitter.latest(command for _, guards in places.values() for command in guards)
    for step in range(count):
        reader = lanes[step % len(lanes)]
        own, where = share(size, step, count), copies[reader].tile_address(step, count)
        spec = context.transfer(
            Carries.READ, reader, index, own, tensor=tensor, step=step, address=where, local_bytes=own
        )
        read = context.emitter.emit(spec, tensors.outer_writers(root, reader), free)
        sent = context.emitter.emit(
            context.transfer(Carries.MULTICAST, reader, index, own, tensor=tensor, step=step), [read]
        )
        for lane, copy in copies.items():
            copy.pieces.append(Piece(step / count, (step + 1) / count, read if lane == reader else sent))
        for command in (read, sent):  # which reads it where the other has put it
            tensors.record_use(command, copies[reader])
    for lane, copy in copies.items():
        tensors.store(root, lane, copy, tiled=False)


def _queues(context: LoweringContext, size: float, lanes: int) -> int:
    """Queues that read at once: until they reach what memory gives, and a piece takes longer than its issue."""
    route = next(route for route in context.plan.machine.target.routes if route.carries is Carries.READ)
    own, clock = context.plan.machine.target.core_rate(route), context.plan.machine.clock_hz
    if own is None:
        return 1
    least = issue_cycles(route) * own.value / clock  # bytes that pass while the next piece is issued
    return max(1, min(lanes, ceil(route.peak(clock) * route.reached * clock / own.value), int(size / least)))
