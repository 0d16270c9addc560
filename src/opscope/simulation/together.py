"""Inferences that are on a card at once → a Timeline of each: they share its memories, and nothing is averaged.

Every inference has lanes and queues of its own, and channels that are those of its devices: the event loop shares them
out as it does among the cores of one program. The axis is that of one clock; programs of another, and inferences that
are slower or faster than usual, have their cycles stretched. An inference is released at its time, or some time after
the end of the one that its request follows; each of its devices begins then, or when it is done with the inference
whose cores it takes over:

    inference 0    release ─▶ gate of device 0 ─▶ commands there ─┐      ─▶ gate of device 1 ─▶ …
    inference 1    release ─▶ gate of device 0 ◀── all done ──────┤
    inference 2    release ◀── some time later ───────────────────┘
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ..core.columns import Floats, Numbers
from ..core.errors import UsageError
from ..core.meaning import Does
from ..program.program import Program
from .simulate import Timeline, empty_timeline, run_tables
from .tables import Tables, checked_tables

NOTHING_BEFORE = -1
_AT_ONCE = 0.99  # devices that are all at work for more of the time than this are no stages of each other

Ends = list[Numbers]


@dataclass(frozen=True, slots=True)
class Begun:
    """One inference of several: on which devices of the card, from when on, and at which pace."""

    program: int  # position among the programs
    device: int  # the first of those that it runs on
    start_s: float  # from the end of the one that it follows, where there is one
    factor: float = 1.0  # of the usual time: above 1 everything is slower, below it the core clock is faster
    after: int = NOTHING_BEFORE  # position of the inference whose cores it takes over
    follows: int = NOTHING_BEFORE  # position of the inference whose results the application had when it asked for it


@dataclass(frozen=True, slots=True)
class Ran:
    """One inference among others: its timeline from its start, and when that was."""

    timeline: Timeline
    clock_hz: float  # whose cycles these are: the program's clock ÷ factor
    start_s: float

    @property
    def seconds(self) -> float:
        return self.timeline.total_cycles / self.clock_hz


class Together:
    """Programs of one card, ready to be simulated at once as often as wanted."""

    def __init__(self, programs: Sequence[Program], *, seed: int) -> None:
        self.programs, self.seed = programs, seed
        self.clock_hz = max(program.clock_hz for program in programs)
        self.parts = [_Part.of(program, self.clock_hz) for program in programs]

    def simulate(self, inferences: Sequence[Begun]) -> list[Ran]:
        """Run all of them in one event loop."""
        firsts = np.cumsum([0, *(self.parts[each.program].count for each in inferences)])
        built = _joined(self, inferences, firsts.tolist())
        timeline = empty_timeline(int(firsts[-1]), self.seed, 0)
        if run_tables(built, timeline) != firsts[-1]:
            raise UsageError("programs at once: some commands are never done; expected programs that end when alone")
        pairs = zip(inferences, firsts.tolist(), strict=False)
        return [self._part(timeline, each, first) for each, first in pairs]

    def _part(self, timeline: Timeline, each: Begun, first: int) -> Ran:
        """Cut one inference out, and count its times from its start, in its own cycles."""
        part, program = self.parts[each.program], self.programs[each.program]
        own, gates = slice(first, first + part.own), slice(first + part.own, first + part.own + part.devices)
        begin = float(timeline.done[gates].min())
        clock_hz = program.clock_hz / each.factor
        scale = clock_hz / self.clock_hz

        def since(times: Floats) -> Floats:
            found: Floats = np.maximum(times[own] - begin, 0.0) * scale
            return found

        blocker = timeline.blocker[own] - first
        ran = Timeline(
            lane_ready=since(timeline.lane_ready),
            start=since(timeline.start),
            issue_end=since(timeline.issue_end),
            transfer_start=since(timeline.transfer_start),
            done=since(timeline.done),
            blocker=np.where((blocker >= 0) & (blocker < part.own), blocker, -1),
            seed=self.seed,
            inference=0,
        )
        return Ran(ran, clock_hz, begin / self.clock_hz)


@dataclass(frozen=True, slots=True)
class _Part:
    """A program in the columns of the event loop: its own commands, a gate per device, and its release."""

    tables: Tables
    devices: int
    channels: tuple[tuple[int, int], ...]  # device of the program and route, of every channel
    clocked: npt.NDArray[np.bool_]  # command → it moves bytes that a faster core clock moves faster
    last: tuple[Numbers, ...]  # per device, commands that nothing there waits for
    scale: float  # cycles of the common axis in one of the program's

    @classmethod
    def of(cls, program: Program, clock_hz: float) -> _Part:
        built, devices = checked_tables(program), program.devices
        device = program.commands["device"].astype(np.int64)
        clocked = np.array([*(route.on_core_clock for route in program.routes), False])[program.commands["route"]]
        return cls(
            tables=_gated(built, device, devices),
            devices=devices,
            channels=_channels(program, built),
            clocked=np.concatenate((clocked, np.zeros(devices + 1, np.bool_))),
            last=tuple(_last(built, (device == number) & ~_signals(program, built)) for number in range(devices)),
            scale=clock_hz / program.clock_hz,
        )

    @property
    def count(self) -> int:
        """Commands, gates and the release."""
        return len(self.tables.cycles)

    @property
    def own(self) -> int:
        return self.count - self.devices - 1

    def cycles(self, each: Begun, clock_hz: float) -> Floats:
        """Of its commands at its pace; the release holds them until it begins."""
        found = self.tables.cycles * (self.scale * each.factor)
        found[-1] = each.start_s * clock_hz
        return found

    def moved_bytes(self, factor: float) -> Floats:
        """What is slower in everything moves as if it had more bytes; a faster core clock moves those on it faster."""
        paced: Floats = self.tables.moved_bytes * np.where(self.clocked | (factor > 1.0), factor, 1.0)
        return paced

    def dependencies(self, first: int, before: Ends | None, followed: Ends | None) -> tuple[Numbers, Numbers]:
        """How many each command has, and which: a gate opens when its device is done with what ran before."""
        lengths, release = np.diff(self.tables.dependency_first), first + self.count - 1
        inside = self.tables.dependency_source[: -self.devices] + first
        last = before or [np.zeros(0, np.int64)] * self.devices
        lengths[self.own : -1] += [len(part) for part in last]
        asked = followed or []
        lengths[-1] += sum(map(len, asked))
        return lengths, np.concatenate([inside, *(np.append(part, release) for part in last), *asked])

    def ends(self, first: int) -> Ends:
        """Per device, the commands that are done last, in the numbers of all."""
        return [part + first for part in self.last]


def _signals(program: Program, built: Tables) -> npt.NDArray[np.bool_]:
    """What the first of several devices tells the host when the last is done, and what comes behind that in its lane.

    Nothing waits for it, and it holds no device up: the first is long at work on the next inference.
    """
    awaited = np.zeros(len(built.cycles), np.bool_)
    awaited[built.dependency_source] = True
    if program.devices == 1:
        return np.zeros_like(awaited)
    tells = (program.commands["does"] == Does.SYNC) & ~awaited
    lane = np.repeat(np.arange(len(built.lane_first) - 1), np.diff(built.lane_first))
    so_far = np.concatenate(([0], np.cumsum(tells)))
    behind: npt.NDArray[np.bool_] = so_far[1:] > so_far[built.lane_first[lane]]
    return behind & ~awaited


def _last(built: Tables, here: npt.NDArray[np.bool_]) -> Numbers:
    """Commands of a device that no other of its commands waits for: when they are done, all are."""
    user = np.repeat(np.arange(len(built.cycles)), np.diff(built.dependency_first))
    awaited = np.zeros(len(here), np.bool_)
    awaited[built.dependency_source[here[user]]] = True
    return np.flatnonzero(here & ~awaited)


def _gated(built: Tables, device: Numbers, devices: int) -> Tables:
    """The tables with gates behind the commands, where the first of every lane waits for that of its device."""
    count, heads = len(built.cycles), built.lane_first[:-1]
    extra = np.zeros(count, np.int64)
    extra[heads] = 1
    lengths = np.concatenate(
        (np.diff(built.dependency_first.astype(np.int64)) + extra, np.ones(devices, np.int64), [0])
    )
    ends = built.dependency_first[heads + 1].astype(np.int64)
    sources = np.insert(built.dependency_source.astype(np.int64), ends, count + device[heads])
    idle = np.zeros(devices + 1)
    return replace(
        built,
        cycles=np.concatenate((built.cycles, idle)),
        moved_bytes=np.concatenate((built.moved_bytes, idle)),
        queue_of=np.concatenate((built.queue_of, np.full(devices + 1, -1, np.int32))),
        dependency_first=np.concatenate(([0], np.cumsum(lengths))),
        dependency_source=np.concatenate((sources, np.full(devices, count + devices))),
        lane_first=np.concatenate((built.lane_first, count + 1 + np.arange(devices + 1))),
    )


def _channels(program: Program, built: Tables) -> tuple[tuple[int, int], ...]:
    """Device and route of every channel: those of any command that goes through it."""
    moving = np.flatnonzero(built.queue_of >= 0)
    _, first = np.unique(built.channel_of[built.queue_of[moving]], return_index=True)
    rows = program.commands[moving[first]]
    return tuple(zip(rows["device"].tolist(), rows["route"].tolist(), strict=True))


@dataclass(frozen=True, slots=True)
class _Links:
    """The channels of a card, each of one route of one device, with the pools that they make."""

    number: dict[tuple[int, int], int]  # device and route → channel
    shared_rate: Floats
    queue_rate: Floats
    latency: Floats
    pool_first: npt.NDArray[np.int32]
    pool_rate: Floats

    @classmethod
    def of(cls, programs: Sequence[Program], used: set[tuple[int, int]], clock_hz: float) -> _Links:
        """Channels in use, a pool behind the other; a route on the clock of cores has the lowest clock of all."""
        pools = programs[0].pool_of_routes()
        keys = sorted(used, key=lambda key: (key[0], pools[key[1]], key[1]))
        owners = [(device, pools[route]) for device, route in keys]
        firsts = [place for place, owner in enumerate(owners) if place == 0 or owner != owners[place - 1]]

        def rates(figure: Callable[[Program, int], float], numbers: Sequence[int]) -> Floats:
            per_cycle = [min(figure(p, number) * p.clock_hz / clock_hz for p in programs) for number in numbers]
            return np.array(per_cycle, np.float64)

        routes = [route for _, route in keys]
        return cls(
            number={key: place for place, key in enumerate(keys)},
            shared_rate=rates(lambda p, route: p.routes[route].bytes_per_cycle, routes),
            queue_rate=rates(lambda p, route: p.routes[route].core_bytes_per_cycle, routes),
            latency=np.array(
                [max(p.routes[route].latency_cycles / p.clock_hz * clock_hz for p in programs) for route in routes]
            ),
            pool_first=np.array([*firsts, len(keys)], np.int32),
            pool_rate=rates(Program.pool_rate, [owners[place][1] for place in firsts]),
        )


def _joined(together: Together, inferences: Sequence[Begun], firsts: Sequence[int]) -> Tables:
    """The tables of all inferences, one behind the other, with the channels of the card."""
    clock_hz, parts = together.clock_hz, [together.parts[each.program] for each in inferences]
    pairs = list(zip(inferences, parts, strict=True))
    used = {(each.device + device, route) for each, part in pairs for device, route in part.channels}
    links = _Links.of(together.programs, used, clock_hz)
    queues = np.cumsum([0, *(len(part.tables.channel_of) for part in parts)]).tolist()
    ends = [*(part.ends(first) for part, first in zip(parts, firsts, strict=False)), None]  # the last: of nothing
    found = [
        part.dependencies(first, ends[each.after], ends[each.follows])
        for (each, part), first in zip(pairs, firsts, strict=False)
    ]
    channel_of = [
        np.array([links.number[each.device + device, route] for device, route in part.channels], np.int32)[
            part.tables.channel_of
        ]
        for each, part in pairs
    ]
    moving = [np.where(p.tables.queue_of >= 0, p.tables.queue_of + q, -1) for p, q in zip(parts, queues, strict=False)]
    lanes = [part.tables.lane_first[:-1] + first for part, first in zip(parts, firsts, strict=False)]
    return Tables(
        cycles=np.concatenate([part.cycles(each, clock_hz) for each, part in pairs]),
        moved_bytes=np.concatenate([part.moved_bytes(each.factor) for each, part in pairs]),
        queue_of=np.concatenate(moving).astype(np.int32),
        dependency_first=np.concatenate(([0], np.cumsum(np.concatenate([lengths for lengths, _ in found])))).astype(
            np.uint32
        ),
        dependency_source=np.concatenate([sources for _, sources in found]).astype(np.uint32),
        lane_first=np.concatenate([*lanes, [firsts[-1]]]).astype(np.int64),
        channel_of=np.concatenate(channel_of),
        shared_rate=links.shared_rate,
        queue_rate=links.queue_rate,
        latency=links.latency,
        pool_first=links.pool_first,
        pool_rate=links.pool_rate,
    )


def stage_share(program: Program, *, seed: int) -> float:
    """Part of its time after which the devices of a program take the next inference: 1 where all work until the end.

    Inferences follow each other without a pause, each device going on as soon as it is done with its part; stages of a
    pipeline are then at work on several of them, and one leaves as often as the slowest stage is done.
    """
    if program.devices == 1:
        return 1.0
    chain = [Begun(0, 0, 0.0, after=number - 1) for number in range(program.devices + 2)]
    ran = Together([program], seed=seed).simulate(chain)
    ends = [each.start_s + each.seconds for each in ran]
    alone = ran[0].seconds
    share = (ends[-1] - ends[-2]) / alone if alone else 1.0
    return share if share < _AT_ONCE else 1.0
