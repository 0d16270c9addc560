"""Blocks of a product in waves over many units: laws, and the arithmetic by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opscope.estimate.cost import DISPATCH, LAUNCH, LAYOUT, Resource
from opscope.estimate.estimator import estimate
from opscope.estimate.kernels import Extents, waves
from opscope.estimate.price import Machine
from opscope.graph.graph import Graph
from opscope.machine.target import ArrayShape, Engine, Holds, Runtime
from support.build import Sketch, engine, figure, memory, target

extents = st.builds(Extents, st.integers(1, 3000), st.integers(1, 5000), st.integers(1, 3000), st.integers(1, 9))
shapes = st.builds(lambda r, c: ArrayShape(figure(r), figure(c)), st.integers(1, 256), st.integers(1, 256))
SQUARE = ArrayShape(figure(64), figure(64))


def product(rows: int, reduced: int, produced: int) -> Graph:
    draw = Sketch("product")
    operands = (draw.input(rows, reduced), draw.constant(reduced, produced))
    return draw.graph(draw.op("matmul", operands, (rows, produced), k=reduced, n=produced))


def cycles(unit: Engine, graph: Graph, cores: int) -> float:
    cost, _ = estimate(graph, Machine(target(unit, cores=cores), cores=cores)).costs[0]
    return cost.total


@given(extents, shapes, st.integers(1, 300), st.integers(1, 64), st.integers(1, 8))
def test_all_units_together_never_do_less_than_the_work(
    found: Extents, shape: ArrayShape, units: int, most: int, products: int
) -> None:
    macs = products * found.rows * found.produced * found.reduced * found.taps
    for way in waves(found, macs, [shape], engine(reduction_parts=figure(most)), units):
        assert way.macs * units >= macs
        assert way.parts <= most
        assert way.operands * min(shape.rows.value, shape.channels.value) <= 2 * way.macs


@given(extents, shapes, st.integers(1, 200), st.integers(0, 200))
def test_more_units_never_take_longer(found: Extents, shape: ArrayShape, units: int, more: int) -> None:
    macs = found.rows * found.produced * found.reduced * found.taps
    few, many = (next(waves(found, macs, [shape], engine(), count)) for count in (units, units + more))
    assert many.macs <= few.macs


@pytest.mark.parametrize(
    ("rows", "produced", "wave"),
    [(64, 64, 1), (640, 64, 1), (650, 64, 2), (64 * 5, 64 * 4, 2), (1, 1, 1), (64 * 21, 64, 3)],
)
def test_the_last_wave_takes_as_long_as_a_full_one(rows: int, produced: int, wave: int) -> None:
    unit = engine(macs={"*": 4096}, output_blocks=(SQUARE,))
    assert cycles(unit, product(rows, 100, produced), 10) == pytest.approx(100 * wave)


def test_a_long_reduction_is_cut_where_blocks_are_few_and_adding_up_is_started_once_more() -> None:
    unit = engine(macs={"*": 4096}, output_blocks=(SQUARE,), launch_cycles=figure(50))
    assert cycles(unit, product(64, 8000, 64), 10) == pytest.approx(8000 + 50)
    assert cycles(replace(unit, reduction_parts=figure(8)), product(64, 8000, 64), 10) == pytest.approx(1000 + 100)
    assert cycles(replace(unit, reduction_parts=figure(8)), product(64, 20, 64), 10) == pytest.approx(20 + 50)


def test_operands_that_enter_slowly_bind_small_blocks() -> None:
    unit = engine(macs={"*": 4096}, output_blocks=(SQUARE,), operand_bytes_per_cycle=figure(128))
    assert cycles(unit, product(64, 100, 64), 10) == pytest.approx(100 * (64 + 64) * 4 / 128)
    large = ArrayShape(figure(512), figure(512))
    both = replace(unit, output_blocks=(SQUARE, large))
    # 80 blocks in 8 waves, or 2 large ones in 1: operands decide
    assert cycles(both, product(1024, 100, 320), 10) == pytest.approx(min(8 * 400, max(6400, 100 * 1024 * 4 / 128)))


def test_a_host_that_starts_ops_one_by_one_hides_behind_long_ones_only() -> None:
    unit = engine(dispatch_seconds=figure(1e-3), launch_cycles=figure(7))  # 1,000 cycles at 1 MHz
    short, long = (estimate(product(rows, 10, 10), Machine(target(unit))).costs[0][0] for rows in (1, 100))
    assert (short.bound, short.total) == (DISPATCH, 1007)
    assert (long.bound, long.total) == (Resource.of_engine(unit), 10_007)
    assert short.by_resource()[LAUNCH] == 7


def test_operands_that_are_put_in_order_cost_a_pass_each_and_only_for_the_families_said() -> None:
    draw = Sketch("conv")
    graph = draw.graph(draw.conv(draw.input(1, 8, 8, 4), 8))
    moves = {"transposition": {"*": figure(0.5)}}
    unit = engine(vector_bytes_per_cycle=figure(8), reached=moves, launch_cycles=figure(11))
    memories = (memory("RAM", Holds.ACTIVATIONS, Holds.CONSTANTS),)
    plain, ordered, other = (
        estimate(graph, Machine(target(unit, memories=memories, runtime=Runtime(reorders=families)))).costs[0][0]
        for families in ((), ("dense_convolution",), ("weights_product",))
    )
    size = sum(tensor.bytes or 0 for tensor in graph.tensors)
    assert ordered.by_resource()[LAYOUT] == pytest.approx(2 * size / 4 + 3 * 11)
    assert plain == other
    assert ordered.total == pytest.approx(plain.total + 2 * size / 4 + 33)
