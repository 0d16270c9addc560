"""Ops that compute nothing and take long, and ops whose modelled time is far above what their work needs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from ...core.meaning import Does
from ...core.provenance import Provenance
from ...core.units import format_counted, format_ns, format_percent
from ...graph.kinds import KINDS, Family
from ...recording.finding import NO_COMPUTE, OUTLIER, Finding
from ...recording.summary import OpTotal
from ..causes import does_of
from ..graph_patterns import DataFlow
from ..roofline import least_ns
from ..run_analysis import RunAnalysis
from .draft import Draft

LONG_SHARE = 0.05  # of the critical path, that alike ops which compute nothing take together
OUTLIER_SHARE = 0.05  # of the critical path
OUTLIER_FACTOR = 50.0  # times what its bytes and operations need; element by element on one thread is about this much
MOST_NAMES = 200


def computes_nothing(analysis: RunAnalysis) -> Iterator[Draft]:
    """Alike ops – of one type and shape, done by one kernel – that leave the same values elsewhere."""
    flow = DataFlow(analysis.run)
    for ops in _long_movers(analysis):
        cost, places = _path_ns(analysis, ops), [op.op for op in ops if op.op is not None]
        found = flow.pattern(places)
        ratio = _ratio(analysis, ops[0])
        detail = [_who(ops[0]), format_ns(ops[0].wall_ns or 0) + (" each" if len(ops) > 1 else "")]
        if ratio is not None:
            detail.append(f"{_times(ratio)} what moving its bytes takes")
        if ops[0].threads and ops[0].engine_threads and ops[0].threads < ops[0].engine_threads:
            detail.append(f"on {ops[0].threads} of {ops[0].engine_threads} threads of {ops[0].engine}")
        if found is not None:
            detail.append(found.seen)
        positions = _positions(analysis, places)
        verbs = ("compute", "take") if len(ops) > 1 else ("computes", "takes")
        yield Draft(
            Finding(
                NO_COMPUTE,
                f"{_named(ops)} {verbs[0]} nothing and {verbs[1]} {format_percent(cost / (analysis.wall_ns or 1))} of "
                "the critical path",
                "; ".join(detail),
                tuple(op.name for op in ops)[:MOST_NAMES],
                cost,
                action=found.action if found else "change the network so that these values need not be moved",
                spans=analysis.rows(positions, analysis.path_ns),
            ),
            positions,
        )


def long_movers(analysis: RunAnalysis) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """One flag per op: it has such a finding."""
    return _flags(analysis, _long_movers(analysis))


def _long_movers(analysis: RunAnalysis) -> list[tuple[OpTotal, ...]]:
    groups = _alike(analysis, [op for op in analysis.ops if does_of(op) is Does.LAYOUT and _only_moves(analysis, op)])
    return [ops for ops in groups if analysis.wall_ns and _path_ns(analysis, ops) >= LONG_SHARE * analysis.wall_ns]


def _only_moves(analysis: RunAnalysis, op: OpTotal) -> bool:
    """Conversions of type change values, and what belongs to no op of the network has no form to change."""
    kind = KINDS.get(analysis.run.ops[op.op].kind) if op.op is not None else None
    return bool(op.type) if kind is None else kind.family in (Family.MOVE, Family.VIEW)


def outliers(analysis: RunAnalysis) -> Iterator[Draft]:
    """Ops of a modelled run that take so much longer than their work needs that the model itself is in doubt."""
    for ops in _doubted(analysis):
        cost, ratio, taken = _path_ns(analysis, ops), _ratio(analysis, ops[0]) or 1.0, _work_ns(analysis, ops[0])
        positions = _positions(analysis, [op.op for op in ops if op.op is not None])
        yield Draft(
            Finding(
                OUTLIER,
                f"{_named(ops)}: the model's time is {_times(ratio)} what bytes and operations need",
                f"{_who(ops[0])}; {format_ns(taken)} for work of {format_ns(taken / ratio)} at the least: "
                "measure it on a device before you believe the total",
                tuple(op.name for op in ops)[:MOST_NAMES],
                cost,
                action=_another_form(analysis, ops[0]),
                spans=analysis.rows(positions, analysis.path_ns),
            ),
            positions,
        )


def _another_form(analysis: RunAnalysis, op: OpTotal) -> str:
    kind = KINDS.get(analysis.run.ops[op.op].kind) if op.op is not None else None
    if kind is not None and kind.family is Family.POOL:
        return (
            "pool in two steps, or by a reduction over the axes (ReduceMax, ReduceMean), and see whether the time stays"
        )
    return "replace the op with another form of the same function, and see whether the time stays"


def doubted(analysis: RunAnalysis) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """One flag per op: it has such a finding."""
    return _flags(analysis, _doubted(analysis))


def _flags(analysis: RunAnalysis, groups: list[tuple[OpTotal, ...]]) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    flags = np.zeros(len(analysis.run.ops), np.bool_)
    flags[[op.op for ops in groups for op in ops if op.op is not None]] = True
    return flags


def _doubted(analysis: RunAnalysis) -> list[tuple[OpTotal, ...]]:
    """Of a measured run no time is in doubt; work that only moves data is told with its ratio."""
    if analysis.run.info.provenance not in (Provenance.VENDOR_MODEL, Provenance.ESTIMATED) or not analysis.wall_ns:
        return []
    far = [
        op for op in analysis.ops if does_of(op) is not Does.LAYOUT and (_ratio(analysis, op) or 0) >= OUTLIER_FACTOR
    ]
    least = OUTLIER_SHARE * analysis.wall_ns
    return [ops for ops in _alike(analysis, far) if _path_ns(analysis, ops) >= least]


def _alike(analysis: RunAnalysis, ops: Sequence[OpTotal]) -> list[tuple[OpTotal, ...]]:
    """Ops with one type, kernel and shape; longest first in each."""
    groups: dict[tuple[str, str, str], list[OpTotal]] = defaultdict(list)
    for op in ops:
        if op.op is not None and op.wall_ns and len(analysis.work):
            groups[op.type, op.kernel, op.shape].append(op)
    return [tuple(sorted(group, key=lambda op: -(op.wall_ns or 0))) for group in groups.values()]


def _path_ns(analysis: RunAnalysis, ops: Sequence[OpTotal]) -> int:
    return int(sum(int(analysis.op_path_ns[op.op]) for op in ops if op.op is not None))


def _positions(analysis: RunAnalysis, places: Sequence[int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    chosen = np.zeros(len(analysis.run.ops), np.bool_)
    chosen[list(places)] = True
    return analysis.of_ops(chosen)


def _ratio(analysis: RunAnalysis, op: OpTotal) -> float | None:
    least = least_ns(analysis, op)
    return _work_ns(analysis, op) / least if least and op.wall_ns else None


def _work_ns(analysis: RunAnalysis, op: OpTotal) -> int:
    """The time of an op without what starts it, converts its inputs and hands over, where the run tells those apart."""
    around = 0 if op.op is None else int(analysis.around_ns[op.op])
    return max((op.wall_ns or 0) - around, 0)


def _times(ratio: float) -> str:
    return f"{ratio:,.0f} ×" if ratio >= 10 else f"{ratio:.1f} ×"


def _named(ops: Sequence[OpTotal]) -> str:
    return f"{ops[0].name} ({ops[0].type})" if len(ops) == 1 else f"{format_counted(len(ops), f'{ops[0].type} op')}"


def _who(op: OpTotal) -> str:
    """The routine that did it, and on what."""
    return " on ".join(part for part in (f"kernel {op.kernel}" if op.kernel else "", op.shape) if part) or op.type
