"""The memory tab of an estimate in a real browser: the map is the plan of the resource report, block by block."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from opscope import api
from opscope.estimate.build_report import build_report
from opscope.estimate.recorded import estimated
from opscope.estimate.report import Report
from opscope.recording.build import to_run
from opscope.recording.run import Run
from opscope.zoo import Recipe, make
from support.build import machine, mobilenet
from support.estimate.arena_blocks import evenly, planned
from support.viewers.chromium import MISSING
from support.viewers.run_page import Open, said
from support.viewers.waiting import wait_for

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

pytestmark = pytest.mark.skipif(bool(MISSING), reason=MISSING)

LEFT, BOTTOM = 58, 20  # pixels that the axes take


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    model = tmp_path_factory.mktemp("estimated") / "cifar.tflite"
    make(Recipe("cifar-resnet", format="tflite", precision="int8"), model)
    return api.report(model, "max32690-cm4", advise=False)


def run_of(report: Report) -> Run:
    return to_run(estimated(report), command=(), created="2026-01-01T00:00:00+00:00", sha256=None)


def peak_table(page: Page) -> list[list[str]]:
    rows = page.locator("#panel-memory section", has=page.locator("canvas.arena")).locator("tbody tr")
    return [[cell.strip() for cell in row.split("\t")] for row in rows.all_inner_texts()]


def canvas_of(page: Page) -> tuple[Locator, float, float]:
    canvas = page.locator("canvas.arena")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    assert box is not None
    return canvas, box["width"] - LEFT, box["height"] - BOTTOM


def test_the_tensors_at_the_peak_are_those_of_the_report_and_scratch(open_page: Open, report: Report) -> None:
    page = open_page(run_of(report), tab="#memory")
    alive = [
        [block for block in report.arena if block.first <= step <= block.last] for step in range(report.arena_steps)
    ]
    expected = [block.name for block in max(alive, key=lambda blocks: sum(block.size_bytes for block in blocks))]
    assert {tensor.name for tensor in report.memory.peak_tensors} <= set(expected)
    assert sorted(row[0] for row in peak_table(page)) == sorted(expected)
    assert report.memory.peak_bytes == 49_728 + 5_268  # what is planned, and what the interpreter keeps
    assert "At the peak, 53.71 KB at " in page.inner_text("#panel-memory")
    assert "no counter of bytes" not in page.inner_text("#panel-memory")
    assert page.locator("#panel-memory select").count() == 0  # there is one core to choose from


def test_every_block_that_can_be_pointed_at_is_where_the_plan_puts_it(open_page: Open, report: Report) -> None:
    page = open_page(run_of(evenly(report)), tab="#memory")
    canvas, width, height = canvas_of(page)
    whole, top = len(report.layers) * 1000, report.memory.peak_bytes
    pointed = 0
    for address, size, start, end in planned(report):
        if size / top * height < 4:  # pixels
            continue
        x, y = (start + end) / 2 / whole, 1 - (address + size / 2) / top
        canvas.hover(position={"x": LEFT + x * width, "y": y * height})
        ns = [f"{moment / 1000:g} µs" if moment else "0 ns" for moment in (start, end)]
        told = f" at 0x{address:x}, {ns[0]} to {ns[1]}"
        wait_for(page, lambda told=told: page.inner_text(".arena + .note").endswith(told))
        pointed += 1
    assert pointed >= len(report.layers) - 4  # the last ones are vectors of some bytes


def test_an_input_leads_to_its_mark_in_the_timeline(open_page: Open, report: Report) -> None:
    page = open_page(run_of(evenly(report)), tab="#memory")
    canvas, width, height = canvas_of(page)
    address, size, *_ = next(block for block in planned(report) if block[1] == 3 * 32 * 32)
    y = 1 - (address + size / 2) / report.memory.peak_bytes
    canvas.click(position={"x": LEFT + 0.5 / len(report.layers) * width, "y": y * height})
    wait_for(page, lambda: page.is_visible("#panel-timeline") and said(page) != "Nothing is selected.")
    assert "input" in said(page)


def test_holes_between_blocks_are_told(open_page: Open) -> None:
    found = build_report(mobilenet(), machine(), sha256=None, advise=False)
    page = open_page(run_of(found), tab="#memory")
    told = page.inner_text("#panel-memory")
    assert "At the peak, 54 KB at " in told
    assert "RAM is needed up to the end of the highest block, 72 KB: 18 KB below it are free at the peak" in told
