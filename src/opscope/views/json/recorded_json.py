"""A profile as JSON: `summary.json` and `findings.json` of its run, in one object."""

from __future__ import annotations

from typing import TextIO

import msgspec

from ...recording.finding import Findings
from ...recording.findings_json import findings_fields
from ...recording.run import Run
from ...recording.summary_json import summary_fields

SCHEMA = "opscope.recorded/1"


class RecordedJson:
    """What `opscope profile --json` prints."""

    suffix = ".json"

    def render(self, run: Run, findings: Findings, out: TextIO) -> None:
        fields = {"schema": SCHEMA, "summary": summary_fields(run.summary), "findings": findings_fields(findings)}
        out.write(msgspec.json.format(msgspec.json.encode(fields), indent=2).decode() + "\n")
