"""Swin Transformer, as torchvision exports it: attention within windows, shifted by half a window in every other block.

The table of relative positions is looked up in advance, as exporters fold constants.
"""

from __future__ import annotations

from functools import partial
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from ..blueprint import Blueprint, OperandRole, Value, ValueKind, Weight
from ..image_layers import conv, corners, dense, split
from ..network import Network, Option, Settings, image_input
from ..tensor_layers import (
    add,
    attend,
    binary,
    concat,
    gelu,
    layer_norm,
    linear,
    matmul,
    query_key_value,
    reshape,
    softmax,
    transpose,
)

_EPSILON = 1e-5
_WINDOW, _PATCH, _HEAD_SIZE, _MLP_RATIO = 7, 4, 32, 4
_TOKENS = _WINDOW * _WINDOW
_MASKED = -100.0
_QKV = Option("qkv", "packed", "query, key and value as one product, or as three", choices=("packed", "split"))


def _build(blocks: tuple[int, ...], width: int, plan: Blueprint, settings: Settings) -> None:
    size = settings.number("size")
    multiple = _PATCH * _WINDOW << (len(blocks) - 1)
    settings.require(size % multiple == 0, f"size is {size}", f"a multiple of {multiple}")
    x = image_input(plan, settings)
    x = conv(plan, "features/features.0/features.0.0", x, width, (_PATCH, _PATCH), stride=(_PATCH, _PATCH), padding=0)
    x = transpose(plan, "features/features.0", x, (0, 2, 3, 1))
    x = layer_norm(plan, "features/features.0/features.0.2", x, epsilon=_EPSILON)
    packed, sliced = settings.word(_QKV.name) == "packed", settings.word("merge") == "slices"
    for stage, count in enumerate(blocks):
        if stage:
            x = _merge(plan, f"features/features.{2 * stage}", x, sliced=sliced)
        for block in range(count):
            number = 2 * stage + 1
            at = f"features/features.{number}/features.{number}.{block}"
            x = _block(plan, at, x, shifted=block % 2 == 1, packed=packed)
    x = layer_norm(plan, "norm", x, epsilon=_EPSILON)
    shape = (x.shape[0], x.shape[-1])
    x = plan.step("ReduceMean", "avgpool", [x], shape, rms=x.rms, attributes={"axes": (1, 2), "keepdims": 0})
    plan.output("output", dense(plan, "head", x, settings.number("classes")))


