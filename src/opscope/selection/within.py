"""Rows of a bakeoff against `latency=20ms,ram=512KB`: which chips would do."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..core.errors import UsageError
from ..gate.budget import parse_budget
from .rows import BakeoffRow

_MEASURES: dict[str, Callable[[BakeoffRow], float | None]] = {
    "latency": lambda row: None if row.latency_ns is None else row.latency_ns / 1e9,
    "ram": lambda row: row.peak_bytes,
    "energy": lambda row: row.energy.value_j if row.energy and not row.energy.note else None,
    "cpu-share": lambda row: None if row.time_share is None else 1 - row.time_share,
}


def parse_limits(text: str) -> dict[str, float]:
    """Limits that rows have a figure for, in base units."""
    limits = parse_budget(text)
    for name in limits:
        if name not in _MEASURES:
            raise UsageError(f"--budget {name}: rows do not have it; expected of {', '.join(_MEASURES)}")
    return limits


def within(row: BakeoffRow, limits: Mapping[str, float]) -> bool:
    """Whether a row fits its chip and meets every limit; what is not known does not."""
    found = {name: _MEASURES[name](row) for name in limits}
    return row.fits is not False and all(value is not None and value <= limits[name] for name, value in found.items())
