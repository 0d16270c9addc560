"""What a QNN runtime writes down, whatever the file: messages with nested events.

The same events come as CSV, as a binary log, and as text of the profile viewer; this is their common form.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from dataclasses import dataclass
from functools import cached_property

FINALIZE, EXECUTE = "finalize", "execute"

FINALIZE_TIME = "QNN (finalize) time"
EXECUTE_TIME = "QNN (execute) time"
HVX_THREADS = "Number of HVX threads used"
QUANTISERS = ("QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear")  # types of nodes that change form only

MOST = 2**48  # no count, time or number of bytes of one event is larger
_NODE = re.compile(r"(?P<name>.*?):?\s*OpId_(?P<id>\d+)(?: \((?P<unit>cycles|us)\))?$")
_TOKEN = re.compile(r"_token_\d+$")


def believable(value: int | None) -> int | None:
    """A value of a file; None: it is unknown, or one that nothing can have."""
    return value if value is not None and 0 <= value < MOST else None


@dataclass(frozen=True, slots=True)
class Event:
    """One value, with the values it is made of."""

    name: str
    value: int | None  # None: an object, or a value that the file does not hold
    unit: str  # US, CYCLES, BYTES, COUNT, OBJECT
    children: tuple[Event, ...] = ()
    sources: tuple[str, ...] = ()  # ONNX nodes it stands for, where the file says it

    def walk(self) -> Iterator[Event]:
        yield self
        for child in self.children:
            yield from child.walk()


@dataclass(frozen=True)
class Message:
    """All events of one call: a graph made ready, or run once."""

    graph: str  # empty: the file does not say
    method: str  # FINALIZE, EXECUTE or another word
    events: tuple[Event, ...]
    is_cut: bool = False  # the file ends inside of it

    @cached_property
    def _by_name(self) -> dict[str, Event]:
        """The first of each name."""
        found: dict[str, Event] = {}
        for root in self.events:
            for event in root.walk():
                found.setdefault(event.name, event)
        return found

    def find(self, name: str) -> Event | None:
        return self._by_name.get(name)

    def value(self, name: str) -> int | None:
        event = self.find(name)
        return None if event is None else event.value


@dataclass(frozen=True, slots=True)
class NodeTime:
    """One node of a compiled graph in one run."""

    name: str
    op_id: int
    value: int
    unit: str  # CYCLES or US
    sources: tuple[str, ...]


def node_times(message: Message) -> tuple[NodeTime, ...]:
    """Every node of a run, in file order."""
    found = []
    for root in message.events:
        for event in root.walk():
            match = _NODE.fullmatch(event.name)
            if match is not None and event.value is not None:
                name = plain_name(match["name"].strip()) or "graph"
                found.append(NodeTime(name, int(match["id"]), event.value, event.unit, event.sources))
    return tuple(found)


def plain_name(name: str) -> str:
    """A node's name without the mark that layout changes leave on it."""
    return _TOKEN.sub("", name)


def made_of(name: str, known: Container[str]) -> str:
    """What the runtime makes of a node bears its name and words behind, as `qkv/MatMul/MatMulAddFusion_2`; or ""."""
    left = name
    while left and left not in known:
        left = left[: max(left.rfind("/"), left.rfind("_"), 0)]
    words = name[len(left) :]
    return "" if words[1:2].isdigit() and words[:1] == "_" else left  # "Reshape_12" is not made of "Reshape"


def own_messages(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Without repetition: preparing a second graph writes the first one's events again, under the second's name."""
    kept: list[Message] = []
    for message in messages:
        if message.method != FINALIZE or all(not _same_graph(message, other) for other in kept):
            kept.append(message)
    return tuple(kept)


def _same_graph(message: Message, other: Message) -> bool:
    """The same events to the last microsecond: the file has no other mark when it does not name graphs."""
    return other.method == FINALIZE and message.events == other.events
