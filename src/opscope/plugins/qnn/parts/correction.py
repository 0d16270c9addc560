"""What an inference takes on a part, from the vendor's model of it and from what was measured on it.

The vendor's model covers the accelerator alone, at its highest clock, and its kernels are off by more or less. So an
inference is a cost of the call, and the time of each engine on the dominant path times a factor of that engine, both
fitted to measured latencies (`correction.toml`, written by bench/fits/htp_correction.py). The range held for networks
left out of the fit: it is wide where engines rule whose kernels the vendor's model is far off of.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import exp, log, sqrt
from pathlib import Path

from ....estimate.ranges import RANGE_SIGMAS
from ....machine.calibration import Calibration, Validation
from ....machine.target import Figure
from ....recording.resources import Range
from ....recording.summary import Share

FILE = Path(__file__).with_suffix(".toml")


@dataclass(frozen=True, slots=True)
class Correction:
    """Of some parts that the vendor's model knows, for one data type."""

    ids: tuple[int, ...]
    dtype: str
    sources: Mapping[str, str]
    call_seconds: Figure
    factors: Mapping[str, Figure]  # by what has the time on the dominant path
    calibration: Calibration
    validation: Validation

    def inference(self, shares: Sequence[Share]) -> Range | None:
        """Seconds of one inference; None where a part of the path has no factor."""
        parts = [(share.ns / 1e9, self.factors.get(share.cause)) for share in shares]
        times = [(seconds * figure.value, figure) for seconds, figure in parts if figure is not None]
        if len(times) < len(parts) or not times:
            return None
        times.append((self.call_seconds.value, self.call_seconds))
        whole = sum(seconds for seconds, _ in times)
        spread = sum((seconds / whole * _open(figure)) ** 2 for seconds, figure in times)
        reach = exp(self.calibration.factor * sqrt(self.calibration.spread**2 + spread))
        return Range(whole, whole / reach, whole * reach)

    @property
    def note(self) -> str:
        """What it rests on and how far it was off."""
        judged = self.validation
        return (
            f"the vendor's model and a call, fitted to {judged.rows} measured latencies; off by "
            f"{judged.median_error:.0%} in the median of {judged.networks} networks left out"
        )


def _open(figure: Figure) -> float:
    """What measurements leave open of a figure, as a standard deviation of its logarithm."""
    return log(figure.largest / figure.smallest) / RANGE_SIGMAS


@lru_cache(maxsize=1)
def _corrections() -> tuple[Correction, ...]:
    import msgspec

    rows = tomllib.loads(FILE.read_text(encoding="utf-8"))["corrections"]
    return tuple(msgspec.convert(row, Correction) for row in rows)


def correction_of(soc_id: int, dtype: str) -> Correction | None:
    """What is known of a part, computing in a data type; None: nothing."""
    return next((row for row in _corrections() if soc_id in row.ids and row.dtype == dtype), None)
