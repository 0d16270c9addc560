"""Output of TFLite's (LiteRT's) benchmark_model: its log, or the CSV that --profiling_output_csv_file asks for.

A table per phase and per order of sorting; the one in run order is read. The average of a node is of one call.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import ImportFileError
from ..imported import LATENCY, Check, Imported, ImportedOp, Metric, empty_trace
from .reading import Unread, number_in, numbered, to_ns

_MS, _US = 1e6, 1e3
_LONGEST_LINE, _LONGEST_FIGURES, _LONGEST_TITLE = 20_000, 1_000, 200
_CELLS = ("type", "start", "first", "avg", "share", "cdf", "memory", "calls", "name")
_COLUMNS = re.compile(r"\[node type\]|node type,\s")
_TITLE = re.compile(r"={10,}\s*(.+?)\s*={10,}")
_NAME = re.compile(r"\[(.*)\]:(\d+)")
_RUNS = re.compile(r"(?:INFO: )?count=(\d+)\s.*\bavg=([\d.e+-]+)")
_TIMINGS = re.compile(r"Timings \(microseconds\):\s*count=(\d+)\s.*\bavg=([\d.e+-]+)")
_PHASES = re.compile(r"(Init|First inference|Warmup \(avg\)|Inference \(avg\)):\s*([\d.e+-]+)")
_MODEL = re.compile(r"(?:Graph: \[(.+)\]|Loaded model (.+)|Loading model (.+)\.?)")
_DELEGATE = re.compile(r"TfLite\w*Delegate\w*|Delegate/.*")


@dataclass(slots=True)
class _Found:
    """What is met on the way through the file."""

    rows: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    start: list[Metric] = field(default_factory=list)
    metrics: list[Metric] = field(default_factory=list)
    model: str | None = None
    profiled: tuple[int, float] | None = None  # runs, average in µs


class TfliteBenchmark:
    """Log or CSV."""

    name = "tflite-benchmark"
    describe = "TFLite / LiteRT benchmark_model with --enable_op_profiling=true (log or CSV)"

    def looks_like(self, head: bytes, name: str) -> bool:
        del name
        marks = (b"Profiling Info for", b"[node type]", b"node type, ", b"Inference timings in us:")
        return sum(mark in head for mark in marks) > 0 and b"\x00" not in head[:4096]

    def read(self, path: Path) -> Imported:
        unread = Unread("rows")
        found = _walk(path, unread)
        ops = tuple(_op(row) for _, row in found.rows)
        if not ops and not found.metrics:
            raise ImportFileError(str(path), "", "no table of nodes and no timings; expected benchmark_model's output")
        notes = () if ops else ("no table of nodes: run benchmark_model with --enable_op_profiling=true",)
        runs = found.profiled[0] if found.profiled else None
        return Imported(
            format=self.name, source=str(path), tool="benchmark_model (TFLite)", provenance="measured",
            trace=empty_trace("measured"), ops=ops, metrics=(*found.metrics, *found.start),
            checks=tuple(_checks(found, ops)), notes=(*notes, *unread.notes()), model=found.model, inferences=runs,
        )  # fmt: skip


def _walk(path: Path, unread: Unread) -> _Found:
    found = _Found()
    starting, in_order, header = False, False, ""
    for number, line in numbered(path):
        title = _TITLE.search(line) if "=====" in line and len(line) < _LONGEST_TITLE else None
        if "Profiling Info for" in line:
            starting, in_order = "Initialization" in line, False
        elif title is not None:
            in_order, header = title[1] == "Run Order", ""
        elif _COLUMNS.search(line[:_LONGEST_TITLE]):
            header = line
        elif not line.strip() or _figures(line, found, starting):
            in_order = False
        elif in_order:
            _row(line, found, unread, starting=starting, header=header, number=number)
    return found


def _row(line: str, found: _Found, unread: Unread, *, starting: bool, header: str, number: int) -> None:
    row = _cells(line, header) if len(line) < _LONGEST_LINE else None
    if row is None:
        unread.add(f"line {number}", line)
    elif starting:
        found.start.extend(_start(row))
    else:
        found.rows.append((number, row))


def _cells(line: str, header: str) -> dict[str, str] | None:
    """Cells by name; None: no row of the table. A type may hold blanks and, in CSV, commas."""
    names = [name for name in _CELLS if name != "start" or "start" in header]
    if "," in header:
        cells = [cell.strip() for cell in line.rsplit(",", len(names) - 1)]
    else:
        cells = _words(line, before=len(names) - 6)
    cells = [cells[0], *(cell.removesuffix("%") for cell in cells[1:-1]), cells[-1]]
    if len(cells) != len(names) or not cells[0] or any(number_in(cell) is None for cell in cells[1:-1]):
        return None
    return dict(zip(names, cells, strict=True))


def _words(line: str, *, before: int) -> list[str]:
    """Cells of a row of words: two shares stand together, with `before` numbers and the type in front of them."""
    words = line.split()
    both = (n for n in range(1, len(words)) if words[n - 1].endswith("%") and words[n].endswith("%"))
    first = next(both, 0) - 1
    if first <= before:
        return [line]
    name = line.split(maxsplit=first + 4)[first + 4 :]
    return [" ".join(words[: first - before]), *words[first - before : first + 4], *(name or [""])]


def _figures(line: str, found: _Found, starting: bool) -> bool:
    """Totals of a phase or of the whole benchmark; whether the line had any."""
    if len(line) >= _LONGEST_FIGURES:
        return False
    timings, runs, phases = _TIMINGS.search(line), _RUNS.match(line.strip()), _PHASES.findall(line)
    if timings is not None:
        if not starting:
            found.profiled = (min(int(timings[1][:18]), 2**62), number_in(timings[2]) or 0.0)
    elif phases:
        for name, text in phases:
            value = to_ns(number_in(text), _US)
            if value is not None:
                found.metrics.append(Metric(LATENCY if name == "Inference (avg)" else name.lower(), value, "ns"))
    elif runs is None:
        model = _MODEL.search(line)
        found.model = (
            next(filter(None, model.groups()), None) if model is not None and found.model is None else found.model
        )
        return False
    return True


def _start(row: dict[str, str]) -> Iterator[Metric]:
    value = to_ns(number_in(row["avg"]), _MS)
    if value is not None:
        yield Metric(f"initialization: {row['type'].strip()}", value, "ns")


def _op(row: dict[str, str]) -> ImportedOp:
    match, kind = _NAME.fullmatch(row["name"].strip()), row["type"].strip()
    average, calls = number_in(row["avg"]), number_in(row["calls"])
    name = (match[1] or f"{kind}:{match[2]}") if match is not None else row["name"].strip() or kind
    return ImportedOp(
        name.replace("\t", ","), type=kind, engine="delegate" if _DELEGATE.fullmatch(kind) else None, calls=calls,
        time_ns=None if average is None or calls is None else to_ns(average * calls, _MS),
        origins=_origins(match[1]) if match is not None else (),
    )  # fmt: skip


def _origins(name: str) -> tuple[str, ...]:
    """A fused node is named after all that went into it."""
    return tuple(part.strip() for part in name.split(";") if part.strip()) if ";" in name else ()


def _checks(found: _Found, ops: Sequence[ImportedOp]) -> Iterator[Check]:
    shares = [value for _, row in found.rows if (value := number_in(row["share"])) is not None]
    if shares:
        whole = sum(shares)
        yield Check(
            "shares add up to 100 %", math.isclose(whole, 100, abs_tol=0.001 * len(shares) + 0.01), f"{whole:.3f} %"
        )
    if found.profiled is not None and ops:
        total = sum(op.time_ns or 0 for op in ops)
        expected, slack = found.profiled[1] * _US, 1000.0 * len(ops) + 1000  # every row is rounded to 1 µs
        yield Check("sum of nodes = time of a run", math.isclose(total, expected, rel_tol=0.01, abs_tol=slack),
                    f"{total / _US:.1f} of {found.profiled[1]:.1f} µs")  # fmt: skip
