"""Session profile of ONNX Runtime with the events of its QNN provider in it → Recording.

ONNX Runtime lets providers add to the session's own timeline from 1.25 on, and the source of this one does (its release
2.7.0 does not yet): what its CSV has, as events of category Kernel, behind all others. They say their graph, what was
done with it (compose, finalize, context_load, execute), and the node that they belong to. One whose unit is no time has
no length, and its value beside it. They are read as those of the CSV are; nodes of other providers are ops of their
own, and a node of this one is what its events consist of.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, median

import msgspec
import numpy as np

from ....core.columns import Numbers
from ....core.errors import ImportFileError
from ....core.meaning import Does, LaneRole
from ....core.provenance import Provenance
from ....importers.reading import Unread, read_bytes
from ....importers.trace_build import Marks, build_trace
from ....importers.trace_events import NO_ARGS, Events, Spans, decode_events
from ....recording.recording import Metric, OpRecord, Placed, Recording
from ....recording.trace import NONE, Lane, SpanKind, Trace
from .device_files import of_messages
from .device_times import ACCELERATOR
from .events import EXECUTE, EXECUTE_TIME, FINALIZE, FINALIZE_TIME, Event, Message, believable, own_messages
from .profile_csv import messages_of

_OWN = "QNNExecutionProvider"
_RUN, _NODE = "model_run", "_kernel_time"
_HOST_CALL = "HOST_OPERATION"  # the provider's own watch, where the library tells nothing
_WHOLE = {EXECUTE: EXECUTE_TIME, FINALIZE: FINALIZE_TIME}
_LONGEST = 40  # digits of a number


class _Args(msgspec.Struct):
    type: str = msgspec.field(name="qnn_event_type", default="")
    name: str = msgspec.field(name="qnn_event_identifier", default="")
    graph: str = msgspec.field(name="qnn_graph_name", default="")
    operation: str = msgspec.field(name="qnn_operation", default="")
    unit: str = ""
    value: str = ""
    level: str = ""
    op_name: str = ""
    provider: str = ""


_DECODER = msgspec.json.Decoder(_Args, strict=False)


@dataclass(frozen=True, slots=True)
class _Session:
    """Spans of the file, and what their events say."""

    spans: Spans
    categories: list[str]
    args: list[_Args]

    @property
    def names(self) -> list[str]:
        return [self.spans.names[number] for number in self.spans.name.tolist()]

    def length(self, number: int) -> int:
        return int(self.spans.end[number] - self.spans.start[number])

    def runs(self) -> list[int]:
        """Spans that are runs of the session, in order of time."""
        found = [n for n, name in enumerate(self.names) if name == _RUN and self.categories[n] == "Session"]
        return sorted(found, key=lambda number: int(self.spans.start[number]))

    def run_of(self) -> Numbers:
        """The run that every span lies in; NONE: it is of no run."""
        runs = self.runs()
        if not runs:
            return np.full(len(self.spans.start), NONE, np.int64)
        place = np.searchsorted(self.spans.start[runs], self.spans.start, side="right") - 1
        inside = (place >= 0) & (self.spans.start < self.spans.end[np.array(runs)[place]])
        return np.where(inside, place, NONE)


class QnnTimeline:
    """Array form, as all session profiles."""

    name = "qnn-timeline"

    def read(self, path: Path) -> Recording:
        """What the provider's events tell, and the nodes of other providers beside it."""
        file = decode_events(read_bytes(path), source=str(path))
        session = _session(file)
        told = [n for n in np.argsort(session.spans.event, kind="stable").tolist() if session.args[n].type]
        if not told:
            raise ImportFileError(str(path), "", "no event of the QNN provider; expected its session profile")
        unread = Unread("events")
        whole = of_messages(tuple(_messages(session, told, unread)), path, self.name, unread)
        others = _others(session)
        measured = whole.provenance is Provenance.MEASURED
        ops = (*whole.ops, *(others.values() if measured else ()))
        return replace(
            whole,
            ops=ops,
            trace=_trace(session, whole, list(others)) if measured else whole.trace,
            metrics=(*whole.metrics, *_metrics(session, told)),
            notes=(*whole.notes, *_notes(others, measured=measured), *file.left_out()),
        )


def _session(file: Events) -> _Session:
    spans = file.spans()
    events = [file.events[number] for number in spans.event.tolist()]
    return _Session(spans, [event.cat for event in events], [_args(event.args) for event in events])


def _args(raw: msgspec.Raw) -> _Args:
    try:
        return _Args() if raw is NO_ARGS else _DECODER.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return _Args()


def _messages(session: _Session, told: Sequence[int], unread: Unread) -> Iterator[Message]:
    """Of every graph, made ready and run; what else was done with it is a figure."""
    graphs: dict[tuple[str, str], list[tuple[bool, Event]]] = defaultdict(list)
    for number in told:
        args = session.args[number]
        operation = _operation(args)
        if not operation:
            continue
        event = _event(session, number)
        if event is None or args.level not in ("ROOT", "SUB-EVENT"):
            unread.add(f"event {int(session.spans.event[number])}", args.name)
        else:
            graphs[args.graph, operation].append((args.level == "ROOT", event))
    for (graph, _), rows in graphs.items():
        yield from own_messages(messages_of(rows, graph))


