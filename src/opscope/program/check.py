"""Check of a program before it is run or decoded with: every count, rate and index must be possible.

A program may come from a file of unknown origin. What passes here can be used as indices without further checks, also
by the compiled loop of the device, which would otherwise read out of bounds. Columns are checked as vectors; the error
names the first bad command.
"""

from __future__ import annotations

from math import isfinite

import numpy as np
import numpy.typing as npt

from ..core.errors import ProgramError, printable
from ..core.meaning import Does
from .program import NO_MEMORY, NO_OP, NO_ROUTE, Program

LONGEST_SECONDS = 1e4  # of one inference
_MOST = 0xFFFF  # devices, cores and threads are 16 bits wide in a stats buffer
_MOST_32 = 0xFFFFFFFF  # the width of counts there
_MOST_COMMANDS = 2**31 - 2  # their numbers are 32 bits wide, with a sign


def check_program(program: Program, *, source: str) -> None:
    """Raise ProgramError where a count, rate or index of the program is impossible."""
    _check_machine(program, source)
    _check_columns(program, source)
    _check_order(program, source)
    _check_dependencies(program, source)


def check_limits(program: Program, *, source: str) -> None:
    """Raise ProgramError if a figure is out of range, or if the program does nothing: a damaged or hostile file must do
    no harm to the host that runs it."""
    if not len(program.commands):
        raise ProgramError(source, "has no commands; expected a program that does something: compile the model again")
    used, events = len(np.unique(program.commands["device"])), len(program.stats.events)
    for name, value, low, high in (
        ("devices", program.devices, 1, _MOST),
        ("devices", program.devices, 1, max(1, used)),  # as many as have commands
        ("cores", program.cores, 1, _MOST),
        ("device_cores", program.cores if program.device_cores is None else program.device_cores, 1, _MOST),
        ("card_devices", program.devices if program.card_devices is None else program.card_devices, 1, _MOST),
        ("clock_hz", program.clock_hz, 1e3, 1e12),
        ("stats_hz", program.stats_hz, 1e3, 1e9),
        ("stats.level", program.stats.level, 0, _MOST),
        ("stats.batch_size", program.stats.batch_size, 1, _MOST_32),
        ("metrics.first_read", program.metrics.first_read, 0, 2**50),
        ("number of stats.event_names", len(program.stats.event_names), events, events),
    ):
        if not low <= value <= high:
            raise ProgramError(source, f"{name} is {value:.6g}; expected {low:.6g} to {high:.6g}")


def check_duration(seconds: float, *, source: str) -> None:
    """Refuse an inference of hours: the program is broken, and its ticks would overflow their counters."""
    if not seconds <= LONGEST_SECONDS:
        raise ProgramError(source, f"an inference takes {seconds:.3g} s; expected at most {LONGEST_SECONDS:.0e}")


def fault(program: Program, problem: str) -> ProgramError:
    """An error about a program that may have no file: it is told by its name."""
    return ProgramError(source_of(program), problem)


def source_of(program: Program) -> str:
    return printable(program.name) or "program"


def _check_machine(program: Program, source: str) -> None:
    """Counts are positive and fit their fields, rates are positive, and lanes are in proportion to the file."""
    threads = sum(group.threads for group in program.groups)
    for name, value in (("devices", program.devices), ("cores", program.cores), ("threads", threads)):
        if not 1 <= value <= _MOST:
            raise ProgramError(source, f"{name} is {value}; expected 1 to {_MOST}")
    if min(group.threads for group in program.groups) < 1:
        raise ProgramError(source, "a thread group has no threads; expected at least one")
    commands = len(program.commands)
    if commands > _MOST_COMMANDS:
        raise ProgramError(source, f"{commands} commands; expected at most {_MOST_COMMANDS}")
    if program.lanes > commands + 2**20:  # arrays are made per lane: a small file must not ask for huge ones
        raise ProgramError(source, f"{program.lanes} lanes for {commands} commands; expected no more")
    for name, rate in (("clock_hz", program.clock_hz), ("stats_hz", program.stats_hz)):
        if not (isfinite(rate) and rate > 0):
            raise ProgramError(source, f"{name} is {rate}; expected a positive number")


def _check_columns(program: Program, source: str) -> None:
    """Every index of a command points into its table."""
    limits = (
        ("device", 0, program.devices),
        ("core", 0, program.cores),
        ("group", 0, len(program.groups)),
        ("route", NO_ROUTE, len(program.routes)),
        ("kind", 0, len(program.kinds)),
        ("op", NO_OP, len(program.ops)),
        ("detail", 0, len(program.details)),
        ("does", 0, len(Does)),
    )
    _check_memories(program, source)
    for name, low, end in limits:
        column = program.commands[name]
        at = _first(column >= end) if low == 0 else _first((column >= end) | (column < low))
        if at is not None:
            raise ProgramError(source, f"command {at}: {name} is {column[at]}; expected {low} to {end - 1}")


def _check_memories(program: Program, source: str) -> None:
    used = {route.memory for route in program.routes} | {o.memory for d in program.details for o in d.operands}
    for memory in sorted(used):
        if not NO_MEMORY <= memory < len(program.memories):
            raise ProgramError(
                source, f"memory {memory} of a route or an operand; expected one of {len(program.memories)}"
            )


def _check_order(program: Program, source: str) -> None:
    """Commands are sorted by lane, and ordinals count 0, 1, 2, … in each.

    The first row of a lane, carried forward by a running maximum, is what every ordinal is counted from: lanes
    a a a b b have first rows 0 0 0 3 3, so ordinals must be 0 1 2 0 1.
    """
    lane, number = program.lane_of_commands(), np.arange(len(program.commands))
    begins = np.ones(len(lane), np.bool_)
    begins[1:] = lane[1:] != lane[:-1]
    bad = program.commands["ordinal"] != number - np.maximum.accumulate(np.where(begins, number, 0))
    bad[1:] |= lane[1:] < lane[:-1]
    at = _first(bad)
    if at is not None:
        raise ProgramError(
            source, f"command {at}: out of order; expected commands sorted by device, core, group, ordinal"
        )


def _check_dependencies(program: Program, source: str) -> None:
    """Offsets rise from 0 to the number of sources (compressed sparse rows), and every source is a command."""
    offsets, sources, kinds = program.dependency_offsets, program.dependency_sources, program.dependency_kinds
    if len(kinds) != len(sources):
        raise ProgramError(source, f"{len(kinds)} dependency_kinds; expected {len(sources)}, as dependency_sources")
    if (int(offsets[0]), int(offsets[-1])) != (0, len(sources)):
        raise ProgramError(
            source, f"dependency_offsets run from {offsets[0]} to {offsets[-1]}; expected 0 to {len(sources)}"
        )
    falls = _first(offsets[1:] < offsets[:-1])
    if falls is not None:
        raise ProgramError(source, f"command {falls}: its dependencies end before they begin; expected rising offsets")
    at = _first(sources >= len(program.commands))
    if at is not None:
        user = int(np.searchsorted(offsets, at, "right")) - 1
        raise ProgramError(
            source, f"command {user}: depends on command {sources[at]}; expected below {len(program.commands)}"
        )


def _first(bad: npt.NDArray[np.bool_]) -> int | None:
    return int(bad.argmax()) if bad.any() else None