def _merge(plan: Blueprint, at: str, x: Value, *, sliced: bool) -> Value:
    """Put four neighbours' features side by side, and halve their number: in slices as torchvision, or as timm."""
    batch, rows, columns, features = x.shape
    if sliced:
        x = concat(plan, at, corners(plan, at, x, (1, 2)), axis=3)
    else:
        x = reshape(plan, at, x, (batch, rows // 2, 2, columns // 2, 2, features))
        x = transpose(plan, at, x, (0, 1, 3, 4, 2, 5))
        x = reshape(plan, at, x, (batch, rows // 2, columns // 2, 4 * features))
    x = layer_norm(plan, f"{at}/norm", x, epsilon=_EPSILON)
    return linear(plan, f"{at}/reduction", x, 2 * features, bias=False)


def _block(plan: Blueprint, at: str, x: Value, *, shifted: bool, packed: bool) -> Value:
    shift = _WINDOW // 2 if shifted and x.shape[1] > _WINDOW else 0  # one window has nothing to shift to
    y = layer_norm(plan, f"{at}/norm1", x, epsilon=_EPSILON)
    y = _roll(plan, at, y, shift)
    y = _attention(plan, f"{at}/attn", y, shift, packed=packed)
    x = add(plan, at, x, _roll(plan, at, y, -shift))
    y = layer_norm(plan, f"{at}/norm2", x, epsilon=_EPSILON)
    y = gelu(plan, f"{at}/mlp/mlp.1", linear(plan, f"{at}/mlp/mlp.0", y, _MLP_RATIO * x.shape[-1]))
    return add(plan, at, x, linear(plan, f"{at}/mlp/mlp.3", y, x.shape[-1]))


def _roll(plan: Blueprint, at: str, x: Value, shift: int) -> Value:
    """Move rows and columns by `shift`, those that leave coming back at the other end."""
    for axis in (1, 2) if shift else ():
        first = shift % x.shape[axis]
        front, back = split(plan, at, x, (first, x.shape[axis] - first), axis=axis)
        x = concat(plan, at, [back, front], axis=axis)
    return x


def _attention(plan: Blueprint, at: str, x: Value, shift: int, *, packed: bool) -> Value:
    batch, rows, columns, features = x.shape
    heads, down, across = features // _HEAD_SIZE, rows // _WINDOW, columns // _WINDOW
    windows = batch * down * across
    tiles = transpose(plan, at, reshape(plan, at, x, (batch, down, _WINDOW, across, _WINDOW, features)), _SWAPPED)
    tokens = reshape(plan, at, tiles, (windows, _TOKENS, features))
    query, key, value = query_key_value(plan, at, tokens, heads, packed=packed)
    scale = 1 / sqrt(_HEAD_SIZE)
    query = binary(plan, "Mul", at, query, plan.literal(at, scale, ValueKind.FLOAT), rms=scale)
    scores = matmul(plan, at, query, transpose(plan, at, key, (0, 1, 3, 2)), rms=1.0)
    scores = add(
        plan, at, scores, Weight(f"{at}/relative_position", (1, heads, _TOKENS, _TOKENS), OperandRole.TENSOR, 0.1)
    )
    if shift:
        apart = plan.literal(at, _mask(rows, columns, shift)[None, :, None], ValueKind.FLOAT)
        scores = reshape(plan, at, scores, (batch, windows // batch, heads, _TOKENS, _TOKENS))
        scores = binary(plan, "Add", at, scores, apart)
        scores = reshape(plan, at, scores, (windows, heads, _TOKENS, _TOKENS))
    mixed = attend(plan, at, softmax(plan, at, scores, keys=_TOKENS), value)
    mixed = reshape(plan, at, transpose(plan, at, mixed, (0, 2, 1, 3)), (windows, _TOKENS, features))
    mixed = linear(plan, f"{at}/proj", mixed, features)
    tiles = reshape(plan, at, mixed, (batch, down, across, _WINDOW, _WINDOW, features))
    return reshape(plan, at, transpose(plan, at, tiles, _SWAPPED), x.shape)


_SWAPPED = (0, 1, 3, 2, 4, 5)  # rows within a window after columns of windows, and back


def _mask(rows: int, columns: int, shift: int) -> NDArray[np.float32]:
    """Return a large negative number for pairs of a window that were not neighbours before the shift."""
    region = [
        np.searchsorted([extent - _WINDOW, extent - shift], np.arange(extent), "right") for extent in (rows, columns)
    ]
    regions = 3 * region[0][:, None] + region[1][None]
    tiles = regions.reshape(rows // _WINDOW, _WINDOW, columns // _WINDOW, _WINDOW).transpose(0, 2, 1, 3)
    tokens = tiles.reshape(-1, _TOKENS)
    return np.where(tokens[:, :, None] != tokens[:, None], np.float32(_MASKED), np.float32(0))


def _network(name: str, description: str, blocks: tuple[int, ...], width: int) -> Network:
    options = (
        Option("size", 224, "height and width of the image", smallest=32, largest=8192),
        Option("classes", 1000, "classes told apart"),
        _QKV,
        Option("merge", "reshape", "how four neighbours get into one token", choices=("reshape", "slices")),
    )
    return Network(name, f"{description} at 224×224", partial(_build, blocks, width), options)


NETWORKS = (
    _network("swin-tiny", "Swin-T, 28.6 M parameters, 4.49 G MACs", (2, 2, 6, 2), 96),
    _network("swin-small", "Swin-S, 50.2 M parameters, 8.74 G MACs", (2, 2, 18, 2), 96),
)
