"""Do cores share the work evenly? By pcycles at work, without the flush of the statistics."""

from __future__ import annotations

import numpy as np

from ...recording.summary import CoreBalance
from .work import Work, total


def core_balance(work: Work) -> tuple[CoreBalance, ...]:
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
