"""Folding, placing and splitting: what the passes decide, and why."""

from __future__ import annotations

import pytest

from opscope.compiler import compile_graph
from opscope.compiler.passes.scale_folding import drop_absent_outputs, fold_scales
from opscope.compiler.phases import phase_text
from opscope.compiler.plan import Plan
from opscope.compiler.sharding import REDUCED
from opscope.estimate.kernels import form_of
from opscope.estimate.price import Machine
from opscope.graph.graph import ABSENT, DType, Graph, Op
from opscope.machine import catalogue as targets
from opscope.options import CompileOptions
from opscope.simulation import simulate
from support.build import Sketch
from support.compiler.build import build, by_axes, small_target


def planned(graph: Graph, *, cores: int = 1, devices: int = 1, target: str = "aic100-std") -> Plan:
    plans: list[Plan] = []
    machine = Machine(targets.load(target), devices=devices, cores=cores)
    compile_graph(graph, machine, CompileOptions(), after_pass=lambda _, plan: plans.append(plan))
    return plans[-1]


def axes(plan: Plan) -> list[list[int]]:
    """Axes that ops are cut along."""
    return [[cut.axis for cut in split.sharding.cuts] for split in plan.parts[0].splits]


def exchanged(plan: Plan) -> list[tuple[int, ...]]:
    """Of every op, the inputs that are exchanged before it."""
    return [
        tuple(placed.op.inputs[position] for position in split.exchanges)
        for placed, split in zip(plan.placed, plan.parts[0].splits, strict=True)
    ]


# ---- folding --------------------------------------------------------------------------------------------------------


def scaled(kind: str, *, constant_first: bool = False, extent: int | None = None) -> Graph:
    draw = Sketch(dtype=DType.F16)
    product = draw.dense(draw.input(4, 64), 32, bias=False, name="product")
    number = draw.constant(extent) if extent else draw.constant()
    operands = (number, product) if constant_first else (product, number)
    return draw.graph(draw.op(kind, operands, (4, 32), name="scale"))


@pytest.mark.parametrize(("kind", "constant_first"), [("mul", False), ("mul", True), ("div", False)])
def test_a_product_times_a_number_is_one_op(kind: str, constant_first: bool) -> None:
    folded = fold_scales(scaled(kind, constant_first=constant_first))
    assert [op.sources for op in folded.ops] == [("product", "scale")]
    assert folded.ops[0].outputs == folded.outputs


@pytest.mark.parametrize(
    "graph",
    [scaled("div", constant_first=True), scaled("mul", extent=32), scaled("add")],
    ids=["number divided by product", "a vector", "an addition"],
)
def test_anything_else_stays_two_ops(graph: Graph) -> None:
    assert len(fold_scales(graph).ops) == 2


def test_a_product_that_others_read_keeps_its_scale_apart() -> None:
    draw = Sketch(dtype=DType.F16)
    product = draw.dense(draw.input(4, 64), 32, bias=False)
    twice = draw.op("mul", (product, draw.constant()), (4, 32))
    assert len(fold_scales(draw.graph(product, twice)).ops) == 2


def test_outputs_without_a_name_are_left_out_and_ops_without_outputs_too() -> None:
    draw = Sketch()
    data, out = draw.input(4), draw.tensor((4,))
    draw.ops.append(Op("topk", "TopK", "some", (data,), (ABSENT, out), {"axes": (0,)}))
    draw.ops.append(Op("custom", "Print", "none", (data,), ()))
    assert [op.outputs for op in drop_absent_outputs(draw.graph(out)).ops] == [(out,)]


# ---- placing --------------------------------------------------------------------------------------------------------


def test_a_depthwise_convolution_goes_to_the_engine_that_is_faster_at_it() -> None:
    draw = Sketch(dtype=DType.F16)
    plan = planned(draw.graph(draw.depthwise(draw.input(1, 56, 56, 64))))
    assert plan.placed[0].engine == "HVX"
    assert plan.placed[0].task.placement.reason.startswith("HMX would take ")
    assert plan.placed[0].task.placement.reason.endswith(" cycles")


def test_a_dense_convolution_stays_on_the_matrix_engine_without_a_reason() -> None:
    draw = Sketch(dtype=DType.F16)
    plan = planned(draw.graph(draw.conv(draw.input(1, 56, 56, 64), 64)))
    assert (plan.placed[0].engine, plan.placed[0].task.placement.reason) == ("HMX", "")


def test_whole_tiles_are_paid_for() -> None:
    cycles = []
    for channels in (32, 33, 64):
        draw = Sketch(dtype=DType.F16)
        cycles.append(planned(draw.graph(draw.conv(draw.input(1, 56, 56, 64), channels))).placed[0].cycles)
    assert cycles[0] < cycles[1] == pytest.approx(cycles[2])


def test_forms_of_an_addition_are_told_apart() -> None:
    draw = Sketch(dtype=DType.F16)
    data, other, row = draw.input(4, 8), draw.input(4, 8), draw.input(8)
    number = draw.constant()
    for operand in (other, row, number):
        draw.op("sub", (data, operand), (4, 8))
    draw.op("mul", (number, data), (4, 8))
    graph = draw.graph()
    assert [form_of(op, graph) for op in graph.ops] == ["sub", "broadcast_add", "scalar_add", "scalar_mul"]


# ---- splitting ------------------------------------------------------------------------------------------------------


def test_a_batch_is_shared_by_rows() -> None:
    draw = Sketch(dtype=DType.F16)
    data = draw.dense(draw.input(8, 128, 768), 768)
    data = draw.same("layer_norm", draw.same("erf", data), axes=(2,))
    plan = planned(draw.graph(draw.dense(data, 768)), cores=2)
    assert axes(plan) == [[0], [0], [0], [0]]
    assert not any(exchanged(plan))


