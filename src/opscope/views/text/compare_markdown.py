"""A comparison as a comment on a pull request: verdict and a short table, details folded."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TextIO

from ...gate.comparison import Comparison, SideBySide
from ..markdown import folded, safe, table
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
from .compare_text import NO_TOTALS, side_cell

_HEADLINES = {"pass": "✅ no regression", "fail": "❌ regression", "unknown": "⚠️ a limit cannot be judged"}
_NO_LIMITS = "differences"
_WORDS = {"pass": "✅", "fail": "❌", "unknown": "⚠️"}
_SHORT = ("latency", "throughput", "host_latency", "peak_memory", "memory_read", "memory_write")


class CompareMarkdown:
    """Short enough to be read; everything else behind a click."""

    suffix = ".md"

    def __init__(self, *, by: str = "op", top: int = 15) -> None:
        self.by, self.top = by, top

    def render(self, comparison: Comparison, out: TextIO) -> None:
        """Headline, both runs, checks and metrics; the ops behind a click."""
        checks = comparison.verdict.checks
        title = _HEADLINES[comparison.word] if checks else _NO_LIMITS
        base, new = run_lines((comparison.base, comparison.new))
        lines = [
            f"### opscope: {title}",
            "",
            f"**base** {safe(comparison.base.label)} – {safe(base)}<br>",
            f"**new** {safe(comparison.new.label)} – {safe(new)}",
            "",
            *(f"- {_WORDS[c.word] if not c.warning else '⚠️'} {safe(c.reason)}" for c in checks),
            *[""][: len(checks)],
            *self._metrics(comparison),
            *self._explanation(comparison),
            *(f"> - {safe(note)}" for note in comparison.notes),
        ]
        out.write("\n".join(lines).rstrip("\n") + "\n")

    def _metrics(self, comparison: Comparison) -> Iterable[str]:
        shown = shown_metrics(comparison.metrics)
        judged = {check.metric for check in comparison.verdict.checks}
        short = [metric for metric in shown if metric.name in _SHORT or metric.name in judged]
        header = ("metric", "base", "new", "change", "noise")
        if not shown:
            yield from (NO_TOTALS, "")
            return
        yield from table(header, [metric_cells(metric) for metric in short], right=(1, 2, 3))
        rest = [metric_cells(metric) for metric in shown if metric not in short]
        yield from folded(f"{len(rest)} more metrics", table(header, rest, right=(1, 2, 3)) if rest else [])

    def _explanation(self, comparison: Comparison) -> Iterable[str]:
        whole = comparison.explanations.get(self.by)
        if whole is None or not whole.parts:
            return
        rows = [part_cells(part, whole.change_ns) for part in whole.parts[: self.top]]
        rows += [*left_cells(whole.parts[self.top :]), part_cells(whole.rest, whole.change_ns)]
        header = ("part", "share", self.by, "time, base", "new", "why")
        title = f"What explains {signed_ns(whole.change_ns)} of latency, by {self.by}; {counts(comparison)}"
        yield from folded(title, table(header, rows, right=(0, 1, 3, 4)))


class SideBySideMarkdown:
    """One column per run."""

    suffix = ".md"

    def __init__(self, *, top: int = 15) -> None:
        self.top = top

    def render(self, found: SideBySide, out: TextIO) -> None:
        heads = [f"{run.label} [{run.provenance}]" for run in found.runs]
        right = tuple(range(1, len(heads) + 1))
        metrics = [row for row in found.metrics if ":" not in row.name]
        shown = zip(found.runs, run_lines(found.runs), strict=True)
        lines = [f"- **{safe(run.label)}** – {safe(line)}" for run, line in shown] + [""]
        for title, rows in (("metric", metrics), (f"time of {found.by}", found.rows[: self.top])):
            cells = [(row.name, *(side_cell(row, n) for n in range(len(heads)))) for row in rows]
            lines += table((title, *heads), cells, right=right) if cells else [f"no {title} in any of the runs", ""]
        if found.families:
            cells = [family_cells(family) for family in found.families[: self.top]]
            lines += table(FAMILY_HEADER, cells, right=range(1, len(FAMILY_HEADER)))
        lines += [f"> - {safe(note)}" for note in found.notes]
        out.write("\n".join(lines).rstrip("\n") + "\n")
