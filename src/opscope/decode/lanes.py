"""Op records of a core → checked columns per lane: one row per command, one column per thread of the group."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..program import NO_ROUTE, Program
from ..wire import StatsSection
from .buffer import Buffer
from .check import OP_LEVEL, PORT_LEVEL, refuse, thread_groups

Numbers = npt.NDArray[np.int64]
_OPS = StatsSection.OPS


@dataclass(frozen=True, slots=True)
class LaneRecords:
    """What the threads of one lane wrote down. Times are ticks; threads of a group start and leave a command together."""

    core: int
    group: int
    first_thread: int
    commands: Numbers  # of the program
    start: Numbers
    end: Numbers  # the last thread is done; of a transfer: arrived
    wait: Numbers
    ucycles: npt.NDArray[np.void]  # per thread, as recorded
    pcycles: npt.NDArray[np.void]
    barrier: npt.NDArray[np.void]
    blocker: Numbers  # command that was waited for last; −1: none


@dataclass(frozen=True, slots=True)
class LaneIndex:
    """Of a program, what reading any of its buffers needs; made once."""

    groups: Numbers  # thread → group
    first: Numbers  # lane → first command; one more than lanes
    moves: npt.NDArray[np.bool_]  # command → has a route

    @classmethod
    def of(cls, program: Program) -> LaneIndex:
        lanes = program.lane_of_commands()
        first = np.searchsorted(lanes, np.arange(program.lanes + 1))
        return cls(thread_groups(program), first.astype(np.int64), program.commands["route"] != NO_ROUTE)


def read_lanes(buffer: Buffer, program: Program, index: LaneIndex) -> Iterator[LaneRecords]:
    """Every lane of the buffer's device that has records, checked."""
    if buffer.capture.level < PORT_LEVEL:
        return
    for core in range(buffer.capture.cores):
        records = buffer.records(_OPS, core)
        words = records.view("<u8").reshape(len(records), -1) if len(records) else np.zeros((0, 5), "<u8")
        _check_places(buffer, core, words[:, 0], index)
        for group in range(len(program.groups)):
            yield from _lane(buffer, program, index, core, group, records)


def _check_places(buffer: Buffer, core: int, places: npt.NDArray[np.uint64], index: LaneIndex) -> None:
    """Records are sorted by group, command and thread; group and thread belong together."""
    ordinal, thread, group = places & 0xFFFFFFFF, (places >> 32) & 0xFFFF, places >> 48
    key = (group << np.uint64(48)) | (ordinal << np.uint64(16)) | thread
    refuse(buffer, _OPS, core, np.concatenate(([False], key[1:] <= key[:-1])),
           lambda at: "stands behind a later one; expected records sorted by group, ordinal and thread")  # fmt: skip
    known = np.append(index.groups, -1)
    refuse(buffer, _OPS, core, known[np.minimum(thread, len(index.groups)).astype(np.int64)] != group.astype(np.int64),
           lambda at: f"thread {thread[at]} is not of group {group[at]}")  # fmt: skip


def _lane(
    buffer: Buffer, program: Program, index: LaneIndex, core: int, group: int, records: npt.NDArray[np.void]
) -> Iterator[LaneRecords]:
    lane = (buffer.capture.device * program.cores + core) * len(program.groups) + group
    low, high = np.searchsorted(records["group"], [group, group + 1]).tolist()
    first, length = int(index.first[lane]), int(index.first[lane + 1] - index.first[lane])
    threads = program.groups[group].threads
    lost = buffer.records(StatsSection.LOST, core)
    complete = buffer.capture.level >= OP_LEVEL and not (lost["group"] == group).any()
    if (high - low) % threads or (complete and high - low != length * threads):
        raise buffer.fault(
            _OPS, core, low, f"group {group} has {high - low} records; expected {threads} for each of {length} commands"
        )
    if high > low:
        own = records[low:high].reshape(-1, threads)
        yield _checked(buffer, program, index, own, low, LaneKey(core, group, first, length))


@dataclass(frozen=True, slots=True)
class LaneKey:
    """Which lane: its core and group, and where its commands lie in the program."""

    core: int
    group: int
    first: int
    length: int


def _checked(
    buffer: Buffer, program: Program, index: LaneIndex, own: npt.NDArray[np.void], low: int, key: LaneKey
) -> LaneRecords:
    threads = own.shape[1]
    ordinal = own["ordinal"][:, 0].astype(np.int64)
    start = own["start"][:, 0].astype(np.int64)
    wait = own["wait"][:, 0].astype(np.int64)
    end = start + own["ucycles"][:, 0] + own["barrier"][:, 0]
    blocker = own["blocker"][:, 0].astype(np.int64) - 1

    def stop(bad: npt.NDArray[np.bool_], problem: str) -> None:
        if bad.any():
            at = int(bad.reshape(-1).argmax())
            place = low + (at if bad.ndim == 2 else at * threads)
            raise buffer.fault(_OPS, key.core, place, problem)

    stop(ordinal >= key.length, f"an ordinal past the end; its lane has {key.length} commands")
    stop(
        blocker >= len(program.commands), f"waited for a command past the end; the program has {len(program.commands)}"
    )
    for name in ("ordinal", "start", "wait", "blocker") if threads > 1 else ():
        stop(own[name] != own[name][:, :1], f"threads of a command differ in {name}; expected them together")
    if threads > 1:
        stop(own["ucycles"].astype(np.int64) + own["barrier"] != (end - start)[:, None],
             "threads leave a command at different ticks; expected ucycles + barrier to be the same")  # fmt: skip
    moves = index.moves[key.first + ordinal]
    free = np.where(moves, start, end)  # a lane goes on after the issue of a transfer
    window = buffer.records(StatsSection.THREADS, key.core)
    own_threads = window["group"] == key.group
    opened, closed = int(window["start"][own_threads].min()), int(window["end"][own_threads].max())
    ready = start - wait
    stop(ready < np.concatenate(([opened], free[:-1])), "starts to wait before the one before it is done")
    stop((start > closed) | (end > closed), f"ends behind its thread, which stops at tick {closed}")
    return LaneRecords(
        core=key.core,
        group=key.group,
        first_thread=int(np.searchsorted(index.groups, key.group)),
        commands=key.first + ordinal,
        start=start,
        end=end,
        wait=wait,
        ucycles=own["ucycles"],
        pcycles=own["pcycles"],
        barrier=own["barrier"],
        blocker=blocker,
    )
