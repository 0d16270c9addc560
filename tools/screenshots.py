"""Draw the pictures of docs/page.md, docs/reports.md and docs/fleet.md again: `make screenshots`.

The Runs and the store are made on the spot.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from opscope import api
from opscope.cli import main
from opscope.fleet import verbs
from opscope.fleet.spec import Spec
from opscope.machine.catalogue import catalogue
from opscope.views.page.compare_page import ComparePage
from opscope.views.page.page import RunPage

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

IMAGES = Path(__file__).parents[1] / "docs" / "images"
CREATED = "2026-01-01T00:00:00+00:00"  # the same pictures from the same code
WIDE, TALL, PHONE = (1440, 900), (1440, 1500), (390, 844)
TABS = ("overview", "timeline", "operators", "memory", "roofline", "findings", "graph")

Act = Callable[["Page"], None]


def make_pages() -> None:
    """A two-layer BERT on one core and on two, profiled in the current folder; compare.html; and an estimate."""
    size = ["--layers", "2", "--batch", "8", "--seq", "128", "--precision", "f16", "--no-weights"]
    done = main(["zoo", "bert-base", *size, "-o", "bert.onnx"])
    runs = []
    for cores in (1, 2):
        folder = f"bert-{cores}"
        api.profile("bert.onnx", "aic100-std", options={"cores": cores}, run=folder, created=CREATED)
        runs.append(api.analyze(folder)[0])
    with Path("compare.html").open("w", encoding="utf-8") as out:
        ComparePage(labels=("1 core", "2 cores")).render(runs, api.compare(*runs), out)
    done = done or main(["zoo", "cifar-resnet", "--precision", "int8", "-o", "cifar.tflite"])
    if done:
        sys.exit(done)
    recorded = api.report_run(api.report("cifar.tflite", "cfs-sample"))
    with Path("report.html").open("w", encoding="utf-8") as out:
        RunPage().render(recorded.run, recorded.findings, out)
    api.profile("cifar.tflite", "max32690-cm4", run="cifar", created=CREATED)


def make_store() -> None:
    """Small and large networks on every target of the catalogue, before and after one of them was widened."""
    Path("models").mkdir()
    for name in ("mobilenetv2", "resnet50", "sample-resnet"):
        main(["zoo", name, "--no-weights", "-o", f"models/{name}.onnx"])
    for name in ("cifar-resnet", "conv-small", "fc", "kws-cnn"):
        main(["zoo", name, "--format", "tflite", "--precision", "int8", "-o", f"models/{name}.tflite"])
    axes = {"target": tuple(catalogue()), "backend": ("estimate",), "batch": (1, 4)}
    for day, commit, channels in ((1, "4f2a91c", "64"), (2, "77d01be", "96")):
        wide = ["--format", "tflite", "--precision", "int8", "--channels", channels]
        main(["zoo", "kws-cnn", *wide, "-o", "models/kws-cnn.tflite"])
        created = f"2026-01-0{day}T00:00:00+00:00"
        verbs.sweep(Spec(("models/*",), Path(), axes), "fleet.store", commit=commit, created=created)
    verbs.store_page("fleet.store", "fleet.html")


def search(page: Page) -> None:
    """Selects a product of the second layer, with its dependencies, in the middle of its neighbours."""
    page.fill(".timeline input", "layer.1/attention/self/MatMul")
    for _ in range(20):
        page.keyboard.press("Enter")
        if re.match(r"op \S+ of .* HMX:", page.inner_text("#timeline-said")):
            break
    page.click("#tab-timeline")
    page.keyboard.press("f")
    for _ in range(6):
        page.keyboard.press("s")


def path(page: Page) -> None:
    page.keyboard.press("c")


def arena(page: Page) -> None:
    page.locator("canvas.arena").evaluate("canvas => canvas.closest('section').scrollIntoView()")
    page.mouse.wheel(0, -60)  # the head of the page stays in front


def nothing(_: Page) -> None:
    pass


@contextmanager
def opened(browser: Browser, file: Path, size: tuple[int, int], *, dark: bool = False) -> Iterator[Page]:
    context = browser.new_context(
        viewport={"width": size[0], "height": size[1]},
        color_scheme="dark" if dark else "light",
        device_scale_factor=2 if size == PHONE else 1,
    )
    page = context.new_page()
    page.goto(file.as_uri())
    page.wait_for_selector("html[data-ready=yes]", state="attached")
    yield page
    context.close()


def take(page: Page, tab: str, name: str, act: Act = nothing) -> None:
    if tab:
        page.click(f"#tab-{tab}")
    page.wait_for_timeout(300)
    act(page)
    page.mouse.move(0, 0)
    page.wait_for_timeout(300)
    target = IMAGES / f"{name}.png"
    page.screenshot(path=target)
    sys.stdout.write(f"wrote {target.relative_to(Path(__file__).parents[1])}\n")


def take_all(browser: Browser, folder: Path) -> None:
    report = folder / "bert-2" / "report.html"
    for tab in TABS:
        with opened(browser, report, WIDE) as page:
            take(page, tab, f"page-{tab}", search if tab == "timeline" else nothing)
    with opened(browser, report, WIDE) as page:
        take(page, "timeline", "page-critical-path", path)
    with opened(browser, report, WIDE, dark=True) as page:
        take(page, "timeline", "page-dark")
    with opened(browser, report, PHONE) as page:
        take(page, "overview", "page-phone")
    with opened(browser, folder / "compare.html", WIDE) as page:
        take(page, "", "page-compare")
    with opened(browser, folder / "cifar" / "report.html", WIDE) as page:
        take(page, "memory", "page-arena", arena)
    for tab in ("map", "tradeoffs"):
        with opened(browser, folder / "fleet.html", WIDE) as page:
            take(page, tab, f"fleet-{tab}")
    with opened(browser, folder / "report.html", TALL) as page:
        take(page, "overview", "report")
    with opened(browser, folder / "report.html", WIDE) as page:
        take(page, "operators", "report-layers")


def run() -> None:
    from playwright.sync_api import sync_playwright

    path = shutil.which("chromium")
    if path is None:
        sys.exit("screenshots: no chromium on the path; `apt-get install chromium` adds it")
    IMAGES.mkdir(exist_ok=True)
    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        os.chdir(folder)
        make_pages()
        make_store()
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        take_all(browser, Path(folder))
        browser.close()
        os.chdir("/")


if __name__ == "__main__":
    run()
