"""Target, Measurements → errors: what a target says beside what was measured, and how often its range held."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from ..core.errors import ProfilerError, UsageError
from ..estimate.estimator import estimate
from ..estimate.machines import use_machine
from ..estimate.precision import in_precision, with_precision
from ..estimate.ranges import shares
from ..graph.graph import Graph
from ..machine.target import Target
from ..readers import graph_of
from .calibrate import Prediction, Progress
from .measurements import Measurement, of_one_op, repeated_once


def validate(
    target: Target, measurements: Sequence[Measurement], *, progress: Progress = lambda _: None
) -> tuple[tuple[Prediction, ...], tuple[str, ...]]:
    """Predict every measurement; those that cannot be are returned with why, as texts."""
    rows = repeated_once([row for row in measurements if row.chip in ("", target.name)] or measurements)
    predictions, skipped = [], []
    read: dict[object, Graph] = {}
    for number, row in enumerate(rows):
        try:
            predictions.append(_predicted(target, row, read))
        except ProfilerError as error:
            skipped.append(f"{row.place}: {error}")
        progress(f"predicted {number + 1} of {len(rows)}")
    if not predictions:
        raise UsageError(f"none of {len(rows)} measurements can be predicted: {skipped[0]}")
    return tuple(predictions), tuple(skipped)


def _predicted(target: Target, row: Measurement, read: dict[object, Graph]) -> Prediction:
    model = row.model if isinstance(row.model, Path) else row.network
    key = (model, row.batch, tuple(sorted((row.shapes or {}).items())))
    if key not in read:
        read[key] = graph_of(row.model, shapes=row.shapes, batch=row.batch)
    chosen = with_precision(target if isinstance(row.model, Path) else of_one_op(target), row.precision)
    found = estimate(in_precision(read[key], chosen, row.precision), use_machine(chosen, cores=row.cores))
    latency = found.totals.latency_s
    if latency is None:
        raise UsageError(found.totals.withheld)
    return Prediction(row, 0, latency.value, None, latency.low, latency.high, shares(found.costs, chosen))


def grouped(rows: Sequence[Prediction], key: Callable[[Prediction], str]) -> list[tuple[str, list[Prediction]]]:
    """Predictions by a word of theirs, in order of first appearance."""
    found: dict[str, list[Prediction]] = {}
    for row in rows:
        found.setdefault(key(row), []).append(row)
    return list(found.items())
