"""Debian's Chromium, driven by Playwright; no browser is downloaded."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

PATH = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
MISSING = (
    "no Chromium on the path; `apt-get install chromium` adds it"
    if PATH is None
    else "no Playwright; the extra [dev] has it"
    if find_spec("playwright") is None
    else ""
)
OWN = ("file:", "data:", "blob:", "about:")  # addresses that never leave the machine


@contextmanager
def chromium() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=PATH, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def watched(page: Page) -> Iterator[Page]:
    """Whatever is said on the console, thrown, or asked of the network fails the test."""
    seen: list[str] = []
    page.on("console", lambda message: seen.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: seen.append(f"error: {error}"))
    page.on("dialog", lambda dialog: (seen.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    page.on("request", lambda request: request.url.startswith(OWN) or seen.append(f"request: {request.url[:200]}"))
    yield page
    assert seen == []
