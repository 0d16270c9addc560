"""Forecast: estimated times of commands, before any device runs them.

As-soon-as-possible scheduling: every command starts when its lane is free and its dependencies are done, and every
transfer runs at its own core's rate. Contention for a shared memory is left to the simulated device; of the end of all
commands the least is known: no sooner than what all of them move over a route takes at its shared rate.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ..program.program import NO_ROUTE, Channel, Program
from .codegen.context import channels
from .codegen.emit import Columns
from .codegen.lower import Lowering

Times = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.integer]


def forecast(program: Program) -> tuple[Times, Times]:
    """Start and end of every command in core cycles."""
    return _asap(
        program.commands,
        program.lane_of_commands(),
        program.dependency_offsets,
        program.dependency_sources,
        routes=program.routes,
        lane_count=program.lanes,
    )


def forecast_cycles(lowering: Lowering) -> float:
    """Core cycles until all commands that have been emitted are done."""
    context = lowering.context
    columns: Columns = context.emitter.columns()
    table, routes = columns.commands, channels(context.plan)
    groups, cores = len(context.groups), context.plan.machine.cores
    lane = (table["device"].astype(np.int64) * cores + table["core"]) * groups + table["group"]
    _, end = _asap(table, lane, columns.offsets, columns.sources, routes=routes, lane_count=context.lane_count * groups)
    least = 0.0
    for number, route in enumerate(routes):
        mine = table["route"] == number
        moved = np.bincount(table["device"][mine], table["moved_bytes"][mine], minlength=1)
        least = max(least, float(moved.max()) / route.bytes_per_cycle)
    return max(least, float(end.max(initial=0.0)))


def _asap(
    table: npt.NDArray[np.void],
    lane_of: Numbers,
    first: Numbers,
    after: Numbers,
    *,
    routes: Sequence[Channel],
    lane_count: int,
) -> tuple[Times, Times]:
    """Start and end of every command.

    Lanes are advanced one at a time until their next command waits for one that has no end yet; that one's end then
    makes the lane ready again. So every command and every dependency is looked at about once.
    """
    lanes, offsets, sources = lane_of.tolist(), first.tolist(), after.tolist()
    rates = [route.core_bytes_per_cycle for route in routes]
    cycles, routed, moved = table["cycles"].tolist(), table["route"].tolist(), table["moved_bytes"].tolist()
    start, end = [0.0] * len(table), [-1.0] * len(table)
    free = [0.0] * lane_count
    arrived: dict[tuple[int, int], float] = {}  # lane and route → when its last transfer is done: a queue keeps order
    heads = np.searchsorted(lanes, np.arange(lane_count)).tolist()
    limits = np.searchsorted(lanes, np.arange(lane_count), side="right").tolist()
    waiting: dict[int, list[int]] = {}  # command → lanes whose next command waits for it
    ready = list(range(lane_count))
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
            free[lane] = end[command] = start[command] + cycles[command]
            route = routed[command]
            if route != NO_ROUTE:
                begun = max(end[command], arrived.get((lane, route), 0.0))
                end[command] = arrived[lane, route] = begun + moved[command] / rates[route]
            heads[lane] += 1
            ready.extend(waiting.pop(command, ()))
    return np.array(start), np.array(end)
