"""Weights depend on the tensor's name and on nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from opscope.zoo import quantise, weights
from opscope.zoo.blueprint import OperandRole, Value, Weight

KERNEL = Weight("conv1.weight", (8, 3, 5, 5), OperandRole.KERNEL, 0.5, channel_axis=0)


def test_the_same_name_draws_the_same_values_whatever_was_drawn_before() -> None:
    first = weights.all_floats(KERNEL)
    weights.all_floats(Weight("other", (100,), OperandRole.PRECISE, 1.0))
    assert np.array_equal(first, weights.all_floats(KERNEL))


def test_another_name_draws_other_values() -> None:
    other = Weight("conv2.weight", KERNEL.shape, OperandRole.KERNEL, 0.5, channel_axis=0)
    assert not np.array_equal(weights.all_floats(KERNEL), weights.all_floats(other))


def test_the_values_of_a_known_name_never_change() -> None:
    drawn = weights.all_floats(Weight("golden", (4,), OperandRole.PRECISE, 32768.0))
    assert drawn.tolist() == [-4289.0, 17081.0, -20651.0, -13365.0]


def test_values_stay_within_their_reach_and_have_its_deviation() -> None:
    drawn = weights.all_floats(Weight("table", (200, 100), OperandRole.TENSOR, 2.0))
    assert abs(drawn).max() <= 2.0
    assert drawn.std() == pytest.approx(2.0 / np.sqrt(3), rel=0.02)
    assert abs(drawn.mean()) < 0.02


def test_a_centre_moves_the_values() -> None:
    drawn = weights.all_floats(Weight("gain", (1000,), OperandRole.PRECISE, 0.1, centre=1.0))
    assert 0.9 <= drawn.min() < drawn.max() <= 1.1


def test_half_precision_is_single_precision_rounded() -> None:
    half = np.concatenate(list(weights.floats(KERNEL, np.dtype(np.float16))))
    assert np.array_equal(half, weights.all_floats(KERNEL).astype(np.float16))


def test_integers_times_scales_are_the_floats_to_within_one_step() -> None:
    scales = weights.integer_scales(KERNEL).reshape(-1, 1, 1, 1)
    back = weights.all_integers(KERNEL) * scales
    assert np.all(abs(back - weights.all_floats(KERNEL)) <= scales * 1.01)


def test_integers_are_symmetric() -> None:
    drawn = weights.all_integers(Weight("table", (200, 100), OperandRole.TENSOR, 2.0))
    assert (drawn.min(), drawn.max()) == (-127, 127)


def test_the_last_axis_can_be_the_channel_axis() -> None:
    kernel = Weight("fc.weight", (300, 4), OperandRole.KERNEL, 1.0, channel_axis=1)
    reach = abs(weights.all_floats(kernel)).max(axis=0)
    assert reach == pytest.approx(weights.integer_scales(kernel) * 128, rel=0.03)


def test_a_weight_of_many_chunks_keeps_its_channels_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "CHUNK_ELEMENTS", 200)
    assert len(list(weights.floats(KERNEL))) == 4
    scales = weights.integer_scales(KERNEL).reshape(-1, 1, 1, 1)
    assert np.all(abs(weights.all_integers(KERNEL) * scales - weights.all_floats(KERNEL)) <= scales * 1.01)


def test_a_probability_has_the_scale_that_softmax_kernels_demand() -> None:
    assert quantise.value_scale(Value("p", (1,), span=(0.0, 1.0))) == quantise.Scale(1 / 256, -128)


def test_a_centred_value_has_zero_as_its_zero_point() -> None:
    assert quantise.value_scale(Value("x", (1,), span=(-4.0, 4.0))) == quantise.Scale(1 / 32, 0)


def test_a_quantised_bias_is_the_bias_at_the_scale_of_the_sums() -> None:
    bias = Weight("conv1.bias", (8,), OperandRole.BIAS, 0.1)
    scales = quantise.bias_scales(Value("x", (1,)), weights.integer_scales(KERNEL))
    back = quantise.bias_integers(bias, scales) * scales
    assert np.all(abs(back - weights.all_floats(bias)) <= scales / 2 * 1.01)


def test_one_scale_reaches_values_whose_centre_is_not_zero() -> None:
    gain = Weight("gain", (1000,), OperandRole.PRECISE, 0.1, centre=1.0)
    scale = quantise.single_scale(gain)
    back = quantise.quantise_with(gain, scale) * scale
    assert np.all(abs(back - weights.all_floats(gain)) <= scale)
