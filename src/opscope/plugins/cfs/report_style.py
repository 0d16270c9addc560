"""`opscope report --compat cfs`: flat counting, in the vendor's five tables."""

from __future__ import annotations

from typing import TextIO

from ...estimate.price import Machine
from ...estimate.report import Report
from ...graph.graph import Graph
from .flat import flat_report
from .tables import ReportTables


class FlatStyle:
    """Every operation priced like a MAC."""

    def report(self, graph: Graph, machine: Machine, *, sha256: str | None) -> Report:
        return flat_report(graph, machine, sha256=sha256)

    def render(self, report: Report, out: TextIO) -> None:
        ReportTables().render(report, out)
