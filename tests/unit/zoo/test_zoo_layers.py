"""Layers work out the shapes and names an exporter would write."""

from __future__ import annotations

import pytest

from opscope.zoo.blueprint import Blueprint, Literal, Value, Weight, parameter_name
from opscope.zoo.image_layers import add, conv, corners, dense, flat_mean, join, pool, resize, split
from opscope.zoo.tensor_layers import concat, expand, last_slice, linear, query_key_value, select, transpose, unsqueeze


@pytest.fixture
def plan() -> Blueprint:
    return Blueprint("test")


def image(plan: Blueprint, channels: int, height: int, width: int) -> Value:
    return plan.input("input", (1, channels, height, width))


def weight_of(plan: Blueprint) -> Weight:
    found = plan.steps[-1].inputs[1]
    assert isinstance(found, Weight)
    return found


def test_repeated_steps_of_a_module_are_numbered(plan: Blueprint) -> None:
    x = image(plan, 4, 8, 8)
    for _ in range(3):
        transpose(plan, "self", x, (0, 2, 3, 1))
    assert [step.name for step in plan.steps] == ["/self/Transpose", "/self/Transpose_1", "/self/Transpose_2"]


@pytest.mark.parametrize(
    ("at", "name"),
    [
        ("conv1", "conv1.weight"),
        ("layer1/layer1.0/conv1", "layer1.0.conv1.weight"),
        ("layer1/layer1.0/downsample/downsample.0", "layer1.0.downsample.0.weight"),
        ("features/features.1/conv/conv.0/conv.0.0", "features.1.conv.0.0.weight"),
        ("encoder/layer.0/attention/self/query", "encoder.layer.0.attention.self.query.weight"),
    ],
)
def test_parameters_are_named_after_their_module(at: str, name: str) -> None:
    assert parameter_name(at, "weight") == name


def test_padding_on_every_side(plan: Blueprint) -> None:
    out = conv(plan, "c", image(plan, 3, 224, 224), 64, (7, 7), stride=(2, 2), padding=3)
    assert out.shape == (1, 64, 112, 112)
    assert weight_of(plan).shape == (64, 3, 7, 7)


def test_padding_to_the_size_over_the_stride_puts_the_odd_row_last(plan: Blueprint) -> None:
    out = conv(plan, "c", image(plan, 1, 49, 10), 64, (10, 4), stride=(2, 2))
    assert out.shape == (1, 64, 25, 5)
    assert plan.steps[-1].attributes["pads"] == (4, 1, 5, 1)


def test_a_depthwise_kernel_has_one_input_channel(plan: Blueprint) -> None:
    conv(plan, "c", image(plan, 16, 8, 8), 16, (3, 3), groups=16)
    assert weight_of(plan).shape == (16, 1, 3, 3)


def test_an_activation_is_fused_and_named_as_a_sibling(plan: Blueprint) -> None:
    out = conv(plan, "block/conv1", image(plan, 3, 8, 8), 4, (1, 1), activation="relu")
    activation = plan.steps[-1].activation
    assert activation is not None
    assert (activation.op, activation.name, out.name) == ("Relu", "/block/relu/Relu", "/block/relu/Relu_output_0")
    assert out.span[0] == 0.0


def test_pooling_and_flattening(plan: Blueprint) -> None:
    x = pool(plan, "p", image(plan, 8, 112, 112), (3, 3), stride=(2, 2), padding=1)
    assert x.shape == (1, 8, 56, 56)
    assert flat_mean(plan, "a", x).shape == (1, 8)


def test_a_layer_brings_its_output_back_to_unit_size_whatever_it_reads(plan: Blueprint) -> None:
    x = image(plan, 4, 8, 8)
    grown = add(plan, "s", add(plan, "s", x, x), x)
    assert grown.rms == pytest.approx(3**0.5)
    conv(plan, "c", grown, 4, (1, 1))
    assert weight_of(plan).reach == pytest.approx((3 / 4) ** 0.5 / 3**0.5)


