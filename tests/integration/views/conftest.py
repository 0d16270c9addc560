"""What tests of pages in a real browser have in common."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support.viewers.chromium import chromium
from support.viewers.run_page import Open, page_opener

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture
def open_page(browser: Browser, tmp_path: Path) -> Iterator[Open]:
    """`open_page(run, findings)` writes the page of a run and opens it."""
    with page_opener(browser, tmp_path) as opened:
        yield opened
