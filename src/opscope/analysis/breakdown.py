"""What is the wall time made of? Disjoint parts: some engine computes; else bytes are in flight; else nothing moves."""

from __future__ import annotations

import numpy as np

from ..summary import Share
from .intervals import union_ns
from .work import Work


def breakdown(work: Work) -> tuple[Share, ...]:
    """Averaged over cores, so that the parts add up to the wall time of the inference."""
    index, program = work.index, work.index.program
    windows = work.core_windows()
    if not windows or not len(work.ops):
        return ()
    count = program.devices * program.cores
    wall = max(end for _, end in windows.values()) - min(start for start, _ in windows.values())
    busy = work.commands
    flush = index.is_flush[busy["command"]]
    moving = index.moves[busy["command"]]

    def union(rows: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> float:
        chosen = busy[rows]
        per_core = union_ns(index.core_of[chosen["command"]], chosen["start_ns"], chosen["end_ns"], count)
        return float(per_core.sum()) / len(windows)

    computing = union(~moving)
    with_transfers = union(~moving | ~flush)
    everything = union(np.ones(len(busy), np.bool_))
    parts = (
        ("compute", computing),
        ("transfer only", with_transfers - computing),
        ("statistics only", everything - with_transfers),
        ("nothing moves", wall - everything),
    )
    return tuple(Share(cause, ns, ns / wall if wall else 0.0) for cause, ns in parts)
