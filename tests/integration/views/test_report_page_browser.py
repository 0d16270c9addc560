"""`report --format html` in a real browser: the page tells what the report tells, sorts, filters and fits a phone."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest

from opscope import api
from opscope.core.units import UNKNOWN
from opscope.estimate.report import Report
from opscope.zoo import Recipe, make
from support.estimate.report_samples import chain, page_of, report_of
from support.viewers.axe import AXE, NO_AXE, violations
from support.viewers.chromium import MISSING
from support.viewers.run_page import TABS, Open, panel
from support.viewers.waiting import settle, wait_for

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

pytestmark = pytest.mark.skipif(bool(MISSING), reason=MISSING)

HOSTILE = "</script><img src=x onerror=alert(1)>\u202e{{7*7}}"
STEP = 200  # rows that a table shows at once


@pytest.fixture(scope="module")
def report() -> Report:
    return report_of(chain(["conv", "relu", "conv", "add", "softmax"]))


def opened(open_page: Open, report: Report, *, width: int = 1400, tab: str = "") -> Page:
    recorded = api.report_run(report)
    return open_page(recorded.run, recorded.findings, width=width, tab=tab)


def card(page: Page, name: str) -> str:
    return page.inner_text(f'.key-number[data-key="{name}"]')


def head(page: Page, column: str) -> Locator:
    return page.locator("#panel-operators th").filter(has_text=re.compile(f"^{column}$"))


def cells(page: Page, column: str) -> list[str]:
    """The cells of a column of the layers, without the totals."""
    place = page.locator("#panel-operators th").all_inner_texts().index(column) + 1
    return page.locator(f"#panel-operators tbody td:nth-child({place})").all_inner_texts()


def sorted_by(page: Page, column: str, order: str) -> None:
    head(page, column).locator("button").click()
    wait_for(page, lambda: head(page, column).get_attribute("aria-sort") == order)


def made(recipe: Recipe, target: str, folder: Path) -> Report:
    model = folder / f"model.{recipe.format}"
    make(recipe, model)
    return api.report(model, target, advise=False)


def slowest(report: Report, count: int = 3) -> list[str]:
    times = [layer.latency_s or 0.0 for layer in report.layers]
    return [str(number) for number in sorted(range(len(times)), key=lambda i: -times[i])[:count]]


def test_key_numbers_are_those_of_the_report(open_page: Open, report: Report) -> None:
    page = opened(open_page, report)
    totals = report.totals
    assert totals.latency_s is not None
    assert totals.energy_j is not None
    assert f"{totals.latency_s.value * 1e3:.4g} ms" in card(page, "latency")
    assert f"{report.memory.peak_bytes / 1024:.4g} KB" in card(page, "peak ram")
    assert "% of 1 MB RAM" in card(page, "peak ram")
    assert f"{totals.parameter_bytes / 1024:.4g} KB" in card(page, "parameters")
    assert f"{totals.macs:,} per inference" in card(page, "macs")
    assert f"{totals.energy_j.value * 1e6:.4g} µJ" in card(page, "energy")
    assert f"{totals.accelerated_layers} of {len(report.layers)}" in card(page, "accelerated")
    assert page.inner_text(".fit").replace("\n", " ").startswith("✓ Fits. RAM ")


def test_facts_of_model_and_hardware_are_told(open_page: Open, report: Report) -> None:
    told = panel(opened(open_page, report), "overview")
    for words in (
        report.target.title,
        "ONNX",
        f"{report.model.file_bytes:,} B",
        f"{report.totals.cycles:,.0f}",
        "at 120 MHz",
        report.totals.power_note,
        report.totals.energy_note,
        f"{report.totals.element_ops:,}",
    ):
        assert words in told, words


def test_a_target_without_ranges_says_that_it_has_none(open_page: Open, tmp_path: Path) -> None:
    plain = made(Recipe("kws-cnn", precision="int8", format="tflite"), "adsp-21834-fx", tmp_path)
    assert "no range: the target’s figures are single values" in panel(opened(open_page, plain), "overview")


def test_every_layer_has_a_row_with_its_values_and_totals_below(open_page: Open, report: Report) -> None:
    page = opened(open_page, report, tab="#operators")
    assert cells(page, "Name") == [layer.name for layer in report.layers]
    assert cells(page, "Cycles") == [f"{layer.cycles:,.0f}" for layer in report.layers]
    assert cells(page, "MACs") == [f"{layer.macs:,}" for layer in report.layers]
    assert cells(page, "Element ops") == [f"{layer.element_ops:,}" for layer in report.layers]
    assert cells(page, "Bound by") == [layer.bound for layer in report.layers]
    assert {text.split()[0] for text in cells(page, "Accelerated")} == {"no"}
    foot = page.inner_text("#panel-operators tfoot")
    assert f"{report.totals.cycles:,.0f}" in foot
    assert f"{report.totals.macs:,}" in foot


def test_unknown_is_a_dash_with_its_reason(open_page: Open) -> None:
    report = report_of(chain(["conv", "custom", "relu"]))
    page = opened(open_page, report)
    assert report.totals.withheld
    assert "at least " in card(page, "latency")
    assert report.totals.withheld in card(page, "latency")
    assert UNKNOWN in card(page, "throughput")
    assert "1 of 3 ops has no known cost." in page.inner_text(".notice")
    assert "The latency is not known" in page.inner_text(".verdict")
    assert "Not here, cost unknown: 1 layer." in page.inner_text("#panel-overview")
    layer = report.layers[report.totals.unknown_layers[0]]
    assert f"{layer.name} ({layer.operator}): {layer.unknown}" in page.inner_text(".notice")
    told = panel(page, "operators")
    assert cells(page, "Cycles").count(UNKNOWN) == 1
    assert (
        page.locator("#panel-operators tbody td span[title]", has_text=UNKNOWN).first.get_attribute("title")
        == layer.reason
    )
    assert f"at least {report.totals.macs:,}" in told
    assert "Why layers are not on a faster engine, or have no cost" in told
    assert layer.reason in told
    assert "Largest tensors alive at the peak" in panel(page, "memory")


@pytest.mark.parametrize("target", ["max32690-cm4", "aic100-std"])
def test_the_parameter_column_reconciles_with_the_total(open_page: Open, target: str) -> None:
    report = report_of(chain(["conv", "relu", "conv", "conv"], shared_weights=True), target)
    page = opened(open_page, report, tab="#operators")
    column = sum(layer.parameter_bytes for layer in report.layers)
    shared = sum(layer.shared_bytes for layer in report.layers)
    told = page.inner_text("#reconciliation")
    assert f"adds up to {column:,} B; less {shared:,} B that are shared" in told
    assert told.endswith(f"that is the model’s {report.totals.parameter_bytes:,} B.")
    assert sum("shared" in text for text in cells(page, "Parameters")) == 2


def test_memory_is_told_from_the_ground_up(open_page: Open, report: Report) -> None:
    told = panel(opened(open_page, report), "memory")
    for words in ("Live bound", "Planned arena", "Kernel scratch", "Runtime", "Status", "activations", "constants"):
        assert words in told, words
    assert report.memory.peak_tensors[0].name in told
    assert f"layer {report.memory.peak_layer}, Conv" in told


def test_what_does_not_fit_says_so_and_what_to_do(open_page: Open, tmp_path: Path) -> None:
    report = made(Recipe("mobilenetv2", format="tflite"), "max32657-cm33", tmp_path)
    assert report.memory.status == "DOES NOT FIT"
    page = opened(open_page, report)
    assert page.inner_text(".fit").replace("\n", " ").startswith("✕ Does not fit.")
    told = panel(page, "memory")
    for line in (*report.memory.issues, *report.memory.recommendations):
        assert re.sub(r"[\d.,]+", "", line)[:20] in re.sub(r"[\d.,]+", "", told), line


def test_suggestions_show_before_after_and_change(open_page: Open, report: Report) -> None:
    assert report.suggestions
    page = opened(open_page, report, tab="#findings")
    rows = page.locator("#panel-findings section", has=page.get_by_role("heading", name="Suggestions")).locator(
        "tbody tr"
    )
    assert rows.count() == len(report.suggestions)
    for idea, row in zip(report.suggestions, rows.all_inner_texts(), strict=True):
        assert idea.text in row
        change = 100 * (idea.after.parameter_bytes / idea.before.parameter_bytes - 1)
        assert (f"−{abs(change):.1f}%" if change < -0.05 else "±0%") in row
    told = page.inner_text("#panel-findings")
    assert "Layers with most parameter memory" in told
    assert "Layers with most MACs" in told
    assert report.heavy_macs[0].suggestion in told


def test_every_figure_of_the_target_names_its_source(open_page: Open, report: Report) -> None:
    told = panel(opened(open_page, report), "sources")
    assert report.target.sources[report.target.clocks.core_hz.source] in told
    assert report.definition in told
    assert report.notes[0].text in told
    assert "1,048,576 (1 MB)" in told


def test_a_hostile_name_is_words_on_every_tab(open_page: Open) -> None:
    report = report_of(chain(["conv", "relu", "custom", "add"], name=lambda i: f"{HOSTILE}{i}"))
    page = opened(open_page, report)
    for tab in (*TABS, "sources"):
        told = panel(page, tab)
        assert "\u202e" not in told
        assert page.locator("img").count() == 0


def test_sorting_and_filtering_work_and_a_phone_needs_no_sideways_scrolling(open_page: Open, tmp_path: Path) -> None:
    report = made(Recipe("cifar-resnet", format="tflite"), "cfs-sample", tmp_path)
    page = opened(open_page, report, width=375)
    for tab in (*TABS, "sources"):
        panel(page, tab)
        assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0, tab
    panel(page, "operators")
    sorted_by(page, "Latency", "descending")
    assert cells(page, "#")[:3] == slowest(report)
    sorted_by(page, "Latency", "ascending")
    page.fill("#panel-operators input[type=search]", "conv_2d")
    wait_for(page, lambda: set(cells(page, "Operator")) == {"CONV_2D"})
    assert re.fullmatch(rf"\d+ of {len(report.layers)}", page.inner_text("#panel-operators .hits"))


@pytest.mark.slow
def test_thousands_of_layers_are_shown_in_steps_and_still_sort(open_page: Open, tmp_path: Path) -> None:
    recipe = Recipe("llm-decoder", precision="f16", weights=False, options={"layers": 40})
    report = made(recipe, "max32690-cm4", tmp_path)
    assert len(report.layers) > 2000
    page = opened(open_page, report, tab="#operators")
    assert len(cells(page, "#")) == STEP
    sorted_by(page, "Latency", "descending")
    assert [text.replace(",", "") for text in cells(page, "#")[:3]] == slowest(report)


@pytest.mark.skipif(bool(NO_AXE), reason=NO_AXE)
@pytest.mark.parametrize(
    ("width", "scheme"),
    [
        (1400, "light"),
        (390, "dark"),
        pytest.param(1400, "dark", marks=pytest.mark.slow),
        pytest.param(390, "light", marks=pytest.mark.slow),
    ],
)
def test_nothing_stands_between_a_screen_reader_and_the_report(
    browser: Browser, tmp_path: Path, report: Report, scheme: Literal["light", "dark"], width: int
) -> None:
    file = tmp_path / "report.html"
    file.write_text(page_of(report), encoding="utf-8")
    context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 900}, bypass_csp=True)
    context.add_init_script(path=AXE)
    page = context.new_page()
    page.goto(file.as_uri())
    page.wait_for_selector("html[data-ready=yes]", state="attached")
    for tab in ("overview", "operators", "memory", "findings", "sources"):
        page.click(f"#tab-{tab}")
        settle(page)
        assert violations(page) == [], tab
    context.close()
