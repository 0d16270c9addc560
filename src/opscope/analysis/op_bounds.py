"""Ops whose bytes take longer than their MACs: where a run shows no transfers, their time counts as memory."""

from __future__ import annotations

import numpy as np

from ..run import Run
from ..trace import SpanKind
from .activities import Flags

MACS_PER_S, OUTER_BYTES_PER_S = "macs_per_s", "outer_bytes_per_s"  # names of the limits in RunInfo


def memory_bound_ops(run: Run) -> Flags:
    """One flag per op; none is set where the run shows its transfers, or does not tell the limits of the machine."""
    flags = np.zeros(len(run.ops), np.bool_)
    macs_per_s, bytes_per_s = (run.info.limits.get(key) for key in (MACS_PER_S, OUTER_BYTES_PER_S))
    if not macs_per_s or not bytes_per_s or bool((run.trace.spans["kind"] == SpanKind.TRANSFER).any()):
        return flags
    bound = {
        total.name
        for total in run.summary.ops
        if total.macs is not None and total.moved_bytes and total.moved_bytes / bytes_per_s > total.macs / macs_per_s
    }
    return np.array([op.name in bound for op in run.ops], np.bool_)
