"""Options of a run, checked."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

from ...core.errors import UsageError

DEFAULT_ITERATIONS = 40
DEFAULT_SET_SIZE = 10
MOST_ACTIVATIONS = 4096
MOST_INFERENCES = 10_000_000  # a row of all times each: more would not fit in memory
PROFILES = ("stats", "trace", "latency", "raw_device_stats")


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Number of inferences, concurrency, and the inferences that are profiled."""

    iterations: int | None = None  # per activation; None: as many as fit in `seconds`, or the default
    seconds: float | None = None  # simulated time after which no inference is enqueued
    activations: int = 1
    set_size: int = DEFAULT_SET_SIZE  # inferences of an activation in flight at once
    threads: int = 4  # of the runtime, per activation
    samples: int = 1
    start_iteration: int = 0
    start_delay_ms: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        """Check the range of every option; errors use the option names of the command line."""
        for word, value, low, high in (
            ("num-iter", self.limit, 1, MOST_INFERENCES),
            ("activations", self.activations, 1, MOST_ACTIVATIONS),
            ("set-size", self.set_size, 1, 1_000_000),
            ("threads", self.threads, 1, 1024),
            ("num-samples", self.samples, 1, MOST_INFERENCES),
            ("start-iter", self.start_iteration, 0, MOST_INFERENCES),
            ("seed", self.seed, 0, 2**64 - 1),
        ):
            if not low <= value <= high:
                raise UsageError(f"{word} {value}: out of range; expected {low} to {high}")
        if self.seconds is not None and not (isfinite(self.seconds) and self.seconds > 0):
            raise UsageError(f"time {self.seconds}: expected a positive number of seconds")
        if not (isfinite(self.start_delay_ms) and self.start_delay_ms >= 0):
            raise UsageError(f"start-delay {self.start_delay_ms}: expected 0 or more milliseconds")
        if self.limit * self.activations > MOST_INFERENCES and self.seconds is None:
            raise UsageError(
                f"num-iter {self.limit} × activations {self.activations}: expected at most {MOST_INFERENCES} inferences"
            )
        if self.seconds is None and self.start_iteration >= self.limit:
            raise UsageError(
                f"start-iter {self.start_iteration}: the run has {self.limit} inferences; "
                f"expected 0 to {self.limit - 1}"
            )

    @property
    def limit(self) -> int:
        """Maximum number of inferences per activation."""
        if self.iterations is not None:
            return self.iterations
        return DEFAULT_ITERATIONS if self.seconds is None else MOST_INFERENCES

    @property
    def end_ns(self) -> float:
        """Time from which no inference is enqueued."""
        return float("inf") if self.seconds is None else self.seconds * 1e9
