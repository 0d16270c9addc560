"""Rules of accessibility, asked of a page by axe-core."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Page

AXE = Path(__file__).parents[3] / "web" / "node_modules" / "axe-core" / "axe.min.js"
NO_AXE = "" if AXE.exists() else "no axe-core; `npm ci --prefix web` brings it"


def violations(page: Page, *, only: tuple[str, ...] = ()) -> list[str]:
    """What the page, into which axe-core was put, breaks; of all rules, or of those named."""
    options = {"resultTypes": ["violations"]} | ({"runOnly": list(only)} if only else {})
    found = page.evaluate("options => axe.run(document, options)", options)["violations"]
    return [f"{rule['id']}: {node['target']} {node['html'][:120]}" for rule in found for node in rule["nodes"]]
