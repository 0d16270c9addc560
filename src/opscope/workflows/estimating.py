"""Report → Run, analysed: what `report --format html` shows and `profile --backend estimate` records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..analysis.analyse import analyse
from ..analysis.run_totals import with_breakdown
from ..estimate.recorded import estimated_run, suggested
from ..estimate.report import Report
from ..program.program import Program
from ..recording.finding import Findings
from ..recording.run import Run


def analysed_run(report: Report, *, command: Sequence[str], created: str) -> tuple[Run, Program, Findings]:
    """The Run of a report; what the report suggests are the changes tried."""
    run, program = estimated_run(report, command=tuple(command), created=created)
    run = with_breakdown(run)
    return run, program, replace(analyse(run), trials=suggested(report))
