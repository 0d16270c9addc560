"""A Kineto recording with marked inferences → rows of ops, their times inference by inference, and a timeline of them.

host     |aten::linear (outermost)                  |   a row: body.0/linear
         |aten::t |aten::addmm                      |   what it consists of tells kind, shapes and work
device          |gemm|   launched meanwhile: its time is the row's, where there is a device; else the op's own is
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ...backends.host_cpu import spread
from ...backends.kernel_times import ENGINE, KernelTimes
from ...backends.timeline import EXECUTION
from ...core.columns import Numbers
from ...core.meaning import LaneRole
from ...recording.recording import KernelTotal, OpRecord, Placed, Recording
from ...recording.summary import MemoryTotal
from ...recording.trace import NONE, Lane, SpanKind, Trace
from .op_calls import Call, OpCalls, inference_of, inferences, op_calls
from .origins import Origin
from .running import INFERENCE

_STEP = "ProfilerStep#"  # how the profiler itself marks a round
BYTES = "bytes"  # unit of what allocators hold
_WORK = (SpanKind.OP, SpanKind.TRANSFER)


@dataclass(frozen=True, slots=True)
class Watched:
    """What the profiler saw of the inferences that count, by row. Columns go with the spans of `kineto`."""

    kineto: Recording
    calls: OpCalls
    rows: tuple[Call, ...]
    row: Numbers  # of every span; NONE
    inference: Numbers  # of every span; NONE
    is_work: npt.NDArray[np.bool_]  # its time is that of its row: a kernel, or on a CPU an outermost op
    on_device: bool

    @property
    def spans(self) -> npt.NDArray[np.void]:
        return self.kineto.trace.spans

    @property
    def length_ns(self) -> Numbers:
        length: Numbers = (self.spans["end_ns"] - self.spans["start_ns"]).astype(np.int64)
        return length

    def table(self, chosen: npt.NDArray[np.bool_]) -> Numbers:
        """Time of the chosen spans, row × inference."""
        table = np.zeros((len(self.rows), len(inferences(self.kineto)[0])), np.int64)
        chosen = chosen & (self.row != NONE) & (self.inference != NONE)
        np.add.at(table, (self.row[chosen], self.inference[chosen]), self.length_ns[chosen])
        return table

    def times(self, kernels: Sequence[str]) -> KernelTimes:
        start, end = inferences(self.kineto)
        called = np.zeros(len(self.rows), np.bool_)
        called[self.row[self.is_work & (self.row != NONE)]] = True
        return KernelTimes(tuple(kernels), self.table(self.is_work), end - start, called)


def watched(kineto: Recording) -> Watched:
    """Every span by the row and the inference that it belongs to."""
    spans, calls = kineto.trace.spans, op_calls(kineto)
    rows = {call: number for number, call in enumerate(dict.fromkeys(calls.calls))}
    row_of_call = np.array([*(rows[call] for call in calls.calls), NONE], np.int64)
    inference = inference_of(kineto, spans["start_ns"])
    kernel = np.isin(spans["kind"], _WORK)
    asked = np.where(kernel, _launched(kineto), spans["start_ns"])
    row = row_of_call[calls.around(asked)]
    row[(~kernel & (spans["op"] == NONE)) | (kernel & (asked == NONE))] = NONE
    seen: Counter[tuple[int, str]] = Counter()
    for at in np.flatnonzero(kernel & (row == NONE) & (inference != NONE)).tolist():  # of a graph: by their own names
        name = kineto.trace.names[spans["name"][at]]
        row[at] = rows.setdefault(Call(name, seen[int(inference[at]), name]), len(rows))
        seen[int(inference[at]), name] += 1
    work = kernel
    if not kernel.any():
        work = np.zeros(len(spans), np.bool_)
        work[calls.span] = True
    return Watched(kineto, calls, tuple(rows), row, inference, work, bool(kernel.any()))


def _launched(kineto: Recording) -> Numbers:
    """When each span was launched; NONE: nothing tells."""
    spans, edges = kineto.trace.spans, kineto.trace.edges
    time = np.full(len(spans), NONE, np.int64)
    time[edges["target"]] = spans["start_ns"][edges["source"]]  # the importer numbers spans as commands
    return time


def op_rows(
    found: Watched, origins: Mapping[Call, Origin], times: KernelTimes, parts: Sequence[OpRecord | None]
) -> Iterator[OpRecord]:
    """A row per op that Python called for, with the kernels that it launched."""
    host = found.table(_at(found.calls.span, len(found.spans)))
    lengths = found.length_ns
    taken: Counter[str] = Counter()
    names = found.kineto.trace.names
    for number, (call, part) in enumerate(zip(found.rows, parts, strict=True)):
        origin = origins.get(call, Origin())
        row = times.op_row(
            _unique(call, origin, taken), call.name, Placed.ACCELERATOR if found.on_device else Placed.CPU, [number]
        )
        row = replace(row, calls=1, module=origin.module, line=origin.line, kernel=times.names[number])
        if part is not None:
            row = replace(row, kind=part.kind, shape=part.shape, dtype=part.dtype, macs=part.macs)
        if found.on_device:
            kernels = found.spans[found.is_work & (found.row == number)]
            lanes = Counter(kernels["lane"].tolist()).most_common()
            engines = tuple(found.kineto.trace.lanes[lane].name for lane, _ in lanes)
            longest = max(_totals(found, number, lengths).items(), key=lambda item: item[1], default=(NONE, 0))[0]
            row = replace(
                row,
                engines=engines,
                calls=len(kernels) / max(1, host.shape[1]),
                time_ns=row.time_ns or 0,
                path_ns=None,
                path_share=None,
                host_ns=spread(host[number])[0],
                kernel="" if longest == NONE else names[longest],
                placed=Placed.ACCELERATOR if len(kernels) else Placed.CPU,
            )
        yield row


def _at(places: Numbers, count: int) -> npt.NDArray[np.bool_]:
    chosen = np.zeros(count, np.bool_)
    chosen[places] = True
    return chosen


def _totals(found: Watched, number: int, lengths: Numbers) -> dict[int, int]:
    """Time of the kernels of a row by name."""
    totals: dict[int, int] = {}
    for at in np.flatnonzero(found.is_work & (found.row == number)).tolist():
        name = int(found.spans["name"][at])
        totals[name] = totals.get(name, 0) + int(lengths[at])
    return totals


def _unique(call: Call, origin: Origin, taken: Counter[str]) -> str:
    """`head/linear`, and a number where a module calls for the same several times."""
    name = "/".join(filter(None, (origin.module, call.name.removeprefix("aten::"))))
    taken[name] += 1
    return name if taken[name] == 1 else f"{name} {taken[name]}"


def main_parts(found: Watched) -> list[OpRecord | None]:
    """Of every row, the op inside that does its products, or the outermost that is known; with the MACs of all."""
    spans, told = found.spans, found.kineto.ops
    best: list[OpRecord | None] = [None] * len(found.rows)
    macs = [0] * len(found.rows)
    first = dict[int, int]()  # row → the inference that tells of it
    at = np.flatnonzero((spans["kind"] == SpanKind.HOST) & (spans["op"] != NONE) & (found.row != NONE))
    for place in at[np.lexsort((-spans["end_ns"][at], spans["start_ns"][at]))].tolist():
        row, part = int(found.row[place]), told[spans["op"][place]]
        if first.setdefault(row, int(found.inference[place])) != found.inference[place] or not part.kind:
            continue
        each = round((part.macs or 0) / (part.calls or 1))
        macs[row] += each
        known = best[row]
        if known is None or each > (known.macs or 0):
            best[row] = replace(part, macs=each)
    return [part and replace(part, macs=total) for part, total in zip(best, macs, strict=True)]


def kernel_totals(found: Watched) -> tuple[KernelTotal, ...]:
    """Kernels of a device by name, of one inference."""
    count = max(1, len(inferences(found.kineto)[0]))
    totals: dict[str, list[int]] = {}
    lengths, names = found.length_ns, found.kineto.trace.names
    for at in np.flatnonzero(found.is_work & (found.inference != NONE)).tolist():
        totals.setdefault(names[found.spans["name"][at]], []).append(int(lengths[at]))
    rows = [
        KernelTotal(name, "GPU", round(len(each) / count), time_ns=round(sum(each) / count))
        for name, each in totals.items()
    ]
    return tuple(sorted(rows, key=lambda row: (-(row.time_ns or 0), row.name)))


def timeline(found: Watched) -> Trace:
    """The profiler's timeline, with rows for ops; inferences, and on a CPU the outermost ops, on lanes of their own.

    On a CPU, what ops consist of is left out: it is the same work on the same thread once more, and no host beside it.
    """
    trace = found.kineto.trace
    spans = trace.spans.copy()
    spans["op"], spans["inference"] = found.row, found.inference
    lanes = list(trace.lanes)
    marks = np.array([name == INFERENCE for name in trace.names] or [False], np.bool_)[spans["name"]]
    spans["lane"][marks & (spans["kind"] == SpanKind.PHASE)] = len(lanes)
    lanes.append(Lane(0, 0, EXECUTION, role=LaneRole.EXECUTION))
    if not found.on_device:
        spans["lane"][found.calls.span], spans["kind"][found.calls.span] = len(lanes), SpanKind.OP
        lanes.append(Lane(0, 0, ENGINE, role=LaneRole.ENGINE))
    steps = np.array([name.startswith(_STEP) for name in trace.names] or [False], np.bool_)[spans["name"]]
    kept = ~steps if found.on_device else np.isin(spans["lane"], (len(lanes) - 1, len(lanes) - 2))
    names = tuple(EXECUTION if name == INFERENCE else name for name in trace.names)
    return _of_spans(replace(trace, lanes=tuple(lanes), names=names, spans=spans), kept)


def _of_spans(trace: Trace, kept: npt.NDArray[np.bool_]) -> Trace:
    """Some of the spans, the lanes that they are on, and the edges between them; each span is a command."""
    number = np.where(kept, np.cumsum(kept) - 1, NONE)
    spans, edges = trace.spans[kept].copy(), trace.edges.copy()
    spans["command"] = np.arange(len(spans))
    for end in ("source", "target"):
        edges[end] = number[edges[end]]
    edges = edges[(edges["source"] != NONE) & (edges["target"] != NONE)]
    used = np.unique(spans["lane"])
    place = np.full(len(trace.lanes) + 1, NONE, np.int64)  # the last: of a lane without an owner
    place[used] = np.arange(len(used))
    lanes = tuple(replace(trace.lanes[lane], owner=int(place[trace.lanes[lane].owner])) for lane in used.tolist())
    spans["lane"] = place[spans["lane"]]
    return replace(trace, lanes=lanes, spans=spans, edges=edges)


def memory(found: Watched) -> tuple[MemoryTotal, ...]:
    """The most that each allocator held while inferences ran."""
    trace = found.kineto.trace
    rows = []
    for number, track in enumerate(trace.counters):
        held = trace.samples["value"][trace.samples["counter"] == number]
        if track.unit == BYTES:
            rows.append(MemoryTotal(track.name, track.device, None, int(held.max()), None, None, None, None))
    return tuple(rows)
