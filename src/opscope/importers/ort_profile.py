"""Session profile of ONNX Runtime → Trace: every node of every run, with provider, shapes and sizes.

Names are of the nodes that ran. The runtime fuses nodes and changes layouts before: its own names stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from ..imported import LATENCY, Check, Imported, ImportedOp, Metric
from ..trace import NONE, Lane, SpanKind
from .reading import read_bytes
from .trace_build import Marks, build_trace
from .trace_events import Event, Events, Numbers, Spans, decode_events

RUN = "model_run"
_NODE_ENDINGS = ("_kernel_time", "_fence_before", "_fence_after")
_SESSION = ("model_loading_uri", "model_loading_from_saved_proto", "model_loading_array", "session_initialization")


class _Args(msgspec.Struct):
    op_name: str | None = None
    provider: str | None = None
    input_type_shape: msgspec.Raw = msgspec.Raw(b"")
    output_type_shape: msgspec.Raw = msgspec.Raw(b"")
    activation_size: int | None = None
    output_size: int | None = None
    parameter_size: int | None = None


class OrtProfile:
    """Array form; events of category Session and Node."""

    name = "onnxruntime"
    describe = "ONNX Runtime session profile (onnxruntime_profile_*.json)"

    def looks_like(self, head: bytes, name: str) -> bool:
        del name
        words = head.replace(b'" :', b'":').replace(b": ", b":")
        is_session = b'"cat":"Session"' in words or b'"cat":"Node"' in words
        return words.lstrip()[:1] == b"[" and is_session and (b'"model_loading' in words or b"_kernel_time" in words)

    def read(self, path: Path) -> Imported:
        file = decode_events(read_bytes(path), source=str(path))
        spans = file.spans()
        events = [file.events[number] for number in spans.event.tolist()]
        node = np.array([event.cat == "Node" and event.name.endswith(_NODE_ENDINGS[0]) for event in events], np.bool_)
        inference, runs = _inferences(spans, events)
        op, rows = _nodes(spans, events, node, inference, len(runs))
        lanes, thread = _lanes(spans, events, node)
        moved = Spans([], spans.names, thread, spans.name, spans.start, spans.end, spans.event)
        kind = np.where(node, SpanKind.OP, np.array([_kind(event) for event in events], np.int64))
        marks = Marks(kind, op=op, inference=inference)
        trace = build_trace(moved, file.samples(), lanes, (), marks=marks, provenance="measured")
        return Imported(
            format=self.name, source=str(path), tool="ONNX Runtime", provenance="measured", trace=trace, ops=rows,
            metrics=_metrics(spans, events, runs), checks=_checks(spans, node, inference, runs),
            notes=_notes(file, events, rows, node, len(runs)), inferences=len(runs) or None,
        )  # fmt: skip


def _kind(event: Event) -> SpanKind:
    return SpanKind.PHASE if event.name == RUN else SpanKind.HOST


def _inferences(spans: Spans, events: Sequence[Event]) -> tuple[Numbers, Numbers]:
    """The run that every span starts in, and the positions of the runs by start; NONE: outside of all."""
    runs = np.array([n for n, event in enumerate(events) if event.cat == "Session" and event.name == RUN], np.int64)
    if not len(runs):
        return np.full(len(events), NONE, np.int64), runs
    runs = runs[np.argsort(spans.start[runs], kind="stable")]
    place = np.searchsorted(spans.start[runs], spans.start, side="right") - 1
    inside = (place >= 0) & (spans.start <= spans.end[runs[np.maximum(place, 0)]])
    return np.where(inside, place, NONE), runs


def _lanes(spans: Spans, events: Sequence[Event], node: npt.NDArray[np.bool_]) -> tuple[list[Lane], Numbers]:
    """Nodes stand on the lane of their thread, the session's own stages on one beside it."""
    known: dict[Lane, int] = {}
    thread = [
        known.setdefault(Lane(NONE, NONE, f"thread {events[n].tid}" + ("" if ran else " session")), len(known))
        for n, ran in enumerate(node.tolist())
    ]
    return list(known), np.array(thread, np.int64)


