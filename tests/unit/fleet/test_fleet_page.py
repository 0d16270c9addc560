"""The data of a store's page: words, columns, figures that were given, and what is left out."""

from __future__ import annotations

import base64
import io
import json
import re
from pathlib import Path

import pytest

from opscope.core.errors import UsageError
from opscope.fleet import page as pages
from opscope.fleet.page import StorePage
from opscope.fleet.rows import failed_row
from opscope.fleet.store import Store
from opscope.views.page.packed_columns import decode
from support import fleet_cells

pytest.importorskip("duckdb")


def rendered(store: Store, page: StorePage | None = None) -> tuple[dict[str, object], dict[str, list[object]]]:
    out = io.StringIO()
    (page or StorePage()).render(store, out)
    text = out.getvalue()
    data = json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])  # type: ignore[index]
    block = re.search(r'id="block-cells">(.*?)</script>', text, re.DOTALL)[1]  # type: ignore[index]
    return data, {name: column.tolist() for name, column in decode(base64.b64decode(block)).items()}


def words(data: dict[str, object], columns: dict[str, list[object]], axis: str) -> list[object]:
    place, found = next((i, a) for i, a in enumerate(data["axes"]) if a["name"] == axis)  # type: ignore[arg-type]
    return [found["words"][number] if number >= 0 else None for number in columns[f"a{place}"]]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    found = Store(tmp_path / "s", create=True)
    for batch, ns in ((2, 500), (10, 900)):
        origin = fleet_cells.origin_of(options={"batch": batch, "mode": "fast"})
        found.add(*fleet_cells.rows(origin, fleet_cells.recorded({"all": ns})))
    refused = fleet_cells.origin_of("other", target="it's")
    found.add(failed_row(refused, status="refused", reason="no kernel", seconds=0.1))
    return found


def test_cells_become_columns_with_their_words_in_order(store: Store) -> None:
    data, columns = rendered(store)
    assert (data["cells"], data["rows"], data["served"]) == (3, 3, True)
    assert sorted(map(str, words(data, columns, "model"))) == ["net", "net", "other"]
    assert words(data, columns, "mode").count("fast") == 2
    batch = next(axis for axis in data["axes"] if axis["name"] == "batch")  # type: ignore[attr-defined]
    assert (batch["words"], batch["number"]) == (["1"], True)  # as the run has it, not as asked for
    row = words(data, columns, "status").index("refused")
    assert data["reasons"][columns["reason"][row]] == "no kernel"  # type: ignore[index]
    latency = [metric["name"] for metric in data["metrics"]].index("latency")  # type: ignore[attr-defined]
    values = columns[f"m{latency}"]
    assert str(values[row]) == "nan"  # unknown, not 0
    assert sorted(value for place, value in enumerate(values) if place != row) == [500, 900]
    assert columns[f"l{latency}"][values.index(500)] == 250


def test_a_condition_is_asked_of_the_store(store: Store) -> None:
    data, _ = rendered(store, StorePage(where="target = 'it''s'"))
    assert (data["rows"], data["cells"], data["where"]) == (1, 3, "target = 'it''s'")
    assert rendered(store, StorePage(where="model = 'none'"))[0]["rows"] == 0
    with pytest.raises(UsageError, match=r"^SQL: "):
        rendered(store, StorePage(where="1) ; DROP VIEW cells; --"))


def test_more_cells_than_a_page_takes_are_told(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "MOST_ROWS", 2)
    data, columns = rendered(store)
    assert data["rows"] == len(columns["a0"]) == 2
    assert data["notes"] == ["the newest 2 of 3 cells are in this page"]


def test_figures_that_were_given_join_by_the_columns_they_name(store: Store, tmp_path: Path) -> None:
    file = tmp_path / "prices.csv"
    file.write_text("target,price_usd:less\nchip,12.5\nit's,\n", encoding="utf-8")
    data, columns = rendered(store, StorePage(given=[file]))
    metric = data["metrics"][-1]  # type: ignore[index]
    assert (metric["name"], metric["better"], metric["sql"]) == ("price_usd", "less", "")
    values = columns[f"m{len(data['metrics']) - 1}"]  # type: ignore[arg-type]
    assert sorted(map(str, values)) == ["12.5", "12.5", "nan"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("target,price\nchip,1\n", "head 'price' is no column of cells"),
        ("target\nchip\n", "expected such as target,price_usd:less"),
        ("", "expected such as target,price_usd:less"),
        ("target,price:less\nchip,dear\n", "line 2: 'dear'; expected a number"),
        ("target,price:less\nchip,1,2\n", "line 2: 3 fields; expected 2"),
        ("target,price:less\nchip,inf\n", "line 2: 'inf'; expected a number"),
    ],
)
def test_what_is_wrong_with_given_figures_is_said(store: Store, tmp_path: Path, text: str, problem: str) -> None:
    file = tmp_path / "figures.csv"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=re.escape(problem)):
        rendered(store, StorePage(given=[file]))


def test_history_has_the_change_points_that_a_trend_finds(tmp_path: Path) -> None:
    store = Store(tmp_path / "s", create=True)
    for day, ns in enumerate((500, 500, 700), start=1):
        created = f"2026-11-{day:02}T08:00:00+00:00"
        origin = fleet_cells.origin_of(commit=f"c{day}", created=created)
        store.add(*fleet_cells.rows(origin, fleet_cells.recorded({"all": ns}, created=created)))
    data, columns = rendered(store)
    change = data["changes"][0]  # type: ignore[index]
    assert (change["before"], change["after"], change["low"]) == (500, 700, None)
    assert words(data, columns, "commit")[change["row"]] == "c3"
    assert change["ops"] == [{"name": "all", "ns": 200}]
    assert columns["newest"].count(1) == 1


def test_pages_of_runs_are_found_from_where_the_file_is(tmp_path: Path) -> None:
    store = Store(tmp_path / "s", create=True)
    cell, ops = fleet_cells.rows(fleet_cells.origin_of())
    run = tmp_path / "s" / "runs" / str(cell["id"])
    store.add(cell | {"run": f"runs/{cell['id']}"}, ops)
    assert rendered(store, StorePage(beside=tmp_path / "out"))[0]["runs"] == []  # it is gone
    run.mkdir(parents=True)
    (run / "report.html").write_text("page", encoding="utf-8")
    data, columns = rendered(store, StorePage(beside=tmp_path / "out"))
    assert data["runs"] == [f"../s/runs/{cell['id']}/report.html"]
    assert columns["run"] == [0]
    assert rendered(store)[0]["runs"] == [f"run/{str(cell['id'])[:16]}/"]
