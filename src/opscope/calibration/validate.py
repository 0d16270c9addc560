"""Target, Measurements → errors: what a target says beside what was measured, and how often its range held."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..core.errors import ProfilerError, UsageError
from ..estimate.ranges import shares
from ..machine.target import Target
from .calibrate import Prediction, Progress
from .measurements import Measurement, of_chip, repeated_once
from .priced import Models


def validate(
    target: Target, measurements: Sequence[Measurement], *, progress: Progress = lambda _: None
) -> tuple[tuple[Prediction, ...], tuple[str, ...]]:
    """Predict every measurement; those that cannot be are returned with why, as texts."""
    rows = repeated_once(of_chip(measurements, target.name))
    predictions, skipped = [], []
    models = Models()
    for number, row in enumerate(rows):
        try:
            predictions.append(_predicted(target, row, models))
        except ProfilerError as error:
            skipped.append(f"{row.place}: {error}")
        progress(f"predicted {number + 1} of {len(rows)}")
    if not predictions:
        raise UsageError(f"none of {len(rows)} measurements can be predicted: {skipped[0]}")
    return tuple(predictions), tuple(skipped)


def _predicted(target: Target, row: Measurement, models: Models) -> Prediction:
    found = models.priced(row, target)
    latency = found.latency
    return Prediction(row, 0, latency.value, None, latency.low, latency.high, shares(found.costs, found.target))


def grouped(rows: Sequence[Prediction], key: Callable[[Prediction], str]) -> list[tuple[str, list[Prediction]]]:
    """Predictions by a word of theirs, in order of first appearance."""
    found: dict[str, list[Prediction]] = {}
    for row in rows:
        found.setdefault(key(row), []).append(row)
    return list(found.items())
