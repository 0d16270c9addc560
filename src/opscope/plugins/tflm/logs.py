"""What TensorFlow Lite Micro prints on a board: MicroProfiler, RecordingMicroAllocator and the benchmark tool.

Consoles put things around its lines, so that a line is searched and not matched. Three forms of times: a line per
event, a table of events, a table per tag. The unit is ticks of the board's timer; nanoseconds follow where an event
that took long tells milliseconds too. The benchmark (tensorflow/lite/micro/tools/benchmarking at 90b983c2) prints
what it was built for, a table per tag of setting up, the events of an inference, their table, and the arena as a table
or CSV.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from ...core.errors import ImportFileError, printable
from ...core.provenance import Provenance
from ...importers.console import console_lines
from ...importers.reading import Unread
from ...readers.tflite.schema import BUILTINS, KNOWN_CUSTOM
from ...recording.recording import CYCLES, LATENCY, Check, Metric, OpRecord, Placed, Recording

_MOST_EVENTS = 200_000
_SHORTEST_MS = 100  # of an event whose whole milliseconds tell the rate of the timer to 1 %
_WORD = r"[A-Za-z_][\w:.-]*"
_TOOK = re.compile(rf"({_WORD}(?:\(\d+\))?(?: instantiation)?) took (\d{{1,15}}) ticks \((\d{{1,12}}) ms\)")
_EVENTS = re.compile(r'"Event","Tag","Ticks"')
_EVENT = re.compile(rf"(?:^|[\s:])(\d{{1,9}}),({_WORD}(?: instantiation)?),(\d{{1,15}})\s*$")
_TAGS = re.compile(r'"Unique Tag","Total ticks across all events with that tag\."')
_TAG = re.compile(rf"(?:^|[\s:])({_WORD}(?:\(\d+\))?(?: instantiation)?), (\d{{1,15}})\s*$")
_ROW = re.compile(rf"(?:^|[\s:])(?:\d+,)?{_WORD}[^,]*, ?-?\d+\s*$")  # of either table, whatever it says
_TOTAL = re.compile(r'"total number of ticks", (\d{1,15})')
_ARENA = re.compile(r"\[RecordingMicroAllocator\] Arena allocation (total|head|tail) (\d{1,15}) bytes")
_PART = re.compile(r"\[RecordingMicroAllocator\] '([^']{1,80})' used (\d{1,15}) bytes")
_ARENA_ROW = re.compile(r'^\s*"?(Total|NonPersistent|Persistent)"?\s*[|,]\s*(\d{1,15})\s*[|,]')
_PART_ROW = re.compile(r'^\s*"?([A-Z][a-z]+(?: \w+){1,3})"?\s*[|,]\s*\d+\s*[|,]\s*(\d{1,15})\s*[|,]\s*\d+\s*[|,]\s*\d+')
_CONFIGURED = re.compile(r"Configured arena size = (\d{1,15})")
_BUILD = re.compile(r"^(TARGET|TARGET_ARCH|OPTIMIZATION|BUILD_TYPE)=(\S{1,80})")
_MODEL = re.compile(r"^=== (\S.{0,200}) ===$")
_CHECKSUM = re.compile(r"^(Input|Output) CRC32: (0x[0-9A-F]{1,8})$")
_SET_UP = re.compile(r"::|^(InitializeTarget|CreateOpResolver|main|SetUp|Initialize\w*Runner)$")  # not operators
_WHOLE = re.compile(r"\(\d+\)$")  # all of so many inferences
_INSIDE = re.compile(r"^De(?:compress|code)[A-Z]")  # unpacking of weights, which is part of operators
_EMULATORS = re.compile(r"corstone|fvp|qemu|renode", re.IGNORECASE)
_NAMES = {  # rows of the benchmark → what the allocator itself calls the same
    "Total": "arena total",
    "NonPersistent": "arena head",
    "Persistent": "arena tail",
    "Eval tensor data": "TfLiteEvalTensor data",
    "Persistent tensor data": "Persistent TfLiteTensor data",
    "Persistent quantization data": "Persistent TfLiteTensor quantization data",
    "Persistent buffer data": "Persistent buffer data",
    "Tensor variable buffer data": "TfLiteTensor variable buffer data",
    "Node and registration array": "NodeAndRegistration struct",
    "Operation data": "Operator runtime data",
    "Compression data": "Persistent compression data",
}
_KINDS = {builtin.name: builtin.kind for builtin in BUILTINS} | dict(KNOWN_CUSTOM)


class _Event(NamedTuple):
    tag: str
    ticks: int
    ms: int | None = None


@dataclass(slots=True)
class _Tags:
    """One table per tag, with its total."""

    rows: list[_Event] = field(default_factory=list)
    total: int | None = None

    @property
    def is_set_up(self) -> bool:
        return any(_SET_UP.search(row.tag) for row in self.rows)


@dataclass(slots=True)
class _Found:
    events: list[_Event] = field(default_factory=list)
    table: list[_Event] = field(default_factory=list)  # the same events, where they are printed as a table
    tags: list[_Tags] = field(default_factory=list)
    memory: dict[str, int] = field(default_factory=dict)
    build: dict[str, str] = field(default_factory=dict)
    details: dict[str, str] = field(default_factory=dict)
    model: str | None = None

    @property
    def operators(self) -> list[_Event]:
        return [event for event in self.events or self.table if _is_operator(event.tag)]

    @property
    def of_inferences(self) -> list[_Tags]:
        """Tables per tag of operators."""
        return [table for table in self.tags if table.rows and not table.is_set_up and not _unpacks(table)]

    @property
    def is_emulated(self) -> bool:
        return bool(_EMULATORS.search(self.build.get("TARGET", "")))


class MicroLog:
    """A console log."""

    name = "tflm-log"

    def read(self, path: Path) -> Recording:
        unread = Unread("rows")
        found = _walk(path, unread)
        shown, inferences = _one_inference(found.operators)
        rate = None if found.is_emulated else _rate(found.events)
        tables = found.of_inferences
        ops = tuple(_ops(shown or (tables[-1].rows if tables else ()), rate))
        if not ops and not found.memory:
            raise ImportFileError(str(path), "", "no events and no allocations; expected what MicroProfiler prints")
        provenance = Provenance.EMULATED if found.is_emulated else Provenance.MEASURED
        return Recording(
            maker=self.name,
            tool="TensorFlow Lite Micro",
            provenance=provenance,
            ops=ops,
            metrics=tuple(_metrics(shown, found, rate)),
            checks=tuple(_checks(found)),
            notes=(*_notes(shown, found, rate), *unread.notes()),
            model=found.model,
            target=found.build.get("TARGET_ARCH"),
            machine={name.lower(): value for name, value in found.build.items()},
            details=found.details,
            inferences=inferences if shown else None,
        )


def _walk(path: Path, unread: Unread) -> _Found:
    """Every line that says something, whatever a console printed around it."""
    found, reading = _Found(), ""
    for number, text in console_lines(path, unread):
        if len(found.events) + len(found.table) > _MOST_EVENTS:
            raise ImportFileError(str(path), f"line {number}", f"more than {_MOST_EVENTS} events; expected one run")
        if took := _TOOK.search(text):
            found.events.append(_Event(took[1], int(took[2]), int(took[3])))
        elif _EVENTS.search(text):
            reading = "events"
        elif _TAGS.search(text):
            reading = "tags"
            found.tags.append(_Tags())
        elif total := _TOTAL.search(text):
            reading = ""
            if found.tags:
                found.tags[-1].total = int(total[1])
        elif said := allocations(text):
            found.memory |= said
        elif reading == "events" and (event := _EVENT.search(text)):
            found.table.append(_Event(event[2], int(event[3])))
        elif reading == "tags" and (tag := _TAG.search(text)):
            found.tags[-1].rows.append(_Event(tag[1], int(tag[2])))
        elif reading and _ROW.search(text):
            unread.add(f"line {number}", text)
        else:
            _about(text, found)
    return found


def _about(text: str, found: _Found) -> None:
    """What the benchmark says of its build and model."""
    if built := _BUILD.match(text):
        found.build[built[1]] = printable(built[2], 80)
    elif named := _MODEL.match(text):
        found.model = printable(named[1], 200)
    elif summed := _CHECKSUM.match(text):
        found.details[f"{summed[1].lower()} CRC32"] = summed[2]


def allocations(said: str) -> dict[str, int]:
    """What a text says of the arena, its head, its tail, and parts of that: the allocator's own words, or a table's."""
    found = {f"arena {name}": int(size) for name, size in _ARENA.findall(said)}
    found |= {printable(name, 80): int(size) for name, size in _PART.findall(said)}
    for row in (_ARENA_ROW.match(said), _PART_ROW.match(said)):
        if row is not None and row[1] in _NAMES:
            found[_NAMES[row[1]]] = int(row[2])
    if given := _CONFIGURED.search(said):
        found["arena configured"] = int(given[1])
    return found


def _is_operator(tag: str) -> bool:
    return not _SET_UP.search(tag) and not _WHOLE.search(tag) and not _INSIDE.search(tag)


def _unpacks(table: _Tags) -> bool:
    return all(_INSIDE.search(row.tag) for row in table.rows)


def _one_inference(events: Sequence[_Event]) -> tuple[list[_Event], int]:
    """Events of one inference, the mean of all where the same tags come again and again."""
    tags = [event.tag for event in events]
    for period in range(1, len(tags) // 2 + 1):
        if len(tags) % period == 0 and len(set(tags[:period])) > 1 and tags == tags[:period] * (len(tags) // period):
            count = len(tags) // period
            means = [round(sum(event.ticks for event in events[at::period]) / count) for at in range(period)]
            return [event._replace(ticks=ticks) for event, ticks in zip(events[:period], means, strict=True)], count
    return list(events), 1


def _rate(events: Sequence[_Event]) -> tuple[float, float] | None:
    """Ticks per millisecond, least and most, by the event that took longest: milliseconds are printed cut off."""
    longest = max((event for event in events if event.ms), key=lambda event: event.ms or 0, default=None)
    if longest is None or (longest.ms or 0) < _SHORTEST_MS:
        return None
    return longest.ticks / ((longest.ms or 0) + 1), longest.ticks / (longest.ms or 1)


def _ops(events: Sequence[_Event], rate: tuple[float, float] | None) -> Iterator[OpRecord]:
    """An op per event, numbered as they run; their ticks stand as cycles."""
    for number, event in enumerate(events):
        op = OpRecord(
            f"{event.tag}_{number}",
            type=event.tag,
            kind=_KINDS.get(event.tag, ""),
            placed=Placed.CPU,
            calls=1,
            cycles=event.ticks,
        )
        yield op if rate is None else replace(op, time_ns=_ns(event.ticks, rate))


def _ns(ticks: int, rate: tuple[float, float]) -> int:
    return round(ticks * 2e6 / sum(rate))


def _metrics(shown: Sequence[_Event], found: _Found, rate: tuple[float, float] | None) -> Iterator[Metric]:
    tables = found.of_inferences
    ticks = sum(event.ticks for event in shown) if shown else tables[-1].total if tables else None
    if ticks is not None:
        yield Metric(CYCLES, ticks, "cycles", note="ticks of the board's timer")
    if ticks is not None and rate is not None:
        least, most = ticks * 1e6 / rate[1], ticks * 1e6 / rate[0]
        yield Metric(LATENCY, _ns(ticks, rate), "ns", note="sum of its operators", low=least, high=most)
    around = [row for table in found.tags if table.is_set_up for row in table.rows]
    around += [event for event in found.events if _SET_UP.search(event.tag) or _WHOLE.search(event.tag)]
    for event in around:
        yield Metric(f"ticks of {event.tag}", event.ticks, "1", note="beside the operators")
    inside = [event.ticks for event in found.events if _INSIDE.search(event.tag)]
    if inside:
        yield Metric("ticks of unpacking weights", sum(inside), "1", note="part of the operators")
    for name, size in found.memory.items():
        yield Metric(name, size, "bytes", note="as the allocator recorded it" if name != "arena configured" else "")


def _checks(found: _Found) -> Iterator[Check]:
    if {"arena total", "arena head", "arena tail"} <= found.memory.keys():
        parts, total = found.memory["arena head"] + found.memory["arena tail"], found.memory["arena total"]
        yield Check("head and tail are the arena", parts == total, f"{parts} bytes, total {total}")
    tables, operators = found.of_inferences, found.operators
    totals = [table.total for table in tables if table.total is not None]
    if operators and totals and len(totals) == len(tables):
        ticks = sum(event.ticks for event in operators)
        yield Check("ticks of operators add up", ticks == sum(totals), f"{ticks} ticks, total {sum(totals)}")
    elif totals and tables[-1].total is not None:
        ticks = sum(row.ticks for row in tables[-1].rows)
        yield Check("ticks of tags add up", ticks == tables[-1].total, f"{ticks} ticks, total {tables[-1].total}")


def _notes(shown: Sequence[_Event], found: _Found, rate: tuple[float, float] | None) -> Iterator[str]:
    tables = found.of_inferences
    if found.is_emulated:
        yield f"{found.build['TARGET']} is an emulator: its ticks are no time of a board, and none is shown"
    elif (shown or tables) and rate is None:
        yield "ticks of the board's timer stand as cycles; its rate is not in the log, so that there are no times"
    if not shown and tables:
        yield "a table per tag: operators of one type are one row, of all inferences that it was printed after"
        if len(tables) > 1:
            yield f"{len(tables)} tables per tag; the last is shown"
