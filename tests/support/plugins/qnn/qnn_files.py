"""Messages of a QNN runtime, written as its CSV and as its binary log."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from opscope.plugins.qnn.importers.events import EXECUTE, EXECUTE_TIME, FINALIZE, FINALIZE_TIME, Event, Message

HEADER = "Msg Timestamp,Message,Time,Unit of Measurement,Timing Source,Event Level,Event Identifier"
WORDS = {FINALIZE_TIME: "FINALIZE", EXECUTE_TIME: "EXECUTE"}
METHODS = {EXECUTE: 1, FINALIZE: 2}
AGAIN = 7  # events of a graph made ready earlier
UNITS = {"US": 1, "BYTES": 2, "CYCLES": 3, "COUNT": 4, "OBJECT": 5}
Child = Callable[[bytearray], int]  # writes an object, returns where it lies


def csv_text(messages: Iterable[Message]) -> str:
    """A row per event; ONNX nodes in an eighth column where events name some."""
    events = [event for message in messages for event in message.events]
    sources = any(event.sources for root in events for event in root.walk())
    lines = [HEADER + (",ONNX Source Ops" if sources else "")]
    for root in events:
        for event in root.walk():
            value = "UNKNOWN" if event.value is None else event.value
            word = WORDS.get(event.name, "NODE" if ":OpId_" in event.name else "BACKEND")
            level = "ROOT" if event is root else "SUB-EVENT"
            row = f"0,{word},{value},{event.unit},BACKEND,{level},{event.name}"
            lines.append(row + (f",{';'.join(event.sources)}" if sources else ""))
    return "\n".join(lines) + "\n"


def with_repeats(messages: Sequence[Message]) -> Iterator[Message]:
    """As the runtime writes them: preparing a graph tells those before it again."""
    prepared: list[Message] = []
    for message in messages:
        if message.method == FINALIZE:
            yield from prepared
            prepared.append(message)
        yield message


def log_bytes(messages: Sequence[Message], timelines: Mapping[str, bytes]) -> bytes:
    """One FlatBuffer per message; a repeat is a call of another method, under the name of the graph that causes it."""
    result, prepared = b"", []
    for message in messages:
        calls = [_call(message, METHODS[message.method], message.graph, timelines)]
        if message.method == FINALIZE:
            calls = [*(_call(one, AGAIN, message.graph, timelines) for one in prepared), *calls]
            prepared.append(message)
        buffer = bytearray(4)
        root = table(buffer, {0: table_of({0: text("OnnxRuntime")}), 1: vector(calls)})
        struct.pack_into("<I", buffer, 0, root)
        result += struct.pack("<I", len(buffer)) + buffer
    return result


def _call(message: Message, method: int, name: str, timelines: Mapping[str, bytes]) -> Child:
    events = vector([_event(event, message.graph, timelines) for event in message.events])
    return table_of({1: bytes([method]), 2: struct.pack("<QQ", 0, 0), 4: events, 5: text(name)})


def _event(event: Event, graph: str, timelines: Mapping[str, bytes]) -> Child:
    fields: dict[int, bytes | Child] = {
        0: text(event.name),
        1: struct.pack("<I", 1),
        2: struct.pack("<Q", event.value or 0),
        3: struct.pack("<I", UNITS[event.unit]),
        4: vector([_event(child, graph, timelines) for child in event.children]),
    }
    if event.unit == "OBJECT":
        fields[8] = data(timelines[graph] + b"\n" + graph.encode() + b"\0")
    return table_of(fields)


def table(buffer: bytearray, fields: Mapping[int, bytes | Child]) -> int:
    """A table of a FlatBuffer: its vtable before it, what its fields point at behind it."""
    buffer += bytes(-len(buffer) % 4)
    slots = len(buffer)
    count = max(fields, default=-1) + 1
    buffer += struct.pack("<HH", 4 + 2 * count, 0) + bytes(2 * count + 2 * (count % 2))
    place = len(buffer)
    buffer += struct.pack("<i", place - slots)
    pointers: list[tuple[int, Child]] = []
    for index, value in fields.items():
        struct.pack_into("<H", buffer, slots + 4 + 2 * index, len(buffer) - place)
        if callable(value):
            pointers.append((len(buffer), value))
        buffer += bytes(4) if callable(value) else value
    struct.pack_into("<H", buffer, slots + 2, len(buffer) - place)
    _point(buffer, pointers)
    return place


def table_of(fields: Mapping[int, bytes | Child]) -> Child:
    return lambda buffer: table(buffer, fields)


def vector(children: Sequence[Child]) -> Child:
    def write(buffer: bytearray) -> int:
        buffer += bytes(-len(buffer) % 4)
        place = len(buffer)
        buffer += struct.pack("<I", len(children)) + bytes(4 * len(children))
        _point(buffer, [(place + 4 + 4 * number, child) for number, child in enumerate(children)])
        return place

    return write


def text(words: str) -> Child:
    return data(words.encode())


def data(raw: bytes) -> Child:
    def write(buffer: bytearray) -> int:
        buffer += bytes(-len(buffer) % 4)
        place = len(buffer)
        buffer += struct.pack("<I", len(raw)) + raw + b"\0"
        return place

    return write


def _point(buffer: bytearray, pointers: Sequence[tuple[int, Child]]) -> None:
    for at, child in pointers:
        struct.pack_into("<I", buffer, at, child(buffer) - at)
