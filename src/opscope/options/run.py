"""How much work, how much of it at once, which part of it is profiled, and what is written."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path

from ..core.errors import UsageError
from . import check_words, shown
from .shared import ACTIVATIONS, SEED, THREADS, num_iter, num_samples, set_size

MOST_ACTIVATIONS = 4096
MOST_INFERENCES = 10_000_000  # a row of all times each: more would not fit in memory
DEFAULT_ITERATIONS = 40
PROFILES = ("stats", "trace", "latency", "raw_device_stats")


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Options of `run`: how many inferences, how many at once, which are profiled, what is written."""

    save_outputs: bool = field(
        default=False,
        metadata=shown("also compute the outputs with the original model, and write them as .npy or .npz"),
    )
    num_iter: int | None = field(default=None, metadata=num_iter(DEFAULT_ITERATIONS))
    time: float | None = field(
        default=None, metadata=shown("enqueue inferences for this many seconds of simulated time", "S")
    )
    activations: int = field(default=1, metadata=ACTIVATIONS)
    set_size: int = field(default=10, metadata=set_size(10))
    threads: int = field(default=4, metadata=THREADS)
    seed: int = field(default=0, metadata=SEED)
    profile: tuple[str, ...] = field(
        default=(),
        metadata=shown(
            "stats: text with host stages; trace: Chrome JSON with host stages; latency: CSV; raw_device_stats: "
            "stats buffers for `opscope opstats`; may be repeated",
            choices=PROFILES,
            group="profiling",
        ),
    )
    out_dir: Path = field(
        default=Path(),
        metadata=shown(
            "folder, made if it is not there (default: here)", "DIR", flags=("-o", "--out-dir"), group="profiling"
        ),
    )
    num_samples: int = field(default=1, metadata=num_samples("profiling"))
    start_iter: int = field(
        default=0, metadata=shown("first inference to profile (default 0)", "N", least=0, group="profiling")
    )
    start_delay: float = field(
        default=0.0, metadata=shown("milliseconds of simulated time before profiling starts", "MS", group="profiling")
    )

    def __post_init__(self) -> None:
        """Check ranges and combinations; sequences and paths may come in any form."""
        object.__setattr__(self, "profile", tuple(self.profile))
        object.__setattr__(self, "out_dir", Path(self.out_dir))
        check_words(self)
        self._check_ranges()
        if self.time is not None and not (isfinite(self.time) and self.time > 0):
            raise UsageError(f"time {self.time}: expected a positive number of seconds")
        if not (isfinite(self.start_delay) and self.start_delay >= 0):
            raise UsageError(f"start-delay {self.start_delay}: expected 0 or more milliseconds")
        if self.limit * self.activations > MOST_INFERENCES and self.time is None:
            raise UsageError(
                f"num-iter {self.limit} × activations {self.activations}: expected at most {MOST_INFERENCES} inferences"
            )

    def _check_ranges(self) -> None:
        for word, value, low, high in (
            ("num-iter", self.limit, 1, MOST_INFERENCES),
            ("activations", self.activations, 1, MOST_ACTIVATIONS),
            ("set-size", self.set_size, 1, 1_000_000),
            ("threads", self.threads, 1, 1024),
            ("num-samples", self.num_samples, 1, MOST_INFERENCES),
            ("start-iter", self.start_iter, 0, MOST_INFERENCES),
            ("seed", self.seed, 0, 2**64 - 1),
        ):
            if not low <= value <= high:
                raise UsageError(f"{word} {value}: out of range; expected {low} to {high}")

    @property
    def limit(self) -> int:
        """Inferences per activation that are never exceeded."""
        if self.num_iter is not None:
            return self.num_iter
        return DEFAULT_ITERATIONS if self.time is None else MOST_INFERENCES

    @property
    def end_ns(self) -> float:
        """Nothing is enqueued from then on."""
        return float("inf") if self.time is None else self.time * 1e9
