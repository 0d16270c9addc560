"""What trtexec exports of every inference (`--exportTimes`): when it was enqueued, copied in, computed, copied out.

Since TensorRT 8 copies are `H2d` and `D2h`; before, `In` and `Out`. Host and device have clocks of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

import msgspec
import numpy as np

from ...core.errors import ImportFileError
from ...core.json_files import decode_json
from ...core.meaning import Does, LaneRole
from ...core.provenance import Provenance
from ...importers.column_trace import SpanColumns, column_trace
from ...importers.reading import Unread, read_bytes, to_ns
from ...importers.trace_build import LONGEST_AXIS_NS
from ...recording.recording import LATENCY, Check, Metric, Recording
from ...recording.trace import NONE, Lane, SpanKind, Trace
from .tensorrt import TOOL

_MS = 1e6
_PERCENTILES = (90, 95, 99)
_SLACK_NS = 2_000  # of a sum of three: every figure is rounded to six digits


class _Times(msgspec.Struct):
    """One inference; a name for each of the two spellings."""

    start_enqueue: float = msgspec.field(name="startEnqMs")
    end_enqueue: float = msgspec.field(name="endEnqMs")
    start_compute: float = msgspec.field(name="startComputeMs")
    end_compute: float = msgspec.field(name="endComputeMs")
    latency: float = msgspec.field(name="latencyMs")
    start_h2d: float | None = msgspec.field(name="startH2dMs", default=None)
    end_h2d: float | None = msgspec.field(name="endH2dMs", default=None)
    start_d2h: float | None = msgspec.field(name="startD2hMs", default=None)
    end_d2h: float | None = msgspec.field(name="endD2hMs", default=None)
    start_in: float | None = msgspec.field(name="startInMs", default=None)
    end_in: float | None = msgspec.field(name="endInMs", default=None)
    start_out: float | None = msgspec.field(name="startOutMs", default=None)
    end_out: float | None = msgspec.field(name="endOutMs", default=None)


_ENTRIES = msgspec.json.Decoder(list[msgspec.Raw])
_Row = tuple[tuple[int, int], tuple[int, int], tuple[int, int], tuple[int, int], int]  # four stages, latency; ns
_STAGES = (  # name, lane, what a span of it is
    ("enqueue", Lane(NONE, NONE, "enqueue", role=LaneRole.HOST), SpanKind.HOST, Does.LAUNCH),
    ("copy in", Lane(0, NONE, "copy in", role=LaneRole.TRANSFER), SpanKind.TRANSFER, Does.MOVE),
    ("compute", Lane(0, NONE, "compute", role=LaneRole.ENGINE), SpanKind.OP, Does.COMPUTE),
    ("copy out", Lane(0, NONE, "copy out", role=LaneRole.TRANSFER), SpanKind.TRANSFER, Does.MOVE),
)


class TensorRtTimes:
    """One entry per inference; times are milliseconds from the start of the measurement."""

    name = "tensorrt-times"

    def read(self, path: Path) -> Recording:
        """Every inference as a sample and as spans; how its parts spread."""
        unread = Unread("entries")
        rows = list(_rows(path, unread))
        if not rows:
            raise ImportFileError(str(path), "", "no inference that can be read; expected the times of inferences")
        samples = [row[4] for row in rows]
        parts = [[stage[1] - stage[0] for stage in stages] for *stages, _ in rows]
        return Recording(
            maker=self.name,
            tool=TOOL,
            provenance=Provenance.MEASURED,
            trace=_trace(rows),
            metrics=tuple(_metrics(rows, samples, parts)),
            samples_ns=tuple(samples),
            checks=(_check(samples, parts),),
            inferences=len(rows),
            notes=(
                "host and device count from their own start: enqueueing and computing are not on one clock to the last",
                "releases before 10 write the warm-up down too, and nothing marks it",
                *unread.notes(),
            ),
        )


def _rows(path: Path, unread: Unread) -> list[_Row]:
    decoder = msgspec.json.Decoder(_Times)
    found: list[_Row] = []
    entries = decode_json(read_bytes(path), _ENTRIES, source=str(path))
    for number, raw in enumerate(entries):
        try:
            row = _row(decoder.decode(raw))
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            unread.add(f"entry {number}", str(error))
            continue
        if row is None:
            unread.add(f"entry {number}", "a time is missing, negative or ends before it starts")
        else:
            found.append(row)
    return found


def _row(times: _Times) -> _Row | None:
    stages = (
        (times.start_enqueue, times.end_enqueue),
        (_first(times.start_h2d, times.start_in), _first(times.end_h2d, times.end_in)),
        (times.start_compute, times.end_compute),
        (_first(times.start_d2h, times.start_out), _first(times.end_d2h, times.end_out)),
    )
    latency = to_ns(times.latency, _MS)
    spans = [(to_ns(start, _MS), to_ns(end, _MS)) for start, end in stages]
    known = [
        (start, end) for start, end in spans if start is not None and end is not None and start <= end < LONGEST_AXIS_NS
    ]
    if latency is None or len(known) < len(stages):
        return None
    return known[0], known[1], known[2], known[3], latency


def _first(one: float | None, other: float | None) -> float | None:
    return other if one is None else one


def _trace(rows: Sequence[_Row]) -> Trace:
    count = len(rows)
    stage = np.tile(np.arange(len(_STAGES)), count)
    ends = np.array([list(stages) for *stages, _ in rows], np.int64).reshape(-1, 2)
    columns = SpanColumns(
        lane=stage,
        name=stage,
        start_ns=ends[:, 0],
        end_ns=ends[:, 1],
        kind=np.array([kind.value for _, _, kind, _ in _STAGES])[stage],
        does=np.array([does.value for *_, does in _STAGES])[stage],
        inference=np.repeat(np.arange(count), len(_STAGES)),
    )
    lanes = [lane for _, lane, _, _ in _STAGES]
    return column_trace(columns, lanes, [name for name, *_ in _STAGES], provenance=Provenance.MEASURED)


def _metrics(rows: Sequence[_Row], samples: Sequence[int], parts: Sequence[Sequence[int]]) -> list[Metric]:
    """Throughput is inferences over the device's window, as the tool has it."""
    window = max(row[3][1] for row in rows) - min(row[1][0] for row in rows)
    found = [
        Metric(LATENCY, float(np.median(samples)), "ns"),
        Metric("latency, mean", fmean(samples), "ns"),
        Metric("latency, least", min(samples), "ns"),
        Metric("latency, most", max(samples), "ns"),
        *(Metric(f"latency, {p} %", float(np.percentile(samples, p)), "ns") for p in _PERCENTILES),
        Metric("runs", len(rows), "1"),
    ]
    for number, (name, *_) in enumerate(_STAGES):
        values = [part[number] for part in parts]
        found += [Metric(f"{name}, median", float(np.median(values)), "ns"), Metric(f"{name}, most", max(values), "ns")]
    if window > 0:
        found.append(Metric("throughput", len(rows) * 1e9 / window, "1/s"))
    return found


def _check(samples: Sequence[int], parts: Sequence[Sequence[int]]) -> Check:
    """The latency of an inference is its copies and its computing."""
    wrong = [n for n, (whole, part) in enumerate(zip(samples, parts, strict=True)) if not _adds_up(whole, part)]
    detail = f"{len(samples) - len(wrong)} of {len(samples)} inferences" + (f"; not {wrong[0]}" if wrong else "")
    return Check("latency = copy in + compute + copy out", not wrong, detail)


def _adds_up(whole: int, part: Sequence[int]) -> bool:
    return abs(whole - sum(part[1:])) <= _SLACK_NS + whole * 1e-4
