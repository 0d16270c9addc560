"""Waiting for a page: what is read at once after an act may be from before it, on a slow machine."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Page

SECONDS = 60
_FRAMES = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"


def wait_for(page: Page, question: Callable[[], object]) -> None:
    """Until the answer is yes. Playwright's own waiting needs `eval`, which these pages forbid."""
    end = time.monotonic() + SECONDS
    while not question():
        assert time.monotonic() < end, f"nothing happened in {SECONDS} s"
        page.wait_for_timeout(50)


def settle(page: Page) -> None:
    """After the next picture: sizes were observed, charts drawn, places scrolled to."""
    page.evaluate(_FRAMES)


def resize(page: Page, width: int, height: int) -> None:
    """The window has the size, and what depends on it is laid out."""
    page.set_viewport_size({"width": width, "height": height})
    wait_for(page, lambda: page.evaluate("[innerWidth, innerHeight]") == [width, height])
    settle(page)
