"""Findings as JSON, schema `opscope.findings/1`: `findings.json` of a Run. None is null."""

from __future__ import annotations

from dataclasses import asdict
from typing import TextIO

import msgspec

from .. import __version__
from .finding import Findings

SCHEMA = "opscope.findings/1"


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
        out.write(msgspec.json.format(msgspec.json.encode(fields), indent=2).decode() + "\n")


def findings_fields(findings: Findings) -> dict[str, object]:
    """Every field that a file holds, in its order."""
    whole = asdict(findings)
    verdict = {
        "bound": findings.bound if findings.breakdown else None,
        "wall_ns": findings.wall_ns,
        "breakdown": whole["breakdown"],
    }
    engines = [asdict(use) | {"utilization": use.utilization} for use in findings.engines]
    rest = (
        "findings",
        "trials",
        "path",
        "slack",
        "rollups",
        "roofline",
        "coverage",
        "gaps",
        "waits",
        "checks",
        "notes",
    )
    return {
        "schema": SCHEMA,
        "producer": {"name": "opscope", "version": __version__},
        "provenance": findings.provenance,
        "verdict": verdict,
        **{key: whole[key] for key in rest},
        "engines": engines,
    }
