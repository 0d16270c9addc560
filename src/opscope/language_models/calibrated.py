"""Measurements → the target that they are predicted on: language models have figures of their own there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..calibration.measurements import Measurement, Steps
from ..machine.catalogue import for_language_models
from ..machine.target import Target
from .measured_rows import read_rows


@dataclass(frozen=True, slots=True)
class Measured:
    """Rows of networks, or of language models."""

    rows: Sequence[Measurement]

    @property
    def of_language_models(self) -> bool:
        return any(isinstance(row.model, Steps) for row in self.rows)

    def target(self, found: Target) -> Target:
        """A target as what was measured meets it."""
        return for_language_models(found) if self.of_language_models else found

    def fitted(self, target: Target) -> tuple[str, ...]:
        """Keys of the figures that a fit may move, where the target names those of language models."""
        if not self.of_language_models or target.language_models is None:
            return ()
        table = target.language_models.figures
        return tuple(key for key, figure in table.items() if figure.smallest < figure.largest)


def measured(sources: Sequence[Path], *, models: Path | None = None) -> Measured:
    """Rows of CSV files and latencies of runs."""
    return Measured(read_rows(sources, models=models))