def test_one_row_times_wide_weights_is_shared_by_channels_and_handed_around() -> None:
    """Summing over what the first product is cut along would exchange nothing but partial sums; of 14 cores each adds
    13, every addition with its launch, which takes longer than to hand around 22 KB.
    """
    draw = Sketch(dtype=DType.F16)
    hidden = draw.dense(draw.input(1, 4096), 11008)
    graph = draw.graph(draw.dense(hidden, 512))
    assert axes(planned(graph, cores=14)) == [[1], [1]]
    times = {}
    for last in (1, REDUCED):
        built = build(graph, targets.load("aic100-std"), cores=14, splits=by_axes([1], [last]))
        times[last] = simulate(built.program).total_cycles
    assert times[1] < times[REDUCED]


@pytest.mark.parametrize(
    ("channels", "groups", "parts"),
    [
        (512, 16, 4),  # tiles of 32 channels are whole groups
        (512, 64, 4),  # four groups make a tile
        (192, 4, 2),  # two groups of 48 channels are three tiles
        (144, 3, 1),  # no tiles end where a group does
    ],
)
def test_channels_that_are_convolved_in_groups_are_cut_in_whole_groups(channels: int, groups: int, parts: int) -> None:
    """Each core needs the channels that its groups read, and their weights alone."""
    draw = Sketch(dtype=DType.F16)
    data = draw.conv(draw.input(1, 4, 4, channels), channels, kernel=1, bias=False)
    plan = planned(draw.graph(draw.conv(data, channels, groups=groups, bias=False)), cores=4)
    split = plan.parts[0].splits[1]
    cuts = [next((cut.parts for cut in each.cuts if cut.axis == 3), 1) for each, _ in split.prices]
    assert max(cuts) == parts
    for sharding, _ in split.prices:
        if cut := sharding.cut_on(3):
            assert cut.extent % cut.parts == 0
            assert (channels // cut.extent) % (channels // groups) == 0


def attention(heads: int, length: int) -> Graph:
    draw = Sketch(dtype=DType.F16)
    queries, keys = draw.input(1, heads, length, 64), draw.input(1, heads, 64, length)
    scores = draw.op("matmul", (queries, keys), (1, heads, length, length), k=64, n=length)
    weights = draw.same("softmax", scores, axes=(3,))
    values = draw.input(1, heads, length, 64)
    return draw.graph(draw.op("matmul", (weights, values), (1, heads, length, 64), k=length, n=64))


def test_attention_is_shared_by_heads() -> None:
    plan = planned(attention(heads=16, length=256), cores=4)
    assert axes(plan) == [[1], [1], [1]]
    assert not any(exchanged(plan))


def test_an_axis_that_a_later_op_needs_whole_is_not_cut_for_a_little_gain() -> None:
    """Three of 32 heads on the busiest of 14 cores; 10 of 128 channels would be less, but the product reduces them."""
    draw = Sketch(dtype=DType.F16)
    cached, new = draw.input(1, 32, 1024, 128), draw.input(1, 32, 1, 128)
    keys = draw.op("concat", (cached, new), (1, 32, 1025, 128), axis=2)
    turned = draw.op("transpose", (keys,), (1, 32, 128, 1025), permutation=(0, 1, 3, 2))
    queries = draw.input(1, 32, 1, 128)
    plan = planned(draw.graph(draw.op("matmul", (queries, turned), (1, 32, 1, 1025), k=128, n=1025)), cores=14)
    assert axes(plan) == [[1], [1], [1]]
    assert not any(exchanged(plan))


def test_portions_that_do_not_match_are_handed_around() -> None:
    """Cores that hold 1024 channels of 4096 in quarters do not hold whole heads of 3."""
    draw = Sketch(dtype=DType.F16)
    data = draw.dense(draw.input(1, 768), 3072, bias=False)
    heads = draw.op("reshape", (data,), (1, 3, 1024))
    plan = planned(draw.graph(draw.same("softmax", heads, axes=(2,))), cores=4)
    assert axes(plan)[0] == [1]
    assert any(data in found or heads in found for found in exchanged(plan))


def test_a_pipeline_gives_every_device_a_stage() -> None:
    draw = Sketch(dtype=DType.F16)
    data = draw.input(8, 256)
    for _ in range(6):
        data = draw.dense(data, 256)
    built = build(draw.graph(data), small_target(), cores=2, devices=2, parallel="pipeline")
    stages = [split.sharding.devices for split in built.passed.parts[0].splits]
    assert stages == [(0,)] * 3 + [(1,)] * 3
    assert exchanged(built.passed)[3] == (built.passed.placed[2].op.outputs[0],)


# ---- what can be read of it -----------------------------------------------------------------------------------------


def test_a_phase_tells_engine_cycles_and_split_of_every_op() -> None:
    draw = Sketch(dtype=DType.F16)
    plan = planned(draw.graph(draw.dense(draw.input(1, 4096), 11008, name="up")), cores=14)
    text = phase_text("split", plan)
    assert text.splitlines()[0] == "// after split: 1 ops on 1 × 14 cores of aic100-std"
    assert "%3:1x11008xf16 = matmul(%0:1x4096xf16, %1:11008x4096xf16, %2:11008xf16) name='up' engine=HMX" in text
    assert "split=axis-1-in-14" in text
    assert f" memory_bytes={2 * (4096 + 11008 * 4096 + 11008 + 11008)} " in text
