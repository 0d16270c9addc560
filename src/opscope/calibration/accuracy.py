"""Errors of predictions by what rows have in common, and what they say: what rules a time, what no figure explains."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import log
from typing import NamedTuple

import numpy as np

from ..machine.calibration import Validation
from ..machine.catalogue import figures
from ..machine.target import Figure
from .calibrate import Calibrated, Prediction, judged
from .terms import is_common
from .validate import grouped


class GroupErrors(NamedTuple):
    """Errors of some predictions."""

    name: str  # that they have in common
    judged: Validation
    bias: float  # median of predicted ÷ measured - 1
    width: float  # median of the ranges, largest ÷ smallest


def ruled_by(row: Prediction) -> str:
    """The part of the machine that most of the time depends on; empty: no figure that is fitted."""
    named = {key: share for key, share in row.shares.items() if share and not is_common(key)}
    key = max(named, key=lambda each: (named[each], each), default="")
    return key.removeprefix("engines[0].").removeprefix("reached.")


BY: Mapping[str, Callable[[Prediction], str]] = {  # heading → what rows have in common
    "phase": lambda row: row.measurement.phase,
    "precision": lambda row: row.measurement.data_type,
    "chip": lambda row: row.measurement.chip,
    "ruled by": ruled_by,
    "network": lambda row: row.measurement.network,
}


def errors_by(rows: Sequence[Prediction], heading: str) -> list[GroupErrors]:
    """In order of first appearance."""
    return [group_errors(name, some) for name, some in grouped(rows, BY[heading])]


def group_errors(name: str, rows: Sequence[Prediction]) -> GroupErrors:
    return GroupErrors(
        name,
        judged(rows),
        bias=float(np.median([row.error for row in rows])),
        width=float(np.median([row.high / row.low for row in rows])),
    )


class MovedFigure(NamedTuple):
    """A figure that was fitted."""

    key: str
    data_sheet: float
    fitted: Figure
    seen: float  # most of a row that depends on it, as a share


def moved_figures(found: Calibrated) -> list[MovedFigure]:
    """Farthest from the data sheet first."""
    before, table = dict(figures(found.base)), found.typical_figures
    seen = {key: share for told in found.found.values() for key, share in told.calibration.seen.items()}
    moved = [MovedFigure(key, before[key].value, figure, seen.get(key, 0.0)) for key, figure in table.items()]
    return sorted(moved, key=lambda each: -abs(log(each.fitted.value / each.data_sheet)))


def next_measurements(found: Calibrated) -> str:
    """What would tell most: networks that rest on the families of work with the widest ranges; empty: on none."""
    table = found.typical_figures
    open_ = {key: log(figure.largest / figure.smallest) for key, figure in table.items() if ".reached." in key}
    order = sorted(open_, key=lambda key: (-open_[key], key))
    wide = [key.partition(".reached.")[2] for key in order[:3]]
    return f"networks that spend their time in {', '.join(wide)}" if wide else ""


def unexplained(rows: Sequence[Prediction]) -> list[str]:
    """Networks whose measured times lie outside of the range most often, and what rules theirs: no figure stands for
    what they do otherwise."""
    found = [told for cell, some in _by_cell(rows) for told in _outside(cell, some)]
    return [text for _, text in sorted(found, key=lambda row: (-row[0], row[1]))]


def _outside(cell: str, rows: Sequence[Prediction]) -> Iterator[tuple[float, str]]:
    """How far off the rows of a cell are, and in words, where most lie outside of their range."""
    outside = sum(not row.inside for row in rows)
    if 2 * outside > len(rows):
        ratio = float(np.median([1 + row.error for row in rows]))
        rules = ruled_by(max(rows, key=lambda row: abs(log(1 + row.error)))) or "—"
        told = f"{cell}: predicted ÷ measured is {ratio:.2f}, {outside} of {len(rows)} rows"
        yield abs(log(ratio)), f"{told} outside the range; ruled by {rules}"


def _by_cell(rows: Sequence[Prediction]) -> list[tuple[str, list[Prediction]]]:
    return grouped(rows, lambda row: f"{row.measurement.network} in {row.measurement.data_type}")
