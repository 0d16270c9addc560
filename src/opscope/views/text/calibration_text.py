"""Errors of predictions in text: all of them, by precision, chip and network, by what rules the time; and the worst."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import log

import numpy as np

from ...calibration.calibrate import Calibrated, Prediction, judged
from ...calibration.terms import is_common
from ...calibration.validate import grouped
from ...core.units import format_seconds
from ...machine.catalogue import figures
from .columns import columns

MOST_GROUPS = 40
WORST = 5


def errors_text(rows: Sequence[Prediction], skipped: Sequence[str]) -> Iterator[str]:
    """Tables of errors: the range of a row that holds the measured time counts for coverage."""
    yield from _table("", [("all", list(rows))])
    for heading, key in (
        ("phase", lambda row: row.measurement.phase),
        ("precision", lambda row: row.measurement.precision or "float"),
        ("chip", lambda row: row.measurement.chip),
        ("ruled by", ruled_by),
        ("network", lambda row: row.measurement.network),
    ):
        groups = grouped(rows, key)
        if len(groups) > 1:
            yield ""
            yield from _table(heading, groups[:MOST_GROUPS])
            if len(groups) > MOST_GROUPS:
                yield f"… and {len(groups) - MOST_GROUPS} more"
    yield ""
    yield "worst"
    worst = sorted(rows, key=lambda row: -abs(log(1 + row.error)))[:WORST]
    cells = [
        (
            " ".join(filter(None, (row.measurement.network, row.measurement.phase))),
            row.measurement.chip or "—",
            row.measurement.precision or "float",
            format_seconds(row.measurement.seconds),
            format_seconds(row.measurement.seconds * (1 + row.error)),
            f"{row.error:+.0%}",
            f"{ruled_by(row)} ({max(row.shares.values(), default=0.0):.0%} of the time)",
        )
        for row in worst
    ]
    header = ("network", "chip", "precision", "measured", "predicted", "error", "ruled by")
    yield from columns(header, cells, align="<<<>>><", limits={})
    for reason in skipped[:WORST]:
        yield f"left out: {reason}"
    if len(skipped) > WORST:
        yield f"left out: {len(skipped) - WORST} more"


def ruled_by(row: Prediction) -> str:
    """The part of the machine that most of the time depends on."""
    named = {key: share for key, share in row.shares.items() if share and not is_common(key)}
    key = max(named, key=lambda each: (named[each], each), default="")
    return key.removeprefix("engines[0].").removeprefix("reached.") or "—"


def _table(heading: str, groups: Sequence[tuple[str, Sequence[Prediction]]]) -> Iterator[str]:
    cells = []
    for name, rows in groups:
        found = judged(rows)
        bias = float(np.median([row.error for row in rows]))
        width = float(np.median([row.high_s / row.low_s for row in rows]))
        coverage = "—" if found.coverage is None else f"{found.coverage:.0%}"
        cells.append(
            (
                name or "—",
                str(found.rows),
                f"{found.median_error:.1%}",
                f"{found.p90_error:.0%}",
                f"{bias:+.1%}",
                coverage,
                f"x {width:.2f}",
            )
        )
    header = (heading, "rows", "median error", "p90", "bias", "in range", "width")
    yield from columns(header, cells, align="<>>>>>>", limits={})


def calibrated_text(found: Calibrated) -> Iterator[str]:
    """What a fit found: errors on networks left out, figures that moved, and what to measure next."""
    told = found.calibration
    chips = f" on {len(found.machines)} chips" if len(found.machines) > 1 else ""
    rows = f"{told.rows} measurements of {told.networks} networks{chips}"
    yield f"{found.base.name}: {rows}; errors are those of networks left out"
    yield ""
    yield from errors_text(found.predictions, found.skipped)
    yield ""
    yield "figures, by how far they moved"
    yield from _moved(found)
    wide = next_measurements(found)
    if wide:
        yield ""
        yield f"measure next: networks that spend their time in {', '.join(wide)}"


def _moved(found: Calibrated) -> Iterator[str]:
    before = dict(figures(found.base))
    table = found.shared if len(found.machines) > 1 else found.figures[0]
    order = sorted(table, key=lambda key: -abs(log(table[key].value / before[key].value)))
    cells = [
        (
            key,
            f"{before[key].value:,.4g}",
            f"{table[key].value:,.4g}",
            f"{table[key].smallest:,.4g} – {table[key].largest:,.4g}",
            f"{found.calibration.seen.get(key, 0.0):.0%}",
        )
        for key in order[:12]
    ]
    header = ("figure", "data sheet", "fitted", "range", "most of a time")
    yield from columns(header, cells, align="<>>>>", limits={})


def next_measurements(found: Calibrated) -> list[str]:
    """Families of work that measurements tell least about: those with the widest ranges."""
    table = found.shared if len(found.machines) > 1 else found.figures[0]
    open_ = {key: log(figure.largest / figure.smallest) for key, figure in table.items() if ".reached." in key}
    order = sorted(open_, key=lambda key: (-open_[key], key))
    return [key.partition(".reached.")[2] for key in order[:3]]
