"""What was found about every model of a change → the comment on it: a table with the causes, details behind a click."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from io import StringIO

from ..core.units import UNKNOWN, format_percent
from ..gate.comparison import Comparison, Part, show_change, show_value
from ..views.markdown import folded, safe, table
from ..views.text.compare_markdown import CompareMarkdown
from ..views.text.compare_rows import signed_ns

MOST_CHARACTERS = 60_000  # of a comment: code hosts take 65,536
_HEADLINES = ("✅ no regression", "❌ regression", "⚠️ not every model could be judged")
_MARKS = ("✅", "❌", "⚠️")
_NO_BASELINE = "no baseline yet"


@dataclass(frozen=True, slots=True)
class JudgedModel:
    """One model of a change."""

    model: str
    comparison: Comparison | None = None  # with the baseline; None: there is none, or nothing could be said
    code: int = 0  # as the exit code of `compare`
    problem: str = ""  # why nothing could be said
    latency_ns: float | None = None  # where there is nothing to compare with


def comment_of(marker: str, judged: Sequence[JudgedModel]) -> str:
    """The comment, with the marker as its first line."""
    worst = max((each.code for each in judged), default=0)
    header = ("model", "base", "now", "latency", "", "cause")
    head = [
        marker,
        f"### opscope: {_HEADLINES[worst]}",
        "",
        *table(header, [_cells(each) for each in judged], right=(1, 2, 3)),
    ]
    details = [line for each in judged for line in _details(each)]
    if len("\n".join([*head, *details])) > MOST_CHARACTERS:
        details = ["Details are in the files of the job: they are too long for a comment."]
    return "\n".join([*head, *details]).rstrip("\n") + "\n"


def _cells(judged: JudgedModel) -> tuple[str, ...]:
    if judged.comparison is None:
        words = judged.problem or _NO_BASELINE
        return judged.model, "", show_value(judged.latency_ns, "ns"), "", _MARKS[judged.code], words
    found = judged.comparison
    latency = next((metric for metric in found.metrics if metric.name == "latency"), None)
    shown = (UNKNOWN,) * 3
    if latency is not None:
        shown = show_value(latency.base, "ns"), show_value(latency.new, "ns"), show_change(latency)
    return judged.model, *shown, _MARKS[judged.code], cause_of(found)


def cause_of(comparison: Comparison) -> str:
    """The op that adds most to the change, of how much, and what is different about it."""
    whole = comparison.explanation
    if whole is None or not whole.change_ns:
        return ""
    part: Part | None = next((part for part in whole.parts if part.ns * whole.change_ns > 0), None)
    if part is None:
        return ""
    share = format_percent(part.ns / whole.change_ns)
    why = f": {part.row.cause}" if part.row is not None and part.row.cause else ""
    return f"{part.name} {signed_ns(part.ns)} ({share}){why}"


def _details(judged: JudgedModel) -> Iterable[str]:
    if judged.comparison is None:
        return []
    text = StringIO()
    CompareMarkdown().render(judged.comparison, text)
    _, *lines = text.getvalue().splitlines()  # the headline is that of the whole comment
    return folded(judged.model, lines)


def job_notes(judged: Sequence[JudgedModel]) -> list[str]:
    """Models that could not be judged, for the log."""
    return [f"{safe(each.model)}: {each.problem or _NO_BASELINE}" for each in judged if each.comparison is None]
