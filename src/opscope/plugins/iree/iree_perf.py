"""`ireeperf-jsonl`: what `iree-profile export` writes of a run of IREE, a record per line, keyed by `record_type`.

Dispatches on local CPU devices are host execution events; a submission with a command buffer is one inference.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from ...core.errors import ImportFileError
from ...core.provenance import Provenance
from ...importers.column_trace import op_totals, timed_ops
from ...importers.reading import LONGEST_NS, Unread, numbered
from ...importers.trace_build import Marks, build_trace
from ...importers.trace_events import CounterSamples, Spans
from ...recording.recording import LATENCY, Check, Metric, OpRecord, Placed, Recording
from ...recording.trace import NONE, CounterTrack, Lane, SpanKind

TOOL = "IREE"
PROVENANCE = Provenance.MEASURED
DISPATCH, EXECUTE = "dispatch", "execute"
_TRANSFERS = ("fill", "copy", "update")
_HOST_NS = "iree_host_time_ns"


class _Record(msgspec.Struct, gc=False):
    """The fields that are read; a record has those of its type."""

    record_type: str
    schema_version: int = 0
    op: str = ""
    key: str | None = None
    valid: bool = True
    host_time_domain: str = _HOST_NS
    physical_device_ordinal: int = 0
    queue_ordinal: int = 0
    submission_id: int = 0
    start_host_time_ns: int = NONE
    end_host_time_ns: int = NONE
    duration_ns: int = NONE
    tile_duration_sum_ns: int = 0
    workgroup_count: tuple[int, ...] = ()
    host_time_ns: int = NONE
    pool_id: int = 0
    pool_bytes_reserved: int | None = None


@dataclass(slots=True)
class _Found:
    """What the lines told."""

    version: int = 0
    events: list[_Record] = field(default_factory=list)
    memory: list[_Record] = field(default_factory=list)
    others: Counter[str] = field(default_factory=Counter)


class IreePerf:
    """Dispatches and queue operations, with the memory of the pools."""

    name = "iree-perf"

    def read(self, path: Path) -> Recording:
        """Events of the host, with op rows per dispatch; a file without events is an error."""
        unread = Unread("records")
        found = _records(path, unread)
        if not found.events:
            known = ", ".join(f"{count} {kind}" for kind, count in found.others.most_common(5)) or "nothing"
            lost = "".join(f"; {note}" for note in unread.notes())
            raise ImportFileError(
                str(path), "", f"no host_execution_event among {known}{lost}; expected a run's events"
            )
        runs, inference = _inferences(found.events)
        spans, ops, op = _spans(found.events)
        kinds = _kinds(found.events)
        marks = Marks(kinds, op=op, inference=inference)
        samples, tracks = _pools(found.memory)
        lanes = [Lane(int(device or 0), NONE, f"queue {queue}") for device, queue in spans.threads]
        trace = build_trace(spans, samples, lanes, tracks, marks=marks, provenance=PROVENANCE)
        totals = op_totals(op, spans.end - spans.start, len(ops))
        left = ", ".join(f"{count} {kind}" for kind, count in sorted(found.others.items()))
        notes = (f"records that are counted only: {left}",) if left else ()
        return Recording(
            maker=self.name,
            tool=f"{TOOL} (schema {found.version})",
            provenance=PROVENANCE,
            trace=trace,
            ops=_with_medians(timed_ops(ops, totals, inferences=runs or None), op, spans),
            metrics=tuple(_metrics(found.events, runs)),
            checks=(_durations(found.events),),
            notes=(*notes, *unread.notes()),
            target="host CPU",
            inferences=runs or None,
        )


def _records(path: Path, unread: Unread) -> _Found:
    """Records of the file by type; lines that cannot be read are counted."""
    found = _Found()
    decoder = msgspec.json.Decoder(_Record)
    for number, line in numbered(path):
        if not line.strip():
            continue
        try:
            record = decoder.decode(line)
        except (msgspec.DecodeError, msgspec.ValidationError, RecursionError) as error:
            unread.add(f"line {number}", f"{error}")
            continue
        if record.record_type == "host_execution_event" and not _is_timed(record):
            unread.add(f"line {number}", f"{record.op}: no valid time of the host")
        elif record.record_type == "host_execution_event":
            found.events.append(record)
        elif record.record_type == "memory_event" and record.pool_bytes_reserved is not None:
            found.memory.append(record)
        elif record.record_type == "schema":
            found.version = record.schema_version
        else:
            found.others[record.record_type] += 1
    return found


def _is_timed(record: _Record) -> bool:
    in_order = 0 <= record.start_host_time_ns <= record.end_host_time_ns < LONGEST_NS
    return record.valid and in_order and record.host_time_domain == _HOST_NS


def _inferences(events: list[_Record]) -> tuple[int, npt.NDArray[np.int64]]:
    """How many submissions executed a command buffer, and which of them an event is of."""
    submissions = sorted({event.submission_id for event in events if event.op == EXECUTE})
    place = {submission: number for number, submission in enumerate(submissions)}
    return len(submissions), np.array([place.get(event.submission_id, NONE) for event in events], np.int64)


def _spans(events: list[_Record]) -> tuple[Spans, tuple[OpRecord, ...], npt.NDArray[np.int64]]:
    """Columns of spans, the ops that they name, and the op of every span."""
    names: dict[str, int] = {}
    queues: dict[tuple[int, int], int] = {}
    ops: dict[str, OpRecord] = {}
    for event in events:
        if event.op == DISPATCH and event.key:
            groups = "x".join(map(str, event.workgroup_count))
            ops.setdefault(
                event.key,
                OpRecord(event.key, type=DISPATCH, placed=Placed.CPU, engines=("CPU",), kernel=event.key, shape=groups),
            )
    position = {name: number for number, name in enumerate(ops)}
    rows = [
        (
            queues.setdefault((event.physical_device_ordinal, event.queue_ordinal), len(queues)),
            names.setdefault(event.key or event.op, len(names)),
            event.start_host_time_ns,
            event.end_host_time_ns,
            position.get(event.key or "", NONE) if event.op == DISPATCH else NONE,
        )
        for event in events
    ]
    table = np.array(rows, np.int64).reshape(-1, 5)
    threads: list[tuple[int | str | None, int | str | None]] = [*queues]
    queue, name, start, end, op = table.T
    spans = Spans(threads, list(names), queue, name, start, end, np.arange(len(table)))
    return spans, tuple(ops.values()), op


def _kinds(events: list[_Record]) -> npt.NDArray[np.int64]:
    kinds = {DISPATCH: SpanKind.OP, EXECUTE: SpanKind.PHASE} | dict.fromkeys(_TRANSFERS, SpanKind.TRANSFER)
    return np.array([kinds.get(event.op, SpanKind.HOST) for event in events], np.int64)


def _pools(events: list[_Record]) -> tuple[CounterSamples, tuple[CounterTrack, ...]]:
    """Bytes reserved in every pool."""
    pools = {pool: n for n, pool in enumerate(dict.fromkeys(event.pool_id for event in events))}
    timed = [event for event in events if 0 <= event.host_time_ns < LONGEST_NS]
    tracks = tuple(CounterTrack(0, NONE, f"pool {n} reserved", "bytes") for n in pools.values())
    return CounterSamples(
        [],
        np.array([pools[event.pool_id] for event in timed], np.int64),
        np.array([event.host_time_ns for event in timed], np.int64),
        np.array([event.pool_bytes_reserved for event in timed], np.float64),
    ), tracks


def _with_medians(ops: tuple[OpRecord, ...], op: npt.NDArray[np.int64], spans: Spans) -> tuple[OpRecord, ...]:
    length = spans.end - spans.start
    order = np.lexsort((length, op))
    ranked, owner = length[order], op[order]
    low, high = (np.searchsorted(owner, np.arange(len(ops)), side).tolist() for side in ("left", "right"))
    return tuple(
        replace(one, median_ns=round(float(np.median(ranked[first:last])))) if last > first else one
        for one, first, last in zip(ops, low, high, strict=True)
    )


def _metrics(events: list[_Record], runs: int) -> list[Metric]:
    whole = [event.end_host_time_ns - event.start_host_time_ns for event in events if event.op == EXECUTE]
    tiles = sum(event.tile_duration_sum_ns for event in events if event.op == DISPATCH)
    result = [Metric("inferences", runs, "1"), Metric("dispatches", sum(e.op == DISPATCH for e in events), "1")]
    if whole:
        result.append(Metric(LATENCY, round(sum(whole) / len(whole)), "ns"))
        result.append(Metric("time of all threads per inference", round(tiles / runs), "ns"))
    return result


def _durations(events: list[_Record]) -> Check:
    wrong = sum(e.duration_ns not in (NONE, e.end_host_time_ns - e.start_host_time_ns) for e in events)
    return Check("duration = end − start", not wrong, f"{wrong} of {len(events)} events differ")
