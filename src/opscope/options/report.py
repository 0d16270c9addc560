"""What to estimate."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..core.errors import UsageError
from . import KV_CACHES, Shapes, check_words, shown
from .shared import BATCH, CORES, DEVICES, KV_CACHE, PRECISION, SHAPES, SHAPES_FROM_RUN


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """Options of `report`."""

    shapes: Shapes | None = field(default=None, metadata=SHAPES)
    shapes_from_run: str | None = field(default=None, metadata=SHAPES_FROM_RUN)
    batch: int | None = field(default=None, metadata=BATCH)
    cores: int | None = field(default=None, metadata=CORES)
    devices: int = field(default=1, metadata=DEVICES)
    precision: str | None = field(default=None, metadata=PRECISION)
    kv_cache: str = field(default=KV_CACHES[0], metadata=KV_CACHE)
    advise: bool = field(default=True, metadata=shown("skip the what-if suggestions", flags=("--no-advice",)))
    planner: str | None = field(
        default=None,
        metadata=shown(
            "compare the arena with that of another memory planner: best, or the name of an interpreter", "P"
        ),
    )
    battery: str | None = field(
        default=None, metadata=shown("estimate battery life at --duty: 220mAh@3V or 1.2Wh", "B", group="battery")
    )
    duty: str | None = field(
        default=None, metadata=shown("inferences per time: 1/s, 4/min, 1/10s", "N/T", group="battery")
    )
    sleep: str | None = field(
        default=None,
        metadata=shown("power between inferences: 5uW (default: the target's)", "P", group="battery"),
    )
    fingerprint: bool = True  # put the SHA-256 of the model file into the report, which means reading all of it

    def __post_init__(self) -> None:
        check_words(self)
        if (self.battery is None) != (self.duty is None) or (self.sleep and self.battery is None):
            raise UsageError("--battery, --duty: one without the other; expected both, and --sleep only with them")
