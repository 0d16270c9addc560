"""Profile CSV of the QNN runtime (7 or 8 columns) → messages. The profile viewer of the SDK writes the same columns."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from io import StringIO

from ....core.errors import ImportFileError, printable
from ....importers.reading import Unread
from .events import (
    EXECUTE,
    EXECUTE_TIME,
    FINALIZE,
    FINALIZE_TIME,
    HVX_THREADS,
    Event,
    Message,
    believable,
    own_messages,
)

COLUMNS = (
    "Msg Timestamp",
    "Message",
    "Time",
    "Unit of Measurement",
    "Timing Source",
    "Event Level",
    "Event Identifier",
)
SOURCES = "ONNX Source Ops"
_MOST_ROWS = 5_000_000
_LONGEST = 40  # digits of a number


def read_csv(raw: bytes, *, source: str, unread: Unread) -> tuple[Message, ...]:
    """Messages in file order, each graph's preparation once; rows that cannot be read are counted."""
    text = raw.decode("utf-8-sig", "replace")
    rows = csv.reader(StringIO(text, newline=""))
    try:
        header = next(rows, [])
        if tuple(header[:7]) != COLUMNS or header[7:] not in ([], [SOURCES]):
            found = printable(",".join(header) or "an empty file")
            raise ImportFileError(source, "", f"header is {found}; expected {','.join(COLUMNS)}[,{SOURCES}]")
        return own_messages(messages_of(list(_rows(rows, source, unread))))
    except csv.Error as error:
        raise ImportFileError(source, "", f"not CSV: {error}; expected one event per line") from error


def messages_of(rows: Sequence[tuple[bool, Event]], graph: str = "") -> tuple[Message, ...]:
    """Messages of events in the order in which the runtime tells them: whether a root, and the event itself."""
    return tuple(_messages(list(_roots(iter(rows))), graph))


def _rows(rows: Iterator[list[str]], source: str, unread: Unread) -> Iterator[tuple[bool, Event]]:
    """Whether a root, and the event without its children."""
    for number, row in enumerate(rows, start=2):
        if number > _MOST_ROWS:
            raise ImportFileError(source, "", f"more than {_MOST_ROWS} lines; expected the profile of one session")
        if not row:
            continue
        level = row[5].strip() if len(row) >= len(COLUMNS) else ""
        if level not in ("ROOT", "SUB-EVENT"):
            unread.add(f"line {number}", ",".join(row))
            continue
        sources = row[7] if len(row) > 7 else ""
        yield level == "ROOT", Event(row[6], _number(row[2]), row[3], (), tuple(filter(None, sources.split(";"))))


def _number(text: str) -> int | None:
    return believable(int(text)) if text.isascii() and text.isdigit() and len(text) < _LONGEST else None


def _roots(rows: Iterator[tuple[bool, Event]]) -> Iterator[Event]:
    """A sub-event belongs to the root above it: the order is the only link."""
    root: Event | None = None
    children: list[Event] = []
    for is_root, event in rows:
        if is_root:
            if root is not None:
                yield Event(root.name, root.value, root.unit, tuple(children), root.sources)
            root, children = event, []
        else:
            children.append(event)
    if root is not None:
        yield Event(root.name, root.value, root.unit, tuple(children), root.sources)


def _messages(events: Sequence[Event], graph: str) -> Iterator[Message]:
    """Preparations start at their time, runs end at theirs: a run without an end is cut, where others have one."""
    block: list[Event] = []
    preparing = has_ends = False
    for event in events:
        if event.name == FINALIZE_TIME or (event.name == HVX_THREADS and preparing):
            if block:
                yield Message(graph, FINALIZE if preparing else EXECUTE, tuple(block))
            block, preparing = [], event.name == FINALIZE_TIME
        block.append(event)
        if event.name == EXECUTE_TIME:
            yield Message(graph, EXECUTE, tuple(block))
            block, preparing, has_ends = [], False, True
    if block:
        yield Message(graph, FINALIZE if preparing else EXECUTE, tuple(block), has_ends and not preparing)
