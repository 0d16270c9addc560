"""The tables of a Run's folder as Arrow tables, for whoever computes on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.errors import UsageError
from ..core.files import open_plain
from .summary import OpTotal

if TYPE_CHECKING:
    import pyarrow as pa


def read_table(folder: Path, name: str) -> pa.Table:
    """A table of a run as it lies in its folder."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = folder / f"{name}.parquet"
    try:
        with open_plain(path) as file:
            return pq.read_table(file)
    except (OSError, pa.ArrowException) as error:
        raise UsageError(f"{path}: cannot be read as Parquet ({str(error)[:200]})") from error


def spans_table(folder: Path) -> pa.Table:
    """The spans, with the name of the op beside its number."""
    import pyarrow as pa
    import pyarrow.compute as pc

    spans, ops = read_table(folder, "spans"), read_table(folder, "ops")
    try:
        numbers = pc.index_in(spans["op"].cast("int64").combine_chunks(), ops["op"].cast("int64").combine_chunks())
        names = ops["name"].combine_chunks().cast("string").take(numbers).dictionary_encode()  # two may have one name
        return spans.add_column(spans.schema.get_field_index("op") + 1, "op_name", names)
    except (KeyError, pa.ArrowException) as error:
        raise UsageError(f"{folder}: a table does not have the columns of a run ({error})") from error


def totals_table(totals: Sequence[OpTotal]) -> pa.Table:
    """Totals of ops as columns."""
    import pyarrow as pa

    kinds = {
        "name": pa.string(),
        "type": pa.string(),
        "engine": pa.string(),
        "placed": pa.string(),
        "reason": pa.string(),
        "share": pa.float64(),
    }
    names = [field.name for field in fields(OpTotal)]
    return pa.table(
        {name: pa.array([getattr(total, name) for total in totals], kinds.get(name, pa.int64())) for name in names}
    )
