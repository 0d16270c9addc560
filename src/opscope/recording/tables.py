"""The tables of a Run's folder as Arrow tables, to compute on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, get_type_hints

from ..core.errors import UsageError
from ..core.files import open_plain
from .folder_reader import read_table as read_table_file
from .schema import table_file
from .summary import OpTotal

if TYPE_CHECKING:
    import pyarrow as pa


def read_table(folder: Path, name: str) -> pa.Table:
    """A table of a run as it lies in its folder."""
    path = folder / table_file(name)
    with open_plain(path) as file:
        return read_table_file(path, file=file)


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
        str: pa.string(),
        bool: pa.bool_(),
        float | None: pa.float64(),
        int | None: pa.int64(),
        tuple[str, ...]: pa.list_(pa.string()),
    }
    columns = {name: kinds[kind] for name, kind in get_type_hints(OpTotal).items()}
    return pa.table({name: pa.array([getattr(row, name) for row in totals], kind) for name, kind in columns.items()})
