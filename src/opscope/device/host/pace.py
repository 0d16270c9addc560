"""How long each inference of a run takes on the device: the steady time, varied, and never beyond what is possible.

An inference that is slower than the steady one is slower in everything. One that is faster has a faster core clock:
memories and links keep their bytes per second, so it gains only what it spends on the clock. With a spread of 2 %, a
draw of −6 % takes 6 % off a program that only computes, and nothing off one that only streams its weights.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import floor

from ...program.clock import at_clock
from ...program.program import Program
from ...simulation import Timeline, simulate
from ..variation import least_factor, vary

_INTO_TICK = 1e-6  # so that rounding cannot take a time to the tick before
_ALIKE = 1 + 1e-9  # times that differ by rounding alone


class Pace:
    """The times of a program's inferences, for one seed."""

    def __init__(self, program: Program, steady_cycles: float, fastest_s: float, *, seed: int) -> None:
        """Cycles are of an inference at the nominal clock, seconds of one at the fastest of all.

        Both are beside whatever runs at the same time: where that has a memory busy, a faster clock gains nothing.
        """
        self.program, self.cycles, self.seed = program, steady_cycles, seed
        self.steady_s = steady_cycles / program.clock_hz
        self.fastest_s = min(fastest_s, self.steady_s)

    def ticks(self, number: int) -> int:
        """Ticks of an inference, counted as the device does, so that captures agree with it."""
        factor = self.factor(number)
        if factor >= 1.0:
            return floor(self.cycles * (self.program.stats_hz / (self.program.clock_hz / factor)))
        return floor(self._seconds(factor) * self.program.stats_hz)

    def timeline(self, number: int) -> tuple[Program, Timeline]:
        """One inference in full that nothing runs beside, and the program at the clock that its cycles are of."""
        factor = self.factor(number)
        if factor >= 1.0:
            clocked = replace(self.program, clock_hz=self.program.clock_hz / factor)
            return clocked, simulate(clocked, seed=self.seed, inference=number)
        seconds = max(self._seconds(factor), (self.ticks(number) + _INTO_TICK) / self.program.stats_hz)
        clocked, timeline = self._no_longer_than(seconds, factor, number)
        return replace(clocked, clock_hz=max(timeline.total_cycles, 1.0) / seconds), timeline

    def _no_longer_than(self, seconds: float, factor: float, number: int) -> tuple[Program, Timeline]:
        """An inference that can be stretched to so many seconds: at its own clock, the fastest, or the nominal one.

        Who meets whom on the way to a memory may change with the clock, so that at a faster one all of it takes longer.
        """
        tried = ((clocked, simulate(clocked, seed=self.seed, inference=number)) for clocked in self._clocked(factor))
        return next(
            (each for each in tried if each[1].total_cycles <= seconds * each[0].clock_hz * _ALIKE),
            (self.program, simulate(self.program, seed=self.seed, inference=number)),
        )

    def _clocked(self, factor: float) -> Iterator[Program]:
        for each in (factor, least_factor(self.program)):
            yield at_clock(self.program, 1.0 / each)

    def factor(self, number: int) -> float:
        """The time of an inference as a multiple of the steady one, were all of it on the core clock."""
        return vary(self.program, seed=self.seed, inference=number)

    def _seconds(self, factor: float) -> float:
        """Of an inference that is faster than the steady one: in proportion between it and the fastest of all.

        With an order of events that stays, time is a convex function of the clock, the longest of paths each of which
        is a sum of cycles and seconds: what lies between two points of it is no faster than what the device can do.
        """
        share = (1.0 - factor) / (1.0 - least_factor(self.program))
        return self.steady_s + share * (self.fastest_s - self.steady_s)
