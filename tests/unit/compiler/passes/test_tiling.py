"""Parts of the batch: when ops run in them, what that saves, and what it leaves as it was."""

from __future__ import annotations

from dataclasses import replace

import pytest

from opscope.compiler.codegen.lower import lower
from opscope.compiler.passes import tiling
from opscope.compiler.passes.batch import batch_axes
from opscope.compiler.passes.footprint import end_of_graph, part_footprints
from opscope.compiler.passes.schedule import schedule
from opscope.compiler.passes.tile_search import TilingSearch, divisors
from opscope.compiler.phases import phase_text
from opscope.graph.graph import DType, Graph
from opscope.program.program_file import encode_program
from opscope.simulation import simulate, total_cycles
from support.build import Sketch
from support.compiler.build import KB, Built, Parts, build, in_tiles, small_target, whole_batch
from support.compiler.laws import all_laws

IMAGE = 16 * 16 * 32 * 2  # bytes of what a convolution of `images` makes of one image


def images(batch: int, *, layers: int = 4, shortcut: bool = False) -> Graph:
    """Convolutions with hardly any weights, and a small product behind them."""
    draw = Sketch(dtype=DType.F16)
    data = draw.input(batch, 16, 16, 32, name="image")
    first = data
    for number in range(layers):
        data = draw.conv(data, 32, kernel=1, name=f"conv{number}")
        first = data if number == 0 else first
    if shortcut:
        data = draw.same("add", data, first, name="add")
    small = draw.op("max_pool", (data,), (batch, 1, 1, 32), kernel=(16, 16), strides=(16, 16), channel_axis=3)
    return draw.graph(draw.conv(small, 64, kernel=1, name="last"))


def lawful(graph: Graph, parts: Parts | None = None, *, cores: int = 1, kb: int = 160) -> Built:
    target = small_target(local_bytes=kb * KB, weight_bytes=KB, activation_bytes=16 * KB)
    built = build(graph, target, cores=cores, parts=parts)
    all_laws(built, simulate(built.program))
    return built


def chosen(graph: Graph, *, cores: int = 1, kb: int = 160) -> tuple[int, ...]:
    """Tiles that the compiler chooses, of a batch in one part."""
    (part,) = lawful(graph, cores=cores, kb=kb).passed.parts
    return part.tiles


def traffic(built: Built) -> tuple[int, int]:
    """Bytes of activations read, and bytes written."""
    rows = built.program.metrics.traffic
    return sum(row.read - row.read_constant for row in rows), sum(row.write for row in rows)


# ---- what is chosen -------------------------------------------------------------------------------------------------


def test_what_does_not_fit_runs_in_parts_and_nothing_is_moved_out() -> None:
    graph = images(8)
    assert min(chosen(graph)[:4]) > 1
    read, written = traffic(lawful(graph))
    assert read == 8 * IMAGE  # the input, once
    assert written == 8 * 64 * 2  # the output
    read, written = traffic(lawful(graph, whole_batch))
    assert read > 2 * 8 * IMAGE
    assert written > 8 * IMAGE


def test_parts_are_no_smaller_than_they_must_be() -> None:
    assert chosen(images(8), kb=160)[0] == 4
    assert chosen(images(8), kb=240)[0] == 2


@pytest.mark.parametrize(("batch", "kb"), [(8, 2000), (1, 40)], ids=["it fits", "one image"])
def test_networks_that_fit_and_batches_of_one_stay_as_they_are(batch: int, kb: int) -> None:
    graph = images(batch)
    assert set(chosen(graph, kb=kb)) == {1}
    raw, same = (encode_program(lawful(graph, how, kb=kb).program) for how in (None, whole_batch))
    assert raw == same


@pytest.mark.parametrize(("weights", "parts"), [(10.0, 2), (30.0, 2), (50.0, 1)])
def test_weights_are_read_again_where_that_is_less_than_what_would_be_moved_out(weights: float, parts: int) -> None:
    """20 of 120 bytes do not fit: they are spilled and read back, or the weights are read twice."""
    busy = replace(end_of_graph(), need=120.0, others=60.0, read=(40.0,), made=20.0, weights=weights, divisible=4)
    assert TilingSearch((1, 2, 4), 100.0, gaps=False).search([busy, end_of_graph()]) == (parts,)


@pytest.mark.parametrize(("by_tiles", "moved"), [(True, 80.0 + 500.0), (False, 80.0 + 500.0 + 80.0 * 4)])
def test_results_that_leave_as_they_are_made_need_no_second_pass(by_tiles: bool, moved: float) -> None:
    """80 bytes are made of 40 in 100 bytes. In slices they pass once for every panel of weights, here of 50 bytes."""
    wide = replace(
        end_of_graph(), need=120.0, read=(40.0,), made=80.0, weights=500.0, lane_weights=250.0, by_tiles=by_tiles
    )
    assert TilingSearch((1,), 100.0, gaps=False).moved([wide, end_of_graph()], (1,)) == [moved, 0.0]


