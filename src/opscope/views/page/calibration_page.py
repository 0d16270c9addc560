"""A calibration as one self-contained page: predicted against measured, errors by what rows have in common, figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TextIO

import numpy as np

from ... import __version__
from ...calibration.calibrate import Calibrated, Prediction, judged
from ...calibration.validate import grouped
from ...machine.catalogue import figures
from ..text.calibration_text import GROUPS, headline, moved_most, next_measurements, ruled_by, unexplained
from .contract import (
    CALIBRATION_SCHEMA,
    CalibrationData,
    CalibrationFigure,
    CalibrationGroup,
    CalibrationGroups,
    CalibrationRow,
    Producer,
)
from .html import write_page


class CalibrationPage:
    """One file that opens from disk and loads nothing."""

    def render(self, found: Calibrated, out: TextIO) -> None:
        rows, name = found.predictions, found.base.name
        data = CalibrationData(
            schema=CALIBRATION_SCHEMA,
            producer=Producer("opscope", __version__),
            target=name,
            head=f"{headline(found)}.",
            rows=tuple(map(_row, rows)),
            groups=(*_groups(rows), *_others(found)),
            figures=tuple(_figures(found)),
            unexplained=tuple(unexplained(rows)),
            next=next_measurements(found),
            skipped=found.skipped,
        )
        write_page(out, title=f"{name}: calibration – opscope", generator=f"opscope {__version__}", data=data)


def _row(row: Prediction) -> CalibrationRow:
    measured = row.measurement
    return CalibrationRow(
        network=" ".join(filter(None, (measured.network, measured.phase))),
        chip=measured.chip,
        precision=measured.precision or "float",
        ruled_by=ruled_by(row),
        measured_ns=row.measured * 1e9,
        predicted_ns=row.predicted * 1e9,
        low_ns=row.low * 1e9,
        high_ns=row.high * 1e9,
        inside=row.inside,
    )


def _groups(rows: Sequence[Prediction]) -> list[CalibrationGroups]:
    found = [("all", [("all", list(rows))]), *((by, grouped(rows, key)) for by, key in GROUPS.items())]
    return [CalibrationGroups(by, tuple(map(_group, some))) for by, some in found if by == "all" or len(some) > 1]


def _others(found: Calibrated) -> list[CalibrationGroups]:
    """Errors of what else was measured: of all rows, and by network."""
    return [
        CalibrationGroups(
            f"network: {quantity.value}",
            tuple(map(_group, [("all", told.predictions), *grouped(told.predictions, GROUPS["network"])])),
        )
        for quantity, told in found.others.items()
    ]


def _group(named: tuple[str, Sequence[Prediction]]) -> CalibrationGroup:
    name, rows = named
    found = judged(rows)
    return CalibrationGroup(
        name=name,
        rows=found.rows,
        median_error=found.median_error,
        p90_error=found.p90_error,
        bias=float(np.median([row.error for row in rows])),
        coverage=found.coverage,
        width=float(np.median([row.high / row.low for row in rows])),
    )


def _figures(found: Calibrated) -> list[CalibrationFigure]:
    before, table = dict(figures(found.base)), found.shared if len(found.machines) > 1 else found.figures[0]
    seen = {key: share for quantity in found.quantities for key, share in found.told(quantity).calibration.seen.items()}
    return [
        CalibrationFigure(
            key, before[key].value, table[key].value, table[key].smallest, table[key].largest, seen.get(key, 0.0)
        )
        for key in moved_most(found)
    ]
