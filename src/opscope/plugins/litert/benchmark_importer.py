"""Output of TFLite's (LiteRT's) benchmark_model: its log, or the CSV that --profiling_output_csv_file asks for.

A table per phase, per graph and per order of sorting; the one in run order is read. The average of a node is of one
call. Graphs that ops run, and what is inside of delegates, have tables of their own: their times are in the rows of
the main graph already (`tflite_nodes`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ...core.errors import ImportFileError
from ...core.provenance import Provenance
from ...importers.reading import Unread, number_in, numbered, to_ns
from ...recording.recording import LATENCY, Check, Metric, Recording
from .benchmark_nodes import GRAPH, INSIDE, SUBGRAPH, NodeTable, Row, ops_of

_MS, _US, _MIB = 1e6, 1e3, 2**20
_LONGEST_LINE, _LONGEST_FIGURES, _LONGEST_TITLE = 20_000, 1_000, 200
_CELLS = ("type", "start", "first", "avg", "share", "cdf", "memory", "calls", "name")
_COLUMNS = re.compile(r"\[node type\]|node type,\s")
_TITLE = re.compile(r"={10,}\s*(.+?)\s*={10,}")
_SECTION = re.compile(r"(Primary graph\b|Subgraph \(index: |Delegate internal:)")
_RUNS = re.compile(r"(?:INFO: )?count=(\d+)\s.*\bavg=([\d.e+-]+)")
_EXTREMES = re.compile(r"\b(min|max)=([\d.e+-]+)")
_TIMINGS = re.compile(r"Timings \(microseconds\):\s*count=(\d+)\s.*\bavg=([\d.e+-]+)")
_PHASES = re.compile(r"(Init|First inference|Warmup \(avg\)|Inference \(avg\)):\s*([\d.e+-]+)")
_PHASES_MS = re.compile(r"(Model initialization|Warmup \(first\)|Warmup \(avg\)|Inference \(avg\)):\s*([\d.]+) ms\b")
_MEMORY = re.compile(
    r"(Init|Overall) footprint:\s*([\d.]+) MB"
    r"|footprint\D*\(MB\):? (?:init=([\d.]+) overall=|via[^:]*: )([\d.]+)"
)
_NAMES = {"Inference (avg)": LATENCY, "Model initialization": "init", "Warmup (first)": "first inference"}
_MODEL = re.compile(r"(?:Graph: \[(.+)\]|Loaded model (.+)|Loading model (.+)\.?)")


@dataclass(slots=True)
class _Found:
    """What is met on the way through the file."""

    tables: list[NodeTable] = field(default_factory=list)
    start: list[Metric] = field(default_factory=list)
    metrics: list[Metric] = field(default_factory=list)
    model: str | None = None
    last_runs: str = ""  # the line of the inferences that came last
    section: str = GRAPH
    starting: bool = False

    def timed(self, runs: int, average_us: float) -> None:
        if self.tables and not self.starting:
            self.tables[-1].runs, self.tables[-1].average_us = runs, average_us


class TfliteBenchmark:
    """Log or CSV."""

    name = "tflite-benchmark"

    def read(self, path: Path) -> Recording:
        """The table of nodes where there is one, else the timings alone."""
        unread = Unread("rows")
        found = _walk(path, unread)
        main, ops, notes = ops_of(found.tables)
        if not ops and not found.metrics:
            raise ImportFileError(str(path), "", "no table of nodes and no timings; expected benchmark_model's output")
        if not ops:
            notes = (*notes, "no table of nodes: run benchmark_model with --enable_op_profiling=true")
        return Recording(
            maker=self.name,
            tool="benchmark_model (TFLite)",
            provenance=Provenance.MEASURED,
            ops=ops,
            metrics=(*_exact(found), *found.start),
            checks=tuple(_checks(main)) if main else (),
            notes=(*notes, *unread.notes()),
            model=found.model,
            inferences=main.runs if main else None,
        )


def _walk(path: Path, unread: Unread) -> _Found:
    """Tables and timings of the output; titles of tables say what the lines below them are."""
    found = _Found()
    in_order, header = False, ""
    for number, line in numbered(path):
        if in_order and header and len(line) < _LONGEST_LINE and (row := _cells(line, header)) is not None:
            _take(row, found)
            continue
        short = line[:_LONGEST_TITLE]
        title = _TITLE.search(line) if "=====" in line and len(line) < _LONGEST_TITLE else None
        if "Profiling Info for" in line:
            found.starting, found.section, in_order = "Initialization" in line, GRAPH, False
        elif title is not None:
            in_order, header = title[1] == "Run Order", ""
            if in_order and not found.starting:
                found.tables.append(NodeTable(found.section))
        elif _COLUMNS.search(short):
            header = line
        elif not line.strip() or _figures(line, found):
            in_order = False
        elif not in_order and (section := _SECTION.match(short)) is not None:
            found.section = {"P": GRAPH, "S": SUBGRAPH, "D": INSIDE}[section[1][0]]
        elif in_order:
            unread.add(f"line {number}", line)
    return found


def _take(row: Row, found: _Found) -> None:
    if not found.starting:
        found.tables[-1].rows.append(row)
        return
    value = to_ns(row.average_ms * max(row.calls, 1), _MS)
    if value is not None:
        found.start.append(Metric(f"initialization: {row.type}", value, "ns"))


def _cells(line: str, header: str) -> Row | None:
    """A row of the table, or None. A type may hold blanks and, in CSV, commas."""
    names = [name for name in _CELLS if name != "start" or "start" in header]
    if "," in header:
        cells = [cell.strip() for cell in line.rsplit(",", len(names) - 1)]
    else:
        cells = _words(line, before=len(names) - 6)
    numbers = [number_in(cell.removesuffix("%")) for cell in cells[1:-1]]
    if len(cells) != len(names) or not cells[0] or None in numbers:
        return None
    values = {name: number or 0.0 for name, number in zip(names[1:-1], numbers, strict=True)}
    return Row(cells[0].strip(), values["avg"], values["share"], values["calls"], cells[-1].strip())


def _words(line: str, *, before: int) -> list[str]:
    """Cells of a row of words: two shares stand together, with `before` numbers and the type in front of them."""
    words = line.split()
    both = (n for n in range(1, len(words)) if words[n - 1].endswith("%") and words[n].endswith("%"))
    first = next(both, 0) - 1
    if first <= before:
        return [line]
    name = line.split(maxsplit=first + 4)[first + 4 :]
    return [" ".join(words[: first - before]), *words[first - before : first + 4], *(name or [""])]


def _figures(line: str, found: _Found) -> bool:
    """Totals of a phase or of the whole benchmark; whether the line had any."""
    if len(line) >= _LONGEST_FIGURES:
        return False
    timings = _TIMINGS.search(line)
    if timings is not None:
        found.timed(min(int(timings[1][:18]), 2**62), number_in(timings[2]) or 0.0)
        return True
    if _RUNS.match(line.strip()) is not None:
        found.last_runs = line
        return True
    metrics = [*_phases(line), *_memory(line)]
    found.metrics += metrics
    model = None if metrics else _MODEL.search(line)
    if model is not None and found.model is None:
        found.model = next(filter(None, model.groups()), None)
    return bool(metrics)


def _phases(line: str) -> Iterator[Metric]:
    """Of TFLite all in one line, in microseconds; of LiteRT one per line, in milliseconds of two digits."""
    in_ms = _PHASES_MS.findall(line)
    for name, text in in_ms or _PHASES.findall(line):
        value = to_ns(number_in(text), _MS if in_ms else _US)
        if value is not None:
            yield Metric(_NAMES.get(name, name.lower()), value, "ns")


def _memory(line: str) -> Iterator[Metric]:
    """The tool's MB are 2^20 bytes."""
    match = _MEMORY.search(line)
    if match is None:
        return
    which, size, init, overall = match.groups()
    peak = "peak " if "peak" in line.lower() else ""
    for name, text in ((f"{(which or '').lower()}", size), ("init", init), ("overall", overall)):
        value = number_in(text or "")
        if value is not None:
            yield Metric(f"{peak}memory footprint, {name}", value * _MIB, "bytes")


