"""What was tried with the vendor's own compiler, as text for a terminal and as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import TextIO

from ...core.errors import printable
from ...core.json_files import PRODUCER, write_json
from ...core.provenance import in_words
from ...core.units import UNKNOWN, format_bytes
from ...recording.recording import Placed
from ...recording.what_if import WhatIf, WhatIfPoint
from .columns import columns

SCHEMA = "opscope.whatif/1"


class WhatIfText:
    """One row per point, best first; the Pareto front is marked."""

    suffix = ".txt"

    def render(self, result: WhatIf, out: TextIO) -> None:
        header = ("", "point", "time", "range", result.outer_memory, f"{result.local_memory} peak", "spilled", "on CPU")
        rows = [_row(point) for point in result.points if point.recording is not None]
        lines = columns(header, rows, align="<<>>>>>>", limits={1: 60})
        memories = f"{result.outer_memory} bytes and {result.local_memory}"
        lines.append(f"* on the Pareto front of time, {memories}; times {_obtained(result)}, bytes compiler-fact")
        lines += [f"failed: {point.label}: {printable(point.problem, 300)}" for point in result.points if point.problem]
        lines += ["", *result.advice]
        lines += [f"note: {note}" for note in result.notes]
        out.write("\n".join(lines) + "\n")


def _obtained(result: WhatIf) -> str:
    """How times were obtained: of every point alike, or part by part."""
    found: dict[str, list[str]] = {}
    for point in result.points:
        if point.recording is not None and point.time_us is not None:
            word = in_words(point.recording.provenance, point.recording.basis)
            found.setdefault(word, []).append(str(point.recording.target))
    if len(found) == 1:
        return next(iter(found))
    return "; ".join(f"of {', '.join(dict.fromkeys(targets))} {word}" for word, targets in found.items())


def _row(point: WhatIfPoint) -> tuple[str, ...]:
    """Cells of one point."""
    recording = point.recording
    if recording is None:
        raise ValueError(f"{point.label} has no profile")
    spilled = sum(op.spill_bytes for op in recording.ops)
    known = point.low_us is not None and point.high_us is not None
    span = f"{point.low_us:,.0f}–{point.high_us:,.0f} us" if known else UNKNOWN
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
            "producer": PRODUCER,
            "model": result.model,
            "backend": result.backend,
        }
        body: dict[str, object] = {
            "points": [_point(point, result) for point in result.points],
            "advice": result.advice,
            "notes": result.notes,
        }
        write_json(head | body, out)


def _point(point: WhatIfPoint, result: WhatIf) -> dict[str, object]:
    metrics = [asdict(metric) for metric in point.recording.metrics] if point.recording else []
    return {
        "label": point.label,
        "choices": dict(point.choices),
        "on_front": point.on_front,
        "time_us": point.time_us,
        "provenance": point.recording.provenance if point.recording else None,
        "basis": point.recording.basis if point.recording else "",
        f"{result.outer_memory.lower()}_bytes": point.outer_bytes,
        f"{result.local_memory.lower()}_bytes": point.local_bytes,
        "problem": point.problem,
        "metrics": metrics,
    }
