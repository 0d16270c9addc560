"""Who is asked in a comparison of chips, in which precisions, and within which limits."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from . import Shapes, comma_list, shown
from .shared import MEMORY_LIMIT, SHAPES, TIME_LIMIT_S, jobs, time_limit


@dataclass(frozen=True, slots=True)
class BakeoffOptions:
    """Options of `bakeoff`: backends, precisions and shapes to compare, and limits of every row."""

    backend: tuple[str, ...] = field(
        default=(),
        metadata=shown("backends to use (default: the best for each chip)", "B,B,…", read=comma_list),
    )
    precision: tuple[str, ...] = field(
        default=(),
        metadata=shown(
            "as-is, f16, i8, w8a16, … (default: as-is, or i8 on chips that do not run that)", "P,P,…", read=comma_list
        ),
    )
    data: Path | None = field(
        default=None, metadata=shown("calibrate quantised copies with these samples", "DIR|F.npz")
    )
    shapes: Shapes | None = field(default=None, metadata=SHAPES)
    jobs: int | None = field(default=None, metadata=jobs())
    retry_failed: bool = field(default=False, metadata=shown("run again those rows of the store that have no figures"))
    time_limit_s: float = field(default=TIME_LIMIT_S, metadata=time_limit("row"))
    memory_limit_bytes: int | None = field(default=None, metadata=MEMORY_LIMIT)

    def __post_init__(self) -> None:
        """Sequences and paths may come in any form."""
        for name in ("backend", "precision"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        object.__setattr__(self, "data", None if self.data is None else Path(self.data))
