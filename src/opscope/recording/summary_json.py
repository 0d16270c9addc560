"""Summary as JSON: `summary.json` of a Run."""

from __future__ import annotations

from dataclasses import asdict
from typing import TextIO

import msgspec

from .. import __version__
from .summary import Summary

SCHEMA = "opscope.summary/1"


class SummaryJson:
    """All totals; what is unknown is null."""

    suffix = ".json"

    def render(self, summary: Summary, out: TextIO) -> None:
        out.write(msgspec.json.format(msgspec.json.encode(summary_fields(summary)), indent=2).decode() + "\n")


def summary_fields(summary: Summary) -> dict[str, object]:
    """Every field of a Summary, and the ratios that are read off them."""
    fields: dict[str, object] = {"schema": SCHEMA, "producer": {"name": "opscope", "version": __version__}}
    fields |= asdict(summary)
    fields["lanes"] = [asdict(lane) | {"utilization": lane.utilization} for lane in summary.lanes]
    fields["routes"] = [asdict(route) | {"gigabytes_per_s": route.gigabytes_per_s} for route in summary.routes]
    return fields