def _exact(found: _Found) -> Iterator[Metric]:
    """The figures, the latency from the line of its inferences where that says the same with more digits."""
    runs = _RUNS.match(found.last_runs.strip())
    average = to_ns(number_in(runs[2]), _US) if runs is not None else None
    seen: set[str] = set()
    for metric in found.metrics:
        if metric.name in seen:  # some builds print the line twice
            continue
        seen.add(metric.name)
        same = average is not None and abs(average - (metric.value or 0)) <= 5_000  # half of LiteRT's last digit
        if metric.name != LATENCY or runs is None or average is None or not same:
            yield metric
            continue
        yield Metric(LATENCY, average, "ns")
        yield Metric("runs", min(int(runs[1][:18]), 2**62), "1")
        for word, text in _EXTREMES.findall(found.last_runs[:_LONGEST_FIGURES]):
            value = to_ns(number_in(text), _US)
            if value is not None:
                yield Metric(f"latency, {'least' if word == 'min' else 'most'}", value, "ns")


def _checks(main: NodeTable) -> Iterator[Check]:
    """Identities that the table obeys: shares add up to 100 %, and nodes to the time of a run."""
    rows, _ = main.parted()
    if not rows:
        return
    whole = sum(row.share for row in rows)
    holds = math.isclose(whole, 100, abs_tol=0.001 * len(rows) + 0.01)
    yield Check("shares add up to 100 %", holds, f"{whole:.3f} %")
    if main.average_us is not None:
        total = sum(time or 0 for time in main.times_ns(rows))
        expected, slack = main.average_us * _US, 1000.0 * len(rows) + 1000  # every row is rounded to 1 µs
        yield Check(
            "sum of nodes = time of a run",
            math.isclose(total, expected, rel_tol=0.01, abs_tol=slack),
            f"{total / _US:.1f} of {main.average_us:.1f} µs",
        )
