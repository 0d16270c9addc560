"""Work whose bytes take longer than its MACs: where a run shows no transfers, its time counts as memory."""

from __future__ import annotations

import re

import numpy as np

from ..core.columns import distinct
from ..program.program import NO_OP
from ..recording.run import Run
from ..recording.trace import SpanKind
from .bound_words import MOST_READ
from .timeline.activities import Flags

MACS_PER_S, OUTER_BYTES_PER_S = "macs_per_s", "outer_bytes_per_s"  # names of the limits in RunInfo


_CYCLES = re.compile(r"([A-Za-z][\w -]*)=(\d+)")  # of a resource, as models of compilers list them
_MEMORY = re.compile(r"s?d?ram|flash|ddr", re.IGNORECASE)


def memory_bound_commands(run: Run) -> Flags:
    """One flag per command: of the cycles by resource that it lists, those of a memory are the most."""
    if run.commands.routes:
        return np.zeros(len(run.commands.rows), np.bool_)
    flags = np.array([_binds_on_memory(text) for text in run.commands.attributes] or [False])
    return np.asarray(flags[run.commands.rows["detail"]], np.bool_)


def _binds_on_memory(attributes: str) -> bool:
    cycles = [(int(number), name) for name, number in _CYCLES.findall(attributes[:MOST_READ])]
    most = max(cycles, default=(0, ""), key=lambda pair: pair[0])
    return most[0] > 0 and bool(_MEMORY.search(most[1]))


def names_bound_by_bytes(run: Run) -> set[str]:
    """Ops whose bytes take longer than their MACs, by what the run tells of either."""
    found = {op.name for op, slow in zip(run.ops, memory_bound_ops(run).tolist(), strict=True) if slow}
    rows = run.commands.rows[memory_bound_commands(run)]
    return found | {run.ops[op].name for op in distinct(rows["op"].astype(np.int64)).tolist() if op != NO_OP}


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
