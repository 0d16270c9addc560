"""How full was local memory?"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from ...core.columns import rising
from ...recording.summary import MemoryTotal
from .work import Numbers, Work

Occupancy = dict[int, tuple[Numbers, Numbers]]  # device × cores + core → times in ns, bytes from then on


def occupancy(work: Work) -> Occupancy:
    """Per core, how many bytes of local memory hold an output that is being written or still waits for a reader.

    A reader is known by its dependency; the compiler leaves out those that the order of a lane guarantees, so this is
    a lower bound.
    """
    index, part = work.index, work.commands
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
    return {
        number: (moment[first:after] - number * width + low, held[first:after])
        for number, (first, after) in enumerate(pairwise(bounds))
        if after > first
    }


def _last_read(work: Work) -> Numbers:
    """Command → end of the last command that depends on its data."""
    index, count = work.index, len(work.index.program.commands)
    end, until = np.zeros(count, np.int64), np.zeros(count, np.int64)
    end[work.commands.command] = work.commands.end
    if len(index.read):
        until[index.read] = np.maximum.reduceat(end[index.readers], index.first_reader)
    return until


def local_memory(work: Work, held: Occupancy) -> tuple[MemoryTotal, ...]:
    """Local memory of every core."""
    program = work.index.program
    rows = []
    for (device, core), (start, end) in sorted(work.windows.items()):
        found = held.get(device * program.cores + core)
        peak = mean = None
        if found is not None:
            times, values = found
            peak = int(values.max())
            mean = float((values[:-1] * np.diff(times)).sum() / max(end - start, 1))
        rows.append(
            MemoryTotal(
                work.index.local_name, device, core, peak, mean, program.metrics.local_capacity or None, None, None
            )
        )
    return tuple(rows)
