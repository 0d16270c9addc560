"""The flat report as tables, against the figures of every table of the vendor's sample report."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from pathlib import Path

from opscope.estimate.price import Machine
from opscope.graph.graph import Graph
from opscope.machine import catalogue as targets
from opscope.plugins.cfs.flat import flat_report
from opscope.plugins.cfs.tables import ReportTables
from support.build import Sketch, engine, machine, resnet

PUBLISHED = Path(__file__).parents[3] / "published" / "resource_report.csv"
Cells = tuple[str, ...]


def shown(graph: Graph, chosen: Machine | None = None) -> str:
    out = StringIO()
    ReportTables().render(flat_report(graph, chosen or Machine(targets.load("cfs-sample")), sha256=None), out)
    return out.getvalue()


def sample() -> str:
    return shown(replace(resnet(), source="/models/resnet.tflite"))


def published() -> list[tuple[str, Cells]]:
    """Section and cells of every row, in the order of the sample report."""
    with PUBLISHED.open(encoding="utf-8", newline="") as file:
        return [(section, tuple(cells)) for section, *cells in list(csv.reader(file))[1:]]


def printed(report: str) -> list[tuple[str, Cells]]:
    """The same of a printed report; a cell that goes on in the next line is joined."""
    found: list[tuple[str, Cells]] = []
    section = ""
    for line in report.splitlines():
        cells = tuple(cell.strip() for cell in line.strip("|").split("|"))
        if not line.startswith("|"):
            section = line.strip("= ") or section
        elif re.fullmatch(r"[-| ]*-[-| ]*", line) is None:
            goes_on = bool(found) and found[-1][0] == section and (not cells[0] or not cells[1] or not found[-1][1][0])
            before = found.pop()[1] if goes_on else ("",) * len(cells)
            found.append((section, tuple(f"{one} {more}".strip() for one, more in zip(before, cells, strict=True))))
    return found


def is_shown(wanted: Cells, found: Cells) -> bool:
    """Cells of a row in order; of a suggestion its figures, and the words of a layer's are left out."""
    if wanted[0].endswith(" Suggestion"):
        return wanted[0] == found[0] and wanted[1] in found[1]
    return wanted == found[: len(wanted)]


def test_every_figure_of_the_published_report_is_printed() -> None:
    found = iter(printed(sample()))
    assert len(published()) == 42
    for section, cells in published():  # in order: each is looked for after the one before
        assert any(where == section and is_shown(cells, row) for where, row in found), (section, cells)


def test_the_whole_report_of_the_sample_network(golden: Callable[[str, str], None]) -> None:
    golden("flat_report/expected.txt", sample())


def test_what_the_target_does_not_price_is_a_dash_never_zero() -> None:
    text = shown(resnet(), Machine(targets.load("aic100-std")))
    assert "| Estimated Power      | -   " in text
    unpriced = shown(resnet(), machine(engine(macs={"i4": 1})))
    assert "| Total Cycles         | -   " in unpriced
    assert "| Estimated Latency    | -   " in unpriced
    row = next(line for line in unpriced.splitlines() if line.startswith("| 4 (ADD)"))
    assert [cell.strip() for cell in row.split("|")[3:7]] == ["-", "-", "-", "-"]


def test_every_line_of_a_table_is_equally_wide_whatever_the_names_are() -> None:
    draw = Sketch("evil")
    long = draw.op("custom", (draw.input(8),), (8,), type="A very long | operator\x1b[2J name that goes on")
    text = shown(draw.graph(long))
    assert "\x1b" not in text
    for block in text.split("\n\n"):
        assert len({len(line) for line in block.splitlines() if line.startswith("|")}) == 1


def test_memory_that_is_missing_is_listed_below_the_table() -> None:
    draw = Sketch()
    text = shown(draw.graph(draw.same("relu", draw.input(5880 * 256))))
    assert "Memory Issues:\n    • Peak RAM usage (5880.0 KB) exceeds available RAM (1024.0 KB)\n" in text
    assert (
        "Memory Recommendations:\n    • URGENT: Model requires 4856 KB (474%) more RAM than available\n"
        "    • Evaluate quantization potential with representative dataset\n"
    ) in text
