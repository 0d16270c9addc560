"""SQL over a store: what it answers, and what it cannot be made to do."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from opscope.core.errors import UsageError
from opscope.fleet import query
from opscope.fleet.compaction import compact
from opscope.fleet.query import ask
from opscope.fleet.rows import failed_row
from opscope.fleet.store import Store
from support import fleet_cells


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return filled(tmp_path)


@pytest.fixture(scope="module")
def besieged(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A store in Parquet that every hostile question is put to, with a secret beside it."""
    made = filled(tmp_path_factory.mktemp("besieged"))
    compact(made, now_s=time.time())
    (Path(made.place.root).parent / "secret.txt").write_text("hunter2")
    return made


def filled(folder: Path) -> Store:
    made = Store(folder / "s", create=True)
    for commit, day in (("aaa", 1), ("bbb", 2)):
        created = f"2026-11-0{day}T00:00:00+00:00"
        made.add(*fleet_cells.rows(fleet_cells.origin_of(commit=commit, created=created)))
    made.add(failed_row(fleet_cells.origin_of("bad"), status="failed", reason="it fell over", seconds=1.0))
    return made


def test_views_have_what_they_say(store: Store) -> None:
    assert ask(store, "SELECT model, status, reason FROM latest ORDER BY 1").rows == (
        ("bad", "failed", "it fell over"),
        ("net", "ok", None),
    )
    assert ask(store, "SELECT commit FROM latest WHERE status = 'ok'").rows == (("bbb",),)
    assert ask(store, "SELECT metrics['latency'], latency_ns, month FROM cells WHERE commit = 'aaa'").rows == (
        (1000.0, 1000.0, "2026-11"),
    )
    assert ask(store, "SELECT DISTINCT month FROM ops").rows == (("2026-11",),)
    assert ask(store, "SELECT sum(wall_ns) FROM ops SEMI JOIN latest USING (id)").rows == ((1000,),)
    told = ask(store, "SELECT DISTINCT rule FROM findings ORDER BY ALL").rows
    assert told == ask(store, "SELECT DISTINCT unnest(findings).rule FROM cells ORDER BY ALL").rows


def test_a_store_without_rows_answers_too(tmp_path: Path) -> None:
    empty = Store(tmp_path / "s", create=True)
    for view in ("cells", "ops", "latest", "findings"):
        assert ask(empty, f"FROM {view} SELECT count(*)").rows == ((0,),)
    assert ask(empty, "SELECT month, target FROM cells").rows == ()


def test_most_rows(store: Store) -> None:
    assert len(ask(store, "SELECT * FROM cells", most=2).rows) == 2


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_text('{outside}')",
        "SELECT * FROM read_csv('{outside}')",
        "SELECT * FROM read_blob('{inside}/../../../../secret.txt')",
        "SELECT * FROM '{outside}'",
        "SELECT * FROM read_parquet('{outside}')",
        "SELECT * FROM glob('{folder}/*')",
        "SELECT * FROM read_text('{folder}/s/store.json')",
        "SELECT * FROM sniff_csv('{outside}')",
        "SELECT * FROM query('SELECT * FROM read_text(''{outside}'')')",
        "SELECT * FROM read_text('http://127.0.0.1:9/x')",
        "WITH a AS (SELECT content FROM read_text('{outside}')) SELECT * FROM a",
        "SELECT * FROM sqlite_scan('{outside}', 't')",
        "COPY (SELECT 1) TO '{folder}/stolen.csv'",
        "COPY cells TO '{inside}/stolen.parquet'",
        "EXPLAIN ANALYZE COPY (SELECT 1) TO '{inside}/stolen.csv'",
        "EXPORT DATABASE '{folder}/stolen'",
        "ATTACH '{folder}/stolen.db'",
        "CREATE TABLE stolen AS SELECT 1",
        "CREATE OR REPLACE VIEW cells AS SELECT 1",
        "INSERT INTO cells SELECT * FROM cells",
        "DELETE FROM cells",
        "DROP VIEW cells",
        "SET enable_external_access = true",
        "SET VARIABLE cells_files = ['{outside}']",
        "RESET lock_configuration",
        "PRAGMA database_list",
        "INSTALL httpfs",
        "LOAD httpfs",
        "CALL pragma_version()",
        "SELECT 1; COPY (SELECT 1) TO '{folder}/stolen.csv'",
        "",
        "nonsense",
        "SELECT '",
    ],
)
def test_hostile_sql_is_refused_in_one_line(besieged: Store, sql: str) -> None:
    folder = Path(besieged.place.root).parent
    before = sorted(folder.rglob("*"))
    inside = next((Path(besieged.place.root) / "cells").rglob("target=*"))
    text = sql.format(outside=folder / "secret.txt", folder=folder, inside=inside)
    with pytest.raises(UsageError) as caught:
        ask(besieged, text)
    assert "\n" not in str(caught.value)
    assert "hunter2" not in str(caught.value)
    assert str(caught.value).startswith("SQL: ")
    assert sorted(folder.rglob("*")) == before


def test_the_lock_holds_even_for_statements_that_are_not_questions(store: Store) -> None:
    """The second line of defence: were a statement let through, DuckDB would still refuse it."""
    import duckdb

    connection = query.opened(store)
    folder = Path(store.place.root).parent
    for sql in (
        "SET enable_external_access = true",
        "SET allowed_directories = ['/']",
        "RESET enable_external_access",
        f"COPY (SELECT 1) TO '{folder}/stolen.csv'",
        f"ATTACH '{folder}/stolen.db'",
        "SELECT * FROM read_text('/etc/hostname')",
    ):
        with pytest.raises(duckdb.Error):
            connection.execute(sql).fetchall()
    assert sorted(path.name for path in folder.iterdir()) == ["s"]


def test_python_names_are_out_of_reach(store: Store) -> None:
    secret = fleet_cells.recorded()
    assert secret is not None
    with pytest.raises(UsageError, match="Table with name secret does not exist"):
        ask(store, "SELECT * FROM secret")


def test_a_question_survives_a_compaction_under_way(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    real = query.opened
    calls: list[int] = []
    compact(store, now_s=time.time())
    store.add(*fleet_cells.rows(fleet_cells.origin_of("new")))

    def opened(place: Store) -> object:
        connection = real(place)
        if not calls:  # between listing and reading, files are put together
            compact(place, now_s=time.time())
        calls.append(1)
        return connection

    monkeypatch.setattr(query, "opened", opened)
    assert ask(store, "SELECT count(*), count(DISTINCT id) FROM cells").rows == ((4, 4),)
    assert len(calls) == 2
