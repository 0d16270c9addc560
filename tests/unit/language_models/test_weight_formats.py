"""Words of --weights and --kv."""

from __future__ import annotations

import pytest

from opscope.core.errors import UsageError
from opscope.graph.graph import DType
from opscope.language_models.formats import CACHES, WEIGHTS, cache_format, weight_format


@pytest.mark.parametrize(
    ("word", "size"),
    [
        ("f16", 128 * 64 * 2),
        ("i8", 128 * 64 + 64 * 4),  # a scale of 32 bits for each column
        ("w4", 128 * 64 // 2 + 64 * 4 * 2),  # a scale of 16 bits for each 32 weights
        ("w4a16", 128 * 64 // 2 + 64 * 4),
        ("mxfp6", 128 * 64 * 6 // 8 + 64 * 4),
        ("mxfp4", 128 * 64 // 2 + 64 * 4),
    ],
)
def test_scales_take_bytes_too(word: str, size: int) -> None:
    assert weight_format(word).size_bytes(128, 64) == size


def test_words_of_precision_mean_the_same_here() -> None:
    assert weight_format("i8") is weight_format("w8a8")
    assert (weight_format("w8a8").flows, weight_format("w8a8").operand) == (DType.F16, DType.I8)
    assert weight_format("w4a16").flows is DType.I16
    assert weight_format("w4").operand is None


def test_an_unknown_word_is_refused_with_the_nearest() -> None:
    with pytest.raises(
        UsageError, match=r"^--weights mxfp5: not known; did you mean mxfp\d\? expected one of f32, f16"
    ):
        weight_format("mxfp5")
    with pytest.raises(UsageError, match=r"^--kv mxint9: not known; did you mean mxint8\? expected one of f32, f16"):
        cache_format("mxint9")
    assert WEIGHTS.keys() >= {"f16", "w4", "mxfp6"}
    assert CACHES.keys() >= {"f16", "i8", "mxint8"}
