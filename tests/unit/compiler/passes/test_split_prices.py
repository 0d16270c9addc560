"""Prices of splits, against the commands that they stand for."""

from __future__ import annotations

import pytest

from opscope.compiler import PASSES
from opscope.compiler.passes.parts import PartsChooser
from opscope.compiler.passes.split_prices import OpPrice, done_after
from opscope.compiler.plan import Placed, Plan
from opscope.estimate.placement import Placement
from opscope.estimate.price import Machine, Task
from opscope.estimate.work import Work
from opscope.graph.graph import DType, Graph
from opscope.machine import catalogue as targets
from opscope.options import CompileOptions
from opscope.simulation import total_cycles
from support.build import Sketch
from support.compiler.build import KB, Built, Choice, build, by_axes, small_target


def branches() -> list[Placed]:
    """`a`; then `b` and `c` behind it, and `d` behind both; `b` on the vector engine, all else on the matrix engine."""
    draw = Sketch(dtype=DType.F16)
    a = draw.same("relu", draw.input(4, 4), name="a")
    b, c = (draw.same("relu", a, name=name) for name in "bc")
    graph = draw.graph(draw.same("add", b, c, name="d"))
    task = Task(graph.ops[0], Work(), Placement(None, DType.F16), {})
    return [Placed(op, task, "vector" if op.name == "b" else "matrix", 0.0, op.kind) for op in graph.ops]


def test_branches_share_the_engines() -> None:
    """a 0-10; b 10-30 on the vector engine, c 10-20 on the matrix engine; d waits 5 for its inputs, and takes 10."""
    prices = [OpPrice(0, 0, 10), OpPrice(0, 0, 20), OpPrice(0, 0, 10), OpPrice(5, 0, 10)]
    assert done_after(branches(), [prices], "vector") == 45


def test_parts_that_are_interleaved_hide_what_each_waits_for() -> None:
    """Alone: exchanges of 20 before c and d. While the first part waits, the second computes."""
    waiting = [OpPrice(0, 0, 10), OpPrice(0, 0, 10), OpPrice(20, 0, 10), OpPrice(20, 0, 10)]
    busy = [OpPrice(0, 0, 10), OpPrice(0, 0, 10), OpPrice(0, 0, 20), OpPrice(0, 0, 10)]
    placed = branches()
    alone = [done_after(placed, [part], "vector") for part in (waiting, busy)]
    assert alone == [80, 40]
    assert done_after(placed, [waiting, busy], "vector") == 100


def test_an_exchange_is_started_in_the_order_of_the_vector_engine() -> None:
    """c could begin at 10 + 20; but the vector thread that sends its input has b to do before, up to 30."""
    prices = [OpPrice(0, 0, 10), OpPrice(0, 0, 20), OpPrice(20, 0, 10), OpPrice(0, 0, 10)]
    assert done_after(branches(), [prices], "vector") == 30 + 20 + 10 + 10


def test_layouts_are_changed_by_the_vector_engine() -> None:
    prices = [OpPrice(0, 0, 10), OpPrice(0, 0, 20), OpPrice(0, 5, 10), OpPrice(0, 0, 10)]
    assert done_after(branches(), [prices], "vector") == 55  # c waits for b, for the engine that changes its layout


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


def products_of_192_channels(count: int) -> Graph:
    """Convolutions of 6 tiles of channels, each with 648 KB of weights."""
    draw = Sketch(dtype=DType.F16)
    data = draw.input(1, 14, 14, 192)
    for _ in range(count):
        data = draw.conv(data, 192)
    return draw.graph(data)


def test_of_cuts_whose_weights_take_longest_to_arrive_that_with_least_work_is_taken() -> None:
    """53 MB: 6 cores would read their weights as fast, but rows in 2 keep 12 of 14 busy with those that came ahead."""
    card = targets.load("aic100-std")
    plan = Plan(products_of_192_channels(80), Machine(card, cores=14), CompileOptions())
    for _, run in PASSES[:2]:
        plan = run(plan)
    (part,) = PartsChooser(plan).parts(1)
    assert len(part.splits[7].sharding.lanes()) == 12


def test_weights_that_stay_once_they_are_cut_are_not_priced_as_read() -> None:
    """9 MB stay on no core whole; a sixth of it does on every one. To read 648 KB takes 7,600 cycles."""
    built = build(products_of_192_channels(14), targets.load("aic100-std"), cores=14)
    split = built.passed.parts[0].splits[7]
    assert built.schedule.resident
    assert dict(split.prices)[split.sharding] < 7_600
