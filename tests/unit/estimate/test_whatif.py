"""Each change to a graph, by exactly what it should change."""

from __future__ import annotations

import pytest

from opscope.estimate import graph_changes
from opscope.estimate.quantiser import quantise
from opscope.estimate.traffic.stores import parameter_bytes
from opscope.estimate.work import work_of
from opscope.graph.graph import DType, Graph
from support.build import Sketch, resnet, target


def macs(graph: Graph) -> list[int]:
    return [work_of(op, graph).macs for op in graph.ops]


def chain(*, channels: int = 16) -> Graph:
    """Three convolutions, an average and a dense layer."""
    draw = Sketch()
    data = draw.input(1, 8, 8, 3)
    for _ in range(3):
        data = draw.conv(data, channels, bias=False)
    data = draw.op("reduce", (data,), (1, channels), axes=(1, 2))
    return draw.graph(draw.dense(data, 10, bias=False))


def test_int8_quarters_weights_and_activations_of_a_float32_graph_where_all_kinds_have_integer_kernels() -> None:
    before = chain()
    after = quantise(before, target())
    assert parameter_bytes(after) * 4 == parameter_bytes(before)
    assert [(t.bytes or 0) * 4 for t in after.tensors] == [t.bytes for t in before.tensors]
    assert macs(after) == macs(before)


def test_an_int8_graph_has_nothing_left_to_quantise() -> None:
    draw = Sketch(dtype=DType.I8)
    graph = draw.graph(draw.dense(draw.input(1, 8), 8))
    assert quantise(graph, target()) is graph
    assert graph_changes.quantise_weights(graph) is None


def test_weights_alone_leave_activations_and_biases_as_they_are() -> None:
    draw = Sketch()
    graph = draw.graph(draw.dense(draw.input(1, 8), 8))
    after = graph_changes.quantise_weights(graph)
    assert after is not None
    assert [t.dtype for t in after.tensors] == [DType.F32, DType.I8, DType.F32, DType.F32]


def test_a_graph_without_weights_has_none_to_quantise() -> None:
    draw = Sketch()
    assert graph_changes.quantise_weights(draw.graph(draw.same("softmax", draw.input(1, 8)))) is None


