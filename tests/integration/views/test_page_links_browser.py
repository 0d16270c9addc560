"""From one part of a Run's page to another in a real browser: links, searches, rows that are asked for, keys alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from opscope import api
from opscope.recording.finding import Findings, OpSlack
from opscope.recording.run import Run
from opscope.recording.summary import MemoryTotal, RouteTotal
from opscope.views.page.compare_page import ComparePage
from support.recording.page_build import MATMUL_NS, OPS, small_findings, small_run
from support.viewers.chromium import MISSING, watched
from support.viewers.run_page import TABS, Open, panel, said
from support.viewers.waiting import settle, wait_for

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.skipif(bool(MISSING), reason=MISSING)

LONG = "/encoder/layer.*/intermediate/intermediate_act_fn/intermediate_activation_function/Erf"


def long_findings(run: Run) -> Findings:
    """As an analysis words them: a name without a place to break, and units for terminals."""
    findings = small_findings(run)
    told = replace(findings.findings[0], title=f"{LONG} takes 57% of the critical path", detail=f"{LONG}: 80.5 us")
    return replace(findings, findings=(told,))


@pytest.mark.parametrize("width", [320, 375])
def test_long_names_of_findings_and_ops_fit_a_phone(open_page: Open, width: int) -> None:
    run = small_run(tuple(f"{LONG}_{i}" for i in range(4)))
    page = open_page(run, long_findings(run), width=width)
    for tab in TABS:
        panel(page, tab)
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, tab


def test_a_phone_sees_the_times_of_ops_without_scrolling(open_page: Open) -> None:
    page = open_page(small_run(tuple(f"{LONG}_{i}" for i in range(4))), width=375, tab="#operators")
    busy = page.locator("#panel-operators tbody tr").first.locator("td").nth(3).bounding_box()
    assert busy is not None
    assert busy["x"] + busy["width"] <= 375


def test_sentences_of_the_analysis_have_the_units_of_the_page(open_page: Open) -> None:
    run = small_run()
    page = open_page(run, long_findings(run))
    assert "80.5 µs" in panel(page, "findings")
    assert " us" not in page.inner_text("#panel-findings")


def test_a_finding_of_the_overview_leads_to_its_card(open_page: Open) -> None:
    run = small_run()
    findings = small_findings(run)
    second = replace(findings.findings[0], title="Another cause")
    page = open_page(run, replace(findings, findings=(*findings.findings, second)))
    page.click("#panel-overview button:text-is('Another cause')")
    wait_for(page, lambda: page.is_visible("#panel-findings"))
    assert page.evaluate("document.activeElement.id") == "finding-1"
    assert "Another cause" in page.inner_text("#finding-1")


def test_one_is_not_called_many(open_page: Open) -> None:
    run = small_run(OPS[:1])
    run = replace(run, summary=replace(run.summary, ops=run.summary.ops[:1]))
    findings = Findings("compute", (), None, "simulated", small_findings(small_run()).findings)
    text = panel(open_page(run, findings), "overview")
    assert "1 op on 1 × 1 core" in text
    assert "All 1 " not in text


def test_what_is_known_by_name_is_not_shown_of_ops_that_share_one(open_page: Open) -> None:
    run = small_run((OPS[0], OPS[1], OPS[0], OPS[3]))
    slack = (OpSlack(OPS[0], 0, 0, 111), OpSlack(OPS[0], 1, 7, 222), OpSlack(OPS[1], 2, 5, 333))
    page = open_page(run, replace(small_findings(run), slack=slack), tab="#operators")
    rows = [row.split("\t") for row in page.locator("#panel-operators tbody tr").all_inner_texts()]
    shown = {(row[0].strip(), row[5].strip(), row[6].strip()) for row in rows}
    assert {(OPS[0], "—", "—"), (OPS[1], "333 ns", "5 ns")} <= shown
    assert len([row for row in rows if row[0].strip() == OPS[0]]) == 2


def many_cores(run: Run) -> Run:
    routes = tuple(RouteTotal(0, core, "DDR read", 1, 1000 + core, 10, 1) for core in range(30))
    memory = tuple(MemoryTotal("VTCM", 0, core, 100 * core, 1.0, 65_536, None, None) for core in range(16))
    outer = MemoryTotal("DDR", 0, None, None, None, None, 65_536, 0)
    return replace(run, summary=replace(run.summary, routes=routes, memory=(*memory, outer)))


def test_a_long_table_says_how_long_it_is_and_shows_the_rest_when_asked(open_page: Open) -> None:
    page = open_page(many_cores(small_run()), tab="#memory")
    routes = page.locator("#panel-memory section", has=page.locator("h2:text-is('Routes')"))
    assert routes.locator("tbody tr").count() == 12
    routes.locator("text=All 30 rows").click()
    wait_for(page, lambda: routes.locator("tbody tr").count() == 30)
    assert routes.locator("text=All 30 rows").count() == 0


def test_shared_memories_and_the_fullest_cores_come_first(open_page: Open) -> None:
    page = open_page(many_cores(small_run()), tab="#memory")
    memories = page.locator("#panel-memory section", has=page.locator("h2:text-is('Memories')"))
    rows = memories.locator("tbody tr").all_inner_texts()
    assert [row.split("\t")[1] for row in rows[:3]] == ["device 0", "device 0, core 15", "device 0, core 14"]


def test_a_block_of_the_arena_leads_to_the_span_that_made_it(open_page: Open) -> None:
    page = open_page(small_run(), tab="#memory")
    canvas = page.locator("canvas.arena")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    assert box is not None
    whole_ns, top = 10_000 + 2 * (MATMUL_NS + 25_000), 65_536
    x = 58 + (10_000 + MATMUL_NS / 2) / whole_ns * (box["width"] - 58)  # the axes take 58 and 20 pixels
    y = (1 - 1.5 * 4096 / top) * (box["height"] - 20)  # the first product writes the second block
    canvas.hover(position={"x": x, "y": y})
    wait_for(page, lambda: "tensor 0: 4 KB at 0x1000, 10 µs to 75 µs" in page.inner_text(".arena + .note"))
    canvas.click(position={"x": x, "y": y})
    wait_for(page, lambda: page.is_visible("#panel-timeline") and said(page) != "Nothing is selected.")
    assert said(page).startswith(f"op product of {OPS[0]} on device 0, core 0, matrix: from 10 µs")


def scale(page: Page) -> float:
    """Pixels of the screen for one of the drawing."""
    return float(page.evaluate("document.querySelector('svg.graph').getScreenCTM().a"))


def test_the_graph_finds_an_op_in_a_closed_layer(open_page: Open) -> None:
    page = open_page(
        small_run(tuple(f"/encoder/layer.{i // 10}/part{i % 10}/MatMul" for i in range(400))), tab="#graph"
    )
    page.fill("#panel-graph input[type=search]", "layer.31/part7")
    assert page.inner_text("#panel-graph .hits") == "1 op"
    page.keyboard.press("Enter")
    assert page.inner_text("#panel-graph .hits") == "1 of 1 op"
    found = page.locator("#panel-graph .node.found")
    assert (found.get_attribute("aria-label") or "").startswith("/encoder/layer.31/part7/MatMul")
    place, around = found.bounding_box(), page.locator(".graph-box").bounding_box()
    assert place is not None
    assert around is not None
    assert around["y"] <= place["y"] <= around["y"] + around["height"]
    assert page.evaluate("document.activeElement.type") == "search"  # Enter again goes on


def test_the_graph_starts_legible_and_is_shown_whole_when_asked(open_page: Open) -> None:
    page = open_page(small_run(tuple(f"/encoder/layer.{i}/MatMul" for i in range(170))), tab="#graph")
    settle(page)
    assert scale(page) >= 0.79
    page.click("[aria-label='Whole network']")
    last, around = page.locator("#panel-graph .node").last.bounding_box(), page.locator(".graph-box").bounding_box()
    assert last is not None
    assert around is not None
    assert last["y"] + last["height"] <= around["y"] + around["height"]


def test_what_explains_a_change_says_what_its_columns_are(browser: Browser, tmp_path: Path) -> None:
    base = small_run()
    slower = replace(base.summary.ops[0], wall_ns=MATMUL_NS * 2, busy_ns=MATMUL_NS * 2)
    latency = replace(base.summary.latency, value_ns=base.summary.latency.known_ns + MATMUL_NS)
    new = replace(base, summary=replace(base.summary, latency=latency, ops=(slower, *base.summary.ops[1:])))
    file = tmp_path / "compare.html"
    with file.open("w", encoding="utf-8") as out:
        ComparePage(labels=("before", "after")).render((base, new), api.compare(base, new), out)
    with watched(browser.new_page()) as page:
        page.goto(file.as_uri())
        card = page.locator("section", has=page.locator("h2:text-is('What explains the change of latency')"))
        assert card.locator("th").all_inner_texts() == ["Op", "Matched by", "Change"]
        page.close()


def test_keys_alone_reach_every_tab_and_something_in_it(open_page: Open) -> None:
    run = small_run()
    page = open_page(run, small_findings(run))
    for tab in TABS:
        page.focus(f"#tab-{TABS[0]}")
        page.keyboard.press("Home")
        for _ in range(TABS.index(tab)):
            page.keyboard.press("ArrowRight")
        wait_for(page, lambda tab=tab: page.is_visible(f"#panel-{tab}"))
        settle(page)
        inside = f"document.querySelector('#panel-{tab}').contains(document.activeElement)"
        for _ in range(3):  # past the button for light and dark
            page.keyboard.press("Tab")
            if page.evaluate(inside):
                break
        assert page.evaluate(inside), tab


MOVING = """[...document.querySelectorAll("*")].filter((e) => parseFloat(getComputedStyle(e).transitionDuration)).length
  + document.getAnimations().length"""


def test_nothing_moves_by_itself_where_motion_is_not_wanted(open_page: Open) -> None:
    run = small_run()
    page = open_page(run, small_findings(run))
    assert page.evaluate(MOVING) > 0  # else the rest would say nothing
    page.emulate_media(reduced_motion="reduce")
    wait_for(page, lambda: page.evaluate(MOVING) == 0)
    for tab in TABS:
        panel(page, tab)
        assert page.evaluate(MOVING) == 0, tab
