"""How to compile a model for the simulated device."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..core.errors import UsageError
from . import KV_CACHES, Shapes, check_words, shown
from .shared import (
    BATCH,
    CORES,
    DEVICES,
    KV_CACHE,
    PARALLEL,
    PMU_RECIPE,
    PRECISION,
    RETAINED_STATE,
    SHAPES,
    SHAPES_FROM_RUN,
)

DEFAULT_OVERLAP_PARTS = 4  # what the best published compilations cut their ops into


@dataclass(frozen=True, slots=True)
class CompileOptions:
    """Options of `compile_model`: how to compile a model for the simulated device."""

    cores: int | None = field(default=None, metadata=CORES)
    devices: int = field(default=1, metadata=DEVICES)
    parallel: str = field(default="auto", metadata=PARALLEL)
    batch: int | None = field(default=None, metadata=BATCH)
    shapes: Shapes | None = field(default=None, metadata=SHAPES)
    shapes_from_run: str | None = field(default=None, metadata=SHAPES_FROM_RUN)
    precision: str | None = field(default=None, metadata=PRECISION)
    kv_cache: str = field(default=KV_CACHES[0], metadata=KV_CACHE)
    retained_state: bool = field(default=False, metadata=RETAINED_STATE)
    channel_parts: int | None = field(
        default=None,
        metadata=shown("split channels of a matrix product between at most N cores (default: all)", "N", least=1),
    )
    overlap_parts: int = field(
        default=DEFAULT_OVERLAP_PARTS,
        metadata=shown("cut an op into at most N pieces so that engines overlap (default 4)", "N", least=1),
    )
    stats_level: int = field(
        default=40,
        metadata=shown(
            "detail of device statistics: 0: none; 40: totals (default); 50: also ports; 70: per op; 100: also PMU "
            "events per op",
            "N",
            group="statistics",
        ),
    )
    ddr_stats: bool = field(default=False, metadata=shown("count traffic of outer memory per core", group="statistics"))
    pmu_recipe: str | None = field(default=None, metadata=PMU_RECIPE)
    pmu_events: str | None = field(
        default=None, metadata=shown("count these PMU events, at most 8: 3F,70,200", "HEX,…", group="statistics")
    )
    stats_batchsize: int | None = field(
        default=None,
        metadata=shown(
            "inferences per batch in the statistics (default: the batch size)", "N", least=1, group="statistics"
        ),
    )
    network: str | None = None  # its name in file names and traces; None: as the target says

    def __post_init__(self) -> None:
        check_words(self)
        for word, parts in (("channel parts", self.channel_parts), ("overlap parts", self.overlap_parts)):
            if parts is not None and parts < 1:
                raise UsageError(f"{word} {parts}: expected 1 or more")
