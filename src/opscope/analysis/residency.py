"""How full was local memory?"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..program import TRUE, Program
from ..summary import MemoryTotal
from .work import Numbers, Spans, Work

Occupancy = dict[int, tuple[Numbers, Numbers]]  # device × cores + core → times in ns, bytes from then on


def occupancy(work: Work) -> Occupancy:
    """Per core, how many bytes of local memory hold an output that is being written or still waits for a reader.

    A reader is known by its dependency; the compiler leaves out those that the order of a lane guarantees, so this is
    a lower bound.
    """
    program, index = work.index.program, work.index
    spans = work.commands[program.commands["local_bytes"][work.commands["command"]] > 0]
    if not len(spans):
        return {}
    until = _last_read(program, work.commands)
    start, end = spans["start_ns"], np.maximum(until[spans["command"]], spans["end_ns"])
    size = program.commands["local_bytes"][spans["command"]].astype(np.int64)
    core = index.core_of[spans["command"]]
    moment, change, owner = np.concatenate((start, end)), np.concatenate((size, -size)), np.concatenate((core, core))
    order = np.lexsort((change, moment, owner))
    moment, held, owner = moment[order], np.cumsum(change[order]), owner[order]
    last = np.append((moment[1:] != moment[:-1]) | (owner[1:] != owner[:-1]), True)  # of several at once, the sum
    moment, held, owner = moment[last], held[last], owner[last]
    bounds = np.flatnonzero(np.diff(owner, prepend=-1)).tolist() + [len(owner)]
    return {
        int(owner[low]): (moment[low:high], held[low:high]) for low, high in zip(bounds, bounds[1:], strict=False)
    }


def _last_read(program: Program, spans: Spans) -> npt.NDArray[np.int64]:
    """Command → end of the last command that depends on its data."""
    end = np.zeros(len(program.commands), np.int64)
    end[spans["command"]] = spans["end_ns"]
    reader = np.repeat(np.arange(len(program.commands)), np.diff(program.dependency_offsets))
    data = program.dependency_kinds == TRUE
    until = np.zeros(len(program.commands), np.int64)
    np.maximum.at(until, program.dependency_sources[data], end[reader[data]])
    return until


def memory_totals(work: Work, held: Occupancy, local_name: str) -> tuple[MemoryTotal, ...]:
    """Local memory of every core, then the bytes that routes moved to and from outer memory."""
    program, windows = work.index.program, work.core_windows()
    capacity = program.metrics.local_capacity or None
    rows = []
    for (device, core), (start, end) in sorted(windows.items()):
        times, values = held.get(device * program.cores + core, (np.zeros(0, np.int64), np.zeros(0, np.int64)))
        mean = float((values[:-1] * np.diff(times)).sum() / max(end - start, 1)) if len(times) else None
        peak = int(values.max()) if len(times) else None
        rows.append(MemoryTotal(local_name, device, core, peak, mean, capacity, None, None))
    return tuple(rows)
