"""Profiled and WhatIf as JSON; None is null, and every figure has its provenance beside it."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import TextIO

import msgspec

from ... import __version__
from ...recording.profiled import Profiled, WhatIf, WhatIfPoint

SCHEMA = "opscope.profile/1"
WHATIF_SCHEMA = "opscope.whatif/1"
_LEFT_OUT = {"trace", "program", "tables"}  # files of their own


class ProfiledJson:
    """Everything but the timeline."""

    suffix = ".json"

    def render(self, profiled: Profiled, out: TextIO) -> None:
        _write(profiled_fields(profiled), out)


class WhatIfJson:
    """Every point with its figures."""

    suffix = ".json"

    def render(self, result: WhatIf, out: TextIO) -> None:
        head: dict[str, object] = {
            "schema": WHATIF_SCHEMA,
            "producer": _producer(),
            "model": result.model,
            "backend": result.backend,
        }
        body: dict[str, object] = {
            "points": [_point(point) for point in result.points],
            "advice": result.advice,
            "notes": result.notes,
        }
        _write(head | body, out)


def profiled_fields(profiled: Profiled) -> dict[str, object]:
    """Every field that a file can hold."""
    result: dict[str, object] = {"schema": SCHEMA, "producer": _producer()}
    for part in fields(profiled):
        if part.name not in _LEFT_OUT:
            value = getattr(profiled, part.name)
            plain = (
                [asdict(row) for row in value] if isinstance(value, tuple) and value and _is_noun(value[0]) else value
            )
            result["runtime" if part.name == "producer" else part.name] = plain
    result["latency"] = asdict(profiled.latency) if profiled.latency else None
    result["lanes"] = [asdict(lane) | {"utilization": lane.utilization} for lane in profiled.lanes]
    return result


def _is_noun(value: object) -> bool:
    return hasattr(value, "__dataclass_fields__")


def _point(point: WhatIfPoint) -> dict[str, object]:
    metrics = [asdict(metric) for metric in point.profiled.metrics] if point.profiled else []
    return {
        "label": point.label,
        "choices": dict(point.choices),
        "on_front": point.on_front,
        "time_us": point.time_us,
        "ddr_bytes": point.ddr_bytes,
        "vtcm_bytes": point.local_bytes,
        "problem": point.problem,
        "metrics": metrics,
    }


def _producer() -> dict[str, str]:
    return {"name": "opscope", "version": __version__}


def _write(value: dict[str, object], out: TextIO) -> None:
    out.write(msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n")
