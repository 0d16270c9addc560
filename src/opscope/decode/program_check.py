"""Is a program one that can be decoded with? Every index in it is checked once, so that no file can do harm."""

from __future__ import annotations

from math import isfinite

import numpy as np

from ..errors import ProgramError
from ..program import NO_OP, NO_ROUTE, Program

_MOST = 0xFFFF  # devices, cores and threads are 16 bits wide in a stats buffer


def check_program(program: Program, *, source: str) -> None:
    """Raise ProgramError where a count, rate or index of the program is impossible."""
    threads = sum(group.threads for group in program.groups)
    for name, value in (("devices", program.devices), ("cores", program.cores), ("threads", threads)):
        if not 1 <= value <= _MOST:
            raise ProgramError(source, f"{name} is {value}; expected 1 to {_MOST}")
    if min(group.threads for group in program.groups) < 1:
        raise ProgramError(source, "a thread group has no threads; expected at least one")
    if program.lanes > len(program.commands) + 2**20:
        raise ProgramError(source, f"{program.lanes} lanes for {len(program.commands)} commands; expected no more")
    for name, rate in (("clock_hz", program.clock_hz), ("stats_hz", program.stats_hz)):
        if not (isfinite(rate) and rate > 0):
            raise ProgramError(source, f"{name} is {rate}; expected a positive number")
    _check_columns(program, source)
    _check_order(program, source)
    _check_dependencies(program, source)


def _check_columns(program: Program, source: str) -> None:
    limits = (
        ("device", 0, program.devices),
        ("core", 0, program.cores),
        ("group", 0, len(program.groups)),
        ("route", NO_ROUTE, len(program.routes)),
        ("kind", 0, len(program.kinds)),
        ("op", NO_OP, len(program.ops)),
        ("detail", 0, len(program.details)),
    )
    for name, low, end in limits:
        column = program.commands[name].astype(np.int64)
        bad = (column < low) | (column >= end)
        if bad.any():
            at = int(bad.argmax())
            raise ProgramError(source, f"command {at}: {name} is {column[at]}; expected {low} to {end - 1}")


def _check_order(program: Program, source: str) -> None:
    lanes = program.lane_of_commands()
    first = np.searchsorted(lanes, lanes)
    place = np.arange(len(lanes)) - first
    bad = (np.diff(lanes, prepend=0) < 0) | (program.commands["ordinal"] != place)
    if bad.any():
        at = int(bad.argmax())
        raise ProgramError(
            source, f"command {at}: out of order; expected commands sorted by device, core, group, ordinal"
        )


def _check_dependencies(program: Program, source: str) -> None:
    offsets, sources = program.dependency_offsets.astype(np.int64), program.dependency_sources
    whole = int(offsets[0]) == 0 and int(offsets[-1]) == len(sources) == len(program.dependency_kinds)
    if not whole or bool((np.diff(offsets) < 0).any()):
        raise ProgramError(
            source, f"dependency_offsets do not divide {len(sources)} dependencies; expected rising offsets"
        )
    if len(sources) and int(sources.max()) >= len(program.commands):
        raise ProgramError(
            source, f"a dependency on command {int(sources.max())}; the program has {len(program.commands)}"
        )
