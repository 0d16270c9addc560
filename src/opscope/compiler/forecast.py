"""Forecast: estimated times of commands, before any device runs them.

As-soon-as-possible scheduling, in the order of time: a command starts when its lane is free and its dependencies are
done. A transfer is issued, waits for those before it in its queue, and is served by what its route or memory shares
between all cores: first come, first served, where the simulated device serves all at once and more slowly. It comes
when its queue is free, not when it is issued: one that has been read ahead holds nobody up.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from math import inf

import numpy as np
import numpy.typing as npt

from ..program.program import NO_ROUTE, Channel, MemoryInfo, Program
from .codegen.context import channels, memories
from .codegen.lower import Lowering

Times = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class _Commands:
    """Commands sorted by lane, and what they wait for."""

    table: npt.NDArray[np.void]
    lane: npt.NDArray[np.int64]
    offsets: npt.NDArray[np.uint32]
    sources: npt.NDArray[np.uint32]
    routes: Sequence[Channel]
    memories: Sequence[MemoryInfo]


def forecast(program: Program) -> tuple[Times, Times]:
    """Start and end of every command in core cycles."""
    lanes, offsets = program.lane_of_commands(), program.dependency_offsets
    sources, routes, memories = program.dependency_sources, program.routes, program.memories
    return _schedule(_Commands(program.commands, lanes, offsets, sources, routes, memories))


def forecast_cycles(lowering: Lowering) -> float:
    """Core cycles until all commands that have been emitted are done."""
    context = lowering.context
    columns = context.emitter.columns()
    table, groups, cores = columns.commands, len(context.groups), context.plan.machine.cores
    lane = (table["device"].astype(np.int64) * cores + table["core"]) * groups + table["group"]
    routes, served = channels(context.plan), memories(context.plan.machine.target)
    _, end = _schedule(_Commands(table, lane, columns.offsets, columns.sources, routes, served))
    return float(end.max(initial=0.0))


def _schedule(commands: _Commands) -> tuple[Times, Times]:
    """Start and end of every command."""
    clock = _Clock(commands)
    clock.run()
    return np.array(clock.start), np.array(clock.end)


_ISSUE, _ARRIVE, _FREE = range(3)  # a command starts; its bytes reach their queue; a queue is free


class _Clock:
    """Events in the order of time: what happens next is always what can happen first."""

    def __init__(self, commands: _Commands) -> None:
        table, routes = commands.table, commands.routes
        self.routes = routes
        self.cycles, self.routed, self.moved = (table[name].tolist() for name in ("cycles", "route", "moved_bytes"))
        self.devices, self.lanes = table["device"].tolist(), commands.lane.tolist()
        self.missing = np.diff(commands.offsets).tolist()  # commands that each still waits for
        offsets, sources = commands.offsets.tolist(), commands.sources.tolist()
        self.users: list[list[int]] = [[] for _ in self.missing]
        for command in range(len(self.missing)):
            for source in sources[offsets[command] : offsets[command + 1]]:
                self.users[source].append(command)
        # What a transfer shares with others: the memory that it reads or writes, else its route.
        self.shared = [route.memory if route.carries.is_outer else -1 - number for number, route in enumerate(routes)]
        peaks = [commands.memories[each].bytes_per_cycle if each >= 0 else None for each in self.shared]
        self.rates = [min(route.bytes_per_cycle, peak or inf) for route, peak in zip(routes, peaks, strict=True)]
        count = len(self.missing)
        self.start, self.end, self.ready = [0.0] * count, [0.0] * count, [0.0] * count
        self.is_head = [lane != before for lane, before in zip(self.lanes, [-1, *self.lanes[:-1]], strict=True)]
        self.served: dict[tuple[int, int], float] = {}  # device, what is shared → when it is free
        self.waiting: dict[tuple[int, int], deque[int]] = {}  # lane, route → transfers behind the one under way
        heads = (command for command, is_first in enumerate(self.is_head) if is_first and not self.missing[command])
        self.events = [(0.0, _ISSUE, command) for command in heads]

    def run(self) -> None:
        while self.events:
            now, what, command = heappop(self.events)
            if what == _ISSUE:
                self._issue(command, now)
            elif what == _ARRIVE:
                queue = self.waiting.get((self.lanes[command], self.routed[command]))
                if queue is None:
                    self._serve(command, now)
                else:
                    queue.append(command)
            else:
                queue = self.waiting.pop((self.lanes[command], self.routed[command]))
                if queue:
                    self._serve(queue.popleft(), now, queue)

    def _issue(self, command: int, now: float) -> None:
        self.start[command], done = now, now + self.cycles[command]
        if self.routed[command] == NO_ROUTE:
            self._finish(command, done)
        else:
            heappush(self.events, (done, _ARRIVE, command))
        following = command + 1
        if following < len(self.lanes) and self.lanes[following] == self.lanes[command]:
            self.is_head[following] = True
            self._wait(following, done)

    def _serve(self, command: int, now: float, behind: deque[int] | None = None) -> None:
        """Move the bytes of a transfer, when those of all that came before it have been moved."""
        number = self.routed[command]
        route, both = self.routes[number], (self.devices[command], self.shared[number])
        self.served[both] = last = max(self.served.get(both, 0.0), now) + self.moved[command] / self.rates[number]
        free = max(last, now + self.moved[command] / route.core_bytes_per_cycle)
        self.waiting[self.lanes[command], number] = deque() if behind is None else behind
        heappush(self.events, (free, _FREE, command))
        self._finish(command, free + route.latency_cycles)

    def _finish(self, command: int, now: float) -> None:
        self.end[command] = now
        for user in self.users[command]:
            self.missing[user] -= 1
            if self.is_head[user]:
                self._wait(user, now)
            else:
                self.ready[user] = max(self.ready[user], now)

    def _wait(self, command: int, now: float) -> None:
        """Note that a command cannot start before; it does then, if it waits for nothing else."""
        self.ready[command] = max(self.ready[command], now)
        if not self.missing[command]:
            heappush(self.events, (self.ready[command], _ISSUE, command))
