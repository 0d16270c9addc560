"""Columns of Arrow tables ↔ numpy arrays, over their buffers: Arrow's own ways import pandas where it is installed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from .trace import NONE

if TYPE_CHECKING:
    import pyarrow as pa

Integers = npt.NDArray[np.int64]


# numpy → Arrow


def number_column(values: npt.NDArray[np.generic], present: npt.NDArray[np.bool_] | None = None) -> pa.Array:
    """Numbers or flags, as wide as they are; null where `present` is False."""
    import pyarrow as pa

    bits = None if present is None or present.all() else pa.py_buffer(np.packbits(present, bitorder="little"))
    flags = values.dtype == np.bool_
    plain = np.packbits(values.astype(np.bool_), bitorder="little") if flags else np.ascontiguousarray(values)
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [bits, pa.py_buffer(plain)])


def optional_column(values: npt.NDArray[np.generic]) -> pa.Array:
    """Numbers; NONE is null."""
    return number_column(values, values != NONE)


def text_column(texts: Sequence[str]) -> pa.Array:
    import pyarrow as pa

    parts = [text.encode() for text in texts]
    ends = np.cumsum([0, *map(len, parts)], dtype=np.int32)
    return pa.StringArray.from_buffers(len(parts), pa.py_buffer(ends), pa.py_buffer(b"".join(parts)))


def word_column(index: Integers, words: Sequence[str]) -> pa.Array:
    """`words[index]`, each word stored once: [0, 2, 1] of the words a, b, a is stored as [0, 0, 1] of a, b."""
    import pyarrow as pa

    known = {word: number for number, word in enumerate(dict.fromkeys(words))}
    place = np.array([known[word] for word in words] or [0], np.int32)
    return pa.DictionaryArray.from_arrays(number_column(place[index]), text_column(list(known)))


# Arrow → numpy


def whole_numbers(column: pa.ChunkedArray) -> Integers:
    """Whole numbers; null is NONE. Other numbers are cast where they are whole."""
    import pyarrow as pa

    is_kind = pa.types.is_signed_integer if column.null_count else pa.types.is_integer
    parts = [chunk_numbers(chunk) for chunk in (column if is_kind(column.type) else column.cast("int64")).chunks]
    if len(parts) == 1:  # as it lies: a copy of a long column takes longer than reading it
        return parts[0]
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)


def chunk_numbers(chunk: pa.Array) -> Integers:
    """Whole numbers; null is NONE."""
    kind = np.dtype(chunk.type.to_pandas_dtype())
    if kind.kind not in "iu":
        raise TypeError(f"{chunk.type} where whole numbers are expected")
    valid, data = chunk.buffers()
    if data is None or chunk.null_count == len(chunk):
        return np.full(len(chunk), NONE, np.int64)
    rows = slice(chunk.offset, chunk.offset + len(chunk))
    values: Integers = np.frombuffer(data, kind)[rows]
    if chunk.null_count:
        present = np.unpackbits(np.frombuffer(valid, np.uint8), bitorder="little")[rows]
        values = np.where(present, values, NONE)
    return values


def flags_or_floats(column: pa.ChunkedArray) -> npt.NDArray[np.generic]:
    """Of a column without nulls; any other as Arrow has it."""
    kind = np.dtype(column.type.to_pandas_dtype())
    if column.null_count or kind.kind not in "bf":
        return np.asarray(column.to_numpy())
    parts = [_chunk_flags_or_floats(chunk, kind) for chunk in column.chunks]
    return np.concatenate(parts) if parts else np.zeros(0, kind)


def _chunk_flags_or_floats(chunk: pa.Array, kind: np.dtype[np.generic]) -> npt.NDArray[np.generic]:
    data, rows = chunk.buffers()[1], slice(chunk.offset, chunk.offset + len(chunk))
    if data is None or not len(chunk):
        return np.zeros(0, kind)
    if kind.kind == "b":
        return np.unpackbits(np.frombuffer(data, np.uint8), bitorder="little")[rows].astype(np.bool_)
    return np.frombuffer(data, kind)[rows]


def word_numbers(column: pa.ChunkedArray) -> tuple[Integers, list[str]]:
    """Number of the word in every row, and the words; null is NONE."""
    import pyarrow as pa

    if not len(column):
        return np.zeros(0, np.int64), []
    words = (column if pa.types.is_dictionary(column.type) else column.dictionary_encode()).combine_chunks()
    return chunk_numbers(words.indices), words.dictionary.to_pylist()


# distinct rows


def distinct_rows(*columns: Integers) -> tuple[Integers, list[tuple[int, ...]]]:
    """Number of the combination of values that every row has, in order of first appearance; and the combinations.

    Columns [5, 5, 7, 5] and [0, 1, 0, 0] → [0, 1, 2, 0], and (5, 0), (5, 1), (7, 0).
    """
    count = len(columns[0])
    code, first = np.zeros(count, np.int64), np.zeros(min(count, 1), np.int64)
    for column in columns if count else ():
        low, width = int(column.min()), int(column.max()) - int(column.min()) + 1
        if width > 1:  # one more digit; numbered again after each, so that codes stay small
            code, first = _numbered(code * width + (column - low))
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    place, first = rank[code], np.sort(first)
    return place, list(zip(*(column[first].tolist() for column in columns), strict=True))


def _numbered(values: Integers) -> tuple[Integers, Integers]:
    """Every value of at least 0 as its place among the distinct ones, and where each of these comes first."""
    most, count = int(values.max()), len(values)
    if most > 4 * count + 1024:
        _, first, code = np.unique(values, return_index=True, return_inverse=True)
        return code, first
    first = np.full(most + 1, NONE)
    first[values[::-1]] = np.arange(count)[::-1]  # of several, the last that is written stays
    present = first != NONE
    return (np.cumsum(present) - 1)[values], first[present]
