from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from importer_samples import op, shared
from opscope.importers.formats import read_profile
from opscope.plugins.traces.kineto import Kineto
from opscope.recording.recording import Recording
from opscope.recording.trace import NONE, SpanKind


def read(events: Sequence[object], path: Path) -> Recording:
    document = {"schemaVersion": 1, "deviceProperties": [{"name": "G"}, {"name": "G"}], "traceEvents": events}
    path.write_text(json.dumps(document))
    assert Kineto().looks_like(path.read_bytes(), "")
    return Kineto().read(path)


def span(
    cat: str, name: str, ts: float, dur: float, *, tid: int = 1, pid: int = 9, **args: object
) -> dict[str, object]:
    return {"ph": "X", "cat": cat, "name": name, "ts": ts, "dur": dur, "pid": pid, "tid": tid, "args": args}


def kernel(name: str, ts: float, dur: float, correlation: int, external: int) -> dict[str, object]:
    more = {"External id": external, "correlation": correlation, "device": 0, "stream": 7}
    return span("kernel", name, ts, dur, tid=7, pid=0, **more)


EVENTS = [
    span("cpu_op", "linear", 0, 20, **{"External id": 1, "Input Dims": [[1, 8]]}),
    span("cpu_op", "addmm", 2, 15, **{"External id": 2, "Input Dims": [[8]]}),
    span("cuda_runtime", "launch", 5, 3, correlation=100),
    span("cuda_runtime", "launch", 9, 3, correlation=101),
    kernel("gemm", 10, 4, 100, 2),
    kernel("bias", 15, 2, 101, 2),
    kernel("late", 30, 1, 999, 77),
]


def test_kernels_are_joined_to_their_launch_and_to_the_innermost_op(tmp_path: Path) -> None:
    imported = read(EVENTS, tmp_path / "t.json")
    assert (op(imported, "addmm").time_ns, op(imported, "addmm").host_ns) == (6000, 15_000)
    assert (op(imported, "linear").time_ns, op(imported, "linear").host_ns) == (0, 20_000)
    assert op(imported, "addmm").kernel == "gemm"
    assert op(imported, "linear").shape == "[[1, 8]]"
    assert imported.trace.edges[["source", "target"]].tolist() == [(2, 4), (3, 5)]
    assert imported.target == "2 × G"


def test_kernels_that_join_nothing_are_counted(tmp_path: Path) -> None:
    assert read(EVENTS, tmp_path / "t.json").notes == (
        "1 of 3 kernels have no host op in this file",
        "1 of 3 kernels have no launch call in this file",
    )


def test_device_idle_is_split_at_the_launch(tmp_path: Path) -> None:
    metrics = {m.name: m.value for m in read(EVENTS, tmp_path / "t.json").metrics}
    assert metrics["device window"] == 21_000
    assert metrics["device busy"] == 7_000
    assert metrics["device idle"] == 14_000
    assert metrics["idle before launch"] == 0
    assert metrics["idle after launch"] == 1_000  # of the last gap nobody knows: its kernel has no launch
    assert metrics["launch to start, median"] == 5_500


def test_a_device_that_waits_for_the_host_is_idle_before_the_launch(tmp_path: Path) -> None:
    events = [
        *EVENTS[2:3],
        kernel("a", 10, 2, 100, 1),
        span("cuda_runtime", "launch", 20, 1, correlation=7),
        kernel("b", 25, 1, 7, 1),
    ]
    metrics = {m.name: m.value for m in read(events, tmp_path / "t.json").metrics}
    assert (metrics["idle before launch"], metrics["idle after launch"]) == (8_000, 5_000)


def test_arguments_of_another_form_are_counted(tmp_path: Path) -> None:
    imported = read([span("cpu_op", "a", 0, 1, **{"External id": [1]}), *EVENTS[:1]], tmp_path / "t.json")
    assert imported.notes[0].startswith("1 spans have arguments of another form")


REAL = {  # file → spans, kernels and copies, lanes of the device, ns of all kernels by hand (sum of dur)
    "bert_base_b1": (4298, 531),
    "resnet50_b1": (5406, 1026),
    "vit_b_16_b8": (4295, 429),
}


@pytest.mark.parametrize("name", REAL)
def test_real_traces_are_joined_whole(name: str) -> None:
    imported = read_profile(shared(f"kineto/{name}.json.gz"))
    spans, kernels = REAL[name]
    trace = imported.trace
    assert imported.maker == "kineto"
    assert imported.target == "1 × NVIDIA H200"
    assert len(trace.spans) == spans
    on_device = np.array([lane.device != NONE for lane in trace.lanes])[trace.spans["lane"]]
    assert int(on_device.sum()) == kernels == len(trace.edges) == imported.value("launches")
    assert set(trace.spans["kind"][on_device].tolist()) <= {SpanKind.OP, SpanKind.TRANSFER}
    assert (trace.spans["op"][on_device] != NONE).all()


@pytest.mark.parametrize("name", REAL)
def test_real_traces_lose_no_nanosecond(name: str) -> None:
    import gzip

    path = shared(f"kineto/{name}.json.gz")
    imported = read_profile(path)
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    durations = [round(e["dur"] * 1000) for e in events if e.get("cat") in ("kernel", "gpu_memset", "gpu_memcpy")]
    assert sum(op.time_ns or 0 for op in imported.ops) == sum(durations)
    whole = sum(round(e["dur"] * 1000) for e in events if e["ph"] == "X")
    spans = imported.trace.spans
    assert int((spans["end_ns"] - spans["start_ns"]).sum()) == whole
    metrics = {m.name: m.value for m in imported.metrics}
    assert metrics["device busy"] == sum(durations)  # one stream: kernels do not overlap
    assert metrics["device busy"] + metrics["device idle"] == metrics["device window"]
    assert metrics["idle before launch"] + metrics["idle after launch"] == metrics["device idle"]


def test_lanes_of_a_real_trace_hold_one_span_at_a_time() -> None:
    trace = read_profile(shared("kineto/bert_base_b1.json.gz")).trace
    order = np.lexsort((trace.spans["start_ns"], trace.spans["lane"]))
    spans = trace.spans[order]
    same = spans["lane"][1:] == spans["lane"][:-1]
    assert not (same & (spans["start_ns"][1:] < spans["end_ns"][:-1])).any()


def test_what_the_profiler_takes_itself_has_a_name(tmp_path: Path) -> None:
    overhead = span("overhead", "Activity Buffer Request", 1, 4, tid=0, pid=-1)
    names = {lane.name for lane in read([*EVENTS, overhead], tmp_path / "t.json").trace.lanes}
    assert "profiler / overhead" in names
