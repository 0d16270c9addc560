"""What ST's application aiSystemPerformance prints on a board: latency, cycles, memory, and times of c-nodes.

Forms are those of its sources: X-CUBE-AI 3.3 to 9 (a table by c-node: type, then id), the one for ST Edge AI Core 2
and later (id, then type), and the one for TensorFlow Lite Micro (index and name). Times are means, cut off at a
microsecond.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from ...core.errors import ImportFileError, printable
from ...core.provenance import Provenance
from ...importers.console import console_lines
from ...importers.reading import Unread, number_in, to_ns, whole_in
from ...recording.recording import CLOCK, CYCLES, LATENCY, Check, Metric, OpRecord, Placed, Recording

_MS, _US_MS = 1e6, 1e-3
_MOST_NODES = 100_000
_RESULTS = re.compile(
    r'Results (?:for "([^"]{0,200})"(?: \(R\))?|TFLM (\S{1,40})), (\d{1,9}) inferences @(\d{1,6})MHz/(\d{1,6})MHz'
    r"(?: \(complexity: (\d{1,18}) MACC\))?"
)
_DURATION = re.compile(r"\s*duration\s*: (\d{1,12}[.,]\d{3}) ms \(average\)")
_CYCLES = re.compile(r"\s*CPU cycles\s*: (\d{1,18})(?: -(\d{1,18})/\+(\d{1,18}))? \(average")
_BYTES = re.compile(r"\s*(used stack|activations?|weights)\s*: ([\d,]{1,18}) bytes")
_FIELD = re.compile(r"\s*(Model name|Device|Core Arch\.|Tool revision|Runtime revision)\s*: (.{1,200})$")
_TABLE = re.compile(r"\s*(?:Inference time by|Performance per) c-node")
_HEADING = re.compile(r"\s*(c_id|idx)\s+(\w+(?:\s+\w+)?)\s+time \(ms\)")
_INSIDE = re.compile(r"\s*(kernel|user)\s*: (\d{1,12}[.,]\d{3})ms")
_NODE = re.compile(r"\s*(\d{1,6})\s+(\S.*?)\s+(\d{1,12}[.,]\d{3})\s+[\d.]+\s*%")
_TOTAL = re.compile(r"\s+(\d{1,12}[.,]\d{3}) ms$")
_RULE = re.compile(r"\s*-{20,}$")


class _Node(NamedTuple):
    number: int
    type: str
    id: str
    ms: float


@dataclass(slots=True)
class _Result:
    """One test of one network."""

    network: str = ""
    runtime: str = ""
    inferences: int | None = None
    megahertz: int | None = None
    macs: int | None = None
    duration_ms: float | None = None
    cycles: tuple[int, int | None, int | None] | None = None  # mean, and how far below and above it they were
    stack_bytes: int | None = None
    kernels_ms: float | None = None
    nodes: list[_Node] = field(default_factory=list)
    total_ms: float | None = None

    @property
    def cycles_fit(self) -> bool | None:
        """Some releases print the digits of large numbers without the zeros between them."""
        if self.cycles is None or self.duration_ms is None or not self.megahertz:
            return None
        expected = self.duration_ms * self.megahertz * 1000
        slack = self.duration_ms * 1000 + self.megahertz + 1  # a clock in whole MHz, a time in whole microseconds
        return abs(self.cycles[0] - expected) <= slack


class PerformanceLog:
    """A console log."""

    name = "stm32-console"

    def read(self, path: Path) -> Recording:
        unread = Unread("rows")
        walk = _Walk(unread)
        walk.all(path)
        results, fields = walk.results, walk.fields
        if not results:
            raise ImportFileError(str(path), "", "no results and no nodes; expected what aiSystemPerformance prints")
        first = results[0].network
        same = [result for result in results if result.network == first]
        shown = same[-1]
        return Recording(
            maker=self.name,
            tool=" ".join(filter(None, ("aiSystemPerformance", fields.get("Tool revision", "")))),
            provenance=Provenance.MEASURED,
            ops=tuple(_ops(shown.nodes)),
            metrics=tuple(_metrics(shown, walk.sizes)),
            checks=tuple(_checks(shown)),
            notes=(*_notes(shown, len(same), results), *unread.notes()),
            model=shown.network or fields.get("Model name"),
            target=fields.get("Device"),
            machine={"core": fields["Core Arch."]} if "Core Arch." in fields else {},
            producer={"TensorFlow Lite Micro": shown.runtime} if shown.runtime else {},
            inferences=shown.inferences,
        )


class _Walk:
    """Goes through a log, line by line."""

    def __init__(self, unread: Unread) -> None:
        self.results: list[_Result] = []
        self.fields: dict[str, str] = {}
        self.sizes: dict[str, int] = {}
        self.unread = unread
        self.columns: list[str] | None = None  # of the table that is being read; empty: its heading comes

    def all(self, path: Path) -> None:
        for number, text in console_lines(path, self.unread):
            if self.columns is None or _RESULTS.search(text):
                self._line(text)
            else:
                self._table_line(number, text)
            if self.results and len(self.results[-1].nodes) > _MOST_NODES:
                raise ImportFileError(str(path), f"line {number}", f"more than {_MOST_NODES} nodes; expected a network")

    def _line(self, text: str) -> None:
        if started := _RESULTS.search(text):
            self.results.append(_result(started))
            self.columns = None
        elif _TABLE.match(text):
            self.columns = []
            if not self.results or self.results[-1].nodes:
                self.results.append(_Result())
        elif self.results and _figure(text, self.results[-1]):
            pass
        elif size := _BYTES.match(text):
            self.sizes[size[1]] = whole_in(size[2]) or 0
        elif said := _FIELD.match(text):
            self.fields[said[1]] = printable(said[2].strip(), 200)

    def _table_line(self, number: int, text: str) -> None:
        result = self.results[-1]
        if inside := _INSIDE.match(text):
            if inside[1] == "kernel":
                result.kernels_ms = _number(inside[2])
        elif heading := _HEADING.match(text):
            self.columns = heading[2].split()
        elif (total := _TOTAL.match(text)) and result.nodes:
            result.total_ms, self.columns = _number(total[1]), None
        elif row := _NODE.match(text):
            result.nodes.append(_node(row, self.columns or ()))
        elif text.strip() and not _RULE.match(text):
            self.unread.add(f"line {number}", text)


def _result(started: re.Match[str]) -> _Result:
    return _Result(
        network=printable(started[1] or "", 200),
        runtime=printable(started[2] or "", 40),
        inferences=int(started[3]),
        megahertz=int(started[4]),
        macs=int(started[6]) if started[6] else None,
    )


def _figure(text: str, result: _Result) -> bool:
    """A total below the results."""
    if found := _DURATION.match(text):
        result.duration_ms = _number(found[1])
    elif found := _CYCLES.match(text):
        below, above = (int(found[2]), int(found[3])) if found[2] else (None, None)
        result.cycles = (int(found[1]), below, above)
    elif (found := _BYTES.match(text)) and found[1] == "used stack":
        result.stack_bytes = whole_in(found[2])
    return found is not None


def _node(row: re.Match[str], columns: Sequence[str]) -> _Node:
    """The cells between number and time, in the order of the heading; the last of them is the id unless it says so."""
    words, ms = row[2], _number(row[3])
    if list(columns) == ["id", "type"]:
        id_, _, type_ = words.partition(" ")
    elif list(columns) == ["type", "id"]:
        type_, _, id_ = words.rpartition(" ")
    else:
        type_, id_ = words, ""
    return _Node(int(row[1]), printable((type_ or words).strip(), 100), printable(id_.strip(), 40), ms)


def _number(text: str) -> float:
    """Early releases have a comma for the point."""
    return number_in(text.replace(",", ".")) or 0.0


def _ops(nodes: Sequence[_Node]) -> Iterator[OpRecord]:
    for node in nodes:
        yield OpRecord(
            f"{node.type}_{node.number}",
            type=node.type,
            location=f"layer {node.id}" if node.id else "",
            placed=Placed.CPU,
            calls=1,
            time_ns=to_ns(node.ms, _MS),
        )


def _metrics(shown: _Result, sizes: dict[str, int]) -> Iterator[Metric]:
    if shown.megahertz:
        yield Metric(CLOCK, shown.megahertz * 1e6, "Hz", note="in whole MHz")
    if shown.duration_ms is not None:
        low, high = (_bound(shown, sign) for sign in (-1, 1))
        yield Metric(LATENCY, to_ns(shown.duration_ms, _MS), "ns", note="mean of all inferences", low=low, high=high)
    if shown.cycles is not None and shown.cycles_fit is not False:
        yield Metric(CYCLES, shown.cycles[0], "cycles")
    if shown.macs is not None:
        yield Metric("MACs", shown.macs, "1")
    if shown.stack_bytes is not None:
        yield Metric("stack", shown.stack_bytes, "bytes")
    for name, size in sizes.items():
        yield Metric(name if name != "activation" else "activations", size, "bytes")


def _bound(shown: _Result, sign: int) -> float | None:
    """The shortest or the longest inference, where cycles of both are told."""
    if shown.cycles is None or shown.cycles[1] is None or shown.cycles[2] is None or not shown.megahertz:
        return None
    if not shown.cycles_fit:
        return None
    mean, below, above = shown.cycles[0], shown.cycles[1], shown.cycles[2]
    return round((mean - below if sign < 0 else mean + above) / shown.megahertz * 1e3)


def _checks(shown: _Result) -> Iterator[Check]:
    if shown.cycles_fit is not None and shown.cycles is not None and shown.duration_ms is not None:
        detail = f"{shown.cycles[0]} cycles, {shown.duration_ms:.3f} ms at {shown.megahertz} MHz"
        yield Check("cycles = duration × clock", shown.cycles_fit, detail)
    whole = shown.total_ms if shown.total_ms is not None else shown.kernels_ms
    if shown.nodes and whole is not None:
        parts = sum(node.ms for node in shown.nodes)
        slack = (len(shown.nodes) + 1) * _US_MS
        yield Check("sum of nodes = their total", abs(parts - whole) <= slack, f"{parts:.3f} of {whole:.3f} ms")


def _notes(shown: _Result, tests: int, results: Sequence[_Result]) -> Iterator[str]:
    if tests > 1:
        yield f"{tests} tests of the network; the last is shown"
    others = list(dict.fromkeys(result.network for result in results if result.network != shown.network))
    if others:
        named = ", ".join(other or "(no name)" for other in others[:5])
        yield f"{len(others)} other networks are left out, a run is of one: {named}"
    if shown.cycles_fit is False:
        yield "the printed cycles are not the duration at the clock, and are left out: some releases lose zeros in them"
    if not shown.nodes:
        yield "no times of nodes: the application was built without its observer, or its table is not in the log"
    elif shown.duration_ms is not None:
        rest = shown.duration_ms - sum(node.ms for node in shown.nodes)
        yield f"{rest:.3f} ms of {shown.duration_ms:.3f} ms are between nodes"
