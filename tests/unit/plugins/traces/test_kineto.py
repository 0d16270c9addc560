from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from opscope.importers.formats import read_profile
from opscope.plugins.traces.kineto import Kineto
from opscope.recording.recording import Recording
from opscope.recording.trace import NONE, SpanKind
from support.plugins.importer_samples import op
from support.plugins.kineto_build import device_bound, events_of, launch_bound, two_streams


def read(events: Sequence[object], path: Path) -> Recording:
    document = {"schemaVersion": 1, "deviceProperties": [{"name": "G"}, {"name": "G"}], "traceEvents": events}
    path.write_text(json.dumps(document))
    found = read_profile(path)
    assert found.maker == Kineto.name
    return found


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


WHOLE = [launch_bound, device_bound, two_streams]
Make = Callable[[Path], Path]
ON_DEVICE = ("kernel", "gpu_memset", "gpu_memcpy")


def ns(microseconds: object) -> int:
    assert isinstance(microseconds, float)
    return round(microseconds * 1000)


@pytest.mark.parametrize("make", WHOLE)
def test_traces_of_whole_networks_are_joined_whole(make: Make, tmp_path: Path) -> None:
    path = make(tmp_path / "trace.json.gz")
    events, imported = events_of(path), read_profile(path)
    trace = imported.trace
    assert (imported.maker, imported.target) == ("kineto", "1 × Made-up GPU")
    assert len(trace.spans) == sum(event["ph"] == "X" for event in events) > 1000
    on_device = np.array([lane.device != NONE for lane in trace.lanes])[trace.spans["lane"]]
    launched = sum(event.get("cat") in ON_DEVICE for event in events)
    assert int(on_device.sum()) == launched == len(trace.edges) == imported.value("launches") > 500
    assert imported.notes == (f"{2 * launched} flow events are not kept",)  # a launch and its kernel are joined already
    assert set(trace.spans["kind"][on_device].tolist()) <= {SpanKind.OP, SpanKind.TRANSFER}
    assert (trace.spans["op"][on_device] != NONE).all()


@pytest.mark.parametrize("make", WHOLE)
def test_traces_of_whole_networks_lose_no_nanosecond(make: Make, tmp_path: Path) -> None:
    path = make(tmp_path / "trace.json.gz")
    imported = read_profile(path)
    spans = [event for event in events_of(path) if event["ph"] == "X"]
    on_device = sum(ns(event["dur"]) for event in spans if event["cat"] in ON_DEVICE)
    assert sum(op.time_ns or 0 for op in imported.ops) == on_device
    found = imported.trace.spans
    assert int((found["end_ns"] - found["start_ns"]).sum()) == sum(ns(event["dur"]) for event in spans)


@pytest.mark.parametrize("make", WHOLE)
def test_a_device_is_busy_or_idle_and_idle_before_or_after_a_launch(make: Make, tmp_path: Path) -> None:
    """Against every ns of the device's window, painted one by one."""
    path = make(tmp_path / "trace.json.gz")
    metrics = {metric.name: metric.value for metric in read_profile(path).metrics}
    window, busy, early = painted(events_of(path))
    assert metrics["device window"] == window
    assert metrics["device busy"] == busy
    assert metrics["device idle"] == window - busy
    assert metrics["idle before launch"] == early
    assert metrics["idle after launch"] == window - busy - early


def painted(events: Sequence[dict[str, object]]) -> tuple[int, int, int]:
    """Window, busy, and idle while the next thing to run was not launched yet; obvious and slow."""
    called = {event["id"]: ns(event["ts"]) for event in events if event["ph"] == "s"}
    work = sorted(
        (ns(event["ts"]), ns(event["dur"]), called[event["args"]["correlation"]])  # type: ignore[index]
        for event in events
        if event.get("cat") in ON_DEVICE
    )
    first = work[0][0]
    paint = np.zeros(max(start + length for start, length, _ in work) - first, np.uint8)
    for start, _, call in reversed(work):  # an earlier one paints over: of a gap, the next to run decides
        paint[: max(start - first, 0)] = 2
        paint[: max(call - first, 0)] = 3
    for start, length, _ in work:
        paint[start - first : start - first + length] = 1
    return len(paint), int((paint == 1).sum()), int((paint == 3).sum())


@pytest.mark.parametrize("make", WHOLE)
def test_lanes_hold_one_span_at_a_time(make: Make, tmp_path: Path) -> None:
    trace = read_profile(make(tmp_path / "trace.json.gz")).trace
    order = np.lexsort((trace.spans["start_ns"], trace.spans["lane"]))
    spans = trace.spans[order]
    same = spans["lane"][1:] == spans["lane"][:-1]
    assert not (same & (spans["start_ns"][1:] < spans["end_ns"][:-1])).any()


def test_what_the_profiler_takes_itself_has_a_name(tmp_path: Path) -> None:
    overhead = span("overhead", "Activity Buffer Request", 1, 4, tid=0, pid=-1)
    names = {lane.name for lane in read([*EVENTS, overhead], tmp_path / "t.json").trace.lanes}
    assert "profiler / overhead" in names


def test_idle_while_the_host_waits_for_the_device_is_told_apart_and_copies_are_added_up(tmp_path: Path) -> None:
    copied = {"External id": 1, "correlation": 8, "device": 0, "stream": 7}
    events = [
        span("cuda_runtime", "cudaLaunchKernel", 0, 1, correlation=7),
        kernel("a", 10, 2, 7, 1),
        span("cuda_runtime", "cudaDeviceSynchronize", 5, 15),  # until 20: eight of them while nothing runs
        span("cuda_runtime", "cudaMemcpyAsync", 25, 1, correlation=8),
        span("gpu_memcpy", "Memcpy DtoH", 30, 4, tid=7, pid=0, **copied),
    ]
    metrics = {m.name: m.value for m in read(events, tmp_path / "t.json").metrics}
    assert metrics["device idle"] == 18_000
    assert metrics["idle before launch"] == 13_000
    assert metrics["idle while the host waited"] == 8_000
    assert metrics["idle after launch"] == 5_000
    assert metrics["device copies"] == 4_000
