"""A comparison for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TextIO

from ...core.errors import printable
from ...core.units import UNKNOWN
from ...gate.comparison import Comparison, SideBySide, SideRow, show_value
from ...gate.families import Family
from ...gate.figures import NS, Figures
from ...gate.verdict import Check
from .columns import bar, columns
from .compare_rows import (
    FAMILY_HEADER,
    counts,
    family_cells,
    left_cells,
    metric_cells,
    part_cells,
    run_lines,
    shown_metrics,
    signed_ns,
)

_NAME_WIDTH = 56
_RUNS_PER_TABLE = 4
_BAR_WIDTH = 30
NO_TOTALS = "no totals in either run"


class CompareText:
    """Verdict first, then totals, then what explains the change."""

    suffix = ".txt"

    def __init__(self, *, by: str = "op", top: int = 15, brief: bool = False) -> None:
        self.by, self.top, self.brief = by, top, brief  # brief: no parts of metrics

    def render(self, comparison: Comparison, out: TextIO) -> None:
        base, new = run_lines((comparison.base, comparison.new))
        lines = [
            f"base  {printable(comparison.base.label)}: {printable(base, 300)}",
            f"new   {printable(comparison.new.label)}: {printable(new, 300)}",
            *(f"note  {printable(note, 400)}" for note in comparison.notes),
            *(check_line(check) for check in comparison.verdict.checks),
            *self._metrics(comparison),
            *self._explanation(comparison),
            *family_lines(comparison.families[: self.top]),
        ]
        out.write("\n".join(lines) + "\n")

    def _metrics(self, comparison: Comparison) -> Iterable[str]:
        shown = shown_metrics(comparison.metrics)
        rows = [metric_cells(metric) for metric in shown if not (self.brief and ":" in metric.name)]
        has_noise = any(row[4] for row in rows)
        width = 5 if has_noise else 4
        header = ("metric", "base", "new", "change", "noise")[:width]
        yield ""
        if not rows:
            yield NO_TOTALS
            return
        yield from columns(header, [row[:width] for row in rows], align="<>>><"[:width], limits={0: _NAME_WIDTH})

    def _explanation(self, comparison: Comparison) -> Iterable[str]:
        """Rows that add up to the change of latency, the largest first."""
        whole = comparison.explanations.get(self.by)
        if whole is None:
            yield f"\nlatency is not known in {_where_unknown(comparison)}: there is no change to explain"
        elif whole.parts or whole.change_ns:
            yield f"\nwhat explains the change of latency, {signed_ns(whole.change_ns)}, by {self.by}"
            shown = [part_cells(part, whole.change_ns) for part in whole.parts[: self.top]]
            most = max(abs(part.ns) for part in (*whole.parts, whole.rest)) or 1
            bars = [bar(abs(part.ns) / most, 12) for part in whole.parts[: self.top]]
            cells = [*shown, *left_cells(whole.parts[self.top :]), part_cells(whole.rest, whole.change_ns)]
            rows = [(*row[:2], bars[n] if n < len(bars) else "", *row[2:]) for n, row in enumerate(cells)]
            width = 7 if any(row[6] for row in rows) else 6
            header = ("part", "share", "", self.by, "time, base", "new", "why")[:width]
            cut = [row[:width] for row in rows]
            yield from columns(header, cut, align=">><<>><"[:width], limits={3: _NAME_WIDTH, 6: 72})
        yield f"\n{counts(comparison)}"


def _where_unknown(comparison: Comparison) -> str:
    unknown = [
        word for word, run in (("the base", comparison.base), ("the new run", comparison.new)) if run.latency_ns is None
    ]
    return unknown[0] if len(unknown) == 1 else "either run"


def check_line(check: Check) -> str:
    word = {"pass": "ok  ", "fail": "FAIL", "unknown": "??  "}[check.word]
    return f"{'warn' if check.warning else word}  {printable(check.reason, 600)}"


class SideBySideText:
    """One column per run, with its provenance above it and its ratio to the first run."""

    suffix = ".txt"

    def __init__(self, *, top: int = 15) -> None:
        self.top = top

    def render(self, found: SideBySide, out: TextIO) -> None:
        heads = zip(run_names(found), run_lines(found.runs), strict=True)
        lines = [f"{name}: {printable(line, 300)}" for name, line in heads]
        lines += [f"note  {printable(note, 400)}" for note in found.notes]
        lines += latency_bars(found)
        for start in range(1, len(found.runs), _RUNS_PER_TABLE - 1):
            chosen = [0, *range(start, min(start + _RUNS_PER_TABLE - 1, len(found.runs)))]
            known = [row for row in found.metrics if any(row.values[number] is not None for number in chosen)]
            lines += ["", *self._table(found, chosen, "metric", [row for row in known if ":" not in row.name])]
            lines += ["", *self._table(found, chosen, f"time of {found.by}", found.rows[: self.top])]
        if len(found.rows) > self.top:
            lines.append(f"({len(found.rows) - self.top} more in --format json)")
        lines += family_lines(found.families[: self.top])
        out.write("\n".join(lines) + "\n")

    def _table(self, found: SideBySide, chosen: list[int], title: str, rows: Iterable[SideRow]) -> list[str]:
        header = [title, *(f"{printable(found.runs[n].label, 28)} [{found.runs[n].provenance}]" for n in chosen)]
        cells = [[row.name, *(side_cell(row, n) for n in chosen)] for row in rows]
        if not cells:
            return [f"no {title} in any of the runs"]
        return columns(header, cells, align="<" + ">" * len(chosen), limits={0: _NAME_WIDTH})


def family_lines(families: Sequence[Family]) -> list[str]:
    """By type of ops, what a prediction is off by, and what that costs."""
    if not families:
        return []
    cells = [family_cells(family) for family in families]
    title = "where the prediction is off, by what it costs"
    return ["", title, *columns(FAMILY_HEADER, cells, align="<>>>>>", limits={0: _NAME_WIDTH})]


def run_names(found: SideBySide) -> list[str]:
    width = max(len(printable(run.label)) for run in found.runs)
    return [f"{printable(run.label):<{width}}" for run in found.runs]


def side_cell(row: SideRow, run: int) -> str:
    """`3.98 ms  ×1.87`"""
    value = row.values[run]
    if value is None:
        return UNKNOWN
    shown = show_value(value, row.unit)
    return shown if run == 0 else f"{shown}  {_times(row.ratios[run]):>6}"


def _times(ratio: float | None) -> str:
    if ratio is None:
        return ""
    return f"×{ratio:,.0f}" if ratio >= 100 else f"×{ratio:.2f}" if ratio >= 0.01 or not ratio else f"×{ratio:.1g}"


def latency_bars(found: SideBySide) -> list[str]:
    """One bar per run, under the heading of its provenance: lengths compare, kinds do not mix."""
    longest = max((run.latency_ns or 0 for run in found.runs), default=0)
    if not longest:
        return []
    lines = ["", "latency"]
    for provenance in dict.fromkeys(run.provenance for run in found.runs):
        lines.append(f"  {printable(provenance)}")
        lines += [
            f"    {name}  {_latency(run):>9}  {bar((run.latency_ns or 0) / longest, _BAR_WIDTH)}"
            for name, run in zip(run_names(found), found.runs, strict=True)
            if run.provenance == provenance
        ]
    return lines


def _latency(run: Figures) -> str:
    return show_value(run.latency_ns, NS)
