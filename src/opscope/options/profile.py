"""How to profile a model on the simulated device, or by estimate."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..core.errors import UsageError
from . import KV_CACHES, Shapes, check_words, shown
from .shared import (
    ACTIVATIONS,
    BATCH,
    CORES,
    DEVICES,
    KV_CACHE,
    PARALLEL,
    PMU_RECIPE,
    PRECISION,
    RETAINED_STATE,
    SEED,
    SHAPES_FROM_RUN,
    THREADS,
    num_iter,
    num_samples,
    set_size,
)

LEAST_LEVEL_TO_PROFILE = 70  # statistics of every operator


@dataclass(frozen=True, slots=True)
class ProfileOptions:
    """Options of `profile` on the simulated device and of estimates."""

    cores: int | None = field(default=None, metadata=CORES)
    devices: int = field(default=1, metadata=DEVICES)
    batch: int | None = field(default=None, metadata=BATCH)
    shapes_from_run: str | None = field(default=None, metadata=SHAPES_FROM_RUN)
    precision: str | None = field(default=None, metadata=PRECISION)
    kv_cache: str = field(default=KV_CACHES[0], metadata=KV_CACHE)
    retained_state: bool = field(default=False, metadata=RETAINED_STATE)
    parallel: str = field(default="auto", metadata=PARALLEL)
    stats_level: int = field(
        default=LEAST_LEVEL_TO_PROFILE,
        metadata=shown("detail of device statistics: 70: per op (default); 100: also PMU events per op", "N", least=1),
    )
    pmu_recipe: str | None = field(default=None, metadata=PMU_RECIPE)
    num_iter: int = field(default=10, metadata=num_iter(10))
    num_samples: int = field(default=1, metadata=num_samples())
    activations: int = field(default=1, metadata=ACTIVATIONS)
    set_size: int = field(default=1, metadata=set_size(1))
    threads: int = field(default=4, metadata=THREADS)
    seed: int = field(default=0, metadata=SEED)
    shapes: Shapes = field(default_factory=dict)
    ddr_stats: bool = True

    def __post_init__(self) -> None:
        if self.stats_level < LEAST_LEVEL_TO_PROFILE:
            raise UsageError(f"stats level {self.stats_level}: has no operators; expected 70 or more to profile")
        check_words(self)
