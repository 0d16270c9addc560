"""The page of a Run in a real browser: every tab, the timeline's mouse and keys, numbers, hostile names, no network."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec
import numpy as np
import pytest

from opscope import api
from opscope.program.program import COMMAND, OpInfo
from opscope.recording.recording import empty_trace
from opscope.recording.run import GRAPH_EDGE, CommandTable, Run
from opscope.recording.summary import Summary
from opscope.recording.summary_file import summary_fields
from opscope.recording.trace import Lane
from opscope.views.page.compare_page import ComparePage
from opscope.views.page.page import RunPage
from opscope.views.page.spans import rows_of
from support.recording.page_build import MATMUL_NS, OPS, SOFTMAX_NS, small_findings, small_run
from support.viewers.axe import AXE, NO_AXE, violations
from support.viewers.chromium import MISSING, watched
from support.viewers.run_page import TABS, Open, panel, said
from support.viewers.waiting import settle, wait_for

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Route

pytestmark = pytest.mark.skipif(bool(MISSING), reason=MISSING)


def shown(page: Page) -> tuple[int, int]:
    """From and to, of the timeline, after the next picture."""
    settle(page)
    root = page.locator(".timeline")
    return int(root.get_attribute("data-from") or 0), int(root.get_attribute("data-to") or 0)


def bare(run: Run) -> Run:
    """Totals alone, and few of them: what some files of other tools come to."""
    nothing = CommandTable(np.zeros(0, COMMAND), (), (), (), (), (), (), (), (), ())
    latency = replace(run.summary.latency, value_ns=None, low_ns=None, high_ns=None)
    return replace(run, trace=empty_trace("measured"), commands=nothing, summary=Summary(latency, None, 1))


def test_every_tab_renders_what_the_run_has(open_page: Open) -> None:
    run = small_run()
    page = open_page(run, small_findings(run))
    expected = {
        "overview": ("Compute bound", "Latency", "simulated", "Where the time goes"),
        "timeline": ("Nothing is selected.", "MatMul"),
        "operators": ("/layer.0/query/MatMul", "Reshape", "—"),
        "memory": ("VTCM", "Arena map", "At the peak", "tensor 0"),
        "roofline": ("1 T MACs/s", "76.3"),
        "findings": (
            "The vector engine waits for the matrix engine",
            "upper bound",
            "/folded/Reshape",
            "cores=4",
            "2.00 × as fast",
        ),
        "graph": ("Softmax", "Darker takes more time"),
    }
    for tab in TABS:
        text = panel(page, tab)
        for words in expected[tab]:
            assert words in text, (tab, words)
    assert page.locator("#panel-graph .node").count() == 4
    for chart in ("#panel-memory .uplot", "#panel-roofline .uplot"):
        wait_for(page, lambda chart=chart: page.locator(chart).count() == 1)


def test_every_tab_says_what_the_run_does_not_have(open_page: Open) -> None:
    page = open_page(bare(small_run()))
    for tab in TABS:
        assert re.search(r"does not|has no|not analysed|totals only|says nothing", panel(page, tab)), tab


def test_numbers_on_the_page_are_those_of_the_summary(open_page: Open) -> None:
    run = small_run()
    page = open_page(run)
    summary = json.loads(msgspec.json.encode(summary_fields(run.summary)))
    latency = page.inner_text("[data-key=latency] .value")
    assert float(latency.split()[0]) * 1e3 == pytest.approx(summary["latency"]["value_ns"], rel=5e-4)
    assert page.inner_text("[data-key=throughput] .value") == "14,286/s"
    page.click("#tab-operators")
    rows = page.locator("#panel-operators tbody tr").all_inner_texts()
    assert len(rows) == len(summary["ops"])
    for text, op in zip(rows, sorted(summary["ops"], key=lambda op: -(op["busy_ns"] or -1)), strict=True):
        cells = text.split("\t")
        share, busy = cells[2].strip(), cells[3].strip()
        assert share == ("—" if op["share"] is None else f"{100 * op['share']:.1f}%")
        assert busy == ("—" if op["busy_ns"] is None else f"{op['busy_ns'] / 1000:g} µs")


def test_search_and_selection_find_the_right_op(open_page: Open) -> None:
    page = open_page(small_run(), tab="#timeline")
    page.keyboard.press("/")
    page.keyboard.type("layer.1/soft")
    assert page.inner_text(".timeline .hits") == "1 span"
    page.keyboard.press("Enter")
    assert said(page) == f"op softmax of {OPS[3]} on device 0, core 0, vector: from 115 µs for 25 µs"
    text = page.inner_text(".dock")
    for words in ("out VTCM Dest tensor 3", "1,000 cycles of the slowest thread", "4 KB at 0x4000", OPS[2]):
        assert words in text, words


def test_a_click_selects_the_span_under_the_pointer(open_page: Open) -> None:
    page = open_page(small_run(), tab="#timeline")
    start, end = shown(page)
    box = page.locator("canvas.lanes").bounding_box()
    assert box is not None
    scale = (box["width"] - 200) / (end - start)
    middle = 10_000 + MATMUL_NS + SOFTMAX_NS // 2  # of the first softmax, on the second engine
    rows = page.evaluate("document.querySelector('.lanes').getBoundingClientRect().top")
    for y in range(int(rows) + 24, int(rows) + 160, 4):  # from top to bottom until it is met
        page.mouse.click(box["x"] + 200 + (middle - start) * scale, y)
        if "softmax" in said(page):
            break
    assert said(page).startswith(f"op softmax of {OPS[1]} on device 0, core 0, vector: from 50 µs")
    assert "sync" not in said(page)


def test_the_keyboard_moves_zooms_steps_and_clears(open_page: Open) -> None:
    page = open_page(small_run(), small_findings(small_run()), tab="#timeline")
    whole = shown(page)
    page.keyboard.press("w")
    nearer = shown(page)
    assert nearer[1] - nearer[0] == pytest.approx((whole[1] - whole[0]) / 1.5, rel=0.01)
    page.keyboard.press("d")
    assert shown(page)[0] > nearer[0]
    page.keyboard.press("a")
    page.keyboard.press("s")
    page.keyboard.press("0")
    assert shown(page) == whole
    page.locator("canvas.lanes").focus()
    page.keyboard.press("ArrowRight")
    first = said(page)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    assert len({first, said(page), "Nothing is selected."}) == 3
    page.keyboard.press("f")
    focused = shown(page)
    assert focused[1] - focused[0] < (whole[1] - whole[0]) / 1.2
    page.keyboard.press("c")
    assert page.get_attribute("text=Critical path", "aria-pressed") == "true"
    page.keyboard.press("?")
    assert page.locator("dialog[open]").count() == 1
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    assert said(page) == "Nothing is selected."


def test_tabs_follow_the_keyboard_and_tell_a_screen_reader(open_page: Open) -> None:
    page = open_page(small_run())
    page.focus("#tab-overview")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert page.get_attribute("#tab-operators", "aria-selected") == "true"
    assert page.locator("[role=tab][tabindex='0']").count() == 1
    assert page.locator("[role=tabpanel]:visible").count() == 1
    page.keyboard.press("End")
    assert page.evaluate("location.hash") == "#graph"  # page.url is told of it later
    page.click("#tab-operators")
    head = page.locator("#panel-operators th", has_text="Wait")
    head.locator("button").focus()
    page.keyboard.press("Enter")
    assert head.get_attribute("aria-sort") == "descending"
    page.keyboard.press("Enter")
    assert head.get_attribute("aria-sort") == "ascending"


def test_operators_filter_and_add_up(open_page: Open) -> None:
    page = open_page(small_run(), tab="#operators")
    page.fill("#panel-operators input[type=search]", "softmax")
    assert page.inner_text("#panel-operators .hits") == "2 of 5"
    page.fill("#panel-operators input[type=search]", "")
    page.click("label[for=rollup-engine]")
    rows = page.locator("#panel-operators tbody tr").all_inner_texts()
    assert [row.split("\t")[0] for row in rows] == ["matrix", "vector", "—"]
    assert rows[0].split("\t")[2].strip() == "80 µs"


def test_a_finding_leads_to_its_span(open_page: Open) -> None:
    run = small_run()
    findings = small_findings(run)
    page = open_page(run, findings, tab="#findings")
    page.click("text=Show in the timeline")
    page.wait_for_selector(".dock dl")
    span = run.trace.spans[findings.findings[0].spans[0]]
    assert said(page).startswith("wait sync on device 0, core 0")
    assert f"from {span['start_ns'] / 1000:g} µs" in said(page)
    assert "Waited for" in page.inner_text(".dock")


def test_an_op_of_any_table_leads_to_the_timeline(open_page: Open) -> None:
    page = open_page(small_run())
    page.click(f"#panel-overview button:text-is('{OPS[0]}')")
    page.wait_for_selector(".dock dl")
    assert f"of {OPS[0]} on" in said(page)
    page.click("#tab-graph")
    page.locator("#panel-graph .node").nth(3).focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("#panel-timeline:visible")
    page.wait_for_selector(f".said:has-text('{OPS[3]}')")


def test_the_costliest_ops_come_first_whatever_their_order_in_the_run(open_page: Open) -> None:
    run = small_run()
    ops = run.summary.ops
    page = open_page(replace(run, summary=replace(run.summary, ops=(ops[4], ops[1], ops[3], ops[0], ops[2]))))
    card = page.locator("#panel-overview section", has=page.locator("h2:text-is('Costliest ops')"))
    rows = card.locator("tbody tr").all_inner_texts()
    assert {row.split("\t")[0] for row in rows[:2]} == {OPS[0], OPS[2]}
    assert rows[-1].startswith("/folded/Reshape")


def in_sight(page: Page, label: str) -> bool:
    """Whether a selected span's lane lies in the part of the lanes that is scrolled to."""
    assert label in said(page)
    settle(page)
    scroller = page.locator(".lanes-scroll")
    room = scroller.evaluate("(box) => [box.scrollTop, box.clientHeight, box.scrollHeight]")
    return bool(room[0] + room[1] >= room[2] - 60)  # the last lane: the end of all rows


