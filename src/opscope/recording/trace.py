"""Trace: spans, waits, counters and dependency edges of one or more inferences on one time axis, in columns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

import numpy as np
import numpy.typing as npt

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
        ("inference", "<i4"),
        ("op", "<i4"),  # graph op; NONE
        ("command", "<i8"),  # command of the program; NONE
        ("start_ns", "<i8"),
        ("end_ns", "<i8"),
        ("ucycles", "<i8"),  # ticks of the statistics timer; NONE: unknown
        ("pcycles", "<i8"),  # core cycles; NONE: unknown
        ("waits_on", "<i8"),  # command that was waited for; NONE
        ("name", "<i4"),  # position in Trace.names
    ],
    align=True,  # columns of fields that are not aligned are several times slower
)

EDGE = np.dtype([("source", "<i8"), ("target", "<i8"), ("data", "?")])  # commands; data or ordering only
COUNTER = np.dtype([("counter", "<i4"), ("time_ns", "<i8"), ("value", "<f8")])  # position in Trace.counters


@dataclass(frozen=True, slots=True)
class Lane:
    """A row of a timeline."""

    device: int  # NONE: the host
    core: int  # NONE: the device as a whole
    name: str  # "HVX", "HMX", "DMAIssue", "HVX t0", "DMAIssue DMA"
    thread: int = NONE
    provenance: Provenance | None = None  # of its spans, where that is not the trace's


def level_owners(lanes: Sequence[Lane]) -> dict[int, int]:
    """Lane with deeper calls of a thread → the lane with its outermost ones: `thread 2` → `thread`."""
    place = {lane: number for number, lane in enumerate(lanes)}
    found = {}
    for number, lane in enumerate(lanes):
        deeper = re.fullmatch(r"(.+) \d+", lane.name)
        owner = None if deeper is None else place.get(replace(lane, name=deeper[1]))
        if owner is not None:
            found[number] = owner
    return found


@dataclass(frozen=True, slots=True)
class CounterTrack:
    """A value that changes over time."""

    device: int
    core: int
    name: str
    unit: str


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
