"""Text report of ST Edge AI Core (analyze, generate, validate) → ops with MACs, bytes, and times where validated."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from ...core.errors import ImportFileError
from ...core.provenance import Provenance
from ...importers.reading import Unread, number_in, numbered, to_ns, whole_in
from ...recording.recording import LATENCY, Check, Metric, OpRecord, Recording
from .stedgeai import HOSTS, TOOL

_MS = 1e6
_LONGEST_LINE = 500
_TITLE = re.compile(
    r"(?:ST Edge AI Core|ST\.EdgeAI\.Core|STM32Cube\.AI|Neural Network Tools for STM32(?:AI| family)?)\s+v?(\d\S*)"
    r"(?: \([\w. ]+ v(\S+)\))?"
)
_EARLIER = "STM32Cube.AI"  # what the tool was called when it said the version of its parts in brackets
_OPERATIONS = re.compile(r"(\d+)\s+(\d+)\s+(\S.*?) \((.+?)\)\s+([\d,]+)\s+(\S+)\s*")
_CLAYER = re.compile(r"(\d+)\s+(\S+)\s+(\d+)\s+(\S+)\s+(\d+)\s+(\d+)\s+(?:[IOWS]: .*)?")
_TIMED = re.compile(r"\s*(\d+)\s+(\d+|-)\s+(\S.*?)\s+([\d.]+)\s+([\d.]+)\s*%\s+(?:[\d.]+\s*%\s+)?\s*(.*)")
_LAYER = re.compile(
    r"(?:(\d+)\s+|\s+)(\S+) \((.*?)\)\s+(\[[^\]]*\]|\([^)]*\))\s*"
    r"(?:([\d,]+)/([\d,]+)\s*)?(?:([\d,]+)(?=\s|$)\s*)?(?:\S+)?\s*(?:\|.*)?"
)
_END = re.compile(r"model(?:/c-model)?:\s+macc=([\d,]+)(?:/([\d,]+))?")
_MODEL = "Model name - "
_DEVICE = "device.desc"
_EPOCH = re.compile(r"\b(HW|SW|HYBRID|EC)\b")  # of an epoch of the NPU's schedule, in the type of its row
_ON_CPU = ("SW", "HYBRID")
_ENGINES = {"HW": "NPU", "EC": "NPU", "SW": "CPU", "HYBRID": "CPU and NPU"}
_BYTES = re.compile(r"([\d,]+) B\b")


@dataclass(slots=True)
class _Found:
    fields: dict[str, str] = field(default_factory=dict)
    tool: str = TOOL
    operations: dict[int, OpRecord] = field(default_factory=dict)  # by c_id
    c_layers: dict[int, OpRecord] = field(default_factory=dict)
    times: dict[int, OpRecord] = field(default_factory=dict)
    layers: list[OpRecord] = field(default_factory=list)
    total: int | None = None  # MACs of the model's layers
    c_total: int | None = None  # and of those that were generated from them
    model: str | None = None

    @property
    def duration_ms(self) -> float | None:
        match = re.match(r"([\d.]+) ms", self.fields.get("duration", ""))
        return number_in(match[1]) if match is not None else None


class StEdgeAiReport:
    """The tables of operations per c-layer where the report has them, else the table of the model."""

    name = "stedgeai-text"

    def read(self, path: Path) -> Recording:
        """Rows and totals; measured where the report has times, else facts of the compiler."""
        unread = Unread("rows")
        found = _walk(path, unread)
        ops, metrics = tuple(_ops(found)), tuple(_metrics(found))
        if not ops and not metrics:
            raise ImportFileError(str(path), "", "no tables and no totals; expected lines such as `macc : 52,420`")
        timed = bool(found.times) or found.duration_ms is not None
        provenance = Provenance.MEASURED if timed else Provenance.COMPILER_FACT
        return Recording(
            maker=self.name,
            tool=found.tool,
            provenance=provenance,
            ops=ops,
            metrics=metrics,
            checks=tuple(_checks(found, ops)),
            notes=(*_notes(found, timed), *unread.notes()),
            target=_target(found.fields, timed),
            model=found.fields.get("model_name") or found.fields.get("model file") or found.model,
            inferences=1 if timed else None,
        )


def _notes(found: _Found, timed: bool) -> Iterator[str]:
    device = found.fields.get(_DEVICE, "")
    if not timed:
        yield "no times: they come with `stedgeai validate` on the target"
    elif HOSTS.search(device):
        yield f"times were measured on the host ({device}), not on the target"


def _walk(path: Path, unread: Unread) -> _Found:
    """Tables and totals of the report; a heading says which table the lines below it are of."""
    found = _Found()
    table = ""
    for number, line in numbered(path):
        text = line.rstrip()
        if len(text) > _LONGEST_LINE:
            if table:
                unread.add(f"line {number}", text)
            continue
        title = _TITLE.match(text)
        if title is not None and found.tool == TOOL:
            found.tool = f"{_EARLIER} {title[2]}" if title[2] else f"{TOOL} {title[1]}"
        table = _table(text, table)
        if text.startswith(_MODEL):
            found.model = found.model or text.removeprefix(_MODEL).partition(" [")[0].strip()
            continue
        ended = _END.match(text)
        if ended is not None:
            found.total, found.c_total, table = whole_in(ended[1]), whole_in(ended[2] or ""), ""
        elif not text.strip():
            table = "" if table in _UNBROKEN else table
        elif text.lstrip().startswith(("---", "total ")):
            continue
        elif table:
            _row(text, table, found, unread, number)
        else:
            key, colon, value = text.partition(":")
            if colon and key.strip():
                found.fields.setdefault(key.strip(), value.strip())
    return found


_TABLES = {
    "Number of operations per c-layer": "operations",
    "Number of operation types": "",
    "C-Layers (": "c-layers",
    "C-Arrays (": "",
    "Inference time per node": "times",
    "Statistic per tensor": "",
    "Complexity report": "",
    "Model name - ": "model",
    "Generated C-graph summary": "",
    "Requested memory": "",
    "Compilation details": "",
}
_UNBROKEN = ("operations", "c-layers", "model")  # a blank line is the end of these


def _table(text: str, table: str) -> str:
    return next((kind for start, kind in _TABLES.items() if text.strip().startswith(start)), table)


def _target(fields: dict[str, str], timed: bool) -> str | None:
    option = re.search(r"--(?:target|series) (\S+)", fields.get("Parameters", ""))
    asked = fields.get("target/series") or (option[1] if option is not None else None)
    return (fields.get(_DEVICE) if timed else None) or asked


def _row(text: str, table: str, found: _Found, unread: Unread, number: int) -> None:
    """A row of the table; headings and continued cells are none."""
    starts = text.strip().split(" ")[0].isdigit()
    if table == "operations" and (match := _OPERATIONS.fullmatch(text)) is not None:
        op = OpRecord(match[3], type=match[4], macs=whole_in(match[5]), kernel=match[6], calls=1)
        found.operations[int(match[1][:9])] = op
    elif table == "c-layers" and (match := _CLAYER.fullmatch(text)) is not None:
        found.c_layers[int(match[1][:9])] = OpRecord(
            match[2], type=match[4], macs=whole_in(match[5]), parameter_bytes=whole_in(match[6]), calls=1
        )
    elif table == "times" and (match := _TIMED.fullmatch(text)) is not None:
        found.times[int(match[1][:9])] = _timed(match)
    elif table == "model" and (match := _LAYER.fullmatch(text)) is not None:
        found.layers.append(_layer(match))
    elif starts and table != "c-layers":
        unread.add(f"line {number}", text)


def _timed(match: re.Match[str]) -> OpRecord:
    """Cycles in brackets and the name follow the shares, where the version prints them.

    An epoch of an NPU has three numbers of cycles: before, in and behind its core part; together they are its time.
    """
    rest = re.match(r"\[?((?:\s*[\d,]+(?=[\s\]]|$))*)\s*\]?\s*(.*)", match[6])
    counts = [whole_in(word) or 0 for word in rest[1].split()] if rest is not None else []
    placed = _EPOCH.search(match[3])
    return OpRecord(
        (rest[2].strip() if rest is not None else "") or f"c-layer {match[1]}",
        type=match[3],
        engines=(_ENGINES[placed[1]],) if placed is not None else (),
        on_cpu=placed[1] in _ON_CPU if placed is not None else None,
        calls=1,
        time_ns=to_ns(number_in(match[4]), _MS),
        cycles=sum(counts) if counts else None,
    )


def _layer(match: re.Match[str]) -> OpRecord:
    size, macs = match[6], match[7]
    return OpRecord(
        match[2],
        type=match[3],
        shape=match[4],
        calls=1,
        macs=whole_in(macs) if macs else None,
        parameter_bytes=whole_in(size) if size else None,
    )


def _ops(found: _Found) -> Iterator[OpRecord]:
    """Of the layers that were generated where the report has them, in any of its tables; else of the model's."""
    numbers = sorted({*found.operations, *found.times, *found.c_layers})
    if not numbers:
        yield from found.layers
    for number in numbers:
        layer = found.c_layers.get(number)
        timed = found.times.get(number, OpRecord(f"c-layer {number}", calls=1))
        op = found.operations.get(number) or layer or timed
        size = layer.parameter_bytes if layer is not None else None
        yield replace(
            op,
            time_ns=timed.time_ns,
            cycles=timed.cycles,
            engines=op.engines or timed.engines,
            on_cpu=timed.on_cpu,
            parameter_bytes=size,
        )


