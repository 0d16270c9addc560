"""What inferences cost each other: those that the host has on a card at once, in one event loop.

How far they overlap, and whose transfers meet, follows from when the host's pipeline starts them; and when it starts
them follows from how long they take. Both are repeated until they agree: a guess of the times gives starts, inferences
simulated together from these starts give times, and so on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import fmean

import numpy as np
import numpy.typing as npt

from ...core.columns import Numbers
from ...options import RunOptions
from ...program.clock import at_clock
from ...program.program import Program
from ...recording.host_times import HostTimes
from ...simulation import simulate
from ...simulation.together import NOTHING_BEFORE, Begun, Ran, Together
from .load import Key, Stays, loads
from .sharing import Slot
from .stage_times import StageSource

_ROUNDS = 8
_CLOSE = 0.005  # of the time: two rounds that are no farther apart agree
_MOST_COMMANDS = 4_000_000  # in one event loop, which takes some hundred bytes for each

Starts = (
    Callable[  # of a run whose activations begin within some time: from the seconds of an inference of each program
        [RunOptions, Sequence[float], float], list[HostTimes]
    ]
)


@dataclass(frozen=True, slots=True)
class _Lengths:
    """Cycles of the inferences of one program: those in the middle of a run, and those at its edges.

    At an edge neighbours are missing: they count only where there was no room for more than them.
    """

    inside: list[float]
    at_edges: list[float]

    def add(self, cycles: float, *, inside: bool) -> None:
        (self.inside if inside else self.at_edges).append(cycles)

    def mean(self, before: float) -> float:
        return fmean(self.inside or self.at_edges or [before])


class Contention:
    """The programs of a card, each on its slots."""

    def __init__(self, programs: Sequence[Program], slots: Sequence[Sequence[Slot]], options: RunOptions) -> None:
        self.programs, self.slots, self.options = programs, slots, options

    @property
    def shared(self) -> bool:
        """Whether two activations are ever at once on the same devices."""
        used = [slot.device for own in self.slots for slot in own[: self.options.activations]]
        return len(used) > len(set(used))

    def steady_cycles(self, starts: Starts, factors: Sequence[float]) -> list[float]:
        """Cycles of an inference of each program in the middle of a run, beside those that are there with it.

        All inferences of a program take the same multiple of the usual time; cycles are of the clock at which they do.
        Sought is the time at which inferences that the pipeline begins so far apart take as long. The longer it is, the
        less they overlap; of the two ends of the search the one counts where they take no longer than they are apart:
        together they get no more than there is.
        """
        pairs = list(zip(self.programs, factors, strict=True))
        clocked = [at_clock(program, 1.0 / factor) for program, factor in pairs]
        cycles = [simulate(program, seed=self.options.seed).total_cycles for program in clocked]
        if not self.shared or not all(cycles):
            return cycles
        least, most = self._bracket(starts, cycles, factors)
        for _ in range(_ROUNDS):
            if all(high <= (1 + _CLOSE) * low for low, high in zip(least, most, strict=True)):
                break
            tried = [(low + high) / 2 for low, high in zip(least, most, strict=True)]
            need = self._needed(starts, tried, factors)
            each = list(zip(least, tried, need, most, strict=True))
            least = [low if new <= own else own for low, own, new, _ in each]
            most = [own if new <= own else high for _, own, new, high in each]
        return most

    def _bracket(
        self, starts: Starts, cycles: Sequence[float], factors: Sequence[float]
    ) -> tuple[list[float], list[float]]:
        """The ends of the search: what inferences take alone, and a time that is enough for those of every program."""
        least = most = list(cycles)
        for _ in range(_ROUNDS):
            need = self._needed(starts, most, factors)
            each = list(zip(least, most, need, strict=True))
            least = [low if new <= own else own for low, own, new in each]
            most = [max(own, new) for _, own, new in each]
            if all(new <= (1 + _CLOSE) * own for _, own, new in each):
                break
        return least, most

    def _needed(self, starts: Starts, cycles: Sequence[float], factors: Sequence[float]) -> list[float]:
        """What inferences take that are so far apart, and more where that asks memories for more than they have."""
        found, asked = self._measured(starts, cycles, factors)
        return [max(new, own * load) for new, own, load in zip(found, cycles, asked, strict=True)]

    def sampled(self, times: Sequence[HostTimes], chosen: Mapping[Key, float]) -> Iterator[tuple[Key, Ran]]:
        """The chosen inferences, each of its multiple of the usual time, beside all that are there with them."""
        stays = Stays.of(times)
        rows = np.array([row for row in range(len(stays.start)) if stays.key(row) in chosen], np.int64)
        for batch in self._batches(stays, rows):
            near = np.unique(np.concatenate([stays.overlapping(stays.start[row], stays.end[row]) for row in batch]))
            near = np.union1d(near, batch)
            factors = [chosen.get(stays.key(row), 1.0) for row in near.tolist()]
            ran = self._together.simulate(self._as_they_began(stays, near, factors, np.isin(near, batch)))
            yield from ((stays.key(row), each) for row, each in zip(near.tolist(), ran, strict=True) if row in batch)

    @cached_property
    def _together(self) -> Together:
        return Together(self.programs, seed=self.options.seed)

    def _measured(
        self, starts: Starts, cycles: Sequence[float], factors: Sequence[float]
    ) -> tuple[list[float], list[float]]:
        """Mean of the inferences in the middle of a run, as long as several of the longest; and the load of memories.

        Activations begin one after the other within the time of the longest. What begins at once stays in step for
        hundreds of inferences, and would say what the same bursts cost that all have at the same moment. Each begins
        when the pipeline begins it, or later where its cores are not free by then.
        """
        clocks = [program.clock_hz / factor for program, factor in zip(self.programs, factors, strict=True)]
        seconds = [own / clock for own, clock in zip(cycles, clocks, strict=True)]
        unit_s = self._round_trip_s(seconds)
        begin_s = 2 * unit_s
        while True:
            stays = Stays.of(starts(self._for_seconds(begin_s + 4 * unit_s), seconds, unit_s))
            if stays.all_begun_s > begin_s:  # the link is busy for longer with what is asked for at first
                begin_s = stays.all_begun_s
                continue
            near = stays.overlapping(round(1e9 * begin_s), round(1e9 * (begin_s + 3 * unit_s)))
            taken = self._affordable(stays, near)
            ran = self._at_paces(stays, taken, factors)
            found = [_Lengths([], []) for _ in self.programs]
            for row, one in zip(taken.tolist(), ran, strict=True):
                program = int(stays.program[row])
                start_s = one.start_s + int(stays.start[taken].min()) / 1e9
                end_s = start_s + one.timeline.total_cycles / clocks[program]
                inside = begin_s <= start_s and end_s <= begin_s + 2 * unit_s
                found[program].add(one.timeline.total_cycles, inside=inside)
            if all(own.inside for own in found) or len(taken) < len(near):
                lengths = [own.mean(before) for own, before in zip(found, cycles, strict=True)]
                return lengths, loads(self.programs, self.slots, stays, (1e9 * begin_s, 1e9 * (begin_s + 2 * unit_s)))
            unit_s *= 2

    def _at_paces(self, stays: Stays, rows: Numbers, factors: Sequence[float]) -> list[Ran]:
        paced = [factors[program] for program in stays.program[rows].tolist()]
        return self._together.simulate(self._as_they_began(stays, rows, paced, np.ones(len(rows), np.bool_)))

    def _round_trip_s(self, seconds: Sequence[float]) -> float:
        """What the slowest of all inferences takes with the host's part, and its turn among those of its slot."""

        def of(program: Program, slots: int, own: float) -> float:
            host = StageSource(program, seed=self.options.seed, activation=0).lone_ns(0) / 1e9
            return host + -(-self.options.activations // slots) * own

        each = zip(self.programs, self.slots, seconds, strict=True)
        return max(of(program, len(slots), own) for program, slots, own in each)

    def _for_seconds(self, seconds: float) -> RunOptions:
        on_their_way = min(self.options.set_size, self.options.limit)
        return replace(self.options, num_iter=None, time=seconds, set_size=on_their_way, profile=())

    def _affordable(self, stays: Stays, rows: Numbers) -> Numbers:
        """The first of them, no more than one event loop has room for."""
        sizes = np.array([len(program.commands) for program in self.programs])[stays.program[rows]]
        return rows[np.cumsum(sizes) <= _MOST_COMMANDS]

    def _batches(self, stays: Stays, rows: Numbers) -> Iterator[Numbers]:
        """Rows in order of their starts, as many at a time as leave room for what overlaps them."""
        sizes = np.array([len(program.commands) for program in self.programs])[stays.program[rows]]
        number = np.cumsum(sizes) // (_MOST_COMMANDS // 2)
        for each in np.unique(number).tolist():
            yield rows[number == each]

    def _as_they_began(
        self, stays: Stays, rows: Numbers, factors: Sequence[float], chosen: npt.NDArray[np.bool_]
    ) -> list[Begun]:
        """Each when the pipeline began it; one that is chosen waits for the chosen one before it on its slot."""
        before: dict[tuple[int, int], int] = {}
        origin, found = int(stays.start[rows].min()), []
        for place, (row, factor) in enumerate(zip(rows.tolist(), factors, strict=True)):
            program, slot = self._slot(stays, row)
            after = before.get((program, slot), NOTHING_BEFORE) if chosen[place] else NOTHING_BEFORE
            start_s = (int(stays.start[row]) - origin) / 1e9
            found.append(Begun(program, self.slots[program][slot].device, start_s, factor, after))
            if chosen[place]:
                before[program, slot] = place
        return found

    def _slot(self, stays: Stays, row: int) -> tuple[int, int]:
        program, activation, _ = stays.key(row)
        return program, activation % len(self.slots[program])
