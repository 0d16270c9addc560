"""Text files of the Cloud AI runner: its stdout, the latency file, and percentiles made from it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from ...core.errors import ImportFileError
from ...core.provenance import Provenance
from ...importers.reading import Unread, number_in, numbered
from ...recording.host_times import stage_of
from ...recording.recording import LATENCY, Check, Metric, Recording
from ...recording.summary import HostStage

TOOL = "qaic-runner"
_LONGEST_LINE = 1_000
_COUNTS = re.compile(r"InferenceCnt (\d+) TotalDuration (\d+)us BatchSize (\d+) Inf/Sec ([\d.]+)")
_PERCENTILES = ("mean", "min", "50%", "75%", "90%", "95%", "99%", "max")
_PERCENTILE_ROW = re.compile(r"(\w+)((?:\s+[\d.]+){8})\s*")
_UNITS = {
    "Us": ("ns", 1e3),
    "MB": ("bytes", 1e6),
    "GBPerSec": ("bytes/s", 1e9),
    "Pct": ("%", 1.0),
    "PCycles": ("cycles", 1.0),
}
_SIMULATED = re.compile(r"All figures are simulated on (.+)\.")
_SUFFIX = re.compile(r"(?:_Dev_\d+)?_Func_\d+$")
EXEC = "ExecTimeUs"


class RunnerStdout:
    """Count, duration, throughput, and a table of device metrics."""

    name = "qaic-runner-stdout"

    def read(self, path: Path) -> Recording:
        """Counts and the table of metrics; a line that says so marks the figures as simulated."""
        metrics: list[Metric] = []
        checks: list[Check] = []
        unread, other, target, provenance, in_table = Unread("rows"), 0, None, Provenance.MEASURED, False
        for number, line in numbered(path):
            text = line.strip()
            counts = _COUNTS.search(text) if len(text) < _LONGEST_LINE else None
            row = [cell.strip() for cell in text.split(",")]
            simulated = _SIMULATED.match(text)
            if counts is not None:
                metrics += _counted(counts)
                checks.append(_rate(counts))
            elif text.startswith("Metric,"):
                in_table = True
            elif in_table and len(row) == 5 and row[0].isidentifier():
                metrics += _columns(row)
            elif simulated is not None:
                target, provenance = simulated[1], Provenance.SIMULATED
            elif text and in_table:
                in_table = False
                if "," in text:
                    unread.add(f"line {number}", text)
            elif text and "---- Stats ----" not in text and not text.startswith("Device Performance"):
                other += 1
        if not metrics:
            raise ImportFileError(str(path), "", "no counts; expected a line `InferenceCnt N TotalDuration …us`")
        notes = (f"{other} other lines are not read",) if other else ()
        return Recording(
            maker=self.name,
            tool=TOOL,
            provenance=provenance,
            metrics=tuple(metrics),
            checks=tuple(checks),
            notes=(*notes, *unread.notes()),
            target=target,
        )


def _counted(counts: re.Match[str]) -> Iterator[Metric]:
    figures = (("inferences", 1.0, "1"), ("duration", 1e3, "ns"), ("batch", 1.0, "1"), ("throughput", 1.0, "1/s"))
    for number, (name, factor, unit) in enumerate(figures, start=1):
        value = number_in(counts[number])
        if value is not None:
            yield Metric(name, value * factor, unit)


def _rate(counts: re.Match[str]) -> Check:
    inferences, duration, batch, rate = (number_in(counts[n]) or 0.0 for n in (1, 2, 3, 4))
    found = inferences * batch / (duration * 1e-6) if duration else 0.0
    holds = math.isclose(found, rate, rel_tol=1e-5, abs_tol=0.001)
    return Check("rate = inferences × batch ÷ duration", holds, f"{rate} of {found:.3f} 1/s")


def _columns(row: Sequence[str]) -> Iterator[Metric]:
    """Average, least, most and deviation of a metric; N/A is not there."""
    plain = _SUFFIX.sub("", row[0])
    unit, factor = next((u for ending, u in _UNITS.items() if plain.endswith(ending)), ("1", 1.0))
    for text, column in zip(row[1:], ("average", "least", "most", "deviation"), strict=True):
        value = number_in(text)
        if value is not None:
            yield Metric(f"{row[0]}, {column}", value * factor, unit)
            if plain == EXEC and column == "average":
                yield Metric(LATENCY, value * factor, unit)


class LatencyFile:
    """Four lines of header, then a line per inference, in microseconds."""

    name = "qaic-latency"

    def read(self, path: Path) -> Recording:
        """Every column as mean, extremes and percentiles over all samples."""
        unread = Unread("samples")
        columns, rows, program = _samples(path, unread)
        if not rows:
            raise ImportFileError(str(path), "", "no samples below the header; expected one line per inference")
        table = np.array(rows, np.float64)
        metrics = [metric for place, name in enumerate(columns) for metric in _spread(name, table[:, place])]
        return Recording(
            maker=self.name,
            tool=TOOL,
            provenance=Provenance.MEASURED,
            metrics=tuple(metrics),
            checks=tuple(_identities(columns, table)),
            notes=unread.notes(),
            model=program,
            inferences=len(rows),
            host=_stages(metrics),
        )


def _samples(path: Path, unread: Unread) -> tuple[list[str], list[list[float]], str | None]:
    """Columns, samples with NaN where the file has N/A, and the name of the program."""
    columns: list[str] = []
    rows: list[list[float]] = []
    program = None
    for number, line in numbered(path):
        cells = [cell.strip() for cell in line.split(",")]
        if line.startswith("ProgramName:"):
            program = line.partition(":")[2].strip()
        elif cells[0] == "Sample" and not columns:
            columns = cells[1:]
        elif columns and line.strip():
            values = [math.nan if cell == "N/A" else number_in(cell) for cell in cells[1:]]
            if len(values) != len(columns) or None in values:
                unread.add(f"line {number}", line)
            else:
                rows.append([value for value in values if value is not None])
    return columns, rows, program


def _spread(column: str, values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> Iterator[Metric]:
    known = values[np.isfinite(values)]
    if not len(known):
        return
    name, unit, factor = (column.removesuffix("Us"), "ns", 1e3) if column.endswith("Us") else (column, "1", 1.0)
    if name == "totalRoundtripTime":
        yield Metric(LATENCY, float(np.median(known)) * factor, unit)
    yield Metric(f"{name}, mean", float(known.mean()) * factor, unit)
    yield Metric(f"{name}, min", float(known.min()) * factor, unit)
    for share in (50, 75, 90, 95, 99):
        yield Metric(f"{name}, {share}%", float(np.percentile(known, share)) * factor, unit)
    yield Metric(f"{name}, max", float(known.max()) * factor, unit)


def _identities(columns: Sequence[str], table: np.ndarray[tuple[int, int], np.dtype[np.float64]]) -> Iterator[Check]:
    """The driver's two parts make up its whole; what the application sees holds what the runtime sees."""
    place = {name.removesuffix("Us"): number for number, name in enumerate(columns)}
    if {"hostRoundTrip", "exectoVc", "execToComplete"} <= set(place):
        parts = table[:, place["exectoVc"]] + table[:, place["execToComplete"]]
        wrong = int((np.abs(table[:, place["hostRoundTrip"]] - parts) > 1.001).sum())  # each is rounded to 1 µs
        yield Check(
            "hostRoundTrip = exectoVc + execToComplete", not wrong, f"{len(table) - wrong} of {len(table)} samples"
        )
    if {"totalRoundtripTime", "execTotal"} <= set(place):
        wrong = int((table[:, place["totalRoundtripTime"]] < table[:, place["execTotal"]] - 0.01).sum())
        yield Check("totalRoundtripTime ≥ execTotal", not wrong, f"{len(table) - wrong} of {len(table)} samples")


