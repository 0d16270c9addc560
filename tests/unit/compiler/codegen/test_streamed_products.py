"""Products whose operands do not fit local memory: what is read, and how often."""

from __future__ import annotations

import pytest

from opscope.compiler.plan import channel_axis
from opscope.core.meaning import Carries
from opscope.graph.graph import DType, Graph
from opscope.simulation import simulate
from support.build import Sketch
from support.compiler.build import KB, Built, build, by_axis, small_target
from support.compiler.laws import all_laws

ROWS, INNER, COLUMNS = 1024, 512, 512
LEFT, RIGHT, RESULT = ROWS * INNER * 2, INNER * COLUMNS * 2, ROWS * COLUMNS * 2  # 1 MB, 512 KB and 1 MB


def product() -> Graph:
    """Both operands are inputs of the graph."""
    draw = Sketch(dtype=DType.F16)
    left, right = draw.input(ROWS, INNER), draw.input(INNER, COLUMNS)
    return draw.graph(draw.op("matmul", (left, right), (ROWS, COLUMNS), k=INNER, n=COLUMNS))


def moved(built: Built, carries: Carries) -> int:
    rows, routes = built.program.commands, built.program.routes
    (number,) = (number for number, route in enumerate(routes) if route.carries is carries)
    return int(rows["moved_bytes"][rows["route"] == number].sum())


def test_a_slice_that_several_cores_need_is_read_once_and_sent() -> None:
    """Four cores have a quarter of the columns each, 128 KB of the right, and need all rows of the left."""
    graph = product()
    columns = by_axis(channel_axis(graph.ops[0], graph))
    built = build(graph, small_target(local_bytes=448 * KB), cores=4, splits=columns)
    all_laws(built, simulate(built.program))
    assert moved(built, Carries.READ) == pytest.approx(LEFT + RIGHT, rel=0.01)
    assert moved(built, Carries.MULTICAST) == pytest.approx(LEFT, rel=0.01)
    assert moved(built, Carries.WRITE) == pytest.approx(RESULT, rel=0.01)


def test_slices_get_smaller_before_what_all_of_them_need_is_streamed() -> None:
    """512 KB of the right are there in both layouts, beside double buffers of the others: nothing is read twice."""
    built = build(product(), small_target(local_bytes=1240 * KB, weight_bytes=4 * KB))
    all_laws(built, simulate(built.program))
    assert moved(built, Carries.READ) == pytest.approx(LEFT + RIGHT, rel=0.01)


def test_what_every_slice_reads_again_passes_for_as_few_slices_as_fit() -> None:
    """Two slices of all three fill local memory; of half the size, they would read the right twice as often."""
    room = 200 * KB
    built = build(product(), small_target(local_bytes=room, weight_bytes=KB))
    all_laws(built, simulate(built.program))
    passes = (moved(built, Carries.READ) - LEFT) / RIGHT
    assert 2 * (LEFT + RIGHT + RESULT) / room < passes < 2.5 * (LEFT + RIGHT + RESULT) / room
