"""Binary log of the QNN runtime (`*_qnn.log`) → messages, and the vendor model's timelines where it holds them.

file    := { u32 length, message }…            little endian; each message is a FlatBuffer
message := 0 header  1 [call]
call    := 0 time  1 u8 method  2 {start, stop}  4 [event]  5 graph name
event   := 0 name  1 u32 type  2 u64 value  3 u32 unit  4 [event]  5 source  8 bytes of an object
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from ....core.errors import ImportFileError, printable
from ....importers.reading import Unread
from .events import EXECUTE, FINALIZE, Event, Message, believable

_METHODS = {1: EXECUTE, 2: FINALIZE}  # 7: events of a graph made ready earlier, written again
_UNITS = {0: "NONE", 1: "US", 2: "BYTES", 3: "CYCLES", 4: "COUNT", 5: "OBJECT", 6: "BACKEND"}
_DEEPEST, _MOST_EVENTS = 8, 2_000_000
_TRACE = re.compile(rb'\{\s*"traceEvents"')


@dataclass(frozen=True, slots=True)
class Log:
    """Everything of a log that has a meaning here."""

    messages: tuple[Message, ...]
    timelines: dict[str, bytes]  # graph → JSON of the vendor model


class _Table:
    """One table of a FlatBuffer; every read is checked against the buffer.

    A table begins with the distance back to its list of fields: u16 size, u16 size of the table, then for each field
    the u16 offset from the table's begin, 0 where the field has its default.
    """

    def __init__(self, buffer: bytes, place: int) -> None:
        self.buffer, self.place = buffer, place
        self.fields = place - self.number("<i", place)
        self.size = self.number("<H", self.fields)

    def number(self, form: str, place: int) -> int:
        if not 0 <= place <= len(self.buffer) - struct.calcsize(form):
            raise IndexError(place)
        return int(struct.unpack_from(form, self.buffer, place)[0])

    def field(self, index: int) -> int:
        """Where a field lies; 0: it has its default."""
        slot = 4 + 2 * index
        offset = self.number("<H", self.fields + slot) if slot + 2 <= self.size else 0
        return self.place + offset if offset else 0

    def value(self, index: int, form: str) -> int:
        place = self.field(index)
        return self.number(form, place) if place else 0

    def data(self, index: int) -> bytes:
        place = self.field(index)
        if not place:
            return b""
        start = place + self.number("<I", place)
        length = self.number("<I", start)
        if start + 4 + length > len(self.buffer):
            raise IndexError(start)
        return self.buffer[start + 4 : start + 4 + length]

    def text(self, index: int) -> str:
        return self.data(index).decode("utf-8", "replace")

    def tables(self, index: int) -> Iterator[_Table]:
        place = self.field(index)
        if place:
            start = place + self.number("<I", place)
            for number in range(min(self.number("<I", start), len(self.buffer) // 4)):
                entry = start + 4 + 4 * number
                yield _Table(self.buffer, entry + self.number("<I", entry))


class _Reader:
    """Messages of one file; keeps count, so that a hostile file ends."""

    def __init__(self) -> None:
        self.events = 0
        self.messages: list[Message] = []
        self.timelines: dict[str, bytes] = {}

    def message(self, buffer: bytes) -> None:
        for call in _root(buffer).tables(1):
            method = call.value(1, "<B")
            events = tuple(self.event(event, 0) for event in call.tables(4))
            if method in _METHODS:
                self.messages.append(Message(call.text(5), _METHODS[method], events))

    def event(self, table: _Table, depth: int) -> Event:
        self.events += 1
        if depth > _DEEPEST or self.events > _MOST_EVENTS:
            raise IndexError(table.place)
        unit = _UNITS.get(table.value(3, "<I"), "UNKNOWN")
        if unit == "OBJECT":
            self.timeline(table.data(8))
        children = tuple(self.event(child, depth + 1) for child in table.tables(4))
        value = None if unit == "OBJECT" else believable(table.value(2, "<Q"))
        return Event(table.text(0), value, unit, children)

    def timeline(self, data: bytes) -> None:
        """The object is JSON, then the name of the graph it is truly of: the call may name another."""
        start, end = _TRACE.search(data), data.rfind(b"}")
        if start is not None and start.start() < end:
            graph = data[end + 1 :].lstrip(b"\n").split(b"\0", 1)[0].decode("utf-8", "replace")
            self.timelines[graph] = data[start.start() : end + 1]


def read_log(raw: bytes, *, source: str, unread: Unread | None = None) -> Log:
    """All messages of a log. A graph's preparation that is written again is left out.

    Damage is an error; with `unread`, what is damaged or cut off is counted there, and the rest is read.
    """
    reader, offset = _Reader(), 0
    while offset < len(raw):
        length = struct.unpack_from("<I", raw, offset)[0] if len(raw) - offset >= 4 else None
        problem = _cut(length, len(raw) - offset)
        if problem is None:
            end = offset + 4 + int(length or 0)
            try:
                reader.message(raw[offset + 4 : end])
            except (IndexError, struct.error) as error:
                problem = f"message breaks its layout at {printable(str(error))}; expected a profile log of the runtime"
        else:
            end = len(raw)
        if problem is not None:
            if unread is None:
                raise ImportFileError(source, f"byte {offset:#x}", problem)
            unread.add(f"byte {offset:#x}", problem)
        offset = end
    return Log(tuple(reader.messages), reader.timelines)


def _cut(length: int | None, left: int) -> str | None:
    """What of a message is not there; None: it is all there."""
    if length is None:
        return f"length cut short: {left} of 4 bytes"
    if length > left - 4:
        return f"message of {length} bytes, but {left - 4} are left; is the file cut short?"
    return None


def _root(buffer: bytes) -> _Table:
    if len(buffer) < 4:
        raise IndexError(0)
    return _Table(buffer, int(struct.unpack_from("<I", buffer)[0]))
