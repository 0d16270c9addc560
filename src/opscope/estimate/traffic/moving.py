"""Bytes that an op moves → cycles: of every memory, of cores that share one, and of the decoder of weights."""

from __future__ import annotations

from dataclasses import replace
from math import ceil, prod
from typing import TYPE_CHECKING

from ...core.units import Cycles
from ...machine.target import Figure, Holds, Memory, Target
from ..cost import DECODE, TRANSFER, Part, Resource

if TYPE_CHECKING:
    from ..price import Machine, Task


def moving_parts(task: Task, machine: Machine) -> list[Part]:
    """Return what moving the operands of an op takes. It overlaps the work of its engine, but for what has to be there
    before the network begins, and what leaves when it is done.
    """
    inside, *ends = _with_ends_apart(task, machine.target)
    parts = [*_decoding(task, machine), *_moves(inside, machine)]
    return parts + [replace(part, overlaps=False) for end in ends for part in _moves(end, machine)]


def _with_ends_apart(task: Task, target: Target) -> list[Task]:
    """Return an op without what moves at the ends of the network; then that of each end that it is at."""
    entering, leaving = task.entering_bytes, task.leaving_bytes
    if not entering and not leaving:
        return [task]
    home = target.home(Holds.ACTIVATIONS).name
    moved = max(0, task.traffic.get(home, 0) - entering - leaving)
    written = max(0, task.written.get(home, 0) - leaving)
    return [
        replace(task, traffic={**task.traffic, home: moved}, written={**task.written, home: written}),
        replace(task, traffic={home: entering}, written={}, coded={}),
        replace(task, traffic={home: leaving}, written={home: leaving}, coded={}),
    ]


def _moves(task: Task, machine: Machine) -> list[Part]:
    """Return what the traffic of an op takes in every memory."""
    parts = []
    for memory in machine.target.memories:
        parts += _transfers(task, memory, machine)
        parts += _core_transfers(task, memory, machine)
    return parts


def _transfers(task: Task, memory: Memory, machine: Machine) -> list[Part]:
    """Return what moving the operands of an op through a memory takes: of results and of compressed weights apart."""
    (plain, _), *others = streams(task, memory, machine.target)
    written = task.written.get(memory.name, 0) if memory.write_efficiency is not None else 0
    parts = []
    for size, share in ((plain - written, None), (written, memory.write_efficiency), *others):
        if cycles := memory_cycles(memory, size, machine) / (1.0 if share is None else share.value):
            figures = (memory.bytes_per_cycle, memory.bytes_per_second, memory.efficiency, share)
            parts.append(
                Part(Resource.of_memory(memory), Cycles(cycles), figures=tuple(f for f in figures if f is not None))
            )
    return parts


def streams(task: Task, memory: Memory, target: Target) -> list[tuple[float, Figure | None]]:
    """Return the bytes that pass a memory as they are, and those of compressed weights, decoded, with their ratio."""
    coded, compression = task.coded.get(memory.name, 0), target.compression
    plain: list[tuple[float, Figure | None]] = [(task.traffic.get(memory.name, 0) - coded, None)]
    return plain if compression is None or not coded else [*plain, (coded * task.ratio, compression.ratio)]


def memory_cycles(memory: Memory, size_bytes: float, machine: Machine) -> float:
    """Return the core cycles to move bytes through all instances of a memory; 0 without a published bandwidth."""
    efficiency = memory.reached
    instances = machine.target.instances(memory, devices=machine.devices, cores=machine.cores)
    if memory.bytes_per_cycle is not None:
        return size_bytes / (memory.bytes_per_cycle.value * efficiency * instances)
    if memory.bytes_per_second is not None:
        return size_bytes / (memory.bytes_per_second.value * efficiency * instances) * machine.clock_hz
    return 0.0


def _core_transfers(task: Task, memory: Memory, machine: Machine) -> list[Part]:
    """Return what cores take to move the bytes of an op through an outer memory, each at the rate that it has at the
    most. With routes, it has a queue to read and one to write, and the memory is taken for as long as the longer one.
    """
    rate, moved = memory.core_bytes_per_second, task.traffic.get(memory.name, 0)
    if rate is None or not moved or not memory.is_outer:
        return []
    written = task.written.get(memory.name, 0)
    queued = any(machine.target.memory_of(route) == memory.name for route in machine.target.routes)
    size = max(moved - written, written) if queued else moved
    cycles = size / rate.value * machine.clock_hz * uneven_tiles(task, machine, machine.lanes) / machine.lanes
    if not queued:
        return [Part(TRANSFER, Cycles(cycles), figures=(rate,))]
    more = cycles - memory_cycles(memory, moved, machine)
    return [Part(Resource.of_memory(memory), Cycles(more), figures=(rate,))] if more > 0 else []


def uneven_tiles(task: Task, machine: Machine, units: int) -> float:
    """Return what the busiest unit does over what each would if all had as much: tiles are not cut.

    40 tiles on 64 units are one for each of 40 of them, 1.6 times a 64th of all.
    """
    tile = prod(machine.target.runtime.tile)
    if not machine.target.runtime.tile or not task.work.write_bytes:
        return 1.0
    tiles = max(1, ceil(task.work.write_bytes / task.placement.dtype.size_bytes(tile)))
    return ceil(tiles / units) * units / tiles


def _decoding(task: Task, machine: Machine) -> list[Part]:
    """Return what decoding compressed weights takes: beside the work of the engine that they enter."""
    compression = machine.target.compression
    rate = None if compression is None else compression.decoded_bytes_per_cycle
    if rate is None or not task.coded or not task.work.constant_bytes:
        return []
    return [Part(DECODE, Cycles(task.work.constant_bytes / rate.value / machine.lanes), figures=(rate,))]
