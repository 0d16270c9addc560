"""The last commands of an instrumented program: every thread group flushes its part of the stats buffer."""

from __future__ import annotations

from dataclasses import replace

from ...core.meaning import Carries, Does
from ...program.program import NO_OP, OP_LEVEL, Detail
from ...program.wire import OP_RECORD
from ..plan import Plan
from .lower import Lowering


def instrument(plan: Plan, lowering: Lowering) -> None:
    """Add the flush where operator statistics were asked for; the buffer's bytes are its output."""
    if plan.options.stats_level < OP_LEVEL:
        return
    bench = lowering.bench
    records = sum(bench.groups[row[2]].threads for row in bench.emitter.rows)
    size = records * OP_RECORD.itemsize
    detail = bench.emitter.detail(Detail("stats buffer", bench.outer_name, "i8", "", (), ""))
    own = size / (bench.lane_count * len(bench.groups))
    for lane in range(bench.lane_count):
        for group in range(len(bench.groups)):
            order = bench.transfer(Carries.WRITE, lane, NO_OP, own, form="end_of_stats", group=group)
            bench.emitter.emit(replace(order, does=Does.STATS, detail=detail, out_bytes=size))