def test_what_is_spilled_counts_until_it_is_read_again_and_no_longer() -> None:
    """50 bytes wait beside three ops of 70 that do not read them, in 100 bytes: 20 leave, and come back once."""
    waits = replace(end_of_graph(), alive=50.0, need=120.0, others=50.0, read=(40.0,), made=30.0)
    reads = replace(waits, need=70.0, others=0.0)
    found = TilingSearch((1,), 100.0, gaps=False)
    assert found.moved([waits, waits, waits, reads], (1, 1, 1)) == [40.0, 0.0, 0.0, 0.0]
    assert found.moved([waits, reads, waits, reads], (1, 1, 1)) == [40.0, 0.0, 40.0, 0.0]


def test_results_of_the_graph_need_no_room_behind_their_last_reader() -> None:
    draw = Sketch(dtype=DType.F16)
    first = draw.same("relu", draw.input(64, 64))
    second = draw.same("exp", first)
    third = draw.same("relu", draw.same("exp", second))
    plan = build(draw.graph(first, third), small_target()).passed
    steps = part_footprints(plan, plan.parts[0], batch_axes(plan.graph)).steps
    assert [step.alive for step in steps] == [0.0, 64 * 64 * 2, 64 * 64 * 2, 64 * 64 * 2, 0.0]


def test_a_proposal_that_spills_nothing_is_not_tried_with_more_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[int] = []
    monkeypatch.setattr(tiling, "lower", lambda schedule: tried.append(len(schedule.placed)) or lower(schedule))
    chosen(images(8), kb=2000)
    assert set(tried) == {6}


def test_cores_that_share_the_batch_have_parts_of_their_shares() -> None:
    graph = images(8, shortcut=True)
    assert max(chosen(graph, cores=2, kb=64)) == 4  # one image at a time on each core
    assert traffic(lawful(graph, cores=2, kb=64))[0] == 8 * IMAGE


def test_ops_that_need_the_whole_batch_are_not_cut() -> None:
    draw = Sketch(dtype=DType.F16)
    data = draw.conv(draw.input(8, 16, 16, 32), 32, kernel=1)
    turned = draw.op("transpose", (data,), (16, 8, 16, 32), permutation=(1, 0, 2, 3))
    summed = draw.op("reduce", (turned,), (16, 1, 16, 32), axes=(1,))
    tiles = chosen(draw.graph(draw.same("relu", summed)), kb=100)
    assert tiles[2:] == (1, 1)


@pytest.mark.parametrize("kb", [48, 64, 100, 160, 320])
@pytest.mark.parametrize("shortcut", [False, True])
def test_no_choice_is_slower_than_no_tiles_at_all(kb: int, shortcut: bool) -> None:
    built = lawful(images(6, shortcut=shortcut), kb=kb)
    whole = lower(schedule(built.passed, whole_batch(built.passed)))
    found, known = (total_cycles(tiling.commands_of(each)) for each in (built.lowering, whole))
    assert found == simulate(built.program).total_cycles
    assert found <= 1.005 * known


# ---- what becomes of it ---------------------------------------------------------------------------------------------


def test_commands_of_parts_belong_to_the_op_of_the_model() -> None:
    graph = images(8)
    built = lawful(graph)
    assert [op.name for op in built.program.ops] == [op.name for op in graph.ops]
    assert len(built.schedule.placed) > len(graph.ops)
    assert built.program.batch == 8


def test_parts_that_are_joined_stay_where_they_are() -> None:
    """The second tile group reads what the first has made, and all of it is local."""
    built = lawful(images(8, layers=2), in_tiles(8, 2, 1, 1), kb=400)
    joins = [op for op in built.schedule.graph.ops if op.kind == "join"]
    assert [len(op.inputs) for op in joins[:2]] == [4, 4]
    assert traffic(built) == (8 * IMAGE, 8 * 64 * 2)


def test_what_is_divided_goes_through_outer_memory() -> None:
    built = lawful(images(8, layers=2), in_tiles(1, 4, 4, 1), kb=400)
    assert [len(op.outputs) for op in built.schedule.graph.ops if op.kind == "divide"] == [4]
    assert traffic(built) == (2 * 8 * IMAGE, 8 * IMAGE + 8 * 64 * 2)


def test_numbers_that_do_not_divide_each_other_meet_in_their_common_divisor() -> None:
    built = lawful(images(12, layers=2), in_tiles(6, 4, 1, 1), kb=800)
    kinds = [op.kind for op in built.schedule.graph.ops]
    assert kinds[6:10] == ["join", "join", "divide", "divide"]


def test_a_shortcut_past_a_tile_group_is_whole_where_it_is_read() -> None:
    built = lawful(images(8, layers=3, shortcut=True), in_tiles(8, 2, 4, 1, 1, 1), kb=400)
    assert [op.kind for op in built.schedule.graph.ops].count("add") == 1


def test_a_phase_says_the_parts_of_every_op() -> None:
    lines = phase_text("tile", lawful(images(8)).passed).splitlines()
    assert " tiles=4" in lines[1]
    assert " tiles=" not in lines[-1]


@pytest.mark.parametrize(("number", "found"), [(1, [1]), (12, [1, 2, 3, 4, 6, 12]), (7, [1, 7]), (0, [1])])
def test_divisors(number: int, found: list[int]) -> None:
    assert divisors(number) == found
