"""What was tried with the vendor's own compiler, as text for a terminal and as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import TextIO

import msgspec

from ... import __version__
from ...changes.what_if import WhatIf, WhatIfPoint
from ...core.errors import printable
from ...core.units import UNKNOWN, format_bytes
from ...recording.recording import Placed
from ...views.text.columns import columns

SCHEMA = "opscope.whatif/1"


class WhatIfText:
    """One row per point, best first; the Pareto front is marked."""

    suffix = ".txt"

    def render(self, result: WhatIf, out: TextIO) -> None:
        header = ("", "point", "time", "range", "DDR", "VTCM peak", "spilled", "on CPU")
        rows = [_row(point) for point in result.points if point.recording is not None]
        lines = columns(header, rows, align="<<>>>>>>", limits={1: 60})
        lines.append("* on the Pareto front of time, DDR bytes and VTCM; times vendor-model, bytes compiler-fact")
        lines += [f"failed: {point.label}: {printable(point.problem, 300)}" for point in result.points if point.problem]
        lines += ["", *result.advice]
        lines += [f"note: {note}" for note in result.notes]
        out.write("\n".join(lines) + "\n")


def _row(point: WhatIfPoint) -> tuple[str, ...]:
    recording = point.recording
    if recording is None:
        raise ValueError(f"{point.label} has no profile")
    metric = recording.metric("htp_execution_time")
    spilled = sum(op.spill_bytes for op in recording.ops)
    both = metric is not None and metric.low is not None and metric.high is not None
    span = f"{metric.low:,.0f}–{metric.high:,.0f} us" if both and metric else UNKNOWN
    return (
        "*" if point.on_front else "",
        point.label,
        UNKNOWN if point.time_us is None else f"{point.time_us:,.1f} us",
        span,
        format_bytes(point.outer_bytes),
        format_bytes(point.local_bytes),
        format_bytes(spilled),
        str(len(recording.placed(Placed.CPU))),
    )


class WhatIfJson:
    """Every point with its figures."""

    suffix = ".json"

    def render(self, result: WhatIf, out: TextIO) -> None:
        head: dict[str, object] = {
            "schema": SCHEMA,
            "producer": {"name": "opscope", "version": __version__},
            "model": result.model,
            "backend": result.backend,
        }
        body: dict[str, object] = {
            "points": [_point(point) for point in result.points],
            "advice": result.advice,
            "notes": result.notes,
        }
        _write(head | body, out)


def _point(point: WhatIfPoint) -> dict[str, object]:
    metrics = [asdict(metric) for metric in point.recording.metrics] if point.recording else []
    return {
        "label": point.label,
        "choices": dict(point.choices),
        "on_front": point.on_front,
        "time_us": point.time_us,
        "ddr_bytes": point.outer_bytes,
        "vtcm_bytes": point.local_bytes,
        "problem": point.problem,
        "metrics": metrics,
    }


def _write(value: dict[str, object], out: TextIO) -> None:
    out.write(msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n")
