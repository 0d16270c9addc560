"""Session profile of ONNX Runtime → Trace: every node of every run, with provider, shapes and sizes.

Names are of the nodes that ran. The runtime fuses nodes and changes layouts before: its own names stay as they are.
A provider that profiles its device adds the kernels behind the node that launched them: their time is the node's then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import numpy as np

from ...core.columns import Flags, Numbers
from ...core.meaning import Does
from ...core.provenance import Provenance
from ...importers.reading import read_bytes
from ...importers.trace_build import Marks, build_trace
from ...importers.trace_events import Event, Spans, decode_events
from ...recording.recording import LATENCY, Metric, OpRecord, Placed, Recording
from ...recording.trace import NONE, Lane, SpanKind
from .fusion import REORDERS
from .session_runs import Runs, own_length

RUN = "model_run"
_NODE_ENDING = "_kernel_time"
_CPU_PROVIDER = "CPUExecutionProvider"
_DEVICE = "Kernel"  # category of what a device ran
_WHOLE = (RUN, "SequentialExecutor::Execute", "ParallelExecutor::Execute")
_SESSION = ("model_loading_uri", "model_loading_from_saved_proto", "model_loading_array", "session_initialization")


class _Args(msgspec.Struct):
    op_name: str | None = None
    provider: str | None = None
    input_type_shape: msgspec.Raw = msgspec.Raw(b"")
    output_type_shape: msgspec.Raw = msgspec.Raw(b"")
    activation_size: int | None = None
    output_size: int | None = None
    parameter_size: int | None = None
    stream: int | str | None = None
    parent_ort_node: str | None = None


@dataclass(frozen=True, slots=True)
class _Told:
    """Spans by what their events say they are."""

    events: Sequence[Event]
    node: Flags
    device: Flags  # kernels that a node launched
    launcher: Numbers  # of a kernel: the node before it in the file; NONE: there is none

    @classmethod
    def of(cls, spans: Spans, events: Sequence[Event]) -> _Told:
        node = np.array([event.cat == "Node" and event.name.endswith(_NODE_ENDING) for event in events], np.bool_)
        device = np.array([event.cat == _DEVICE and not _names_its_node(event) for event in events], np.bool_)
        order = np.argsort(spans.event, kind="stable")
        last = np.maximum.accumulate(np.where(node[order], np.arange(len(order)), NONE))
        launcher = np.full(len(order), NONE, np.int64)
        launcher[order] = np.where(last == NONE, NONE, order[last])
        return cls(events, node, device, np.where(device, launcher, NONE))

    def kinds(self) -> Numbers:
        """What holds a whole run is no work; a node that launched kernels is the call that did."""
        kind = np.array([SpanKind.PHASE if event.name in _WHOLE else SpanKind.HOST for event in self.events], np.int64)
        kind[self.node | self.device] = SpanKind.OP
        kind[self.launcher[self.launcher != NONE]] = SpanKind.HOST
        return kind


class OrtProfile:
    """Array form; events of category Session and Node."""

    name = "onnxruntime"

    def read(self, path: Path) -> Recording:
        """Nodes with their own times, each in the run that it belongs to, and kernels of a device under their node."""
        file = decode_events(read_bytes(path), source=str(path))
        spans = file.spans()
        events = [file.events[number] for number in spans.event.tolist()]
        told = _Told.of(spans, events)
        runs = Runs.of(spans, np.array([event.cat == "Session" and event.name == RUN for event in events], np.bool_))
        inference = runs.numbers(spans)
        inference = np.where(told.device, np.where(told.launcher == NONE, NONE, inference[told.launcher]), inference)
        own = own_length(spans, told.node)
        op, rows = _nodes(spans, told, own, inference, len(runs.place))
        lanes, thread = _lanes(told)
        moved = Spans([], spans.names, thread, spans.name, spans.start, spans.end, spans.event)
        launched = np.flatnonzero(told.launcher != NONE)
        edges = (told.launcher[launched], launched)
        marks = Marks(told.kinds(), op=op, inference=inference, command=np.arange(len(events)), edges=edges)
        trace = build_trace(moved, file.samples(), lanes, (), marks=marks, provenance=Provenance.MEASURED)
        notes = _notes(told, rows, runs, nests=own < spans.end - spans.start)
        return Recording(
            maker=self.name,
            tool="ONNX Runtime",
            provenance=Provenance.MEASURED,
            trace=trace,
            ops=rows,
            metrics=_metrics(spans, events, runs),
            checks=runs.checks(spans, told.node, inference, own),
            notes=(*notes, *file.left_out()),
            inferences=len(runs.place) or None,
        )


def _lanes(told: _Told) -> tuple[list[Lane], Numbers]:
    """Nodes stand on the lane of their thread, the session's own stages on one beside it, kernels on their stream."""
    known: dict[Lane, int] = {}
    thread = []
    for event, ran, on_device in zip(told.events, told.node.tolist(), told.device.tolist(), strict=True):
        if on_device:
            stream = _args(event).stream
            lane = Lane(0, NONE, f"stream {event.tid if stream is None else stream}")
        else:
            lane = Lane(NONE, NONE, f"thread {event.tid}" + ("" if ran else " session"))
        thread.append(known.setdefault(lane, len(known)))
    return list(known), np.array(thread, np.int64)


