"""Op records of a core → checked columns per lane: one row per command, one column per thread of the group.

Records of a core are sorted by group, ordinal and thread. For a group of two threads and commands 0 and 1:

    record   ordinal  thread  start  ucycles  barrier
    0        0        0       100    40       0          thread 0 is the slower one
    1        0        1       100    35       5          thread 1 waits 5 ticks for it
    2        1        0       150    …                   reshape(-1, 2) turns the records into rows per command
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..core.columns import Numbers
from ..core.meaning import Does
from ..program.program import NO_ROUTE, OP_LEVEL, PORT_LEVEL, TRUE, Program
from ..program.wire import StatsSection
from ..recording.trace import EDGE
from .buffer import Buffer
from .check import refuse, thread_groups

_OPS = StatsSection.OPS
_SHARED = ("ordinal", "start", "wait", "blocker")  # the same for all threads of a command


@dataclass(frozen=True, slots=True)
class LaneRecords:
    """The records of one lane, in ticks. Threads of a group start and leave a command together."""

    core: int
    group: int
    first_thread: int
    commands: Numbers  # of the program
    start: Numbers
    end: Numbers  # the last thread is done; of a transfer: arrived
    wait: Numbers
    ucycles: npt.NDArray[np.uint32]  # per thread, as recorded
    pcycles: npt.NDArray[np.uint32]
    barrier: npt.NDArray[np.uint32]
    blocker: Numbers  # command that was waited for last; −1: none


def longest(columns: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    """Return, for every command, the largest value of any thread."""
    most = columns[:, 0]
    # Column by column is much faster than max(axis=1), because rows are short.
    for thread in range(1, columns.shape[1]):
        most = np.maximum(most, columns[:, thread])
    return most


@dataclass(frozen=True, slots=True)
class LaneIndex:
    """Columns of a program that reading any of its buffers needs; built once."""

    groups: Numbers  # thread → group
    first: Numbers  # lane → first command; one more than lanes
    moves: npt.NDArray[np.bool_]  # command → has a route
    op: npt.NDArray[np.int32]  # command → graph op
    kind: npt.NDArray[np.int32]  # command → kind
    route: npt.NDArray[np.int32]
    does: npt.NDArray[np.uint8]  # command → meaning.Does
    at_work: npt.NDArray[np.uint8]  # the same of what its lane does: of a transfer it is the issue
    edges: npt.NDArray[np.void]  # dependencies as a trace has them
    places: npt.NDArray[np.uint64]  # first eight bytes of every record of a complete buffer, core after core
    place_first: Numbers  # lane → its first record there; one more than lanes

    @classmethod
    def of(cls, program: Program) -> LaneIndex:
        """Build the index of a program."""
        lanes, commands = program.lane_of_commands(), program.commands
        first = np.searchsorted(lanes, np.arange(program.lanes + 1))
        op, kind, route = (commands[name].astype(np.int32) for name in ("op", "kind", "route"))
        does = commands["does"].astype(np.uint8)
        threads = np.array([group.threads for group in program.groups])[commands["group"]]
        counts = np.concatenate(([0], np.cumsum(threads)))
        return cls(
            thread_groups(program),
            first.astype(np.int64),
            route != NO_ROUTE,
            op,
            kind,
            route,
            does,
            np.where((route != NO_ROUTE) & (does == Does.MOVE), np.uint8(Does.LAUNCH), does),
            _edges(program),
            _places(program, threads, counts),
            counts[first],
        )


def _places(program: Program, threads: Numbers, counts: Numbers) -> npt.NDArray[np.uint64]:
    """Return ordinal, thread and group of every expected record, packed into one word as in OP_RECORD.

    Bits 0–31 ordinal, 32–47 thread, 48–63 group. Comparing these words checks the order of all records of a complete
    buffer at once.
    """
    commands = program.commands
    first_thread = np.cumsum([0, *(group.threads for group in program.groups)])
    # Thread number of each record: position within its command, plus the first thread of the group.
    own = (
        np.arange(int(counts[-1]))
        - np.repeat(counts[:-1], threads)
        + np.repeat(first_thread[commands["group"]], threads)
    )
    word = commands["ordinal"].astype(np.uint64) | commands["group"].astype(np.uint64) << np.uint64(48)
    places: npt.NDArray[np.uint64] = np.repeat(word, threads) | own.astype(np.uint64) << np.uint64(32)
    return places


def _edges(program: Program) -> npt.NDArray[np.void]:
    """Return the program's dependencies as edges of a trace."""
    edges = np.zeros(len(program.dependency_sources), EDGE)
    edges["source"] = program.dependency_sources
    edges["target"] = np.repeat(np.arange(len(program.commands)), np.diff(program.dependency_offsets))
    edges["data"] = program.dependency_kinds == TRUE
    return edges


def read_lanes(buffer: Buffer, program: Program, index: LaneIndex) -> Iterator[LaneRecords]:
    """Yield every lane of the buffer's device that has records, checked. Call `check_buffer` first."""
    if buffer.capture.level >= PORT_LEVEL:
        for core in range(buffer.capture.cores):
            yield from _Core(buffer, program, index, core).lanes()


