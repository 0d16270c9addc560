"""What TensorFlow Lite Micro prints on a board: MicroProfiler, RecordingMicroAllocator and the benchmark tool.

Consoles put things around its lines (Zephyr a time and a module, ESP-IDF a letter and a tag, terminals colours), so
that a line is searched and not matched. Three forms of times: a line per event, a table of events, a table per tag. The
unit is ticks of the board's timer; nanoseconds follow where an event that took long tells milliseconds too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from ...core.errors import ImportFileError, printable
from ...core.provenance import Provenance
from ...importers.reading import numbered
from ...recording.recording import LATENCY, Check, Metric, OpRecord, Placed, Recording, empty_trace

_LONGEST_LINE = 2_000
_MOST_EVENTS = 200_000
_SHORTEST_MS = 100  # of an event whose whole milliseconds tell the rate of the timer to 1 %
_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_TOOK = re.compile(r"([A-Za-z_][\w:]*) took (\d{1,15}) ticks \((\d{1,12}) ms\)")
_EVENTS = re.compile(r'"Event","Tag","Ticks"')
_EVENT = re.compile(r"(?:^|[\s:])(\d{1,9}),([A-Za-z_][\w:]*),(\d{1,15})\s*$")
_TAGS = re.compile(r'"Unique Tag","Total ticks across all events with that tag\."')
_TAG = re.compile(r"(?:^|[\s:])([A-Za-z_][\w:]*), (\d{1,15})\s*$")
_TOTAL = re.compile(r'"total number of ticks", (\d{1,15})')
_ARENA = re.compile(r"\[RecordingMicroAllocator\] Arena allocation (total|head|tail) (\d{1,15}) bytes")
_PART = re.compile(r"\[RecordingMicroAllocator\] '([^']{1,80})' used (\d{1,15}) bytes")
_SET_UP = re.compile(r"::|^(InitializeTarget|CreateOpResolver|main|SetUp)$")  # events of the benchmark, not operators


class _Event(NamedTuple):
    tag: str
    ticks: int
    ms: int | None


@dataclass(slots=True)
class _Found:
    events: list[_Event] = field(default_factory=list)
    table: list[_Event] = field(default_factory=list)  # the same events, where they are printed as a table
    tags: list[_Event] = field(default_factory=list)
    total: int | None = None
    memory: dict[str, int] = field(default_factory=dict)


class MicroLog:
    """A console log."""

    name = "tflm-log"

    def read(self, path: Path) -> Recording:
        found = _walk(path)
        events = [event for event in found.events or found.table if not _SET_UP.search(event.tag)]
        shown, inferences = _one_inference(events)
        rate = _rate(found.events)
        ops = tuple(_ops(shown or found.tags, rate))
        if not ops and not found.memory:
            raise ImportFileError(str(path), "", "no events and no allocations; expected what MicroProfiler prints")
        return Recording(
            maker=self.name,
            source=str(path),
            tool="TensorFlow Lite Micro",
            provenance=Provenance.MEASURED,
            trace=empty_trace(Provenance.MEASURED),
            ops=ops,
            metrics=tuple(_metrics(shown, found, rate)),
            checks=tuple(_checks(found)),
            notes=tuple(_notes(shown, found, rate)),
            inferences=inferences if shown else None,
        )


def _walk(path: Path) -> _Found:
    """Every line that says something, whatever a console printed around it."""
    found, reading = _Found(), ""
    for number, line in numbered(path):
        if len(line) > _LONGEST_LINE:
            continue
        text = _COLOUR.sub("", line).rstrip()
        if len(found.events) + len(found.table) > _MOST_EVENTS:
            raise ImportFileError(str(path), f"line {number}", f"more than {_MOST_EVENTS} events; expected one run")
        if took := _TOOK.search(text):
            found.events.append(_Event(took[1], int(took[2]), int(took[3])))
        elif _EVENTS.search(text):
            reading = "events"
        elif _TAGS.search(text):
            reading = "tags"
        elif total := _TOTAL.search(text):
            found.total, reading = int(total[1]), ""
        elif said := allocations(text):
            found.memory |= said
        elif reading == "events" and (event := _EVENT.search(text)):
            found.table.append(_Event(event[2], int(event[3]), None))
        elif reading == "tags" and (tag := _TAG.search(text)):
            found.tags.append(_Event(tag[1], int(tag[2]), None))
    return found


def allocations(said: str) -> dict[str, int]:
    """What the recorder of the allocator says in a text: the arena, its head, its tail, and parts of that."""
    found = {f"arena {name}": int(size) for name, size in _ARENA.findall(said)}
    return found | {printable(name, 80): int(size) for name, size in _PART.findall(said)}


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
        op = OpRecord(f"{event.tag}_{number}", type=event.tag, placed=Placed.CPU, calls=1, cycles=event.ticks)
        yield op if rate is None else replace(op, time_ns=_ns(event.ticks, rate))


def _ns(ticks: int, rate: tuple[float, float]) -> int:
    return round(ticks * 2e6 / sum(rate))


def _metrics(shown: Sequence[_Event], found: _Found, rate: tuple[float, float] | None) -> Iterator[Metric]:
    ticks = sum(event.ticks for event in shown) if shown else found.total
    if ticks is not None:
        yield Metric("ticks of one inference", ticks, "1", note="of the board's timer")
    if ticks is not None and rate is not None:
        least, most = ticks * 1e6 / rate[1], ticks * 1e6 / rate[0]
        yield Metric(LATENCY, _ns(ticks, rate), "ns", note="sum of its operators", low=least, high=most)
    for name, size in found.memory.items():
        yield Metric(name, size, "bytes", note="as the allocator recorded it")


def _checks(found: _Found) -> Iterator[Check]:
    if {"arena total", "arena head", "arena tail"} <= found.memory.keys():
        parts, total = found.memory["arena head"] + found.memory["arena tail"], found.memory["arena total"]
        yield Check("head and tail are the arena", parts == total, f"{parts} bytes, total {total}")
    if found.tags and found.total is not None:
        ticks = sum(tag.ticks for tag in found.tags)
        yield Check("ticks of tags add up", ticks == found.total, f"{ticks} ticks, total {found.total}")


def _notes(shown: Sequence[_Event], found: _Found, rate: tuple[float, float] | None) -> Iterator[str]:
    if (shown or found.tags) and rate is None:
        yield "ticks of the board's timer stand as cycles; its rate is not in the log, so that there are no times"
    if not shown and found.tags:
        yield "a table per tag: operators of one type are one row, of all inferences that it was printed after"