def _nodes(
    spans: Spans, told: _Told, own: Numbers, inference: Numbers, runs: int
) -> tuple[Numbers, tuple[OpRecord, ...]]:
    """Op of every span, and a row per node with its times over the runs: of its kernels where it launched any."""
    known: dict[str, int] = {}
    first: list[int] = []
    op = np.full(len(told.events), NONE, np.int64)
    for n in np.flatnonzero(told.node).tolist():
        op[n] = known.setdefault(told.events[n].name.removesuffix(_NODE_ENDING), len(known))
        if op[n] == len(first):
            first.append(n)
    rows = [_row(name, told.events[first[number]]) for name, number in known.items()]
    on_host = _with_times(rows, op, own, inference, runs)
    launched = told.launcher != NONE
    if not launched.any():
        return op, on_host
    op = np.where(launched, op[told.launcher], op)
    on_device = _with_times(rows, np.where(launched, op, NONE), spans.end - spans.start, inference, runs)
    kernels = _longest(spans, op, launched)
    merged = (
        host if kernel.time_ns is None else replace(kernel, host_ns=host.time_ns, kernel=kernels.get(number, ""))
        for number, (host, kernel) in enumerate(zip(on_host, on_device, strict=True))
    )
    return op, tuple(merged)


def _longest(spans: Spans, op: Numbers, launched: Flags) -> dict[int, str]:
    """Op → the name of its longest kernel."""
    found = np.flatnonzero(launched)
    found = found[np.argsort(spans.end[found] - spans.start[found], kind="stable")]
    return {int(op[n]): spans.names[spans.name[n]] for n in found.tolist()}


def _names_its_node(event: Event) -> bool:
    """Whether a provider wrote its own profile down: such events stand behind all nodes, and not behind their own."""
    return event.cat == _DEVICE and _args(event).parent_ort_node is not None


def _args(event: Event) -> _Args:
    try:
        return msgspec.json.decode(event.args, type=_Args, strict=False)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return _Args()


def _row(name: str, event: Event) -> OpRecord:
    args = _args(event)
    shapes = [bytes(raw).decode("utf-8", "replace") for raw in (args.input_type_shape, args.output_type_shape)]
    return OpRecord(
        name,
        type=args.op_name or "",
        does=Does.LAYOUT if args.op_name in REORDERS else Does.UNKNOWN,
        placed=Placed.CPU if args.provider == _CPU_PROVIDER else Placed.UNKNOWN,
        engines=(args.provider,) if args.provider else (),
        shape=" → ".join(shapes) if all(shapes) else "",
        in_bytes=args.activation_size,
        out_bytes=args.output_size,
        parameter_bytes=args.parameter_size,
    )


def _with_times(
    rows: Sequence[OpRecord], op: Numbers, length: Numbers, inference: Numbers, runs: int
) -> tuple[OpRecord, ...]:
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
        result.append(
            replace(
                row,
                calls=float(count.mean()) if known else None,
                time_ns=round(float(times.mean())) if known else None,
                median_ns=round(float(np.median(times))) if known else None,
                low_ns=round(float(times.min())) if known else None,
                high_ns=round(float(times.max())) if known else None,
            )
        )
    return tuple(result)


def _metrics(spans: Spans, events: Sequence[Event], runs: Runs) -> tuple[Metric, ...]:
    """Times of the session: loading it, and the spread of its runs."""
    length = spans.end - spans.start
    found = [
        Metric(event.name.replace("_", " "), int(length[n]), "ns")
        for n, event in enumerate(events)
        if event.cat == "Session" and event.name in _SESSION
    ]
    if not len(runs.place):
        return tuple(found)
    times = length[runs.place]
    return (
        Metric(LATENCY, float(np.median(times)), "ns"),
        Metric("latency, mean", float(times.mean()), "ns"),
        Metric("latency, least", int(times.min()), "ns"),
        Metric("latency, most", int(times.max()), "ns"),
        Metric("first run", int(times[0]), "ns"),
        Metric("runs", len(times), "1"),
        *found,
    )


def _notes(told: _Told, rows: Sequence[OpRecord], runs: Runs, *, nests: Flags) -> tuple[str, ...]:
    """What a reader of the rows should know, each where it applies."""
    renamed = sum(row.name.endswith(("_nchwc", "_nhwc")) or "fused" in row.name.lower() for row in rows)
    fences = sum(event.cat == "Node" for event in told.events) - int(told.node.sum())
    kernels = int(told.device.sum())
    foreign = sum(_names_its_node(event) for event in told.events)
    hold = len({told.events[n].name for n in np.flatnonzero(nests).tolist()})
    found = (
        (True, "times are whole microseconds in the file"),
        (renamed, f"{renamed} of {len(rows)} nodes have names that the runtime gave them when it fused or laid out"),
        (hold, f"{hold} nodes run others: their times are without these"),
        (kernels, f"{kernels} kernels of a device: the time of a node is of its kernels, its host time beside it"),
        (foreign, f"{foreign} events of a provider's own profile are spans of the session's lane: see `import --list`"),
        (fences, f"{fences} events of nodes beside their kernels are spans of the session's lane"),
        (runs.overlap, "runs overlap: nodes are given to them by thread, and others to the run that began last"),
        (not len(runs.place), "no model_run events: times are of the whole file"),
    )
    return tuple(note for there, note in found if there)
