"""Prices of splits, against the commands that they stand for."""

from __future__ import annotations

import pytest

from opscope.graph.graph import DType, Graph
from opscope.simulation import total_cycles
from support.build import Sketch
from support.compiler.build import KB, Built, Choice, build, by_axes, small_target


def product(rows: int, channels: int) -> Graph:
    draw = Sketch(dtype=DType.F16)
    made = draw.same("relu", draw.input(rows, 512))
    return draw.graph(draw.dense(made, channels, bias=False))


def compiled(graph: Graph, splits: Choice | None = None) -> Built:
    target = small_target(local_bytes=256 * KB, weight_bytes=16 * KB, activation_bytes=32 * KB)
    return build(graph, target, cores=4, splits=splits)


def priced(built: Built) -> float:
    """The price of the product, as it has been split."""
    split = built.passed.parts[0].splits[1]
    return next(cycles for sharding, cycles in split.prices if sharding == split.sharding)


@pytest.mark.parametrize("rows", [64, 128, 512, 1024])
def test_slices_of_rows_cost_what_weights_take_to_enter_for_each(rows: int) -> None:
    """By channels, every core needs all rows: 512 of them are 512 KB, and weights enter for every slice that fits."""
    graph = product(rows, 1024)
    by_rows, by_channels = (compiled(graph, by_axes([0], [axis])) for axis in (0, 1))
    ratio = priced(by_channels) / priced(by_rows)
    assert ratio == pytest.approx(total_cycles(by_channels.program) / total_cycles(by_rows.program), rel=0.35)


@pytest.mark.parametrize("rows", [64, 128, 512, 1024])
@pytest.mark.parametrize("channels", [256, 1024, 4096])
def test_no_other_cut_of_a_product_is_done_much_earlier(rows: int, channels: int) -> None:
    graph = product(rows, channels)
    least = min(total_cycles(compiled(graph, by_axes([0], [axis])).program) for axis in (0, 1))
    assert total_cycles(compiled(graph).program) <= 1.4 * least
