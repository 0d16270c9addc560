"""Reports of OpenVINO's benchmark_app: counters per layer, and totals."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from ...core.errors import printable
from ...core.json_files import decode_json
from ...core.provenance import Provenance
from ...importers.reading import Unread, head_of, number_in, numbered, read_bytes, to_ns
from ...recording.recording import LATENCY, Check, Metric, OpRecord, Recording

TOOL = "OpenVINO benchmark_app"
_MS = 1e6
_FIRST = ("layerName", "execStatus", "layerType", "execType")
_REAL, _CPU = "realTime (ms)", "cpuTime (ms)"
_LEFT = "left out or under 1 µs"
_Row = tuple[str, str, str, str, float, float]  # name, status, type, kernel, real and CPU milliseconds


class _Layer(msgspec.Struct):
    name: str
    real: float | None = msgspec.field(name="real_time", default=None)
    spent: float | None = msgspec.field(name="cpu_time", default=None)
    status: str = ""
    type: str = msgspec.field(name="node_type", default="")
    kernel: str = msgspec.field(name="exec_type", default="")


class _Request(msgspec.Struct):
    nodes: list[msgspec.Raw]
    total: float | None = msgspec.field(name="total_real_time", default=None)


class _Counters(msgspec.Struct):
    detailed: list[_Request] | _Request | None = msgspec.field(name="detailed_performance", default=None)
    average: _Request | None = msgspec.field(name="avg_performance", default=None)


_COUNTERS = msgspec.json.Decoder(_Counters, strict=False)  # numbers may be written as words


class OpenVinoCounters:
    """One table, or one per infer request; times are rounded to 1 µs by the tool."""

    name = "openvino-counters"

    def read(self, path: Path) -> Recording:
        """Layers by mean over the infer requests; those without a time did not run on their own."""
        unread = Unread("rows")
        start = head_of(path)
        digit = 0.005 if b"\nTotal time: " in start else 0.0005
        tables, totals = (_json_tables if start.lstrip()[:1] == b"{" else _tables)(path, unread)
        ops = tuple(_ops(tables))
        idle = sum(op.time_ns is None for op in ops)
        known = [total for total in totals if total is not None]
        metrics = [Metric("sum of layers", sum(known) / len(known) * _MS, "ns")] if known else []
        notes = [f"{idle} of {len(ops)} layers have no time: {_LEFT}"] if idle else []
        return Recording(
            maker=self.name,
            tool=TOOL,
            provenance=Provenance.MEASURED,
            ops=ops,
            metrics=tuple(metrics),
            checks=tuple(_checks(tables, totals, digit)),
            inferences=len(tables),
            notes=(*notes, *unread.notes()),
        )


def _json_tables(path: Path, unread: Unread) -> tuple[list[list[_Row]], list[float | None]]:
    """Layers of every infer request in the JSON form, and its total where the file has one."""
    file = decode_json(read_bytes(path), _COUNTERS, source=str(path))
    detailed = [file.detailed] if isinstance(file.detailed, _Request) else file.detailed
    requests = detailed or ([file.average] if file.average is not None else [])
    decoder = msgspec.json.Decoder(_Layer, strict=False)
    tables: list[list[_Row]] = []
    for table, request in enumerate(requests, start=1):
        tables.append([])
        for number, raw in enumerate(request.nodes):
            try:
                node = decoder.decode(raw)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
                unread.add(f"table {table}, node {number}", str(error))
                continue
            status = node.status.removeprefix("Status.")
            if node.real is None or node.spent is None:
                unread.add(f"table {table}, node {number}", f"{node.name}: no times")
            else:
                tables[-1].append((node.name, status, node.type, node.kernel, node.real, node.spent))
    return tables, [request.total for request in requests]


class _Columns:
    """Where the cells of a row are: counted from its end, for a name may hold the separator."""

    def __init__(self, header: str) -> None:
        self.comma = header.startswith(",".join(_FIRST))
        cells = self.cells(header)
        self.count = len(cells)
        self.real, self.cpu = (cells.index(name) - len(cells) if name in cells else None for name in (_REAL, _CPU))

    def cells(self, text: str) -> list[str]:
        if not self.comma:
            return text.split(";")
        try:
            return next(csv.reader([text]), [])
        except csv.Error:
            return []

    def row(self, text: str) -> _Row | None:
        cells = self.cells(text)
        if len(cells) < self.count or self.real is None:
            return None
        extra = len(cells) - self.count
        real = number_in(cells[self.real])
        spent = number_in(cells[self.cpu]) if self.cpu is not None else real
        if real is None or spent is None:
            return None
        name, status = ";".join(cells[: extra + 1]), cells[extra + 1].removeprefix("Status.")
        return name, status, cells[extra + 2], cells[extra + 3], real, spent


def _tables(path: Path, unread: Unread) -> tuple[list[list[_Row]], list[float | None]]:
    """The same of the CSV form, which repeats its header for every infer request."""
    tables: list[list[_Row]] = []
    totals: list[float | None] = []
    columns = None
    for number, line in numbered(path):
        text = line.strip().removesuffix(";")
        if text.startswith(_FIRST[0]):
            columns = _Columns(text)
            tables.append([])
        elif columns is None or not text or (columns.comma and text == '"'):  # the header's last cell has a line end
            continue
        elif text.startswith("Total;"):
            row = columns.row(text)
            totals.append(row[4] if row is not None else number_in(text.rpartition(";")[2]))
        elif text.startswith("Total time: "):
            totals.append(number_in(text.removeprefix("Total time: ").partition(" ")[0]))
        elif (row := columns.row(text)) is not None:
            tables[-1].append(row)
        elif not text.startswith("Total CPU time: "):
            unread.add(f"line {number}", line)
    return tables, totals


def _ops(tables: Sequence[Sequence[_Row]]) -> Iterator[OpRecord]:
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
        yield OpRecord(
            name,
            type=kind,
            kernel=rows[0][3] if rows[0][3] != "undef" else "",
            calls=1 if known else None,
            time_ns=to_ns(mean, _MS) if known else None,
            host_ns=to_ns(sum(row[5] for row in rows) / len(tables), _MS) if known else None,
            low_ns=to_ns(min(times), _MS) if several else None,
            high_ns=to_ns(max(times), _MS) if several else None,
        )


def _checks(tables: Sequence[Sequence[_Row]], totals: Sequence[float | None], digit: float) -> Iterator[Check]:
    """A table's total is the sum of its rows: every row is rounded to 1 µs, the total from the exact times."""
    for number, (table, total) in enumerate(zip(tables, totals, strict=False), start=1):
        if total is None:
            continue
        found, slack = sum(row[4] for row in table), 0.0005 * len(table) + digit
        holds = math.isclose(found, total, abs_tol=slack, rel_tol=1e-9)
        yield Check(f"total of table {number} = sum of its layers", holds, f"{total:.3f} ms, sum {found:.3f} ms")