def test_a_positive_residual_is_not_halved_by_its_activation(plan: Blueprint) -> None:
    positive = conv(plan, "c", image(plan, 4, 8, 8), 4, (1, 1), activation="relu")
    other = conv(plan, "d", positive, 4, (1, 1))
    assert add(plan, "s", positive, other, activation="relu").rms == pytest.approx(1.5**0.5)


def test_transformer_shapes(plan: Blueprint) -> None:
    x = plan.input("x", (2, 5, 8))
    assert linear(plan, "l", x, 12).shape == (2, 5, 12)
    assert select(plan, "s", x, 0, axis=1).shape == (2, 8)
    assert last_slice(plan, "s", x, 2, 8).shape == (2, 5, 6)
    assert concat(plan, "c", [x, x, x], axis=1).shape == (2, 15, 8)
    wide = unsqueeze(plan, "u", x, 1)
    assert wide.shape == (2, 1, 5, 8)
    assert expand(plan, "e", wide, (2, 3, 5, 8)).shape == (2, 3, 5, 8)


def test_a_dense_kernel_has_one_row_per_unit(plan: Blueprint) -> None:
    assert dense(plan, "fc", plan.input("x", (2, 64)), 12).shape == (2, 12)
    assert weight_of(plan).shape == (12, 64)


def test_a_last_window_that_the_image_fills_in_part_counts_where_asked(plan: Blueprint) -> None:
    x = image(plan, 8, 54, 55)
    assert pool(plan, "p", x, (3, 3), stride=(2, 2)).shape == (1, 8, 26, 27)
    assert pool(plan, "p", x, (3, 3), stride=(2, 2), partial_windows=True).shape == (1, 8, 27, 27)


def test_a_dilated_kernel_reaches_further_and_keeps_the_size(plan: Blueprint) -> None:
    assert conv(plan, "c", image(plan, 4, 33, 33), 4, (3, 3), dilation=2).shape == (1, 4, 33, 33)
    assert plan.steps[-1].attributes["pads"] == (2, 2, 2, 2)


def test_channels_taken_apart_and_put_together_are_the_same_channels(plan: Blueprint) -> None:
    x = image(plan, 7, 4, 4)
    parts = split(plan, "s", x, (3, 4))
    assert [part.shape[1] for part in parts] == [3, 4]
    assert join(plan, "j", [*parts, resize(plan, "r", parts[0], (4, 4))]).shape == (1, 10, 4, 4)


def test_the_range_of_joined_images_holds_that_of_each(plan: Blueprint) -> None:
    x = image(plan, 4, 4, 4)
    positive = conv(plan, "c", x, 4, (1, 1), activation="relu6")
    assert join(plan, "j", [x, positive]).span == (-4.0, 6.0)


@pytest.mark.parametrize(
    ("packed", "operators"),
    [
        (True, ["MatMul", "Add", "Reshape", "Transpose", "Gather", "Gather", "Gather"]),
        (False, [*["MatMul", "Add"] * 3, *["Reshape", "Transpose"] * 3]),
    ],
)
def test_query_key_and_value_are_one_product_or_three(plan: Blueprint, packed: bool, operators: list[str]) -> None:
    tokens = plan.input("tokens", (2, 5, 12))
    parts = query_key_value(plan, "attn", tokens, 3, packed=packed)
    assert [step.op for step in plan.steps] == operators
    assert [part.shape for part in parts] == [(2, 3, 5, 4)] * 3


def test_corners_are_two_slices_each_and_go_down_before_across(plan: Blueprint) -> None:
    parts = corners(plan, "stem", image(plan, 3, 8, 6), (2, 3))
    assert [part.shape for part in parts] == [(1, 3, 4, 3)] * 4
    taken = {}
    for step in plan.steps:
        source, start, _, axis, stride = step.inputs
        assert isinstance(source, Value)
        assert isinstance(start, Literal)
        assert isinstance(axis, Literal)
        assert isinstance(stride, Literal)
        assert stride.values.tolist() == [2]
        taken[step.output.name] = {**taken.get(source.name, {}), int(axis.values[0]): int(start.values[0])}
    assert [taken[part.name] for part in parts] == [{2: 0, 3: 0}, {2: 1, 3: 0}, {2: 0, 3: 1}, {2: 1, 3: 1}]
