"""Quantisation parameters: fixed scales from the ranges a blueprint expects."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from . import weights
from .blueprint import Value, Weight


@dataclass(frozen=True, slots=True)
class Scale:
    """real = scale · (integer - zero_point), integer in int8."""

    scale: float
    zero_point: int


def of_value(value: Value) -> Scale:
    """256 steps over the expected range. A probability gets exactly 1/256, as int8 softmax kernels demand."""
    low, high = value.span
    scale = (high - low) / 256
    return Scale(scale, round(-128 - low / scale))


def bias_scales(x: Value, kernel_scales: NDArray[np.float32]) -> NDArray[np.float32]:
    """A bias is added to sums of products, so its scale is the product of theirs."""
    return (np.float32(of_value(x).scale) * kernel_scales).astype(np.float32)


def single_scale(kernel: Weight) -> NDArray[np.float32]:
    """One scale for all channels, for formats whose kernels know no more; zero is among the integers."""
    return np.array([weights.integer_scales(kernel).max() + abs(kernel.centre) / 128], np.float32)


def with_scale(kernel: Weight, scale: NDArray[np.float32]) -> NDArray[np.int8]:
    rounded = np.rint(weights.all_floats(kernel) / scale)
    return np.asarray(np.clip(rounded, -127, 127), np.int8)


def bias_integers(bias: Weight, scales: NDArray[np.float32]) -> NDArray[np.int32]:
    return np.asarray(np.rint(weights.all_floats(bias) / scales), np.int32)
