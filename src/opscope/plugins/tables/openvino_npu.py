"""Timeline of OpenVINO's NPU plug-in, in Trace Event JSON: every task of every engine, and the layers they belong to.

A task is named `LAYER?t_TYPE/what/it/is/part/of`. Layers, and the variants that a DPU task consists of, stand on rows
of their own and show again what tasks have: they are marks here. What the file adds up itself is held to its tasks.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from ...core.columns import Flags, Numbers
from ...core.errors import ImportFileError
from ...core.json_files import decode_json
from ...core.meaning import Does, LaneRole
from ...core.provenance import Provenance
from ...importers.column_trace import open_length
from ...importers.reading import read_bytes, to_ns
from ...importers.trace_build import Marks, build_trace
from ...importers.trace_events import NO_ARGS, Event, Events, Spans, coded, decode_events
from ...recording.recording import LATENCY, Check, Metric, OpRecord, Recording
from ...recording.trace import NONE, Lane, SpanKind

_ENGINES = {"DPU": "DPU", "SW": "SHAVE", "Shave": "SHAVE", "UPA": "SHAVE", "DMA": "DMA", "M2I": "M2I"}
_LAYER = "Layer"
_VARIANTS = "DPU Variants"  # name of the threads that show them
_CLUSTER = re.compile(r"Cluster \((\d{1,4})\)")
_TYPE = re.compile(r"t_([^/]+)")
_SUMS = {"DMA": "DMA", "DPU": "DPU", "SW": "SHAVE", "M2I": "M2I"}  # word of the statistics → engine
_US = 1e3


class _Args(msgspec.Struct):
    total: int | None = msgspec.field(name="Total cycles:", default=None)
    active: int | None = msgspec.field(name="Active cycles:", default=None)
    stall: int | None = msgspec.field(name="Stall cycles:", default=None)
    type: str = msgspec.field(name="Layer type", default="")


class _Workpoint(msgspec.Struct):
    freq: float | None = None
    status: str = ""


class _About(msgspec.Struct):
    statistics: dict[str, float] = msgspec.field(name="taskStatistics", default_factory=dict)
    workpoint: _Workpoint | None = None


_ABOUT = msgspec.json.Decoder(_About)


@dataclass(frozen=True, slots=True)
class _Tasks:
    """Spans by what they show, and what the events say of them."""

    engine: list[str]  # of every span; empty: a layer, or something else
    is_task: Flags  # counts: no layer, and no variant of another task
    op: Numbers
    ops: tuple[tuple[str, str], ...]  # layer, type
    cycles: Numbers
    stalls: Numbers


class OpenVinoNpu:
    """One inference."""

    name = "openvino-npu"

    def read(self, path: Path) -> Recording:
        """A row per layer, with the time in which a task of it ran; a lane per engine of every cluster."""
        raw = read_bytes(path)
        file = decode_events(raw, source=str(path))
        about = decode_json(raw, _ABOUT, source=str(path))
        spans = file.spans()
        tasks = _tasks(file, spans)
        if not tasks.is_task.any():
            raise ImportFileError(str(path), "", "no task of an engine in it; expected the timeline of an NPU")
        lanes, moved = _lanes(file, spans, tasks)
        marks = Marks(_kinds(tasks), op=tasks.op, inference=0, cycles=tasks.cycles, does=_does(tasks))
        trace = build_trace(moved, file.samples(), lanes, (), marks=marks, provenance=Provenance.MEASURED)
        clock = about.workpoint.freq if about.workpoint is not None else None
        return Recording(
            maker=self.name,
            tool="OpenVINO NPU profiling",
            provenance=Provenance.MEASURED,
            trace=trace,
            ops=_ops(spans, tasks),
            metrics=tuple(_metrics(spans, tasks, about.statistics)),
            checks=tuple(_checks(spans, tasks, about.statistics)),
            notes=(*_notes(tasks, about), *file.left_out()),
            clocks_hz={"DPU": clock * 1e6} if clock and 0 < clock < 1e6 else {},
            target="NPU",
            inferences=1,
        )


def _tasks(file: Events, spans: Spans) -> _Tasks:
    """Layer and engine of every span, from its category and its name."""
    events = [file.events[number] for number in spans.event.tolist()]
    _, threads = file.names()
    engine = [_ENGINES.get(event.cat, "") for event in events]
    variants = {key for key, name in threads.items() if name == _VARIANTS}
    is_task = np.array([bool(word) and (e.pid, e.tid) not in variants for word, e in zip(engine, events, strict=True)])
    args = [_args(event) for event in events]
    types = {e.name: a.type for e, a in zip(events, args, strict=True) if e.cat == _LAYER and a.type != "<unknown>"}
    named = [_layer(event) for event in events]
    own = [bool(word) or event.cat == _LAYER for word, event in zip(engine, events, strict=True)]
    known = {name: type_ for (name, type_), is_own in zip(named, own, strict=True) if is_own and type_} | types
    order = dict.fromkeys(name for (name, _), is_own in zip(named, own, strict=True) if is_own)
    place = {name: number for number, name in enumerate(order)}
    return _Tasks(
        engine,
        is_task.astype(np.bool_),
        np.array([place[n] if is_own else NONE for (n, _), is_own in zip(named, own, strict=True)], np.int64),
        tuple((name, known.get(name, "")) for name in order),
        np.array([_count(a.total if a.total is not None else a.active) for a in args], np.int64),
        np.array([_count(a.stall) for a in args], np.int64),
    )


def _count(value: int | None) -> int:
    return value if value is not None and 0 <= value < 2**48 else NONE


def _args(event: Event) -> _Args:
    try:
        return _Args() if event.args is NO_ARGS else msgspec.json.decode(event.args, type=_Args, strict=False)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return _Args()


def _layer(event: Event) -> tuple[str, str]:
    name, mark, rest = event.name.partition("?")
    found = _TYPE.match(rest) if mark else None
    return name, found[1] if found is not None else ""


def _lanes(file: Events, spans: Spans, tasks: _Tasks) -> tuple[list[Lane], Spans]:
    """Threads of the file are such that tasks do not overlap: each is a lane of its engine and cluster."""
    processes, _ = file.names()
    known: dict[Lane, int] = {}
    thread = []
    for number, owner in enumerate(spans.thread.tolist()):
        pid, tid = spans.threads[owner]
        cluster = _CLUSTER.fullmatch(processes.get(pid, ""))
        core = int(cluster[1]) if cluster is not None else NONE
        if tasks.is_task[number]:
            role = LaneRole.TRANSFER if tasks.engine[number] == "DMA" else LaneRole.ENGINE
            lane = Lane(
                0, core, tasks.engine[number], tid if isinstance(tid, int) and 0 <= tid < 2**31 else NONE, role=role
            )
        else:
            lane = Lane(0, core, _VARIANTS if tasks.engine[number] else "layers", role=LaneRole.MARKER)
        thread.append(known.setdefault(lane, len(known)))
    moved = Spans([], spans.names, np.array(thread, np.int64), spans.name, spans.start, spans.end, spans.event)
    return list(known), moved


def _kinds(tasks: _Tasks) -> Numbers:
    moves = np.array([word == "DMA" for word in tasks.engine], np.bool_)
    return np.where(tasks.is_task, np.where(moves, SpanKind.TRANSFER, SpanKind.OP), SpanKind.PHASE).astype(np.int64)


def _does(tasks: _Tasks) -> Numbers:
    """The DPU multiplies, the M2I unit changes the form of pictures; what SHAVE does is not told by the engine."""
    of_engine = {"DPU": Does.COMPUTE, "DMA": Does.MOVE, "M2I": Does.LAYOUT}
    return np.array([int(of_engine.get(word, Does.UNKNOWN)) for word in tasks.engine], np.int64)


def _ops(spans: Spans, tasks: _Tasks) -> tuple[OpRecord, ...]:
    """Time in which at least one task of a layer ran; engines by the time of its tasks on them."""
    count = len(tasks.ops)
    rows = np.flatnonzero(tasks.is_task)
    op, length = tasks.op[rows], (spans.end - spans.start)[rows]
    time = open_length(op, spans.start[rows], spans.end[rows], count).tolist()
    engine, engines = coded([tasks.engine[row] for row in rows.tolist()])
    busy = np.bincount(op * len(engines) + engine, length, minlength=count * len(engines)).reshape(count, -1)
    calls = np.bincount(op, minlength=count).tolist()
    return tuple(
        OpRecord(
            name,
            type=type_,
            engines=tuple(engines[place] for place in np.argsort(-busy[number], kind="stable") if busy[number, place]),
            calls=calls[number] or None,
            time_ns=time[number] if calls[number] else None,
        )
        for number, (name, type_) in enumerate(tasks.ops)
    )


def _metrics(spans: Spans, tasks: _Tasks, statistics: dict[str, float]) -> Iterator[Metric]:
    rows = tasks.is_task
    window = int(spans.end[rows].max() - spans.start[rows].min())
    told = to_ns(statistics.get("total duration"), _US)
    yield Metric(LATENCY, window if told is None else told, "ns")
    for name, value in statistics.items():
        known = to_ns(value, _US)
        if known is not None and name != "total duration":
            yield Metric(name, known, "ns")
    yield Metric("tasks", int(rows.sum()), "1")
    stalled = tasks.stalls[rows & (tasks.stalls != NONE)]
    if len(stalled):
        yield Metric("stall cycles of SHAVE", int(stalled.sum()), "cycles")


def _checks(spans: Spans, tasks: _Tasks, statistics: dict[str, float]) -> Iterator[Check]:
    """Sums of the file are those of its tasks: each is rounded to 1 ns."""
    length = spans.end - spans.start
    for word, engine in _SUMS.items():
        told = statistics.get(f"Sum of {word} task durations")
        if told is None:
            continue
        mine = tasks.is_task & np.array([other == engine for other in tasks.engine], np.bool_)
        found = int(length[mine].sum()) / _US
        holds = math.isclose(found, told, abs_tol=0.002 * (int(mine.sum()) + 1))
        yield Check(f"sum of {word} tasks", holds, f"{told:.3f} us, tasks {found:.3f} us")
    parts = [statistics.get(name) for name in ("total duration", "all tasks union", "total idle")]
    if None not in parts:
        whole, union, idle = (part or 0.0 for part in parts)
        yield Check("tasks + idle = duration", math.isclose(union + idle, whole, abs_tol=0.01), f"{whole:.3f} us")


def _notes(tasks: _Tasks, about: _About) -> Sequence[str]:
    variants = sum(bool(word) for word in tasks.engine) - int(tasks.is_task.sum())
    layers = len(tasks.engine) - sum(map(bool, tasks.engine))
    clocked = about.workpoint is not None and about.workpoint.status not in ("", "OK")
    found = (
        (layers, f"{layers} spans of layers are marks: the times of ops are those of their tasks"),
        (variants, f"{variants} variants of DPU tasks are marks: the tasks hold their time"),
        (clocked, "the file says of its clock: " + (about.workpoint.status if about.workpoint is not None else "")),
        (True, "a schedule of the compiler has the same form: import that with --provenance vendor-model"),
    )
    return [note for there, note in found if there]
