"""How rows of a store are read: DuckDB reads Parquet; what is still in the inbox becomes Arrow tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa

from ..core.errors import UsageError, printable
from .place import needed
from .schema import OF_CELL
from .store import Columns, Store

if TYPE_CHECKING:
    import duckdb

Schemas = Mapping[str, pa.Schema]


class _Ended(msgspec.Struct):
    """A file of the inbox."""

    cell: dict[str, object]
    ops: dict[str, list[object]]


_WRONG = (pa.ArrowException, TypeError, ValueError, OverflowError)  # what Arrow says of values that do not fit
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
    found = [_read(store, name) for name in names]
    try:
        return _tables(found, schemas)
    except _WRONG:  # all at once is five times as fast; now for the one
        for name, each in zip(names, found, strict=True):
            try:
                _tables([each], schemas)
            except _WRONG as error:
                problem = f"has another form than a row ({printable(str(error))}); expected one, or no such file"
                raise UsageError(f"{store.place.url(name)}: {problem}") from error
        raise


def _tables(found: Sequence[_Ended], schemas: Schemas) -> dict[str, pa.Table]:
    cells = pa.Table.from_pylist([_with_types(each.cell, schemas["cells"]) for each in found], schemas["cells"])
    ops = [_op_table(each.cell, each.ops, schemas["ops"]) for each in found if each.ops]
    return {"cells": cells, "ops": pa.concat_tables([schemas["ops"].empty_table(), *ops])}


def _read(store: Store, name: str) -> _Ended:
    data = store.place.get(name)
    if data is None:
        raise FileNotFoundError(name)
    try:
        return _DECODER.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        problem = f"is damaged ({printable(str(error))}); expected a row, or no such file"
        raise UsageError(f"{store.place.url(name)}: {problem}") from error


def _with_types(cell: dict[str, object], schema: pa.Schema) -> dict[str, object]:
    """With what JSON has no form for: maps, and times."""
    typed = dict(cell)
    for name in _maps_and_times(schema):
        value = cell.get(name)
        if isinstance(value, dict):
            typed[name] = list(value.items())
        elif isinstance(value, str):
            typed[name] = datetime.fromisoformat(value)
    return typed


@cache
def _maps_and_times(schema: pa.Schema) -> list[str]:
    return [field.name for field in schema if pa.types.is_map(field.type) or pa.types.is_timestamp(field.type)]


def _op_table(cell: Mapping[str, object], ops: Columns, schema: pa.Schema) -> pa.Table:
    count = len(next(iter(ops.values()), ()))
    unknown = [None] * count
    columns = {name: [cell.get(name)] * count if name in OF_CELL else ops.get(name, unknown) for name in schema.names}
    return pa.table(columns, schema)
