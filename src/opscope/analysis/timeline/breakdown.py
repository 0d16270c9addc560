"""What is the run bound by? Every moment of its wall time counts as one thing: what the critical path did then."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from ...recording.finding import OTHER_BOUND
from ...recording.summary import Share
from ..causes import CAUSES, HOST, cause_of_op, cause_of_stage
from ..op_bounds import bound_by_bytes

if TYPE_CHECKING:
    from ..run_analysis import RunAnalysis


def breakdown(analysis: RunAnalysis) -> tuple[Share, ...]:
    """Parts of the wall time, largest first; they add up to it. Empty: the run tells no times."""
    if analysis.has_timeline:
        path = analysis.path
        sums = np.bincount(path.cause, path.ns, minlength=len(CAUSES))
        return _shares(Counter({cause: round(ns) for cause, ns in zip(CAUSES, sums.tolist(), strict=True)}))
    return _of_ops(analysis)


def _of_ops(analysis: RunAnalysis) -> tuple[Share, ...]:
    """Without a timeline: the time of ops, as if they ran one after the other on as many lanes as it takes.

    Compute 60 and memory 20 of a wall time of 40: two lanes' worth, so compute counts 30 and memory 10. Of a wall time
    of 100, they count 60 and 20, and the 20 that no op explains are other.
    """
    times: Counter[str] = Counter()
    totals = analysis.run.summary.ops
    mixed = any(op.engine and not op.on_cpu for op in totals)
    by_bytes = bound_by_bytes(analysis.run)
    for op in totals:
        cause = HOST if mixed and op.on_cpu else cause_of_op(op, slow_bytes=op.op in by_bytes)
        times[CAUSES[cause]] += op.busy_ns or 0
    around = _around(analysis)
    whole, wall = sum(times.values()), analysis.wall_ns
    if not whole:
        return _shares(around) if around else (Share(OTHER_BOUND, float(wall), 1.0),) if wall else ()
    if wall is None:
        return _shares(times)
    wall -= sum(around.values()) - around.pop(OTHER_BOUND, 0)  # what is left is the device's
    lanes = max(1.0, whole / wall) if wall else 1.0
    scaled = Counter({cause: round(ns / lanes) for cause, ns in times.items()})
    explained = whole + len(totals) >= wall  # times of ops are whole ns
    rest = scaled.most_common(1)[0][0] if explained else OTHER_BOUND  # all is known: what is left is rounding
    scaled[rest] += wall - sum(scaled.values())
    return _shares(scaled + around)


def _around(analysis: RunAnalysis) -> Counter[str]:
    """Where stages around the device are known: what each counts as. What the device did in its own is not said."""
    times: Counter[str] = Counter()
    for stage in analysis.run.summary.host:
        times[CAUSES[cause_of_stage(stage)]] += stage.ns
    return times


def _shares(times: Counter[str]) -> tuple[Share, ...]:
    whole = sum(times.values())
    rows = [Share(cause, float(times[cause]), times[cause] / whole) for cause in CAUSES if times[cause]]
    return tuple(sorted(rows, key=lambda row: -row.ns))
