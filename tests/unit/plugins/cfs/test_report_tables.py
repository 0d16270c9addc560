"""The flat report as tables, against every table line of the seed document."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest

from build import Sketch, engine, machine, resnet
from opscope.estimate.price import Machine
from opscope.graph.graph import Graph
from opscope.machine import catalogue as targets
from opscope.plugins.cfs.flat import flat_report
from opscope.plugins.cfs.tables import ReportTables

SEED = Path(__file__).parents[4] / "shared" / "seeds" / "004_adi_resource_profiling_report.md"


def shown(graph: Graph, chosen: Machine | None = None) -> str:
    out = StringIO()
    ReportTables().render(flat_report(graph, chosen or Machine(targets.load("cfs-sample")), sha256=None), out)
    return out.getvalue()


def sample() -> str:
    return shown(replace(resnet(), source="/models/resnet.tflite"))


def printed(document: str) -> list[str]:
    """Lines of the sample outputs that are tables or headings, less rules and what the document says may differ."""
    blocks = re.findall(r"```sh\n(.*?)```", document, flags=re.DOTALL)
    lines = [line.strip() for block in blocks for line in block.splitlines()]
    tables = [line for line in lines if line.startswith(("|", "="))]
    return [line for line in tables if not re.fullmatch(r"\|[-| ]+-[-| ]*\|", line) and "Model Path" not in line]


def test_every_table_line_of_the_seed_document_is_printed() -> None:
    if not SEED.exists():
        pytest.skip(f"the seed document is not here: {SEED}")
    wanted = [
        line.replace("== MODEL SUMMARY", "=== MODEL SUMMARY") if line.startswith("== ") else line
        for line in printed(SEED.read_text(encoding="utf-8"))
    ]
    assert len(wanted) > 90
    found = iter(sample().splitlines())
    for line in wanted:  # in the order of the document: each is looked for after the one before
        assert line in found, line


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