class LatencyPercentiles:
    """A line per column of the latency file, in milliseconds."""

    name = "qaic-latency-percentiles"

    def read(self, path: Path) -> Recording:
        """Mean and percentiles of every column."""
        unread = Unread("rows")
        means: dict[str, float] = {}
        metrics: list[Metric] = []
        for number, line in numbered(path):
            match = _PERCENTILE_ROW.fullmatch(line) if len(line) < _LONGEST_LINE else None
            if match is None:
                if (
                    line.strip()
                    and not line.startswith(("All activations", "Activation", " "))
                    and ": percentile" not in line
                ):
                    unread.add(f"line {number}", line)
                continue
            values = [number_in(cell) for cell in match[2].split()]
            unit, factor = ("1/s", 1.0) if match[1] == "devInfPerSec" else ("ns", 1e6)
            named = [(n, v) for n, v in zip(_PERCENTILES, values, strict=True) if v is not None]
            metrics += [Metric(f"{match[1]}, {name}", value * factor, unit) for name, value in named]
            if match[1] == "totalRoundtripTime":
                metrics += [Metric(LATENCY, value * factor, unit) for name, value in named if name == "50%"]
            means.update((match[1], value) for name, value in named if name == "mean")
        return Recording(
            maker=self.name,
            tool=TOOL,
            provenance=Provenance.MEASURED,
            metrics=tuple(metrics),
            checks=tuple(_mean_identity(means)),
            notes=unread.notes(),
            host=_stages(metrics),
        )


def _stages(metrics: Sequence[Metric]) -> tuple[HostStage, ...]:
    """Who took how much of what the application saw, on average: counters that hold others, taken apart."""
    mean = {
        name: metric.value or 0.0 for metric in metrics if (name := metric.name.removesuffix(", mean")) != metric.name
    }
    if not {"totalRoundtripTime", "hostRoundTrip", "devExec", "enqTime"} <= set(mean):
        return ()
    pre, post = mean.get("preProcTime", 0.0), mean.get("postProc", 0.0)
    stages = {
        "enqueue": mean["enqTime"],
        "preprocess": pre,
        "submit": mean["totalRoundtripTime"] - mean["enqTime"] - pre - post - mean["hostRoundTrip"],  # and the return
        "driver": mean["hostRoundTrip"] - mean["devExec"],
        "device": mean["devExec"],
        "postprocess": post,
    }
    if min(stages.values()) < 0:  # of different inferences: the file was put together from several
        return ()
    return tuple(stage_of(name, round(ns)) for name, ns in stages.items() if ns)


def _mean_identity(means: dict[str, float]) -> Iterator[Check]:
    """Means add up as their samples do."""
    if {"hostRoundTrip", "exectoVc", "execToComplete"} <= set(means):
        parts = means["exectoVc"] + means["execToComplete"]
        holds = math.isclose(means["hostRoundTrip"], parts, abs_tol=2e-6)
        yield Check(
            "hostRoundTrip = exectoVc + execToComplete", holds, f"{means['hostRoundTrip']:.6f}, sum {parts:.6f} ms"
        )
