"""The time that no execution of a program can beat: its bytes and its MACs, at the peaks of the machine."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

import numpy as np

from .program import Program


def least_seconds(program: Program) -> float:
    """Of the memory, or the unit, that would be busy longest if it were never idle; 0 where peaks are not known."""
    return max((*_of_memories(program), *_of_units(program)), default=0.0)


def _of_memories(program: Program) -> Iterator[float]:
    """Reads and writes of a memory take their time at its peak, on every device or, of a local one, on every core."""
    table, cores = program.commands, program.cores
    served = {number: program.memory_name(route.memory) for number, route in enumerate(program.routes)}
    for memory in () if program.bounds is None else program.bounds.memories:
        routes = [number for number, name in served.items() if name and name == memory.name]
        moves = np.isin(table["route"], routes)
        if memory.rate is not None and moves.any():
            owner = table["device"][moves].astype(np.int64) * cores + (table["core"][moves] if memory.per_core else 0)
            most = np.bincount(owner, table["moved_bytes"][moves]).max()
            yield float(most) / memory.rate.per_second(program.clock_hz)


def _of_units(program: Program) -> Iterator[float]:
    """MACs of a unit take their time at its peak, in the fastest of the data types that the program has."""
    table, used = program.commands, program.simulation.get("macs_per_cycle", inf)
    peaks = {} if program.bounds is None else {unit.name: unit for unit in program.bounds.units}
    for number, group in enumerate(program.groups):
        computes = (table["group"] == number) & (table["macs"] > 0)
        if group.name in peaks and computes.any():
            owner = table["device"][computes].astype(np.int64) * program.cores + table["core"][computes]
            most = np.bincount(owner, table["macs"][computes]).max()
            yield float(most) / min(used, max(peaks[group.name].macs_per_cycle.values())) / program.clock_hz
