"""Report → Run, analysed: what `report --format html` shows and `profile --backend estimate` records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ..estimate.recorded import estimated, suggested
from ..estimate.report import Report
from .analysing import findings_for
from .record import Recorded, analysis_of, recorded


def analysed_run(report: Report, folder: Path | None = None, *, command: Sequence[str], created: str) -> Recorded:
    """The Run of a report, in its folder where there is one; what the report suggests are the changes tried."""
    recording = estimated(report)
    analysis = analysis_of(recording, command=command, created=created, sha256=report.model.sha256)
    findings = replace(findings_for(analysis, recording), trials=suggested(report))
    return recorded(analysis, findings, recording, folder)
