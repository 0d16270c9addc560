"""Checks that a stats buffer belongs to a program. The op records are checked in lanes.py, where they are read."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from ..core.columns import Flags
from ..core.errors import CaptureError
from ..program.program import THREAD_LEVEL, Program
from ..program.wire import StatsFlag, StatsSection
from .buffer import Buffer, field_offset

_LAST_TICK = 1 << 62
_LONGEST_WAIT = 1 << 32  # ticks


class ForeignBufferError(CaptureError):
    """The buffer is sound, and of another program."""


def thread_groups(program: Program) -> npt.NDArray[np.int64]:
    """Return the group of every thread of a core."""
    return np.repeat(np.arange(len(program.groups)), [group.threads for group in program.groups])


def check_buffer(buffer: Buffer, program: Program, *, program_id: int) -> None:
    """Raise CaptureError, with the byte offset, if this program cannot have written the buffer."""
    _check_header(buffer, program, program_id)
    groups = thread_groups(program)
    for core in range(buffer.capture.cores):
        if buffer.capture.level >= THREAD_LEVEL:
            _check_threads(buffer, core, groups)
        _check_counters(buffer, core, program, len(groups))
        _check_lost(buffer, core, program, groups)


def _check_header(buffer: Buffer, program: Program, program_id: int) -> None:
    """Compare every header field with the program."""
    capture = buffer.capture
    expected_fields: tuple[tuple[str, float, float], ...] = (
        ("program_id", capture.program_id, program_id),
        ("cores", capture.cores, program.cores),
        ("threads", capture.threads, sum(group.threads for group in program.groups)),
        ("level", capture.level, program.stats.level),
        ("batch_size", capture.batch_size, program.stats.batch_size),
        ("stats_millihertz", capture.stats_hz * 1000, round(program.stats_hz * 1000)),
        ("flags", capture.flags & ~StatsFlag.LOST, _flags(program)),
    )
    for name, found, expected in expected_fields:
        if found != expected:
            kind = ForeignBufferError if name == "program_id" else CaptureError
            problem = f"{name} is {_shown(name, found)}; the program has {_shown(name, expected)}"
            raise kind(buffer.source, field_offset(name), problem)
    if capture.device >= program.devices:
        raise _header_fault(buffer, "device", f"{capture.device}; the program runs on {program.devices}")
    lost = any(kind is StatsSection.LOST for kind, _ in capture.sections)
    if lost != bool(capture.flags & StatsFlag.LOST):
        what = "a section of lost records is there" if lost else "records are lost; no section says which"
        raise _header_fault(buffer, "flags", f"{int(capture.flags)}: {what}")


def _shown(name: str, value: float) -> str:
    return f"{int(value):#018x}" if name == "program_id" else f"{value:.16g}"


def _header_fault(buffer: Buffer, name: str, problem: str) -> CaptureError:
    return CaptureError(buffer.source, field_offset(name), f"{name} is {problem}")


def _flags(program: Program) -> StatsFlag:
    if program.stats.level < THREAD_LEVEL:
        return StatsFlag(0)
    ddr = StatsFlag.DDR if program.stats.ddr else StatsFlag(0)
    return ddr | (StatsFlag.PMU if program.stats.events else StatsFlag(0))


def _check_threads(buffer: Buffer, core: int, groups: npt.NDArray[np.int64]) -> None:
    kind, records = StatsSection.THREADS, buffer.records(StatsSection.THREADS, core)
    if len(records) != len(groups):
        raise buffer.fault(kind, core, 0, f"{len(records)} records; expected {len(groups)}, one per thread")
    thread, group, start, end = (records[name] for name in ("thread", "group", "start", "end"))
    refuse(buffer, kind, core, thread != np.arange(len(records)), lambda at: f"thread {thread[at]}; expected {at}")
    refuse(buffer, kind, core, group != groups, lambda at: f"group {group[at]}; expected {groups[at]}")
    bad = (end < start) | (end >= _LAST_TICK)
    refuse(buffer, kind, core, bad, lambda at: f"from tick {start[at]} to {end[at]}; expected a rising pair below 2^62")


def _check_counters(buffer: Buffer, core: int, program: Program, threads: int) -> None:
    events = np.array(program.stats.events, np.int64)
    for kind in (StatsSection.PORTS, StatsSection.PMU, StatsSection.OP_PMU):
        thread = buffer.records(kind, core)["thread"]
        refuse(buffer, kind, core, thread >= threads, _message("thread {}; expected below " + str(threads), thread))
    for kind in (StatsSection.PMU, StatsSection.OP_PMU):
        event = buffer.records(kind, core)["event"]
        refuse(
            buffer, kind, core, ~np.isin(event, events), _message("event {:#x} is none that the program counts", event)
        )
    _check_doorbells(buffer, core)
    ddr = buffer.records(StatsSection.DDR, core)
    expected = int(bool(buffer.capture.flags & StatsFlag.DDR))
    if len(ddr) != expected:
        raise buffer.fault(StatsSection.DDR, core, 0, f"{len(ddr)} records; expected {expected}")


def _check_doorbells(buffer: Buffer, core: int) -> None:
    """Check that each rang before the core was done, and not longer before it than a wait can be."""
    kind, threads = StatsSection.DOORBELLS, buffer.records(StatsSection.THREADS, core)
    time = buffer.records(kind, core)["time"]
    low = max(0, int(threads["start"].min(initial=_LAST_TICK)) - _LONGEST_WAIT)
    high = int(threads["end"].max(initial=0))
    problem = _message(f"rung at tick {{}}; expected {low} to {high}", time)
    refuse(buffer, kind, core, (time < low) | (time > high), problem)


def _message(words: str, column: npt.NDArray[np.integer]) -> Callable[[int], str]:
    """Return a function that formats the text with the value of the bad record."""
    return lambda at: words.format(int(column[at]))


def _check_lost(buffer: Buffer, core: int, program: Program, groups: npt.NDArray[np.int64]) -> None:
    """Check that each LOST record names an existing thread and commands that its lane has."""
    kind, records = StatsSection.LOST, buffer.records(StatsSection.LOST, core)
    if not len(records):
        return
    thread, group, first, count = (records[name].astype(np.int64) for name in ("thread", "group", "first", "count"))
    known = np.append(groups, -1)[np.minimum(thread, len(groups))]
    refuse(buffer, kind, core, known != group, lambda at: f"thread {thread[at]} of group {group[at]} does not exist")
    lengths = np.bincount(program.lane_of_commands(), minlength=program.lanes)
    lane = (buffer.capture.device * program.cores + core) * len(program.groups) + group
    bad = (count < 0) | (count > lengths[lane] - first)
    refuse(buffer, kind, core, bad, lambda at: f"{count[at]} lost from {first[at]}; the lane has {lengths[lane[at]]}")


def refuse(buffer: Buffer, kind: StatsSection, core: int, bad: Flags, problem: Callable[[int], str]) -> None:
    """Raise an error at the first record marked as bad, if there is one."""
    if bad.any():
        at = int(bad.argmax())
        raise buffer.fault(kind, core, at, problem(at))
