"""Text of the SDK's profile viewer → messages: one per graph and kind of statistic."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from ....core.errors import ImportFileError
from .events import EXECUTE, FINALIZE, Event, Message, believable

_SECTION = re.compile(r"\s*(?:---\s*)?(Init|Compose Graphs|Finalize|De-Init|Execute)\s+Stats(?: \((\w+)\))?:\s*")
_GRAPH = re.compile(r"\s*(?:---\s*)?Graph \d+ \((.*)\):\s*")
_VALUE = re.compile(r"\s*(?P<name>\S.*?):\s+(?P<value>\d{1,40})\s*(?P<unit>us|cycles|bytes|count|inf/sec)?\s*")
_BACKEND = re.compile(r"Backend \((.*)\)")
_UNITS = {"us": "US", "cycles": "CYCLES", "bytes": "BYTES", "count": "COUNT"}
_MOST_LINES = 5_000_000

AVERAGE, LEAST, MOST = "average", "min", "max"


@dataclass(slots=True)
class _Block:
    """Lines of one statistic of one graph."""

    method: str
    statistic: str
    graph: str
    events: list[Event] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ViewerText:
    """Messages, and which statistic each execution is of."""

    prepared: tuple[Message, ...]
    executed: dict[str, tuple[Message, ...]]  # AVERAGE, LEAST, MOST → a message per graph


def read_viewer_text(raw: bytes, *, source: str) -> ViewerText:
    """What the viewer prints for a log."""
    lines = raw.decode("utf-8", "replace").splitlines()
    if len(lines) > _MOST_LINES:
        raise ImportFileError(source, "", f"more than {_MOST_LINES} lines; expected the text of one log")
    blocks = [block for block in _blocks(lines) if block.events]
    if not any(block.method == EXECUTE for block in blocks):
        raise ImportFileError(source, "", "no execution in it; expected `Execute Stats (Average):` and its lines")
    executed: dict[str, tuple[Message, ...]] = {}
    for block in blocks:
        if block.method == EXECUTE:
            message = Message(block.graph, EXECUTE, tuple(block.events))
            executed[block.statistic] = (*executed.get(block.statistic, ()), message)
    prepared = tuple(Message(b.graph, FINALIZE, tuple(b.events)) for b in blocks if b.method == FINALIZE)
    return ViewerText(prepared, executed)


def _blocks(lines: list[str]) -> Iterator[_Block]:
    """Blocks of lines under one heading: a method, a statistic and a graph."""
    block = _Block("", "", "")
    for line in lines:
        section, graph = _SECTION.fullmatch(line), _GRAPH.fullmatch(line)
        if section is not None or graph is not None:
            yield block
            if section is not None:
                words = {"Execute": EXECUTE, "Finalize": FINALIZE}
                block = _Block(words.get(section[1], section[1]), (section[2] or "").lower(), "")
            elif graph is not None:
                block = _Block(block.method, block.statistic, graph[1])
            continue
        value = _VALUE.fullmatch(line)
        if value is not None and value["unit"] != "inf/sec":
            backend = _BACKEND.fullmatch(value["name"])
            name = backend[1] if backend else value["name"]
            block.events.append(Event(name, believable(int(value["value"])), _UNITS.get(value["unit"] or "", "COUNT")))
    yield block
