"""RAM: published figures first, then lifetimes by hand."""

from __future__ import annotations

import pytest

from opscope.core.units import Bytes
from opscope.estimate.memory import Buffer, MemoryPlan, live_bytes, place, plan_memory
from opscope.graph.graph import DType, Graph, Role
from opscope.machine.target import Runtime
from support.build import Sketch, autoencoder, figure, keyword_spotter, mobilenet, resnet8


def planned(graph: Graph, **runtime: object) -> MemoryPlan:
    return plan_memory(graph, Runtime(**runtime))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("graph", "bound", "arena"),
    [  # live-tensor peak and arena head of TensorFlow Lite Micro, MLPerf Tiny networks
        (keyword_spotter(), 16_000, 16_000),
        (mobilenet(), 55_296, 73_728),
        (resnet8(), 49_152, 49_152),
        (autoencoder(), 768, 768),
    ],
    ids=lambda value: value.name if isinstance(value, Graph) else "",
)
def test_bound_and_arena_are_the_published_ones(graph: Graph, bound: int, arena: int) -> None:
    plan = planned(graph)
    assert (plan.bound_bytes, plan.arena_bytes) == (bound, arena)


def test_the_peak_names_its_step_and_its_buffers_largest_first() -> None:
    graph = mobilenet()
    plan = planned(graph)
    assert graph.ops[plan.peak_step].type == "CONV_2D"
    assert [buffer.size_bytes for buffer in plan.alive_at(plan.peak_step)] == [36_864, 18_432]


def test_a_chain_keeps_two_tensors_alive_and_counts_its_input() -> None:
    draw = Sketch(dtype=DType.I8)
    data = draw.input(100)
    data = draw.op("relu", (data,), (40,))
    data = draw.op("relu", (data,), (30,))
    assert planned(draw.graph(data)).live_bytes == (140, 70)


def test_a_tensor_lives_until_its_last_reader() -> None:
    draw = Sketch(dtype=DType.I8)
    data = draw.same("relu", draw.input(10))
    inner = draw.same("relu", draw.same("relu", data))
    out = draw.same("add", inner, data)
    assert planned(draw.graph(out)).live_bytes == (20, 20, 30, 30)


def test_graph_outputs_live_to_the_end() -> None:
    draw = Sketch(dtype=DType.I8)
    early = draw.same("relu", draw.input(10))
    late = draw.same("relu", draw.same("relu", early))
    assert planned(draw.graph(late)).live_bytes[-1] == 20
    assert planned(draw.graph(early, late)).live_bytes[-1] == 30


def test_a_reshape_shares_the_bytes_of_its_source() -> None:
    draw = Sketch(dtype=DType.I8)
    data = draw.same("relu", draw.input(4, 4))
    data = draw.op("reshape", (data,), (16,))
    out = draw.same("relu", data)
    plan = planned(draw.graph(out))
    assert plan.live_bytes == (32, 16, 32)
    assert sum(len(buffer.tensors) == 2 for buffer in plan.buffers) == 1


def test_a_reshape_of_something_still_needed_does_not_share() -> None:
    draw = Sketch(dtype=DType.I8)
    data = draw.same("relu", draw.input(4, 4))
    flat = draw.op("reshape", (data,), (16,))
    out = draw.op("concat", (flat, data), (32,))
    assert planned(draw.graph(out)).live_bytes[1] == 32


def test_an_op_in_place_does_not_write_over_an_output() -> None:
    draw = Sketch(dtype=DType.I8)
    first = draw.same("relu", draw.input(16))
    second = draw.same("relu", first)
    assert planned(draw.graph(second), in_place=("relu",)).bound_bytes == 16
    assert planned(draw.graph(first, second), in_place=("relu",)).bound_bytes == 32


def test_state_lives_from_the_first_step_to_the_last_even_if_it_is_only_read() -> None:
    draw = Sketch(dtype=DType.I8)
    state = draw.tensor((50,), role=Role.VARIABLE)
    data = draw.same("relu", draw.input(10))
    data = draw.same("add", data, state)
    out = draw.same("relu", data)
    assert planned(draw.graph(out)).live_bytes == (70, 70, 70)


def test_constants_need_no_ram() -> None:
    draw = Sketch(dtype=DType.I8)
    out = draw.dense(draw.input(1, 8), 8)
    assert planned(draw.graph(out)).bound_bytes == 16


def test_a_tensor_without_a_size_is_counted_as_unknown() -> None:
    draw = Sketch(dtype=DType.I8)
    out = draw.op("relu", (draw.input(8),), None)
    plan = planned(draw.graph(out))
    assert (plan.unknown_tensors, plan.bound_bytes) == (1, 8)


def test_a_graph_without_ops_plans_only_its_inputs() -> None:
    draw = Sketch(dtype=DType.I8)
    plan = planned(draw.graph(draw.input(8)))
    assert (plan.live_bytes, plan.bound_bytes, plan.arena_bytes, plan.peak_step) == ((), 0, 8, 0)


def test_scratch_of_an_int8_convolution_is_two_columns_of_int16() -> None:
    columns = {"im2col_columns": figure(2), "im2col_element_bytes": figure(2)}
    draw = Sketch(dtype=DType.I8)
    out = draw.conv(draw.input(1, 8, 8, 4), 4)
    plan = planned(draw.graph(out), **columns)
    assert plan.scratch_bytes == 2 * 2 * 3 * 3 * 4
    pointwise = Sketch(dtype=DType.I8)
    out = pointwise.conv(pointwise.input(1, 8, 8, 4), 4, kernel=1)
    assert planned(pointwise.graph(out), **columns).scratch_bytes == 0
    floating = Sketch()
    out = floating.conv(floating.input(1, 8, 8, 4), 4)
    assert planned(floating.graph(out), **columns).scratch_bytes == 0


def test_the_largest_buffer_lies_at_the_bottom() -> None:
    buffers = [Buffer(Bytes(10), 0, 1, (0,)), Buffer(Bytes(30), 1, 2, (1,)), Buffer(Bytes(5), 2, 3, (2,))]
    assert place(buffers, Runtime()) == [30, 0, 30]
    assert live_bytes(buffers, 4) == (10, 40, 35, 5)
