"""Errors of predictions as JSON (`opscope.calibration/1`): each measurement beside its prediction, and the figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from ...calibration.accuracy import BY
from ...calibration.calibrate import Calibrated, Prediction, judged
from ...calibration.quantities import Quantity
from ...calibration.validate import grouped, of_quantities
from ...machine.catalogue import figures

SCHEMA = "opscope.calibration/1"


def errors_json(target: str, rows: Sequence[Prediction], skipped: Sequence[str]) -> dict[str, object]:
    by_quantity = dict(of_quantities(rows))
    found = _errors(by_quantity.pop(Quantity.LATENCY))
    others = {quantity.value: _errors(some) for quantity, some in by_quantity.items()}
    return {"schema": SCHEMA, "target": target, **found, **others, "skipped": list(skipped)}


def _errors(rows: Sequence[Prediction]) -> dict[str, object]:
    """Errors of one quantity: of all rows, by what they have in common, and row by row."""
    is_language_model = any(row.measurement.phase for row in rows)
    by = {word: grouped(rows, BY[word]) for word in ("precision", "chip", "network", *["phase"] * is_language_model)}
    return {
        "all": _judged(rows),
        "by": {word: {name: _judged(some) for name, some in groups} for word, groups in by.items()},
        "rows": [_row(row) for row in rows],
    }


def calibrated_json(found: Calibrated) -> dict[str, object]:
    before = dict(figures(found.base))
    tables = dict(zip(found.machines, found.figures, strict=True))
    fitted = {
        name or found.base.name: {
            key: {"data_sheet": before[key].value, "value": figure.value, "low": figure.low, "high": figure.high}
            for key, figure in table.items()
        }
        for name, table in tables.items()
    }
    document = errors_json(found.base.name, found.all_predictions, found.skipped)
    for quantity, told in found.others.items():
        document[quantity.value] = {**_errors(told.predictions), "calibration": asdict(told.calibration)}
    return {**document, "calibration": asdict(found.calibration), "figures": fitted}


def _judged(rows: Sequence[Prediction]) -> dict[str, object]:
    found = asdict(judged(rows))
    return {key: value for key, value in found.items() if key != "source"}


def _row(row: Prediction) -> dict[str, object]:
    measured, unit = row.measurement, row.quantity.unit
    suffix = row.quantity.column.rpartition("_")[2]
    return {
        "place": measured.place,
        "network": measured.network,
        "phase": measured.phase or None,
        "chip": measured.chip or None,
        "precision": measured.data_type,
        "batch": measured.batch,
        "cores": measured.cores,
        f"measured_{suffix}": row.measured / unit,
        f"predicted_{suffix}": row.predicted / unit,
        "left_out": row.left_out is not None,
        f"low_{suffix}": row.low / unit,
        f"high_{suffix}": row.high / unit,
        "error": row.error,
        "inside": row.inside,
        "shares": {key: round(share, 4) for key, share in row.shares.items() if share >= 0.01},
    }
