"""The Tokens tab of a page in a real browser: curves, the line where memory ends, the table, both schemes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest

from opscope.language_models.llm import language_model_of, llm
from opscope.views.page.page import RunPage
from opscope.workflows.record import Recorded
from support.viewers.axe import AXE, NO_AXE, violations
from support.viewers.chromium import MISSING
from support.viewers.run_page import Open, panel
from support.viewers.waiting import settle

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.skipif(bool(MISSING), reason=MISSING)

TITLES = (
    "Time to the first token, by prompt",
    "Time to the next token, by context",
    "Tokens per second of all users, by batch",
    "Weights and cache, by context",
)


@pytest.fixture(scope="module")
def found() -> Recorded:
    """A mixture whose largest point is beyond what four devices hold."""
    return llm(
        "qwen3-30b-a3b",
        "aic100-ultra",
        weights="mxfp6",
        kv="mxint8",
        devices=4,
        prompt=(128, 2048),
        context=(2048, 40960),
        batch=(1, 64),
        created="2026-01-01T00:00:00+00:00",
    )


def opened(open_page: Open, found: Recorded, *, width: int = 1400) -> Page:
    page = open_page(found.run, found.findings, width=width)
    settle(page)
    return page


def test_the_page_of_a_language_model_begins_with_its_tokens(open_page: Open, found: Recorded) -> None:
    page = opened(open_page, found)
    assert page.get_attribute("#tab-tokens", "aria-selected") == "true"
    told = page.inner_text("#panel-tokens")
    assert "qwen3-30b-a3b on aic100-ultra, 4 devices (1 card), weights mxfp6, cache mxint8" in told
    assert all(title in told for title in TITLES)
    assert "Largest that fits: batch 64 × context " in told
    assert "2 points of 8 do not fit" in told
    assert all(note in told for note in language_model_of(found).notes)


def test_every_curve_is_drawn_with_a_line_where_memory_ends(open_page: Open, found: Recorded) -> None:
    page = opened(open_page, found)
    charts = page.locator("#panel-tokens .uplot")
    assert charts.count() == len(TITLES)
    for number in range(len(TITLES)):
        drawn = (
            charts.nth(number)
            .locator("canvas")
            .evaluate(
                "c => c.getContext('2d').getImageData(0, 0, c.width, c.height).data.some((v, i) => i % 4 === 3 && v)"
            )
        )
        assert drawn
    memory = page.locator("#panel-tokens section").filter(has_text=TITLES[3]).last
    assert "what there is128 GB" in memory.inner_text()
    assert "batch 64" in memory.inner_text()


def test_the_table_has_every_point_with_its_range(open_page: Open, found: Recorded) -> None:
    page = opened(open_page, found)
    rows = page.locator("#panel-tokens table").last.locator("tbody tr")
    points = language_model_of(found).points
    assert rows.count() == len(points)
    first = points[0].ttft_ms
    assert first is not None
    assert first.low is not None
    assert f"{first.value:.3g} ms ({first.low:.3g} ms – " in rows.first.inner_text()
    rows_that_fit = [row.split("\t") for row in rows.all_inner_texts()]
    assert sum(any(cell.startswith("no (") for cell in row) for row in rows_that_fit) == 2


def test_buttons_lead_to_the_timeline_and_the_roofline_of_both_phases(open_page: Open, found: Recorded) -> None:
    page = opened(open_page, found)
    page.get_by_role("button", name="Roofline of both phases").click()
    settle(page)
    told = page.inner_text("#panel-roofline")
    assert "prefill/" in told
    assert "decode/" in told
    panel(page, "tokens")
    page.get_by_role("button", name="Timeline of one prompt and one token").click()
    settle(page)
    assert page.get_attribute("#tab-timeline", "aria-selected") == "true"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_curves_differ_from_their_ground_in_both_schemes(open_page: Open, found: Recorded, scheme: str) -> None:
    page = opened(open_page, found)
    page.evaluate("scheme => document.documentElement.dataset.theme = scheme", scheme)
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    settle(page)
    colours = page.locator("#panel-tokens .uplot canvas").first.evaluate(
        """c => { const seen = new Set(), d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
        for (let i = 0; i < d.length; i += 4)
          if (d[i + 3] > 200) seen.add([d[i] >> 5, d[i + 1] >> 5, d[i + 2] >> 5].join());
        return seen.size; }"""
    )
    assert colours >= 3  # two curves and the words


def test_the_tab_fits_a_phone(open_page: Open, found: Recorded) -> None:
    page = opened(open_page, found, width=390)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.skipif(bool(NO_AXE), reason=NO_AXE)
@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.slow)])
def test_nothing_stands_between_a_screen_reader_and_the_tokens(
    browser: Browser, tmp_path: Path, found: Recorded, scheme: Literal["light", "dark"]
) -> None:
    file = tmp_path / "report.html"
    with file.open("w", encoding="utf-8") as out:
        RunPage().render(found.run, found.findings, out)
    context = browser.new_context(color_scheme=scheme, viewport={"width": 1400, "height": 900}, bypass_csp=True)
    context.add_init_script(path=AXE)
    page = context.new_page()
    page.goto(file.as_uri())
    page.wait_for_selector("html[data-ready=yes]", state="attached")
    settle(page)
    assert violations(page) == []
    context.close()