def _operation(args: _Args) -> str:
    """Whether a graph was made ready or run; empty: something else was done with it."""
    return next((word for word in _WHOLE if word in args.operation.lower()), "")


def _event(session: _Session, number: int) -> Event | None:
    args = session.args[number]
    name = _WHOLE[_operation(args)] if args.type == _HOST_CALL else args.name
    if args.value:
        digits = args.value.isascii() and args.value.isdigit() and len(args.value) < _LONGEST
        return Event(name, believable(int(args.value)), args.unit.upper()) if digits else None
    return Event(name, believable(session.length(number) // 1000), "US")


def _others(session: _Session) -> dict[str, OpRecord]:
    """Nodes of other providers, with their mean over the runs."""
    runs = max(len(session.runs()), 1)
    times: dict[str, list[int]] = defaultdict(list)
    about: dict[str, _Args] = {}
    for number, name in enumerate(session.names):
        args = session.args[number]
        if session.categories[number] == "Node" and name.endswith(_NODE) and args.provider not in ("", _OWN):
            times[name].append(session.length(number))
            about.setdefault(name, args)
    return {
        name: OpRecord(
            name.removesuffix(_NODE),
            type=about[name].op_name,
            engines=(about[name].provider,),
            placed=Placed.CPU if about[name].provider.startswith("CPU") else Placed.UNKNOWN,
            calls=len(found) / runs,
            time_ns=round(sum(found) / runs),
        )
        for name, found in times.items()
    }


def _trace(session: _Session, whole: Recording, others: Sequence[str]) -> Trace:
    """The session's threads, the accelerator at work, and the other events of the provider as marks.

    No event says where in a call the accelerator works: it stands where the file has it, at the start.
    """
    kept, lanes, thread, kinds, ops, does = [], dict[Lane, int](), [], [], [], []
    place = {name: len(whole.ops) + number for number, name in enumerate(others)}
    for number, name in enumerate(session.names):
        found = _shown(session, number, name, place)
        if found is not None:
            lane, kind, op, work = found
            kept.append(number)
            thread.append(lanes.setdefault(lane, len(lanes)))
            kinds.append(kind)
            ops.append(op)
            does.append(work)
    rows = np.array(kept, np.int64)
    spans = session.spans
    moved = Spans(
        [], spans.names, np.array(thread), spans.name[rows], spans.start[rows], spans.end[rows], spans.event[rows]
    )
    marks = Marks(np.array(kinds), op=np.array(ops), inference=session.run_of()[rows], does=np.array(does))
    samples = Events([], None, Unread("events")).samples()
    return build_trace(moved, samples, list(lanes), (), marks=marks, provenance=whole.provenance)


def _shown(session: _Session, number: int, name: str, place: dict[str, int]) -> tuple[Lane, int, int, int] | None:
    """Lane, kind, op and work of a span; None: it has no length, and shows nothing."""
    args = session.args[number]
    if args.type:
        if not session.length(number):
            return None
        if args.name == ACCELERATOR:
            return Lane(0, NONE, "HTP", role=LaneRole.ENGINE), SpanKind.OP, NONE, Does.MIXED
        return Lane(0, NONE, "QNN events", role=LaneRole.MARKER), SpanKind.PHASE, NONE, Does.UNKNOWN
    if name in place:
        return Lane(NONE, NONE, "nodes"), SpanKind.OP, place[name], Does.UNKNOWN
    if session.categories[number] == "Node":
        return Lane(NONE, NONE, "provider", role=LaneRole.MARKER), SpanKind.PHASE, NONE, Does.UNKNOWN
    return Lane(NONE, NONE, "session", role=LaneRole.MARKER), SpanKind.PHASE, NONE, Does.UNKNOWN


def _metrics(session: _Session, told: Sequence[int]) -> Iterator[Metric]:
    runs = [session.length(number) for number in session.runs()]
    if runs:
        yield Metric("session run, median", float(median(runs)), "ns")
        yield Metric("session runs", len(runs), "1")
    times: dict[str, list[int]] = defaultdict(list)
    for number in told:
        args = session.args[number]
        if not _operation(args) and args.level == "ROOT" and session.length(number):
            times[f"{args.operation or 'QNN'}: {args.name}"].append(session.length(number))
    for name, found in times.items():
        yield Metric(name, fmean(found), "ns")


def _notes(others: dict[str, OpRecord], *, measured: bool) -> Iterator[str]:
    if others and measured:
        yield f"{len(others)} nodes of other providers are ops too; latency is without them"
    elif others:
        yield f"{len(others)} nodes of other providers are left out, as all times of an emulated run"
    if measured:
        yield "no event says where in a call the accelerator works: it stands at the start of it"
