"""Reports of OpenVINO's benchmark_app: counters per layer, and totals."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..imported import LATENCY, Check, Imported, ImportedOp, Metric, empty_trace
from .reading import Unread, number_in, numbered, to_ns

TOOL = "OpenVINO benchmark_app"
_MS = 1e6
_COLUMNS = 6
_LEFT = "left out or under 1 µs"
_Row = tuple[str, str, str, str, float, float]  # name, status, type, kernel, real and CPU milliseconds


class OpenVinoCounters:
    """One table, or one per infer request; times are rounded to 1 µs by the tool."""

    name = "openvino-counters"
    describe = "OpenVINO benchmark_app counters (benchmark_average_counters_report.csv, …detailed…)"

    def looks_like(self, head: bytes, name: str) -> bool:
        del name
        return head.removeprefix(b"\xef\xbb\xbf").startswith(b"layerName;execStatus;layerType;execType;")

    def read(self, path: Path) -> Imported:
        unread = Unread("rows")
        tables, totals = _tables(path, unread)
        ops = tuple(_ops(tables))
        idle = sum(op.time_ns is None for op in ops)
        mean = sum(total for total in totals if total is not None) / len(totals) if totals else None
        metrics = [Metric("sum of layers", mean * _MS, "ns")] if mean is not None else []
        notes = [f"{idle} of {len(ops)} layers have no time: {_LEFT}"] if idle else []
        return Imported(
            format=self.name, source=str(path), tool=TOOL, provenance="measured", trace=empty_trace("measured"),
            ops=ops, metrics=tuple(metrics), checks=tuple(_checks(tables, totals)), notes=(*notes, *unread.notes()),
            inferences=len(tables),
        )  # fmt: skip


def _tables(path: Path, unread: Unread) -> tuple[list[list[_Row]], list[float | None]]:
    tables: list[list[_Row]] = []
    totals: list[float | None] = []
    columns = _COLUMNS
    for number, line in numbered(path):
        text = line.strip().removesuffix(";")
        if text.startswith("layerName;"):
            columns = max(len(text.split(";")), _COLUMNS)
            tables.append([])
            continue
        cells = text.rsplit(";", columns - 1)  # a name may hold the separator
        real, spent = (number_in(cells[-2]), number_in(cells[-1])) if len(cells) == columns else (None, None)
        if text.startswith("Total;"):
            totals.append(real if real is not None else number_in(text.split(";")[-2]) if text.count(";") > 1 else None)
        elif real is not None and spent is not None and tables:
            tables[-1].append((cells[0], cells[1].removeprefix("Status."), cells[2], cells[3], real, spent))
        elif text:
            unread.add(f"line {number}", line)
    return tables, totals


def _ops(tables: Sequence[Sequence[_Row]]) -> Iterator[ImportedOp]:
    """Mean over the tables; a layer that shows no time anywhere has none."""
    seen: dict[tuple[str, str], list[_Row]] = {}
    for table in tables:
        for row in table:
            seen.setdefault((row[0], row[2]), []).append(row)
    for (name, kind), rows in seen.items():
        times = [row[4] for row in rows]
        known = any(times) or any(row[1] == "EXECUTED" for row in rows)
        mean = sum(times) / len(tables)
        several = known and len(tables) > 1
        yield ImportedOp(
            name, type=kind, kernel=rows[0][3] if rows[0][3] != "undef" else None,
            calls=1 if known else None, time_ns=to_ns(mean, _MS) if known else None,
            host_ns=to_ns(sum(row[5] for row in rows) / len(tables), _MS) if known else None,
            least_ns=to_ns(min(times), _MS) if several else None, most_ns=to_ns(max(times), _MS) if several else None,
        )  # fmt: skip


def _checks(tables: Sequence[Sequence[_Row]], totals: Sequence[float | None]) -> Iterator[Check]:
    """A table's total is the sum of its rows: every row is rounded to 1 µs, the total from the exact times."""
    for number, (table, total) in enumerate(zip(tables, totals, strict=False), start=1):
        if total is None:
            continue
        found, slack = sum(row[4] for row in table), 0.0005 * (len(table) + 1)
        holds = math.isclose(found, total, abs_tol=slack, rel_tol=1e-9)
        yield Check(f"total of table {number} = sum of its layers", holds, f"{total:.3f} ms, sum {found:.3f} ms")


class OpenVinoReport:
    """Three lists: command line, configuration, results."""

    name = "openvino-report"
    describe = "OpenVINO benchmark_app totals (benchmark_report.csv)"

    def looks_like(self, head: bytes, name: str) -> bool:
        del name
        text = head.removeprefix(b"\xef\xbb\xbf")
        start = text.startswith((b"Command line parameters", b"Configuration setup"))
        return start and b"target device;" in text

    def read(self, path: Path) -> Imported:
        unread = Unread("lines")
        results: dict[str, str] = {}
        setup: dict[str, str] = {}
        section = setup
        for number, line in numbered(path):
            key, separator, value = line.partition(";")
            if line.strip() in ("Command line parameters", "Configuration setup", "Execution results"):
                section = results if line.startswith("Execution") else setup
            elif separator:
                section[key.strip()] = value.strip().removesuffix(";")
            elif line.strip():
                unread.add(f"line {number}", line)
        return Imported(
            format=self.name, source=str(path), tool=TOOL, provenance="measured", trace=empty_trace("measured"),
            metrics=tuple(_results(results)), notes=unread.notes(), target=setup.get("target device"),
            model=setup.get("-m") or setup.get("topology"),
        )  # fmt: skip


def _results(results: dict[str, str]) -> Iterator[Metric]:
    for key, text in results.items():
        value = number_in(text)
        if value is None:
            continue
        if key == "latency (ms)":
            yield Metric(LATENCY, value * _MS, "ns")
        elif key.endswith("(ms)") or "latency" in key:
            yield Metric(key.removesuffix(" (ms)"), value * _MS, "ns")
        else:
            yield Metric(key, value, "1/s" if key == "throughput" else "1")
