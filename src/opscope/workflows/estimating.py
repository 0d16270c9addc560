"""Report → Run, analysed: what `report --format html` shows and `profile --backend estimate` records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..estimate.recorded import estimated, suggested
from ..estimate.report import Report
from .analysing import findings_for
from .record import Recorded, run_of


def analysed_run(report: Report, *, command: Sequence[str], created: str) -> Recorded:
    """The Run of a report; what the report suggests are the changes tried."""
    recording = estimated(report)
    run = run_of(recording, command=command, created=created, sha256=report.model.sha256)
    return Recorded(run, replace(findings_for(run, recording), trials=suggested(report)), recording)
