"""Numbers of Arrow columns, read off their buffers: Arrow's own ways import all of pandas where that is installed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from .trace import NONE

if TYPE_CHECKING:
    import pyarrow as pa

Integers = npt.NDArray[np.int64]


def whole_numbers(column: pa.ChunkedArray) -> Integers:
    """Whole numbers; null is NONE."""
    parts = [chunk_numbers(chunk) for chunk in column.chunks]
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
    parts = [_plain(chunk, kind) for chunk in column.chunks]
    return np.concatenate(parts) if parts else np.zeros(0, kind)


def _plain(chunk: pa.Array, kind: np.dtype[np.generic]) -> npt.NDArray[np.generic]:
    data, rows = chunk.buffers()[1], slice(chunk.offset, chunk.offset + len(chunk))
    if data is None or not len(chunk):
        return np.zeros(0, kind)
    if kind.kind == "b":
        return np.unpackbits(np.frombuffer(data, np.uint8), bitorder="little")[rows].astype(np.bool_)
    return np.frombuffer(data, kind)[rows]
