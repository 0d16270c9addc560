"""Which ops, types, layers, blocks, engines and places in the source does the time belong to?"""

from __future__ import annotations

from collections.abc import Sequence

from ..core.meaning import ROLLUPS
from ..core.sums import known_sum
from ..recording.finding import Rollup, RollupRow
from ..recording.summary import NO_OP_NAME
from .run_analysis import RunAnalysis

UNKNOWN = "(not known)"


def rollups(analysis: RunAnalysis) -> tuple[Rollup, ...]:
    """One per way of adding up; each holds every op once."""
    return tuple(rollup(analysis, by) for by in ROLLUPS)


def rollup(analysis: RunAnalysis, by: str) -> Rollup:
    """Ops added up one way, costliest first."""
    return Rollup(by, _rows(analysis, _labels(analysis, by)))


def _labels(analysis: RunAnalysis, by: str) -> Sequence[str]:
    """What every op is added up under."""
    ops = analysis.run.ops
    match by:
        case "op":
            return [op.name for op in ops]
        case "type":
            return [op.type or UNKNOWN for op in ops]
        case "module":
            return [op.module or UNKNOWN for op in ops]
        case "layer":
            return analysis.structure.layers
        case "block":
            return analysis.structure.blocks
        case "engine":
            return [total.engine or UNKNOWN for total in analysis.ops]
    return [op.location or UNKNOWN for op in ops]


def _rows(analysis: RunAnalysis, labels: Sequence[str]) -> tuple[RollupRow, ...]:
    """Costliest first."""
    members: dict[str, list[int]] = {}
    for position, label in enumerate(labels):
        members.setdefault(label, []).append(position)
    whole = sum(op.busy_ns or 0 for op in analysis.run.summary.ops)
    path = analysis.op_path_ns.tolist() if analysis.has_timeline else None
    rows = [_row(analysis, label, positions, whole, path) for label, positions in members.items()]
    other = _other(analysis, whole)
    if other is not None:
        rows.append(other)
    return tuple(sorted(rows, key=lambda row: (-(row.busy_ns or 0), -(row.path_ns or 0), row.name)))


def _row(analysis: RunAnalysis, label: str, positions: list[int], whole: int, path_ns: list[int] | None) -> RollupRow:
    totals = [analysis.ops[position] for position in positions]
    busy = known_sum(total.busy_ns for total in totals)
    unknown = all(analysis.run.ops[position].unknown for position in positions)
    path = None if path_ns is None or unknown else sum(path_ns[position] for position in positions)
    share = busy / whole if busy is not None and whole else None
    macs, moved = (known_sum(getattr(total, key) for total in totals) for key in ("macs", "moved_bytes"))
    return RollupRow(label, len(positions), busy, path, share, macs, moved)


def _other(analysis: RunAnalysis, whole: int) -> RollupRow | None:
    """What belongs to no op, in the summary or on the critical path."""
    total = next((op for op in analysis.run.summary.ops if op.op is None), None)
    left = int(analysis.path.ns.sum()) - int(analysis.op_path_ns.sum()) if analysis.has_timeline else 0
    if total is None and not left:
        return None
    busy = None if total is None else total.busy_ns
    return RollupRow(
        NO_OP_NAME,
        0,
        busy,
        left if analysis.has_timeline else None,
        busy / whole if busy is not None and whole else None,
        None if total is None else total.macs,
        None if total is None else total.moved_bytes,
    )
