"""Limits that keep a damaged or hostile program file from doing harm, beyond the device's own checks."""

from __future__ import annotations

import numpy as np

from ...core.errors import ProgramError
from ...program.program import Program

LONGEST_SECONDS = 1e4  # of one inference
_MOST_16, _MOST_32 = 0xFFFF, 0xFFFFFFFF  # widths of fields in a stats buffer


def check_limits(program: Program, *, source: str) -> None:
    """Raise ProgramError if a figure of the program is out of range, or if it does nothing."""
    if not len(program.commands):
        raise ProgramError(source, "has no commands; expected a program that does something: compile the model again")
    used, events = len(np.unique(program.commands["device"])), len(program.stats.events)
    for name, value, low, high in (
        ("devices", program.devices, 1, _MOST_16),
        ("devices", program.devices, 1, max(1, used)),  # as many as have commands
        ("cores", program.cores, 1, _MOST_16),
        ("clock_hz", program.clock_hz, 1e3, 1e12),
        ("stats_hz", program.stats_hz, 1e3, 1e9),
        ("stats.level", program.stats.level, 0, _MOST_16),
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
