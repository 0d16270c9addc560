"""The report as Markdown: tables that stay tables whatever the names are."""

from __future__ import annotations

import re
from io import StringIO

from opscope.estimate.build_report import build_report
from opscope.estimate.price import Machine
from opscope.graph.graph import Graph
from opscope.machine import catalogue as targets
from opscope.views.text.report_markdown import ReportMarkdown
from support.build import Sketch, engine, machine, resnet


def shown(graph: Graph, chosen: Machine, *, top: int | None = 15) -> str:
    out = StringIO()
    ReportMarkdown(top=top).render(build_report(graph, chosen, sha256=None), out)
    return out.getvalue()


def tables(text: str) -> list[list[str]]:
    return [block.splitlines() for block in text.split("\n\n") if block.startswith("|")]


def cells(row: str) -> int:
    return len(re.findall(r"(?<!\\)\|", row)) - 1


def test_every_row_of_a_table_has_the_cells_of_its_header() -> None:
    for table in tables(shown(resnet(), Machine(targets.load("cfs-sample")))):
        assert len({cells(row) for row in table}) == 1


def test_the_headline_says_that_figures_are_estimated() -> None:
    text = shown(resnet(), Machine(targets.load("cfs-sample")))
    assert text.startswith("# resnet on Sample profile")
    assert "All figures are **estimated**." in text
    assert "| Layers | 37 accelerated, 17 on the CPU |" in text
    assert "## Layers (15 slowest of 54)" in text
    assert "**no**" not in text.split("## Layers")[1]


def test_memory_that_does_not_fit_is_said_in_the_table() -> None:
    text = shown(resnet(), Machine(targets.load("cfs-sample")))
    assert re.search(r"\| flash \| constants \| 5\.65 MB \| 1\.00 MB \| 565\.2% \| .*no.* \|", text)


def test_names_cannot_act_as_markup() -> None:
    draw = Sketch("a|b *c* <script>`x`")
    text = shown(draw.graph(draw.dense(draw.input(1, 8), 8, name="x | y\n# z")), machine())
    assert "a&#124;b \\*c\\* &lt;script&gt;\\`x\\`" in text
    assert "x &#124; y\\\\n&#35; z" in text
    for table in tables(text):
        assert len({cells(row) for row in table}) == 1


def test_unknown_is_a_dash() -> None:
    draw = Sketch()
    text = shown(draw.graph(draw.op("custom", (draw.input(8),), (8,), type="MyOp")), machine())
    assert "| Latency | — – latency is withheld: layer 0 (MyOp) has no known cost" in text
    assert "| Energy | — |" in text
    row = next(line for line in text.splitlines() if "MyOp |" in line)
    assert row.count("—") >= 5


def test_all_layers_are_shown_in_order_when_asked() -> None:
    text = shown(resnet(), machine(engine()), top=None)
    rows = [row for table in tables(text) for row in table if re.match(r"\| \d+ \|", row)]
    assert [int(row.split("|")[1]) for row in rows] == list(range(54))
