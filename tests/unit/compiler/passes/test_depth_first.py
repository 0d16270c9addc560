"""Neighbours that do not fit local memory run slice by slice of rows."""

from __future__ import annotations

from opscope.compiler.passes.depth_first import rows_needed
from opscope.graph.graph import DType, Graph
from opscope.machine import catalogue as targets
from support.build import Sketch
from support.compiler.build import build

SR200 = targets.load("torq-sr200")


def chain(size: int, channels: int = 32) -> Graph:
    draw = Sketch("net", dtype=DType.I8)
    data = draw.input(1, size, size, channels)
    for _ in range(3):
        data = draw.conv(data, channels)
    return draw.graph(data)


def test_what_fits_runs_whole() -> None:
    convolutions = [p for p in build(chain(16), SR200).schedule.placed if p.op.kind == "conv"]
    assert len(convolutions) == 3


def test_what_does_not_fit_runs_in_slices_that_stay_local() -> None:
    built = build(chain(112), SR200)
    convolutions = [p for p in built.schedule.placed if p.op.kind == "conv"]
    assert len(convolutions) > 3
    macs = 3 * 112 * 112 * 32 * 32 * 9
    assert macs < sum(p.task.work.macs for p in convolutions) < 1.6 * macs  # rows at edges are computed twice
    bounds = built.program.bounds
    assert bounds is not None
    assert bounds.macs == macs
    assert abs(int(built.program.commands["macs"].sum()) - macs - bounds.repeated_macs) <= len(convolutions)
    written = int(built.program.commands["moved_bytes"][built.program.commands["route"] == 1].sum())
    assert written < 2.5 * 112 * 112 * 32  # the result, and not what is between


def test_a_slice_needs_the_rows_around_it() -> None:
    graph = chain(16)
    needed = rows_needed(graph.ops, graph, (4, 8))
    assert sorted(span for _, span in needed.values()) == [(1, 11), (2, 10), (3, 9), (4, 8)]
