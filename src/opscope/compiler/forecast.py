"""Forecast: estimated times of commands, before any device runs them.

As-soon-as-possible scheduling, in the order of time: a command starts when its lane is free and its dependencies are
done. A transfer is issued, waits for those before it in its queue, and is served by what its route or memory shares
between all cores: first come, first served, where the simulated device serves all at once and more slowly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np
import numpy.typing as npt

from ..program.program import NO_ROUTE, Channel, Program
from .codegen.context import channels
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


def forecast(program: Program) -> tuple[Times, Times]:
    """Start and end of every command in core cycles."""
    lanes, offsets = program.lane_of_commands(), program.dependency_offsets
    return _schedule(_Commands(program.commands, lanes, offsets, program.dependency_sources, program.routes))


def forecast_cycles(lowering: Lowering) -> float:
    """Core cycles until all commands that have been emitted are done."""
    context = lowering.context
    columns = context.emitter.columns()
    table, groups, cores = columns.commands, len(context.groups), context.plan.machine.cores
    lane = (table["device"].astype(np.int64) * cores + table["core"]) * groups + table["group"]
    _, end = _schedule(_Commands(table, lane, columns.offsets, columns.sources, channels(context.plan)))
    return float(end.max(initial=0.0))


def _schedule(commands: _Commands) -> tuple[Times, Times]:
    """Start and end of every command: the next to start is always the one that can start first."""
    table, routes = commands.table, commands.routes
    cycles, routed, moved = table["cycles"].tolist(), table["route"].tolist(), table["moved_bytes"].tolist()
    devices, lanes = table["device"].tolist(), commands.lane.tolist()
    offsets, sources = commands.offsets.tolist(), commands.sources.tolist()
    missing = np.diff(commands.offsets).tolist()
    users: list[list[int]] = [[] for _ in missing]
    for command in range(len(missing)):
        for source in sources[offsets[command] : offsets[command + 1]]:
            users[source].append(command)
    # What a transfer shares with others: the memory that it reads or writes, else its route.
    shared = [route.memory if route.carries.is_outer else -1 - number for number, route in enumerate(routes)]
    start, end, ready = [0.0] * len(missing), [0.0] * len(missing), [0.0] * len(missing)
    queue_free: dict[tuple[int, int], float] = {}
    served: dict[tuple[int, int], float] = {}
    is_head = [lane != before for lane, before in zip(lanes, [-1, *lanes[:-1]], strict=True)]
    events = [(0.0, command) for command, is_first in enumerate(is_head) if is_first and not missing[command]]
    while events:
        now, command = heappop(events)
        start[command], done = now, now + cycles[command]
        free, route, lane = done, routed[command], lanes[command]
        if route != NO_ROUTE:
            begun, both = max(done, queue_free.get((lane, route), 0.0)), (devices[command], shared[route])
            last = max(served.get(both, 0.0), begun) + moved[command] / routes[route].bytes_per_cycle
            done = max(last, begun + moved[command] / routes[route].core_bytes_per_cycle)
            served[both], queue_free[lane, route] = last, done
            done += routes[route].latency_cycles
        end[command] = done
        following = command + 1
        if following < len(lanes) and lanes[following] == lane:
            is_head[following] = True
            ready[following] = max(ready[following], free)
            if not missing[following]:
                heappush(events, (ready[following], following))
        for user in users[command]:
            missing[user] -= 1
            ready[user] = max(ready[user], done)
            if not missing[user] and is_head[user]:
                heappush(events, (ready[user], user))
    return np.array(start), np.array(end)
