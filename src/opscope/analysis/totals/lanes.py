"""How is the time of every lane divided between work, waiting and nothing?"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ...program.capture import Capture
from ...program.wire import StatsSection
from ...recording.summary import LaneTotal
from .work import Work, total


def lane_totals(work: Work, captures: Mapping[int, Capture]) -> tuple[LaneTotal, ...]:
    """Per thread group of every core; its wall time is that of its core."""
    index, program = work.index, work.index.program
    groups = len(program.groups)
    busy, wait = (
        total(index.core[part.command] * groups + index.group[part.command], part.ns, program.lanes)
        for part in (work.ops, work.waits)
    )
    barriers = {device: _barrier_ns(work, capture) for device, capture in captures.items()}
    rows = []
    for (device, core), (start, end) in sorted(work.windows.items()):
        for group in range(groups):
            lane = (device * program.cores + core) * groups + group
            barrier = barriers.get(device, {}).get((core, group), 0)
            idle = end - start - int(busy[lane]) - int(wait[lane])
            rows.append(
                LaneTotal(device, core, program.groups[group].name, int(busy[lane]), int(wait[lane]), idle, barrier)
            )
    return tuple(rows)


def _barrier_ns(work: Work, capture: Capture) -> dict[tuple[int, int], int]:
    """(core, group) → what a thread of the group waited for the others, on average."""
    program, found = work.index.program, {}
    for core in range(capture.cores):
        records = capture.sections.get((StatsSection.OPS, core))
        if records is not None:
            ticks = np.bincount(records["group"], records["barrier"], minlength=len(program.groups)).tolist()
            for group, value in enumerate(ticks):
                found[core, group] = round(value / program.groups[group].threads * 1e9 / program.stats_hz)
    return found
