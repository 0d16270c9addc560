"""Any Trace Event JSON → Trace: one lane per thread and level of nesting, one op per name."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np

from ...importers.reading import read_bytes
from ...importers.trace_build import Marks, build_trace, thread_label
from ...importers.trace_events import Events, Key, Spans, decode_events
from ...recording.imported import PROVENANCES, Imported, ImportedOp, Metric
from ...recording.trace import NONE, CounterTrack, Lane, SpanKind


class TraceJson:
    """Times are inclusive: what a nested span takes counts for the spans around it too."""

    name = "trace-events"

    def read(self, path: Path) -> Imported:
        file = decode_events(read_bytes(path), source=str(path))
        spans, samples = file.spans(), file.samples()
        processes, threads = file.names()
        numbers: dict[Key, int] = {}
        lanes = [
            Lane(numbers.setdefault(key[0], len(numbers)), NONE, thread_label(key, processes, threads))
            for key in spans.threads
        ]
        tracks = [CounterTrack(numbers.setdefault(pid, len(numbers)), NONE, title, "") for pid, title in samples.tracks]
        provenance = _provenance(file)
        marks = Marks(SpanKind.OP, op=spans.name)
        trace = build_trace(spans, samples, lanes, tracks, marks=marks, provenance=provenance)
        wall = int(trace.spans["end_ns"].max(initial=0))
        metrics = (Metric("wall", wall, "ns"), Metric("spans", len(spans.start), "1"))
        return Imported(
            format=self.name,
            source=str(path),
            tool="Trace Event JSON",
            provenance=provenance,
            trace=trace,
            ops=ops_by_name(spans),
            metrics=metrics,
            notes=_notes(file),
        )


class _Data(msgspec.Struct):
    provenance: str = "measured"


def _provenance(file: Events) -> str:
    """As the file says, which ours do; without a word, times of a timeline are taken for measured."""
    try:
        data = msgspec.json.decode(file.head.otherData, type=_Data) if file.head is not None else _Data()
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return "measured"
    return data.provenance if data.provenance in PROVENANCES else "measured"


def ops_by_name(spans: Spans) -> tuple[ImportedOp, ...]:
    """One op for every name of a span."""
    count = np.bincount(spans.name, minlength=len(spans.names)).tolist()
    total = np.bincount(spans.name, spans.end - spans.start, minlength=len(spans.names)).tolist()
    return tuple(
        ImportedOp(name, calls=calls, time_ns=round(time))
        for name, calls, time in zip(spans.names, count, total, strict=True)
    )


def _notes(file: Events) -> tuple[str, ...]:
    count = file.with_args()
    kept = [f"arguments of {count} spans are not kept"] if count else []
    return (*kept, *file.left_out())
