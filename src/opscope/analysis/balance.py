"""Do cores share the work evenly? By pcycles at work, without the flush of the statistics."""

from __future__ import annotations

import numpy as np

from ..summary import CoreBalance
from .work import Work, total


def core_balance(work: Work) -> tuple[CoreBalance, ...]:
    program, index = work.index.program, work.index
    spans = work.ops[~index.is_flush[work.ops["command"]]]
    core = index.core_of[spans["command"]]
    count = program.devices * program.cores
    busy = total(core, spans["pcycles"], count)
    ends = np.zeros(count, np.int64)
    last = work.commands[~index.is_flush[work.commands["command"]]]
    np.maximum.at(ends, index.core_of[last["command"]], last["end_ns"])
    rows = []
    for place in np.flatnonzero(np.bincount(core, minlength=count)).tolist():
        device, number = divmod(place, program.cores)
        own = busy[device * program.cores : (device + 1) * program.cores]
        mean = float(own.mean())
        rows.append(CoreBalance(device, number, int(busy[place]), busy[place] / mean if mean else 1.0, int(ends[place])))
    return tuple(rows)
