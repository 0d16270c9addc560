"""A profile as JSON: `summary.json`, `findings.json` and `recording.json` of its run, in one object."""

from __future__ import annotations

from typing import TextIO

from ...core.json_files import write_json
from ...recording.finding import Findings
from ...recording.findings_file import findings_fields
from ...recording.recording import OpRecord, Recording
from ...recording.recording_file import op_fields, recording_fields
from ...recording.run import Run
from ...recording.summary_file import summary_fields

SCHEMA = "opscope.recorded/2"


class RecordedJson:
    """What `opscope profile --json` and `opscope import --json` print.

    At the top stand what scripts took from the forms of earlier versions: `metrics`, `nodes`, `ops` and `checks`.
    """

    suffix = ".json"

    def render(self, run: Run, findings: Findings, recording: Recording, out: TextIO) -> None:
        told = recording_fields(recording)
        ops = [op_fields(op) | _old_names(op) for op in recording.ops]
        fields = {
            "schema": SCHEMA,
            "summary": summary_fields(run.summary),
            "findings": findings_fields(findings),
            "unknown_ops": findings.unknown_ops,
            "recording": told,
            "metrics": told["metrics"],
            "nodes": ops,
            "ops": ops,
            "checks": told["checks"],
        }
        write_json(fields, out)


def _old_names(op: OpRecord) -> dict[str, object]:
    """Fields under the names that they had when backends and importers each had an op of their own."""
    return {
        "engine": op.engines[0] if op.engines else None,
        "origins": op.covers,
        "kernels": op.calls,
        "wall_ns": op.time_ns,
        "least_ns": op.low_ns,
        "most_ns": op.high_ns,
        "dram_read_bytes": op.outer_read_bytes,
        "dram_write_bytes": op.outer_write_bytes,
    }
