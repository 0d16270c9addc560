"""The HTML report in a real browser: its script runs under its own security policy, sorts, filters and fits a phone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from opscope import api
from opscope.views.report_page.layers import MOST_HTML_ROWS
from opscope.views.report_page.report_html import ReportHtml
from opscope.zoo import Recipe, make
from viewers.chromium import MISSING, watched
from viewers.waiting import settle, wait_for

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

pytestmark = pytest.mark.skipif(bool(MISSING), reason=MISSING)


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """At the end held to silence: a script that its own policy forbids is a word on the console."""
    context = browser.new_context(viewport={"width": 1400, "height": 900})
    with watched(context.new_page()) as opened:
        yield opened
    context.close()


def show(page: Page, file: Path, *, width: int = 1400) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    page.goto(file.as_uri())
    page.wait_for_selector("html.ready", state="attached")
    settle(page)


def layers(page: Page, column: str) -> list[str]:
    return page.locator(f"#layer-table tbody td.{column}").all_inner_texts()


def head(page: Page, column: str) -> Locator:
    return page.locator(f"#layer-table th.{column}")


def slowest_first(page: Page) -> list[int]:
    """The first three layers after a click on the column of times."""
    head(page, "latency").locator("button").click()
    wait_for(page, lambda: head(page, "latency").get_attribute("aria-sort") == "descending")
    return [int(text) for text in layers(page, "index")[:3]]


def page_for(recipe: Recipe, target: str, folder: Path) -> tuple[Path, list[float]]:
    model = folder / f"model.{recipe.format}"
    make(recipe, model)
    report = api.report(model, target, advise=False)
    out = StringIO()
    ReportHtml().render(report, out)
    page = folder / "report.html"
    page.write_text(out.getvalue(), encoding="utf-8")
    return page, [layer.latency_s or 0.0 for layer in report.layers]


def test_the_page_runs_under_its_own_policy_without_a_word_on_the_console(tmp_path: Path, page: Page) -> None:
    file, _ = page_for(Recipe("kws-cnn", format="tflite"), "max32690-cm4", tmp_path)
    show(page, file)
    assert "script-src" in file.read_text(encoding="utf-8")


def test_sorting_and_filtering_work_and_a_phone_needs_no_sideways_scrolling(tmp_path: Path, page: Page) -> None:
    file, times = page_for(Recipe("cifar-resnet", format="tflite"), "cfs-sample", tmp_path)
    show(page, file, width=375)
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0
    assert len(layers(page, "index")) == len(times)
    assert slowest_first(page) == sorted(range(len(times)), key=lambda i: -times[i])[:3]
    head(page, "latency").locator("button").click()
    wait_for(page, lambda: head(page, "latency").get_attribute("aria-sort") == "ascending")
    page.fill("#filter", "conv_2d")
    wait_for(page, lambda: set(layers(page, "operator")) == {"CONV_2D"})
    assert re.fullmatch(rf"\d+ of {len(times)} layers", page.inner_text("#shown"))
    page.click("#theme")
    wait_for(page, lambda: page.get_attribute("html", "data-theme") in ("dark", "light"))


def test_thousands_of_layers_are_windowed_and_still_sort(tmp_path: Path, page: Page) -> None:
    recipe = Recipe("llm-decoder", precision="f16", weights=False, options={"layers": 40})
    file, times = page_for(recipe, "max32690-cm4", tmp_path)
    assert len(times) > MOST_HTML_ROWS
    show(page, file, width=1280)
    assert len(layers(page, "index")) < 100
    assert slowest_first(page) == sorted(range(len(times)), key=lambda i: -times[i])[:3]
    head(page, "latency").locator("button").click()
    wait_for(page, lambda: head(page, "latency").get_attribute("aria-sort") == "ascending")
    page.evaluate("document.querySelector('.tall').scrollTop = 1e9")
    slowest = max(range(len(times)), key=lambda i: times[i] + i * 1e-15)
    wait_for(page, lambda: int(layers(page, "index")[-1]) == slowest)
