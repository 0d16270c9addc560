"""Runtime CSV of the Torq runtime (`--torq_profile`): one row per completed job of the sequencer.

`id;time_since_open;time_since_start[;location]`, in microseconds. The first time is that of the END of the job, the
second its duration: a job starts at their difference.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from ....core.columns import Numbers, places
from ....core.errors import ImportFileError
from ....core.meaning import Does
from ....core.provenance import Provenance
from ....importers.column_trace import MOST_OPS, SpanColumns, column_trace, op_totals, timed_ops
from ....importers.expected_causes import NOT_DIVIDED
from ....importers.line_columns import Lines, Marks, Parsed, Texts, joined, read_parsed, unwrapped
from ....importers.mlir_location import plain_location
from ....importers.reading import LONGEST_NS, Unread
from ....recording.recording import LATENCY, Metric, OpRecord, Recording
from ....recording.trace import NONE, Lane
from ..annotate.annotated import JobTimes

TOOL = "Torq runtime"
PROVENANCE = Provenance.MEASURED
NOT_TOLD = "the file does not say what wrote it, a device or a simulation: its times are taken as measured"
_HEADER = re.compile(rb"id\s*;\s*time_since_open\s*;\s*time_since_start(\s*;\s*location)?\s*", re.IGNORECASE)
_US = 1000


class TorqRuntime:
    """Jobs one after the other."""

    name = "torq-runtime"

    def read(self, path: Path) -> Recording:
        """Jobs as spans on one lane; ids that start again begin the next inference."""
        jobs = read_jobs(path)
        inference = inference_of(jobs.id)
        rounds = int(inference[-1]) + 1 if len(inference) else 0
        op, ops, more = _ops(jobs)
        names = tuple(op.name for op in ops) or ("job",)
        columns = SpanColumns(
            np.zeros(len(op), np.int64),
            np.maximum(op, 0),
            jobs.start_ns,
            jobs.end_ns,
            op,
            inference=inference,
            does=int(Does.MIXED),
        )
        trace = column_trace(columns, (Lane(0, NONE, "NSS Programs"),), names, provenance=PROVENANCE)
        totals = op_totals(op, jobs.end_ns - jobs.start_ns, len(ops))
        return Recording(
            maker=self.name,
            tool=TOOL,
            provenance=PROVENANCE,
            trace=trace,
            ops=timed_ops(ops, totals, inferences=rounds),
            metrics=tuple(_metrics(jobs, inference, rounds)),
            notes=(*jobs.notes, *more, NOT_TOLD, NOT_DIVIDED),
            inferences=rounds or None,
        )


def read_jobs(path: Path, *, locations: bool = True) -> JobTimes:
    """The rows of a file, with their locations or without. Those that cannot be read are counted in the notes."""
    unread, words = Unread("rows"), Texts()
    parts: list[tuple[Numbers, ...]] = []
    for part in read_parsed(path, b";", lambda first: _kinds(path, first, locations=locations)):
        parts.append(_rows(part, words, unread))
    if not parts:
        raise ImportFileError(str(path), "line 1", "empty; expected id;time_since_open;time_since_start[;location]")
    number, opened, took, location = (joined([part[i] for part in parts]) for i in range(4))
    if not len(number) and unread.count:
        raise ImportFileError(str(path), "", f"no row that can be read; {unread.notes()[0]}")
    start, end, notes = _axis(opened, took)
    if not len(number):
        notes.append("the file has a header and no rows: nothing was run")
    texts, location = _locations(words.texts, location) if len(location) else ((), np.full(len(number), NONE))
    return JobTimes(str(path), number, start, end, location, texts, (*notes, *unread.notes()))


def _kinds(path: Path, first: bytes, *, locations: bool) -> str:
    """What fields there are, by the header."""
    header = _HEADER.fullmatch(first)
    if header is None:
        raise ImportFileError(str(path), "line 1", "no header; expected id;time_since_open;time_since_start[;location]")
    return "nnn" + (("w" if locations else "-") if header[1] else "")


def _rows(part: Parsed, words: Texts, unread: Unread) -> tuple[Numbers, ...]:
    """Number, end, time and location of every row that can be read; no locations where there are none."""
    if part.columns is not None:
        number, opened, took = part.columns[:3]
        if _possible(number, opened, took).all():
            return number, opened, took, words.merged(part.columns[3]) if part.kinds == "nnnw" else number[:0]
    return _slow_rows(part.block.lines(), part.kinds, words, unread)


def _possible(number: Numbers, opened: Numbers, took: Numbers) -> Marks:
    most = LONGEST_NS // _US // 4
    return (number >= 0) & (took >= 0) & (took < most) & (np.abs(opened) < most)


def _slow_rows(lines: Lines, kinds: str, words: Texts, unread: Unread) -> tuple[Numbers, ...]:
    """The same, of lines of which some cannot be read, or hold separators in their location."""
    number, good = lines.left(0).stripped().whole()
    opened, good_opened = lines.left(1).stripped().whole()
    took, good_took = (lines.left(2) if len(kinds) == 4 else lines.rest(2)).stripped().whole()
    good &= good_opened & good_took & (lines.separators >= len(kinds) - 1) & _possible(number, opened, took)
    lines.refuse(~good, unread)
    kept = lines.chosen(good)
    location = words.number(kept.rest(3)) if kinds == "nnnw" else number[:0]
    return number[good], opened[good], took[good], location


def _axis(opened: Numbers, took: Numbers) -> tuple[Numbers, Numbers, list[str]]:
    """Start and end in ns. A counter of 32 bits is unwrapped; where the clock starts again, rows are laid behind."""
    end = unwrapped(opened)
    notes = []
    if (wraps := int((end[-1:] - opened[-1:]).sum()) >> 32) > 0:
        notes.append(f"time_since_open wrapped at 32 bits {wraps} times: put right")
    back = np.flatnonzero(np.diff(end) < 0) + 1
    if len(back):
        jump = np.zeros(len(end), np.int64)
        jump[back] = end[back - 1] - (end[back] - took[back])
        end = end + np.cumsum(jump)
        notes.append(f"the clock starts again {len(back)} times, first in row {back[0] + 1}: such rows are laid behind")
    return (end - took) * _US, end * _US, notes


def _locations(texts: tuple[str, ...], number: Numbers) -> tuple[tuple[str, ...], Numbers]:
    plain = [plain_location(text) for text in texts]
    known = {text: at for at, text in enumerate(dict.fromkeys(text for text in plain if text))}
    return tuple(known), np.array([known.get(text, NONE) for text in plain], np.int64)[number]


def inference_of(number: Numbers) -> Numbers:
    """A job number that does not rise begins another inference."""
    return np.concatenate(([0], np.cumsum(np.diff(number) <= 0))) if len(number) else number


def _ops(jobs: JobTimes) -> tuple[Numbers, tuple[OpRecord, ...], tuple[str, ...]]:
    """Jobs by location; those without one by their number."""
    nameless = jobs.location < 0
    numbers, rank = places(jobs.id[nameless])
    count = len(jobs.locations) + len(numbers)
    if count > MOST_OPS:
        return np.full(len(jobs.id), NONE), (), (f"{count} different jobs: no rows per op, only the timeline",)
    op = jobs.location.copy()
    op[nameless] = len(jobs.locations) + rank
    ops = [OpRecord(text, type="job", engines=("NPU",), covers=(text,)) for text in jobs.locations]
    ops += [OpRecord(f"job {n}", type="job", engines=("NPU",)) for n in numbers.tolist()]
    return op, tuple(ops), ()


def _metrics(jobs: JobTimes, inference: Numbers, rounds: int) -> list[Metric]:
    if not len(inference):
        return []
    first = np.flatnonzero(np.diff(inference, prepend=-1))
    last = np.append(first[1:], len(inference)) - 1
    took = np.maximum.reduceat(jobs.end_ns, first) - jobs.start_ns[first]
    wall = int(jobs.end_ns[last[-1]] - jobs.start_ns[0])
    return [
        Metric(LATENCY, round(float(took.mean())), "ns"),
        Metric("jobs", len(inference), "1"),
        Metric("inferences", rounds, "1"),
        Metric("wall", wall, "ns"),
        Metric("jobs running", int((jobs.end_ns - jobs.start_ns).sum()), "ns"),
    ]
