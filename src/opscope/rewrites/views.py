"""Views of a search: text, Markdown, JSON. Steps first, then what was tried and is none of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TextIO

from ..core.errors import printable
from ..core.json_files import PRODUCER, json_bytes
from ..core.units import UNKNOWN, format_latency, format_seconds
from ..views.markdown import safe, table
from ..views.text.columns import columns, pairs
from .judge import Judged, speedup
from .outcome import Optimized, TrialResult, Tried
from .rewrite import Site

SCHEMA = "opscope.optimize/1"
STEPS_HEADER = ("rewrite", "places", "ops", "before", "after", "times", "in all", "error")
TRIED_HEADER = ("rewrite", "places", "came to", "before", "after", "why")
_MOST_REASON = 90


def told_time(judged: Judged | None) -> str:
    """Latency with its range and how it was obtained."""
    if judged is None:
        return UNKNOWN
    if judged.latency_ns is None:
        part = f"at least {format_seconds(judged.known_ns * 1e-9)}, " if judged.known_ns else ""
        return f"{UNKNOWN} ({part}{_unknown(judged)}), {judged.obtained}"
    left = f", without {_unknown(judged)}" if judged.unknown_ops else ""
    return f"{format_latency(judged.latency_ns, judged.low_ns, judged.high_ns)}{left}, {judged.obtained}"


def _unknown(judged: Judged) -> str:
    return f"{judged.unknown_ops} {'op' if judged.unknown_ops == 1 else 'ops'} of unknown cost"


def verdict_line(found: Optimized) -> str:
    """What it came to, in a line."""
    if not found.steps:
        return "nothing helped: the result is the model as it was" if found.judge else "no step was taken"
    how = "the same outputs up to rounding" if found.is_exact else f"outputs off by {_error(found.steps[-1])}"
    if found.speedup is None:
        return ", ".join(filter(None, (_known(found), how)))
    return f"{_factor(found.speedup)} as fast, {how}"


def _known(found: Optimized) -> str:
    """How many more ops a time holds, where that is what was gained."""
    if found.before is None or found.after is None or found.before.unknown_ops == found.after.unknown_ops:
        return ""
    return f"{found.after.unknown_ops} instead of {_unknown(found.before)}"


def error_text(step: Tried) -> str:
    """Against the model, after this step."""
    if step.error is None:
        return UNKNOWN
    return "exact" if step.is_exact and not step.error else f"{_error(step)}{' (rounding)' if step.is_exact else ''}"


def _error(step: Tried) -> str:
    return f"{step.error:.2g}" if step.error is not None else UNKNOWN


def step_rows(found: Optimized) -> list[tuple[str, ...]]:
    return [_step_row(step, found.before) for step in found.steps]


def _step_row(step: Tried, first: Judged | None) -> tuple[str, ...]:
    return (
        step.rewrite,
        str(len(step.sites)),
        f"−{step.nodes} +{step.added}",
        _short(step.before),
        _short(step.after),
        _times(step.before, step.after),
        _times(first, step.after),
        error_text(step),
    )


def tried_rows(found: Optimized) -> list[tuple[str, ...]]:
    """The first time that each rewrite was tried; later ones, and with others, are in the JSON."""
    return [
        (
            each.rewrite,
            str(len(each.sites)),
            each.verdict,
            _short(each.before),
            _short(each.after),
            each.reason,
        )
        for each in _first_tried(found)
        if each.verdict is not TrialResult.NO_TIME
    ]


def _first_tried(found: Optimized) -> list[Tried]:
    first: dict[str, Tried] = {}
    for each in found.tried:
        if not each.with_ or each.verdict is TrialResult.WRONG:
            first.setdefault(each.rewrite, each)
    return list(first.values())


def _short(judged: Judged | None) -> str:
    if judged is None or judged.problem:
        return UNKNOWN
    unknown = f" + {judged.unknown_ops} unknown" if judged.unknown_ops else ""
    return f"{format_seconds(judged.time_ns * 1e-9)}{unknown}"


def _times(one: Judged | None, other: Judged | None) -> str:
    found = speedup(one, other)
    return UNKNOWN if found is None else _factor(found)


def _factor(times: float) -> str:
    """With as many digits as tell it from 1."""
    return f"{times:.3f} ×" if 0.98 < times < 1.02 else f"{times:.2f} ×"


def words_below(found: Optimized) -> Iterator[str]:
    """What to know of the table, line by line."""
    told = _first_tried(found)
    more = len(found.tried) - len(told)
    if more:
        words = "1 further trial" if more == 1 else f"{more} further trials"
        verb = "is" if more == 1 else "are"
        yield f"{words}, later, at fewer places or of several rewrites together, {verb} in optimize.json"
    late = [f"{each.rewrite} ({len(each.sites)})" for each in told if each.verdict is TrialResult.NO_TIME]
    if late:
        yield f"no time was left to try: {', '.join(late)}"
    if found.stopped:
        yield (
            f"stopped at --budget-minutes {found.budget_minutes:g}, with rewrites left to try; "
            "the same command with more goes on from here"
        )
    for step in found.steps:
        if step.reason:
            yield f"{step.rewrite}: {step.reason}"
    yield from found.notes


def head_rows(found: Optimized) -> list[tuple[str, str]]:
    """What it is about, and last the verdict."""
    rounding = [step.rounding for step in found.steps if step.rounding is not None]
    used = f"; {max(rounding):.0%} of what rounding allows at the worst element" if rounding else ""
    rows = [("model", found.model), ("result", found.output), ("outputs", f"compared on {found.checked_with}{used}")]
    if found.judge:
        ran = f"{found.trials} trials run"
        rows += [("judge", f"{found.judge}, {ran}"), ("before", told_time(found.before))]
        rows += [("after", told_time(found.after))]
    return [*((name, printable(value, 300)) for name, value in rows), ("verdict", verdict_line(found))]


class OptimizedText:
    """For a terminal."""

    suffix = ".txt"

    def render(self, found: Optimized, out: TextIO) -> None:
        lines = pairs(head_rows(found), indent="")
        if found.steps:
            lines += ["", "steps", *columns(STEPS_HEADER, step_rows(found), align="<>>>>>><", limits={0: 40})]
        if found.tried:
            lines += ["", "tried, and left out"]
            lines += columns(TRIED_HEADER, tried_rows(found), align="<><>><", limits={0: 40, 5: _MOST_REASON})
        below = [f"note: {printable(words, 400)}" for words in words_below(found)]
        out.write("\n".join([*lines, *([""] if below else []), *below]) + "\n")


class OptimizedMarkdown:
    """For a comment or a page."""

    suffix = ".md"

    def render(self, found: Optimized, out: TextIO) -> None:
        lines = [f"## {safe(found.output)}: {verdict_line(found)}", ""]
        lines += [f"- {name}: {safe(value)}" for name, value in head_rows(found)[:-1]]
        if found.steps:
            lines += ["", *table(STEPS_HEADER, step_rows(found), right=range(1, 7))[:-1]]
        if found.tried:
            lines += ["", "Tried, and left out:", "", *table(TRIED_HEADER, tried_rows(found), right=(1, 3, 4))[:-1]]
        lines += [f"\n{safe(words)}" for words in words_below(found)]
        out.write("\n".join(lines) + "\n")


class OptimizedJson:
    """For other tools."""

    suffix = ".json"

    def render(self, found: Optimized, out: TextIO) -> None:
        out.write(self.bytes(found).decode())

    def bytes(self, found: Optimized) -> bytes:
        return json_bytes(
            {
                "schema": SCHEMA,
                "producer": PRODUCER,
                "model": {"path": found.model, "sha256": found.sha256},
                "output": found.output,
                "judge": found.judge or None,
                "before": _judged(found.before),
                "after": _judged(found.after),
                "speedup": found.speedup,
                "is_exact": found.is_exact,
                "steps": [_tried(step) for step in found.steps],
                "tried": [_tried(each) for each in found.tried],
                "checked_with": found.checked_with,
                "max_error": found.max_error,
                "trials": found.trials,
                "stopped": found.stopped,
                "budget_minutes": found.budget_minutes,
                "notes": found.notes,
                "folder": found.folder,
                "files": dict(found.files),
            }
        )


def _judged(judged: Judged | None) -> dict[str, object] | None:
    if judged is None or judged.problem:
        return None
    return {
        "latency_ns": judged.latency_ns,
        "low_ns": judged.low_ns,
        "high_ns": judged.high_ns,
        "provenance": judged.provenance,
        "obtained": judged.obtained,
        "known_ns": judged.known_ns,
        "unknown_ops": judged.unknown_ops,
    }


def _tried(row: Tried) -> dict[str, object]:
    return {
        "rewrite": row.rewrite,
        "with": row.with_,
        "groups": row.groups,
        "verdict": row.verdict,
        "is_exact": row.is_exact,
        "before": _judged(row.before),
        "after": _judged(row.after),
        "speedup": row.speedup,
        "error": row.error,
        "rounding": row.rounding,
        "reason": row.reason,
        "sites": [_site(site) for site in row.sites],
    }


def _site(site: Site) -> dict[str, object]:
    return {"removed": site.removed, "group": site.group, "added": site.added}
