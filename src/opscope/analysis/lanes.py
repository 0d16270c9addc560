"""How is the time of every lane divided between work, waiting and nothing?"""

from __future__ import annotations

import numpy as np

from ..capture import Capture
from ..summary import LaneTotal
from ..wire import StatsSection
from .work import Work, total


def lane_totals(work: Work, captures: dict[int, Capture]) -> tuple[LaneTotal, ...]:
    """Per thread group of every core; its wall time is that of its core."""
    program, lanes = work.index.program, work.trace.lanes
    busy = total(work.ops["lane"], work.ops["end_ns"] - work.ops["start_ns"], len(lanes))
    wait = total(work.waits["lane"], work.waits["end_ns"] - work.waits["start_ns"], len(lanes))
    windows = work.core_windows()
    names = {group.name: number for number, group in enumerate(program.groups)}
    rows = []
    for number, lane in enumerate(lanes):
        if lane.name in names and (lane.device, lane.core) in windows:
            start, end = windows[lane.device, lane.core]
            barrier = _barrier_ns(work, captures.get(lane.device), lane.core, names[lane.name])
            idle = end - start - int(busy[number]) - int(wait[number])
            rows.append(LaneTotal(lane.device, lane.core, lane.name, int(busy[number]), int(wait[number]), idle, barrier))
    return tuple(rows)


def _barrier_ns(work: Work, capture: Capture | None, core: int, group: int) -> int:
    """What a thread of the group waited for the others, on average."""
    records = None if capture is None else capture.sections.get((StatsSection.OPS, core))
    if records is None:
        return 0
    program = work.index.program
    ticks = np.bincount(records["group"], records["barrier"], minlength=len(program.groups))[group]
    return round(ticks / program.groups[group].threads * 1e9 / program.stats_hz)