def test_a_finding_scrolls_to_its_lane_however_many_lie_above_it(open_page: Open) -> None:
    run = small_run()
    lanes = (*run.trace.lanes, *(Lane(0, core, f"engine {n}") for core in range(1, 12) for n in range(6)))
    spans = np.concatenate((run.trace.spans, run.trace.spans[-2:-1]))
    spans["lane"][-1] = len(lanes) - 1
    wide = replace(run, trace=replace(run.trace, lanes=lanes, spans=spans))
    findings = small_findings(run)
    cause = replace(findings.findings[0], spans=(len(spans) - 1, 0))
    page = open_page(wide, replace(findings, findings=(cause,)), tab="#findings")
    page.click("text=Show in the timeline")
    page.wait_for_selector(".dock dl")
    assert page.inner_text(".timeline .hits") == "1 of 2 spans"
    assert in_sight(page, "core 11, engine 5")
    page.keyboard.press("n")
    assert "transfer copy" in said(page)


def test_the_graph_has_the_shares_of_the_table_and_a_drag_is_no_click(open_page: Open) -> None:
    run = small_run()
    ops = tuple(replace(op, share=0.01) for op in run.summary.ops)
    edges = np.array([(0, 1), (1, 2), (2, 3), (0, 3)], GRAPH_EDGE)
    page = open_page(replace(run, summary=replace(run.summary, ops=ops), graph=edges), tab="#graph")
    nodes = page.locator("#panel-graph .node")
    assert "MatMul · 40 µs · 1.0%" in (nodes.nth(0).text_content() or "")
    assert page.locator("#panel-graph .edge").count() == 4
    box = nodes.nth(1).bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 20, box["y"] + 10)
    page.mouse.down()
    page.mouse.move(box["x"] + 90, box["y"] + 70, steps=5)
    page.mouse.up()
    assert page.is_visible("#panel-graph")
    moved = nodes.nth(1).bounding_box()
    assert moved is not None
    assert moved["x"] == pytest.approx(box["x"] + 70, abs=2)
    nodes.nth(1).click()
    page.wait_for_selector("#panel-timeline:visible")


