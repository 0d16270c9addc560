"""Target, Measurements → errors: what a target says beside what was measured, and how often its range held."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..core.errors import ProfilerError, UsageError
from ..machine.target import Target
from .calibrate import Prediction, Progress, Skipped
from .measurements import Measurement, of_chip, quantities, repeated_once
from .priced import Models
from .quantities import Quantity


def validate(
    target: Target, measurements: Sequence[Measurement], *, progress: Progress = lambda _: None
) -> tuple[tuple[Prediction, ...], tuple[str, ...]]:
    """Predict all that was measured; what cannot be is returned with why, as texts."""
    rows = repeated_once(of_chip(measurements, target.name))
    predictions, skipped = [], Skipped()
    models = Models()
    for number, row in enumerate(rows):
        try:
            found = models.priced(row, target)
        except ProfilerError as error:
            skipped.add(row, Quantity.LATENCY, str(error))
            continue
        for quantity in quantities([row]):
            try:
                told = found.range(quantity)
            except ProfilerError as error:
                skipped.add(row, quantity, str(error))
                continue
            by_figure = found.shares(quantity)
            predictions.append(Prediction(row, 0, told.value, None, told.low, told.high, by_figure, quantity))
        progress(f"predicted {number + 1} of {len(rows)}")
    if not any(row.quantity is Quantity.LATENCY for row in predictions):
        raise UsageError(f"none of {len(rows)} measurements can be predicted: {skipped.texts()[0]}")
    return tuple(predictions), tuple(skipped.texts())


def grouped(rows: Sequence[Prediction], key: Callable[[Prediction], str]) -> list[tuple[str, list[Prediction]]]:
    """Predictions by a word of theirs, in order of first appearance."""
    found: dict[str, list[Prediction]] = {}
    for row in rows:
        found.setdefault(key(row), []).append(row)
    return list(found.items())


def of_quantities(rows: Sequence[Prediction]) -> list[tuple[Quantity, list[Prediction]]]:
    """Predictions of latencies first, then of what else was measured."""
    found = {quantity: [row for row in rows if row.quantity is quantity] for quantity in Quantity}
    return [(quantity, some) for quantity, some in found.items() if some or quantity is Quantity.LATENCY]