def _nodes(
    spans: Spans, events: Sequence[Event], node: npt.NDArray[np.bool_], inference: Numbers, runs: int
) -> tuple[Numbers, tuple[ImportedOp, ...]]:
    """Op of every span, and a row per node with its times over the runs."""
    known: dict[str, int] = {}
    first: list[int] = []
    op = np.full(len(events), NONE, np.int64)
    for n in np.flatnonzero(node).tolist():
        op[n] = known.setdefault(events[n].name.removesuffix(_NODE_ENDINGS[0]), len(known))
        if op[n] == len(first):
            first.append(n)
    rows = [_row(name, events[first[number]]) for name, number in known.items()]
    return op, _with_times(rows, op, spans.end - spans.start, inference, runs)


def _row(name: str, event: Event) -> ImportedOp:
    try:
        args = msgspec.json.decode(event.args, type=_Args, strict=False)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return ImportedOp(name)
    shapes = [bytes(raw).decode("utf-8", "replace") for raw in (args.input_type_shape, args.output_type_shape)]
    return ImportedOp(
        name, type=args.op_name, engine=args.provider, shape=" → ".join(shapes) if all(shapes) else None,
        in_bytes=args.activation_size, out_bytes=args.output_size, parameter_bytes=args.parameter_size,
    )  # fmt: skip


def _with_times(
    rows: Sequence[ImportedOp], op: Numbers, length: Numbers, inference: Numbers, runs: int
) -> tuple[ImportedOp, ...]:
    """Mean, median, least and most over the runs that a node ran in; what ran outside of runs counts nowhere."""
    used = (op != NONE) & ((inference != NONE) if runs else True)
    width = max(runs, 1)
    cell = op[used] * width + np.maximum(inference[used], 0)
    codes, place = np.unique(cell, return_inverse=True)
    time = np.bincount(place.reshape(-1), length[used], minlength=len(codes))
    calls = np.bincount(place.reshape(-1), minlength=len(codes))
    edges = np.searchsorted(codes // width, np.arange(len(rows) + 1))
    result = []
    for number, row in enumerate(rows):
        times, count = time[edges[number] : edges[number + 1]], calls[edges[number] : edges[number + 1]]
        known = len(times) > 0
        result.append(replace(
            row, calls=float(count.mean()) if known else None, time_ns=round(float(times.mean())) if known else None,
            median_ns=round(float(np.median(times))) if known else None,
            least_ns=round(float(times.min())) if known else None, most_ns=round(float(times.max())) if known else None,
        ))  # fmt: skip
    return tuple(result)


def _metrics(spans: Spans, events: Sequence[Event], runs: Numbers) -> tuple[Metric, ...]:
    length = spans.end - spans.start
    found = [
        Metric(event.name.replace("_", " "), int(length[n]), "ns")
        for n, event in enumerate(events) if event.cat == "Session" and event.name in _SESSION
    ]  # fmt: skip
    if not len(runs):
        return tuple(found)
    times = length[runs]
    return (
        Metric(LATENCY, float(np.median(times)), "ns"), Metric("latency, mean", float(times.mean()), "ns"),
        Metric("latency, least", int(times.min()), "ns"), Metric("latency, most", int(times.max()), "ns"),
        Metric("first run", int(times[0]), "ns"), Metric("runs", len(times), "1"), *found,
    )  # fmt: skip


def _checks(spans: Spans, node: npt.NDArray[np.bool_], inference: Numbers, runs: Numbers) -> tuple[Check, ...]:
    if not len(runs) or not node.any():
        return ()
    last = spans.end[runs[np.maximum(inference, 0)]]
    outside = int((node & (inference != NONE) & (spans.end > last + 1000)).sum())  # the file counts in microseconds
    return (Check("nodes lie inside their run", not outside, f"{outside} of {int(node.sum())} end after it"),)


def _notes(
    file: Events, events: Sequence[Event], rows: Sequence[ImportedOp], node: npt.NDArray[np.bool_], runs: int
) -> tuple[str, ...]:
    renamed = sum(row.name.endswith(("_nchwc", "_nhwc")) or "fused" in row.name.lower() for row in rows)
    fences = sum(event.cat == "Node" for event in events) - int(node.sum())
    notes = ["times are whole microseconds in the file"]
    if renamed:
        notes.append(f"{renamed} of {len(rows)} nodes have names that the runtime gave them when it fused or laid out")
    if fences:
        notes.append(f"{fences} events of nodes beside their kernels are spans of the session's lane")
    if not runs:
        notes.append("no model_run events: times are of the whole file")
    return (*notes, *file.left_out())
