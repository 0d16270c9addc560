"""Weights that stay in local memory between inferences, where not all of them do."""

from __future__ import annotations

import numpy as np
import pytest

from opscope.compiler import Compiler
from opscope.compiler.passes.residency import kept_bytes, kept_weights
from opscope.compiler.plan import Schedule
from opscope.core.meaning import Carries
from opscope.estimate.machines import use_machine
from opscope.graph.graph import DType, Graph
from opscope.options import CompileOptions
from opscope.simulation import simulate
from support.build import Sketch
from support.compiler.build import KB, Built, build, small_target
from support.compiler.laws import all_laws


def two_products() -> Graph:
    """Two products of 2 MB of weights: one meets 1,024 rows, the other 16."""
    draw = Sketch(dtype=DType.F16)
    many = draw.dense(draw.input(1024, 1024), 1024)
    few = draw.dense(draw.input(16, 1024), 1024)
    return draw.graph(many, few)


def lowered(graph: Graph, *, cores: int = 1) -> Schedule:
    compiler = Compiler(graph)
    compiler.compile(use_machine("aic100-std", cores=cores), CompileOptions(cores=cores))
    return compiler._built[0].lowering.plan


def test_weights_that_fewest_rows_meet_stay_first() -> None:
    schedule = lowered(two_products())
    many, few = (placed.op.inputs[1] for placed in schedule.placed if placed.op.kind == "matmul")
    size = 1024 * 1024 * 2
    assert kept_weights(schedule, size - 1) == frozenset()
    assert kept_weights(schedule, 1.5 * size) == {few}
    assert kept_weights(schedule, 2 * size) == {many, few}
    assert kept_bytes(schedule, {many, few}) == 2 * size


def test_what_no_activation_needs_is_given_to_weights() -> None:
    """17 MB of weights in 8 MB: some stay, the others pass through more slots than the target has at the least."""
    draw = Sketch(dtype=DType.F16)
    value = draw.input(16, 1024)
    for _ in range(8):
        value = draw.dense(value, 1024)
    schedule = lowered(draw.graph(value))
    assert not schedule.resident
    assert schedule.slots > 3
    assert 0 < len(schedule.kept) < 8
    assert kept_bytes(schedule, schedule.kept) + schedule.slots * 205_824 <= 8_323_072


@pytest.mark.parametrize("layers", [3, 12], ids=["all stay", "some stay"])
def test_packed_weights_stay_packed_and_are_unpacked_in_every_inference(layers: int) -> None:
    """2 MB of f16 weights a layer are 0.8 MB in blocks: three layers stay, of twelve (9.8 MB) not all."""
    draw = Sketch(dtype=DType.F16)
    value = draw.input(16, 1024)
    for _ in range(layers):
        value = draw.dense(value, 1024)
    compiler = Compiler(draw.graph(value))
    program = compiler.compile(use_machine("aic100-std", cores=1), CompileOptions(cores=1, precision="mxfp6"))
    schedule, rows = compiler._built[0].lowering.plan, program.commands
    packed = 1024 * 1024 * 25 // 32
    kept = layers if schedule.resident else len(schedule.kept)
    assert kept == layers if layers == 3 else 0 < kept < layers
    read = np.isin(rows["route"], [n for n, route in enumerate(program.routes) if route.carries is Carries.READ])
    assert rows["moved_bytes"][read].sum() == pytest.approx((layers - kept) * packed + 16 * 1024 * 2, rel=0.01)
    unpacked = rows["kind"] == program.kinds.index("blockdequantize_mxfp6")
    assert rows["out_bytes"][unpacked].sum() == pytest.approx(layers * 1024 * 1024 * 2, rel=0.01)


def test_images_pass_one_by_one_where_both_layouts_of_all_do_not_fit_beside_weights_that_stay() -> None:
    """An image takes 256 KB before and behind a convolution, and as much again in the layout that the softmax reads."""
    draw = Sketch(dtype=DType.F16)
    data = draw.conv(draw.input(2, 64, 64, 32), 32)
    built = build(
        draw.graph(draw.same("softmax", data, axes=(3,))), small_target(local_bytes=1300 * KB, weight_bytes=4 * KB)
    )
    assert built.schedule.resident
    assert built.passed.parts[0].tiles == (2, 2)
    assert written_bytes(built) == 2 * 256 * KB  # results alone, nothing is spilled


@pytest.mark.parametrize("room", [560, 640])
def test_a_layout_is_changed_slice_by_slice_where_both_do_not_fit(room: int) -> None:
    """256 KB in the layout of the convolution, as much of the softmax, and two slices of what is between them."""
    draw = Sketch(dtype=DType.F16)
    data = draw.same("softmax", draw.conv(draw.input(1, 64, 64, 4), 32), axes=(3,))
    graph = draw.graph(draw.op("reduce", (data,), (1, 64), axes=(2, 3)))
    built = build(graph, small_target(local_bytes=room * KB, weight_bytes=4 * KB, activation_bytes=32 * KB))
    all_laws(built, simulate(built.program))
    assert written_bytes(built) == 64 * 2  # the result alone


def written_bytes(built: Built) -> int:
    rows, routes = built.program.commands, built.program.routes
    (write,) = (number for number, route in enumerate(routes) if route.carries is Carries.WRITE)
    return int(rows["moved_bytes"][rows["route"] == write].sum())
