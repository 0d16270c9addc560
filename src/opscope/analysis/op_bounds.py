"""Work whose bytes take longer than its MACs: where a run shows no transfers, its time counts as memory."""

from __future__ import annotations

import numpy as np

from ..core.columns import Flags
from ..core.meaning import Does
from ..program.program import NO_COMMAND, NO_ROUTE, OpCycles
from ..recording.run import MACS_PER_S, OUTER_BYTES_PER_S, Run
from ..recording.trace import SpanKind


def bound_by_bytes(run: Run) -> frozenset[int]:
    """Ops whose bytes take longer than their MACs, by what the run tells of either."""
    commands = run.commands.rows["op"][memory_bound_commands(run)].tolist()
    return frozenset((*np.flatnonzero(memory_bound_ops(run)).tolist(), *commands))


def memory_bound_ops(run: Run) -> Flags:
    """One flag per op: most of its cycles by resource are those of a memory; without such cycles, the limits of the
    machine say it."""
    flags = np.zeros(len(run.ops), np.bool_)
    flags[list(_by_limits(run) - {row.op for row in run.commands.op_cycles})] = True
    flags[[op for op, command in _by_cycles(run) if command == NO_COMMAND]] = True
    return flags


def memory_bound_commands(run: Run) -> Flags:
    """One flag per command: most of the cycles by resource that it lists are those of a memory."""
    flags = np.zeros(len(run.commands.rows), np.bool_)
    flags[[command for _, command in _by_cycles(run) if 0 <= command < len(flags)]] = True
    return flags


def _by_cycles(run: Run) -> list[tuple[int, int]]:
    """Ops and commands that a memory binds; none where the run shows its transfers."""
    if bool((run.commands.rows["route"] != NO_ROUTE).any()):
        return []
    most: dict[tuple[int, int], OpCycles] = {}
    for row in run.commands.op_cycles:
        key = row.op, row.command
        if key not in most or row.cycles > most[key].cycles:
            most[key] = row
    return [key for key, row in most.items() if row.cycles and row.is_memory]


def _by_limits(run: Run) -> set[int]:
    """None where the run shows its transfers, or does not tell the limits of the machine."""
    macs_per_s, bytes_per_s = (run.info.limits.get(key) for key in (MACS_PER_S, OUTER_BYTES_PER_S))
    spans = run.trace.spans
    shown = (spans["kind"] == SpanKind.TRANSFER) | ((spans["does"] == Does.MOVE) & (spans["kind"] == SpanKind.OP))
    if not macs_per_s or not bytes_per_s or bool(shown.any()):
        return set()
    return {
        total.op
        for total in run.summary.ops
        if total.op is not None
        and total.macs is not None
        and total.moved_bytes
        and total.moved_bytes / bytes_per_s > total.macs / macs_per_s
    }
