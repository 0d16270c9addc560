"""Errors of predictions in text: all of them, by precision, chip and network, by what rules the time; and the worst."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import log

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
from ...calibration.quantities import Quantity
from ...calibration.validate import of_quantities
from ...core.units import UNKNOWN
from ..table import LEFT, Column, text_table
from .columns import columns

MOST_GROUPS = 40
MOST_FIGURES = 12
WORST = 5


def errors_text(rows: Sequence[Prediction], skipped: Sequence[str]) -> Iterator[str]:
    """Tables of errors: the range of a row that holds what was measured counts for coverage."""
    for quantity, some in of_quantities(rows):
        if quantity is not Quantity.LATENCY:
            yield ""
            yield f"{quantity.value}, {quantity.column}"
        yield from _errors(some, quantity)
    for reason in skipped[:WORST]:
        yield f"note: {reason}"
    if len(skipped) > WORST:
        yield f"note: {len(skipped) - WORST} more"


def _errors(rows: Sequence[Prediction], quantity: Quantity) -> Iterator[str]:
    """Errors of one quantity: all of them, by what rows have in common, and the worst."""
    yield from _table("", [group_errors("all", rows)])
    for heading in BY:
        groups = errors_by(rows, heading)
        if len(groups) > 1:
            yield ""
            yield from _table(heading, groups[:MOST_GROUPS])
            if len(groups) > MOST_GROUPS:
                yield f"… and {len(groups) - MOST_GROUPS} more"
    yield ""
    yield "worst"
    worst = sorted(rows, key=lambda row: -abs(log(1 + row.error)))[:WORST]
    what = {Quantity.LATENCY: "time", Quantity.ENERGY: "energy", Quantity.RAM: "RAM"}[quantity]
    cells = [
        (
            row.measurement.label,
            row.measurement.chip or UNKNOWN,
            row.measurement.data_type,
            quantity.text(row.measured),
            quantity.text(row.predicted),
            f"{row.error:+.0%}",
            f"{ruled_by(row) or UNKNOWN} ({max(row.shares.values()):.0%} of the {what})" if row.shares else UNKNOWN,
        )
        for row in worst
    ]
    header = ("network", "chip", "precision", "measured", "predicted", "error", "ruled by")
    yield from columns(header, cells, align="<<<>>><", limits={})


def _table(heading: str, groups: Sequence[GroupErrors]) -> Iterator[str]:
    yield from text_table((Column(heading, lambda group: group.name or UNKNOWN, LEFT), *_ERRORS), groups)


_ERRORS: Sequence[Column[GroupErrors]] = (
    Column("rows", lambda group: str(group.judged.rows)),
    Column("median error", lambda group: f"{group.judged.median_error:.1%}"),
    Column("p90", lambda group: f"{group.judged.p90_error:.0%}"),
    Column("bias", lambda group: f"{group.bias:+.1%}"),
    Column("in range", lambda group: UNKNOWN if group.judged.coverage is None else f"{group.judged.coverage:.0%}"),
    Column("width", lambda group: f"x {group.width:.2f}"),
)


def calibrated_text(found: Calibrated) -> Iterator[str]:
    """What a fit found: errors on networks left out, figures that moved, and what to measure next."""
    yield f"{found.base.name}: {headline(found)}"
    yield ""
    yield from errors_text(found.all_predictions, found.skipped)
    yield ""
    left = unexplained(found.predictions)
    if left:
        yield "not explained"
        yield from left[:WORST]
        yield ""
    yield "figures, by how far they moved"
    yield from text_table(_FIGURES, moved_figures(found)[:MOST_FIGURES])
    wide = next_measurements(found)
    if wide:
        yield ""
        yield f"measure next: {wide}"


def headline(found: Calibrated) -> str:
    """What was fitted to what, and what errors are of."""
    told = found.calibration
    chips = f" on {len(found.machines)} chips" if len(found.machines) > 1 else ""
    whose = "networks left out" if found.judges else "the fit itself: too few networks to leave one out"
    return f"{told.rows} measurements of {told.networks} networks{chips}; errors are those of {whose}"


_FIGURES: Sequence[Column[MovedFigure]] = (
    Column("figure", lambda moved: moved.key, LEFT),
    Column("data sheet", lambda moved: f"{moved.data_sheet:,.4g}"),
    Column("fitted", lambda moved: f"{moved.fitted.value:,.4g}"),
    Column("range", lambda moved: f"{moved.fitted.smallest:,.4g} – {moved.fitted.largest:,.4g}"),
    Column("most of a row", lambda moved: f"{moved.seen:.0%}"),
)
