"""Figure: one number of a target file, with its source and the range that it moves in."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """One number of a data sheet or a measurement, with its source and, where known, the range it moves in."""

    value: float
    source: str  # a key of the target's `sources`
    low: float | None = None
    high: float | None = None

    def __post_init__(self) -> None:
        if not (self.smallest <= self.value <= self.largest):
            raise ValueError(f"value {self.value} lies outside its range {self.low}..{self.high}")

    @property
    def smallest(self) -> float:
        return self.value if self.low is None else self.low

    @property
    def largest(self) -> float:
        return self.value if self.high is None else self.high
