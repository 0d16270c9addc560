"""HostTimes → Trace: stages of profiled inferences as spans of host lanes, on the run's own time axis."""

from __future__ import annotations

import numpy as np

from ...core.provenance import Provenance
from ...recording.host_times import STAGES, Rows
from ...recording.trace import COUNTER, EDGE, NONE, SPAN, Lane, SpanKind, Trace

APPLICATION, RUNTIME, DRIVER = "Application", "Runtime", "Driver and device"
_LANES = {  # stage → who is at it
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
}


def host_spans(rows: Rows) -> Trace:
    """Three lanes per activation, times as many as inferences are on their way at once, so that none overlap."""
    lanes: dict[Lane, int] = {}
    names: dict[str, int] = {}
    spans: list[tuple[int, ...]] = []
    for row, place in zip(rows, _places(rows), strict=True):
        inference, request = int(row["inference"]), f" request {place + 1}" if place else ""
        whole = ("inference", APPLICATION, "enqueued_ns", "dequeued_ns")
        for stage, who, start, end in (whole, *((s, _LANES[s], *times) for s, times in STAGES.items())):
            if row[end] <= row[start]:
                continue
            lane = Lane(NONE, NONE, f"Activation {row['activation']}{request} {who}")
            number = names.setdefault(f"{stage}-Inf-{inference}", len(names))
            place_of = (lanes.setdefault(lane, len(lanes)), SpanKind.HOST, inference, NONE, NONE)
            spans.append((*place_of, int(row[start]), int(row[end]), NONE, NONE, NONE, number))
    return Trace(
        lanes=tuple(lanes),
        names=tuple(names),
        spans=np.array(spans, SPAN),
        edges=np.zeros(0, EDGE),
        counters=(),
        samples=np.zeros(0, COUNTER),
        provenance=Provenance.SIMULATED,
    )


def _places(rows: Rows) -> list[int]:
    """A place for every inference that is on its way at the same time as another: the lowest that is free."""
    free_from: dict[tuple[int, int], int] = {}  # by activation and place
    places = [0] * len(rows)
    for index in np.argsort(rows["enqueued_ns"], kind="stable").tolist():
        activation, place = int(rows["activation"][index]), 0
        while free_from.get((activation, place), 0) > rows["enqueued_ns"][index]:
            place += 1
        free_from[activation, place] = int(rows["dequeued_ns"][index])
        places[index] = place
    return places
