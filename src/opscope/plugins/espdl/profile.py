"""What ESP-DL's Model::profile prints: a table of modules with latencies, and one of memory by place.

Rules of espressif/esp-dl, dl_model_base.cpp at 12c0616d: latencies are whole microseconds, or cycles where the library
is built with DL_LOG_LATENCY_UNIT; sizes are KB of 1024 bytes with two digits, nothing where they would be 0.00. Each
module ran once, on one core. Rows are in the order of the model, or sorted by latency: the table does not say which.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ...core.errors import ImportFileError, printable
from ...core.provenance import Provenance
from ...importers.console import console_lines
from ...importers.reading import Unread, number_in
from ...recording.recording import CYCLES, LATENCY, Check, Metric, OpRecord, Placed, Recording

_MOST_MODULES = 100_000
_KB = 1024
_TITLE = re.compile(r"\|\s+(module|memory) summary\s+\|$")
_RULE = re.compile(r"\+-[-+]*-\+$")
_MODEL = re.compile(r"model:(.{1,200}), version:(-?\d{1,19})(?:, description:.*)?$")
_LATENCY = re.compile(r"(\d{1,10})(us|cycle)$")
_SIZE = re.compile(r"(?:-- )?(\d{1,12}\.\d\d)KB$")
_TOTAL = "total"
_PLACES = ("internal RAM", "PSRAM", "FLASH")


@dataclass(slots=True)
class _Found:
    model: str | None = None
    version: str = ""
    modules: list[OpRecord] = field(default_factory=list)
    total: OpRecord | None = None
    tables: int = 0  # of modules
    sizes: dict[tuple[str, str], int] = field(default_factory=dict)  # (part, place) → bytes


class ModelLog:
    """A console log."""

    name = "espdl-log"

    def read(self, path: Path) -> Recording:
        unread = Unread("rows")
        found = _walk(path, unread)
        if not found.modules and not found.sizes:
            raise ImportFileError(str(path), "", "tables without rows; expected what Model::profile prints")
        return Recording(
            maker=self.name,
            tool="ESP-DL",
            provenance=Provenance.MEASURED,
            ops=tuple(found.modules),
            metrics=tuple(_metrics(found)),
            checks=tuple(_checks(found)),
            notes=(*_notes(found), *unread.notes()),
            model=found.model,
            inferences=1 if found.modules else None,
        )


def _walk(path: Path, unread: Unread) -> _Found:
    found, table, is_headed = _Found(), "", False
    for number, text in console_lines(path, unread):
        if named := _MODEL.match(text):
            if found.model not in (None, named[1]):
                raise ImportFileError(str(path), f"line {number}", f"{_second(found, named[1])}; expected one model")
            found.model, found.version = printable(named[1], 200), named[2]
        elif title := _TITLE.match(text):
            table, is_headed = title[1], False
            if table == "module":  # of several tables, the last
                found.tables, found.modules, found.total = found.tables + 1, [], None
        elif table and text.startswith("|"):
            cells = [cell.strip() for cell in text.strip("|").split("|")]
            if not is_headed:
                is_headed = True
            elif not _row(cells, table, found):
                unread.add(f"line {number}", text)
            if len(found.modules) > _MOST_MODULES:
                raise ImportFileError(
                    str(path), f"line {number}", f"more than {_MOST_MODULES} modules; expected a model"
                )
        elif not _RULE.match(text):
            table = ""
    return found


def _second(found: _Found, name: str) -> str:
    return f"the models {found.model} and {printable(name, 100)}"


def _row(cells: Sequence[str], table: str, found: _Found) -> bool:
    """Whether a row could be read."""
    return _module(cells, found) if table == "module" else _memory(cells, found)


def _module(cells: Sequence[str], found: _Found) -> bool:
    latency = _LATENCY.match(cells[-1])
    if len(cells) != 3 or latency is None:
        return False
    value = int(latency[1])
    is_time = latency[2] == "us"
    op = OpRecord(
        printable(cells[0], 200),
        type=printable(cells[1], 100),
        placed=Placed.CPU,
        calls=1,
        time_ns=value * 1000 if is_time else None,
        cycles=None if is_time else value,
    )
    if cells[0] == _TOTAL and not cells[1]:
        found.total = op
    else:
        found.modules.append(op)
    return True


def _memory(cells: Sequence[str], found: _Found) -> bool:
    sizes = [_SIZE.match(cell) for cell in cells[1:]]
    if len(cells) != 4 or any(cell and size is None for cell, size in zip(cells[1:], sizes, strict=True)):
        return False
    part = cells[0].removeprefix("-- ")
    for place, size in zip(_PLACES, sizes, strict=True):
        found.sizes[printable(part, 80), place] = round((number_in(size[1]) or 0) * _KB) if size else 0
    return True


def _metrics(found: _Found) -> Iterator[Metric]:
    if found.total is not None and found.total.time_ns is not None:
        yield Metric(LATENCY, found.total.time_ns, "ns", note="sum of its modules, each run once, on one core")
    if found.total is not None and found.total.cycles is not None:
        yield Metric(CYCLES, found.total.cycles, "cycles", note="sum of its modules")
    for (part, place), size in found.sizes.items():
        if size:
            yield Metric(f"{part}, {place}", size, "bytes", note="to 10 bytes")


def _checks(found: _Found) -> Iterator[Check]:
    if found.total is not None and found.modules:
        unit = "us" if found.total.time_ns is not None else "cycles"
        parts = sum((op.time_ns or 0) // 1000 + (op.cycles or 0) for op in found.modules)
        whole = (found.total.time_ns or 0) // 1000 + (found.total.cycles or 0)
        yield Check("total = sum of the modules", parts == whole, f"{whole} {unit}, sum {parts}")
    for place in _PLACES:  # "parameter" is part of "fbs_model"
        sizes = [size for (part, where), size in found.sizes.items() if where == place and part not in _NOT_ADDED]
        total = found.sizes.get((_TOTAL, place))
        if total is not None:
            slack = 10 * (len(sizes) + 1)  # each size is rounded to a hundredth of a KB
            holds = abs(sum(sizes) - total) <= slack
            yield Check(f"{place}: total = sum of the parts", holds, f"{total} bytes, sum {sum(sizes)}")


_NOT_ADDED = (_TOTAL, "parameter")


def _notes(found: _Found) -> Iterator[str]:
    if found.tables > 1:
        yield f"{found.tables} tables of modules; the last is shown"
    if found.modules and found.total is None:
        yield "the table of modules has no total: it is cut short"
    if not found.modules:
        yield "no times: memory alone was profiled"
