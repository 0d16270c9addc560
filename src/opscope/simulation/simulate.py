"""Commands → Timeline: start and end of every command of one inference, and the dependency it waited for.

The compiler tries a program out with the figures that the device has, so what it finds faster is faster there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..core.columns import Floats
from ..core.errors import ProgramError
from ..program.check import fault
from ..program.program import Commands, Program
from .tables import Tables, checked_tables, describe, tables

try:
    from ._core import run
except ImportError:  # the extension was not compiled: same results in Python, slower
    from .event_loop import run


@dataclass(frozen=True, slots=True)
class Timeline:
    """One inference, one row per command, in core cycles from its start; all cores share this time axis."""

    lane_ready: Floats  # the lane is free for the command
    start: Floats
    issue_end: Floats  # the lane is free again
    transfer_start: Floats  # its bytes begin to move; where it moves none, issue_end
    done: Floats  # computed, or arrived to the last byte and through the latency of the route
    blocker: npt.NDArray[np.int64]  # dependency that was done last and made it wait; −1: it did not wait
    seed: int
    inference: int

    @property
    def total_cycles(self) -> float:
        return float(self.done.max()) if len(self.done) else 0.0


def simulate(program: Program, *, seed: int = 0, inference: int = 0) -> Timeline:
    """Execute one inference as a discrete-event simulation.

    Args:
        program: the program to run; it is checked first, because a program file may be damaged or hostile.
        seed: selects the clocks of the cores and how the threads of a group share work.
        inference: number of the inference; it varies how threads share work.

    Raises:
        ProgramError: an index, order or rate is impossible, or commands wait for each other.
    """
    built = checked_tables(program)
    timeline = empty_timeline(len(program.commands), seed, inference)
    if run_tables(built, timeline) != len(program.commands):
        raise _deadlock(program, timeline)
    for column in _columns(timeline):
        column.setflags(write=False)
    return timeline


def total_cycles(work: Commands) -> float:
    """Core cycles of commands that were just made, and need no check."""
    timeline = empty_timeline(len(work.commands), seed=0, inference=0)
    if run_tables(tables(work), timeline) != len(work.commands):
        raise ValueError("commands wait for each other; expected an order in which all of them can run")
    return timeline.total_cycles


def run_tables(built: Tables, timeline: Timeline) -> int:
    """Pass the columns to the event loop in its order; return the number of finished commands."""
    return run(
        built.cycles,
        built.moved_bytes,
        built.queue_of,
        built.dependency_first,
        built.dependency_source,
        built.lane_first,
        built.channel_of,
        built.shared_rate,
        built.queue_rate,
        built.latency,
        built.pool_first,
        built.pool_rate,
        timeline.lane_ready,
        timeline.start,
        timeline.issue_end,
        timeline.transfer_start,
        timeline.done,
        timeline.blocker,
    )


def empty_timeline(count: int, seed: int, inference: int) -> Timeline:
    ready, start, issue_end, transfer_start, done = (np.full(count, np.nan) for _ in range(5))
    return Timeline(ready, start, issue_end, transfer_start, done, np.full(count, -1, np.int64), seed, inference)


def _columns(timeline: Timeline) -> tuple[npt.NDArray[np.generic], ...]:
    times = (timeline.lane_ready, timeline.start, timeline.issue_end, timeline.transfer_start, timeline.done)
    return (*times, timeline.blocker)


def _deadlock(program: Program, timeline: Timeline) -> ProgramError:
    """Return an error that names a command that never started and the dependency it waits for."""
    stuck = int(np.isnan(timeline.start).argmax())  # rows are sorted by lane, so this is the head of a blocked lane
    waits_for = next(source for source in program.dependencies(stuck) if np.isnan(timeline.done[source]))
    return fault(
        program,
        f"{describe(program, stuck)} waits for {describe(program, waits_for)}, which is never done; "
        "expected dependencies that neither form a circle nor point forward in a lane",
    )
