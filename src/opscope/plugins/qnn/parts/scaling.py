"""A timeline of one part → the same work on another part, replayed with the rates of both.

Every span takes as much longer as what it keeps busy is slower there: HMX by MACs per second in its data type (as much
of the span as its MACs take at the peak), HVX by clock × threads, transfers of outer memory by bytes per second,
everything else by the core clock. Spans keep their
lane, their order in it and what they waited for: each begins as long after the last of these as it did before, in
cycles of the core. So nothing overlaps that did not, and with equal rates nothing moves. A transfer that nobody waited
for is waited for where it has become slow.

    HVX  [ a: 100 ][ b: 50 ]          HVX on half the clock    [ a: 200      ][ b: 100  ]
    DMA    [ 120    ]                 DMA as before             [ 120 ]
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ....core.columns import Floats
from ....machine.target import Figure
from ..attribution import Attribution
from ..hexagon import Hexagon, type_of
from ..importers.schematic import Schematic
from ..importers.timeline import DMA, ENGINES, HLX, HMX, HVX, Timeline
from ..node_path import Order
from ..node_times import is_wait


@dataclass(frozen=True, slots=True)
class Rates:
    """What work of one kind is done at, in anything per second; the same anything on both parts."""

    clock_hz: float
    matrix: dict[str, float]  # data type → MACs per second
    vector: float
    outer: float

    @classmethod
    def of(cls, part: Hexagon, *, end: str = "value") -> Rates:
        """At the typical figures, or at the `smallest` or `largest`."""

        def rate(figure: Figure) -> float:
            return float(getattr(figure, end))

        macs = {dtype: part.macs_per_s(dtype) for dtype in part.macs_per_cycle}
        return cls(
            rate(part.core_hz),
            {dtype: rate(figure) for dtype, figure in macs.items() if figure is not None},
            rate(part.vector_bytes_per_s),
            rate(part.outer_bytes_per_s),
        )


def scaled(
    timeline: Timeline, schematic: Schematic, base: Rates, target: Rates, macs: Floats | None = None
) -> Timeline:
    """The timeline as it would be on another part, in cycles of that part's core clock.

    Args:
        macs: of every span, as `span_macs` has them; None: not known, and HMX takes all its time for them.
    """
    if base == target or not len(timeline.work):
        return timeline
    ratios = _cycle_ratios(timeline, schematic, base, target, macs)
    start, end = _replayed(timeline, Order(timeline, schematic), ratios)
    work = timeline.work.copy()
    work["start"], work["end"] = np.rint(start).astype(np.int64), np.rint(end).astype(np.int64)
    order = np.argsort(work["start"], kind="stable")
    return replace(
        timeline,
        work=work[order],
        usage=_moved(timeline, start, end),
        settings=timeline.settings | {"sim_core_freq": target.clock_hz / 1e6},
    )


def span_macs(timeline: Timeline, attribution: Attribution) -> Floats:
    """MACs of every span on HMX: those of its node, shared by length; NaN: not known."""
    work = timeline.work
    on_hmx = np.flatnonzero((work["engine"] == ENGINES.index(HMX)) & ~work["bookkeeping"])
    rows = np.array([attribution.row(op) for op in work["id"][on_hmx].tolist()], np.int64)
    lengths = (work["end"] - work["start"])[on_hmx].astype(np.float64)
    known = [attribution.macs(name) for name in attribution.rows]
    whole = np.bincount(rows, lengths, minlength=len(known))
    per_cycle = np.array([np.nan if macs is None else macs for macs in known]) / np.maximum(whole, 1)
    result = np.full(len(work), np.nan)
    result[on_hmx] = per_cycle[rows] * lengths
    return result


def _cycle_ratios(timeline: Timeline, schematic: Schematic, base: Rates, target: Rates, macs: Floats | None) -> Floats:
    """Of every span: cycles on the target for a cycle on the base.

    Of a span on HMX, what its MACs take at the peak goes by the rate of HMX, the rest by the core clock: a product of
    a few numbers takes as long on a wide HMX as on a narrow one.
    """
    work, clock = timeline.work, target.clock_hz / base.clock_hz
    result = np.ones(len(work))
    engine = np.array(ENGINES)[work["engine"]]
    result[np.isin(engine, (HVX, HLX))] = clock * base.vector / target.vector
    outer = (engine == DMA) & (work["dram_read"] + work["dram_write"] > 0)
    result[outer] = clock * base.outer / target.outer
    for span in np.flatnonzero(engine == HMX).tolist():
        op = schematic.ops.get(int(work["id"][span]))
        dtype = type_of(op.dtype if op else "")
        if dtype in base.matrix and dtype in target.matrix:
            share = 1.0
            if macs is not None and not np.isnan(macs[span]):
                cycles = max(int(work["end"][span] - work["start"][span]), 1)
                share = min(1.0, float(macs[span]) * base.clock_hz / base.matrix[dtype] / cycles)
            result[span] = share * clock * base.matrix[dtype] / target.matrix[dtype] + (1 - share)
    result[work["bookkeeping"]] = 1.0
    return result


def _replayed(timeline: Timeline, order: Order, ratios: Floats) -> tuple[Floats, Floats]:
    """Start and end of every span.

    A wait ends with what it is for, which may have begun after it: waits are placed by their end, all else by start.
    """
    work = timeline.work
    before, after = (work[key].tolist() for key in ("start", "end"))
    waits = (is_wait(timeline) & (work["end"] > work["start"])).tolist()
    start, end = np.zeros(len(work)), np.zeros(len(work))

    def now(cause: int, moment: int) -> float:
        """A moment of a span that was at work then, or its end."""
        if after[cause] <= moment:
            return float(end[cause])
        return float(start[cause] + (moment - before[cause]) * ratios[cause])

    moment = np.where(waits, work["end"], work["start"])
    for span in np.lexsort((np.arange(len(work)), work["end"], work["start"], np.logical_not(waits), moment)).tolist():
        first, last = before[span], after[span]
        held = [
            cause
            for cause in order.before(span)
            if (before[cause], after[cause], cause) < (first, last, span)
            and not (waits[cause] and after[cause] > first)
        ]
        then = max((min(after[cause], first) for cause in held), default=0)
        start[span] = max((now(cause, first) for cause in held), default=0.0) + (first - then)
        if waits[span]:
            awaited = [
                c for c in _awaited(order, span) if not waits[c] and before[c] < last and first < after[c] <= last
            ]
            until = max((after[cause] for cause in awaited), default=first)
            end[span] = max(start[span], *(end[cause] for cause in awaited), 0.0) + (last - until)
        else:
            end[span] = start[span] + (last - first) * ratios[span]
    return start, end


def _awaited(order: Order, span: int) -> Iterator[int]:
    """Work that a wait of the foreground thread is for."""
    op = order.op_of(span)
    yield from order.producers(op, of_work=True)
    own = order.done_by.get(op, span)
    if own != span:
        yield own


def _moved(timeline: Timeline, start: Floats, end: Floats) -> npt.NDArray[np.int64]:
    """Moments at which use of VTCM changes, moved with the spans around them."""
    old = np.concatenate(([0], timeline.work["start"], timeline.work["end"])).astype(np.float64)
    new = np.concatenate(([0.0], start, end))
    order = np.argsort(old, kind="stable")
    at = np.interp(timeline.usage[:, 0], old[order], np.maximum.accumulate(new[order]))
    return np.column_stack((np.rint(at).astype(np.int64), timeline.usage[:, 1]))
