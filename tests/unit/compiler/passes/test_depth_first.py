"""Neighbours that do not fit local memory run slice by slice of rows."""

from __future__ import annotations

import pytest

from opscope.compiler.passes.rows import row_axes, rows_needed
from opscope.compiler.phases import phase_text
from opscope.core.meaning import Carries
from opscope.graph.graph import DType, Graph
from opscope.machine import catalogue as targets
from opscope.simulation import simulate
from support.build import Sketch
from support.compiler.build import KB, build, by_axis, small_target, whole_batch
from support.compiler.laws import all_laws

SR200 = targets.load("torq-sr200")
OUTER = (Carries.READ, Carries.WRITE)


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
    needed = rows_needed(graph.ops, graph, row_axes(graph), (4, 8))
    assert sorted(needed.values()) == [(1, 11), (2, 10), (3, 9), (4, 8)]


def residual(images: int, size: int, channels: int) -> Graph:
    """Two convolutions and an addition of what they were made from, channels before rows."""
    draw = Sketch("residual", dtype=DType.F16)
    data = first = draw.input(images, channels, size, size)
    for _ in range(2):
        data = draw.op(
            "conv",
            (data, draw.constant(channels, channels, 3, 3)),
            (images, channels, size, size),
            kernel=(3, 3),
            strides=(1, 1),
            groups=1,
            channel_axis=1,
        )
    return draw.graph(draw.same("add", data, first))


@pytest.mark.parametrize(("images", "cores"), [(1, 1), (2, 1), (4, 4), (8, 4)])
def test_rows_are_cut_whatever_the_layout_and_on_lanes_with_images_of_their_own(images: int, cores: int) -> None:
    graph = residual(images, 64, 16)
    moved = {}
    for depth_first in (True, False):
        target = small_target(local_bytes=128 * KB, weight_bytes=8 * KB, depth_first=depth_first)
        built = build(graph, target, cores=cores, parts=whole_batch, splits=by_axis(0) if cores > 1 else None)
        all_laws(built, simulate(built.program))
        commands = built.program.commands
        memory = [number for number, route in enumerate(built.program.routes) if route.carries in OUTER]
        moved[depth_first] = int(commands["moved_bytes"][[route in memory for route in commands["route"]]].sum())
    assert moved[True] < 0.8 * moved[False]


def test_a_group_saves_more_than_it_computes_again() -> None:
    """Weights that would be read for every slice take longer than what passes between two products."""
    draw = Sketch("heavy", dtype=DType.F16)
    data = draw.conv(draw.conv(draw.input(1, 16, 16, 256), 256), 256)
    target = small_target(local_bytes=160 * KB, weight_bytes=8 * KB)
    built = build(draw.graph(data), target, cores=1)
    assert [placed.op.kind for placed in built.schedule.placed] == ["conv", "conv"]


def test_phases_say_in_how_many_slices_an_op_runs() -> None:
    built = build(residual(1, 64, 16), small_target(local_bytes=128 * KB, weight_bytes=8 * KB), parts=whole_batch)
    slices = sum(placed.op.kind == "add" for placed in built.schedule.placed)
    assert slices > 1
    assert phase_text("tile", built.passed).splitlines()[-1].endswith(f"slices={slices}")
