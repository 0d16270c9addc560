"""Text report of ST Edge AI Core (analyze, generate, validate) → ops with MACs, bytes, and times where validated."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..errors import ImportFileError
from ..imported import LATENCY, Check, Imported, ImportedOp, Metric, empty_trace
from .reading import Unread, number_in, numbered, to_ns, whole_in
from .stedgeai import TOOL

_MS = 1e6
_LONGEST_LINE = 500
_TITLE = re.compile(r"(?:ST Edge AI Core|ST\.EdgeAI\.Core|STM32Cube\.AI|Neural Network Tools for STM32\S*)\s+v?(\S+)")
_OPERATIONS = re.compile(r"(\d+)\s+(\d+)\s+(\S.*?) \((.+?)\)\s+([\d,]+)\s+(\S+)\s*")
_CLAYER = re.compile(r"(\d+)\s+(\S+)\s+(\d+)\s+(\S+)\s+(\d+)\s+(\d+)\s+(?:[IOWS]: .*)?")
_TIMED = re.compile(r"\s*(\d+)\s+(\d+)\s+(\S.*?)\s+([\d.]+)\s+([\d.]+)\s*%\s+(?:[\d.]+\s*%\s+)?\s*(.*)")
_LAYER = re.compile(
    r"(?:(\d+)\s+|\s+)(\S+) \((.*?)\)\s+(\[[^\]]*\])\s*"
    r"(?:([\d,]+)/([\d,]+)\s*)?(?:([\d,]+)(?=\s|$)\s*)?(?:\S+)?\s*(?:\|.*)?"
)
_END = re.compile(r"model(?:/c-model)?:\s+macc=([\d,]+)")
_MODEL = "Model name - "
_BYTES = re.compile(r"([\d,]+) B\b")


@dataclass(slots=True)
class _Found:
    fields: dict[str, str] = field(default_factory=dict)
    version: str = ""
    operations: dict[int, ImportedOp] = field(default_factory=dict)  # by c_id
    rom: dict[int, int] = field(default_factory=dict)
    times: dict[int, ImportedOp] = field(default_factory=dict)
    layers: list[ImportedOp] = field(default_factory=list)
    total: int | None = None
    model: str | None = None


class StEdgeAiReport:
    """The tables of operations per c-layer where the report has them, else the table of the model."""

    name = "stedgeai-text"
    describe = "ST Edge AI Core text report (network_analyze_report.txt, …generate…, …validate…)"

    def looks_like(self, head: bytes, name: str) -> bool:
        del name
        text = head[:4096].decode("utf-8", "replace")
        known = _TITLE.match(text.lstrip()) is not None
        return known or ("Exec/report summary" in text and "c_name" in text)

    def read(self, path: Path) -> Imported:
        unread = Unread("rows")
        found = _walk(path, unread)
        ops, metrics = tuple(_ops(found)), tuple(_metrics(found))
        if not ops and not metrics:
            raise ImportFileError(str(path), "", "no tables and no totals; expected lines such as `macc : 52,420`")
        provenance = "measured" if found.times else "compiler-fact"
        notes = () if found.times else ("no times: they come with `stedgeai validate` on the target",)
        return Imported(
            format=self.name, source=str(path), tool=f"{TOOL} {found.version}".strip(), provenance=provenance,
            trace=empty_trace(provenance), ops=ops, metrics=metrics, checks=tuple(_checks(found, ops)),
            notes=(*notes, *unread.notes()), target=_target(found.fields),
            model=found.fields.get("model_name") or found.fields.get("model file") or found.model,
            inferences=1 if found.times else None,
        )  # fmt: skip


def _walk(path: Path, unread: Unread) -> _Found:
    found = _Found()
    table = ""
    for number, line in numbered(path):
        text = line.rstrip()
        if len(text) > _LONGEST_LINE:
            if table:
                unread.add(f"line {number}", text)
            continue
        title = _TITLE.match(text)
        found.version = found.version or (title[1] if title is not None else "")
        table = _table(text, table)
        if text.startswith(_MODEL):
            found.model = found.model or text.removeprefix(_MODEL).strip()
            continue
        ended = _END.match(text)
        if ended is not None:
            found.total, table = whole_in(ended[1]), ""
        elif not text.strip() or text.lstrip().startswith(("---", "total ")):
            continue
        elif table:
            _row(text, table, found, unread, number)
        else:
            key, colon, value = text.partition(":")
            if colon and key.strip():
                found.fields.setdefault(key.strip(), value.strip())
    return found


_TABLES = {
    "Number of operations per c-layer": "operations", "Number of operation types": "", "C-Layers (": "c-layers",
    "C-Arrays (": "", "Inference time per node": "times", "Statistic per tensor": "", "Complexity report": "",
    "Model name - ": "model", "Generated C-graph summary": "", "Requested memory": "", "Compilation details": "",
}  # fmt: skip


def _table(text: str, table: str) -> str:
    return next((kind for start, kind in _TABLES.items() if text.strip().startswith(start)), table)


def _target(fields: dict[str, str]) -> str | None:
    option = re.search(r"--target (\S+)", fields.get("Parameters", ""))
    return fields.get("target/series") or (option[1] if option is not None else None)


def _row(text: str, table: str, found: _Found, unread: Unread, number: int) -> None:
    """A row of the table; headings and continued cells are none."""
    starts = text.strip().split(" ")[0].isdigit()
    if table == "operations" and (match := _OPERATIONS.fullmatch(text)) is not None:
        op = ImportedOp(match[3], type=match[4], macs=whole_in(match[5]), kernel=match[6], calls=1)
        found.operations[int(match[1][:9])] = op
    elif table == "c-layers" and (match := _CLAYER.fullmatch(text)) is not None:
        found.rom[int(match[1][:9])] = whole_in(match[6]) or 0
    elif table == "times" and (match := _TIMED.fullmatch(text)) is not None:
        found.times[int(match[1][:9])] = _timed(match)
    elif table == "model" and (match := _LAYER.fullmatch(text)) is not None:
        found.layers.append(_layer(match))
    elif starts and table != "c-layers":
        unread.add(f"line {number}", text)


def _timed(match: re.Match[str]) -> ImportedOp:
    """Cycles in brackets and the name follow the shares, where the version prints them."""
    rest = re.match(r"\[?\s*([\d,]*)\s*\]?\s*(.*)", match[6])
    cycles, name = (whole_in(rest[1]), rest[2].strip()) if rest is not None else (None, "")
    return ImportedOp(
        name or f"c-layer {match[1]}", type=match[3], calls=1, time_ns=to_ns(number_in(match[4]), _MS), cycles=cycles
    )


def _layer(match: re.Match[str]) -> ImportedOp:
    size, macs = match[6], match[7]
    return ImportedOp(
        match[2], type=match[3] or None, shape=match[4], calls=1, macs=whole_in(macs) if macs else None,
        parameter_bytes=whole_in(size) if size else None,
    )  # fmt: skip


def _ops(found: _Found) -> Iterator[ImportedOp]:
    if not found.operations and not found.times:
        yield from found.layers
        return
    for number in sorted({*found.operations, *found.times}):
        timed = found.times.get(number, ImportedOp(f"c-layer {number}", calls=1))
        op = found.operations.get(number, timed)
        yield replace(op, time_ns=timed.time_ns, cycles=timed.cycles, parameter_bytes=found.rom.get(number))


def _metrics(found: _Found) -> Iterator[Metric]:
    for key, name in (("weights (ro)", "weights"), ("activations (rw)", "activations"), ("ram (total)", "ram")):
        match = _BYTES.search(found.fields.get(key, ""))
        value = whole_in(match[1]) if match is not None else None
        if value is not None:
            yield Metric(name, value, "bytes")
    macs = whole_in(found.fields.get("macc", "")) if "macc" in found.fields else found.total
    if macs is not None:
        yield Metric("MACs", macs, "1")
    duration = re.match(r"([\d.]+) ms", found.fields.get("duration", ""))
    value = to_ns(number_in(duration[1]), _MS) if duration is not None else None
    if value is not None:
        yield Metric(LATENCY, value, "ns")


def _checks(found: _Found, ops: tuple[ImportedOp, ...]) -> Iterator[Check]:
    known = [op.macs for op in ops if op.macs is not None]
    if found.total is not None and known:
        yield Check("macc = sum of the layers", sum(known) == found.total, f"{found.total}, sum {sum(known)}")
    weights = _BYTES.search(found.fields.get("weights (ro)", ""))
    sizes = [op.parameter_bytes for op in ops if op.parameter_bytes is not None]
    if weights is not None and sizes:
        total = whole_in(weights[1])
        yield Check("weights = sum of the layers", total == sum(sizes), f"{total} bytes, sum {sum(sizes)}")
