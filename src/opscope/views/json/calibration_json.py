"""Errors of predictions as JSON (`opscope.calibration/1`): each measurement beside its prediction, and the figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from ...calibration.calibrate import Calibrated, Prediction, judged
from ...calibration.validate import grouped
from ...machine.catalogue import figures

SCHEMA = "opscope.calibration/1"


def errors_json(target: str, rows: Sequence[Prediction], skipped: Sequence[str]) -> dict[str, object]:
    by = {
        "precision": grouped(rows, lambda row: row.measurement.precision or "float"),
        "chip": grouped(rows, lambda row: row.measurement.chip),
        "network": grouped(rows, lambda row: row.measurement.network),
    }
    if any(row.measurement.phase for row in rows):
        by["phase"] = grouped(rows, lambda row: row.measurement.phase)
    return {
        "schema": SCHEMA,
        "target": target,
        "all": _judged(rows),
        "by": {word: {name: _judged(some) for name, some in groups} for word, groups in by.items()},
        "rows": [_row(row) for row in rows],
        "skipped": list(skipped),
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
    return {
        **errors_json(found.base.name, found.predictions, found.skipped),
        "calibration": asdict(found.calibration),
        "figures": fitted,
    }


def _judged(rows: Sequence[Prediction]) -> dict[str, object]:
    found = asdict(judged(rows))
    return {key: value for key, value in found.items() if key != "source"}


def _row(row: Prediction) -> dict[str, object]:
    measured = row.measurement
    return {
        "place": measured.place,
        "network": measured.network,
        "phase": measured.phase or None,
        "chip": measured.chip or None,
        "precision": measured.precision or "float",
        "batch": measured.batch,
        "cores": measured.cores,
        "measured_ms": measured.seconds * 1e3,
        "predicted_ms": measured.seconds * (1 + row.error) * 1e3,
        "left_out": row.left_out_s is not None,
        "low_ms": row.low_s * 1e3,
        "high_ms": row.high_s * 1e3,
        "error": row.error,
        "inside": row.inside,
        "shares": {key: round(share, 4) for key, share in row.shares.items() if share >= 0.01},
    }