@dataclass(frozen=True, slots=True)
class _Core:
    """The op records of one core, sorted by group, ordinal and thread."""

    buffer: Buffer
    program: Program
    index: LaneIndex
    core: int

    @property
    def first_lane(self) -> int:
        return (self.buffer.capture.device * self.program.cores + self.core) * len(self.program.groups)

    def lanes(self) -> Iterator[LaneRecords]:
        records = self.buffer.records(_OPS, self.core)
        words = records.view("<u8").reshape(len(records), -1) if len(records) else np.zeros((0, 1), np.uint64)
        ends = self.index.place_first[[self.first_lane, self.first_lane + len(self.program.groups)]].tolist()
        if not np.array_equal(
            words[:, 0], self.index.places[slice(*ends)]
        ):  # a lower stats level, lost records, or damage: check one by one
            self._check_places(words[:, 0])
        for group in range(len(self.program.groups)):
            low, high = np.searchsorted(records["group"], [group, group + 1]).tolist()
            self._check_count(group, low, high)
            if high > low:
                yield self._lane(group, low, records[low:high].reshape(-1, self.program.groups[group].threads))

    def _check_places(self, places: npt.NDArray[np.uint64]) -> None:
        """Check that records are sorted and that each thread belongs to its group."""
        ordinal, thread, group = places & 0xFFFFFFFF, (places >> 32) & 0xFFFF, places >> 48
        key = (group << np.uint64(48)) | (ordinal << np.uint64(16)) | thread
        backward = np.concatenate(([False], key[1:] <= key[:-1])) if len(key) else np.zeros(0, np.bool_)
        problem = "stands behind a later one; expected records sorted by group, ordinal and thread"
        refuse(self.buffer, _OPS, self.core, backward, lambda at: problem)
        known = np.append(self.index.groups, -1)[np.minimum(thread, len(self.index.groups)).astype(np.int64)]
        wrong_thread = known != group.astype(np.int64)
        refuse(
            self.buffer, _OPS, self.core, wrong_thread, lambda at: f"thread {thread[at]} is not of group {group[at]}"
        )

    def _check_count(self, group: int, low: int, high: int) -> None:
        """Check that all threads of a command, and all commands, are recorded.

        A low stats level or a full buffer may leave commands out, but never single threads of one.
        """
        threads = self.program.groups[group].threads
        length = int(np.diff(self.index.first[self.first_lane + group :][:2])[0])
        lost = (self.buffer.records(StatsSection.LOST, self.core)["group"] == group).any()
        complete = self.buffer.capture.level >= OP_LEVEL and not lost
        if (high - low) % threads or (complete and high - low != length * threads):
            problem = f"group {group} has {high - low} records; expected {threads} for each of {length} commands"
            raise self.buffer.fault(_OPS, self.core, low, problem)

    def _lane(self, group: int, low: int, own: npt.NDArray[np.void]) -> LaneRecords:
        """Return the columns of one lane; an impossible value is an error at its record."""
        first, after = self.index.first[self.first_lane + group :][:2].tolist()
        ordinal, start, wait, blocker = (own[name][:, 0].astype(np.int64) for name in _SHARED)
        lane = LaneRecords(
            core=self.core,
            group=group,
            first_thread=int(np.searchsorted(self.index.groups, group)),
            commands=first + ordinal,
            start=start,
            end=start + own["ucycles"][:, 0] + own["barrier"][:, 0],
            wait=wait,
            ucycles=own["ucycles"],
            pcycles=own["pcycles"],
            barrier=own["barrier"],
            blocker=blocker - 1,
        )
        for bad, problem in self._faults(lane, own, after):
            if bad.any():
                # A check per command (one column) is turned into the record number of the command's first thread.
                at = int(bad.reshape(-1).argmax()) * (1 if bad.ndim == 2 else own.shape[1])
                raise self.buffer.fault(_OPS, self.core, low + at, problem)
        return lane

    def _faults(
        self, lane: LaneRecords, own: npt.NDArray[np.void], after: int
    ) -> Iterator[tuple[npt.NDArray[np.bool_], str]]:
        """Yield each check as (bad rows, problem). Later checks rely on earlier ones, so the order matters."""
        count = len(self.program.commands)
        yield lane.commands >= after, "an ordinal past the end of its lane"
        yield lane.blocker >= count, f"waited for a command past the end; the program has {count}"
        if own.shape[1] > 1:
            for name in _SHARED:
                yield own[name] != own[name][:, :1], f"threads of a command differ in {name}; expected them together"
            leave = own["ucycles"].astype(np.int64) + own["barrier"]
            problem = "threads leave a command at different ticks; expected ucycles + barrier to be the same"
            yield leave != (lane.end - lane.start)[:, None], problem
        window = self.buffer.records(StatsSection.THREADS, self.core)
        threads = window["group"] == lane.group
        opened, closed = int(window["start"][threads].min()), int(window["end"][threads].max())
        overrun = (lane.start > closed) | (lane.end > closed) | (lane.start < 0)
        yield overrun, f"ends behind its thread, which stops at tick {closed}"
        free = np.where(
            self.index.moves[lane.commands], lane.start, lane.end
        )  # a transfer frees the lane as soon as it is issued
        ready = lane.start - lane.wait
        yield ready < np.concatenate(([opened], free[:-1])), "starts to wait before the one before it is done"
