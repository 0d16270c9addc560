"""What a profile comes to, on one screen: the verdict, where the time goes, the costliest ops, what to change.

The same for every profile, whatever made it; then what its source alone tells.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap
from typing import TextIO

from ...core.errors import printable
from ...core.manifest import USUAL_SECTIONS, Section
from ...core.units import UNKNOWN, format_digits, format_latency, format_ns, format_percent
from ...recording.finding import OTHER_BOUND, UPPER_BOUND, Finding, Findings
from ...recording.recording import OpRecord, Recording
from ...recording.run import Run
from ...recording.summary import OpTotal
from .columns import Style, bar, columns, pairs, unknown_lines, with_origin
from .recording_text import latency_words, sections_of
from .trial_rows import trial_rows, tried_again

WIDTH = 100  # of the screen, where nobody says
MOST_FINDINGS = 3  # in full, beside those of the source
_BAR_WIDTH = 40
_KERNEL_WIDTH = 24
_INDENT = 14  # of what stands beside latency, throughput and verdict
_LEAST_NAME = 16  # columns of a name, however narrow the screen


class ProfileText:
    """The screen after `opscope profile` and `opscope import`."""

    suffix = ".txt"

    def __init__(
        self,
        *,
        top: int | None = 10,
        sections: Sequence[Section] = USUAL_SECTIONS,
        colour: bool = False,
        width: int = WIDTH,
        more: str = "--all",
        places: Sequence[tuple[str, str]] = (),
    ) -> None:
        """Choose what to show.

        Args:
            top: ops to list; None: all.
            sections: of what the source tells.
            colour: for a terminal.
            width: of the screen, in characters.
            more: the option that lists every op, named where some are left out.
            places: what to look at next, and the file or command for it.
        """
        self.top = top
        self.sections = sections
        self.style = Style(colour)
        self.width = width
        self.more = more
        self.places = places

    def render(self, run: Run, found: Findings, recording: Recording, out: TextIO) -> None:
        parts = (
            self._head(run, found, recording),
            self._unknown(run, found),
            self._language_model(run),
            self._breakdown(found),
            self._ops(run, recording),
            self._found(found, recording),
            self._tried(found),
            *sections_of(recording, sections=self.sections, top=self.top),
            self._notes(found),
            self._places(),
        )
        out.write("\n\n".join("\n".join(lines) for lines in parts if lines) + "\n")

    def _head(self, run: Run, found: Findings, recording: Recording) -> list[str]:
        """Title, latency, throughput and verdict."""
        info, latency = run.info, run.summary.latency
        place = f"{info.devices} × {info.cores} cores" if info.devices > 1 else f"{info.cores} cores"
        where = f"{info.target}, {place}" if info.devices * info.cores > 1 else info.target
        title = f"{printable(info.network, 80)} on {printable(where, 80)} ({info.obtained})"
        unknown = found.unknown_ops
        rows = [("latency", format_latency(latency.value_ns, latency.low_ns, latency.high_ns))]
        if run.summary.host:
            ns = sum(stage.ns for stage in run.summary.host)
            seen = format_latency(None if unknown else ns, ns, None)
            rows[0] = ("latency", f"{rows[0][1]}; the application sees {seen}")
        rows += [("", line) for line in wrap(latency_words(recording), self.width - _INDENT)]
        if run.summary.throughput_per_s is not None:
            alone = " of the device alone" if run.summary.host else ""  # the host may not keep up with it
            rate = f"{format_digits(run.summary.throughput_per_s)} inferences/s{alone}"
            rows.append(("throughput", rate + _per_activation(run)))
        if found.breakdown:
            share = next(part.share for part in found.breakdown if part.cause == found.bound)
            part = "of the time of ops whose cost is known" if unknown else "of the time"
            bound = f"{found.bound} bound" if found.bound != OTHER_BOUND else "unknown, nothing recorded explains it"
            rows.append(("verdict", f"{bound}: {format_percent(share)} {part}"))
        rows += [("left", line) for line in _without(found)]
        title_lines = (self.style(line, "strong") for line in wrap(title, self.width))
        return [*title_lines, *pairs(rows), *self._broken_laws(found)]

    def _language_model(self, run: Run) -> list[str]:
        if run.summary.language_model is None:
            return []
        from .language_model_text import table_lines

        return table_lines(run.summary.language_model)[:-1]

    def _broken_laws(self, found: Findings) -> list[str]:
        """What makes the numbers above impossible, with both sides of each law."""
        broken = (f"law broken: {check.name}: {check.detail}" for check in found.checks if check.holds is False)
        return [
            self.style(line, "bad")
            for words in broken
            for line in wrap(printable(words, 400), self.width, subsequent_indent="  ")
        ]

    def _unknown(self, run: Run, found: Findings) -> list[str]:
        """Ops that no time above holds, and why."""
        return [
            line
            for text in unknown_lines(found.unknown_ops, len(run.ops))
            for line in wrap(text, self.width, subsequent_indent="    ")
        ]

    def _breakdown(self, found: Findings) -> list[str]:
        """A bar for each part of the time, longest first."""
        parts = sorted((part for part in found.breakdown if part.share > 0), key=lambda part: -part.share)
        lines = []
        name = max((len(part.cause) for part in parts), default=0)
        for part in parts:
            most = min(_BAR_WIDTH, self.width - name - 24)
            length = f"{bar(part.share, most):<{most}}"
            drawn = self.style(length, part.cause)
            lines.append(f"  {part.cause:<{name}} {drawn} {format_percent(part.share):>6}  {format_ns(round(part.ns))}")
        return lines

    def _ops(self, run: Run, recording: Recording) -> list[str]:
        """The table of the costliest ops, its last column as wide as the screen leaves it.

        Of ops that were measured again and again the time is the median, with the spread beside it.
        """
        ops = run.summary.ops
        shown = ops if self.top is None else ops[: self.top]
        if not shown:
            return []
        if all(op.wall_ns is None and op.share is None for op in ops):
            return self._untimed(shown, left=len(ops) - len(shown))
        kernels, samples = any(op.kernel for op in shown), _samples(recording)
        rows = [_op_row(op, _name(run, op), kernels=kernels, samples=samples) for op in shown]
        spread = ("10th", "90th") if samples else ()
        header = ("busy", "", "time", *spread, "type", "engine", *(["kernel"] if kernels else []), "op")
        align, first = "><>" + ">" * len(spread) + "<<" + "<" * kernels, 3 + len(spread)
        limits = {first: 20, first + 1: 14, first + 2: _KERNEL_WIDTH}
        before = columns(header[:-1], [row[:-1] for row in rows], align=align, limits=limits)[1]  # its rule
        name = max(self.width - len(before) - 2, _LEAST_NAME)
        table = columns(header, rows, align=align + "<", limits=limits | {len(align): name})
        left = len(ops) - len(shown)
        time = "median, 10th and 90th percentile" if samples else "on the clock"
        note = f" – busy: share of the work of all engines; time: {time}" if self.width >= 80 else ""
        return [
            self.style("COSTLIEST OPS", "strong") + note,
            *table,
            *self._more(left),
        ]

    def _untimed(self, shown: Sequence[OpTotal], *, left: int) -> list[str]:
        """Where no time is known, that is said once."""
        rows = [(op.type or UNKNOWN, op.engine or UNKNOWN, op.name) for op in shown]
        name = max(self.width - 38, _LEAST_NAME)
        table = columns(("type", "engine", "op"), rows, align="<<<", limits={0: 20, 1: 14, 2: name})
        return [self.style("OPS", "strong") + " – no times of ops are known", *table, *self._more(left)]

    def _more(self, left: int) -> list[str]:
        return [f"… and {left} more ({self.more})"] if left > 0 else []

    def _found(self, found: Findings, recording: Recording) -> list[str]:
        """The costliest, and where it is asked for, all that the source found by itself."""
        told = {cause.title for cause in recording.causes} if Section.CAUSES in self.sections else set()
        shown = [
            finding for number, finding in enumerate(found.findings) if number < MOST_FINDINGS or finding.title in told
        ]
        if not shown:
            return []
        lines = [self.style("WHAT TO CHANGE", "strong")]
        for number, finding in enumerate(shown, start=1):
            lines += self._finding(number, finding)
        left = len(found.findings) - len(shown)
        return [*lines, *([f"… and {left} more (`opscope analyze`)"] if left > 0 else [])]

    def _finding(self, number: int, finding: Finding) -> list[str]:
        share = format_percent(finding.share)
        cost = "" if finding.share is None or share in finding.title else f" – {share} of the time"
        title = wrap(f"{number}. {printable(finding.title, 200)}{cost}", self.width, subsequent_indent="   ")
        lines = [self.style(line, "strong") for line in title]
        lines += self._folded(printable(finding.detail, 400))
        if finding.action:
            lines += self._folded("→ " + printable(finding.action, 400))
        if finding.predicted is not None:
            at_most = "at most " if finding.predicted.basis == UPPER_BOUND else ""
            text = f" ({finding.predicted.text})" if finding.predicted.text else ""
            lines += self._folded(f"saves {at_most}{format_ns(finding.predicted.gain_ns)}{text}")
        return lines

    def _folded(self, text: str) -> list[str]:
        return wrap(text, self.width, initial_indent="   ", subsequent_indent="   ")

    def _tried(self, found: Findings) -> list[str]:
        if not found.trials:
            return []
        note = f" – {tried_again(found)}" if self.width >= 60 else ""
        return [self.style("CHANGES TRIED", "strong") + note, *trial_rows(found, width=self.width)]

    def _notes(self, found: Findings) -> list[str]:
        """What cannot be known of this run, and what its source says of its numbers."""
        return [
            line
            for note in found.notes
            for line in wrap(f"note: {printable(note, 1000)}", self.width, subsequent_indent="      ")
        ]

    def _places(self) -> list[str]:
        if not self.places:
            return []
        return [
            self.style("WHERE TO LOOK", "strong"),
            *pairs([(name, printable(text, 400)) for name, text in self.places]),
        ]


def _without(found: Findings) -> Iterator[str]:
    """The time that is left without ops whose modelled time is in doubt."""
    left = found.without_outliers_ns
    if left is not None:
        one = "an op" if sum(len(finding.ops) for finding in found.outliers) == 1 else "ops"
        yield f"{format_ns(left)} without {one} far above what bytes and operations need (see below)"


def _name(run: Run, op: OpTotal) -> str:
    if op.op is None:
        return op.name
    info = run.ops[op.op]
    return with_origin(op.name, info.module, info.line)


def _samples(recording: Recording) -> Mapping[int, OpRecord]:
    """Ops that were measured again and again, by their number; what a file has may be the least and the most."""
    return {} if recording.source else {n: op for n, op in enumerate(recording.ops) if op.low_ns is not None}


def _op_row(op: OpTotal, name: str, *, kernels: bool, samples: Mapping[int, OpRecord]) -> Sequence[str]:
    sampled = None if op.op is None else samples.get(op.op)
    low, high = (None, None) if sampled is None else (sampled.low_ns, sampled.high_ns)
    return (
        format_percent(op.share),
        bar(op.share or 0.0, 12),
        format_ns(op.wall_ns),
        *([format_ns(low), format_ns(high)] if samples else []),
        op.type or UNKNOWN,
        op.engine or UNKNOWN,
        *([op.kernel or UNKNOWN] if kernels else []),
        name,
    )


def _per_activation(run: Run) -> str:
    """What each activation has of the throughput, where there are several."""
    latency, batch, rate = run.summary.latency.value_ns, run.summary.batch, run.summary.throughput_per_s
    if not latency or not batch or not rate or run.info.options.get("activations", 1) == 1:
        return ""
    each = batch * 1e9 / latency
    return f", {round(rate / each)} activations at once with {format_digits(each)} each"
