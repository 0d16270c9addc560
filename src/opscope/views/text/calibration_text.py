"""Errors of predictions in text: all of them, by precision, chip and network, by what rules the time; and the worst."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import log

import numpy as np

from ...calibration.calibrate import Calibrated, Prediction, judged
from ...calibration.quantities import Quantity
from ...calibration.terms import is_common
from ...calibration.validate import grouped, of_quantities
from ...machine.catalogue import figures
from .columns import columns

MOST_GROUPS = 40
WORST = 5


def ruled_by(row: Prediction) -> str:
    """The part of the machine that most of the time depends on."""
    named = {key: share for key, share in row.shares.items() if share and not is_common(key)}
    key = max(named, key=lambda each: (named[each], each), default="")
    return key.removeprefix("engines[0].").removeprefix("reached.") or "—"


GROUPS: Mapping[str, Callable[[Prediction], str]] = {
    "phase": lambda row: row.measurement.phase,
    "precision": lambda row: row.measurement.precision or "float",
    "chip": lambda row: row.measurement.chip,
    "ruled by": ruled_by,
    "network": lambda row: row.measurement.network,
}


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
    yield from _table("", [("all", list(rows))])
    for heading, key in GROUPS.items():
        groups = grouped(rows, key)
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
            " ".join(filter(None, (row.measurement.network, row.measurement.phase))),
            row.measurement.chip or "—",
            row.measurement.precision or "float",
            quantity.text(row.measured),
            quantity.text(row.predicted),
            f"{row.error:+.0%}",
            f"{ruled_by(row)} ({max(row.shares.values()):.0%} of the {what})" if row.shares else "—",
        )
        for row in worst
    ]
    header = ("network", "chip", "precision", "measured", "predicted", "error", "ruled by")
    yield from columns(header, cells, align="<<<>>><", limits={})


def _table(heading: str, groups: Sequence[tuple[str, Sequence[Prediction]]]) -> Iterator[str]:
    cells = []
    for name, rows in groups:
        found = judged(rows)
        bias = float(np.median([row.error for row in rows]))
        width = float(np.median([row.high / row.low for row in rows]))
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
    yield f"{found.base.name}: {headline(found)}"
    yield ""
    yield from errors_text([row for each in found.quantities for row in found.told(each).predictions], found.skipped)
    yield ""
    left = unexplained(found.predictions)
    if left:
        yield "not explained"
        yield from left[:WORST]
        yield ""
    yield "figures, by how far they moved"
    yield from _moved(found)
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


def moved_most(found: Calibrated) -> list[str]:
    """Keys of the fitted figures, farthest from the data sheet first."""
    before, table = dict(figures(found.base)), found.shared if len(found.machines) > 1 else found.figures[0]
    return sorted(table, key=lambda key: -abs(log(table[key].value / before[key].value)))


def _moved(found: Calibrated) -> Iterator[str]:
    before = dict(figures(found.base))
    table = found.shared if len(found.machines) > 1 else found.figures[0]
    order = moved_most(found)
    seen = {key: share for each in found.quantities for key, share in found.told(each).calibration.seen.items()}
    cells = [
        (
            key,
            f"{before[key].value:,.4g}",
            f"{table[key].value:,.4g}",
            f"{table[key].smallest:,.4g} – {table[key].largest:,.4g}",
            f"{seen.get(key, 0.0):.0%}",
        )
        for key in order[:12]
    ]
    header = ("figure", "data sheet", "fitted", "range", "most of a row")
    yield from columns(header, cells, align="<>>>>", limits={})


def next_measurements(found: Calibrated) -> str:
    """What would tell most: networks that rest on the families of work with the widest ranges; empty: on none."""
    table = found.shared if len(found.machines) > 1 else found.figures[0]
    open_ = {key: log(figure.largest / figure.smallest) for key, figure in table.items() if ".reached." in key}
    order = sorted(open_, key=lambda key: (-open_[key], key))
    wide = [key.partition(".reached.")[2] for key in order[:3]]
    return f"networks that spend their time in {', '.join(wide)}" if wide else ""


def unexplained(rows: Sequence[Prediction]) -> list[str]:
    """Networks whose measured times lie outside of the range most often, and what rules theirs: no figure stands for
    what they do otherwise."""
    found = []
    for (network, precision), some in _by_cell(rows).items():
        outside = [row for row in some if not row.inside]
        if 2 * len(outside) > len(some):
            bias = float(np.median([1 + row.error for row in some]))
            rules = ruled_by(max(some, key=lambda row: abs(log(1 + row.error))))
            told = f"{network} in {precision}: predicted ÷ measured is {bias:.2f}, {len(outside)} of {len(some)} rows"
            found.append((abs(log(bias)), f"{told} outside the range; ruled by {rules}"))
    return [text for _, text in sorted(found, key=lambda row: (-row[0], row[1]))]


def _by_cell(rows: Sequence[Prediction]) -> dict[tuple[str, str], list[Prediction]]:
    found: dict[tuple[str, str], list[Prediction]] = {}
    for row in rows:
        found.setdefault((row.measurement.network, row.measurement.precision or "float"), []).append(row)
    return found
