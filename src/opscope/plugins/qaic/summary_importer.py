"""Text of a qaic-opstats summary → Recording: tables of op kinds, threads as spans, and the identities between them."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from io import StringIO
from pathlib import Path

import numpy as np

from ...core.errors import CaptureError, ImportFileError
from ...core.provenance import Provenance
from ...core.target_words import TargetWords
from ...importers.reading import Unread, number_in, read_text
from ...recording.recording import LATENCY, Check, Metric, OpRecord, Recording
from ...recording.summary import DeviceSummary
from ...recording.trace import COUNTER, EDGE, Lane, SpanKind, Trace, blank_spans
from .summary_text import read_opstats_text

TOOL = "qaic-opstats"
_MOST_BYTES, _MOST_TICKS = 1 << 27, 1 << 53
_FREQUENCY = re.compile(r"^c(\d{1,4}): Effective frequency is ([\d.]{1,20})MHz", re.MULTILINE)
_WINDOW = re.compile(r"^total batch ucycles:\s+(\d{1,18}) \[(\d{1,18}), (\d{1,18})\]", re.MULTILINE)
_RATE = re.compile(
    r"^\[.{1,200}\] Device instance inf/s: \((\d{1,9})/([\d.e+-]{1,20})\): ([\d.e+-]{1,20})", re.MULTILINE
)
WORDS = TargetWords({"VTCM": "TCM"}, trace_category="aic")  # as timelines of the same tools have them
_SIMULATED = re.compile(r"^---- Beyond the op table \((\w[\w-]*);", re.MULTILINE)


class OpstatsSummary:
    """One device, one inference."""

    name = "qaic-summary"

    def read(self, path: Path) -> Recording:
        """The tables of the summary, and the identities that they obey."""
        text, unread = read_text(path), Unread("rows")
        if len(text) > _MOST_BYTES:
            raise ImportFileError(str(path), "", f"{len(text)} characters; expected a summary of one inference")
        try:
            summary = read_opstats_text(StringIO(text), source=str(path), unread=unread.add)
        except CaptureError as error:
            raise ImportFileError(str(path), "", str(error).partition(": byte 0x0: ")[2] or str(error)) from error
        except (ValueError, OverflowError) as error:
            raise ImportFileError(str(path), "", f"{str(error)[:100]}; expected the rows of a summary") from error
        summary = _sane(summary, unread)
        if not summary.threads:
            raise ImportFileError(str(path), "", f"{unread.notes()[0]}; expected threads that end after they start")
        simulated = _SIMULATED.search(text)
        ours = simulated is not None and simulated[1] == Provenance.SIMULATED
        provenance = Provenance.SIMULATED if ours else Provenance.MEASURED
        return Recording(
            maker=self.name,
            tool=TOOL,
            provenance=provenance,
            trace=_trace(summary, provenance),
            words=WORDS,
            ops=tuple(_ops(summary)),
            metrics=tuple(_metrics(summary)),
            checks=tuple(_checks(summary, text)),
            notes=(
                "rows are per core, kind, thread group and memory; sync and barrier rows are waits",
                "the text does not say the timer's rate: 19.2 MHz is taken",
                *unread.notes(),
            ),
            model=summary.network or None,
            inferences=1,
            tables=(summary,),
        )


def _sane(summary: DeviceSummary, unread: Unread) -> DeviceSummary:
    """Without the rows that cannot be true: a damaged digit must not make a span of a million years."""

    def keep(what: str, good: bool) -> bool:
        if not good:
            unread.add(what, "ends before it starts, or beyond 2^53 ticks")
        return good

    first = min(row.start for row in summary.threads)
    threads = [
        row
        for row in summary.threads
        if keep(f"c{row.core} t{row.thread}", row.start <= row.end < first + _MOST_TICKS and row.pcycles < _MOST_TICKS)
    ]
    kinds = [
        row
        for row in summary.kinds
        if keep(row.kind[:40], row.ucycles < _MOST_TICKS and (row.pcycles or 0) < _MOST_TICKS)
    ]
    ports = [row for row in summary.ports if keep(f"c{row.core} port {row.port}", row.wait < _MOST_TICKS)]
    return replace(summary, threads=tuple(threads), kinds=tuple(kinds), ports=tuple(ports))


def _ops(summary: DeviceSummary) -> Iterator[OpRecord]:
    for row in summary.kinds:
        words = filter(None, (f"c{row.core}", row.kind, row.group, row.memory, f"({row.types})" if row.types else ""))
        yield OpRecord(
            " ".join(words),
            type=row.kind,
            engines=(row.group,),
            calls=row.count,
            cycles=row.pcycles,
            time_ns=round(row.ucycles * 1e9 / summary.stats_hz),
            out_bytes=row.out_bytes,
        )


def _trace(summary: DeviceSummary, provenance: Provenance) -> Trace:
    """Each thread from its start to its end."""
    start, _ = summary.window
    lanes = tuple(Lane(0, row.core, row.group, row.thread) for row in summary.threads)
    spans = blank_spans(len(lanes))
    ticks = np.array([(row.start - start, row.end - start) for row in summary.threads], np.float64).reshape(-1, 2)
    spans["lane"], spans["kind"], spans["name"] = np.arange(len(lanes)), SpanKind.PHASE, 0
    spans["start_ns"], spans["end_ns"] = np.rint(ticks * (1e9 / summary.stats_hz)).T
    spans["ucycles"] = [row.ucycles for row in summary.threads]
    spans["pcycles"] = [row.pcycles for row in summary.threads]
    return Trace(lanes, ("batch",), spans, np.zeros(0, EDGE), (), np.zeros(0, COUNTER), provenance)


def _metrics(summary: DeviceSummary) -> Iterator[Metric]:
    yield Metric(LATENCY, summary.seconds * 1e9, "ns")
    yield Metric("batch", summary.batch_size, "1")
    yield Metric("throughput", summary.batch_size / summary.seconds if summary.seconds else 0.0, "1/s")
    for core, clock in sorted(_effective_hz(summary).items()):
        yield Metric(f"c{core} effective frequency", clock, "Hz")
    for word, inputs in (("input", True), ("output", False)):
        wait = summary.longest_wait(inputs=inputs)
        if wait is not None:
            yield Metric(f"longest {word} wait", wait * 1e9 / summary.stats_hz, "ns")


def _checks(summary: DeviceSummary, text: str) -> Iterator[Check]:
    """Identities that the printed figures obey among themselves."""
    printed = [(int(core), number_in(clock) or 0.0) for core, clock in _FREQUENCY.findall(text)]
    found = _effective_hz(summary)
    wrong = [core for core, clock in printed if not _near(found.get(core, 0.0) / 1e6, clock, 0.01)]
    if printed:
        detail = f"{len(printed) - len(wrong)} of {len(printed)} cores"
        yield Check("effective frequency = pcycles ÷ ucycles × timer", not wrong, detail)
    window = _WINDOW.search(text)
    if window is not None:
        holds = int(window[1]) == int(window[3]) - int(window[2])
        yield Check("total ucycles = end − start", holds, window[0])
    rate = _RATE.search(text)
    if rate is not None and window is not None:
        seconds, shown = int(window[1]) / summary.stats_hz, number_in(rate[3]) or 0.0
        holds = bool(seconds) and _near(shown, int(rate[1]) / seconds, 1e-4 * shown)
        yield Check("rate = batch ÷ time", holds, f"{rate[3]} of {int(rate[1]) / seconds if seconds else 0:.3f} 1/s")
    yield from _rows_add_up(summary)


def _near(value: float, expected: float, slack: float) -> bool:
    return math.isclose(value, expected, abs_tol=slack, rel_tol=1e-9)


def _rows_add_up(summary: DeviceSummary) -> Iterator[Check]:
    """Of groups of one thread: its utilization is the pcycles of its op kinds."""
    worked: dict[tuple[int, str], list[int | None]] = {}
    for row in summary.kinds:
        if not row.is_wait:
            worked.setdefault((row.core, row.group), []).append(row.pcycles)
    sizes = Counter((thread.core, thread.group) for thread in summary.threads)
    for thread in summary.threads:
        key = (thread.core, thread.group)
        cycles = worked.get(key, [None])
        if sizes[key] > 1 or thread.utilization is None or None in cycles or not thread.pcycles:
            continue
        share = sum(number or 0 for number in cycles) / thread.pcycles
        name = f"c{thread.core} {thread.group} utilization = its op kinds ÷ its pcycles"
        yield Check(name, _near(share, thread.utilization, 2e-4), f"{share:.4%} of {thread.utilization:.2%}")


def _effective_hz(summary: DeviceSummary) -> dict[int, float]:
    """Core → its clock while it ran: of the threads that took longest."""
    most: dict[int, tuple[int, int]] = {}
    for row in summary.threads:
        pcycles, ucycles = most.get(row.core, (0, 0))
        most[row.core] = (max(pcycles, row.pcycles), max(ucycles, row.ucycles))
    return {core: p / u * summary.stats_hz for core, (p, u) in most.items() if u}
