"""Host events on the axis of a sample."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from opscope.core.errors import UsageError
from opscope.importers.host_trace import ActivationError, read_host_trace
from opscope.recording.trace import NONE, SpanKind, Trace


def read(folder: Path, content: object, *, origin: int = 0, activation: int = 0) -> Trace:
    path = folder / "host.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return read_host_trace(path, stats_hz=1e6, origin_tick=origin, activation=activation)


def spans(trace: Trace) -> list[tuple[str, str, int, int]]:
    return [
        (trace.lanes[s["lane"]].name, trace.names[s["name"]], int(s["start_ns"]), int(s["end_ns"])) for s in trace.spans
    ]


def test_microseconds_of_the_timer_become_nanoseconds_from_the_origin(tmp_path: Path) -> None:
    trace = read(tmp_path, [{"ph": "X", "name": "a", "pid": 1, "tid": 2, "ts": 107.5, "dur": 0.25}], origin=100)
    assert spans(trace) == [("host 1/2", "a", 7500, 7750)]
    assert trace.lanes[0].device == NONE
    assert trace.spans["kind"].tolist() == [SpanKind.HOST]


def test_another_zero_can_be_given_in_ticks(tmp_path: Path) -> None:
    events = [{"ph": "X", "name": "a", "pid": 1, "tid": 2, "ts": 1, "dur": 1}]
    trace = read(tmp_path, {"traceEvents": events, "otherData": {"ticks_at_zero": 150}}, origin=100)
    assert spans(trace) == [("host 1/2", "a", 51_000, 52_000)]


def test_begins_and_ends_are_paired_and_threads_keep_their_names(tmp_path: Path) -> None:
    events = [
        {"ph": "M", "name": "thread_name", "pid": 1, "tid": 0, "args": {"name": "Runtime"}},
        {"ph": "B", "name": "outer", "pid": 1, "tid": 0, "ts": 0},
        {"ph": "B", "name": "inner", "pid": 1, "tid": 0, "ts": 1},
        {"ph": "E", "pid": 1, "tid": 0, "ts": 2},
        {"ph": "E", "pid": 1, "tid": 0, "ts": 5},
        {"ph": "i", "name": "instant", "pid": 1, "tid": 0, "ts": 5},
    ]
    assert sorted(spans(read(tmp_path, {"traceEvents": events}))) == [
        ("Runtime", "inner", 1000, 2000),
        ("Runtime", "outer", 0, 5000),
    ]


def test_of_a_trace_with_the_device_in_it_only_the_host_is_taken(tmp_path: Path) -> None:
    events = [
        {"ph": "M", "name": "process_name", "pid": 18, "args": {"name": "HOST_PROC network"}},
        {"ph": "M", "name": "process_name", "pid": 2000, "args": {"name": "network_Core_0"}},
        {"ph": "X", "name": "submit", "pid": 18, "tid": 1, "ts": 1, "dur": 1},
        {"ph": "X", "name": "elementadd", "pid": 2000, "tid": 9, "ts": 1, "dur": 1},
    ]
    assert [name for _, name, _, _ in spans(read(tmp_path, events))] == ["submit"]


def test_a_trace_of_devices_alone_is_no_host_trace(tmp_path: Path) -> None:
    cores = [
        {"ph": "M", "name": "process_name", "pid": 2000 + n, "args": {"name": name}}
        for n, name in enumerate(
            ("QAicGraph_Core_0", "Program:BenchmarkSet_10 [QAicGraph_Core_1]", "QAicGraph Device 0")
        )
    ]
    events = [{"ph": "X", "name": "aicsoftmax", "pid": 2000 + n, "tid": 1, "ts": 1, "dur": 1} for n in range(3)]
    with pytest.raises(
        UsageError, match=r"no event of a host; expected the trace that the run wrote, with its stages$"
    ):
        read(tmp_path, cores + events)
    other = [{"ph": "X", "name": "mine", "pid": 7, "tid": 1, "ts": 1, "dur": 1}]
    assert [name for _, name, _, _ in spans(read(tmp_path, cores + events + other))] == ["mine"]


def test_a_span_that_only_overlaps_goes_to_a_lane_of_its_own(tmp_path: Path) -> None:
    times = {"a": (0, 10), "b": (2, 3), "c": (8, 4), "d": (9, 1)}
    events = [{"ph": "X", "name": n, "pid": 1, "tid": 1, "ts": t, "dur": d} for n, (t, d) in times.items()]
    lanes = {name: lane for lane, name, _, _ in spans(read(tmp_path, events))}
    assert lanes == {"a": "host 1/1", "b": "host 1/1", "c": "host 1/1 2", "d": "host 1/1"}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("nonsense", "is no Chrome trace"),
        ({"traceEvents": [{"ph": "X", "ts": "soon"}]}, "is no Chrome trace"),
        ({"traceEvents": [], "otherData": {"ticks_at_zero": "x"}}, "expected a number of ticks"),
        ([{"ph": "X", "name": "a", "ts": 1e300}], "expected times below 2^62 ns"),
        ("[" * 100_000, "is no Chrome trace"),
    ],
)
def test_what_is_no_host_trace_is_refused(tmp_path: Path, content: object, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        read(tmp_path, content)
    assert words in str(caught.value)


def test_bytes_that_are_no_text_are_told(tmp_path: Path) -> None:
    path = tmp_path / "host.json"
    path.write_bytes(b'{"traceEvents": [{"name": "\xbc"}]}')
    with pytest.raises(UsageError, match=r"host.json: is no Chrome trace \('utf-8' codec can't decode byte 0xbc"):
        read_host_trace(path, stats_hz=1e6, origin_tick=0, activation=0)


def test_threads_of_another_activation_are_left_out(tmp_path: Path) -> None:
    names = ("Activation 0 Runtime", "Activation 2 Runtime", "driver")
    events: list[dict[str, object]] = [
        {"ph": "M", "name": "thread_name", "pid": 1, "tid": n, "args": {"name": name}} for n, name in enumerate(names)
    ]
    events += [{"ph": "X", "name": name, "pid": 1, "tid": n, "ts": 1, "dur": 1} for n, name in enumerate(names)]
    assert [lane.name for lane in read(tmp_path, events, activation=2).lanes] == ["Activation 2 Runtime", "driver"]
    with pytest.raises(
        ActivationError, match=r"host\.json: of activation 0, 2; expected the host trace of activation 1"
    ):
        read(tmp_path, events, activation=1)


def test_spans_that_touch_share_a_lane_however_their_sum_is_rounded(tmp_path: Path) -> None:
    events = [  # as numbers, 0.1 + 0.2 is more than 0.3
        {"ph": "X", "name": "a", "pid": 1, "tid": 1, "ts": 0.1, "dur": 0.2},
        {"ph": "X", "name": "b", "pid": 1, "tid": 1, "ts": 0.3, "dur": 1.0},
    ]
    assert len(read(tmp_path, events).lanes) == 1
