"""The outermost ops of every marked inference on a Kineto timeline: what Python called, not what that consists of."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...core.columns import Numbers
from ...recording.recording import Recording
from ...recording.trace import NONE, SpanKind
from .running import INFERENCE


class Call(NamedTuple):
    """An op of an inference: the same in every one."""

    name: str
    nth: int  # of those with this name, in order


@dataclass(frozen=True, slots=True)
class OpCalls:
    """Columns: one row per outermost op, in order of time; of all inferences."""

    calls: tuple[Call, ...]
    span: Numbers  # position among the spans of the trace
    inference: Numbers
    start_ns: Numbers
    end_ns: Numbers

    def around(self, time_ns: Numbers) -> Numbers:
        """The op at each time; NONE: none was at work."""
        return _around(time_ns, self.start_ns, self.end_ns)


def op_calls(recording: Recording) -> OpCalls:
    """Spans of the profiler's own ranges have spaces in their names; names of operators never have."""
    spans, names = recording.trace.spans, recording.trace.names
    is_operator = np.array([" " not in name for name in names] or [False], np.bool_)
    start, end = inferences(recording)
    at = np.flatnonzero((spans["op"] != NONE) & (spans["kind"] == SpanKind.HOST) & is_operator[spans["name"]])
    at = at[np.lexsort((-spans["end_ns"][at], spans["start_ns"][at]))]
    inference = _around(spans["start_ns"][at], start, end)
    at, inference = at[inference != NONE], inference[inference != NONE]
    behind = np.maximum.accumulate(spans["end_ns"][at])
    outer = np.ones(len(at), np.bool_)
    outer[1:] = spans["start_ns"][at][1:] >= behind[:-1]
    at, inference = at[outer], inference[outer]
    seen: Counter[tuple[int, str]] = Counter()
    calls = []
    for number, name in zip(inference.tolist(), spans["name"][at].tolist(), strict=True):
        calls.append(Call(names[name], seen[number, names[name]]))
        seen[number, names[name]] += 1
    return OpCalls(tuple(calls), at, inference, spans["start_ns"][at], spans["end_ns"][at])


def inferences(recording: Recording) -> tuple[Numbers, Numbers]:
    """Start and end of every marked inference, in order."""
    spans, names = recording.trace.spans, recording.trace.names
    marks = np.array([name == INFERENCE for name in names] or [False], np.bool_)
    on_host = np.array([lane.device == NONE for lane in recording.trace.lanes] or [False], np.bool_)
    rows = spans[marks[spans["name"]] & (spans["kind"] == SpanKind.PHASE) & on_host[spans["lane"]]]
    rows = rows[np.argsort(rows["start_ns"], kind="stable")]
    return rows["start_ns"].astype(np.int64), rows["end_ns"].astype(np.int64)


def inference_of(recording: Recording, time_ns: Numbers) -> Numbers:
    """The inference at each time; NONE: between two."""
    return _around(time_ns, *inferences(recording))


def _around(time_ns: Numbers, start: Numbers, end: Numbers) -> Numbers:
    if not len(start):
        return np.full(len(time_ns), NONE, np.int64)
    place = np.searchsorted(start, time_ns, side="right") - 1
    return np.where((place >= 0) & (time_ns <= end[np.maximum(place, 0)]), place, NONE)
