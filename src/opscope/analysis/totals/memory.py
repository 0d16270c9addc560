"""What is in memory and what moves: how full local memory is, traffic of outer memory, routes, where operands lie."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from ...core.columns import Numbers, rising
from ...recording.summary import MemoryTotal, Placement, RouteTotal
from ..timeline.intervals import most_open, total, union
from .work import InferenceWork, SpanColumns

Residency = dict[int, tuple[Numbers, Numbers]]  # device × cores + core → times in ns, bytes from then on


def residency(work: InferenceWork) -> Residency:
    """Per core, how many bytes of local memory hold constants that stay, or an output that is being written or still
    waits for a reader.

    A reader is known by its dependency. The compiler leaves out those that the order of a lane guarantees, so this may
    be too little; and an op that writes over what it reads counts twice while it runs, which is never more than was
    placed in the core.
    """
    index, part, metrics = work.index, work.commands, work.index.program.metrics
    until = _last_read(work)
    part = part.where(index.local_bytes[part.command] > 0)
    if not len(part):
        return {}
    end = np.maximum(until[part.command], part.end)
    size, core = index.local_bytes[part.command], index.core[part.command]
    low, width = int(part.start.min()), int(end.max()) - int(part.start.min()) + 1
    moment = np.concatenate((core * width + part.start - low, core * width + end - low))
    order = rising(moment)
    moment, held = moment[order], np.cumsum(np.concatenate((size, -size))[order])
    last = np.append(moment[1:] != moment[:-1], True)  # of several at once, the sum
    moment, held = moment[last], held[last]
    bounds = np.searchsorted(moment, np.arange(int(core.max()) + 2) * width).tolist()
    placed = dict(enumerate(metrics.local_bytes))
    return {
        number: (
            moment[first:after] - number * width + low,
            np.minimum(held[first:after] + metrics.staying_bytes, placed.get(number) or np.iinfo(np.int64).max),
        )
        for number, (first, after) in enumerate(pairwise(bounds))
        if after > first
    }


def _last_read(work: InferenceWork) -> Numbers:
    """Command → end of the last command that depends on its data."""
    index, count = work.index, len(work.index.program.commands)
    end, until = np.zeros(count, np.int64), np.zeros(count, np.int64)
    end[work.commands.command] = work.commands.end
    if len(index.read):
        until[index.read] = np.maximum.reduceat(end[index.readers], index.first_reader)
    return until


def local_memory(work: InferenceWork, held: Residency) -> tuple[MemoryTotal, ...]:
    """Local memory of every core: the most that the compiler placed in it, and the mean of what is seen to be held."""
    program = work.index.program
    placed = dict(enumerate(program.metrics.local_bytes))  # copies from other cores and gaps too, which `held` lacks
    rows = []
    for (device, core), (start, end) in sorted(work.windows.items()):
        number = device * program.cores + core
        found = held.get(number)
        peak, mean = placed.get(number) or None, None
        if found is not None:
            times, values = found
            peak, staying = peak or int(values.max()), program.metrics.staying_bytes
            mean = staying + float(((values[:-1] - staying) * np.diff(times)).sum() / max(end - start, 1))
        rows.append(
            MemoryTotal(
                work.index.local_name, device, core, peak, mean, program.metrics.local_capacity or None, None, None
            )
        )
    return tuple(rows)


def outer_traffic(work: InferenceWork) -> tuple[MemoryTotal, ...]:
    """Bytes to and from it per device, of transfers that were recorded; the flush of the statistics is part of it."""
    index, program = work.index, work.index.program
    if len(index.memories) < 2:
        return ()
    command = work.transfers.command
    device = index.core[command] // program.cores
    sums: dict[str, Numbers] = {}
    for carries in ("read", "write"):
        wanted = np.array([route.carries == carries for route in program.routes] + [False])
        moved = np.where(wanted[index.route[command]], index.moved_bytes[command], 0)
        sums[carries] = total(device, moved, program.devices)
    return tuple(
        MemoryTotal(
            index.memories[1], number, None, None, None, None, int(sums["read"][number]), int(sums["write"][number])
        )
        for number in np.unique(device).tolist()
    )


def route_totals(work: InferenceWork) -> tuple[RouteTotal, ...]:
    """Bytes in flight per device and route, then per core; the flush of the statistics is left out."""
    index, program = work.index, work.index.program
    part = work.transfers.where(~index.is_flush[work.transfers.command])
    routes = len(program.routes)
    core = index.core[part.command]
    device = core // program.cores * routes + index.route[part.command]
    rows = list(_route_totals(work, part, device, program.devices * routes, per_core=False))
    own = core * routes + index.route[part.command]
    return (*rows, *_route_totals(work, part, own, program.devices * program.cores * routes, per_core=True))


def _route_totals(
    work: InferenceWork, part: SpanColumns, key: Numbers, count: int, *, per_core: bool
) -> Iterator[RouteTotal]:
    program = work.index.program
    moved = total(key, work.index.moved_bytes[part.command], count)
    busy = union(key, part.start, part.end).total(count)
    most = most_open(key, part.start, part.end, count)
    counts = np.bincount(key, minlength=count)
    for place in np.flatnonzero(counts).tolist():
        owner, route = divmod(place, len(program.routes))
        device, core = divmod(owner, program.cores) if per_core else (owner, None)
        yield RouteTotal(
            device,
            core,
            program.routes[route].name,
            int(counts[place]),
            int(moved[place]),
            int(busy[place]),
            int(most[place]),
        )


def placements(work: InferenceWork) -> tuple[Placement, ...]:
    """Operands in local and in outer memory, per kind and group of command, outer-memory time first.

    Kind, group and whether a command has operands in outer memory are one whole number, the last one its lowest digit:
    of 3 groups, kind 2 in group 1 is (2 × 3 + 1) × 2 = 14 with all operands local, else 15. A table of pairs thus has
    local and outer side by side in row 7.
    """
    index, program, part = work.index, work.index.program, work.in_turn
    lies = index.outer[part.command]
    groups = len(program.groups)
    key = (index.kind[part.command] * groups + index.group[part.command]) * 2 + (lies > 0)
    count = len(program.kinds) * groups * 2
    counts = np.bincount(key, minlength=count).reshape(-1, 2)
    ns = total(key, part.ns, count).reshape(-1, 2)
    where = np.zeros(len(counts), np.int64)
    for number in range(1, len(index.memories)):
        where[np.bincount(key[lies == number] // 2, minlength=len(counts)) > 0] = number
    rows = []
    for place in np.flatnonzero(counts.sum(axis=1)).tolist():
        kind, group = divmod(place, groups)
        (local, outside), (local_ns, outside_ns) = counts[place].tolist(), ns[place].tolist()
        memory = index.memories[where[place]] if outside else ""
        rows.append(
            Placement(program.kinds[kind], program.groups[group].name, local, local_ns, outside, outside_ns, memory)
        )
    return tuple(sorted(rows, key=lambda row: (-row.outer_ns, -row.local_ns, row.kind)))
