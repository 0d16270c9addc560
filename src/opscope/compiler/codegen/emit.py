"""The growing list of commands. Dependencies that order inside lanes already guarantees are left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...core.errors import UsageError, printable
from ...core.meaning import Does
from ...program.program import COMMAND, NO_ROUTE, ORDER, TRUE, Detail
from ...program.sequence import START_KIND

_STREAMS = 256  # of a lane: what it computes, and what it moves over each route; the number of a route has 8 bits


@dataclass(frozen=True, slots=True)
class Order:
    """A command to be emitted."""

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


@dataclass(frozen=True, slots=True)
class Starts:
    """A core's sequencer: every command of another group is started by one of its own."""

    group: int
    cycles: float


@dataclass(frozen=True, slots=True)
class Columns:
    """Commands and dependencies as a Program wants them."""

    commands: npt.NDArray[np.void]
    offsets: npt.NDArray[np.uint32]
    sources: npt.NDArray[np.uint32]
    kinds_of_dependency: npt.NDArray[np.uint8]
    kinds: tuple[str, ...]
    details: tuple[Detail, ...]
    place: npt.NDArray[np.int64]  # of every command, as it was emitted, its row


def share(total: float, number: int, count: int) -> int:
    """One of `count` equal shares of a number of bytes or operations; the shares add up to it."""
    return round(total * (number + 1) / count) - round(total * number / count)


def whole_cycles(cycles: float) -> int:
    """As a command has them: at least one."""
    return max(1, round(cycles))


class Emitter:
    """Commands in the order of compilation; `columns` sorts them by lane."""

    def __init__(self, *, cores: int, groups: int, starts: Starts | None = None) -> None:
        self.cores = cores  # per device
        self.groups = groups
        self.starts = starts
        self.rows: list[tuple[int, ...]] = []
        self.dependencies: list[tuple[tuple[int, int], ...]] = []
        self.stream_of: list[int] = []  # of each command: lane and route, whose commands finish in order
        self.kinds: dict[str, int] = {}
        self.details: dict[Detail, int] = {}
        self._settled: dict[int, dict[int, int]] = {}  # lane → stream → last command it is known to come after
        self._last: dict[int, int] = {}  # stream → its last command
        self.moved: Counter[int] = Counter()  # route → bytes so far

    def detail(self, detail: Detail) -> int:
        return self.details.setdefault(detail, len(self.details))

    def emit(self, order: Order, after: Iterable[int] = (), reuses: Iterable[int] = ()) -> int:
        """Add a command; it reads what `after` wrote and writes where `reuses` worked. Returns its number."""
        if self.starts is None:
            return self._add(order, after, reuses)
        stream = (order.core * self.groups + order.group) * _STREAMS + order.route + 1
        busy = [self._last[stream]] if stream in self._last else []  # it is started again when it is free
        if order.group == self.starts.group:
            command = self._add(order, after, [*reuses, *busy])
        else:
            starts = self.starts
            start = Order(order.core, starts.group, START_KIND, Does.LAUNCH, order.op, order.detail, starts.cycles)
            command = self._add(order, (), [self._add(start, after, [*reuses, *busy])])
        self._last[stream] = command
        return command

    def _add(self, order: Order, after: Iterable[int], reuses: Iterable[int]) -> int:
        lane = order.core * self.groups + order.group
        self.dependencies.append((*self._news(lane, after, TRUE), *self._news(lane, reuses, ORDER)))
        kind = self.kinds.setdefault(order.kind, len(self.kinds))
        device, core = divmod(order.core, self.cores)
        moved = round(order.moved_bytes)
        self.moved[order.route] += moved
        self.rows.append(
            (
                device,
                core,
                order.group,
                order.route,
                kind,
                order.op,
                order.detail,
                whole_cycles(order.cycles),
                0,
                round(order.out_bytes),
                moved,
                round(order.macs),
                order.address,
                round(order.local_bytes),
                order.does,
            )
        )
        self.stream_of.append(lane * _STREAMS + order.route + 1)
        return len(self.rows) - 1

    def _news(self, lane: int, commands: Iterable[int], kind: int) -> list[tuple[int, int]]:
        """Of commands to wait for, those that a lane is not known to come after, with the kind of dependency."""
        stream_of, known = self.stream_of, self._settled.setdefault(lane, {})
        own = lane * _STREAMS  # computed on the same lane: order is enough
        found = []
        for command in commands:
            stream = stream_of[command]
            if stream != own and known.get(stream, -1) < command:
                known[stream] = command
                found.append((command, kind))
        return found

    def latest(self, commands: Iterable[int]) -> list[int]:
        """Of commands that finish in order, only the last of each stream."""
        last: dict[int, int] = {}
        for command in commands:
            stream = self.stream_of[command]
            if command > last.get(stream, -1):
                last[stream] = command
        return sorted(last.values())

    def _records(self) -> npt.NDArray[np.void]:
        try:
            return np.array(self.rows, dtype=COMMAND)
        except OverflowError as error:
            raise self._too_large() from error

    def _too_large(self) -> UsageError:
        """The first number that a command has no room for."""
        fields = COMMAND.names or ()
        numbers = ((row, name, found) for row in self.rows for name, found in zip(fields, row, strict=True))
        row, name, found = next(each for each in numbers if each[2] > np.iinfo(COMMAND[each[1]]).max)
        op = printable(list(self.details)[row[fields.index("detail")]].name)
        most = np.iinfo(COMMAND[name]).max
        return UsageError(f"{op}: {name} of one command is {found}; expected at most {most}, of a smaller model")

    def columns(self) -> Columns:
        """Sort by lane; dependencies follow."""
        commands = self._records()
        lanes = np.array(self.stream_of, dtype=np.int64) // _STREAMS
        order = np.argsort(lanes, kind="stable")
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        commands = commands[order]
        first = np.searchsorted(lanes[order], lanes[order], side="left")
        commands["ordinal"] = np.arange(len(order)) - first
        counts = np.array([len(deps) for deps in self.dependencies], dtype=np.int64)[order]
        offsets = np.concatenate(([0], np.cumsum(counts)))
        flat = [pair for index in order.tolist() for pair in self.dependencies[index]]
        pairs = np.array(flat, dtype=np.int64).reshape(-1, 2)
        return Columns(
            commands,
            offsets.astype(np.uint32),
            place[pairs[:, 0]].astype(np.uint32) if len(pairs) else np.zeros(0, np.uint32),
            pairs[:, 1].astype(np.uint8),
            tuple(self.kinds),
            tuple(self.details),
            place,
        )