def test_an_opened_layer_stays_where_it_was_looked_at(open_page: Open) -> None:
    names = tuple(f"/encoder/layer.{i // 10}/part{i % 10}/MatMul" for i in range(400))
    run = small_run(names)
    page = open_page(run, tab="#graph")
    layer = page.locator("#panel-graph .node", has_text="layer.5 (10)")
    layer.focus()
    page.keyboard.press("Enter")
    focused = page.evaluate("document.activeElement.getAttribute('aria-label')")
    assert focused.startswith("/encoder/layer.5/part0/MatMul")
    place = page.locator("#panel-graph .node:focus").bounding_box()
    around = page.locator(".graph-box").bounding_box()
    assert place is not None
    assert around is not None
    assert around["y"] <= place["y"] <= around["y"] + around["height"]


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
def test_nothing_stands_between_a_screen_reader_and_the_page(
    browser: Browser, tmp_path: Path, scheme: Literal["light", "dark"], width: int
) -> None:
    """Contrast, names, roles and order of headings, by axe-core."""
    run = small_run()
    report, compared = tmp_path / "report.html", tmp_path / "compare.html"
    with report.open("w", encoding="utf-8") as out:
        RunPage().render(run, small_findings(run), out)
    with compared.open("w", encoding="utf-8") as out:
        ComparePage(labels=("a", "b", "c", "d")).render((run, run, run, run), None, out)
    context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 900}, bypass_csp=True)
    context.add_init_script(path=AXE)
    page = context.new_page()
    page.goto(report.as_uri())
    page.wait_for_selector("html[data-ready=yes]", state="attached")
    for tab in TABS:
        page.click(f"#tab-{tab}")
        if tab == "timeline":
            page.fill(".timeline input", "sync")
            page.keyboard.press("Enter")
        settle(page)
        assert violations(page) == [], tab
    page.goto(compared.as_uri())
    page.wait_for_selector("html[data-ready=yes]", state="attached")
    assert violations(page) == []
    context.close()


