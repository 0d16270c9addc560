"""Forecast: estimated times of a program's commands, before any device runs it.

As-soon-as-possible scheduling: every command starts when its lane is free and its dependencies are done, and every
transfer runs at its own core's rate. Contention for a shared memory is left to the simulated device.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..program.program import NO_ROUTE, Program

Times = npt.NDArray[np.float64]


def forecast(program: Program) -> tuple[Times, Times]:
    """Start and end of every command in core cycles.

    Lanes are advanced one at a time until their next command waits for one that has no end yet; that one's end then
    makes the lane ready again. So every command and every dependency is looked at about once.
    """
    table = program.commands
    lanes = program.lane_of_commands().tolist()
    offsets, sources = program.dependency_offsets.tolist(), program.dependency_sources.tolist()
    rates = [route.core_bytes_per_cycle for route in program.routes]
    latencies = [route.latency_cycles for route in program.routes]
    cycles, routes, moved = table["cycles"].tolist(), table["route"].tolist(), table["moved_bytes"].tolist()
    start, end = [0.0] * len(table), [-1.0] * len(table)
    free = [0.0] * program.lanes
    heads = np.searchsorted(lanes, np.arange(program.lanes)).tolist()
    limits = np.searchsorted(lanes, np.arange(program.lanes), side="right").tolist()
    waiting: dict[int, list[int]] = {}  # command → lanes whose next command waits for it
    ready = list(range(program.lanes))
    while ready:
        lane = ready.pop()
        while heads[lane] < limits[lane]:
            command = heads[lane]
            needed = sources[offsets[command] : offsets[command + 1]]
            blocker = next((source for source in needed if end[source] < 0), None)
            if blocker is not None:
                waiting.setdefault(blocker, []).append(lane)
                break
            start[command] = max([free[lane], *(end[source] for source in needed)])
            issued = start[command] + cycles[command]
            route = routes[command]
            end[command] = issued
            if route != NO_ROUTE:
                end[command] += moved[command] / rates[route] + (latencies[route] if moved[command] else 0.0)
            free[lane] = issued
            heads[lane] += 1
            ready.extend(waiting.pop(command, ()))
    return np.array(start), np.array(end)
