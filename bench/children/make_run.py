"""Leave a Run of so many spans in a folder: lanes of a large machine at work, waiting and moving bytes."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from opscope.core.provenance import Provenance
from opscope.recording.build import to_run
from opscope.recording.folder_writer import write_run
from opscope.recording.recording import Metric, OpRecord, Recording
from opscope.recording.trace import COUNTER, EDGE, NONE, Lane, SpanKind, Trace, blank_spans

LANES, OPS, INFERENCES = 192, 2000, 4


def trace_of(count: int, seed: int) -> Trace:
    rng = np.random.default_rng(seed)
    spans = blank_spans(count)
    spans["lane"] = np.arange(count) % LANES
    spans["inference"] = np.arange(count) * INFERENCES // count
    spans["kind"] = rng.choice([SpanKind.OP, SpanKind.WAIT, SpanKind.TRANSFER], count, p=[0.6, 0.25, 0.15])
    place = np.arange(count) % (count // INFERENCES) // LANES  # of its lane
    spans["op"] = np.where(spans["kind"] == SpanKind.WAIT, NONE, place * OPS // (count // INFERENCES // LANES + 1))
    spans["start_ns"] = spans["inference"] * np.int64(10**9) + place * 5000 + rng.integers(0, 500, count)
    spans["end_ns"] = spans["start_ns"] + rng.integers(500, 4500, count)
    spans["command"] = spans["ucycles"] = spans["pcycles"] = spans["waits_on"] = NONE
    lanes = tuple(Lane(0, number // 3, ("HVX", "HMX", "DMA")[number % 3]) for number in range(LANES))
    return Trace(lanes, ("work",), spans, np.zeros(0, EDGE), (), np.zeros(0, COUNTER), Provenance.MEASURED)


def main() -> None:
    count, seed, folder = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    trace = trace_of(count, seed)
    ops = tuple(OpRecord(f"/layer.{n // 20}/op_{n % 20}/MatMul", type="MatMul", time_ns=1000 + n) for n in range(OPS))
    latency = int(trace.spans["end_ns"].max()) % 10**9
    recording = Recording("bench", Provenance.MEASURED, trace, ops, metrics=(Metric("latency", latency, "ns"),))
    write_run(to_run(recording, command=(), created="2026-01-01T00:00:00+00:00", sha256=None), folder)


if __name__ == "__main__":
    main()