def test_pruning_to_half_halves_what_convolutions_make_and_quarters_what_lies_between() -> None:
    before = chain()
    after = graph_changes.prune_channels(before, keep=0.5)
    assert after is not None
    first, second, third, average, dense = macs(before)
    assert macs(after) == [first // 2, second // 4, third // 4, average, dense // 2]
    weights = [before.tensors[op.inputs[1]].bytes for op in before.ops if len(op.inputs) > 1]
    thinner = [after.tensors[op.inputs[1]].bytes for op in after.ops if len(op.inputs) > 1]
    assert thinner == [weights[0] // 2, weights[1] // 4, weights[2] // 4, weights[3] // 2]
    assert after.tensors[after.outputs[0]].shape == (1, 10)


def test_pruning_keeps_the_channels_that_the_network_returns() -> None:
    draw = Sketch()
    data = draw.input(1, 8, 8, 3)
    for _ in range(3):
        data = draw.conv(data, 16, bias=False)
    after = graph_changes.prune_channels(draw.graph(draw.same("sigmoid", data)), keep=0.5)
    assert after is not None
    assert [after.tensors[op.outputs[0]].shape[-1] for op in after.ops] == [8, 8, 16, 16]


def test_pruning_leaves_dense_layers_behind_dense_layers_alone() -> None:
    draw = Sketch()
    data = draw.input(1, 8, 8, 3)
    for _ in range(3):
        data = draw.conv(data, 16, bias=False)
    data = draw.op("reduce", (data,), (1, 16), axes=(1, 2))
    graph = draw.graph(draw.dense(draw.dense(data, 32, bias=False), 10, bias=False))
    after = graph_changes.prune_channels(graph, keep=0.5)
    assert after is not None
    assert macs(after)[-2:] == [16 * 32 // 2, 32 * 10]
    assert after.tensors[after.ops[-1].inputs[1]].bytes == 32 * 10 * 4


def test_pruning_a_depthwise_convolution_prunes_its_groups() -> None:
    draw = Sketch()
    data = draw.conv(draw.input(1, 8, 8, 3), 16)
    data = draw.depthwise(data)
    data = draw.conv(data, 16, kernel=1)
    graph = draw.graph(draw.dense(draw.op("reduce", (data,), (1, 16), axes=(1, 2)), 10))
    after = graph_changes.prune_channels(graph, keep=0.5)
    assert after is not None
    assert after.ops[1].attributes["groups"] == 8
    assert macs(after)[1] * 2 == macs(graph)[1]
    assert after.tensors[after.ops[1].inputs[1]].bytes * 2 == graph.tensors[graph.ops[1].inputs[1]].bytes


def test_two_convolutions_are_too_few_to_prune() -> None:
    draw = Sketch()
    graph = draw.graph(draw.conv(draw.conv(draw.input(1, 8, 8, 3), 8), 8))
    assert graph_changes.prune_channels(graph, keep=0.5) is None


def test_half_the_input_is_a_quarter_of_the_convolutions_with_the_same_weights() -> None:
    before = chain()
    after = graph_changes.shrink_input(before, scale=0.5)
    assert after is not None
    assert [new * 4 for new in macs(after)[:3]] == macs(before)[:3]
    assert macs(after)[3:] == macs(before)[3:]
    assert parameter_bytes(after) == parameter_bytes(before)


def test_a_dense_layer_behind_a_flattened_image_fixes_the_input_size() -> None:
    draw = Sketch()
    data = draw.conv(draw.input(1, 8, 8, 3), 8)
    graph = draw.graph(draw.dense(draw.op("reshape", (data,), (1, 512)), 10))
    assert graph_changes.shrink_input(graph, scale=0.5) is None


def test_a_network_that_sees_no_image_has_no_smaller_input() -> None:
    draw = Sketch()
    assert graph_changes.shrink_input(draw.graph(draw.dense(draw.input(1, 8), 8)), scale=0.5) is None


def test_a_separable_convolution_costs_its_taps_plus_its_channels() -> None:
    draw = Sketch()
    before = draw.graph(draw.conv(draw.input(1, 8, 8, 32), 64))
    after = graph_changes.split_into_depthwise_separable(before, [0])
    assert after is not None
    assert macs(before) == [64 * 9 * 32 * 64]
    assert macs(after) == [64 * 32 * 9, 64 * 32 * 64]
    assert parameter_bytes(after) == 4 * (32 * 9 + 32 * 64 + 64)
    assert after.ops[-1].outputs == before.outputs


def test_strides_are_done_by_the_depthwise_half() -> None:
    draw = Sketch()
    before = draw.graph(draw.conv(draw.input(1, 8, 8, 32), 64, stride=2))
    after = graph_changes.split_into_depthwise_separable(before, [0])
    assert after is not None
    assert macs(after) == [16 * 32 * 9, 16 * 32 * 64]
    assert [op.attributes["strides"] for op in after.ops] == [(2, 2), (1, 1)]


@pytest.mark.parametrize("changes", [{"kernel": 1}, {"groups": 8}])
def test_convolutions_that_are_cheap_already_are_not_separated(changes: dict[str, int]) -> None:
    draw = Sketch()
    graph = draw.graph(draw.conv(draw.input(1, 8, 8, 32), 64, **changes))
    assert graph_changes.split_into_depthwise_separable(graph, [0]) is None
    assert graph_changes.separable_layers(graph, [0]) == ()


def test_a_quarter_of_the_rank_is_two_thin_products() -> None:
    draw = Sketch()
    before = draw.graph(draw.dense(draw.input(4, 128), 256, activation="relu"))
    after = graph_changes.factorise_low_rank(before, [0], share=0.25)
    assert after is not None
    assert macs(before) == [4 * 128 * 256]
    assert macs(after) == [4 * 128 * 32, 4 * 32 * 256]
    assert parameter_bytes(after) == 4 * (128 * 32 + 32 * 256 + 256)
    assert ["activation" in op.attributes for op in after.ops] == [False, True]


def test_a_pointwise_convolution_factorises_like_a_dense_layer_and_strides_first() -> None:
    draw = Sketch()
    before = draw.graph(draw.conv(draw.input(1, 8, 8, 64), 128, kernel=1, stride=2))
    after = graph_changes.factorise_low_rank(before, [0], share=0.25)
    assert after is not None
    assert macs(before) == [4 * 4 * 64 * 128]
    assert macs(after) == [4 * 4 * 64 * 16, 4 * 4 * 16 * 128]
    assert after.ops[1].attributes["strides"] == (1, 1)


def test_a_thin_matrix_is_not_factorised() -> None:
    draw = Sketch()
    graph = draw.graph(draw.dense(draw.input(1, 32), 32))
    assert graph_changes.factorise_low_rank(graph, [0]) is None
    assert graph_changes.factorisable_layers(graph, [0]) == ()


def test_a_dense_layer_as_a_convolution_is_the_same_work() -> None:
    draw = Sketch()
    before = draw.graph(draw.dense(draw.input(4, 128), 256, activation="relu"))
    after = graph_changes.dense_to_convolution(before, [0])
    assert after is not None
    assert [op.kind for op in after.ops] == ["reshape", "conv", "reshape"]
    assert work_of(after.ops[1], after) == work_of(before.ops[0], before)
    assert after.ops[-1].outputs == before.outputs


def test_fusing_what_the_runtime_leaves_alone_drops_the_stand_alone_ops() -> None:
    draw = Sketch()
    graph = draw.graph(draw.same("relu", draw.conv(draw.input(1, 8, 8, 8), 8)))
    after = graph_changes.fuse_more(graph, target())
    assert after is not None
    assert [op.kind for op in after.ops] == ["conv"]
    assert sum(macs(after)) == sum(macs(graph))
    assert graph_changes.fuse_more(graph, target(fuses=("relu",))) is None


def test_layers_that_were_not_chosen_stay() -> None:
    before = resnet()
    after = graph_changes.split_into_depthwise_separable(before, [2])
    assert after is not None
    assert len(after.ops) == len(before.ops) + 1
    assert after.ops[:2] == before.ops[:2]
    assert after.ops[4:] == before.ops[3:]


def test_a_picture_of_sound_is_not_scaled() -> None:
    draw = Sketch()
    assert graph_changes.shrink_input(draw.graph(draw.conv(draw.input(1, 49, 10, 1), 8)), scale=0.5) is None
    assert graph_changes.shrink_input(draw.graph(draw.conv(draw.input(1, 28, 28, 1), 8)), scale=0.5) is not None
