"""Views of a trend: text and JSON."""

from __future__ import annotations

from typing import TextIO

from ..core.errors import printable
from ..core.json_files import write_json
from ..core.units import format_ns
from ..gate.comparison import show_value
from .trend import ChangePoint, Series

_SHOWN_AT = 16  # characters of a commit


class TrendText:
    """Series that changed, each change with what explains it; the others are counted."""

    def __init__(self, *, metric: str, by: str) -> None:
        self.metric, self.by = metric, by

    def render(self, found: list[Series], out: TextIO) -> None:
        changed = [series for series in found if series.changes]
        for series in changed:
            print(f"{printable(series.name, 200)} ({series.provenance}, {len(series.points)} points)", file=out)
            for change in series.changes:
                self._render(series, change, out)
        steady = len(found) - len(changed)
        print(f"{len(changed)} of {len(found)} series of {self.metric} changed; {steady} did not", file=out)

    def _render(self, series: Series, change: ChangePoint, out: TextIO) -> None:
        before, after = (show_value(value, series.unit) for value in (change.before, change.after))
        grew = change.after > change.before
        verdict = "" if not series.better else "worse" if grew is (series.better == "less") else "better"
        size = f"{change.ratio:+.1%}" + (f" {verdict}" if verdict else "")
        print(f"  {self.by} {printable(change.at[:_SHOWN_AT], 40)}: {before} → {after}, {size}", file=out)
        interval = change.interval
        if interval is not None:
            words = f"{interval.confidence:.0%} interval {interval.low:+.1%} to {interval.high:+.1%}"
            print(f"    {words}" + (f"; {change.note}" if change.note else ""), file=out)
        if change.cause is not None:
            print(f"    cause  {change.cause[0]} {_signed(change.cause[1])}", file=out)
        for name, ns in change.ops:
            print(f"    op     {printable(name, 100)} {_signed(ns)}", file=out)


class TrendJson:
    """For programs."""

    def render(self, found: list[Series], out: TextIO) -> None:
        write_json([_series(series) for series in found], out)


def _series(series: Series) -> dict[str, object]:
    return {
        "name": series.name,
        "provenance": series.provenance,
        "unit": series.unit,
        "points": [{"id": point.id, "at": point.at, "value": point.value} for point in series.points],
        "changes": [
            {
                "at": change.at,
                "before": change.before,
                "after": change.after,
                "interval": None if change.interval is None else [change.interval.low, change.interval.high],
                "note": change.note,
                "cause": None if change.cause is None else {"name": change.cause[0], "change_ns": change.cause[1]},
                "ops": [{"name": name, "change_ns": ns} for name, ns in change.ops],
            }
            for change in series.changes
        ],
    }


def _signed(ns: float) -> str:
    return f"{'+' if ns > 0 else '−'}{format_ns(abs(ns))}"
