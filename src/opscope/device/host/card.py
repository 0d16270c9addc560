"""Programs on one card, with the host around them: when each inference ran, and what those that are profiled did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import floor

import numpy as np

from ...options import RunOptions
from ...program.clock import at_clock
from ...program.program import Program
from ...recording.host_times import HostTimes, Rows
from ...simulation import Timeline, simulate
from ...simulation.together import Ran, stage_share
from ..variation import least_factor
from .contention import Contention, Key, later
from .pace import Pace
from .pipeline import Guest, Pipeline, Progress
from .sampling import Sampling, choose_samples
from .sharing import share_card

_TURNS = 4  # of the host's pipeline and the event loop, each with what the other found
_CLOSE = 0.005  # of the time: two turns that are no farther apart agree

Ticks = Mapping[Key, int]


class Card:
    """Every program has as many activations; what runs at once shares the memory of its devices, and all the link.

    Where activations share devices, the first inferences of a run and those that are profiled are simulated in full,
    beside those that are there at the same time, and take what that takes. The others take the steady time of their
    program, with seeded variation.
    """

    def __init__(self, programs: Sequence[Program], options: RunOptions) -> None:
        self.programs, self.options = programs, options
        self.slots = share_card(programs, options.activations)
        self.contention = Contention(programs, self.slots, options)
        self.holds = [stage_share(program, seed=options.seed) for program in programs]
        self.least = [least_factor(program) for program in programs]
        self.paces = self._alone()
        if self.contention.shared and all(pace.cycles for pace in self.paces):
            self.paces = self._beside_each_other()
        self.samplings: list[Sampling] = []
        self.ran: dict[Key, Ran] = {}
        self.found: list[HostTimes] = []

    def times(self, progress: Progress | None = None) -> list[HostTimes]:
        """The times of every inference of every program; what is profiled, and what it did, is known then."""
        if not self.found:
            self.found = self._run(progress)
        return self.found

    def _alone(self) -> list[Pace]:
        seed = self.options.seed
        found = []
        for program, least in zip(self.programs, self.least, strict=True):
            fast = at_clock(program, 1.0 / least)
            cycles, fastest = (simulate(each, seed=seed).total_cycles for each in (program, fast))
            found.append(Pace(program, cycles, fastest / fast.clock_hz, seed=seed))
        return found

    def _beside_each_other(self) -> list[Pace]:
        """The paces of inferences in a long run, beside those that are there with them."""
        contention, told = self.contention, dict[Key, int]()
        usual = [pace.steady_s for pace in self.paces]
        for _ in range(_TURNS):
            options = contention.long_enough(usual)
            times = Pipeline(self._guests(told), options).run()
            ran = contention.from_start(times, self._factor)
            told, before = {key: self._ticks(key, each) for key, each in ran.items()}, usual
            usual = contention.usual_s(ran, before)
            if all(abs(new / old - 1) <= _CLOSE for new, old in zip(usual, before, strict=True)):
                break
        ran = contention.from_start(times, lambda key: self.least[key[0]])
        fastest = contention.usual_s(ran, usual)
        each = zip(self.programs, usual, fastest, strict=True)
        return [Pace(program, own * program.clock_hz, fast, seed=self.options.seed) for program, own, fast in each]

    def _run(self, progress: Progress | None) -> list[HostTimes]:
        told: dict[Key, int] = {}
        times = Pipeline(self._guests(told), self.options, progress=progress).run()
        chosen = [choose_samples(each, self.options) for each in times]
        keys = {key for number, sampling in enumerate(chosen) for key in _keys(number, sampling)}
        for _ in range(_TURNS if self.contention.shared else 0):
            self.ran = self.contention.from_start(times, self._factor)
            self.ran |= self.contention.beside_others(times, keys - self.ran.keys(), self._factor)
            found = {key: self._ticks(key, each) for key, each in self.ran.items()}
            if found == told:
                break
            told = found
            times = Pipeline(self._guests(told), self.options).run()
        pairs = zip(chosen, times, strict=True)
        self.samplings = [replace(sampling, rows=_rows_of(sampling, each)) for sampling, each in pairs]
        return times

    def timeline(self, number: int, activation: int, inference: int) -> tuple[Program, Timeline]:
        """A profiled inference of a program in full, and the program at the clock that its cycles are of."""
        key = number, activation, inference
        if key not in self.ran:
            return self.paces[number].timeline(self.number(*key))
        ran = self.ran[key]
        clocked = replace(self.programs[number], clock_hz=ran.clock_hz)
        return clocked, replace(ran.timeline, inference=self.number(*key))

    def simulated(self, number: int) -> int:
        """How many inferences of a program were simulated beside others."""
        return sum(key[0] == number for key in self.ran)

    def typical(self, number: int) -> Rows:
        """The inference of the first activation whose time is next to the steady time, once all have settled."""
        rows, pace = self.times()[number].of_activation(0), self.paces[number]
        known = [key[2] for key in later(self.ran) if key[:2] == (number, 0)]
        rows = rows[np.isin(rows["inference"], known)] if known else rows
        off = np.abs(rows["exec_ticks"] - pace.steady_s * pace.program.stats_hz)
        return rows[off.argmin() :][:1]

    def number(self, program: int, activation: int, inference: int) -> int:
        """What an inference draws its variation by."""
        return (program * self.options.activations + activation) << 32 | inference

    def _factor(self, key: Key) -> float:
        return self.paces[key[0]].factor(self.number(*key))

    def _ticks(self, key: Key, ran: Ran) -> int:
        """Of an inference that was simulated, counted as the device does."""
        return floor(ran.timeline.total_cycles * (self.programs[key[0]].stats_hz / ran.clock_hz))

    def _guests(self, told: Ticks) -> list[Guest]:
        """Programs whose inferences take the ticks that are told, and else those of the pace of their program."""

        def ticks(program: int, activation: int, inference: int) -> int:
            key = program, activation % self.options.activations, inference
            return told[key] if key in told else self.paces[program].ticks(activation << 32 | inference)

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
