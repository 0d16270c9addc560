"""A calibration as one self-contained page: predicted against measured, errors by what rows have in common, figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TextIO

from ... import __version__
from ...calibration.accuracy import (
    BY,
    GroupErrors,
    MovedFigure,
    errors_by,
    group_errors,
    moved_figures,
    next_measurements,
    ruled_by,
    unexplained,
)
from ...calibration.calibrate import Calibrated, Prediction
from ...core.units import UNKNOWN
from ..text.calibration_text import headline
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
            figures=tuple(map(_figure, moved_figures(found))),
            unexplained=tuple(unexplained(rows)),
            next=next_measurements(found),
            skipped=found.skipped,
        )
        write_page(out, title=f"{name}: calibration – opscope", generator=f"opscope {__version__}", data=data)


def _row(row: Prediction) -> CalibrationRow:
    measured = row.measurement
    return CalibrationRow(
        network=measured.label,
        chip=measured.chip,
        precision=measured.data_type,
        ruled_by=ruled_by(row) or UNKNOWN,
        measured_ns=row.measured * 1e9,
        predicted_ns=row.predicted * 1e9,
        low_ns=row.low * 1e9,
        high_ns=row.high * 1e9,
        inside=row.inside,
    )


def _groups(rows: Sequence[Prediction]) -> list[CalibrationGroups]:
    tables = ((heading, errors_by(rows, heading)) for heading in BY)
    several = [CalibrationGroups(heading, tuple(map(_group, some))) for heading, some in tables if len(some) > 1]
    return [CalibrationGroups("all", (_group(group_errors("all", rows)),)), *several]


def _others(found: Calibrated) -> list[CalibrationGroups]:
    """Errors of what else was measured: of all rows, and by network."""
    return [
        CalibrationGroups(
            f"network: {quantity.value}",
            tuple(map(_group, (group_errors("all", told.predictions), *errors_by(told.predictions, "network")))),
        )
        for quantity, told in found.others.items()
    ]


def _group(group: GroupErrors) -> CalibrationGroup:
    return CalibrationGroup(
        name=group.name or UNKNOWN,
        rows=group.judged.rows,
        median_error=group.judged.median_error,
        p90_error=group.judged.p90_error,
        bias=group.bias,
        coverage=group.judged.coverage,
        width=group.width,
    )


def _figure(moved: MovedFigure) -> CalibrationFigure:
    key, before, after, seen = moved
    return CalibrationFigure(key, before, after.value, after.smallest, after.largest, seen)
