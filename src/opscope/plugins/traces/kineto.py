"""PyTorch (Kineto) trace → Trace: host ops, the calls that launch kernels, and the kernels, joined.

A kernel belongs to the launch call with its correlation number, and to the innermost host op with its external id.
Device time of an op is that of the kernels it launched itself; host time includes the ops inside it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np
import numpy.typing as npt

from ...core.columns import Flags, Numbers
from ...core.meaning import Does
from ...core.provenance import Provenance
from ...core.words import does_of_call
from ...importers.power import Activity
from ...importers.reading import read_bytes
from ...importers.trace_build import Marks, build_trace, thread_label
from ...importers.trace_events import NO_ARGS, CounterSamples, Event, Events, Key, Spans, coded, decode_events
from ...recording.recording import Metric, OpRecord, Recording
from ...recording.trace import NONE, CounterTrack, Lane, SpanKind
from .aten import Called, Told, told_by
from .kineto_gaps import DeviceWork, device_metrics
from .kineto_memory import is_memory, with_memory

_PROFILER = -1  # process under which the profiler writes what it takes itself, without a name
_KERNELS = frozenset({"kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset"})
_HOST_OPS = frozenset({"cpu_op", "operator"})
_KINDS = {
    "kernel": SpanKind.OP,
    "gpu_memcpy": SpanKind.TRANSFER,
    "gpu_memset": SpanKind.TRANSFER,
    "memcpy": SpanKind.TRANSFER,
    "memset": SpanKind.TRANSFER,
    "gpu_user_annotation": SpanKind.PHASE,
    "user_annotation": SpanKind.PHASE,
    "trace": SpanKind.PHASE,
}


_CALLED = tuple(field.encode_name.encode() for field in msgspec.structs.fields(Called))
_Number = Annotated[int, msgspec.Meta(gt=-(2**62), lt=2**62)]  # has to fit a column


class _Args(msgspec.Struct, gc=False):
    external: _Number | None = msgspec.field(name="External id", default=None)
    correlation: _Number | None = None
    device: _Number | None = None
    dims: msgspec.Raw = msgspec.field(name="Input Dims", default=msgspec.Raw(b""))
    types: msgspec.Raw = msgspec.field(name="Input type", default=msgspec.Raw(b""))
    concrete: msgspec.Raw = msgspec.field(name="Concrete Inputs", default=msgspec.Raw(b""))


class _Device(msgspec.Struct):
    name: str = ""


@dataclass(frozen=True, slots=True)
class Joined:
    """Spans with what they have to do with each other. Columns go with the spans; NONE: nothing."""

    kind: Numbers
    op: Numbers  # position in `rows`
    launch: Numbers  # of a kernel: the span that launched it
    device: Numbers  # of a kernel
    rows: tuple[OpRecord, ...]
    notes: tuple[str, ...]


class Kineto:
    """Object form with `schemaVersion`; any device that reports kernels with correlation numbers."""

    name = "kineto"

    def read(self, path: Path) -> Recording:
        """Host and device spans, kernels joined to their launch and to their op."""
        file = decode_events(read_bytes(path), source=str(path))
        spans, samples = file.spans(), with_memory(file)
        joined = _join(file, spans)
        trace_spans, lanes, tracks = _lanes(file, spans, samples, joined)
        launched = np.flatnonzero(joined.launch != NONE)
        marks = Marks(
            joined.kind,
            op=joined.op,
            command=np.arange(len(spans.start)),
            edges=(joined.launch[launched], launched),
        )
        trace = build_trace(trace_spans, samples, lanes, tracks, marks=marks, provenance=Provenance.MEASURED)
        return Recording(
            maker=self.name,
            tool="PyTorch profiler (Kineto)",
            provenance=Provenance.MEASURED,
            trace=trace,
            ops=joined.rows,
            metrics=_metrics(spans, joined),
            notes=(*joined.notes, *file.left_out()),
            target=_target(file),
        )


def _join(file: Events, spans: Spans) -> Joined:
    """Kernels with the call that launched them and the host op they belong to, by the numbers in their arguments.

    cpu_op       aten::linear       External id 1
    cuda_runtime cudaLaunchKernel   correlation 100
    kernel       gemm               External id 1, correlation 100    → launch: the call; op: aten::linear
    """
    events = list(map(file.events.__getitem__, spans.event.tolist()))
    is_kernel, is_op, kind = _told_by_category([event.cat for event in events])
    args, odd = _args(events)
    correlation = np.array([NONE if a.correlation is None else a.correlation for a in args], np.int64)
    external = np.array([NONE if a.external is None else a.external for a in args], np.int64)
    device = np.array([NONE if a.device is None else a.device for a in args], np.int64)
    calls = np.flatnonzero(~is_kernel & ~is_op & (correlation != NONE))
    launch = np.where(is_kernel, _matches(correlation, calls), NONE)
    owner = np.where(is_kernel, _matches(external, np.flatnonzero(is_op & (external != NONE))), NONE)
    code, labels = _labels(spans, args, is_op)
    op = np.where(is_op, code, np.where(owner != NONE, code[owner], NONE))
    orphan = is_kernel & (op == NONE)
    rows = _rows(spans, op, labels, is_op=is_op, is_kernel=is_kernel)
    notes = [f"{odd} spans have arguments of another form; they are joined to nothing"] if odd else []
    for count, what in ((int(orphan.sum()), "host op"), (int((is_kernel & (launch == NONE)).sum()), "launch call")):
        if count:
            notes.append(f"{count} of {int(is_kernel.sum())} kernels have no {what} in this file")
    return Joined(kind, op, launch, device, rows, tuple(notes))


def _told_by_category(categories: list[str]) -> tuple[Flags, Flags, Numbers]:
    """Of every span: is it a kernel, is it an op of the host, and its kind."""
    code, words = coded(categories)
    plain = [word.lower() for word in words]
    kernels, ops = (np.array([*(word in wanted for word in plain), False]) for wanted in (_KERNELS, _HOST_OPS))
    kinds = np.array([*(_KINDS.get(word, SpanKind.HOST).value for word in plain), 0])
    return kernels[code], ops[code], kinds[code]


def _args(events: Sequence[Event]) -> tuple[list[_Args], int]:
    """Arguments of every event, and of how many they have another form."""
    decode = msgspec.json.Decoder(_Args, strict=False).decode
    result, odd, plain = [], 0, _Args()
    for event in events:
        try:
            result.append(plain if event.args is NO_ARGS else decode(event.args))
        except (msgspec.MsgspecError, UnicodeDecodeError):
            result.append(plain)
            odd += len(bytes(event.args)) > 2  # an empty list, or a digit, says nothing
    return result, odd


def _matches(keys: Numbers, among: Numbers) -> Numbers:
    """For every span, the one of `among` with the same key; NONE: there is none. Of several, the last."""
    if not len(among):
        return np.full(len(keys), NONE, np.int64)
    # A join by sorting: the last of equal keys is where the key would be inserted, one to the left.
    order = among[np.argsort(keys[among], kind="stable")]
    place = np.searchsorted(keys[order], keys, side="right") - 1
    found = order[np.maximum(place, 0)]
    return np.where((place >= 0) & (keys[found] == keys) & (keys != NONE), found, NONE)


@dataclass(frozen=True, slots=True)
class _Label:
    """What host ops of one row have in common."""

    name: str
    shape: str  # of its operands and its result; where they are not told, as the file has the former
    told: Told | None = None


def _labels(spans: Spans, args: Sequence[_Args], is_op: npt.NDArray[np.bool_]) -> tuple[Numbers, list[_Label]]:
    """A number for every host op that has a label in common with others, and these."""
    code = np.full(len(spans.name), NONE, np.int64)
    ops = np.flatnonzero(is_op)
    called = [tuple(map(bytes, (args[n].dims, args[n].types, args[n].concrete))) for n in ops.tolist()]
    raw, found = coded(called)
    pair, pairs = coded((spans.name[ops] * max(1, len(found)) + raw).tolist())
    each = [_label(spans.names[both // len(found)], *found[both % len(found)]) for both in pairs]
    number, labels = coded(each)
    code[ops] = number[pair] if each else pair
    return code, labels


def _label(name: str, dims: bytes, types: bytes, concrete: bytes) -> _Label:
    """Ops of one name and of the same dimensions are alike, unless their arguments tell more."""
    arguments = (b'"%s":%s' % (key, raw) for key, raw in zip(_CALLED, (dims, types, concrete), strict=True) if raw)
    try:
        told = told_by(name, msgspec.json.decode(b"{%s}" % b",".join(arguments), type=Called))
    except (msgspec.MsgspecError, UnicodeDecodeError):
        told = None
    return _Label(name, dims.decode("utf-8", "replace") if told is None else told.shapes, told)


def _rows(
    spans: Spans,
    op: Numbers,
    labels: Sequence[_Label],
    *,
    is_op: npt.NDArray[np.bool_],
    is_kernel: npt.NDArray[np.bool_],
) -> tuple[OpRecord, ...]:
    """A row per host op of one name and arguments: its calls, time on the host, and of its kernels on the device."""
    length = spans.end - spans.start
    calls = np.bincount(op[is_op], minlength=len(labels)).tolist()
    host = np.bincount(op[is_op], length[is_op], minlength=len(labels)).tolist()
    owned = is_kernel & (op != NONE)
    time = np.bincount(op[owned], length[owned], minlength=len(labels)).tolist()
    kernels: dict[int, dict[int, int]] = {}
    for row, name, ns in zip(op[owned].tolist(), spans.name[owned].tolist(), length[owned].tolist(), strict=True):
        kernels.setdefault(row, {})[name] = kernels.get(row, {}).get(name, 0) + ns
    longest = {row: spans.names[max(times, key=times.__getitem__)] for row, times in kernels.items()}
    return tuple(
        OpRecord(
            label.name,
            type=label.name,
            kind="" if label.told is None else label.told.kind,
            shape=label.shape,
            dtype="" if label.told is None else label.told.dtype,
            macs=None if label.told is None else label.told.macs * calls[row],
            kernel=longest.get(row, ""),
            calls=calls[row],
            time_ns=round(time[row]),
            host_ns=round(host[row]),
        )
        for row, label in enumerate(labels)
    )


def _lanes(
    file: Events, spans: Spans, samples: CounterSamples, joined: Joined
) -> tuple[Spans, list[Lane], list[CounterTrack]]:
    """Streams are lanes of their device, the rest of the host; what marks a stretch has a lane of its own."""
    processes, names = file.names()
    processes.setdefault(_PROFILER, "profiler")
    names.setdefault((_PROFILER, 0), "overhead")
    device_code, devices = coded(joined.device.tolist())
    # A thread of the file may hold work of several devices, and marks beside work: each such cell is a lane.
    cell = (spans.thread * len(devices) + device_code) * 2 + (joined.kind == SpanKind.PHASE)
    thread, cells = coded(cell.tolist())
    lanes, threads = [], []
    for place in cells:
        owner, marks = divmod(place, 2)
        key, device = spans.threads[owner // len(devices)], devices[owner % len(devices)]
        threads.append(key)
        label = thread_label(key, processes, names) if device == NONE else names.get(key, f"stream {key[1]}")
        lanes.append(Lane(device, NONE, label.strip() + (" marks" if marks else "")))
    moved = Spans(threads, spans.names, thread, spans.name, spans.start, spans.end, spans.event)
    pids: dict[Key, int] = {}
    tracks = [
        CounterTrack(pids.setdefault(pid, len(pids)), NONE, title, "bytes" if is_memory(title) else "")
        for pid, title in samples.tracks
    ]
    return moved, lanes, tracks


def _metrics(spans: Spans, joined: Joined) -> tuple[Metric, ...]:
    wall = int(spans.end.max() - spans.start.min()) if len(spans.start) else 0
    kernel = np.flatnonzero(np.isin(joined.kind, (SpanKind.OP, SpanKind.TRANSFER)))
    launch = joined.launch[kernel]
    return (
        Metric("wall", wall, "ns"),
        *device_metrics(
            DeviceWork(
                spans.start[kernel],
                spans.end[kernel],
                joined.device[kernel],
                np.where(launch == NONE, NONE, spans.start[launch]),
                launch != NONE,
                joined.kind[kernel] == SpanKind.TRANSFER,
            ),
            _host_waits(spans, joined),
        ),
    )


def _host_waits(spans: Spans, joined: Joined) -> Activity | None:
    """Calls in which the host waits for a device; None: there are none."""
    waits = np.array([does_of_call(name) is Does.SYNC for name in spans.names], np.bool_)
    at = np.flatnonzero((joined.kind == SpanKind.HOST) & waits[spans.name]) if len(waits) else waits
    return Activity.of(spans.start[at], spans.end[at]) if len(at) else None


def _target(file: Events) -> str | None:
    if file.head is None:
        return None
    try:
        devices = msgspec.json.decode(file.head.deviceProperties, type=list[_Device])
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    names = Counter(device.name for device in devices if device.name)
    return ", ".join(f"{count} × {name}" for name, count in names.items()) or None