def test_a_given_comparison_is_shown_with_its_verdict_and_its_matches(browser: Browser, tmp_path: Path) -> None:
    base = small_run()
    latency = replace(base.summary.latency, value_ns=base.summary.latency.known_ns + MATMUL_NS)
    slower = replace(base.summary.ops[0], wall_ns=MATMUL_NS * 2, busy_ns=MATMUL_NS * 2)
    more = replace(base.summary.ops[1], name="/added/Softmax", type="Tanh", op=len(base.ops))
    ops = (slower, *base.summary.ops[1:4], more)
    known = (*base.ops, OpInfo(more.name, more.type, "", "node 9"))
    new = replace(base, ops=known, summary=replace(base.summary, latency=latency, ops=ops))
    comparison = api.compare(base, new, fail_on=["latency>5%"])
    file = tmp_path / "compare.html"
    with file.open("w", encoding="utf-8") as out:
        ComparePage(labels=("before", "after")).render((base, new), comparison, out)
    with watched(browser.new_page()) as page:
        page.goto(file.as_uri())
        assert page.inner_text("h1") == "Fail: Latency +28.6%"
        assert "limit latency>5%" in page.inner_text(".verdict")
        rows = page.locator(".sortable tbody tr").all_inner_texts()
        assert rows[0].startswith(OPS[0])
        assert "+40 µs" in rows[0]
        added = next(row for row in rows if row.startswith("/added/Softmax"))
        assert "added" in added
        assert "+25 µs" in added
        assert "wall time of ops" in page.inner_text("body")
        with file.open("w", encoding="utf-8") as out:
            ComparePage(labels=("before", "after")).render((base, new), api.compare(base, new), out)
        page.goto(file.as_uri())
        assert page.inner_text("h1") == "Latency +28.6%"  # without a limit there is nothing to pass
        page.close()


HOSTILE = (
    "</script><script>document.title='taken'</script>",
    "<img src=x onerror=\"document.title='taken'\">",
    "\u202eevil\u202c\u0007 שלום 😀",
    "n" * 100_000,
)


def test_hostile_names_are_shown_and_do_nothing(open_page: Open) -> None:
    run = small_run(HOSTILE)
    run = replace(run, info=replace(run.info, network=HOSTILE[1], target=HOSTILE[2], model=HOSTILE[0]))
    page = open_page(run, small_findings(run))
    for tab in TABS:
        panel(page, tab)
        assert page.locator(f"#panel-{tab} img, #panel-{tab} script").count() == 0
    assert page.title() != "taken"
    text = "\n".join((page.inner_text("header"), panel(page, "overview"), panel(page, "operators")))
    assert HOSTILE[0] in text
    assert "\u202e" not in text
    assert "\ufffdevil\ufffd␇ שלום 😀" in text
    assert len(text) < 20_000
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    page.click("#tab-timeline")
    page.fill(".timeline input", "nnnn")
    page.keyboard.press("Enter")
    page.click("text=show all 100,000 characters")
    assert page.input_value("textarea") == HOSTILE[3]


