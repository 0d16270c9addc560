"""Trace: spans, waits, counters and dependency edges of one or more inferences on one time axis, in columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..core.meaning import LaneRole
from ..core.provenance import Provenance

NONE = -1


class SpanKind(IntEnum):
    """What a stretch of time on a lane was."""

    OP = 1  # a command at work
    WAIT = 2  # the lane waits for another command
    BARRIER = 3  # a thread waits for the others of its group
    TRANSFER = 4  # bytes in flight, beside the lanes
    HOST = 5  # a stage on the host
    PHASE = 6  # a whole core, device or inference


SPAN = np.dtype(
    [
        ("lane", "<i4"),  # position in Trace.lanes
        ("kind", "<u1"),  # SpanKind
        ("does", "<u1"),  # meaning.Does
        ("route", "<i2"),  # that its bytes take: position in Run.routes; NONE
        ("inference", "<i4"),
        ("op", "<i4"),  # graph op; NONE
        ("command", "<i8"),  # command of the program; NONE
        ("start_ns", "<i8"),
        ("end_ns", "<i8"),
        ("ucycles", "<i8"),  # ticks of the statistics timer; NONE: unknown
        ("pcycles", "<i8"),  # core cycles; NONE: unknown
        ("waits_on", "<i8"),  # command that was waited for; NONE
        ("name", "<i4"),  # position in Trace.names
        ("counts", "<i4"),  # what its command counted: row of Trace.op_counts; NONE
    ],
    align=True,  # columns of fields that are not aligned are several times slower
)

_UNKNOWN_COLUMNS = ("route", "op", "command", "ucycles", "pcycles", "waits_on", "counts")


def blank_spans(count: int) -> npt.NDArray[np.void]:
    """Rows of SPAN of which nothing is known: numbers are NONE, `does` is UNKNOWN."""
    spans = np.zeros(count, SPAN)
    for column in _UNKNOWN_COLUMNS:
        spans[column] = NONE
    return spans


EDGE = np.dtype([("source", "<i8"), ("target", "<i8"), ("data", "?")])  # commands; data or ordering only
COUNTER = np.dtype([("counter", "<i4"), ("time_ns", "<i8"), ("value", "<f8")])  # position in Trace.counters


@dataclass(frozen=True, slots=True)
class Lane:
    """A row of a timeline."""

    device: int  # NONE: the host
    core: int  # NONE: the device as a whole
    name: str  # an engine, one of its threads, a queue of transfers
    thread: int = NONE
    provenance: Provenance | None = None  # of its spans, where that is not the trace's
    role: LaneRole = LaneRole.UNKNOWN
    owner: int = NONE  # the lane that it belongs to: position in Trace.lanes


def nested_lanes(lanes: Sequence[Lane]) -> dict[int, int]:
    """Lane with deeper calls of a thread → the lane with its outermost ones."""
    return {
        number: lane.owner
        for number, lane in enumerate(lanes)
        if lane.role is LaneRole.NESTED and 0 <= lane.owner < len(lanes)
    }


class LaneNumbers:
    """Lanes as they come up, each numbered once, whichever trace they were first seen in."""

    def __init__(self) -> None:
        self._places: dict[Lane, int] = {}
        self._lanes: list[Lane] = []

    def number(self, lane: Lane) -> int:
        """Position of a lane; two that differ in nothing but their owner are one."""
        place = self._places.setdefault(replace(lane, owner=NONE), len(self._lanes))
        if place == len(self._lanes):
            self._lanes.append(lane)
        return place

    def numbers(self, lanes: Sequence[Lane]) -> npt.NDArray[np.int32]:
        """Position of every lane of a trace, with their owners numbered the same way."""
        known = len(self._lanes)
        places = [self.number(lane) for lane in lanes]
        for place, lane in zip(places, lanes, strict=True):
            if place >= known and lane.owner != NONE:
                self._lanes[place] = replace(lane, owner=places[lane.owner])
        return np.array(places or [0], np.int32)

    @property
    def lanes(self) -> tuple[Lane, ...]:
        return tuple(self._lanes)


@dataclass(frozen=True, slots=True)
class CounterTrack:
    """A value that changes over time."""

    device: int
    core: int
    name: str
    unit: str


@dataclass(frozen=True, slots=True)
class OpCounts:
    """Counters of single commands, by the name of the counter."""

    names: tuple[str, ...] = ()
    rows: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 0), np.int64))  # NONE: not counted

    def of(self, spans: npt.NDArray[np.void]) -> npt.NDArray[np.int64]:
        """One row per span, one column per counter."""
        known = spans["counts"] != NONE
        found = np.full((len(spans), len(self.names)), NONE, np.int64)
        found[known] = self.rows[spans["counts"][known]]
        return found


@dataclass(frozen=True, slots=True)
class Trace:
    """Everything that happened, on one axis that starts at 0 ns."""

    lanes: tuple[Lane, ...]
    names: Sequence[str]
    spans: npt.NDArray[np.void]  # of SPAN
    edges: npt.NDArray[np.void]  # of EDGE
    counters: tuple[CounterTrack, ...]
    samples: npt.NDArray[np.void]  # of COUNTER
    provenance: Provenance
    op_counts: OpCounts = field(default_factory=OpCounts)

    def __post_init__(self) -> None:
        if self.spans.dtype != SPAN or self.edges.dtype != EDGE or self.samples.dtype != COUNTER:
            raise ValueError("a table of the trace has another layout than SPAN, EDGE or COUNTER")
        if len(self.spans) and bool((self.spans["end_ns"] < self.spans["start_ns"]).any()):
            raise ValueError("a span ends before it starts")

    @property
    def own_lanes(self) -> npt.NDArray[np.bool_]:
        """Which lanes are of the trace's own provenance: totals are of these alone."""
        return np.array([lane.provenance in (None, self.provenance) for lane in self.lanes], np.bool_)

    @property
    def own_spans(self) -> npt.NDArray[np.void]:
        """Spans of the trace's own provenance."""
        own = self.own_lanes
        return self.spans if own.all() else self.spans[own[self.spans["lane"]]]

    def from_zero(self) -> Trace:
        """The same on an axis that starts with the first span: what was recorded late in a run, or begins before it."""
        first = int(self.spans["start_ns"].min()) if len(self.spans) else 0
        spans, samples = self.spans.copy(), self.samples.copy()
        spans["start_ns"] -= first
        spans["end_ns"] -= first
        samples["time_ns"] -= first
        return replace(self, spans=spans, samples=samples)


class OpSpans(NamedTuple):
    """The columns of a trace that tell when ops were at work."""

    kind: npt.NDArray[np.generic]  # SpanKind
    op: npt.NDArray[np.generic]  # NONE: of no op
    inference: npt.NDArray[np.generic]
    start_ns: npt.NDArray[np.generic]
    end_ns: npt.NDArray[np.generic]
