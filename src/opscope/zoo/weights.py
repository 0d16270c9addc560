"""Random weights: each tensor is a function of its name, generated chunk by chunk.

The generator is counter-based and keyed by the name, so a tensor's values depend on nothing else: neither on the order
of tensors nor on the precision. f16 and int8 weights are the f32 weights, rounded.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from math import prod

import numpy as np
from numpy.typing import NDArray

from .blueprint import Weight

SINGLE: np.dtype[np.generic] = np.dtype(np.float32)
CHUNK_ELEMENTS = 4 * 1024 * 1024  # 16 MB of f32 at a time
_FULL = 1 << 15  # draws are 16-bit integers: -_FULL means -reach
_SPREAD = 0.25  # relative variation of the reach between channels


def floats(weight: Weight, dtype: np.dtype[np.generic] = SINGLE) -> Iterator[NDArray[np.generic]]:
    """Yield the weight's values in order, in chunks of whole rows."""
    step = (weight.reach / _FULL * channel_factors(weight)).astype(np.float32)
    for start, drawn in _draws(weight):
        chunk = drawn.astype(np.float32)
        chunk *= _channel_steps(weight, step, start, len(chunk))
        if weight.centre:
            chunk += np.float32(weight.centre)
        yield chunk.astype(dtype, copy=False)


def integers(weight: Weight) -> Iterator[NDArray[np.int8]]:
    """Yield the same values as int8; multiplied by `integer_scales` they are the values again."""
    for _, drawn in _draws(weight):
        rounded = (drawn.astype(np.int32) + 128) >> 8
        yield np.clip(rounded, -127, 127).astype(np.int8)


def integer_scales(weight: Weight) -> NDArray[np.float32]:
    """Return one scale per channel, or a single one for a weight without a channel axis."""
    return (weight.reach / 128 * channel_factors(weight)).astype(np.float32)


def all_floats(weight: Weight) -> NDArray[np.float32]:
    """Return `floats` as one array, for formats that cannot be streamed."""
    return np.concatenate([chunk.astype(np.float32, copy=False) for chunk in floats(weight)])


def all_integers(weight: Weight) -> NDArray[np.int8]:
    return np.concatenate(list(integers(weight)))


def channel_factors(weight: Weight) -> NDArray[np.float64]:
    if weight.channel_axis is None:
        return np.ones(1)
    drawn = _raw(_generator(weight.name + "/channels"), weight.shape[weight.channel_axis])
    return 1.0 + _SPREAD * drawn / _FULL


def _draws(weight: Weight) -> Iterator[tuple[int, NDArray[np.int16]]]:
    """Yield (first row, rows) of 16-bit integers in the weight's shape."""
    generator = _generator(weight.name)
    rows, row_shape = weight.shape[0], weight.shape[1:]
    row_elements = prod(row_shape)
    rows_at_once = max(1, CHUNK_ELEMENTS // row_elements)
    for start in range(0, rows, rows_at_once):
        count = min(rows_at_once, rows - start)
        yield start, _raw(generator, count * row_elements).reshape(count, *row_shape)


def _channel_steps(weight: Weight, step: NDArray[np.float32], start: int, rows: int) -> NDArray[np.float32]:
    """Return the channel steps in a shape that multiplies the rows from `start` on."""
    if weight.channel_axis is None:
        return step
    steps = step[start : start + rows] if weight.channel_axis == 0 else step
    return steps.reshape([-1 if axis == weight.channel_axis else 1 for axis in range(len(weight.shape))])


def _generator(name: str) -> np.random.Philox:
    return np.random.Philox(key=int.from_bytes(sha256(name.encode()).digest()[:16], "little"))


def _raw(generator: np.random.Philox, count: int) -> NDArray[np.int16]:
    # Raw words are the part of numpy's generators that never changes between versions.
    words = np.asarray(generator.random_raw((count + 3) // 4), np.dtype("<u8"))
    return words.view(np.dtype("<i2"))[:count]
