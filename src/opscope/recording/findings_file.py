"""`findings.json` of a Run, read back: the same findings that were written."""

from __future__ import annotations

import msgspec

from ..core.errors import UsageError
from ..core.json_files import decode_json
from ..core.provenance import Provenance
from .finding import (
    OTHER_BOUND,
    Coverage,
    EngineUse,
    Finding,
    Findings,
    Gap,
    LawCheck,
    OpSlack,
    PathStep,
    Rollup,
    RooflineOp,
    Trial,
    WaitFor,
)
from .summary import Share

SCHEMA = "opscope.findings/1"
MOST = 1 << 50  # nanoseconds, as in the tables of a Run


class _Head(msgspec.Struct):
    schema: str
    key: str | None = None


class _Verdict(msgspec.Struct):
    bound: str | None
    wall_ns: int | None
    breakdown: tuple[Share, ...]


class _File(msgspec.Struct):
    """The file, field by field; unknown is null."""

    provenance: Provenance
    verdict: _Verdict
    findings: tuple[Finding, ...]
    trials: tuple[Trial, ...]
    path: tuple[PathStep, ...]
    slack: tuple[OpSlack, ...]
    rollups: tuple[Rollup, ...]
    roofline: tuple[RooflineOp, ...]
    coverage: Coverage | None
    gaps: tuple[Gap, ...]
    waits: tuple[WaitFor, ...]
    checks: tuple[LawCheck, ...]
    notes: tuple[str, ...]
    engines: tuple[EngineUse, ...]


_HEAD, _FILE = msgspec.json.Decoder(_Head), msgspec.json.Decoder(_File)


def key_of(raw: bytes, *, source: str) -> str | None:
    """What the findings were made of, as the file says; None: it does not say."""
    head = decode_json(raw, _HEAD, source=source)
    return head.key if head.schema == SCHEMA else None


def decode_findings(raw: bytes, *, spans: int, source: str) -> Findings:
    """The findings of a Run with so many spans."""
    file = decode_json(raw, _FILE, source=source)
    rows = [row for found in file.findings for row in found.spans]
    rows += [step.span for step in file.path if step.span is not None]
    if not all(0 <= row < spans for row in rows):
        raise UsageError(f"{source}: names a row that spans.parquet does not have; expected rows 0 to {spans - 1}")
    if not all(0 <= step.start_ns <= step.end_ns <= MOST for step in file.path):
        raise UsageError(f"{source}: a step of the path has impossible times; expected 0 <= start_ns <= end_ns")
    parts = {name: getattr(file, name) for name in _File.__struct_fields__ if name != "verdict"}
    verdict = file.verdict
    return Findings(verdict.bound or OTHER_BOUND, verdict.breakdown, verdict.wall_ns, **parts)
