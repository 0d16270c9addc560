"""The folder of a Run → the parts that a comparison needs: of the spans, five of fourteen columns."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ..core.errors import UsageError
from ..core.provenance import Provenance
from ..program.program import OpInfo
from .arrow_numbers import chunk_numbers, whole_numbers
from .classify import classified_summary
from .folder_reader import PROVENANCE, read_info
from .run import RunInfo
from .summary import Summary
from .summary_json import read_summary
from .trace import NONE, OpSpans, SpanKind

if TYPE_CHECKING:
    import pyarrow as pa

Integers = npt.NDArray[np.int64]

_SPAN_COLUMNS = ("kind", "op", "inference", "start_ns", "end_ns")


def read_columns(path: Path) -> tuple[RunInfo, tuple[OpInfo, ...], Summary, OpSpans]:
    """Head, ops, totals, and when ops were at work. What is missing or of another schema is named."""
    info, summary = read_info(path), read_summary(path / "summary.json")
    ops = _ops(_table(path / "ops.parquet", ("name", "type", "kind", "location")))
    return info, ops, classified_summary(summary, ops), _spans(path / "spans.parquet", len(ops), info.provenance)


def _table(
    path: Path, columns: tuple[str, ...], words: tuple[str, ...] = (), *, further: tuple[str, ...] = ()
) -> pa.Table:
    """`further` columns are read where there are any."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:  # not read_table: it imports all of pandas where that is installed
        with pq.ParquetFile(path, read_dictionary=list(words), memory_map=True) as file:
            table = file.read(columns=[*columns, *(name for name in further if name in file.schema_arrow.names)])
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


def _spans(path: Path, ops: int, provenance: Provenance) -> OpSpans:
    """Of the lanes that are of the run's own provenance."""
    table = _table(path, _SPAN_COLUMNS, ("kind",), further=(PROVENANCE,))
    if PROVENANCE in table.column_names:
        own = [word is None or word == provenance for word in table[PROVENANCE].to_pylist()]
        table = table.filter(own)
    try:
        numbers = [whole_numbers(table[name]) for name in _SPAN_COLUMNS[1:]]
        kind = _kinds(table["kind"])
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise UsageError(f"{path}: a column is not as in a run ({str(error)[:200]})") from error
    op, _, start, end = numbers
    if len(op) and (int(op.max()) >= ops or int(op.min()) < NONE):
        raise UsageError(f"{path}: a span is of op {int(op.max())}; expected one of the {ops} in ops.parquet")
    if bool((end < start).any()):
        raise UsageError(f"{path}: a span ends before it starts")
    return OpSpans(kind, *numbers)


def _kinds(column: pa.ChunkedArray) -> Integers:
    """SpanKind of every span; chunks may have dictionaries of their own."""
    parts = [
        np.array([int(SpanKind[word.upper()]) for word in chunk.dictionary.to_pylist()] or [0])[
            chunk_numbers(chunk.indices)
        ]
        for chunk in column.chunks
        if len(chunk)
    ]
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)
