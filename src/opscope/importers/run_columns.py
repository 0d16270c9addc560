"""The folder of a Run → the parts that a comparison needs: of the spans, five of fourteen columns."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ..errors import UsageError
from ..figures import OpSpans
from ..program import OpInfo
from ..run import SCHEMA, RunInfo
from ..summary import Summary
from ..trace import NONE, SpanKind
from .run_folder import SUMMARY_SCHEMA, _json

if TYPE_CHECKING:
    import pyarrow as pa

Integers = npt.NDArray[np.int64]

_SPAN_COLUMNS = ("kind", "op", "inference", "start_ns", "end_ns")


def read_columns(path: Path) -> tuple[RunInfo, tuple[OpInfo, ...], Summary, OpSpans]:
    """Head, ops, totals, and when ops were at work. What is missing or of another schema is named."""
    info: RunInfo = _json(path / "run.json", RunInfo, SCHEMA)
    summary: Summary = _json(path / "summary.json", Summary, SUMMARY_SCHEMA)
    ops = _ops(_table(path / "ops.parquet", ("name", "type", "kind", "location")))
    return info, ops, summary, _spans(path / "spans.parquet", len(ops))


def _table(path: Path, columns: tuple[str, ...], words: tuple[str, ...] = ()) -> pa.Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:  # not read_table: it imports all of pandas where that is installed
        with pq.ParquetFile(path, read_dictionary=list(words), memory_map=True) as file:
            table = file.read(columns=list(columns))
    except (OSError, pa.ArrowException) as error:
        problem = str(error)[:200] if path.exists() else "No such file or directory"
        raise UsageError(f"{path}: cannot be read as Parquet ({problem}); expected the table of a run") from error
    missing = set(columns) - set(table.column_names)
    if missing:
        raise UsageError(f"{path}: column {min(missing)} is missing; expected the table of a run")
    return table


def _ops(table: pa.Table) -> tuple[OpInfo, ...]:
    columns = [[word or "" for word in table[name].to_pylist()] for name in ("name", "type", "kind", "location")]
    return tuple(OpInfo(*row) for row in zip(*columns, strict=True))


def _spans(path: Path, ops: int) -> OpSpans:
    table = _table(path, _SPAN_COLUMNS, ("kind",))
    try:
        numbers = [_numbers(table[name]) for name in _SPAN_COLUMNS[1:]]
        kind = _kinds(table["kind"])
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise UsageError(f"{path}: a column is not as in a run ({str(error)[:200]})") from error
    op, _, start, end = numbers
    if len(op) and (int(op.max()) >= ops or int(op.min()) < NONE):
        raise UsageError(f"{path}: a span is of op {int(op.max())}; expected one of the {ops} in ops.parquet")
    if bool((end < start).any()):
        raise UsageError(f"{path}: a span ends before it starts")
    return OpSpans(kind, *numbers)


def _numbers(column: pa.ChunkedArray) -> Integers:
    """Whole numbers; null is NONE."""
    parts = [_chunk_numbers(chunk) for chunk in column.chunks]
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)


def _chunk_numbers(chunk: pa.Array) -> Integers:
    """Of the buffers: Arrow's own fill_null and to_numpy import all of pandas where that is installed."""
    kind = np.dtype(chunk.type.to_pandas_dtype())
    if kind.kind not in "iu":
        raise TypeError(f"{chunk.type} where whole numbers are expected")
    valid, data = chunk.buffers()
    if data is None or not len(chunk):
        return np.full(len(chunk), NONE, np.int64)
    rows = slice(chunk.offset, chunk.offset + len(chunk))
    values: Integers = np.frombuffer(data, kind)[rows]
    if chunk.null_count:
        present = np.unpackbits(np.frombuffer(valid, np.uint8), bitorder="little")[rows]
        values = np.where(present, values, NONE)
    return values


def _kinds(column: pa.ChunkedArray) -> Integers:
    """SpanKind of every span; chunks may have dictionaries of their own."""
    parts = [
        np.array([int(SpanKind[word.upper()]) for word in chunk.dictionary.to_pylist()] or [0])[
            _chunk_numbers(chunk.indices)
        ]
        for chunk in column.chunks
        if len(chunk)
    ]
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)
