"""How rows of a store are read: DuckDB reads Parquet; what is still in the inbox becomes Arrow tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa

from ..core.errors import UsageError, printable
from .extra import needed
from .schema import OF_CELL
from .store import Columns, Store

if TYPE_CHECKING:
    import duckdb

Schemas = Mapping[str, pa.Schema]


class _Ended(msgspec.Struct):
    """A file of the inbox."""

    cell: dict[str, object]
    ops: dict[str, list[object]]


_DECODER = msgspec.json.Decoder(_Ended)


def connected(store: Store) -> duckdb.DuckDBPyConnection:
    """DuckDB, with the files of the store within reach."""
    connection: duckdb.DuckDBPyConnection = needed("duckdb").connect()
    if store.place.filesystem is not None:
        connection.register_filesystem(store.place.filesystem)
    return connection


def quoted(text: str) -> str:
    """Text for SQL."""
    return "'" + text.replace("'", "''") + "'"


def read_tables(urls: Sequence[str]) -> str:
    """SQL of the rows of Parquet files, as they are."""
    return f"read_parquet([{', '.join(map(quoted, urls))}], hive_partitioning = false)"


def inbox_tables(store: Store, names: Sequence[str], schemas: Schemas) -> dict[str, pa.Table]:
    """What is in files of the inbox, by table; a file that has been put away since is a FileNotFoundError."""
    cells, ops = [], [schemas["ops"].empty_table()]
    for name in names:
        found = _read(store, name)
        cells.append(_with_types(found.cell, schemas["cells"]))
        if found.ops:
            ops.append(_op_table(found.cell, found.ops, schemas["ops"]))
    try:
        return {"cells": pa.Table.from_pylist(cells, schemas["cells"]), "ops": pa.concat_tables(ops)}
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise UsageError(f"{store.place.address}: a row of the inbox has another form ({error})") from error


def _read(store: Store, name: str) -> _Ended:
    data = store.place.get(name)
    if data is None:
        raise FileNotFoundError(name)
    try:
        return _DECODER.decode(data)
    except msgspec.MsgspecError as error:
        problem = f"is damaged ({printable(str(error))}); expected a row, or no such file"
        raise UsageError(f"{store.place.url(name)}: {problem}") from error


def _with_types(cell: dict[str, object], schema: pa.Schema) -> dict[str, object]:
    """What JSON has no form for: maps, and times."""
    for field in schema:
        value = cell.get(field.name)
        if isinstance(value, dict) and pa.types.is_map(field.type):
            cell[field.name] = list(value.items())
        elif isinstance(value, str) and pa.types.is_timestamp(field.type):
            cell[field.name] = datetime.fromisoformat(value)
    return cell


def _op_table(cell: Mapping[str, object], ops: Columns, schema: pa.Schema) -> pa.Table:
    count = len(next(iter(ops.values())))
    columns = {name: [cell.get(name)] * count if name in OF_CELL else ops[name] for name in schema.names}
    return pa.table(columns, schema)
