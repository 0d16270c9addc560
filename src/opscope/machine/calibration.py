"""What a target file says of its fit to measurements, and of how far off its predictions were found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

OP = "op"


@dataclass(frozen=True, slots=True)
class Calibration:
    """How figures were fitted to measurements, and how far predictions were off for networks left out of the fit.

    A prediction's logarithm is off by `spread` where every figure is known well, and by more where it rests on figures
    with wide ranges; `factor` such widths hold the truth as often as `coverage` says.
    """

    rows: int  # measurements
    networks: int
    spread: float
    factor: float
    coverage: float  # that ranges are made for: 0.9
    seen: Mapping[str, float] = field(default_factory=dict)  # largest share of time of each part in any network
    precisions: tuple[str, ...] = ()
    unit: str | None = None  # of a row: OP; None: a network


@dataclass(frozen=True, slots=True)
class Validation:
    """How far predictions lie from measurements that set no figure."""

    networks: int
    rows: int
    median_error: float
    p90_error: float
    coverage: float | None  # share of measurements inside the range
    source: str  # a key of the target's `sources`


@dataclass(frozen=True, slots=True)
class Judged:
    """What a target file says of its energies, or of its peaks of RAM, beside measured ones."""

    calibration: Calibration | None = None
    validation: Validation | None = None
