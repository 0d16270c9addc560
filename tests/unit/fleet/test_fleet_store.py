"""Rows go in once and come out as they were, whoever writes, compacts or is killed."""

from __future__ import annotations

import io
import json
import os
import time
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opscope.core.errors import UsageError
from opscope.core.keys import digest_of
from opscope.core.provenance import Provenance
from opscope.fleet import compaction, schema
from opscope.fleet import store as stores
from opscope.fleet.compaction import STALE_S, collect_garbage, compact
from opscope.fleet.page import StorePage
from opscope.fleet.place import Place
from opscope.fleet.query import ask
from opscope.fleet.reading import inbox_tables
from opscope.fleet.rows import figures_of_rows
from opscope.fleet.sides import cell_figures
from opscope.fleet.store import JOURNAL, JournalEntry, Store, file_stem, partition, stored_name
from opscope.fleet.table import pivot
from opscope.gate.run_figures import of_run
from opscope.workflows.comparing import with_kinds
from support import fleet_cells


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "s", create=True)


def fill(store: Store, count: int, *, target: str = "chip", start: int = 0) -> list[str]:
    ids = []
    for number in range(start, start + count):
        origin = fleet_cells.origin_of(f"net{number}", target=target)
        store.add(*fleet_cells.rows(origin))
        ids.append(origin.id)
    return ids


def ids_in(store: Store) -> list[str]:
    return [str(row[0]) for row in ask(store, "SELECT id FROM cells ORDER BY id").rows]


def test_a_row_that_is_written_twice_is_there_once(store: Store) -> None:
    origin = fleet_cells.origin_of()
    for _ in range(2):
        store.add(*fleet_cells.rows(origin))
    assert ids_in(store) == [origin.id]
    assert ask(store, "SELECT name, wall_ns FROM ops ORDER BY position").rows == (("conv", 600), ("gemm", 400))


def test_figures_come_out_of_a_store_as_they_went_in(store: Store) -> None:
    found = fleet_cells.recorded(provenance=Provenance.MEASURED, samples=[1000, 1010, 990, 1005, 995, 1000, 1002])
    origin = fleet_cells.origin_of()
    store.add(*fleet_cells.rows(origin, found))
    cell = ask(store, "SELECT * FROM cells").dictionaries()[0]
    wanted = with_kinds(of_run(found.run, label="x"))
    back = cell_figures(store, cell, label="x")
    assert back.metrics == wanted.metrics
    assert back.ops == wanted.ops
    assert (back.target, back.provenance, back.batch) == (wanted.target, wanted.provenance, wanted.batch)
    assert cell["latency_low_ns"] == 500
    assert cell["latency_high_ns"] == 2000


def test_compaction_keeps_every_row_once(store: Store) -> None:
    ids = fill(store, 5) + fill(store, 3, target="other")
    before = ask(store, "SELECT * FROM ops ORDER BY id, position").rows
    cleaned = compact(store, now_s=time.time())
    assert (cleaned.before, cleaned.after) == (8, 4)
    assert ids_in(store) == sorted(ids)
    assert ask(store, "SELECT * FROM ops ORDER BY id, position").rows == before
    assert compact(store, now_s=time.time()).after == 4


def test_a_row_that_a_late_writer_writes_again_is_dropped(store: Store) -> None:
    ids = fill(store, 3)
    compact(store, now_s=time.time())
    fill(store, 4)  # the first three once more
    assert len(ids_in(store)) == 7  # until they are put away
    compact(store, now_s=time.time())
    assert len(ids_in(store)) == 4
    assert set(ids) < set(ids_in(store))
    assert ask(store, "SELECT count(*) FROM ops").rows == ((8,),)


def test_rows_can_be_left_out(store: Store) -> None:
    ids = fill(store, 4)
    compact(store, now_s=time.time(), drop=[ids[1], "of nobody"])
    assert ids_in(store) == sorted(set(ids) - {ids[1]})
    assert ask(store, "SELECT count(DISTINCT id) FROM ops").rows == ((3,),)


class Killed(BaseException):
    """What a process does not get to catch."""


