"""Any Trace Event JSON → Trace: one lane per thread and level of nesting, one op per name."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np

from ...core.provenance import Provenance
from ...importers.reading import read_bytes
from ...importers.trace_build import Marks, build_trace, thread_label
from ...importers.trace_events import Events, Key, Spans, decode_events
from ...recording.recording import Metric, OpRecord, Recording
from ...recording.trace import NONE, CounterTrack, Lane, SpanKind


class TraceJson:
    """Times are inclusive: what a nested span takes counts for the spans around it too."""

    name = "trace-events"

    def read(self, path: Path) -> Recording:
        """A row per name of a span, and a lane per thread and level of nesting."""
        file = decode_events(read_bytes(path), source=str(path))
        about = _about(file)
        if about.overview_tids:  # of ours: rows that show again what others have
            shown = [event for event in file.events if event.tid not in about.overview_tids]
            file = Events(shown, file.head, file.unread, file.notes)
        spans, samples = file.spans(), file.samples()
        processes, threads = file.names()
        numbers: dict[Key, int] = {}
        lanes = [
            Lane(numbers.setdefault(key[0], len(numbers)), NONE, thread_label(key, processes, threads))
            for key in spans.threads
        ]
        tracks = [CounterTrack(numbers.setdefault(pid, len(numbers)), NONE, title, "") for pid, title in samples.tracks]
        provenance = about.provenance
        marks = Marks(SpanKind.OP, op=spans.name)
        trace = build_trace(spans, samples, lanes, tracks, marks=marks, provenance=provenance)
        wall = int(trace.spans["end_ns"].max(initial=0))
        metrics = (Metric("wall", wall, "ns"), Metric("spans", len(spans.start), "1"))
        return Recording(
            maker=self.name,
            tool="Trace Event JSON",
            provenance=provenance,
            trace=trace,
            ops=ops_by_name(spans),
            metrics=metrics,
            notes=_notes(file),
        )


class _Data(msgspec.Struct):
    provenance: Provenance = Provenance.MEASURED
    overview_tids: frozenset[int] = frozenset()


def _about(file: Events) -> _Data:
    """What the file says of itself, as ours do; without a word, times of a timeline are taken for measured."""
    try:
        return msgspec.json.decode(file.head.otherData, type=_Data) if file.head is not None else _Data()
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return _Data()


def ops_by_name(spans: Spans) -> tuple[OpRecord, ...]:
    """One op for every name of a span."""
    count = np.bincount(spans.name, minlength=len(spans.names)).tolist()
    total = np.bincount(spans.name, spans.end - spans.start, minlength=len(spans.names)).tolist()
    return tuple(
        OpRecord(name, calls=calls, time_ns=round(time))
        for name, calls, time in zip(spans.names, count, total, strict=True)
    )


def _notes(file: Events) -> tuple[str, ...]:
    count = file.with_args()
    kept = [f"arguments of {count} spans are not kept"] if count else []
    return (*kept, *file.left_out())
