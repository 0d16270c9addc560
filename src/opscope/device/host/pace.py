"""How long each inference of a run takes on the device: the steady time, varied, and never beyond what is possible.

An inference that is slower than the steady one is slower in everything. One that is faster has a faster core clock:
memories and links keep their bytes per second, so it gains only what it spends on the clock. With a spread of 2 %, a
draw of −6 % takes 6 % off a program that only computes, and nothing off one that only streams its weights.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from math import floor

from ...program.clock import at_clock
from ...program.program import Program
from ..simulator.simulate import Timeline, simulate
from ..simulator.variation import least_factor, vary

_INTO_TICK = 1e-6  # so that rounding cannot take a time to the tick before


class Pace:
    """The times of a program's inferences, for one seed."""

    def __init__(self, program: Program, steady_cycles: float, *, seed: int) -> None:
        """`steady_cycles` are those of an inference at the nominal clock."""
        self.program, self.cycles, self.seed = program, steady_cycles, seed

    def ticks(self, number: int) -> int:
        """Ticks of an inference, counted as the device does, so that captures agree with it."""
        factor = self._factor(number)
        if factor >= 1.0:
            return floor(self.cycles * (self.program.stats_hz / (self.program.clock_hz / factor)))
        return floor(self._seconds(factor) * self.program.stats_hz)

    def timeline(self, number: int) -> tuple[Program, Timeline]:
        """One inference in full, and the program at the clock that its cycles are of."""
        factor = self._factor(number)
        if factor >= 1.0:
            clocked = replace(self.program, clock_hz=self.program.clock_hz / factor)
            return clocked, simulate(clocked, seed=self.seed, inference=number)
        faster = at_clock(self.program, 1.0 / factor)
        timeline = simulate(faster, seed=self.seed, inference=number)
        hz = faster.stats_hz
        seconds = max(self._seconds(factor), (self.ticks(number) + _INTO_TICK) / hz)
        return replace(faster, clock_hz=max(timeline.total_cycles, 1.0) / seconds), timeline

    def _factor(self, number: int) -> float:
        return vary(self.program, seed=self.seed, inference=number)

    def _seconds(self, factor: float) -> float:
        """Of an inference that is faster than the steady one: in proportion between it and the fastest of all.

        Time is a convex function of the clock, since it is the longest of paths each of which is a sum of cycles and
        seconds: so what lies between two points of it is never faster than what the device can do.
        """
        nominal = self.cycles / self.program.clock_hz
        share = (1.0 - factor) / (1.0 - least_factor(self.program))
        return nominal + share * (min(self._fastest_seconds, nominal) - nominal)

    @cached_property
    def _fastest_seconds(self) -> float:
        program = at_clock(self.program, 1.0 / least_factor(self.program))
        return simulate(program, seed=self.seed).total_cycles / program.clock_hz
