"""Inception v1 (GoogLeNet with batch normalisation), v3 and v4: several convolutions beside each other, joined.

A branch is a chain, one word per layer: `96x3` is 96 channels by a 3×3 convolution, `96x1,7` by one of 1 row and 7
columns, `max` and `avg` pool over 3×3; `//2` after it halves the image, `/2` does without padding, `V` leaves out the
padding alone. Words in brackets fork: all of them read the result before.
"""

from __future__ import annotations

from functools import partial
from re import fullmatch

from ..blueprint import Blueprint, Value
from ..image_layers import classify, conv, join, pool
from ..network import Network, Settings, image_input, image_options

_STEM_V3 = "32x3/2 32x3V 64x3 max/2 80x1 192x3V max/2"
_STEM_V4 = ("32x3/2 32x3V 64x3", ("max/2", "96x3/2"), ("64x1 96x3V", "64x1 64x1,7 64x7,1 96x3V"), ("192x3/2", "max/2"))


def _v1_block(*channels: int) -> tuple[str, ...]:
    """Return the four branches; the one that was 5×5 is a 3×3 in the implementations that are used."""
    one, narrow, wide, narrow5, wide5, pooled = channels
    return (f"{one}x1", f"{narrow}x1 {wide}x3", f"{narrow5}x1 {wide5}x3", f"max {pooled}x1")


_V1: tuple[str | tuple[str, ...], ...] = (
    "64x7//2 max//2 64x1 192x3 max//2",
    _v1_block(64, 96, 128, 16, 32, 32),
    _v1_block(128, 128, 192, 32, 96, 64),
    "max//2",
    _v1_block(192, 96, 208, 16, 48, 64),
    _v1_block(160, 112, 224, 24, 64, 64),
    _v1_block(128, 128, 256, 24, 64, 64),
    _v1_block(112, 144, 288, 32, 64, 64),
    _v1_block(256, 160, 320, 32, 128, 128),
    "max//2",
    _v1_block(256, 160, 320, 32, 128, 128),
    _v1_block(384, 192, 384, 48, 128, 128),
)


def _v3_a(pooled: int) -> tuple[str, ...]:
    return ("64x1", "48x1 64x5", "64x1 96x3 96x3", f"avg {pooled}x1")


def _v3_c(inner: int) -> tuple[str, ...]:
    double = f"{inner}x1 {inner}x7,1 {inner}x1,7 {inner}x7,1 192x1,7"
    return ("192x1", f"{inner}x1 {inner}x1,7 192x7,1", double, "avg 192x1")


_V3_E = ("320x1", "384x1 [384x1,3 384x3,1]", "448x1 384x3 [384x1,3 384x3,1]", "avg 192x1")
_V3: tuple[str | tuple[str, ...], ...] = (
    _STEM_V3,
    _v3_a(32),
    _v3_a(64),
    _v3_a(64),
    ("384x3/2", "64x1 96x3 96x3/2", "max/2"),
    _v3_c(128),
    _v3_c(160),
    _v3_c(160),
    _v3_c(192),
    ("192x1 320x3/2", "192x1 192x1,7 192x7,1 192x3/2", "max/2"),
    _V3_E,
    _V3_E,
)
_V4_A = ("96x1", "64x1 96x3", "64x1 96x3 96x3", "avg 96x1")
_V4_B = ("384x1", "192x1 224x1,7 256x7,1", "192x1 192x7,1 224x1,7 224x7,1 256x1,7", "avg 128x1")
_V4_C = ("256x1", "384x1 [256x1,3 256x3,1]", "384x1 448x3,1 512x1,3 [256x1,3 256x3,1]", "avg 256x1")
_V4: tuple[str | tuple[str, ...], ...] = (
    *_STEM_V4,
    *(_V4_A,) * 4,
    ("384x3/2", "192x1 224x3 256x3/2", "max/2"),
    *(_V4_B,) * 7,
    ("192x1 192x3/2", "256x1 256x1,7 320x7,1 320x3/2", "max/2"),
    *(_V4_C,) * 3,
)


def _build(modules: tuple[str | tuple[str, ...], ...], plan: Blueprint, settings: Settings) -> None:
    x = image_input(plan, settings)
    for number, module in enumerate(modules):
        at = f"mixed{number}"
        x = _chain(plan, at, x, module)[0] if isinstance(module, str) else _module(plan, at, x, module)
    classify(plan, x, settings.number("classes"))


def _module(plan: Blueprint, at: str, x: Value, branches: tuple[str, ...]) -> Value:
    parts = [y for number, branch in enumerate(branches) for y in _chain(plan, f"{at}/branch{number}", x, branch)]
    return join(plan, at, parts)


def _chain(plan: Blueprint, at: str, x: Value, words: str) -> list[Value]:
    chain, _, fork = words.partition(" [")
    for number, word in enumerate(chain.split()):
        x = _layer(plan, f"{at}.{number}", x, word)
    return [_layer(plan, f"{at}.fork{n}", x, word) for n, word in enumerate(fork[:-1].split())] if fork else [x]


def _layer(plan: Blueprint, at: str, x: Value, word: str) -> Value:
    layer, slash, _ = word.partition("/")
    stride = (2, 2) if slash else (1, 1)
    padding = None if "//" in word or not (slash or layer.endswith("V")) else 0
    if layer in ("max", "avg"):
        return pool(plan, at, x, (3, 3), stride=stride, padding=padding, mean=layer == "avg")
    found = fullmatch(r"(\d+)x(\d),?(\d?)V?", layer)
    if found is None:
        raise ValueError(f"{at}: {word!r} is no layer; expected channels x kernel, max or avg")
    channels, rows, columns = int(found[1]), int(found[2]), int(found[3] or found[2])
    return conv(plan, at, x, channels, (rows, columns), stride=stride, padding=padding, activation="relu")


def _network(
    name: str, description: str, modules: tuple[str | tuple[str, ...], ...], size: int, smallest: int
) -> Network:
    options = image_options(size, smallest=smallest)
    return Network(name, f"{description} at {size}×{size}", partial(_build, modules), options, ("onnx", "tflite"))


NETWORKS = (
    _network("inception-v1", "Inception v1 (GoogLeNet), 6.62 M parameters, 1.5 G MACs", _V1, 224, 32),
    _network("inception-v3", "Inception v3, 23.8 M parameters, 5.71 G MACs", _V3, 299, 75),
    _network("inception-v4", "Inception v4, 42.6 M parameters, 12.3 G MACs", _V4, 299, 75),
)
