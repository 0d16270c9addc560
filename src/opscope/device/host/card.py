"""Programs on one card, with the host around them: when each inference ran, and what those that are profiled did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import floor

import numpy as np

from ...options import RunOptions
from ...program.program import Program
from ...recording.host_times import HostTimes, Rows
from ...simulation import Timeline
from ...simulation.together import Ran, stage_share
from ..variation import least_factor
from .contention import Contention
from .load import Key
from .pace import Pace
from .pipeline import Guest, Pipeline, Progress
from .sampling import Sampling, choose_samples
from .sharing import share_card

_ROUNDS = 4


class Card:
    """Every program has as many activations; what runs at once shares the memory of its devices, and all the link.

    Profiled inferences are simulated in full, beside those that are there at the same time, and take what that takes.
    The others take the steady time of their program, with seeded variation.
    """

    def __init__(self, programs: Sequence[Program], options: RunOptions) -> None:
        self.programs, self.options = programs, options
        self.slots = share_card(programs, options.activations)
        self.contention = Contention(programs, self.slots, options)
        self.holds = [stage_share(program, seed=options.seed) for program in programs]
        alike = [1.0] * len(programs)
        least = [least_factor(program) for program in programs]
        steady, fastest = (self.contention.steady_cycles(self._starts, factors) for factors in (alike, least))
        self.paces = [
            Pace(program, cycles, quick / (program.clock_hz / factor), seed=options.seed)
            for program, cycles, quick, factor in zip(programs, steady, fastest, least, strict=True)
        ]
        self.samplings: list[Sampling] = []
        self.ran: dict[Key, Ran] = {}
        self.found: list[HostTimes] = []

    def times(self, progress: Progress | None = None) -> list[HostTimes]:
        """The times of every inference of every program; what is profiled, and what it did, is known then."""
        if not self.found:
            self.found = self._run(progress)
        return self.found

    def _run(self, progress: Progress | None) -> list[HostTimes]:
        told: dict[Key, int] = {}
        times = Pipeline(self._guests(self.paces, told), self.options, progress=progress).run()
        chosen = [choose_samples(each, self.options) for each in times]
        keys = [key for number, sampling in enumerate(chosen) for key in _keys(number, sampling)]
        for _ in range(_ROUNDS if self.contention.shared else 0):
            factors = {key: self.paces[key[0]].factor(self.number(*key)) for key in keys}
            self.ran = dict(self.contention.sampled(times, factors))
            found = {key: self._ticks(key) for key in keys}
            if found == told:
                break
            told = found
            times = Pipeline(self._guests(self.paces, told), self.options).run()
        pairs = zip(chosen, times, strict=True)
        self.samplings = [replace(sampling, rows=_rows_of(sampling, each)) for sampling, each in pairs]
        return times

    def timeline(self, number: int, activation: int, inference: int) -> tuple[Program, Timeline]:
        """A profiled inference of a program in full, and the program at the clock that its cycles are of."""
        key = number, activation, inference
        if key not in self.ran:
            return self.paces[number].timeline(self.number(*key))
        timeline = replace(self.ran[key].timeline, inference=self.number(*key))
        return self._clocked(key), timeline

    def number(self, program: int, activation: int, inference: int) -> int:
        """What an inference draws its variation by."""
        return (program * self.options.activations + activation) << 32 | inference

    def _ticks(self, key: Key) -> int:
        """Of a profiled inference, counted as the device does."""
        clocked = self._clocked(key)
        return floor(self.ran[key].timeline.total_cycles * (clocked.stats_hz / clocked.clock_hz))

    def _clocked(self, key: Key) -> Program:
        program, factor = self.programs[key[0]], self.paces[key[0]].factor(self.number(*key))
        return replace(program, clock_hz=program.clock_hz / factor)

    def _starts(self, options: RunOptions, seconds: Sequence[float], within_s: float) -> list[HostTimes]:
        each = zip(self.programs, seconds, strict=True)
        paces = [Pace(program, own * program.clock_hz, own, seed=options.seed) for program, own in each]
        count = len(self.programs) * options.activations
        begins_ns = [round(number / count * within_s * 1e9) for number in range(count)]
        return Pipeline(self._guests(paces, {}), options, begins_ns=begins_ns).run()

    def _guests(self, paces: Sequence[Pace], told: Mapping[Key, int]) -> list[Guest]:
        """Programs whose inferences take the ticks that are told, and else those of the pace of their program."""

        def ticks(program: int, activation: int, inference: int) -> int:
            key = program, activation % self.options.activations, inference
            return told[key] if key in told else paces[program].ticks(activation << 32 | inference)

        each = enumerate(zip(self.programs, self.slots, self.holds, strict=True))
        return [
            Guest(program, len(own), partial(ticks, number), [slot.device for slot in own], holds)
            for number, (program, own, holds) in each
        ]


def _keys(number: int, sampling: Sampling) -> list[Key]:
    rows = np.concatenate(sampling.rows)
    return [(number, *pair) for pair in zip(rows["activation"].tolist(), rows["inference"].tolist(), strict=True)]


def _rows_of(sampling: Sampling, times: HostTimes) -> tuple[Rows, ...]:
    """The same inferences as they ran in the end."""
    own = [times.of_activation(activation) for activation in range(len(sampling.rows))]
    return tuple(
        mine[np.isin(mine["inference"], rows["inference"])] for mine, rows in zip(own, sampling.rows, strict=True)
    )
