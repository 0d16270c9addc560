"""Buffers on the command line and on the screen, as IREE's tools have them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opscope.core.errors import UsageError
from opscope.plugins.torq.dialect.buffer_text import MAX_PRINTED, buffer_text, read_buffer

SHAPES = st.lists(st.integers(1, 4), min_size=0, max_size=4)


@given(SHAPES, st.sampled_from(["i8", "ui8", "i16", "i32", "i64", "f32", "f64"]), st.integers(0, 2**32 - 1))
def test_what_is_printed_reads_back_as_itself(shape: list[int], kind: str, seed: int) -> None:
    dtype = {"ui8": np.uint8, "f32": np.float32, "f64": np.float64}.get(kind) or np.dtype(f"int{kind[1:]}")
    values = np.random.default_rng(seed).integers(0, 100, shape).astype(dtype)
    text = buffer_text(values)
    assert text.startswith("x".join([*map(str, shape), kind]) + "=")
    again = read_buffer(text)
    assert again.dtype == values.dtype
    assert np.array_equal(again, values)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1x4xi8=7", [[7, 7, 7, 7]]),
        ("4xi8=1 2 3 4", [1, 2, 3, 4]),
        ("2x2xi32=[1 2][3 4]", [[1, 2], [3, 4]]),
        ("2x2xi32=1,2,3,4", [[1, 2], [3, 4]]),
        ("2xf32=1.5 -2e3", [1.5, -2000.0]),
        ("3xi1=1 0 true", [True, False, True]),
        ("2xsi16=0x10 -1", [16, -1]),
        ("1x3xi8", [[0, 0, 0]]),
        ("f32=2", 2.0),
    ],
)
def test_values_may_be_written_in_every_way_the_tools_take(text: str, values: object) -> None:
    assert np.array_equal(read_buffer(text), np.array(values))


def test_files_hold_whole_arrays_or_raw_values(tmp_path: Path) -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.save(tmp_path / "a.npy", array)
    (tmp_path / "a.bin").write_bytes(array.tobytes())
    for text in (f"@{tmp_path}/a.npy", f"2x3xf32=@{tmp_path}/a.npy", f"2x3xf32=@{tmp_path}/a.bin"):
        assert np.array_equal(read_buffer(text), array)
    with pytest.raises(UsageError, match="the file has 24 bytes; expected 16"):
        read_buffer(f"2x2xf32=@{tmp_path}/a.bin")
    with pytest.raises(UsageError, match="the file holds 2x3xfloat32; expected what stands before the ="):
        read_buffer(f"3x2xf32=@{tmp_path}/a.npy")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1x4xi8=1 2", "2 values; expected 1 or 4"),
        ("1x4xi8=300", "300 is outside -128 to 127; expected numbers of type int8"),
        ("2xf32=one two", "2xf32=one two: 'one' is no number; expected numbers of type float32"),
        ("2xi8=nan", "2xi8=nan: 'nan' is no number; expected numbers of type int8"),
        ("bananas", "not a buffer; expected SHAPExTYPE=VALUES"),
        ("1xf8=0", "not a buffer"),
        ("99999999999x99999999xf32=0", "larger than 17179869184 bytes"),
        ("@nowhere.npy", r"nowhere\.npy: cannot be read"),
        ("2xi8=@nowhere.bin", r"nowhere\.bin: cannot be read"),
    ],
)
def test_what_is_no_buffer_is_refused(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        read_buffer(text)


@pytest.mark.parametrize(
    ("array", "end"),
    [  # what iree-run-module 3.10 printed
        (np.ones((5, 700), np.int8), " 1 1...][...][...][...]"),
        (np.ones((3, 2, 600), np.int8), " 1 1...]][[...][...]][[...][...]]"),
        (np.ones((2, 1024), np.int8), " 1 1][...]"),
        (np.full(1100, 3, np.int8), " 3 3..."),
    ],
)
def test_long_buffers_are_cut_as_the_tools_cut_them(array: np.ndarray, end: str) -> None:  # type: ignore[type-arg]
    text = buffer_text(array)
    assert text.endswith(end)
    assert text.count(str(array.flat[0])) >= MAX_PRINTED


def test_rows_and_floats_look_as_the_tools_print_them() -> None:
    nested = np.array([[[1, 2], [3, 4]], [[5, 6], [7, 8]]], np.int32)
    assert buffer_text(nested) == "2x2x2xi32=[[1 2][3 4]][[5 6][7 8]]"
    assert buffer_text(np.array([0.1, 123456789], np.float32)) == "2xf32=0.1 1.23457E+08"
    assert buffer_text(np.array(2.5, np.float32)) == "f32=2.5"
