"""What TensorFlow Lite has other operators or another layout for is found by the steps around it."""

from __future__ import annotations

import pytest

from opscope.zoo.blueprint import Blueprint, BlueprintStep, OperandRole, Value, Weight
from opscope.zoo.image_layers import add as add_images
from opscope.zoo.image_layers import conv
from opscope.zoo.tensor_layers import binary, gelu, linear, matmul, reshape, softmax, transpose, unsqueeze
from opscope.zoo.tflite_fusion import fuse
from opscope.zoo.tflite_layout import channels_last, images


@pytest.fixture
def plan() -> Blueprint:
    return Blueprint("test")


def fused(plan: Blueprint) -> list[BlueprintStep]:
    return list(fuse(plan.steps))


def test_a_product_with_weights_takes_its_bias_along(plan: Blueprint) -> None:
    x = plan.input("x", (2, 5, 8))
    out = linear(plan, "fc", x, 12)
    (step,) = fused(plan)
    assert (step.op, step.inputs[0], step.output) == ("Linear", x, out)
    bias = step.inputs[2]
    assert isinstance(bias, Weight)
    assert (bias.name, bias.role) == ("fc.bias", OperandRole.BIAS)


def test_the_exact_gelu_is_one_step(plan: Blueprint) -> None:
    x = plan.input("x", (2, 5, 8))
    out = gelu(plan, "act", x)
    (step,) = fused(plan)
    assert (step.op, step.inputs, step.output) == ("Gelu", (x,), out)


def test_the_same_operators_wired_otherwise_are_left_alone(plan: Blueprint) -> None:
    x, y = plan.input("x", (2, 5, 8)), plan.input("y", (2, 5, 8))
    product = matmul(plan, "", x, plan.input("z", (2, 8, 8)), rms=1.0)
    binary(plan, "Add", "", product, y)
    gelu(plan, "act", x)
    last = plan.steps[-2]
    plan.steps[-2] = BlueprintStep(last.op, last.name, (y, last.inputs[1]), last.output, {})
    assert [step.op for step in fused(plan)] == ["MatMul", "Add", "Div", "Erf", "Add", "Mul", "Mul"]


def test_images_are_what_windows_slide_over_and_what_is_added_to_that(plan: Blueprint) -> None:
    image = plan.input("image", (1, 4, 8, 8))
    shifted = binary(plan, "Add", "before", image, Weight("mean", (1, 4, 1, 1), OperandRole.TENSOR, 1.0))
    y = conv(plan, "c", shifted, 4, (1, 1))
    total = add_images(plan, "after", y, shifted)
    assert images(plan.steps) == {value.name for value in (image, shifted, y, total)}


def test_heads_of_an_attention_are_no_images(plan: Blueprint) -> None:
    image = plan.input("image", (1, 3, 8, 8))
    heads = plan.input("heads", (1, 2, 16, 4))
    patches = conv(plan, "c", image, 8, (2, 2), stride=(2, 2), padding=0)
    merged = reshape(plan, "", patches, (1, 8, 16))
    tokens = transpose(plan, "", merged, (0, 2, 1))
    softmax(plan, "", matmul(plan, "", heads, transpose(plan, "", heads, (0, 1, 3, 2)), rms=1.0))
    linear(plan, "fc", tokens, 4)
    assert images(plan.steps) == {value.name for value in (image, patches, merged)}


def test_channels_come_last_whatever_the_rank() -> None:
    assert channels_last(4) == (0, 2, 3, 1)
    assert channels_last(3) == (0, 2, 1)


def test_an_image_where_no_channels_last_form_is_known_is_reported(plan: Blueprint) -> None:
    image: Value = conv(plan, "c", plan.input("image", (1, 3, 8, 8)), 8, (1, 1))
    unsqueeze(plan, "", image, 1)
    with pytest.raises(ValueError, match=r"^/Unsqueeze: Unsqueeze of an image has no channels-last form here$"):
        images(plan.steps)
