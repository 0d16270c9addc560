"""Times of the threads of one lane in the integer ticks and cycles that the hardware counts.

Every count is a difference of rounded-down points in time, never a rounded duration. Hence spans of a thread never
overlap, and their sum never exceeds the whole: commands of 1.5 cycles each, back to back, count 1, 2, 1, 2 … cycles.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..core.columns import Floats, Numbers
from ..core.meaning import Does
from ..program.program import NO_ROUTE, Program
from ..simulation import Timeline
from .variation import clock_factor, thread_shares


@dataclass(frozen=True, slots=True)
class CoreClock:
    """Converts cycles of the common time axis to the counts of one core."""

    ticks_per_cycle: float
    factor: float  # this core's clock, as a multiple of the program's

    def ticks(self, cycles: Floats) -> Numbers:
        return np.floor(cycles * self.ticks_per_cycle).astype(np.int64)

    def pcycles(self, cycles: Floats) -> Numbers:
        return np.floor(cycles * self.factor).astype(np.int64)


@dataclass(frozen=True, slots=True)
class LaneTimes:
    """The commands of one lane, one per row; times that differ by thread have one column per thread."""

    group: int
    first_thread: int
    threads: int
    commands: npt.NDArray[np.void]
    moves: npt.NDArray[np.bool_]  # has a route
    clock: CoreClock
    lane_ready: Floats
    start: Floats
    work_end: Floats  # per thread
    issue_end: Floats
    transfer_start: Floats
    arrived: Floats  # the last byte; of what moves none, done
    done: Floats
    blocker: Numbers
    window: float  # the end of the inference: threads stay until all work is done, on every core and device

    @property
    def ucycles(self) -> Numbers:
        clock = self.clock
        busy = clock.ticks(self.work_end) - clock.ticks(self.start)[:, None]
        flight = clock.ticks(self.done) - clock.ticks(self.start)
        return np.where(self.moves[:, None], flight[:, None], busy)

    @property
    def barrier_ticks(self) -> Numbers:
        waiting = self.clock.ticks(self.done)[:, None] - self.clock.ticks(self.work_end)
        return np.where(self.moves[:, None], 0, waiting)

    @property
    def wait_ticks(self) -> Numbers:
        return self.clock.ticks(self.start) - self.clock.ticks(self.lane_ready)

    @property
    def pcycles(self) -> Numbers:
        return self.clock.pcycles(self.work_end) - self.clock.pcycles(self.start)[:, None]

    @property
    def wait_pcycles(self) -> Numbers:
        return self.clock.pcycles(self.start) - self.clock.pcycles(self.lane_ready)

    @property
    def flight_pcycles(self) -> Numbers:
        """Core cycles in which the bytes of each command move."""
        return self.clock.pcycles(self.arrived) - self.clock.pcycles(self.transfer_start)

    @property
    def is_of_program(self) -> npt.NDArray[np.bool_]:
        """Commands that are there with or without statistics: all but those that write the stats buffer."""
        own: npt.NDArray[np.bool_] = self.commands["does"] != Does.STATS
        return own

    @property
    def moving_pcycles(self) -> int:
        """Core cycles in which bytes of at least one command of the program itself move."""
        moving = (self.arrived > self.transfer_start) & self.is_of_program
        order = np.argsort(self.transfer_start[moving], kind="stable")
        start = self.clock.pcycles(self.transfer_start[moving][order])
        end = self.clock.pcycles(self.arrived[moving][order])
        covered = np.concatenate(([0], np.maximum.accumulate(end)[:-1])) if len(end) else end
        return int(np.maximum(end - np.maximum(start, covered), 0).sum())

    @property
    def held_pcycles(self) -> Numbers:
        """Core cycles from the start of a command until the lane is free again."""
        return self.clock.pcycles(self.issue_end) - self.clock.pcycles(self.start)


def device_lanes(program: Program, timeline: Timeline, device: int) -> Iterator[list[LaneTimes]]:
    """Yield, for every core of a device, its lanes in the order of groups."""
    groups = len(program.groups)
    first = device * program.cores * groups
    bounds = np.searchsorted(program.lane_of_commands(), np.arange(first, first + program.cores * groups + 1)).tolist()
    for core in range(program.cores):
        clock = CoreClock(program.stats_hz / program.clock_hz, clock_factor(program, timeline, device, core))
        lanes, first_thread = [], 0
        for index, group in enumerate(program.groups):
            rows = slice(bounds[core * groups + index], bounds[core * groups + index + 1])
            lanes.append(_lane(program, timeline, clock, group=index, first_thread=first_thread, rows=rows))
            first_thread += group.threads
        yield lanes


def _lane(
    program: Program, timeline: Timeline, clock: CoreClock, *, group: int, first_thread: int, rows: slice
) -> LaneTimes:
    """Return the times of one lane; threads of a group share the work of a command unevenly."""
    commands, threads = program.commands[rows], program.groups[group].threads
    moves = commands["route"] != NO_ROUTE
    start, issue_end = timeline.start[rows], timeline.issue_end[rows]
    work_end = np.repeat(issue_end[:, None], threads, axis=1)
    if threads > 1:  # all threads issue a transfer together; they share the work of other commands
        shares = thread_shares(program, timeline, np.arange(rows.start, rows.stop), threads)
        own = start[:, None] + commands["cycles"][:, None] * shares
        work_end = np.where(moves[:, None], work_end, np.minimum(own, work_end))
    return LaneTimes(
        group=group,
        first_thread=first_thread,
        threads=threads,
        commands=commands,
        moves=moves,
        clock=clock,
        lane_ready=timeline.lane_ready[rows],
        start=start,
        work_end=work_end,
        issue_end=issue_end,
        transfer_start=timeline.transfer_start[rows],
        arrived=_arrived(program, timeline, rows),
        done=timeline.done[rows],
        blocker=timeline.blocker[rows],
        window=timeline.total_cycles,
    )


def _arrived(program: Program, timeline: Timeline, rows: slice) -> Floats:
    """When the last byte of each command is there: a transfer is done the latency of its route later."""
    latency = np.array([*(route.latency_cycles for route in program.routes), 0.0])[program.commands["route"][rows]]
    arrived: Floats = np.maximum(timeline.done[rows] - latency, timeline.transfer_start[rows])
    return arrived
