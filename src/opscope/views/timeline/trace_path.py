"""The critical path as a row of its own, above all others: what was at work, and gaps by what they count as."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ...analysis.timeline.path_marks import PathMarks
from ...core.columns import Numbers
from ...core.meaning import LaneRole
from ...recording.trace import NONE, Lane, SpanKind, Trace, blank_spans
from .trace_rows import OVERVIEW

PATH = "Critical path"  # the row
ON_PATH = "critical path"  # the argument of a span that is on it


def with_path(trace: Trace, path: PathMarks | None) -> tuple[Trace, Numbers]:
    """The trace with that row, and per span how many ns of the path it is: 0 of those of the row itself."""
    if path is None or not len(path.start):
        return trace, np.zeros(len(trace.spans), np.int64)
    own = blank_spans(len(path.start))
    own["lane"], own["kind"], own["inference"] = len(trace.lanes), SpanKind.PHASE, NONE
    own["start_ns"], own["end_ns"] = path.start, path.end
    gaps = len(trace.names) + path.cause
    own["name"] = np.where(path.row == NONE, gaps, trace.spans["name"][path.row])
    lane = Lane(OVERVIEW, NONE, PATH, role=LaneRole.MARKER)
    names = (*trace.names, *(f"gap: {cause}" for cause in path.causes))
    drawn = replace(trace, lanes=(*trace.lanes, lane), names=names, spans=np.concatenate((trace.spans, own)))
    return drawn, np.append(path.ns, np.zeros(len(own), np.int64))


def path_cycles(spans: npt.NDArray[np.void], path_ns: Numbers) -> Numbers:
    """Core cycles of each of these spans that are on the path, of those that know their cycles."""
    length = np.maximum(spans["end_ns"] - spans["start_ns"], 1)
    cycles: Numbers = np.rint(spans["pcycles"] * (path_ns / length)).astype(np.int64)
    return cycles
