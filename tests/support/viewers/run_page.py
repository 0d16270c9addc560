"""The page of a Run, written and opened in Chromium, and what tests read off it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from opscope.recording.finding import Findings
from opscope.recording.run import Run
from opscope.views.page.page import RunPage

from .chromium import watched
from .waiting import settle

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

TABS = ("overview", "timeline", "operators", "memory", "roofline", "findings", "graph")
Open = Callable[..., "Page"]


@contextmanager
def page_opener(browser: Browser, folder: Path) -> Iterator[Open]:
    """Writes a page, opens it, and at the end holds it to silence on the console and on the network."""
    context = browser.new_context(viewport={"width": 1400, "height": 900})
    with watched(context.new_page()) as page:

        def opened(run: Run, findings: Findings | None = None, *, width: int = 1400, tab: str = "") -> Page:
            file = folder / "report.html"
            with file.open("w", encoding="utf-8") as out:
                RunPage().render(run, findings, out)
            page.set_viewport_size({"width": width, "height": 900})
            page.goto(file.as_uri() + tab)
            page.wait_for_selector("html[data-ready=yes]", state="attached")
            return page

        yield opened
    context.close()


def panel(page: Page, tab: str) -> str:
    """The words of a tab, once it is drawn."""
    page.click(f"#tab-{tab}")
    settle(page)
    return page.inner_text(f"#panel-{tab}")


def said(page: Page) -> str:
    """What a screen reader is told of the selection."""
    return page.inner_text("#timeline-said")