@pytest.mark.parametrize("moment", ["before the new file", "after the new file", "while old files go"])
def test_who_is_killed_while_compacting_loses_and_doubles_nothing(
    store: Store, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    ids = fill(store, 4)
    real_put, real_remove = Place.put_file, Place.remove

    def put(place: Place, name: str, write: object) -> None:
        if moment == "before the new file":
            raise Killed
        real_put(place, name, write)  # type: ignore[arg-type]

    def remove(place: Place, names: object) -> None:
        listed = list(names)  # type: ignore[call-overload]
        if moment == "while old files go":
            real_remove(place, [name for name in listed if JOURNAL not in name][:2])
        raise Killed  # also where the announcement would go: a killed process cleans nothing up

    with monkeypatch.context() as patch:
        patch.setattr(Place, "put_file", put)
        patch.setattr(Place, "remove", remove)
        with pytest.raises(Killed):
            compact(store, now_s=time.time())
    assert ids_in(store) == sorted(ids)
    assert ask(store, "SELECT count(*) FROM ops").rows == ((8,),)
    compact(store, now_s=time.time())  # the partition is announced: left alone
    assert ids_in(store) == sorted(ids)
    compact(store, now_s=time.time() + STALE_S + 60)
    assert ids_in(store) == sorted(ids)
    assert ask(store, "SELECT count(*) FROM ops").rows == ((8,),)
    assert store.place.names(JOURNAL) == []
    assert [len(store.listing().files[table]) for table in ("inbox", "cells", "ops")] == [0, 1, 1]


def test_what_somebody_is_at_is_left_alone(store: Store) -> None:
    fill(store, 3)
    store.place.put(f"{JOURNAL}/{digest_of('inbox')}.json", msgspec.json.encode(JournalEntry(("cells/x.parquet",), ())))
    assert compact(store, now_s=time.time()).busy == ("inbox",)
    assert len(store.listing().files["inbox"]) == 3


def test_garbage_goes_and_what_is_needed_stays(store: Store) -> None:
    ids = fill(store, 2)
    root = Path(store.place.root)
    for name in ("cells/x.part", f"runs/{ids[0]}/run.json", "runs/beef/run.json"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("{}")
    later = time.time() + 2 * compaction.FORGOTTEN_S
    removed = collect_garbage(store, ids[:1], now_s=later).removed
    assert set(removed) == {"cells/x.part", "runs/beef/run.json"}
    assert (root / f"runs/{ids[0]}/run.json").exists()


def test_a_newer_store_is_refused_in_one_line(tmp_path: Path) -> None:
    Store(tmp_path / "s", create=True)
    (tmp_path / "s" / "store.json").write_text('{"schema": "opscope.store/99"}')
    with pytest.raises(UsageError, match=r"s: is a store of version 99, made by a newer opscope; expected version 3"):
        Store(tmp_path / "s")


@pytest.mark.parametrize("text", ["", "[]", "{", '{"schema": "opscope.run/1"}', '{"schema": "opscope.store/x"}'])
def test_what_is_no_store_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "store.json").write_text(text)
    with pytest.raises(UsageError, match=r"expected a store"):
        Store(tmp_path)


def test_a_folder_of_other_things_does_not_become_a_store(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(UsageError, match="is a folder of other things"):
        Store(tmp_path, create=True)
    with pytest.raises(UsageError, match="is no store"):
        Store(tmp_path / "nowhere")


def test_an_older_store_is_upgraded_by_compaction(store: Store) -> None:
    ids = fill(store, 3)
    for file in Path(store.place.root, "inbox").iterdir():
        row = json.loads(file.read_text())
        row["cell"] = {name: row["cell"][name] for name in schema.SCHEMAS[1]["cells"].names if name in row["cell"]}
        file.write_text(json.dumps(row))
    (Path(store.place.root) / "store.json").write_text('{"schema": "opscope.store/1"}')
    old = Store(store.place.root)
    with pytest.raises(
        UsageError, match=r"is a store of version 1; this opscope reads and writes 3; expected `opscope"
    ):
        ask(old, "SELECT 1")
    compact(old, now_s=time.time())
    assert Store(store.place.root).version == 3
    found = ask(old, "SELECT id, latency_ns, compile_s, memories, copy FROM cells ORDER BY id").rows
    assert [(row[0], *row[2:]) for row in found] == [(i, None, None, None) for i in sorted(ids)]
    assert all(row[1] for row in found)


def test_an_upgrade_that_was_interrupted_goes_on(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(store, 3)
    calls: list[str] = []

    def upgrade(table: str, rows: pa.Table) -> pa.Table:
        calls.append(table)
        if len(calls) == 2:
            raise Killed
        return rows

    for module in (compaction, stores):
        monkeypatch.setattr(module, "VERSION", schema.VERSION + 1)
    monkeypatch.setattr(compaction, "UPGRADES", {schema.VERSION: upgrade})
    with pytest.raises(Killed):
        compact(Store(store.place.root), now_s=time.time())
    assert Store(store.place.root).version == schema.VERSION
    compact(Store(store.place.root), now_s=time.time())
    assert len(calls) == 3  # two files, one of them twice
    assert Store(store.place.root).version == schema.VERSION + 1


def test_a_store_works_on_an_object_store() -> None:
    place = "memory://bucket/fleet"
    store = Store(place, create=True)
    ids = fill(store, 3)
    assert ids_in(Store(place)) == sorted(ids)
    compact(store, now_s=time.time())
    assert ids_in(store) == sorted(ids)
    assert len(store.listing().files["cells"]) == 1
    assert pivot(store, rows=["model"], columns=["target"], metric="latency").rows
    StorePage().render(store, page := io.StringIO())
    assert '"cells":3' in page.getvalue()


def test_what_is_wrong_with_an_object_store_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def get(place: Place, name: str) -> bytes | None:
        raise RuntimeError("no credentials\nanywhere")

    monkeypatch.setattr(Place, "get", get)
    with pytest.raises(UsageError) as caught:
        Store("memory://bucket/locked")
    assert str(caught.value).startswith("memory://bucket/locked: cannot be used (RuntimeError: no credentials")
    assert "\n" not in str(caught.value)


def test_any_reader_of_parquet_reads_a_store(store: Store) -> None:
    fill(store, 2, target="a/b c")
    compact(store, now_s=time.time())
    found = pq.read_table(f"{store.place.root}/cells", partitioning=None)
    assert found.column("target").to_pylist() == ["a/b c"] * 2


@given(st.text(max_size=400))
def test_no_name_leaves_the_folder(text: str) -> None:
    name = stored_name(text)
    for segment in (partition("2026-11-16", name), f"x/{file_stem(text)}"):
        parts = segment.split("/")
        assert len(parts) == 2
        assert all(0 < len(part) <= 255 and part not in (".", "..") and "\0" not in part for part in parts)


@pytest.mark.parametrize("name", ["../../evil", "/etc/passwd", "a\0b", "x" * 5000, "💥" * 100, "target=x/month=y", ""])
def test_hostile_names_stay_in_the_store(tmp_path: Path, name: str) -> None:
    store = Store(tmp_path / "deep" / "s", create=True)
    origin = fleet_cells.origin_of(name, target=name)
    cell, ops = fleet_cells.rows(origin, fleet_cells.recorded(target=name or "unknown"))
    store.add(cell | {"id": name or "x"}, ops)
    outside = [path for path in tmp_path.rglob("*") if path.is_file() and not path.is_relative_to(tmp_path / "deep/s")]
    assert outside == []
    for _ in range(2):
        assert ask(store, "SELECT model FROM cells").rows == ((name,),)
        compact(store, now_s=time.time())
    outside = [path for path in tmp_path.rglob("*") if path.is_file() and not path.is_relative_to(tmp_path / "deep/s")]
    assert outside == []
    with pytest.raises(ValueError, match="leads out of the store"):
        store.place.put("../x", b"")


def test_times_without_a_date_are_refused() -> None:
    with pytest.raises(UsageError, match=r"created '\.\./\.\./x': is no date"):
        partition("../../x", "chip")


def test_a_full_disk_is_one_line(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Path, *_: object, **__: object) -> object:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "open", full)
    with pytest.raises(UsageError, match="No space left on device"):
        store.add(*fleet_cells.rows(fleet_cells.origin_of()))


def test_files_under_way_are_not_read(store: Store) -> None:
    fill(store, 1)
    (Path(store.place.root) / "inbox" / f".x.{os.getpid()}.part").write_bytes(b"{")
    assert len(ids_in(store)) == 1


def test_a_damaged_row_is_named(store: Store) -> None:
    fill(store, 1)
    (Path(store.place.root) / "inbox" / "beef.json").write_bytes(b'{"cell": {')
    with pytest.raises(UsageError, match=r"inbox/beef\.json: is damaged .*; expected a row, or no such file"):
        ids_in(store)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
NAMES = st.sampled_from([*schema.CELLS.names, "strange"])


@given(st.dictionaries(NAMES, JSON, max_size=4), st.dictionaries(st.sampled_from(schema.OPS.names), JSON, max_size=3))
def test_a_row_of_any_form_is_read_or_named(
    tmp_path_factory: pytest.TempPathFactory, cell: dict[str, object], ops: dict[str, object]
) -> None:
    store = Store(tmp_path_factory.mktemp("any") / "s", create=True)
    store.place.put("inbox/beef.json", msgspec.json.encode({"cell": cell, "ops": ops}))
    said = ""
    try:
        assert inbox_tables(store, ["inbox/beef.json"], schema.TABLES)["cells"].num_rows == 1
    except UsageError as error:
        said = str(error)
    assert not said or ("inbox/beef.json: " in said and "\n" not in said)


@given(st.binary(max_size=60))
def test_bytes_of_any_kind_are_named(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    store = Store(tmp_path_factory.mktemp("any") / "s", create=True)
    store.place.put("inbox/beef.json", data)
    with pytest.raises(UsageError, match=r"inbox/beef\.json: is damaged"):
        inbox_tables(store, ["inbox/beef.json"], schema.TABLES)


def test_figures_of_rows_keep_unknown_unknown() -> None:
    origin = fleet_cells.origin_of()
    cell, _ = fleet_cells.rows(origin)
    assert cell["energy_j"] is None
    back = figures_of_rows(cell, [], label="x")
    energy = back.metric("energy")
    assert energy is not None
    assert energy.value is None
