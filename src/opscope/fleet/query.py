"""Questions to a store in SQL, which DuckDB answers: read only, and shut in with the files of the store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import sleep
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from ..core.errors import UsageError, printable
from .place import needed
from .reading import connected, inbox_tables
from .schema import TABLES
from .store import INBOX, Store

if TYPE_CHECKING:
    import duckdb

    Connection = duckdb.DuckDBPyConnection

_Found = TypeVar("_Found")

_NEW = {  # rows of the inbox, with the month that partitions tell of the others
    "cells": "FROM new_cells SELECT *, strftime(created, '%Y-%m') AS month",
    "ops": "FROM new_ops JOIN (FROM new_cells SELECT id, strftime(created, '%Y-%m') AS month) USING (id)",
}
_TRIES = 20  # a file that was listed may be put together with others before it is read, time and again

VIEWS = {
    "latest": "SELECT * FROM cells QUALIFY row_number() OVER (PARTITION BY series ORDER BY created DESC, id) = 1",
    "findings": """
        SELECT id, status, model, target, backend, precision, batch, cores, commit, created, position,
               found.rule, found.title, found.share, found.cost_ns, found.op
        FROM (SELECT *, unnest(findings) AS found, generate_subscripts(findings, 1) AS position FROM cells)
    """,
}


@dataclass(frozen=True, slots=True)
class Answer:
    """A table that came back."""

    columns: tuple[str, ...]
    types: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]

    def dictionaries(self) -> list[dict[str, object]]:
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


def ask(store: Store, sql: str, parameters: Sequence[object] = (), *, most: int | None = None) -> Answer:
    """The answer to one SELECT over the views cells, ops, findings and latest."""
    return _asked(store, sql, lambda connection: _answer(connection.execute(sql, list(parameters)), most))


def ask_columns(store: Store, sql: str) -> pa.Table:
    """The same answer as columns, for many rows."""
    return _asked(store, sql, lambda connection: connection.sql(sql).to_arrow_table())


def _asked(store: Store, sql: str, read: Callable[[Connection], _Found]) -> _Found:
    _check_is_question(sql)
    duck = needed("duckdb")
    for tried in range(1, _TRIES + 1):
        try:
            return read(opened(store))
        except (duck.IOException, FileNotFoundError) as error:
            if tried == _TRIES:
                raise _refused(error) from error
            sleep(0.01 * tried)
        except duck.Error as error:
            raise _refused(error) from error
    raise AssertionError


def _answer(found: Connection, most: int | None) -> Answer:
    rows = found.fetchall() if most is None else found.fetchmany(most)
    description = found.description or []
    names, types = (tuple(str(column[place]) for column in description) for place in (0, 1))
    return Answer(names, types, tuple(rows))


def opened(store: Store) -> Connection:
    """A connection that knows the views and can reach nothing else, nor change that."""
    store.check_current()
    connection = connected(store)
    listing = store.listing()
    inbox = inbox_tables(store, listing.files[INBOX], TABLES)
    for table, rows in inbox.items():
        connection.register(f"new_{table}", rows)
        parts = [_NEW[table]]
        files = [store.place.url(name) for name in listing.files[table]]
        if files:
            connection.execute(f"SET VARIABLE {table}_files = ?", [files])
            options = "hive_partitioning = true, hive_types_autocast = false"
            parts.append(f"FROM read_parquet(getvariable('{table}_files'), {options})")
        connection.execute(f"CREATE VIEW {table} AS {' UNION ALL BY NAME '.join(f'({part})' for part in parts)}")
    for name, sql in VIEWS.items():
        connection.execute(f"CREATE VIEW {name} AS {sql}")
    connection.execute("SET allowed_directories = ?", [[store.place.url(table) + "/" for table in TABLES]])
    for lock in (
        "autoinstall_known_extensions = false",
        "autoload_known_extensions = false",
        "python_enable_replacements = false",
        "temp_directory = ''",
        "enable_external_access = false",
        "lock_configuration = true",
    ):
        connection.execute(f"SET {lock}")
    return connection


def _check_is_question(sql: str) -> None:
    """One statement that reads: the lock keeps others out of the store, and this keeps them from writing in it."""
    duck = needed("duckdb")
    try:
        found = [statement.type for statement in duck.extract_statements(sql)]
    except duck.Error as error:
        raise _refused(error) from error
    if found != [duck.StatementType.SELECT]:
        kinds = ", ".join(str(kind).rpartition(".")[2] for kind in found) or "nothing"
        raise UsageError(f"SQL: is {kinds}; expected one SELECT, as a store is only read")


def _refused(error: Exception) -> UsageError:
    lines = " ".join(str(error).split())
    return UsageError(f"SQL: {printable(lines, 400)}; expected a SELECT over cells, ops, findings or latest")