@pytest.mark.parametrize("width", [375, 768])
def test_a_narrow_screen_never_scrolls_sideways(open_page: Open, width: int) -> None:
    run = small_run()
    page = open_page(run, small_findings(run), width=width)
    for tab in TABS:
        panel(page, tab)
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, tab


def test_light_and_dark_follow_the_system_and_the_button(open_page: Open) -> None:
    page = open_page(small_run())
    colour = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(colour)
    page.emulate_media(color_scheme="dark")
    wait_for(page, lambda: page.evaluate(colour) != light)
    page.click("[aria-label='Light or dark']")
    wait_for(page, lambda: page.evaluate(colour) == light)


def test_print_has_every_tab_but_the_canvas(open_page: Open) -> None:
    page = open_page(small_run(), small_findings(small_run()))
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    for chart in ("#panel-memory .uplot canvas", "#panel-roofline .uplot canvas"):  # drawn when their size is known
        wait_for(page, lambda chart=chart: page.locator(chart).count() == 1)
    visible = {tab: tab != "timeline" for tab in TABS}
    wait_for(page, lambda: {tab: page.is_visible(f"#panel-{tab}") for tab in TABS} == visible)
    page.emulate_media(media="screen")
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    wait_for(page, lambda: page.locator("[role=tabpanel]:visible").count() == 1)


def test_a_served_page_loads_the_spans_it_left_out(browser: Browser) -> None:
    run = small_run()
    out = StringIO()
    RunPage(most_rows=6, served=True).render(run, None, out)
    whole = rows_of(run.trace, most=None)
    asked: list[str] = []

    def answer(route: Route) -> None:
        path = route.request.url.split("/run/")[1].partition("#")[0]
        asked.append(path)
        match = re.fullmatch(r"spans/(\d+)\.bin", path)
        route.fulfill(body=out.getvalue(), content_type="text/html") if not match else route.fulfill(
            body=whole.piece(int(match[1])), content_type="application/octet-stream"
        )

    page = browser.new_page(viewport={"width": 1400, "height": 900})
    page.route("http://127.0.0.1:1/run/**", answer)
    page.goto("http://127.0.0.1:1/run/report.html#timeline")
    page.wait_for_selector(".timeline[data-painted]", state="attached")
    assert "spans are shown as" in page.inner_text(".timeline > .note")
    start, end = shown(page)
    box = page.locator("canvas.lanes").bounding_box()
    assert box is not None
    x = box["x"] + 200 + (10_000 + MATMUL_NS + SOFTMAX_NS // 2 - start) * (box["width"] - 200) / (end - start)
    expected = f"op softmax of {OPS[1]} on device 0, core 0, vector: from 50 µs for 25"

    def is_met() -> bool:
        """By a click somewhere from top to bottom; until the piece is there, spans are not told apart."""
        for y in range(int(box["y"]) + 24, int(box["y"]) + 160, 4):
            page.mouse.click(x, y)
            if said(page).startswith(expected):
                return True
        return False

    wait_for(page, is_met)
    assert "spans/0.bin" in asked
    page.close()


def test_two_runs_stand_side_by_side(browser: Browser, tmp_path: Path) -> None:
    base = small_run()
    slower = replace(base.summary.ops[0], busy_ns=MATMUL_NS * 2)
    latency = replace(base.summary.latency, value_ns=base.summary.latency.known_ns + MATMUL_NS)
    new = replace(base, summary=replace(base.summary, latency=latency, ops=(slower, *base.summary.ops[1:])))
    file = tmp_path / "compare.html"
    with file.open("w", encoding="utf-8") as out:
        ComparePage(labels=("before", "after")).render((base, new), None, out)
    with watched(browser.new_page()) as page:
        page.goto(file.as_uri())
        text = page.inner_text("body")
        assert "Latency +28.6%" in text
        assert "simulated" in text
        first = page.locator(".sortable tbody tr").first.inner_text()
        assert OPS[0] in first
        assert "+40 µs" in first
        page.close()
