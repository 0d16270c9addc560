"""Quantisation parameters: fixed scales derived from the expected ranges in a blueprint."""

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


def value_scale(value: Value) -> Scale:
    """Return 256 steps over the expected range. A probability gets exactly 1/256, as int8 softmax kernels demand."""
    low, high = value.span
    scale = (high - low) / 256
    return Scale(scale, round(-128 - low / scale))


def bias_scales(x: Value, kernel_scales: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the scale of a bias: it is added to products, so it is the product of their scales."""
    return (np.float32(value_scale(x).scale) * kernel_scales).astype(np.float32)


def single_scale(kernel: Weight) -> NDArray[np.float32]:
    """Return one scale for all channels, for formats without per-channel scales; real 0 is an exact integer."""
    return np.array([weights.integer_scales(kernel).max() + abs(kernel.centre) / 128], np.float32)


def quantise_with(kernel: Weight, scale: NDArray[np.float32]) -> NDArray[np.int8]:
    """Return the kernel as int8 at the given scale."""
    rounded = np.rint(weights.all_floats(kernel) / scale)
    return np.asarray(np.clip(rounded, -127, 127), np.int8)


def bias_integers(bias: Weight, scales: NDArray[np.float32]) -> NDArray[np.int32]:
    return np.asarray(np.rint(weights.all_floats(bias) / scales), np.int32)
