"""Measurements → targets fitted or judged: language models have figures of their own there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..calibration import calibrate as fitting
from ..calibration import validate as judging
from ..calibration.calibrate import Calibrated, Prediction, Progress
from ..calibration.measurements import Measurement, Steps
from ..machine import catalogue
from ..machine.target import Target
from .measured_rows import read_rows


@dataclass(frozen=True, slots=True)
class Measured:
    """Rows of networks, or of language models."""

    rows: Sequence[Measurement]

    @property
    def of_language_models(self) -> bool:
        return any(isinstance(row.model, Steps) for row in self.rows)

    def target(self, found: Target, family: Target | None = None) -> Target:
        """A target as what was measured meets it; a chip of a family begins with what the family has for it."""
        if not self.of_language_models:
            return found
        told = None if family is None else family.language_models
        return catalogue.for_language_models(found if told is None else replace(found, language_models=told))

    def variant(self, chip: str, family: Target) -> Target:
        """The target that a chip of a family starts from: what measurements told of it before must not judge a fit to
        the same ones. Figures of language models are fitted beside those of other networks, which stay."""
        return self.target(catalogue.load(chip), family) if self.of_language_models else catalogue.data_sheet(chip)

    def fitted(self, target: Target) -> tuple[str, ...]:
        """Keys of the figures that a fit may move, where the target names those of language models."""
        if not self.of_language_models or target.language_models is None:
            return ()
        table = target.language_models.figures
        return tuple(key for key, figure in table.items() if figure.smallest < figure.largest)


def measured(sources: Sequence[str | Path], *, models: Path | None = None) -> Measured:
    """Rows of CSV files and latencies of runs."""
    return Measured(read_rows([Path(source) for source in sources], models=models))


def calibrate(
    target: str | Path | Target,
    sources: Sequence[str | Path],
    *,
    models: Path | None,
    by_chip: bool,
    progress: Progress | None,
) -> Calibrated:
    """Fit a target to rows; with `by_chip`, those of each chip on its own target where the catalogue has one."""
    found = measured(sources, models=models)
    family = _loaded(target)
    base = found.target(family)
    known = catalogue.catalogue() if by_chip else {}
    chips = {row.chip for row in found.rows if row.chip in known}
    variants = {chip: found.variant(chip, family) for chip in sorted(chips)} if by_chip else None
    keys, tell = found.fitted(base), progress or (lambda _: None)
    return fitting.calibrate(base, found.rows, variants=variants, fitted=keys, progress=tell)


def validate(
    target: str | Path | Target, sources: Sequence[str | Path], *, models: Path | None, progress: Progress | None
) -> tuple[tuple[Prediction, ...], tuple[str, ...]]:
    """Predict every row; those that cannot be are returned with why, as texts."""
    found = measured(sources, models=models)
    return judging.validate(found.target(_loaded(target)), found.rows, progress=progress or (lambda _: None))


def _loaded(target: str | Path | Target) -> Target:
    return target if isinstance(target, Target) else catalogue.load(str(target))
