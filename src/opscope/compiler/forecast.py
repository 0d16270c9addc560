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
        table, count = commands.table, len(commands.table)
        self.start, self.end, self.ready = [0.0] * count, [0.0] * count, [0.0] * count
        self.cycles, self.is_transfer = table["cycles"].tolist(), (table["route"] != NO_ROUTE).tolist()
        self._set_transfers(commands)
        self.missing = np.diff(commands.offsets).tolist()  # commands that each still waits for
        order = np.argsort(commands.sources, kind="stable")
        self.users = np.repeat(np.arange(count), np.diff(commands.offsets))[order].tolist()  # of the first, then …
        self.first_user = np.searchsorted(commands.sources[order], np.arange(count + 1)).tolist()
        is_first = np.diff(commands.lane, prepend=-1) != 0
        self.is_head = is_first.tolist()  # of its lane: nothing is before it that has not been issued
        self.is_last = [*is_first.tolist()[1:], True]
        self.free: dict[int, float] = {}  # what is shared on a device → when it is free
        self.waiting: dict[int, deque[int]] = {}  # queue → transfers behind the one under way
        heads = np.flatnonzero(is_first).tolist()
        self.events = [(0.0, _ISSUE, command) for command in heads if not self.missing[command]]

    def _set_transfers(self, commands: _Commands) -> None:
        """Of every command that is a transfer: its queue, what it shares with others, and how long it takes."""
        routes = commands.routes
        # What a transfer shares with others: the memory that it reads or writes, else its route.
        shared = [route.memory if route.carries.is_outer else -1 - number for number, route in enumerate(routes)]
        peaks = [commands.memories[each].bytes_per_cycle if each >= 0 else None for each in shared]
        rates = [min(route.bytes_per_cycle, peak or inf) for route, peak in zip(routes, peaks, strict=True)]
        table, number = commands.table, commands.table["route"]
        kinds = len(routes) + len(commands.memories)

        def of_route(values: Sequence[float]) -> Times:
            found: Times = np.array([*values, inf])[number]  # the last is where NO_ROUTE points
            return found

        self.queue = (commands.lane * len(routes) + number).tolist()
        self.server = (table["device"].astype(np.int64) * kinds + np.array([*shared, 0])[number]).tolist()
        self.serving = (table["moved_bytes"] / of_route(rates)).tolist()
        self.passing = (table["moved_bytes"] / of_route([route.core_bytes_per_cycle for route in routes])).tolist()
        self.latency = of_route([route.latency_cycles for route in routes]).tolist()

    def run(self) -> None:
        events, waiting, queue = self.events, self.waiting, self.queue
        while events:
            now, what, command = heappop(events)
            if what == _ISSUE:
                self._issue(command, now)
            elif what == _ARRIVE:
                behind = waiting.get(queue[command])
                if behind is None:
                    waiting[queue[command]] = deque()
                    self._serve(command, now)
                else:
                    behind.append(command)
            elif waiting[queue[command]]:
                self._serve(waiting[queue[command]].popleft(), now)
            else:
                del waiting[queue[command]]

    def _issue(self, command: int, now: float) -> None:
        done = now + self.cycles[command]
        self.start[command] = now
        if self.is_transfer[command]:
            heappush(self.events, (done, _ARRIVE, command))
        else:
            self._finish(command, done)
        if not self.is_last[command]:
            self.is_head[command + 1] = True
            self._wait(command + 1, done)

    def _serve(self, command: int, now: float) -> None:
        """Move the bytes of a transfer, when those of all that came before it have been moved."""
        server = self.server[command]
        self.free[server] = last = max(self.free.get(server, 0.0), now) + self.serving[command]
        free = max(last, now + self.passing[command])
        heappush(self.events, (free, _FREE, command))
        self._finish(command, free + self.latency[command])

    def _finish(self, command: int, now: float) -> None:
        self.end[command] = now
        for user in self.users[self.first_user[command] : self.first_user[command + 1]]:
            self.missing[user] -= 1
            self._wait(user, now)

    def _wait(self, command: int, now: float) -> None:
        """Note that a command cannot start before; it does then, if it waits for nothing else."""
        self.ready[command] = max(self.ready[command], now)
        if self.is_head[command] and not self.missing[command]:
            heappush(self.events, (self.ready[command], _ISSUE, command))
