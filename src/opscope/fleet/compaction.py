"""Compaction: what is in the inbox goes into Parquet, and small files of a partition become one.

One step is: announce in the journal which files the new ones stand for, write them, remove the old ones, remove the
announcement. Readers take the new files once all are there, and the old ones until then. The announcement is also a
lock: who finds it there leaves those files alone, or ends the step where its owner is long gone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import compute

from ..core.keys import digest_of
from .place import needed
from .reading import connected, inbox_tables, quoted, read_tables
from .schema import SCHEMAS, TABLES, UPGRADES, VERSION
from .store import INBOX, JOURNAL, RUNS, VERSION_KEY, JournalEntry, Store, ids_of, partition

SEALED_BYTES = 256 << 20  # a file of this size is not written again
MOST_AT_ONCE = 5000  # files of the inbox in one step: of some hundred ops each, a gigabyte of memory
STALE_S = 1800.0  # a step takes seconds; one that was announced so long ago has lost its owner
FORGOTTEN_S = 86_400.0  # nothing that is written takes a day

_PLACE = ("id", "created", "target")  # what tells the partition of a row

Write = Callable[[Path], None]
Replacement = tuple[Sequence[str], Mapping[str, Write]]  # old files, and how the new ones are written


@dataclass(frozen=True, slots=True)
class Cleaned:
    """What was put together or removed."""

    before: int  # files of rows
    after: int
    removed: tuple[str, ...] = ()  # files that nothing needs
    busy: tuple[str, ...] = ()  # places that somebody else is at


def compact(store: Store, *, now_s: float, drop: Collection[str] = ()) -> Cleaned:
    """Put small files together, without the rows whose ids are to go; a store of an earlier version is upgraded."""
    recover(store, now_s=now_s)
    before = store.listing()
    store.place.remove(name for name in before.files[INBOX] if ids_of([name]) & set(drop))
    busy = [] if empty_inbox(store) else [INBOX]
    if store.version < VERSION and not busy:
        _upgrade(store)
    for where in [where for table in TABLES for where in store.listing().partitions(table)]:
        if not replace_files(store, where, partial(_merged, store, where, drop)):
            busy.append(where)
    return Cleaned(before.count, store.listing().count, busy=tuple(busy))


def recover(store: Store, *, now_s: float) -> None:
    """End steps whose owner was killed: what is done is kept, what is half done is undone."""
    for name, step in store.journal():
        if store.place.age_s(name, now_s) < STALE_S:
            continue
        there = {file for table in (INBOX, *TABLES) for file in store.place.names(table)}
        store.place.remove(step.old if there.issuperset(step.new) else step.new)
        store.place.remove([name])


def empty_inbox(store: Store) -> bool:
    """All that is in the inbox into Parquet; False: somebody else is at it."""
    while store.listing().files[INBOX]:
        if not replace_files(store, INBOX, lambda: _put_away(store)):
            return False
    return True


def _put_away(store: Store) -> Replacement:
    """Rows of the inbox in files of their partitions."""
    listing = store.listing()
    names = listing.files[INBOX][:MOST_AT_ONCE]
    tables = inbox_tables(store, names, SCHEMAS[store.version])
    partitions, mark = listing.partitions("cells"), digest_of(*names)
    places: dict[str, list[str]] = {}
    for row_id, created, target in zip(*(tables["cells"][name].to_pylist() for name in _PLACE), strict=True):
        places.setdefault(partition(str(created), target), []).append(row_id)
    new: dict[str, Write] = {}
    for where, ids in places.items():  # a row that was put away before was written again by somebody who was late
        known = _among(store, partitions.get(f"cells/{where}", ()), ids)
        wanted = pa.array(sorted(set(ids).difference(known)), pa.string())
        for table, rows in tables.items():
            chosen = rows.filter(compute.is_in(rows["id"], wanted))
            if len(chosen):
                new[f"{table}/{where}/part-{mark}.parquet"] = _arrow_writer(chosen, store.version)
    return names, new


def _arrow_writer(table: pa.Table, version: int) -> Write:
    def write(path: Path) -> None:
        with pq.ParquetWriter(path, table.schema, compression="zstd", store_schema=False) as out:
            out.write_table(table)
            out.add_key_value_metadata({VERSION_KEY: str(version)})  # that of a schema is left out with the schema

    return write


def _merged(store: Store, where: str, drop: Collection[str]) -> Replacement:
    """One file out of those of a partition that are not full."""
    names = [name for name in store.listing().files[where.partition("/")[0]] if name.rpartition("/")[0] == where]
    gone = _among(store, names, drop)
    old = [name for name in names if gone or store.place.size_bytes(name) < SEALED_BYTES]
    if not old or (len(old) < 2 and not gone):
        return [], {}
    query = f"FROM {read_tables([store.place.url(name) for name in old])} WHERE id NOT IN (FROM gone)"

    def write(path: Path) -> None:
        marks = f"FORMAT parquet, COMPRESSION zstd, KV_METADATA {{'{VERSION_KEY}': '{VERSION}'}}"
        connection = connected(store)
        connection.register("gone", pa.table({"id": pa.array(gone, pa.string())}))
        connection.execute(f"COPY ({query}) TO {quoted(str(path))} ({marks})")

    return old, {f"{where}/part-{digest_of(*sorted(old), *gone)}.parquet": write}


def _among(store: Store, names: Sequence[str], drop: Collection[str]) -> list[str]:
    """Those of the ids that rows of these files have."""
    if not drop or not names:
        return []
    rows = read_tables([store.place.url(name) for name in names])
    found = connected(store).execute(f"FROM {rows} SELECT DISTINCT id WHERE id IN (FROM unnest(?))", [list(drop)])
    return sorted(row[0] for row in found.fetchall())


def replace_files(store: Store, lock: str, choose: Callable[[], Replacement]) -> bool:
    """One step: new files that stand for old ones, chosen when nobody else can change them; False: somebody does."""
    entry = f"{JOURNAL}/{digest_of(lock)}.json"
    if not store.place.create(entry, msgspec.json.encode(JournalEntry((), ()))):
        return False
    new: Mapping[str, Write] = {}
    done = False
    try:
        old, new = choose()
        if old:
            store.place.put(entry, msgspec.json.encode(JournalEntry(tuple(new), tuple(old))))
            for name, write in new.items():
                store.place.put_file(name, write)
        done = True
        store.place.remove(old)
    except (needed("duckdb").IOException, FileNotFoundError):  # a file went under way: where locks meet
        return False
    finally:  # the announcement goes after the files that it tells of
        if not done:
            store.place.remove(new)
        store.place.remove([entry])
    return True


def _upgrade(store: Store) -> None:
    """Every file in the form of today; one that was written before this was interrupted is that already."""
    for table, names in store.listing().files.items():
        for name in names if table in TABLES else ():
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
    """Remove what nothing needs: what those left who were killed, and runs whose cell (of `ids`) is gone."""
    recover(store, now_s=now_s)
    before = store.listing().count
    lost = [name for name in store.place.temporary() if store.place.age_s(name, now_s) > STALE_S]
    lost += [
        name
        for name in store.place.names(RUNS)
        if name.split("/")[1] not in ids and store.place.age_s(name, now_s) > FORGOTTEN_S
    ]
    store.place.remove(lost)
    return Cleaned(before, store.listing().count, tuple(lost))
