"""Padding to tiles, and rates of families of work: by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from opscope.estimate.cost import Resource, Role
from opscope.estimate.estimator import estimate
from opscope.estimate.kernels import Extents, padding
from opscope.estimate.price import Machine, price_call
from opscope.graph.graph import DType, Graph, Op
from opscope.graph.work_families import WorkFamily, work_family
from opscope.machine.target import Engine, Holds, Scope, Target
from support.build import Sketch, engine, figure, memory, target


@pytest.mark.parametrize(
    ("extents", "apart", "rows", "growth"),
    [
        (Extents(10, 48, 64, 9), False, None, 448 / 432),
        (Extents(10, 48, 64, 9), True, None, 64 / 48),
        (Extents(10, 3, 64, 9), True, None, 32 / 27),  # several taps fit a tile
        (Extents(10, 32, 100), False, None, 1.28),
        (Extents(10, 32, 32), False, 32, 3.2),
        (Extents(64, 32, 32), False, 32, 1.0),
        (Extents(0, 0, 0), True, 32, 1.0),
    ],
)
def test_padding_is_to_whole_tiles(extents: Extents, apart: bool, rows: float | None, growth: float) -> None:
    unit = engine(tile_extent=figure(32), taps_apart=apart, row_extent=None if rows is None else figure(rows))
    assert padding(extents, unit) == pytest.approx(growth)
    assert padding(None, unit) == padding(extents, engine()) == 1.0


def cycles(unit: Engine, graph: Graph) -> float:
    return sum(cost.total for cost, _ in estimate(graph, Machine(target(unit))).costs)


def test_a_product_reaches_its_share_of_the_peak() -> None:
    draw = Sketch()
    graph = draw.graph(draw.dense(draw.input(4, 64), 32, bias=False))
    shares = {"weights_product": {"f32": figure(0.25)}, "activations_product": {"*": figure(0.01)}}
    assert cycles(engine(macs={"*": 8}, reached=shares), graph) == 4 * 64 * 32 / 8 / 0.25
    assert cycles(engine(macs={"*": 8}), graph) == 4 * 64 * 32 / 8


def test_work_without_products_is_bytes_at_a_share_of_the_vector_peak() -> None:
    draw = Sketch()
    graph = draw.graph(draw.same("softmax", draw.input(4, 64)))
    unit = engine(vector_bytes_per_cycle=figure(64), reached={"softmax": {"*": figure(0.5)}})
    assert cycles(unit, graph) == 2 * 4 * 64 * 4 / 32
    without = engine(reached={"softmax": {"*": figure(0.5)}})  # a share of a peak that nobody told
    assert cycles(without, graph) == cycles(engine(), graph)


def test_depthwise_convolutions_with_a_share_of_their_own_fill_no_tiles() -> None:
    draw = Sketch()
    graph = draw.graph(draw.depthwise(draw.input(1, 8, 8, 4)))
    shares = {"depthwise_convolution": {"*": figure(0.5)}}
    tiled = engine(elements={"*": 1e9}, tile_extent=figure(32), reached=shares)
    assert cycles(tiled, graph) == pytest.approx(cycles(replace(tiled, tile_extent=None), graph))
    assert cycles(replace(tiled, reached={}), graph) > cycles(tiled, graph)


def test_results_leave_a_matrix_engine_no_faster_than_it_says() -> None:
    draw = Sketch()
    graph = draw.graph(draw.dense(draw.input(4, 2), 32, bias=False))
    assert cycles(engine(macs={"*": 1000}, output_elements_per_cycle={"*": figure(2)}), graph) == 4 * 32 / 2
    assert cycles(engine(macs={"*": 1}, output_elements_per_cycle={"*": figure(2)}), graph) == 4 * 2 * 32


def test_steps_of_a_recurrent_op_are_each_launched() -> None:
    draw = Sketch()
    x = draw.input(10, 1, 8)
    operands = [x, draw.constant(1, 32, 8), draw.constant(1, 32, 8)]
    y = draw.op("lstm", operands, (10, 1, 1, 8), steps=10, hidden_size=8, input_size=8)
    graph = draw.graph(y)
    extra = cycles(engine(launch_cycles=figure(100)), graph) - cycles(engine(), graph)
    assert extra == 10 * 100


def with_local(share: float | None) -> Target:
    local = memory("local", Holds.TILES, size=4096, scope=Scope.CORE, op_share=None if share is None else figure(share))
    outer = memory("RAM", Holds.ACTIVATIONS, Holds.CONSTANTS, bytes_per_cycle=figure(1))
    return target(engine(macs={"*": 1e9}, elements={"*": 1e9}), memories=(outer, local))


def test_operands_beyond_the_share_of_one_op_stream_through_local_memory() -> None:
    draw = Sketch()
    graph = draw.graph(draw.same("relu", draw.same("exp", draw.input(1, 256))))  # 1 KB in, 1 KB out

    ram = Resource(Role.OUTER, "RAM")

    def outer(share: float | None) -> float:
        return sum(cost.by_resource().get(ram, 0) for cost, _ in estimate(graph, Machine(with_local(share))).costs)

    assert outer(0.1) > outer(0.9) == outer(None)


def test_a_call_costs_what_the_type_of_its_inputs_says_and_its_bytes() -> None:
    draw = Sketch(dtype=DType.I8)
    graph = draw.graph(draw.same("relu", draw.input(1, 1000)))
    chip = replace(
        target(clock=figure(1e6)),
        call_seconds={"f16": figure(9e-3), "*": figure(1e-3)},
        call_bytes_per_second=figure(1e6),
    )
    assert price_call(graph, Machine(chip)).total == pytest.approx(1000 + 2000)
    named = replace(chip, call_seconds={"i8": figure(5e-3), "*": figure(1e-3)}, call_bytes_per_second=None)
    assert price_call(graph, Machine(named)).total == pytest.approx(5000)
    assert price_call(graph, Machine(target())).total == 0


FAMILIES = [
    ("conv", {"groups": 1, "kernel": (3, 3)}, WorkFamily.DENSE_CONVOLUTION),
    ("conv", {"groups": 1, "kernel": (1, 1)}, WorkFamily.POINTWISE_CONVOLUTION),
    ("conv", {"groups": 2, "kernel": (3, 3)}, WorkFamily.GROUPED_CONVOLUTION),
    ("conv", {"groups": 8, "kernel": (3, 3)}, WorkFamily.DEPTHWISE_CONVOLUTION),
    ("softmax", {}, WorkFamily.SOFTMAX),
    ("layer_norm", {}, WorkFamily.NORMALISATION),
    ("batch_norm", {}, WorkFamily.ELEMENTWISE),
    ("add", {}, WorkFamily.ELEMENTWISE),
    ("sigmoid", {}, WorkFamily.TRANSCENDENTAL),
    ("add", {"chain": "add exp mul"}, WorkFamily.TRANSCENDENTAL),
    ("transpose", {}, WorkFamily.TRANSPOSITION),
    ("concat", {}, WorkFamily.COPY),
    ("reshape", {}, None),
]


@pytest.mark.parametrize(("kind", "attributes", "family"), FAMILIES)
def test_families_are_told_by_what_ops_do_and_by_their_shapes(
    kind: str, attributes: dict[str, object], family: WorkFamily | None
) -> None:
    draw = Sketch()
    x = draw.input(1, 4, 4, 8)
    axis = {"channel_axis": 3} if kind == "conv" else {}
    draw.op(kind, [x], (1, 4, 4, 8), **attributes, **axis)  # type: ignore[arg-type]
    (op,) = draw.ops
    assert isinstance(op, Op)
    assert work_family(op, draw.graph(1)) is family


def test_products_with_weights_and_of_activations_are_two_families() -> None:
    draw = Sketch()
    x = draw.input(4, 8)
    draw.dense(x, 8)
    draw.op("matmul", [x, draw.input(8, 8)], (4, 8), k=8, n=8)
    found = [work_family(op, draw.graph()) for op in draw.ops]
    assert found == [WorkFamily.WEIGHTS_PRODUCT, WorkFamily.ACTIVATIONS_PRODUCT]
