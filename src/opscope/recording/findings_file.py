"""`findings.json` of a Run, both ways, and whether it is of this very Run. None is null.

What was analysed once is not analysed again: the file holds a key of all that the analysis read and of the code that
did it. Times of files say nothing here: they change when a Run is copied, and do not when its tables are exchanged by
another tool within a tick of the clock.
"""

from __future__ import annotations

from dataclasses import asdict
from io import StringIO
from pathlib import Path
from typing import TextIO

import msgspec

from .. import __version__
from ..core.errors import ProfilerError, UsageError
from ..core.files import sha256_of
from ..core.json_files import PRODUCER, decode_json, write_json
from ..core.keys import code_of, digest_of
from ..core.provenance import Provenance
from .bounds_file import BOUNDS_FILE
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
from .recording_file import OLD_FILES, RECORDING_FILE
from .run import Run
from .schema import GRAPH_FILE, HEAD_FILE, TABLE_FILES
from .summary import Share
from .summary_file import SUMMARY_FILE
from .unknown import UnknownOp

SCHEMA = "opscope.findings/1"
FINDINGS_FILE = "findings.json"
MOST_BYTES = 1 << 30
MOST_NS = 1 << 50  # as in the tables of a Run
_READ_BY_ANALYSIS = (HEAD_FILE, SUMMARY_FILE, *TABLE_FILES, GRAPH_FILE, BOUNDS_FILE, RECORDING_FILE, *OLD_FILES)


class _Head(msgspec.Struct):
    schema: str
    key: str | None = None


class _Verdict(msgspec.Struct):
    bound: str | None
    wall_ns: int | None
    breakdown: tuple[Share, ...]


class _File(msgspec.Struct):
    """The file, field by field, in its order; unknown is null."""

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
    unknown_ops: tuple[UnknownOp, ...] = ()


# made here, not at first use: where two threads at once have a class looked into, msgspec crashes
_HEAD, _FILE = msgspec.json.Decoder(_Head), msgspec.json.Decoder(_File)


class FindingsJson:
    """The verdict, causes, critical path, slack, rollups, roofline, coverage and checks.

    Args:
        key: of what the findings were made; a file that holds it can be told from one that is out of date.
    """

    suffix = ".json"

    def __init__(self, *, key: str | None = None) -> None:
        self.key = key

    def render(self, findings: Findings, out: TextIO) -> None:
        fields = findings_fields(findings) | ({} if self.key is None else {"key": self.key})
        write_json(fields, out)


def findings_fields(findings: Findings) -> dict[str, object]:
    """Every field that a file holds, in its order."""
    fields = asdict(findings)
    fields["verdict"] = {
        "bound": findings.bound if findings.breakdown else None,
        "wall_ns": findings.wall_ns,
        "breakdown": fields["breakdown"],
    }
    fields["engines"] = [asdict(use) | {"utilization": use.utilization} for use in findings.engines]
    head = {"schema": SCHEMA, "producer": PRODUCER}
    return head | {name: fields[name] for name in _File.__struct_fields__}


def findings_bytes(folder: Path, findings: Findings) -> bytes:
    """The file for findings of the Run in a folder, which is there whole."""
    text = StringIO()
    FindingsJson(key=findings_key(folder)).render(findings, text)
    return text.getvalue().encode()


def findings_key(folder: Path) -> str:
    """The same for the same tables under the same code."""
    files = [f"{name} {sha256_of(folder / name) if (folder / name).exists() else ''}" for name in _READ_BY_ANALYSIS]
    return digest_of(__version__, code_of("core", "graph", "program", "recording", "analysis", "workflows"), *files)


def known_findings(folder: Path, run: Run) -> Findings | None:
    """What an earlier analysis of this very Run found; None: there is none, or it is of other tables or other code."""
    path = folder / FINDINGS_FILE
    try:
        if path.stat().st_size > MOST_BYTES:
            return None
        raw = path.read_bytes()
        if key_of(raw, source=str(path)) != findings_key(folder):
            return None
        return decode_findings(raw, spans=len(run.trace.spans), source=str(path))
    except (OSError, ProfilerError):
        return None


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
    if not all(0 <= step.start_ns <= step.end_ns <= MOST_NS for step in file.path):
        raise UsageError(f"{source}: a step of the path has impossible times; expected 0 <= start_ns <= end_ns")
    parts = {name: getattr(file, name) for name in _File.__struct_fields__ if name != "verdict"}
    verdict = file.verdict
    return Findings(verdict.bound or OTHER_BOUND, verdict.breakdown, verdict.wall_ns, **parts)
