"""Findings for a terminal: the verdict first, then causes with evidence, cost, action and what it would gain."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TextIO

from ...core.errors import printable
from ...core.units import UNKNOWN, format_bytes, format_count, format_latency, format_ns, format_percent
from ...recording.finding import (
    OTHER_BOUND,
    UPPER_BOUND,
    EngineUse,
    Finding,
    Findings,
    LawCheck,
    PathStep,
    RollupRow,
)
from ...recording.run import Run
from ...recording.summary import NO_OP_NAME
from ..table import LEFT, Column, text_table
from .columns import Style, bar, pairs, unknown_lines, with_origin
from .trial_rows import trial_rows, tried_again

_BAR_WIDTH = 32
_WIDTH = 100  # of the table of changes
_NAMES = 3  # of the ops of a finding
_NAME_WIDTH = 90  # of each
_EXPLAIN = {
    "compute": "engines at work on the network",
    "memory": "transfers to and from outer memory",
    "link": "transfers between cores and devices",
    "host-link": "transfers between host and device",
    "wait": "waiting for other work that is known",
    "layout": "conversions of layout and type, copies",
    "launch": "starting work",
    "host": "the host",
    "unknown": "nothing that was recorded explains it",
}


class FindingsText:
    """One screen: `top` findings, then one rollup; with `path`, every step of the critical path."""

    suffix = ".txt"

    def __init__(self, *, top: int = 8, by: str = "op", path: bool = False, colour: bool = False) -> None:
        self.top, self.by, self.path = top, by, path
        self.style = Style(colour)

    def render(self, run: Run, findings: Findings, out: TextIO) -> None:
        sections = (
            self._head(run),
            iter(unknown_lines(findings.unknown_ops, len(run.ops))),
            self._verdict(findings),
            self._causes(run, findings),
            self._tried(findings),
            self._engines(findings),
            self._rollup(findings),
            self._steps(findings) if self.path else iter(()),
            self._caught(run, findings),
        )
        blocks = ["\n".join(lines) for section in sections if (lines := list(section))]
        out.write("\n\n".join(blocks) + "\n")

    def _head(self, run: Run) -> Iterator[str]:
        latency, info = run.summary.latency, run.info
        times = format_latency(latency.value_ns, latency.low_ns, latency.high_ns)
        name = printable(info.network or info.model, 60)
        yield self.style(f"{name} on {printable(info.target, 60)}", "strong") + f"  {times}, {info.obtained}"

    def _verdict(self, findings: Findings) -> Iterator[str]:
        """What bounds the run, and the breakdown of its time as bars."""
        if not findings.breakdown:
            yield "Verdict: unknown; the run has no times"
            return
        largest = findings.breakdown[0]
        bound = (
            "unknown; nothing that was recorded explains most of the time"
            if findings.bound == OTHER_BOUND
            else f"{findings.bound} bound"
        )
        whole = "" if findings.wall_ns is None else f" of {format_ns(findings.wall_ns)}"
        whole = " of the time of ops whose cost is known" if findings.unknown_ops else whole
        yield self.style(f"Verdict: {bound}", "strong") + f", {format_percent(largest.share)}{whole}"
        yield ""
        for part in findings.breakdown:
            length = bar(part.share, _BAR_WIDTH)
            drawn = self.style(length, part.cause) + " " * (_BAR_WIDTH - len(length))
            yield (
                f"  {part.cause:<9} {format_percent(part.share):>6}  {drawn}  {format_ns(part.ns):>8}  "
                + self.style(_EXPLAIN.get(part.cause, ""), "faint")
            )

    def _causes(self, run: Run, findings: Findings) -> Iterator[str]:
        if not findings.findings:
            yield "Findings: none above the thresholds"
            return
        shown = findings.findings[: self.top]
        left = len(findings.findings) - len(shown)
        yield self.style("Findings", "strong") + (f" ({len(shown)} of {len(findings.findings)})" if left else "")
        known = {op.name: with_origin(op.name, op.module, op.line) for op in run.ops}
        for number, finding in enumerate(shown, start=1):
            yield from self._cause(number, finding, known)

    def _cause(self, number: int, finding: Finding, known: Mapping[str, str]) -> Iterator[str]:
        cost = format_ns(finding.cost_ns)
        share = "" if finding.share is None else f" ({format_percent(finding.share)})"
        yield f"{number:>3}. " + self.style(printable(finding.title, 200), "strong")
        rows = [("cost", cost + share + self._gain(finding))] if finding.cost_ns is not None else []
        rows.append(("seen", printable(finding.detail, 300)))
        if finding.ops:
            more = len(finding.ops) - _NAMES
            names = ", ".join(printable(known.get(name, name), _NAME_WIDTH) for name in finding.ops[:_NAMES])
            rows.append(("ops", names + (f" and {more} more" if more > 0 else "")))
        if finding.action:
            rows.append(("do", printable(finding.action, 300)))
        yield from pairs(rows, indent="       ")

    def _gain(self, finding: Finding) -> str:
        found = finding.predicted
        if found is None:
            return ""
        at_most = "at most " if found.basis == UPPER_BOUND else ""
        words = f"gain {at_most}{format_ns(found.gain_ns)} → {format_ns(found.latency_ns)}"
        note = f" ({found.basis}: {printable(found.text, 80)})" if found.basis != UPPER_BOUND and found.text else ""
        return "; " + self.style(words, "good") + note

    def _tried(self, findings: Findings) -> Iterator[str]:
        if findings.trials:
            yield self.style("Changes tried", "strong") + f" – {tried_again(findings)}"
            yield from trial_rows(findings, width=_WIDTH)

    def _engines(self, findings: Findings) -> Iterator[str]:
        """Utilization of every engine, with its worst wait."""
        if not findings.engines:
            return
        worst: dict[str, str] = {}
        for wait in findings.waits:
            worst.setdefault(wait.engine, wait.cause)
        last = Column[EngineUse]("waits most for", lambda use: worst.get(use.engine, ""), LEFT, 32)
        yield from text_table((*_ENGINES, last), findings.engines[: self.top])

    def _rollup(self, findings: Findings) -> Iterator[str]:
        """Ops added up by what the user asked for."""
        rollup = findings.rollup(self.by)
        if rollup is None or not rollup.rows:
            return
        yield from text_table((Column(self.by, lambda row: row.name, LEFT, 46), *_ROLLUP), rollup.rows[: self.top])
        if len(rollup.rows) > self.top:
            yield f"… and {len(rollup.rows) - self.top:,} more"

    def _steps(self, findings: Findings) -> Iterator[str]:
        if not findings.path:
            yield "Critical path: the run has no timeline"
            return
        yield self.style("Critical path", "strong") + f" ({len(findings.path):,} steps)"
        yield from text_table(_STEPS, findings.path)

    def _caught(self, run: Run, findings: Findings) -> Iterator[str]:
        """How much of the time was recorded, and what was lost."""
        caught = findings.coverage
        if caught is not None:
            parts = [f"{format_percent(caught.share)} of the wall time" if caught.share is not None else "no timeline"]
            lost = caught.lost_records
            parts.append(
                "whether records were lost is not known" if lost is None else f"{format_count(lost)} records lost"
            )
            without = len(caught.ops_without_time)
            if without:
                parts.append(
                    f"{format_count(without)} of {format_count(len(run.ops))} ops have no time of their own "
                    f"({printable(caught.ops_without_time[0], 40)}{', …' if without > 1 else ''})"
                )
            yield "Recorded: " + "; ".join(parts)
        if findings.checks:
            yield "Checks: " + check_line(findings.checks, self.style)
        for note in findings.notes:
            yield self.style(f"note: {printable(note, 200)}", "faint")


_ENGINES: Sequence[Column[EngineUse]] = (
    Column("engine", lambda use: use.engine, LEFT, 32),
    Column("lanes", lambda use: str(use.lanes)),
    Column("busy", lambda use: format_percent(use.utilization)),
    Column("", lambda use: bar(use.utilization or 0.0, 16), LEFT),
    Column("waits", lambda use: format_ns(use.wait_ns)),
    Column("idle", lambda use: format_ns(use.idle_ns)),
)
_ROLLUP: Sequence[Column[RollupRow]] = (
    Column("ops", lambda row: format_count(row.ops)),
    Column("busy", lambda row: format_ns(row.busy_ns)),
    Column("share", lambda row: format_percent(row.share)),
    Column("", lambda row: bar(row.share or 0.0, 12), LEFT),
    Column("on path", lambda row: format_ns(row.path_ns)),
    Column("MACs", lambda row: format_count(row.macs)),
    Column("moved", lambda row: format_bytes(row.moved_bytes)),
)


def _step_name(step: PathStep) -> str:
    """The op of a step, or the one that a gap comes before."""
    name = step.op or ("(gap)" if step.span is None else NO_OP_NAME)
    return f"(gap before) {name}" if step.span is None and step.op else name


_STEPS: Sequence[Column[PathStep]] = (
    Column("at", lambda step: format_ns(step.start_ns)),
    Column("for", lambda step: format_ns(step.end_ns - step.start_ns)),
    Column("cause", lambda step: step.cause, LEFT),
    Column("op", _step_name, LEFT, 44),
    Column("after", lambda step: step.after, LEFT, 56),
)


def check_line(checks: tuple[LawCheck, ...], style: Style) -> str:
    """All checks in one line."""
    broken = [check.name for check in checks if check.holds is False]
    held, unknown = sum(check.holds is True for check in checks), sum(check.holds is None for check in checks)
    rest = f", {unknown} not knowable" if unknown else ""
    if broken:
        return style(f"{len(broken)} VIOLATED", "bad") + f" ({printable('; '.join(broken), 200)}), {held} ok{rest}"
    return style(f"{held} ok", "good") + rest


class ChecksText:
    """One line per law."""

    suffix = ".txt"

    def __init__(self, *, colour: bool = False) -> None:
        self.style = Style(colour)

    def render(self, checks: tuple[LawCheck, ...], out: TextIO) -> None:
        for check in checks:
            word, meaning = {True: ("ok", "good"), False: ("VIOLATED", "bad"), None: (UNKNOWN, "faint")}[check.holds]
            line = f"{self.style(f'{word:<8}', meaning)}  {printable(check.name, 120)}"
            out.write(line + (f": {printable(check.detail, 300)}" if check.detail else "") + "\n")
        out.write("\n" + check_line(checks, self.style) + "\n")
