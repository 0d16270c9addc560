"""What the Cloud AI compiler prints with `-aic-perf-metrics`: sizes, and the memory traffic that it plans."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ...core.errors import ImportFileError, printable
from ...core.provenance import Provenance
from ...importers.reading import Unread, numbered
from ...recording.recording import Check, Metric, Recording

TOOL, PROVENANCE = "qaic-exec", Provenance.COMPILER_FACT
_OURS = " traffic by op, most "  # what our own compiler prints goes on with a table of ops
_TITLE = "Compiler estimated memory traffic:"
_LONGEST_LINE = 1_000
_KB = 1024
_OVERFLOW = 1 << 63  # estimates of MACs beyond it are a negative number, printed as if it had no sign
_MODEL = re.compile(r"Reading \S+ Model from (.+)")
_SIZE = re.compile(r"([A-Za-z][\w .]*?)\s*:\s*(\d+) (?:B(?: of \d+ B)?|\(bytes\))")
_COUNT = re.compile(r"(Number of [\w ]+|MulticastTableSize|(?:[\w -]+ )?MAC estimate|\w+ barriers)\s*:\s*(\d+)")
_OPS = re.compile(r"\d+\s+(\d+)\s+\d+%")
_FIRST = r"(\d+) KB(?:\s*\(first-inf\s+(\d+) KB\))?"
_TRAFFIC = re.compile(rf"(\w+):\s*(\w+)\s+traffic\s+(read|write):\s*{_FIRST}")
_CONSTANT = re.compile(rf"(?:\w+:\s*)?constant only:\s*{_FIRST}")


@dataclass(frozen=True, slots=True)
class _Traffic:
    """Bytes of one place: `host`, `c00`, `port01`, `total`."""

    place: str
    what: str
    bytes: int
    first_bytes: int | None  # in the first inference, where the file has it

    def metrics(self) -> Iterator[Metric]:
        yield Metric(f"{self.place} {self.what}", self.bytes, "bytes")
        if self.first_bytes is not None:
            yield Metric(f"{self.place} {self.what}, first inference", self.first_bytes, "bytes")


class CompileMetrics:
    """Totals alone: no times, no ops."""

    name = "qaic-compile-metrics"

    def read(self, path: Path) -> Recording:
        """Totals and traffic, line by line; lines of other things are counted."""
        traffic: list[_Traffic] = []
        metrics: dict[str, Metric] = {}
        unread, other, model, tool = Unread("lines"), 0, None, TOOL
        for number, line in numbered(path):
            text = line.strip()[:_LONGEST_LINE]
            moved = _traffic(text, traffic)
            if moved is not None:
                traffic.append(moved)
            elif named := _MODEL.fullmatch(text):
                model = named[1]
            elif (told := _told(text)) is not None and (told.value or 0) < _OVERFLOW:
                metrics[told.name] = told
            elif _OURS in text:
                tool = "opscope"
            elif told is not None or "traffic " in text.removeprefix(_TITLE):
                unread.add(f"line {number}", text)
            else:
                other += bool(text)
        if not traffic:
            raise ImportFileError(str(path), "", "no line of traffic; expected `c00: DDR traffic  read: N KB`")
        notes = (f"{other} other lines are not read",) if other else ()
        return Recording(
            maker=self.name,
            tool=tool,
            provenance=PROVENANCE,
            metrics=(*metrics.values(), *(metric for moved in traffic for metric in moved.metrics())),
            checks=tuple(_sums(traffic)),
            notes=(*notes, *unread.notes()),
            model=model and printable(model, 200),
        )


def _told(text: str) -> Metric | None:
    """A size in bytes, or a count; of ops by size, which add up from row to row, the last stays."""
    if size := _SIZE.fullmatch(text):
        return Metric(size[1], int(size[2][:20]), "bytes")
    if count := _COUNT.fullmatch(text):
        return Metric(count[1], int(count[2][:20]), "1")
    ops = _OPS.fullmatch(text)
    return None if ops is None else Metric("ops of the model's graph", int(ops[1][:20]), "1")


def _traffic(text: str, before: list[_Traffic]) -> _Traffic | None:
    """Bytes moved, or how many of those of the line before are constants."""
    if found := _TRAFFIC.fullmatch(text):
        return _Traffic(found[1], f"{found[2]} {found[3]}", *_kilobytes(found[4], found[5]))
    found = _CONSTANT.fullmatch(text)
    if found is None or not before:
        return None
    of = before[-1]
    return _Traffic(of.place, f"{of.what.partition(',')[0]}, constants", *_kilobytes(found[1], found[2]))


def _kilobytes(value: str, first: str | None) -> tuple[int, int | None]:
    return int(value[:15]) * _KB, None if first is None else int(first[:15]) * _KB


def _sums(traffic: Iterable[_Traffic]) -> Iterator[Check]:
    """The total is that of the host and of the cores, each rounded to a kilobyte; ports are the host's once more."""
    rows = list(traffic)
    for total in (row for row in rows if row.place == "total"):
        parts = [
            r.bytes for r in rows if r.what == total.what and r.place != "total" and not r.place.startswith("port")
        ]
        if parts:
            holds = abs(total.bytes - sum(parts)) <= len(parts) * _KB
            detail = f"{total.bytes // _KB} of {sum(parts) // _KB} KB"
            yield Check(f"total {total.what} = host and cores", holds, detail)