def _metrics(found: _Found) -> Iterator[Metric]:
    for key, name in (("weights (ro)", "weights"), ("activations (rw)", "activations"), ("ram (total)", "ram")):
        match = _BYTES.search(found.fields.get(key, ""))
        value = whole_in(match[1]) if match is not None else None
        if value is not None:
            yield Metric(name, value, "bytes")
    macs = whole_in(found.fields.get("macc", "")) if "macc" in found.fields else found.total
    if macs is not None:
        yield Metric("MACs", macs, "1")
    value = to_ns(found.duration_ms, _MS)
    if value is not None:
        yield Metric(LATENCY, value, "ns")


def _checks(found: _Found, ops: tuple[OpRecord, ...]) -> Iterator[Check]:
    known = [op.macs for op in ops if op.macs is not None]
    generated = found.c_total if found.c_total is not None else whole_in(found.fields.get("macc", ""))
    total = generated if found.c_layers or found.operations else found.total
    if total is not None and known:
        yield Check("macc = sum of the layers", sum(known) == total, f"{total}, sum {sum(known)}")
    weights = _BYTES.search(found.fields.get("weights (ro)", ""))
    sizes = [op.parameter_bytes for op in ops if op.parameter_bytes is not None]
    if weights is not None and sizes:
        total = whole_in(weights[1])
        yield Check("weights = sum of the layers", total == sum(sizes), f"{total} bytes, sum {sum(sizes)}")
