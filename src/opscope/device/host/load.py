"""When inferences are on a card, and how much of its memories they ask for together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...core.columns import Numbers
from ...program.program import NO_ROUTE, Program
from ...recording.host_times import HostTimes
from .sharing import Slot

Key = tuple[int, int, int]  # program, activation of it, inference


@dataclass(frozen=True, slots=True)
class Stays:
    """Inferences on the card, one per row: from when to when they are there."""

    program: Numbers
    activation: Numbers
    inference: Numbers
    start: Numbers  # ns
    end: Numbers

    @classmethod
    def of(cls, times: Sequence[HostTimes]) -> Stays:
        """Of all programs, in order of their starts."""
        program = np.repeat(np.arange(len(times)), [len(each.rows) for each in times])
        rows = np.concatenate([each.rows for each in times])
        names = ("activation", "inference", "started_ns", "ended_ns")
        columns = (program, *(rows[name].astype(np.int64) for name in names))
        order = np.lexsort((program, columns[3]))
        return cls(*(column[order] for column in columns))

    def overlapping(self, start: int, end: int) -> Numbers:
        """Rows that are there at some time in between."""
        return np.flatnonzero((self.start < end) & (self.end > start))

    @property
    def all_begun_s(self) -> float:
        """From when on every activation has begun."""
        _, first = np.unique(self.program << 32 | self.activation, return_index=True)  # rows are in order of starts
        return float(self.start[first].max()) / 1e9 if len(first) else 0.0

    def key(self, row: int) -> Key:
        return int(self.program[row]), int(self.activation[row]), int(self.inference[row])


def loads(
    programs: Sequence[Program], slots: Sequence[Sequence[Slot]], stays: Stays, window_ns: tuple[float, float]
) -> list[float]:
    """Of every program, what is asked of the busiest memory that it uses, as a multiple of what that has.

    Overload builds up over many inferences, so that the few of one event loop do not show it. Who asks for less than
    its equal part gets that, however much others want: its load is none.
    """
    asked: Counter[tuple[int, int, int]] = Counter()  # device of the card, pool, program → bytes in the window
    first, last = window_ns
    inside = np.clip(np.minimum(stays.end, last) - np.maximum(stays.start, first), 0.0, None)
    parts = inside / np.maximum(stays.end - stays.start, 1)
    bytes_of = [_bytes_of(program) for program in programs]
    for program, own in enumerate(slots):
        mine = stays.program == program
        counts = np.bincount(stays.activation[mine] % len(own), parts[mine], minlength=len(own))
        for slot, count in zip(own, counts.tolist(), strict=True):
            for (device, pool), size in bytes_of[program].items():
                asked[slot.device + device, pool, program] += size * count
    found = [0.0] * len(programs)
    for device, pool in {key[:2] for key in asked}:
        rate = programs[0].pool_rate(pool) * programs[0].clock_hz * (last - first) / 1e9
        here = {program: size for (where, which, program), size in asked.items() if (where, which) == (device, pool)}
        at_once = {program: _on(device, slots[program], stays, program, programs[program].devices) for program in here}
        for program, size in here.items():
            if size * sum(at_once.values()) >= rate * at_once[program]:
                found[program] = max(found[program], sum(here.values()) / rate)
    return found


def _bytes_of(program: Program) -> Counter[tuple[int, int]]:
    """Bytes that an inference moves, by device and pool of routes."""
    found: Counter[tuple[int, int]] = Counter()
    pools = program.pool_of_routes()
    for device in range(program.devices):
        here = program.commands[(program.commands["device"] == device) & (program.commands["route"] != NO_ROUTE)]
        sums = np.bincount(here["route"], here["moved_bytes"].astype(np.float64), minlength=len(pools))
        for route, size in enumerate(sums.tolist()):
            if size:
                found[device, pools[route]] += size
    return found


def _on(device: int, slots: Sequence[Slot], stays: Stays, program: int, devices: int) -> int:
    """Slots of a program on a device that are ever used."""
    used = set((stays.activation[stays.program == program] % len(slots)).tolist())
    return sum(slots[number].device <= device < slots[number].device + devices for number in used)
