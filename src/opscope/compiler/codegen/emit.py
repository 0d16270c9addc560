"""Emitter: the growing list of commands, with redundant dependencies left out.

A stream is one lane (thread group of a core) together with one route, or with none; commands of a stream finish in
the order in which they were emitted. So waiting for command 7 of a stream implies 0 to 6, and what a lane has waited
for once holds for all its later commands. Example, with stream S = reads of a core, and lane V = its vector threads:

    S: r0 r1 r2         V: a after r1         recorded: V knows S up to r1
                        b after r0, r1        nothing to add: implied by a
                        c after a, r2         r2 only; a is of the same lane and computes, so order is enough

The same dominance makes `latest` reduce a set of commands to one per stream.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ...core.errors import UsageError, printable
from ...core.meaning import Does
from ...program.program import COMMAND, NO_ROUTE, ORDER, START_KIND, TRUE, Detail

_STREAMS = 256  # of a lane: what it computes, and what it moves over each route; the number of a route has 8 bits


class CommandSpec(NamedTuple):
    """A command to be emitted, before rounding."""

    core: int  # device × cores + core
    group: int
    kind: str
    does: Does
    op: int
    detail: int
    cycles: float
    out_bytes: float = 0.0
    route: int = NO_ROUTE
    moved_bytes: float = 0.0
    macs: float = 0.0
    address: int = 0
    local_bytes: float = 0.0
    starts: int = 1  # of its engine: an op of several kernels is one command here


@dataclass(frozen=True, slots=True)
class SequencerStarts:
    """A core's sequencer: every command of another group is preceded by a start command in its group.

    What controls it is read too: before every start a descriptor of what is to be done, and behind so many of its
    commands the next block of its own program.
    """

    group: int
    cycles: float
    awaits: bool = False  # transfers: it goes on when they have arrived
    read: Callable[[CommandSpec, float], CommandSpec] | None = None  # near a command so many bytes of control
    descriptor_bytes: float = 0.0
    block_bytes: float = 0.0
    block_commands: int = 0


@dataclass(frozen=True, slots=True)
class Columns:
    """Commands and dependencies as a Program wants them."""

    commands: npt.NDArray[np.void]
    offsets: npt.NDArray[np.uint32]
    sources: npt.NDArray[np.uint32]
    kinds_of_dependency: npt.NDArray[np.uint8]
    kinds: tuple[str, ...]
    row_of: npt.NDArray[np.int64]  # number of a command at its emission → its row
    detail_of: npt.NDArray[np.int64]  # number of a detail at its emission → its number
    details: tuple[Detail, ...] = ()  # of a program that is kept: see `Emitter.named_columns`


def share(total: float, number: int, count: int) -> int:
    """One of `count` equal shares of a number of bytes or operations; the shares add up to it."""
    return round(total * (number + 1) / count) - round(total * number / count)


def whole_cycles(cycles: float) -> int:
    """Cycles rounded as commands store them: at least one."""
    return max(1, round(cycles))


class Emitter:
    """Commands in the order of compilation; `columns` sorts them by lane."""

    def __init__(self, *, cores: int, groups: int, starts: SequencerStarts | None = None) -> None:
        self.cores = cores  # per device
        self.groups = groups
        self.starts = starts
        self.rows: list[tuple[int, ...]] = []
        self.sources: list[int] = []  # what commands wait for: those of the first, then those of the second …
        self.kinds_of_dependency: list[int] = []
        self.dependency_counts: list[int] = []  # of each command
        self.stream_of: list[int] = []  # of each command: lane and route, whose commands finish in order
        self.kinds: dict[str, int] = {}
        self._details: list[Callable[[], Detail]] = []
        # Lane → stream → last command it is known to come after.
        self._known_done: defaultdict[int, dict[int, int]] = defaultdict(dict)
        self._last: dict[int, int] = {}  # stream → its last command
        self._transfer: dict[int, int] = {}  # core → the transfer that its sequencer awaits
        self._counted: dict[int, int] = {}  # core → commands in the current block of its sequencer's program
        self.moved: Counter[int] = Counter()  # route → bytes so far

    def detail(self, make: Callable[[], Detail]) -> int:
        """The number of a detail that is made only if the commands are kept: most are of a program that was tried."""
        self._details.append(make)
        return len(self._details) - 1

    def emit(self, spec: CommandSpec, after: Iterable[int] = (), reuses: Iterable[int] = ()) -> int:
        """Append a command and return its number.

        It reads what the commands `after` wrote (true dependencies), and writes over memory that the commands `reuses`
        used (order dependencies).
        """
        if self.starts is None:
            return self._add(spec, after, reuses)
        stream = (spec.core * self.groups + spec.group) * _STREAMS + spec.route + 1
        busy = [self._last[stream]] if stream in self._last else []  # it is started again when it is free
        if spec.group == self.starts.group:
            command = self._issue(spec, after, [*reuses, *busy])
        else:
            command = self._start(self.starts, spec, after, [*reuses, *busy])
        self._last[stream] = command
        return command

    def _start(self, starts: SequencerStarts, spec: CommandSpec, after: Iterable[int], reuses: Iterable[int]) -> int:
        """Start an engine, as often as the command takes; what it waits for is waited for before its descriptor."""
        if starts.descriptor_bytes and starts.read is not None:
            for _ in range(spec.starts):
                self._issue(starts.read(spec, starts.descriptor_bytes), after, reuses)
                self._count(spec, 2)  # the start, and the wait for it
                after, reuses = (), ()
        start = CommandSpec(spec.core, starts.group, START_KIND, Does.LAUNCH, spec.op, spec.detail, starts.cycles)
        return self._add(spec, (), [self._add(start, (*after, *self._arrived(spec.core)), reuses)])

    def _issue(self, spec: CommandSpec, after: Iterable[int], reuses: Iterable[int]) -> int:
        """Let the sequencer begin a transfer, behind the one before it where it awaits them."""
        command = self._add(spec, (*after, *self._arrived(spec.core)), reuses)
        if self.starts is not None and self.starts.awaits:
            self._transfer[spec.core] = command
        self._count(spec, 1)
        return command

    def _arrived(self, core: int) -> tuple[int, ...]:
        """The transfer that a core's sequencer awaits before anything else."""
        return (self._transfer[core],) if core in self._transfer else ()

    def _count(self, near: CommandSpec, commands: int) -> None:
        """Count commands of the sequencer, and read the next block of its program behind the last of a block."""
        starts = self.starts
        if starts is None or starts.read is None or not starts.block_commands:
            return
        self._counted[near.core] = self._counted.get(near.core, 0) + commands
        while self._counted[near.core] >= starts.block_commands:
            self._counted[near.core] -= starts.block_commands
            read = starts.read(near, starts.block_bytes)
            self._transfer[near.core] = self._add(read, self._arrived(near.core), ())

    def _add(self, spec: CommandSpec, after: Iterable[int], reuses: Iterable[int]) -> int:
        """Append one row with the dependencies that are not implied yet."""
        of, group, kind, does, op, detail, cycles, out, route, moved_bytes, macs, address, local_bytes, _ = spec
        moved, rows = round(moved_bytes), self.rows
        own = (of * self.groups + group) * _STREAMS  # what the lane computes itself: done in order, no wait needed
        self._add_dependencies(own, after, reuses)
        if route != NO_ROUTE:
            self.moved[route] += moved
        self.stream_of.append(own + route + 1)
        rows.append(
            (
                of // self.cores,
                of % self.cores,
                group,
                route,
                self.kinds.setdefault(kind, len(self.kinds)),
                op,
                detail,
                whole_cycles(cycles),
                0,
                round(out),
                moved,
                round(macs),
                address,
                round(local_bytes),
                does,
            )
        )
        return len(rows) - 1

    def _add_dependencies(self, own: int, after: Iterable[int], reuses: Iterable[int]) -> None:
        """Add those of the commands to wait for that a lane, with its own stream, has not waited for yet."""
        stream_of, known, sources = self.stream_of, self._known_done[own], self.sources
        first = len(sources)
        for command in after:
            stream = stream_of[command]
            if stream != own and known.get(stream, -1) < command:
                known[stream] = command
                sources.append(command)
        true = len(sources) - first
        for command in reuses:
            stream = stream_of[command]
            if stream != own and known.get(stream, -1) < command:
                known[stream] = command
                sources.append(command)
        count = len(sources) - first
        self.kinds_of_dependency += [TRUE] * true + [ORDER] * (count - true)
        self.dependency_counts.append(count)

    def latest(self, commands: Iterable[int]) -> list[int]:
        """The last command of each stream: after these, all of `commands` are done."""
        found = sorted(set(commands))
        if len(found) < 2:
            return found
        stream_of = self.stream_of
        return sorted({stream_of[command]: command for command in found}.values())

    def _records(self) -> npt.NDArray[np.void]:
        try:
            return np.array(self.rows, dtype=COMMAND)
        except OverflowError as error:
            raise self._too_large() from error

    def _too_large(self) -> UsageError:
        """An error that names the first number that does not fit its column."""
        fields = COMMAND.names or ()
        numbers = ((row, name, found) for row in self.rows for name, found in zip(fields, row, strict=True))
        row, name, found = next(each for each in numbers if each[2] > np.iinfo(COMMAND[each[1]]).max)
        op = printable(self._details[row[fields.index("detail")]]().name)
        most = np.iinfo(COMMAND[name]).max
        return UsageError(f"{op}: {name} of one command is {found}; expected at most {most}, of a smaller model")

    def columns(self) -> Columns:
        """All commands sorted by lane, and their dependencies renumbered to rows in compressed sparse rows (CSR)."""
        commands = self._records()
        lanes = np.array(self.stream_of, dtype=np.int64) // _STREAMS
        order = np.argsort(lanes, kind="stable")
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        commands = commands[order]
        first = np.searchsorted(lanes[order], lanes[order], side="left")
        commands["ordinal"] = np.arange(len(order)) - first
        counts = np.array(self.dependency_counts, dtype=np.int64)
        firsts = np.cumsum(counts) - counts  # command at its emission → its first dependency
        offsets = np.concatenate(([0], np.cumsum(counts[order])))
        moved = np.repeat(firsts[order] - offsets[:-1], counts[order]) + np.arange(offsets[-1])
        return Columns(
            commands,
            offsets.astype(np.uint32),
            place[np.array(self.sources, dtype=np.int64)[moved]].astype(np.uint32),
            np.array(self.kinds_of_dependency, dtype=np.uint8)[moved],
            tuple(self.kinds),
            place,
            np.arange(len(self._details)),
        )

    def named_columns(self) -> Columns:
        """The columns with their details; those that are alike are one."""
        columns, numbers = self.columns(), dict[Detail, int]()
        found = np.array([numbers.setdefault(make(), len(numbers)) for make in self._details], np.int64)
        columns.commands["detail"] = found[columns.commands["detail"]]
        return replace(columns, details=tuple(numbers), detail_of=found)
