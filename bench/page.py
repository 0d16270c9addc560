"""How smooth is the page of a Run with a million spans? First paint, and frames per second while it moves.

Headless Chromium draws without a graphics card here, so these are the figures of a slow machine. Frames are counted
between the pictures that the browser asks for; it never asks for more than 60 in a second.
"""

from __future__ import annotations

import shutil
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from measure import Row, main, progress
from opscope.program.program import COMMAND, OpInfo
from opscope.recording.run import CommandTable, Run, RunInfo
from opscope.recording.summary import Latency, Summary
from opscope.recording.trace import COUNTER, EDGE, NONE, Lane, SpanKind, Trace, blank_spans
from opscope.views.page.page import RunPage

if TYPE_CHECKING:
    from playwright.sync_api import Page

CORES, LANES = 16, 5
FRAMES = 60

# moves the view at every picture, and says how long each took
MOVE = """async ([frames, zoom]) => {
  const canvas = document.querySelector("canvas.lanes");
  const box = canvas.getBoundingClientRect();
  const turn = (i) => canvas.dispatchEvent(new WheelEvent("wheel", {
    bubbles: true, cancelable: true, clientX: box.left + box.width / 2, clientY: box.top + 100,
    deltaY: zoom ? (i % 20 < 10 ? -60 : 60) : (i % 20 < 10 ? 60 : -60), ctrlKey: zoom, shiftKey: !zoom }));
  const next = () => new Promise((done) => requestAnimationFrame(done));
  const times = [];
  let before = await next();
  for (let i = 0; i < frames; i++) {
    turn(i);
    const now = await next();
    times.push(now - before);
    before = now;
  }
  return times;
}"""


def many_spans(count: int) -> Run:
    """Cores with busy lanes: three spans of work for one of waiting."""
    lanes = CORES * LANES
    each = count // lanes
    rng = np.random.default_rng(0)
    spans = blank_spans(lanes * each)
    spans["lane"] = np.repeat(np.arange(lanes), each)
    length, gap = rng.integers(200, 20_000, (lanes, each)), rng.integers(0, 3_000, (lanes, each))
    end = np.cumsum(length + gap, axis=1)
    spans["start_ns"], spans["end_ns"] = (end - length).reshape(-1), end.reshape(-1)
    number = np.arange(len(spans))
    spans["kind"] = np.where(number % 4 == 3, SpanKind.WAIT, SpanKind.OP)
    spans["op"], spans["name"], spans["command"] = number // 40 % 600, number // 40 % 24, number
    for name in ("waits_on", "ucycles", "pcycles"):
        spans[name] = NONE
    named = tuple(Lane(0, i // LANES, f"engine {chr(97 + i % LANES)}") for i in range(lanes))
    trace = Trace(
        named, tuple(f"kernel {i}" for i in range(24)), spans, np.zeros(0, EDGE), (), np.zeros(0, COUNTER), "simulated"
    )
    ops = tuple(OpInfo(f"/model/layers.{i // 20}/part_{i % 20}/MatMul", f"Type{i % 20}", "", "") for i in range(600))
    info = RunInfo(
        (),
        "2020-01-01T00:00:00+00:00",
        "bench",
        None,
        "hand-made",
        "simulated",
        f"{count:,} spans",
        1,
        CORES,
        1,
        {},
        (0,),
    )
    commands = CommandTable(np.zeros(0, COMMAND), (), (), (), (), (), (), (), (), ())
    return Run(info, ops, commands, trace, Summary(Latency(int(end.max()), None, None, "simulated"), None, 1))


def measure(options: Namespace) -> Iterator[Row]:
    from playwright.sync_api import sync_playwright

    browser_path = shutil.which("chromium")
    if browser_path is None:
        progress("no chromium on the path: nothing measured")
        return
    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path, args=["--no-sandbox"])
        for count in (100_000, 1_000_000, 4_000_000):
            run, path = many_spans(count), Path(folder) / f"{count}.html"
            begin = perf_counter()
            with path.open("w", encoding="utf-8") as out:
                RunPage().render(run, None, out)
            yield Row(f"{count:,} spans: write", {"s": perf_counter() - begin, "MB": path.stat().st_size / 1e6})
            page = browser.new_page(viewport={"width": 1440, "height": 900})
            yield from _opened(page, path, count, options.rounds)
            page.close()
        browser.close()


def _opened(page: Page, path: Path, count: int, rounds: int) -> Iterator[Row]:
    paints, timelines = [], []
    for _ in range(rounds):
        page.goto("about:blank")
        begin = perf_counter()
        page.goto(f"{path.as_uri()}#timeline", wait_until="commit")
        page.wait_for_selector(".timeline[data-painted]", state="attached", timeout=60_000)
        timelines.append(perf_counter() - begin)
        paints.append(page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime") / 1e3)
    first, drawn = median(paints), median(timelines)
    yield Row(f"{count:,} spans: first paint", {"s": first}, "< 2 s", first < 2)
    yield Row(f"{count:,} spans: timeline drawn", {"s": drawn}, "< 2 s", drawn < 2)
    page.click("button:text-is('▾ ▸')")  # closed groups draw every lane of every core at once
    yield _moving(page, f"{count:,} spans: pan, all cores, whole run", zoom=False)
    page.click("button:text-is('▾ ▸')")
    for steps in (0, 6, 12):
        page.locator("canvas.lanes").focus()
        page.keyboard.press("0")
        for _ in range(steps):
            page.keyboard.press("w")
        yield _moving(page, f"{count:,} spans: pan, zoomed 1.5^{steps}", zoom=False)
        yield _moving(page, f"{count:,} spans: zoom around 1.5^{steps}", zoom=True)


def _moving(page: Page, what: str, *, zoom: bool) -> Row:
    times = page.evaluate(MOVE, [FRAMES, zoom])
    rate = 1e3 / (sum(times) / len(times))
    painted = int(page.get_attribute(".timeline", "data-painted") or 0)
    values = {"frames/s": rate, "slowest ms": max(times), "rectangles": painted}
    return Row(what, values, "≥ 30 frames/s", rate >= 30)


if __name__ == "__main__":
    main(str(__doc__).splitlines()[0], measure)
