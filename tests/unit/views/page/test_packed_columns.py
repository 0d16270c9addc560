"""Tables of a page: what goes in comes out, and the bytes are those of the format page."""

from __future__ import annotations

import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opscope.views.page.packed_columns import encode
from support.recording.packed_columns import decode

WHOLE = st.integers(-(2**62), 2**62 - 1)


@given(st.lists(st.tuples(WHOLE, st.integers(-5, 300), st.floats(allow_nan=False))), st.booleans())
def test_decoding_gives_back_what_was_encoded(rows: list[tuple[int, int, float]], steps: bool) -> None:
    columns = {
        "wide": np.array([row[0] for row in rows], np.int64) // 4,  # so that no step leaves 64 bits
        "narrow": np.array([row[1] for row in rows], np.int64),
        "real": np.array([row[2] for row in rows], np.float64),
    }
    found = decode(encode(columns, steps=("wide", "narrow") if steps else ()))
    for name, values in columns.items():
        assert np.array_equal(found[name], values)


def test_the_bytes_are_those_of_the_format_page() -> None:
    columns = {
        "time": np.array([10, 320, 330]),
        "kind": np.array([-1, -1, -1]),
        "value": np.array([1.0, 0.5, 1.0]),
    }
    body = zlib.decompress(encode(columns, steps=("time",)))
    head = b"OSC1" + bytes([3, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0])
    time = b"time".ljust(16, b"\0") + bytes([1, 2, 0, 0, 0, 0, 0, 0]) + (10).to_bytes(8, "little")
    kind = b"kind".ljust(16, b"\0") + bytes([0, 0, 0, 0, 0, 0, 0, 0]) + b"\xff" * 8
    value = b"value".ljust(16, b"\0") + bytes([2, 8, 0, 0, 0, 0, 0, 0]) + bytes(8)
    planes = bytes([0, 0x2C, 0, 0, 1, 0]) + bytes(18) + bytes([0xF0, 0xE0, 0xF0, 0x3F, 0x3F, 0x3F])
    assert body == head + time + kind + value + planes


def test_columns_of_different_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match=r"columns of \[1, 2\] rows"):
        encode({"a": np.zeros(1, np.int64), "b": np.zeros(2, np.int64)})
