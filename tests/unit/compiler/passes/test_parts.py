"""Parts of the batch: which axis counts images, and how many of them run at a time."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest

from opscope.compiler import PASSES, compile_graph
from opscope.compiler.passes.batch import batch_axes, is_cuttable, with_images
from opscope.compiler.passes.parts import MachineSize, PartsChooser, machine_sizes
from opscope.compiler.plan import Part, Plan
from opscope.core.meaning import Does
from opscope.estimate.price import Machine
from opscope.graph.graph import DType, Graph
from opscope.machine import catalogue as targets
from opscope.machine.target import Target
from opscope.options import CompileOptions
from opscope.simulation import simulate
from support.build import Sketch
from support.compiler.build import KB, build, small_target
from support.compiler.laws import all_laws


def image_network(batch: int) -> Graph:
    draw = Sketch(dtype=DType.F16)
    data = draw.conv(draw.input(batch, 56, 56, 64), 64)
    return draw.graph(draw.same("softmax", data, axes=(3,)))


def placed(graph: Graph, target: Target, *, cores: int, devices: int = 1) -> Plan:
    plan = Plan(graph, Machine(target, cores=cores, devices=devices), CompileOptions())
    for _, run in PASSES[:2]:
        plan = run(plan)
    return plan


# ---- the axis of images ---------------------------------------------------------------------------------------------


def test_images_are_followed_through_transpose_and_reshape() -> None:
    draw = Sketch()
    data = draw.input(8, 16, 32)
    turned = draw.op("transpose", (data,), (16, 8, 32), permutation=(1, 0, 2))
    rows = draw.op("reshape", (data,), (128, 32))
    product = draw.dense(rows, 64)
    axes = batch_axes(draw.graph(turned, product))
    assert {t: axes[t] for t in (data, turned, rows, product)} == {data: 0, turned: 1, rows: 0, product: 0}


def test_a_tensor_that_mixes_images_has_no_axis_of_them() -> None:
    draw = Sketch()
    data = draw.input(8, 32)
    mixed = draw.same("softmax", data, axes=(0,))
    axes = batch_axes(draw.graph(mixed))
    assert mixed not in axes
    assert not is_cuttable(draw.graph(mixed), axes)


def test_fewer_images_make_every_tensor_that_counts_them_smaller() -> None:
    draw = Sketch()
    rows = draw.op("reshape", (draw.input(8, 16, 32),), (128, 32))
    graph = draw.graph(draw.dense(rows, 64))
    smaller = with_images(graph, batch_axes(graph), 2)
    assert [smaller.tensors[t].shape for t in (*smaller.inputs, rows, *smaller.outputs)] == [
        (2, 16, 32),
        (32, 32),
        (32, 64),
    ]


# ---- parts ----------------------------------------------------------------------------------------------------------


def test_64_images_on_14_cores_are_four_units_of_14_and_one_of_8() -> None:
    chooser = PartsChooser(placed(image_network(64), targets.load("aic100-std"), cores=14))
    assert 14 in chooser.units()
    assert [(part.images, part.unit, part.units) for part in chooser.parts(14)] == [(56, 14, 4), (8, 8, 1)]


@pytest.mark.parametrize(
    ("batch", "cores", "devices", "unit"),
    [
        (16, 14, 1, 2),  # two images at a time, the rows of each on seven cores
        (16, 16, 4, 4),  # an image for each device
    ],
)
def test_batches_that_cores_do_not_divide_run_in_units_that_they_share(
    batch: int, cores: int, devices: int, unit: int
) -> None:
    target = targets.load("aic100-ultra" if devices > 1 else "aic100-std")
    chooser = PartsChooser(placed(image_network(batch), target, cores=cores, devices=devices))
    assert unit in chooser.units()


@pytest.mark.parametrize(("unit", "is_possible"), [(1, True), (4, True), (3, False), (8, True), (9, False), (0, False)])
def test_a_network_that_mixes_images_is_cut_in_equal_units_only(unit: int, is_possible: bool) -> None:
    draw = Sketch(dtype=DType.F16)
    graph = draw.graph(draw.same("softmax", draw.same("relu", draw.input(8, 64)), axes=(0,)))
    assert PartsChooser(placed(graph, targets.load("aic100-std"), cores=4)).is_possible(unit) == is_possible


def test_a_part_runs_through_the_whole_network_before_the_next() -> None:
    target = small_target(local_bytes=700 * KB, weight_bytes=4 * KB, depth_first=False)
    graph = image_network(7)
    built = build(graph, target, cores=3, parts=lambda plan: PartsChooser(plan).parts(3))
    all_laws(built, simulate(built.program))
    assert [(part.images, part.unit) for part in built.passed.parts] == [(6, 3), (1, 1)]
    assert built.schedule.origin == (0, 1, 0, 1)
    macs = 7 * 56 * 56 * 64 * 64 * 9
    assert int(built.program.commands["macs"].sum()) == macs


def test_images_are_cut_with_rows_where_cores_cannot_have_as_many_each() -> None:
    """Of 16 images on 14 cores two would be left: 8 images × a seventh of the rows are even."""
    for batch, expected in ((16, {((0, 2), (1, 7))}), (14, set())):
        plan = placed(image_network(batch), targets.load("aic100-std"), cores=14)
        (part,) = PartsChooser(plan).parts(batch)
        tried = {tuple((cut.axis, cut.parts) for cut in each.cuts) for each, _ in part.splits[0].prices}
        assert {cuts for cuts in tried if [axis for axis, _ in cuts] == [0, 1]} == expected


# ---- limits of the search -------------------------------------------------------------------------------------------


def test_cores_cut_the_channels_of_a_product_into_no_more_parts_than_allowed() -> None:
    draw = Sketch(dtype=DType.F16)
    graph = draw.graph(draw.dense(draw.dense(draw.input(2, 512), 1024), 512))
    machine = Machine(small_target(), cores=4)
    chosen = {}
    for limit in (None, 2, 1):
        plans: list[Plan] = []
        options = CompileOptions(channel_parts=limit)
        compile_graph(graph, machine, options, after_pass=lambda _, plan, found=plans: found.append(plan))
        cuts = [split.sharding.cut_on(1) for split in plans[-1].parts[0].splits]
        chosen[limit] = max(1 if cut is None else cut.parts for cut in cuts)
    assert chosen[None] == 4
    assert all(chosen[limit] <= limit for limit in (2, 1))


def test_an_op_is_cut_into_no_more_overlapping_pieces_than_allowed() -> None:
    machine, counts = Machine(targets.load("aic100-std"), cores=1), []
    for most in (1, 2, 4):
        program = compile_graph(image_network(1), machine, CompileOptions(overlap_parts=most))
        counts.append(int((program.commands["does"] == Does.COMPUTE).sum()))
    assert counts == sorted(set(counts))


def small_layers(batch: int) -> Graph:
    """Convolutions of images that are too small to be shared without as much time for exchanges."""
    draw = Sketch(dtype=DType.F16)
    data = draw.input(batch, 28, 28, 64)
    for _ in range(6):
        data = draw.same("relu", draw.conv(data, 64))
    return draw.graph(draw.op("reduce", (data,), (batch, 64), axes=(1, 2)))


def test_the_rest_of_a_batch_runs_op_by_op_beside_the_images_that_cores_have_each() -> None:
    target, graph = targets.load("aic100-std"), small_layers(16)

    def parts(plan: Plan) -> tuple[Part, ...]:
        return PartsChooser(plan).parts(14)

    after = build(graph, target, cores=14, parts=parts)
    beside = build(graph, target, cores=14, parts=parts, interleaved=True)
    runs = [sum(later < before for before, later in pairwise(each.schedule.origin)) for each in (after, beside)]
    assert runs == [1, 0]  # the network begins anew once, or never
    all_laws(beside, simulate(beside.program))
    assert simulate(beside.program).done.max() < 0.95 * simulate(after.program).done.max()


def test_sixteen_images_on_fourteen_cores_get_nearly_as_much_done_in_a_second_as_fourteen() -> None:
    target = targets.load("aic100-std")
    taken = {}
    for batch in (14, 16):
        program = build(small_layers(batch), target, cores=14).program
        taken[batch] = simulate(program).done.max() / batch
    assert taken[16] < taken[14] / 0.9


def shrinking_layers(batch: int) -> Graph:
    """The same, and behind them products that take as long for two images as for fourteen: weights enter."""
    draw = Sketch(dtype=DType.F16)
    data = draw.input(batch, 28, 28, 64)
    for _ in range(4):
        data = draw.conv(data, 64)
    data = draw.op("max_pool", (data,), (batch, 1, 1, 64), kernel=(28, 28), strides=(28, 28), channel_axis=3)
    for _ in range(8):
        data = draw.conv(data, 64, kernel=1)
    return draw.graph(data)


@pytest.mark.parametrize("interleaved", [True, False])
def test_parts_of_the_batch_are_joined_where_ops_take_as_long_for_one_as_for_all(interleaved: bool) -> None:
    target, graph = targets.load("aic100-std"), shrinking_layers(16)

    def parts(plan: Plan) -> tuple[Part, ...]:
        chooser = PartsChooser(plan)
        return chooser.joined(chooser.parts(14)) or ()

    built = build(graph, target, cores=14, parts=parts, interleaved=interleaved)
    all_laws(built, simulate(built.program))
    join = built.passed.parts[-1].joined
    assert join is not None
    assert [graph.ops[index].kind for index in (join.begin - 1, join.begin)] == ["max_pool", "conv"]
    done = zip(built.schedule.origin, built.schedule.placed, strict=True)
    runs = Counter(index for index, each in done if each.op.kind == graph.ops[index].kind)
    assert [runs[index] for index in range(len(graph.ops))] == [2] * join.begin + [1] * 8
    apart = build(graph, target, cores=14, parts=lambda plan: PartsChooser(plan).parts(14), interleaved=interleaved)
    assert simulate(built.program).done.max() < 0.97 * simulate(apart.program).done.max()


def test_parts_that_gain_nothing_by_it_are_not_joined() -> None:
    chooser = PartsChooser(placed(small_layers(16), targets.load("aic100-std"), cores=14))
    assert chooser.joined(chooser.parts(14)) is None
    assert chooser.joined(chooser.parts(16)) is None


@pytest.mark.parametrize(("batch", "cores", "even"), [(3, 4, 3), (14, 8, 7), (14, 10, 7), (8, 13, 8)])
def test_fewer_cores_are_proposed_where_no_core_gets_more_images_by_that(batch: int, cores: int, even: int) -> None:
    plan = placed(small_layers(batch), targets.load("aic100-std"), cores=cores)
    assert MachineSize(1, even) in machine_sizes(plan)


def test_images_and_rows_are_cut_as_evenly_as_a_prime_number_of_lanes_allows() -> None:
    """14 images on 13 lanes: in 2 × 6 parts lanes have 7 images of 5 rows at the most; by images alone 2 of 28."""
    plan = placed(small_layers(14), targets.load("aic100-std"), cores=13)
    split = PartsChooser(plan).parts(14)[0].splits[0]
    tried = [sharding for sharding, _ in split.prices]
    assert any([cut.parts for cut in sharding.cuts] == [2, 6] for sharding in tried)
