"""`opscope view STORE` in a real browser: map, trade-offs, scaling, history, filters as SQL, runs behind cells."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from opscope import api
from opscope.fleet import verbs
from opscope.fleet.rows import failed_row, moment
from opscope.fleet.schema import CELLS
from opscope.fleet.store import Store, partition
from support import fleet_cells
from support.models import small_models
from support.viewers.axe import AXE, NO_AXE, violations
from support.viewers.chromium import MISSING, watched
from support.viewers.serving import serving
from support.viewers.waiting import resize, settle, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page

pytest.importorskip("duckdb")
pytestmark = pytest.mark.skipif(bool(MISSING), reason=MISSING)

TABS = ("map", "tradeoffs", "scaling", "history", "cells")
HOSTILE = "</script><img src=x onerror=alert(1)>\u202e' OR 1=1 --"


def filled(folder: Path) -> Store:
    """Two models on two targets with two batches, one refused; `net` on `fast` got slower with commit c2."""
    store = Store(folder / "fleet.store", create=True)
    speed = {"fast": 100, "slow": 400}
    for model, work in (("net", 5), (HOSTILE, 9)):
        for target, slower in speed.items():
            for batch in (1, 4):
                if (model, target) == (HOSTILE, "slow"):
                    origin = fleet_cells.origin_of(model, target=target, options={"batch": batch}, commit="c1")
                    store.add(failed_row(origin, status="refused", reason=f"no kernel for {HOSTILE}", seconds=0.1))
                    continue
                for day, commit in enumerate(("c1", "c2"), start=1):
                    created = f"2026-11-{day:02}T08:00:00+00:00"
                    ns = work * slower * batch + (50 if (model, target, commit) == ("net", "fast", "c2") else 0)
                    origin = fleet_cells.origin_of(
                        model, target=target, options={"batch": batch}, commit=commit, created=created
                    )
                    found = fleet_cells.recorded({"conv": ns}, target=target, created=created)
                    cell, ops = fleet_cells.rows(origin, found)
                    more = {"batch": batch, "peak_memory_bytes": 1000.0 * batch, "throughput_per_s": batch * 1e9 / ns}
                    metrics = dict(cell["metrics"]) | {"peak_memory": 1000.0 * batch, "throughput": batch * 1e9 / ns}  # type: ignore[call-overload]
                    store.add(cell | more | {"metrics": metrics}, ops)
    return store


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return filled(tmp_path_factory.mktemp("fleet"))


@pytest.fixture(scope="module")
def file(store: Store) -> Path:
    path = Path(store.place.root).with_name("fleet.html")
    verbs.store_page(store.place.root, path)
    return path


@pytest.fixture
def page(browser: Browser, file: Path) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1400, "height": 900})
    with watched(context.new_page()) as found:
        opened(found, file)
        yield found
    context.close()


def opened(page: Page, file: Path) -> None:
    page.goto(file.as_uri())
    page.wait_for_selector("html[data-ready=yes]", state="attached")
    settle(page)


def walk(page: Page, *keys: str) -> str:
    """What is said of a place of the map that arrows lead to."""
    page.focus(".heat-map")
    for key in keys:
        page.keyboard.press(key)
    return page.inner_text("#map-said")


def choose(page: Page, label: str, option: str) -> None:
    page.locator(f"[role=tabpanel]:not([hidden]) label.choice:has-text('{label}') select").select_option(label=option)
    settle(page)


def test_the_map_says_value_ratio_and_why_a_cell_has_none(page: Page) -> None:
    """Rows are in the order of their names: the hostile one first."""
    assert walk(page, "ArrowRight").endswith(
        "latency 900 ns estimated, the best of its row; of 2 cells the one with batch=1"
    )
    assert "refused; no kernel for" in walk(page, "ArrowRight")
    assert "latency 2 µs estimated, 3.64 times the best of its row" in walk(page, "ArrowDown")
    choose(page, "Rows", "batch")
    assert walk(page, "ArrowRight").startswith("1, fast: latency 550 ns estimated")
    assert "Cells without figures, or without totals" in page.inner_text("#panel-map")
    walk(page, "Enter")
    card = page.inner_text("#panel-map .shown")
    assert "net on fast" in card
    assert "550 ns" in card
    assert "275 ns – 1.1 µs" in card


def test_filters_become_the_sql_that_finds_the_same_cells(page: Page, store: Store) -> None:
    page.fill(".filters input[type=search]", "NET")
    page.click("details.filter summary:has-text('batch')")
    page.check("details.filter[open] input >> nth=1")
    wait_for(page, lambda: page.inner_text(".filters .hits") == "2 of 8 cells")
    for tab in TABS:
        page.click(f"#tab-{tab}")
        settle(page)
        sql = page.locator(f"#panel-{tab} textarea.sql").first.input_value()
        assert "contains(lower(model), 'net')" in sql
        assert "batch IN ('4')" in sql
        rows = verbs.ask_store(store.place.root, sql).rows
        assert len(rows) == (4 if tab == "history" else 2), sql
    page.click("button:has-text('Clear')")
    page.click("details.filter summary:has-text('status')")
    page.check("details.filter[open] input >> nth=1")
    wait_for(page, lambda: page.inner_text(".filters .hits") == "2 of 8 cells")
    sql = page.locator("#panel-cells textarea.sql").input_value()
    assert len(verbs.ask_store(store.place.root, sql).rows) == 2


def test_every_tab_shows_what_it_is_for(page: Page) -> None:
    page.click("#tab-tradeoffs")
    settle(page)
    fronts = page.locator("#panel-tradeoffs tbody tr").all_inner_texts()
    assert [fronts[-1].split("\t")[place] for place in (0, 2, 3)] == ["net", "550 ns", "1,000 B"]
    page.click("#tab-scaling")
    settle(page)
    line = page.locator("#panel-scaling .sortable tbody tr", has_text="net · slow").inner_text().split("\t")
    assert line[1:] == ["2", "500,000/s at 1", "500,000/s at 4", "1×", "25%"]
    page.click("#tab-history")
    settle(page)
    told = page.inner_text("#panel-history .changes")
    assert "commit c2 500 ns → 550 ns, +10.0% worse" in told
    assert "conv +50 ns" in told
    page.click("#tab-cells")
    settle(page)
    assert page.locator("#panel-cells tbody tr").count() == 8
    page.locator("#panel-cells tbody tr", has_text="refused").locator("button").first.click()
    assert "refused: no kernel for" in page.inner_text("#panel-cells .reason")


@pytest.mark.skipif(bool(NO_AXE), reason=NO_AXE)
def test_the_page_is_accessible_in_light_and_dark_and_fits_a_phone(browser: Browser, file: Path) -> None:
    context = browser.new_context(viewport={"width": 1400, "height": 844}, bypass_csp=True)
    page = context.new_page()
    opened(page, file)
    page.add_script_tag(path=AXE)
    for tab in TABS:
        page.click(f"#tab-{tab}")
        settle(page)
        assert violations(page) == [], tab
        page.emulate_media(color_scheme="dark")
        assert violations(page, only=("color-contrast",)) == [], f"{tab}, dark"
        page.emulate_media(color_scheme="light")
    resize(page, 390, 844)
    for tab in TABS:
        page.click(f"#tab-{tab}")
        settle(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, tab
        assert violations(page, only=("scrollable-region-focusable",)) == [], f"{tab}, phone"
    context.close()


def test_a_served_cell_opens_its_run_and_takes_sql(browser: Browser, tmp_path: Path) -> None:
    model = small_models.convnet(tmp_path / "net.onnx")
    api.profile(model, "aic100-std", backend="estimate", run=tmp_path / "net.run")
    verbs.add_to_store([tmp_path / "net.run"], tmp_path / "s", commit="c")
    with serving(tmp_path / "s") as address:
        page = browser.new_page()
        page.goto(f"{address}#cells")
        page.wait_for_selector("html[data-ready=yes]", state="attached")
        page.fill("input.sql", "status = 'failed'")
        page.click("button:has-text('Ask')")
        page.wait_for_selector("text=No cell of the store fits the condition.")
        page.goto(f"{address}?where=1+%2B")
        assert "SQL" in page.inner_text("body")
        page.goto(f"{address}#cells")
        page.click("#panel-cells a:has-text('page')")
        page.wait_for_selector("#tab-overview")
        assert "net" in page.title()
        page.close()


def test_a_store_without_any_figure_is_shown_with_its_reasons(browser: Browser, tmp_path: Path) -> None:
    store = Store(tmp_path / "s", create=True)
    store.add(failed_row(fleet_cells.origin_of("net", target=""), status="failed", reason="fell over", seconds=0.1))
    verbs.store_page(tmp_path / "s", tmp_path / "s.html")
    context = browser.new_context()
    with watched(context.new_page()) as page:
        opened(page, tmp_path / "s.html")
        assert walk(page, "ArrowRight") == "net, —: failed; fell over"
        for tab in TABS:
            page.click(f"#tab-{tab}")
            settle(page)
    context.close()


@pytest.mark.slow
def test_a_hundred_thousand_cells_are_few_elements(browser: Browser, tmp_path: Path) -> None:
    Store(tmp_path / "s", create=True)
    count = 100_000
    created = moment(fleet_cells.CREATED)
    cell = fleet_cells.rows(fleet_cells.origin_of())[0] | {"created": created, "metrics": [("latency", 1.0)]}
    columns = {
        name: pa.array([cell.get(name)] * count, CELLS.field(name).type)
        for name in ("provenance", "metrics", "created")
    }
    columns |= {name: pa.array([f"{i:032x}" for i in range(count)]) for name in ("id", "series")}
    columns |= {
        "model": pa.array([f"m{i // 100:04}" for i in range(count)]),
        "target": pa.array([f"t{i % 100:02}" for i in range(count)]),
        "status": pa.array(["ok"] * count),
        "latency_ns": pa.array([float(1 + i % 977) for i in range(count)]),
    }
    whole = {field.name: columns.get(field.name, pa.nulls(count, field.type)) for field in CELLS}
    place = tmp_path / "s" / "cells" / partition(fleet_cells.CREATED, "all")
    place.mkdir(parents=True)
    pq.write_table(pa.table(whole, CELLS), place / "part-0.parquet")
    verbs.store_page(tmp_path / "s", tmp_path / "big.html")
    page = browser.new_page()
    opened(page, tmp_path / "big.html")
    assert page.inner_text(".filters .hits") == "100,000 of 100,000 cells"
    assert "m0999, " in walk(page, "ArrowRight", *["PageDown"] * 80)
    for tab in TABS:
        page.click(f"#tab-{tab}")
        settle(page)
    assert page.evaluate("document.querySelectorAll('*').length") < 10_000
    page.close()
