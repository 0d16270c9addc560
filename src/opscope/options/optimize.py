"""Which rewrites are tried, for how long, and how far outputs may differ."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from ..core.errors import UsageError
from . import Shapes, comma_list, shown
from .shared import SHAPES, jobs

BUDGET_MINUTES = 30.0
MAX_ERROR = 0.01  # of an approximate rewrite: noise of a hundredth of the signal, 40 dB


def share_of(text: str) -> float:
    """0.01 or 1%"""
    try:
        number = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 1:
        raise UsageError(f"{text!r} is not a share from 0 to 1, such as 0.01 or 1%")
    return number


def minutes_of(text: str) -> float:
    """More than 0."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise UsageError(f"{text!r} is not a number of minutes above 0")
    return number


@dataclass(frozen=True, slots=True)
class OptimizeOptions:
    """Options of `optimize`: which rewrites to try, for how long, and how far outputs may differ."""

    allow: tuple[str, ...] = field(
        default=(),
        metadata=shown("also try rewrites that are not exact: approximate, quantize", "WHAT,…", read=comma_list),
    )
    max_error: float = field(
        default=MAX_ERROR,
        metadata=shown(
            f"with --allow: largest error of the outputs, as noise over signal (default {MAX_ERROR:.0%})",
            "E",
            read=share_of,
        ),
    )
    data: Path | None = field(default=None, metadata=shown("also compare the outputs for these inputs", "DIR|F.npz"))
    budget_minutes: float = field(
        default=BUDGET_MINUTES,
        metadata=shown(f"start no trial after so many minutes (default {BUDGET_MINUTES:g})", "M", read=minutes_of),
    )
    replay: Path | None = field(default=None, metadata=shown("apply the steps in this file, without a search", "STEPS"))
    jobs: int | None = field(default=None, metadata=jobs("trials"))
    shapes: Shapes | None = field(default=None, metadata=SHAPES)

    def __post_init__(self) -> None:
        object.__setattr__(self, "allow", tuple(self.allow))
        for name in ("data", "replay"):
            value = getattr(self, name)
            object.__setattr__(self, name, None if value is None else Path(value))
