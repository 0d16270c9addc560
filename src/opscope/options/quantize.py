"""What copy to make of a model, and with which data."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from ..core.errors import UsageError
from . import Shapes, shown
from .shared import SHAPES

MOST_SAMPLES = 100_000  # that a copy is calibrated with


@dataclass(frozen=True, slots=True)
class QuantizeOptions:
    """Options of `quantize`: the precision of the copy, and its calibration data."""

    precision: str = field(
        default="w8a8",
        metadata=shown("weights and activations: w8a8 (default), w8a16, w16a16, w4a8, w4a16; or f16", "P"),
    )
    data: Path | None = field(
        default=None,
        metadata=shown("calibrate with these: an .npz with an array per input, or a folder of them", "DIR|F.npz"),
    )
    random: int | None = field(
        default=None,
        metadata=shown("calibrate with N random samples instead, if only speed matters", "N", least=1),
    )
    seed: int = field(default=0, metadata=shown("seed of random samples (default 0)", "N", least=0))
    shapes: Shapes | None = field(default=None, metadata=SHAPES)

    def __post_init__(self) -> None:
        object.__setattr__(self, "data", None if self.data is None else Path(self.data))
        if self.random is not None and not 1 <= self.random <= MOST_SAMPLES:
            raise UsageError(f"random {self.random}: expected 1 to {MOST_SAMPLES} samples")
