"""What explains the change of latency, largest part first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .comparison import Difference, Explanation, OpDifference, Part
from .figures import Figures

REST = "not explained by ops"


def explain(base: Figures, new: Figures, rows: Mapping[str, Sequence[OpDifference]]) -> dict[str, Explanation]:
    """For ops and for every rollup: changes of their parts of the clock; what is missing to the change is the rest.

    Where a run has no timeline, the times that it gives for ops take the place of their parts.
    """
    before, after = base.latency_ns, new.latency_ns
    if before is None or after is None:
        return {}
    has_parts = all(any(op.own_ns is not None for op in figures.ops) for figures in (base, new))
    return {by: _explanation(after - before, found, has_parts=has_parts) for by, found in rows.items()}


def _explanation(change_ns: float, rows: Sequence[OpDifference], *, has_parts: bool) -> Explanation:
    parts = []
    for row in rows:
        found: Difference = row.own if has_parts else row.time
        if found.change:
            parts.append(Part(row.name, found.change, found.base, found.new, row.how, row))
    parts.sort(key=lambda part: (-abs(part.ns), part.name))
    rest = change_ns - sum(part.ns for part in parts)
    return Explanation(change_ns, tuple(parts), Part(REST, rest, None, None))