_SECTIONS = ("Command line parameters", "Configuration setup", "Execution results", "Group Latencies")
_WORDS = {  # of the JSON of C++ → those of every other form
    "target_device": "target device",
    "batch_size": "batch size",
    "nireq": "number of parallel infer requests",
    "execution_time": "total execution time (ms)",
    "iterations_num": "total number of iterations",
    "latency_median": "Median latency (ms)",
    "latency_avg": "Average latency (ms)",
    "latency_min": "Min latency (ms)",
    "latency_max": "Max latency (ms)",
    "percentile_boundary": "Percentile boundary",
    "read_network_time": "read model time (ms)",
    "load_network_time": "compile model time (ms)",
    "first_inference_time": "first inference time (ms)",
}
_Lists = tuple[dict[str, str], dict[str, str], dict[str, str], int]  # command line, setup, results; groups of shapes


class _Totals(msgspec.Struct):
    command: dict[str, object] = msgspec.field(name="cmd_options", default_factory=dict)
    setup: dict[str, object] = msgspec.field(name="configuration_setup", default_factory=dict)
    results: dict[str, object] = msgspec.field(name="execution_results", default_factory=dict)


_TOTALS = msgspec.json.Decoder(_Totals)


class OpenVinoReport:
    """Lists of one cell and its value, or a JSON object: command line, configuration, results."""

    name = "openvino-report"

    def read(self, path: Path) -> Recording:
        """The figures among the results, and the configuration that they are of."""
        unread = Unread("lines")
        is_json = head_of(path).lstrip()[:1] == b"{"
        command, setup, results, groups = _json_lists(path) if is_json else _lists(path, unread)
        notes = [f"latencies of {groups} groups of shapes are not read"] if groups > 0 else []
        if results.get("error"):
            notes.append(f"the benchmark ended with an error: {printable(results['error'])}")
        return Recording(
            maker=self.name,
            tool=TOOL,
            provenance=Provenance.MEASURED,
            metrics=(*_results(results), *_setup(setup)),
            notes=(*notes, *unread.notes()),
            target=setup.get("target device"),
            model=command.get("-m") or command.get("m") or setup.get("topology"),
        )


def _lists(path: Path, unread: Unread) -> _Lists:
    """Of C++ every line ends in a separator."""
    lists: dict[str, dict[str, str]] = {name: {} for name in _SECTIONS}
    section = _SECTIONS[1]
    for number, line in numbered(path):
        key, separator, value = line.strip().removesuffix(";").partition(";")
        if not separator and key in _SECTIONS:
            section = key
        elif separator:
            lists[section][key.strip()] = value.strip()
        elif key:
            unread.add(f"line {number}", line)
    command, setup, results, groups = lists.values()
    return command, setup, results, len(groups) - 1


def _json_lists(path: Path) -> _Lists:
    """The JSON of Python has the words of the CSV and all values as text, that of C++ has its own."""
    file = decode_json(read_bytes(path), _TOTALS, source=str(path))
    groups = file.results.pop("group_latencies", None)
    command, setup, results = (
        {_WORDS.get(key, key): str(value) for key, value in part.items() if not isinstance(value, list | dict)}
        for part in (file.command, file.setup, file.results)
    )
    return command, setup, results, len(groups) if isinstance(groups, list) else 0


def _setup(setup: dict[str, str]) -> Iterator[Metric]:
    for key, name in (("batch size", "batch"), ("number of parallel infer requests", "parallel infer requests")):
        value = number_in(setup.get(key, ""))
        if value is not None:
            yield Metric(name, value, "1")


def _results(results: dict[str, str]) -> Iterator[Metric]:
    """The latency is the median; where another percentile was asked for, the average."""
    boundary = number_in(results.get("Percentile boundary", "50"))
    medians = ("Median latency (ms)", "latency (ms)") if boundary == 50 else ()
    whole = next((key for key in (*medians, "Average latency (ms)", "avg latency") if key in results), None)
    for key, text in results.items():
        value = number_in(text)
        if value is None:
            continue
        if key == whole:
            yield Metric(LATENCY, value * _MS, "ns")
        elif key.endswith("(ms)") or "latency" in key:
            yield Metric(key.removesuffix(" (ms)"), value * _MS, "ns")
        else:
            yield Metric(key, value, "1/s" if key == "throughput" else "1")
