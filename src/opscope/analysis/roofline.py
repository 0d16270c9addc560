"""Where does every op stand against the machine's limits, and how far from the least time it could take?"""

from __future__ import annotations

import math

from ..recording.finding import RooflineOp
from ..recording.run import MACS_PER_S, OUTER_BYTES_PER_S, VECTOR_BYTES_PER_S
from ..recording.summary import OpTotal
from .outer_memory import outer_bytes
from .run_analysis import RunAnalysis


def roofline(analysis: RunAnalysis) -> tuple[RooflineOp, ...]:
    """Ops with a time, and MACs or bytes; longest first."""
    limits = analysis.run.info.limits.get(MACS_PER_S) or None, analysis.run.info.limits.get(OUTER_BYTES_PER_S) or None
    outer = outer_bytes(analysis.run)
    rows = []
    for position, total in enumerate(analysis.ops):
        moved = total.moved_bytes if outer is None else int(outer[position])
        if total.wall_ns and total.macs is not None and moved is not None and (total.macs or moved):
            rows.append(_position(total.name, total.macs, moved, total.wall_ns, limits))
    return tuple(sorted(rows, key=lambda row: -row.wall_ns))


def least_ns(analysis: RunAnalysis, op: OpTotal) -> float | None:
    """What the MACs, the bytes of outer memory and the vector work of an op alone would take; None: not known."""
    limits = analysis.run.info.limits
    amounts = (
        (op.macs, MACS_PER_S),
        (op.moved_bytes, OUTER_BYTES_PER_S),
        (op.vector_bytes if not op.macs else None, VECTOR_BYTES_PER_S),
    )
    times = [amount * 1e9 / limits[name] for amount, name in amounts if amount and limits.get(name)]
    return max(times, default=None)


def _position(name: str, macs: int, moved: int, wall_ns: int, limits: tuple[float | None, float | None]) -> RooflineOp:
    macs_per_s, bytes_per_s = limits
    intensity = macs / moved if moved else None
    attainable = macs_per_s
    if intensity is not None and bytes_per_s is not None:
        attainable = min(intensity * bytes_per_s, macs_per_s or math.inf)
    times = [amount / rate for amount, rate in ((macs, macs_per_s), (moved, bytes_per_s)) if rate is not None]
    bound = round(max(times) * 1e9) if len(times) == 2 else None
    return RooflineOp(name, macs, moved, intensity, macs * 1e9 / wall_ns, attainable, bound, wall_ns)
