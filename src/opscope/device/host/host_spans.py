"""HostTimes → Trace: stages of profiled inferences as spans of host lanes, on the run's own time axis."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ...core.meaning import Does, LaneRole
from ...core.provenance import Provenance
from ...recording.host_times import STAGE_MEANING, STAGES, Rows
from ...recording.trace import COUNTER, EDGE, NONE, Lane, SpanKind, Trace, blank_spans

APPLICATION, RUNTIME, DRIVER = "Application", "Runtime", "Driver and device"
_LANES = {  # stage → lane that shows it
    "enqueue": RUNTIME,
    "preprocess": RUNTIME,
    "submit": RUNTIME,
    "driver": DRIVER,
    "input transfer": DRIVER,
    "device queue": DRIVER,
    "device": DRIVER,
    "output transfer": DRIVER,
    "return": RUNTIME,
    "postprocess": RUNTIME,
    "dequeue": RUNTIME,
}


def host_spans(rows: Rows) -> Trace:
    """Return a trace with three lanes per activation, repeated so that concurrent inferences do not overlap."""
    lanes: dict[Lane, int] = {}
    names: dict[str, int] = {}
    spans: list[tuple[int, ...]] = []
    for row, place in zip(rows, _places(rows), strict=True):
        inference, request = int(row["inference"]), f" request {place + 1}" if place else ""
        overall = ("inference", APPLICATION, Does.HOST, "enqueued_ns", "dequeued_ns")
        stages = ((stage, _LANES[stage], STAGE_MEANING[stage][1], *times) for stage, times in STAGES.items())
        for stage, who, does, start, end in (overall, *stages):
            if row[end] <= row[start]:
                continue
            lane = Lane(NONE, NONE, f"Activation {row['activation']}{request} {who}", role=LaneRole.HOST)
            number = names.setdefault(f"{stage}-Inf-{inference}", len(names))
            number_of_lane = lanes.setdefault(lane, len(lanes))
            spans.append((number_of_lane, does, inference, int(row[start]), int(row[end]), number))
    return Trace(
        lanes=tuple(lanes),
        names=tuple(names),
        spans=_columns(spans),
        edges=np.zeros(0, EDGE),
        counters=(),
        samples=np.zeros(0, COUNTER),
        provenance=Provenance.SIMULATED,
    )


def _columns(rows: list[tuple[int, ...]]) -> npt.NDArray[np.void]:
    spans = blank_spans(len(rows))
    spans["kind"] = SpanKind.HOST
    names = ("lane", "does", "inference", "start_ns", "end_ns", "name")
    for column, values in zip(names, zip(*rows, strict=True), strict=False):
        spans[column] = values
    return spans


def _places(rows: Rows) -> list[int]:
    """Return the lane set of every inference: the lowest one that is free when it is enqueued."""
    free_from: dict[tuple[int, int], int] = {}  # (activation, lane set) → time
    places = [0] * len(rows)
    for index in np.argsort(rows["enqueued_ns"], kind="stable").tolist():
        activation, place = int(rows["activation"][index]), 0
        while free_from.get((activation, place), 0) > rows["enqueued_ns"][index]:
            place += 1
        free_from[activation, place] = int(rows["dequeued_ns"][index])
        places[index] = place
    return places
