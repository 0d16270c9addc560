"""Compaction: small files of a partition become one; rows that are not wanted any more are left out.

One step is: announce in the journal which files the new one stands for, write it, remove those files, remove the
announcement. Readers skip the files of an announcement whose new file is there. The announcement is also the lock of
its partition: who finds it there leaves the partition alone, or finishes the step where its owner is long gone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from ..recording.keys import digest_of
from .extra import needed
from .schema import TABLES, UPGRADES, VERSION
from .store import JOURNAL, MERGED, RUNS, VERSION_KEY, Step, Store, ids_of, is_loose

if TYPE_CHECKING:
    import duckdb

SEALED_BYTES = 256 << 20  # a file of this size is not written again
STALE_S = 1800.0  # a step takes seconds; one that was announced so long ago has lost its owner
FORGOTTEN_S = 86_400.0  # nothing that is written takes a day


@dataclass(frozen=True, slots=True)
class Cleaned:
    """What was put together or removed."""

    before: int  # files of rows
    after: int
    removed: tuple[str, ...] = ()  # files and folders that nothing needs
    busy: tuple[str, ...] = ()  # partitions that somebody else is at


def compact(store: Store, *, now_s: float, drop: Collection[str] = ()) -> Cleaned:
    """Put small files together, without the rows whose ids are to go; a store of an earlier version is upgraded."""
    recover(store, now_s=now_s)
    if store.version < VERSION:
        _upgrade(store)
    before = store.listing()
    busy = []
    for where, cells in before.partitions("cells").items():
        committed = ids_of(cells)  # a cell that is there has all its ops; ops without one may be under way
        ops = [
            name
            for name in store.place.names(where.replace("cells/", "ops/", 1))
            if not is_loose(name) or ids_of([name]) <= committed
        ]
        for table, names in (("ops", ops), ("cells", cells)):  # in this order: loose cells tell which ops are whole
            if not _merge(store, table, names, drop):
                busy.append(f"{table}/{where.partition('/')[2]}")
    return Cleaned(before.count, store.listing().count, busy=tuple(busy))


def recover(store: Store, *, now_s: float) -> None:
    """Finish steps whose owner was killed."""
    for name, step in store.journal():
        if store.place.age_s(name, now_s) < STALE_S:
            continue
        there = {file for table in TABLES for file in store.place.names(table)}
        if step.old and there.issuperset(step.new):
            store.place.remove(step.old)
        store.place.remove([name])


def _merge(store: Store, table: str, names: Sequence[str], drop: Collection[str]) -> bool:
    """One file out of the loose ones and those that are not full; False: somebody else is at it."""
    gone = _among(store, names, drop)
    sealed = [n for n in names if not is_loose(n) and store.place.size_bytes(n) >= SEALED_BYTES and not gone]
    old = [name for name in names if name not in sealed]
    if not old or (len(old) < 2 and not gone):
        return True
    merged = [store.place.url(name) for name in names if not is_loose(name)]
    loose = [store.place.url(name) for name in old if is_loose(name)]
    again = [store.place.url(name) for name in old if not is_loose(name)]
    parts = [f"FROM {_rows(again)}"] * bool(again)
    if loose:  # a row that was put together before, and was written again by somebody who is late
        known = f" WHERE id NOT IN (FROM {_rows(merged)} SELECT id)" if merged else ""
        parts.append(f"FROM {_rows(loose)}{known}")
    left = f" WHERE id NOT IN ({', '.join(map(_quoted, gone))})" if gone else ""
    query = f"FROM ({' UNION ALL '.join(parts)}){left}"

    def write(path: Path) -> None:
        connection = connected(store)
        marks = f"KV_METADATA {{'{VERSION_KEY}': '{VERSION}'}}"
        connection.execute(f"COPY ({query}) TO {_quoted(str(path))} (FORMAT parquet, COMPRESSION zstd, {marks})")

    return replace_files(store, old, write)


def _among(store: Store, names: Sequence[str], drop: Collection[str]) -> list[str]:
    """Those of the ids that rows of these files have."""
    if not drop or not names:
        return []
    rows = _rows([store.place.url(name) for name in names])
    found = connected(store).execute(f"FROM {rows} SELECT DISTINCT id WHERE id IN (FROM unnest(?))", [list(drop)])
    return sorted(row[0] for row in found.fetchall())


def replace_files(store: Store, old: Sequence[str], write: Callable[[Path], None]) -> bool:
    """One step: a new file that stands for others of its partition."""
    where = old[0].rpartition("/")[0]
    new = f"{where}/{MERGED}{digest_of(*sorted(old))}.parquet"
    entry = f"{JOURNAL}/{digest_of(where)}.json"
    if not store.place.create(entry, msgspec.json.encode(Step((new,), tuple(old)))):
        return False
    try:
        store.place.put_file(new, write)
        store.place.remove(name for name in old if name != new)
    finally:  # where writing failed, the old files are still all there
        store.place.remove([entry])
    return True


def connected(store: Store) -> duckdb.DuckDBPyConnection:
    """DuckDB, with the files of the store within reach."""
    connection: duckdb.DuckDBPyConnection = needed("duckdb").connect()
    if store.place.filesystem is not None:
        connection.register_filesystem(store.place.filesystem)
    return connection


def _rows(urls: Sequence[str]) -> str:
    return f"read_parquet([{', '.join(map(_quoted, urls))}], hive_partitioning = false)"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _upgrade(store: Store) -> None:
    """Every file in the form of today; one that was written before this was interrupted is that already."""
    for table, names in store.listing().files.items():
        for name in names:
            data = store.place.get(name)
            if data is None:
                continue
            found = pq.read_table(pa.BufferReader(data))
            version = int((found.schema.metadata or {}).get(VERSION_KEY.encode(), b"1"))
            for step in range(version, VERSION):
                found = UPGRADES[step](table, found)
            out = pa.BufferOutputStream()
            marked = found.select(TABLES[table].names).cast(TABLES[table])
            pq.write_table(marked.replace_schema_metadata({VERSION_KEY: str(VERSION)}), out, compression="zstd")
            store.place.put(name, out.getvalue().to_pybytes())
    store.mark()


def collect_garbage(store: Store, ids: Collection[str], *, now_s: float) -> Cleaned:
    """Remove what nothing needs: of those who were killed, and runs and ops whose cell (of `ids`) is gone."""
    recover(store, now_s=now_s)
    before = store.listing().count
    lost = [
        name
        for name in store.place.names("ops")
        if is_loose(name) and not ids_of([name]) <= set(ids) and store.place.age_s(name, now_s) > FORGOTTEN_S
    ]
    lost += [name for name in store.place.temporary() if store.place.age_s(name, now_s) > STALE_S]
    lost += [
        name
        for name in store.place.names(RUNS)
        if name.split("/")[1] not in ids and store.place.age_s(name, now_s) > FORGOTTEN_S
    ]
    store.place.remove(lost)
    return Cleaned(before, store.listing().count, tuple(lost))
