"""What inferences cost each other: those that the host has on a card at once, in one event loop.

An inference begins when its inputs are there and its cores are free. How long after the results that its application
waited for its inputs are there is the host's to say: it is taken from a run of the host's pipeline. When it begins
follows in the event loop, so that no memory is ever asked for more than it has:

    pipeline      results of inference 3 ── 270 us ──▶ inputs of inference 4
    event loop    … inference 3 ends ────── 270 us ──▶ inference 4 begins …

Activations that begin together do not stay together, nor do those that begin apart stay apart: whoever meets others
at a memory is held up, and whoever comes behind catches up. How they lie to each other after many inferences does not
depend on how they began, so what an inference takes in a long run is the mean over the later ones of those simulated.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import fmean

import numpy as np

from ...core.columns import Numbers
from ...options import RunOptions
from ...program.program import Program
from ...recording.host_times import HostTimes
from ...simulation.together import NOTHING_BEFORE, Begun, Ran, Together
from .sharing import Slot
from .stage_times import StageSource

_LEAST_ROUNDS, _MOST_ROUNDS = 4, 128  # inferences of every activation in one event loop, from the start of a run
_COMMANDS = 300_000  # that many rounds have, where that is no fewer or more of them
_MOST_COMMANDS = 4_000_000  # in one event loop, which takes some hundred bytes for each

Key = tuple[int, int, int]  # program, activation of it, inference
Factor = Callable[[Key], float]  # the time of an inference as a multiple of the usual one


@dataclass(frozen=True, slots=True)
class _Stays:
    """Inferences on the card in the order in which they began, one per row; times are in ns."""

    program: Numbers
    activation: Numbers
    inference: Numbers
    turn: Numbers  # how many of the activation began before
    arrived: Numbers
    start: Numbers
    end: Numbers

    @classmethod
    def of(cls, times: Sequence[HostTimes]) -> _Stays:
        """Of all programs."""
        program = np.repeat(np.arange(len(times)), [len(each.rows) for each in times])
        rows = np.concatenate([each.rows for each in times])
        names = ("activation", "inference", "arrived_ns", "started_ns", "ended_ns")
        order = np.lexsort((program, rows["started_ns"]))
        own = program[order]
        activation, inference, arrived, start, end = (rows[name][order].astype(np.int64) for name in names)
        return cls(own, activation, inference, _turns(own << 32 | activation), arrived, start, end)

    def key(self, row: int) -> Key:
        return int(self.program[row]), int(self.activation[row]), int(self.inference[row])

    def beside(self, rows: Numbers) -> Numbers:
        """These rows, and all that are there at the same time as one of them."""
        found = [np.flatnonzero((self.start < self.end[row]) & (self.end > self.start[row])) for row in rows]
        return np.union1d(rows, np.concatenate(found))


class Contention:
    """The programs of a card, each on its slots."""

    def __init__(self, programs: Sequence[Program], slots: Sequence[Sequence[Slot]], options: RunOptions) -> None:
        self.programs, self.slots, self.options = programs, slots, options
        self.sizes = np.array([len(program.commands) for program in programs])

    @property
    def shared(self) -> bool:
        """Whether two activations are ever at once on the same devices."""
        used = [slot.device for own in self.slots for slot in own[: self.options.activations]]
        return len(used) > len(set(used))

    def long_enough(self, seconds: Sequence[float]) -> RunOptions:
        """A run of many rounds of inferences that take so long."""
        round_s = [self._round_s(number, own) for number, own in enumerate(seconds)]
        each = zip(self.sizes.tolist(), round_s, strict=True)
        commands = self.options.activations * sum(size * max(round_s) / own for size, own in each)
        rounds = min(max(_COMMANDS / max(commands, 1.0), _LEAST_ROUNDS), _MOST_ROUNDS)
        return replace(self.options, num_iter=None, time=rounds * max(round_s), profile=())

    def _round_s(self, number: int, seconds: float) -> float:
        """What an inference of a program takes with the host's part, and its turn among those of its slot."""
        host_ns = StageSource(self.programs[number], seed=self.options.seed, activation=0).lone_ns(0)
        return host_ns / 1e9 + -(-self.options.activations // len(self.slots[number])) * seconds

    def from_start(self, times: Sequence[HostTimes], factor: Factor) -> dict[Key, Ran]:
        """The first inferences of a run: as many rounds of all activations as one event loop has room for."""
        stays = _Stays.of(times)
        rows = np.arange(self._room(stays))
        ran = self._simulate(stays, rows, factor)
        last = {self._slot(stays.key(row)): each.start_s + each.seconds for row, each in enumerate(ran)}
        cut = {self._slot(stays.key(row)) for row in range(len(rows), len(stays.start))}
        whole_s = min((last.get(slot, 0.0) for slot in cut), default=float("inf"))  # later, neighbours are missing
        return {stays.key(row): each for row, each in enumerate(ran) if each.start_s + each.seconds <= whole_s}

    def beside_others(
        self, times: Sequence[HostTimes], chosen: Collection[Key], factor: Factor
    ) -> Iterator[tuple[Key, Ran]]:
        """Chosen inferences from anywhere in a run, beside those that the pipeline has there at the same time."""
        stays = _Stays.of(times)
        rows = np.array([row for row in range(len(stays.start)) if stays.key(row) in chosen], np.int64)
        batch = np.cumsum(self.sizes[stays.program[rows]]) // (_MOST_COMMANDS // 2)
        for number in np.unique(batch).tolist():
            near = stays.beside(rows[batch == number])
            ran = zip(near.tolist(), self._simulate(stays, near, factor), strict=True)
            wanted = set(rows[batch == number].tolist())
            yield from ((stays.key(row), each) for row, each in ran if row in wanted)

    def usual_s(self, ran: Mapping[Key, Ran], before: Sequence[float]) -> list[float]:
        """Seconds of an inference of each program: the mean over the later ones, or what it was before."""
        late = later(ran)
        each = [[one.seconds for key, one in late.items() if key[0] == number] for number in range(len(before))]
        return [fmean(own or [known]) for own, known in zip(each, before, strict=True)]

    @cached_property
    def _together(self) -> Together:
        return Together(self.programs, seed=self.options.seed)

    def _room(self, stays: _Stays) -> int:
        """Rows of the first event loop: as many as are wanted, or the first of every slot if that is more."""
        commands = np.cumsum(self.sizes[stays.program])
        wanted = int(np.searchsorted(commands, _COMMANDS, side="right"))
        few = np.flatnonzero(stays.inference < _LEAST_ROUNDS)
        most = int(np.searchsorted(commands, _MOST_COMMANDS, side="right"))
        return max(min(max(wanted, int(few[-1]) + 1), most), 1)

    def _simulate(self, stays: _Stays, rows: Numbers, factor: Factor) -> list[Ran]:
        """One event loop of these rows, in order of their starts."""
        place: dict[Key, int] = {}  # by turns: a request is made when any of those on their way is back
        before: dict[tuple[int, int], int] = {}
        origin, found = int(stays.start[rows].min()), list[Begun]()
        for row in rows.tolist():
            key = program, activation, inference = stays.key(row)
            slot = self._slot(key)
            follows = place.get((program, activation, inference - self.options.set_size), NOTHING_BEFORE)
            since = origin if follows == NOTHING_BEFORE else int(stays.end[rows[follows]])
            ready = stays.start[row] if follows == NOTHING_BEFORE else stays.arrived[row]
            waits_s, after = max(int(ready) - since, 0) / 1e9, before.get(slot, NOTHING_BEFORE)
            device = self.slots[program][slot[1]].device
            found.append(Begun(program, device, waits_s, factor(key), after, follows))
            before[slot] = place[program, activation, int(stays.turn[row])] = len(found) - 1
        return self._together.simulate(found)

    def _slot(self, key: Key) -> tuple[int, int]:
        program, activation, _ = key
        return program, activation % len(self.slots[program])


def later(ran: Mapping[Key, Ran]) -> dict[Key, Ran]:
    """Those that began in the later half of the time; of a program that began none then, all."""
    half_s = max((each.start_s + each.seconds for each in ran.values()), default=0.0) / 2
    late = {key: each for key, each in ran.items() if each.start_s >= half_s}
    known = {key[0] for key in late}
    return late | {key: each for key, each in ran.items() if key[0] not in known}


def _turns(owner: Numbers) -> Numbers:
    """How many rows of the same owner are before each: of [5, 7, 5, 5] it is [0, 0, 1, 2]."""
    order = np.argsort(owner, kind="stable")
    ordered = owner[order]
    first = np.searchsorted(ordered, ordered)
    found = np.empty(len(owner), np.int64)
    found[order] = np.arange(len(owner)) - first
    return found
