"""The input columns of the event loop: commands with lanes, queues and channels numbered without gaps."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np
import numpy.typing as npt

from ..core.columns import Floats, Numbers
from ..core.errors import printable
from ..program.check import check_program, fault, source_of
from ..program.program import NO_ROUTE, Commands, Program

MOST_CYCLES = 2.0**53  # beyond it a float no longer counts single cycles


@dataclass(frozen=True, slots=True)
class Tables:
    """The arguments of the event loop, in its order and with its data types."""

    cycles: Floats
    moved_bytes: Floats
    queue_of: npt.NDArray[np.int32]  # command → queue; −1: computes, or moves nothing
    dependency_first: npt.NDArray[np.uint32]
    dependency_source: npt.NDArray[np.uint32]
    lane_first: Numbers  # lane → first command; one more than lanes
    channel_of: npt.NDArray[np.int32]  # queue → channel
    shared_rate: Floats
    queue_rate: Floats
    latency: Floats
    pool_first: npt.NDArray[np.int32]  # pool → first channel; one more than pools
    pool_rate: Floats


def checked_tables(program: Program) -> Tables:
    """The tables of a program that may be damaged or hostile: everything that the event loop relies on is checked."""
    check_program(program, source=source_of(program))
    _check_routes(program)
    built = tables(program)
    _check_duration(program, built)
    return built


def tables(work: Commands) -> Tables:
    """Number the lanes, queues and channels in use."""
    commands = work.commands
    moves = (commands["route"] != NO_ROUTE) & (commands["moved_bytes"] > 0)
    numbers = work.pool_of_routes()
    order = sorted(range(len(numbers)), key=lambda number: (numbers[number], number))  # pools without gaps
    queue_of, channel_of, channel_keys = _queues(work, moves, order)
    places = [order[key % len(order)] for key in channel_keys.tolist()]
    routes = [work.routes[place] for place in places]
    pools = channel_keys // max(len(order), 1) * len(order) + np.array([numbers[place] for place in places], np.int64)
    pool_keys, pool_first = np.unique(pools, return_index=True)
    return Tables(
        cycles=commands["cycles"].astype(np.float64),
        moved_bytes=commands["moved_bytes"].astype(np.float64),
        queue_of=queue_of,
        dependency_first=np.ascontiguousarray(work.dependency_offsets, np.uint32),
        dependency_source=np.ascontiguousarray(work.dependency_sources, np.uint32),
        lane_first=_lane_first(work),
        channel_of=channel_of,
        shared_rate=np.array([route.bytes_per_cycle for route in routes], np.float64),
        queue_rate=np.array([route.core_bytes_per_cycle for route in routes], np.float64),
        latency=np.array([route.latency_cycles for route in routes], np.float64),
        pool_first=np.append(pool_first, len(routes)).astype(np.int32),
        pool_rate=np.array([work.pool_rate(key % len(order)) for key in pool_keys.tolist()], np.float64),
    )


def describe(program: Program, command: int) -> str:
    """Return a command as an error names it: its number, lane and place in the lane."""
    row = program.commands[command]
    group = printable(program.groups[row["group"]].name, 40)
    return f"command {command} (device {row['device']}, core {row['core']}, {group}, ordinal {row['ordinal']})"


def _check_routes(program: Program) -> None:
    for route in program.routes:
        shared, own = route.bytes_per_cycle, route.core_bytes_per_cycle
        if not (0 < shared < inf and own > 0):
            raise fault(
                program,
                f"route {printable(route.name)!r} moves {shared} bytes per cycle, {own} of one core; "
                "expected positive numbers",
            )
        if not 0 <= route.latency_cycles < MOST_CYCLES:
            found = f"route {printable(route.name)!r} has a latency of {route.latency_cycles} cycles"
            raise fault(program, f"{found}; expected 0 to less than {MOST_CYCLES:.3g}")
    for memory in program.memories:
        if memory.bytes_per_cycle is not None and not 0 < memory.bytes_per_cycle < inf:
            found = f"memory {printable(memory.name)!r} moves {memory.bytes_per_cycle} bytes per cycle"
            raise fault(program, f"{found}; expected a positive number")


def _check_duration(program: Program, built: Tables) -> None:
    """Refuse a program that may run longer than a float can count cycles.

    Some command always makes progress, so the sum of all work at its slowest rate bounds the total time.
    """
    moving = built.queue_of >= 0
    channel = built.channel_of[built.queue_of[moving]]
    sharing = np.bincount(built.channel_of, minlength=len(built.shared_rate))
    sizes = np.diff(built.pool_first)
    pool = np.repeat(np.arange(len(sizes)), sizes)
    together = np.bincount(pool, sharing, minlength=len(sizes))[pool]
    slowest = np.minimum(built.shared_rate / np.maximum(sharing, 1), built.queue_rate)
    slowest = np.minimum(slowest, built.pool_rate[pool] / np.maximum(together, 1))
    with np.errstate(over="ignore"):
        moving_cycles = built.moved_bytes[moving] / slowest[channel] + built.latency[channel]
        longest = built.cycles.sum() + moving_cycles.sum()
    if not longest < MOST_CYCLES:
        raise fault(program, f"may take {longest:.3g} cycles; expected less than {MOST_CYCLES:.3g}")


def _lane_first(work: Commands) -> Numbers:
    lane = work.lane_of_commands()
    if not len(lane):
        return np.zeros(1, np.int64)
    return np.concatenate(([0], np.flatnonzero(lane[1:] != lane[:-1]) + 1, [len(lane)])).astype(np.int64)


def _queues(
    work: Commands, moves: npt.NDArray[np.bool_], order: list[int]
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], Numbers]:
    """Return the queue of every command, the channel of every queue, and each channel's (device, place in order) key.

    A queue is one core's use of a route; the queues of one device and route share a channel and its bandwidth.
    """
    routes, moving = max(len(work.routes), 1), work.commands[moves]
    core = moving["device"].astype(np.int64) * work.cores + moving["core"]
    place = np.argsort(np.array(order, np.int64))[moving["route"]]
    queue_keys, queue_number = _number(core * routes + place, work.devices * work.cores * routes)
    device, route = queue_keys // routes // work.cores, queue_keys % routes
    channel_keys, channel_number = _number(device * routes + route, work.devices * routes)
    queue_of = np.full(len(moves), -1, np.int32)
    queue_of[moves] = queue_number
    return queue_of, channel_number.astype(np.int32), channel_keys


def _number(keys: Numbers, end: int) -> tuple[Numbers, Numbers]:
    """Return the keys in use in rising order, and the position of each key among them."""
    if end > len(keys) + 2**20:  # a table of all possible keys would be larger than the program
        used, place = np.unique(keys, return_inverse=True)
        return used, place.reshape(-1)
    present = np.zeros(end, np.bool_)
    present[keys] = True
    return np.flatnonzero(present), (np.cumsum(present) - 1)[keys]
