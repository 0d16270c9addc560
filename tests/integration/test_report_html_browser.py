"""The HTML report in a real browser: its script runs under its own security policy, sorts, filters and fits a phone."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from io import StringIO
from pathlib import Path

import pytest

from opscope import api
from opscope.views.report_html import ReportHtml
from opscope.views.report_html_layers import MOST_HTML_ROWS
from opscope.zoo import Recipe, make

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on the path; `apt-get install chromium` adds it")

CHECK = """
<script>
addEventListener("load", () => {
  const seen = {};
  const column = (css) => Array.from(document.querySelectorAll(`#layer-table tbody td.${css}`));
  const header = (css) => document.querySelector(`#layer-table th.${css}`);
  const filter = document.getElementById("filter");
  const type = (text) => { filter.value = text; filter.dispatchEvent(new Event("input")); };
  seen.overflow = document.documentElement.scrollWidth - document.documentElement.clientWidth;
  seen.width = innerWidth;
  seen.rows = column("index").length;
  header("latency").querySelector("button").click();
  seen.slowest = column("index").slice(0, 3).map((cell) => Number(cell.textContent));
  seen.sort = header("latency").getAttribute("aria-sort");
  header("latency").querySelector("button").click();
  seen.again = header("latency").getAttribute("aria-sort");
  type("FILTER");
  seen.filtered = document.getElementById("shown").textContent;
  seen.operators = [...new Set(column("operator").map((cell) => cell.textContent))];
  type("");
  document.getElementById("theme").click();
  seen.theme = document.documentElement.dataset.theme;
  const pane = document.querySelector(".tall");
  pane.scrollTop = pane.scrollHeight;
  setTimeout(() => {
    seen.last = Number(column("index").at(-1).textContent);
    parent.postMessage(JSON.stringify(seen), "*");
  }, 300);
});
</script>
"""

# a window is never narrower than 500 pixels; a frame may be as narrow as a phone
FRAME = """<!DOCTYPE html><body>
<script>addEventListener("message", (event) => { document.body.dataset.check = event.data; });</script>
<iframe src="checked.html" style="width:WIDTHpx;height:800px;border:0"></iframe>
"""


def browse(page: Path, profile: Path) -> tuple[str, list[str]]:
    """The document after its scripts ran, and what they wrote to the console."""
    assert CHROMIUM is not None
    options = (
        "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
        "--disable-background-networking", "--disable-component-update", f"--user-data-dir={profile}",
        "--enable-logging=stderr", "--virtual-time-budget=3000", "--window-size=1400,900", "--dump-dom",
    )  # fmt: skip
    done = subprocess.run([CHROMIUM, *options, page.as_uri()], capture_output=True, text=True, timeout=60, check=True)
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def checked(page: Path, tmp_path: Path, *, filter_text: str, width: int) -> dict[str, object]:
    """What a script put into a copy of the page finds; the copy alone may run it."""
    known_hash = "script-src &#39;sha256-[^;]+&#39;"
    text = re.sub(known_hash, "script-src 'unsafe-inline'", page.read_text(encoding="utf-8"))
    text = text.replace("</body>", CHECK.replace("FILTER", filter_text) + "</body>")
    (tmp_path / "checked.html").write_text(text, encoding="utf-8")
    frame = tmp_path / "frame.html"
    frame.write_text(FRAME.replace("WIDTH", str(width)), encoding="utf-8")
    document, console = browse(frame, tmp_path / "profile")
    assert console == []
    found = re.search('data-check="([^"]+)"', document)
    assert found is not None
    answer = json.loads(html.unescape(found[1]))
    assert isinstance(answer, dict)
    return answer


def page_for(recipe: Recipe, target: str, folder: Path) -> tuple[Path, list[float]]:
    model = folder / f"model.{recipe.format}"
    make(recipe, model)
    report = api.report(model, target, advise=False)
    out = StringIO()
    ReportHtml().render(report, out)
    page = folder / "report.html"
    page.write_text(out.getvalue(), encoding="utf-8")
    return page, [layer.latency_s or 0.0 for layer in report.layers]


def test_the_page_runs_under_its_own_policy_without_a_word_on_the_console(tmp_path: Path) -> None:
    page, _ = page_for(Recipe("kws-cnn", format="tflite"), "max32690-cm4", tmp_path)
    document, console = browse(page, tmp_path / "profile")
    assert console == []
    assert re.search('<html[^>]+class="ready"', document)


def test_sorting_and_filtering_work_and_a_phone_needs_no_sideways_scrolling(tmp_path: Path) -> None:
    page, times = page_for(Recipe("cifar-resnet", format="tflite"), "cfs-sample", tmp_path)
    seen = checked(page, tmp_path, filter_text="conv_2d", width=375)
    assert (seen["width"], seen["overflow"]) == (375, 0)
    assert seen["rows"] == len(times)
    assert seen["slowest"] == sorted(range(len(times)), key=lambda i: -times[i])[:3]
    assert (seen["sort"], seen["again"]) == ("descending", "ascending")
    assert seen["operators"] == ["CONV_2D"]
    assert re.fullmatch(rf"\d+ of {len(times)} layers", str(seen["filtered"]))
    assert seen["theme"] in ("dark", "light")


def test_thousands_of_layers_are_windowed_and_still_sort(tmp_path: Path) -> None:
    recipe = Recipe("llm-decoder", precision="f16", weights=False, options={"layers": 40})
    page, times = page_for(recipe, "max32690-cm4", tmp_path)
    assert len(times) > MOST_HTML_ROWS
    seen = checked(page, tmp_path, filter_text="matmul", width=1280)
    assert isinstance(seen["rows"], int)
    assert seen["rows"] < 100
    assert seen["slowest"] == sorted(range(len(times)), key=lambda i: -times[i])[:3]
    assert seen["last"] == max(range(len(times)), key=lambda i: times[i] + i * 1e-15)
