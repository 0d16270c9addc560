"""What is every lane and core doing: at work, waiting, idle; is the work shared evenly; is anyone at work at all?"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import numpy as np

from ...core.columns import Flags, Numbers
from ...program.capture import Capture
from ...program.wire import StatsSection
from ...recording.summary import OCCUPANCY, CoreBalance, LaneTotal, Share
from ..timeline.intervals import Intervals, total, union
from .work import InferenceWork


def lane_totals(work: InferenceWork, captures: Mapping[int, Capture]) -> tuple[LaneTotal, ...]:
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
            name, engine = program.groups[group].name, program.groups[group].engine or program.groups[group].name
            rows.append(LaneTotal(device, core, name, int(busy[lane]), int(wait[lane]), idle, barrier, engine))
    return tuple(rows)


def _barrier_ns(work: InferenceWork, capture: Capture) -> dict[tuple[int, int], int]:
    """(core, group) → what a thread of the group waited for the others, on average."""
    program, found = work.index.program, {}
    for core in range(capture.cores):
        records = capture.sections.get((StatsSection.OPS, core))
        if records is not None:
            ticks = np.bincount(records["group"], records["barrier"], minlength=len(program.groups)).tolist()
            for group, value in enumerate(ticks):
                found[core, group] = round(value / program.groups[group].threads * 1e9 / program.stats_hz)
    return found


def core_balance(work: InferenceWork) -> tuple[CoreBalance, ...]:
    """Do cores share the work evenly? By pcycles at work, without the flush of the statistics."""
    program, index = work.index.program, work.index
    part = work.ops.where(~index.is_flush[work.ops.command])
    core = index.core[part.command]
    count = program.devices * program.cores
    busy = total(core, part.pcycles, count)
    ends = np.zeros(count, np.int64)
    np.maximum.at(ends, index.core[work.network.command], work.network.end)
    begin = min((start for start, _ in work.windows.values()), default=0)
    rows = []
    for place in np.flatnonzero(np.bincount(core, minlength=count)).tolist():
        device, number = divmod(place, program.cores)
        mean = float(busy[device * program.cores : (device + 1) * program.cores].mean())
        ratio = int(busy[place]) / mean if mean else 1.0
        rows.append(CoreBalance(device, number, int(busy[place]), ratio, int(ends[place]) - begin))
    return tuple(rows)


def occupancy_shares(work: InferenceWork) -> tuple[Share, ...]:
    """Averaged over cores, so that the parts add up to the wall time of the inference."""
    index, part = work.index, work.commands
    windows = work.windows
    ends, starts = [end for _, end in windows.values()], [start for start, _ in windows.values()]
    wall = max(ends, default=0) - min(starts, default=0)
    if not wall or not len(work.ops):
        return ()
    moving, flush = index.moves[part.command], index.is_flush[part.command]

    def busy(chosen: Flags) -> Intervals:
        some = part.where(chosen)
        return union(index.core[some.command], some.start, some.end)

    def mean(found: Intervals) -> float:
        return int((found.end - found.start).sum()) / len(windows)

    computing, moved, flushed = busy(~moving), busy(moving & ~flush), busy(moving & flush)
    useful = _both(computing, moved)
    reached = [mean(computing), mean(useful), mean(_both(useful, flushed)), float(wall)]
    parts = [end - before for before, end in pairwise([0.0, *reached])]
    return tuple(Share(cause, ns, ns / wall) for cause, ns in zip(OCCUPANCY, parts, strict=True))


def _both(one: Intervals, other: Intervals) -> Intervals:
    def column(name: str) -> Numbers:
        return np.concatenate((getattr(one, name), getattr(other, name)))

    return union(column("key"), column("start"), column("end"))
