from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from opscope.core.errors import ImportFileError
from opscope.plugins.traces.trace_json import TraceJson
from opscope.recording.recording import Recording

Event = dict[str, object]


def read(content: object, path: Path) -> Recording:
    raw = content if isinstance(content, bytes) else json.dumps(content).encode()
    path.write_bytes(raw)
    return TraceJson().read(path)


def x(name: str, ts: float, dur: float, tid: int | str = 1, pid: int | str = 1) -> Event:
    return {"ph": "X", "name": name, "ts": ts, "dur": dur, "pid": pid, "tid": tid}


def rows(imported: Recording) -> list[tuple[str, str, int, int]]:
    trace = imported.trace
    return [
        (trace.lanes[lane].name, trace.names[name], start, end)
        for lane, name, start, end in zip(
            *(trace.spans[k].tolist() for k in ("lane", "name", "start_ns", "end_ns")), strict=True
        )
    ]


def test_object_and_array_form_plain_and_packed_give_the_same(tmp_path: Path) -> None:
    events = [x("a", 10, 2), x("b", 12, 1.5)]
    forms: list[object] = [events, {"traceEvents": events}, gzip.compress(json.dumps(events).encode())]
    for form in forms:
        assert rows(read(form, tmp_path / "t")) == [("1 / 1", "a", 0, 2000), ("1 / 1", "b", 2000, 3500)]


def test_the_array_need_not_be_closed(tmp_path: Path) -> None:
    imported = read(b'[{"ph":"X","name":"a","ts":1,"dur":1},\n{"ph":"X","name":"b","ts":2,"dur":1},\n', tmp_path / "t")
    assert len(imported.trace.spans) == 2
    assert "the array is not closed: the file may be cut short" in imported.notes


def test_begin_and_end_pair_by_thread_and_nest(tmp_path: Path) -> None:
    events = [
        {"ph": "B", "name": "outer", "ts": 0, "pid": 1, "tid": 1},
        {"ph": "B", "name": "inner", "ts": 1, "pid": 1, "tid": 1},
        {"ph": "B", "name": "other", "ts": 1, "pid": 1, "tid": 2},
        {"ph": "E", "ts": 2, "pid": 1, "tid": 1},
        {"ph": "E", "ts": 3, "pid": 1, "tid": 1},
        {"ph": "E", "ts": 9, "pid": 1, "tid": 2},
    ]
    assert sorted(rows(read(events, tmp_path / "t"))) == [
        ("1 / 1", "outer", 0, 3000),
        ("1 / 1 2", "inner", 1000, 2000),
        ("1 / 2", "other", 1000, 9000),
    ]


def test_begin_without_end_and_end_without_begin_are_counted(tmp_path: Path) -> None:
    events = [x("a", 0, 1), {"ph": "B", "name": "open", "ts": 1}, {"ph": "E", "name": "shut", "ts": 2, "tid": 9}]
    (note,) = read(events, tmp_path / "t").notes
    assert note == "2 events could not be read: event 2: end without a begin: shut; event 1: begin without an end: open"


def test_begin_and_end_of_an_id_pair_by_it(tmp_path: Path) -> None:
    events = [
        {"ph": "b", "cat": "net", "id": "0x1", "name": "get", "ts": 0, "pid": 1},
        {"ph": "b", "cat": "net", "id": "0x2", "name": "get", "ts": 1, "pid": 1},
        {"ph": "e", "cat": "net", "id": "0x1", "name": "get", "ts": 5, "pid": 1},
        {"ph": "e", "cat": "net", "id": "0x2", "name": "get", "ts": 7, "pid": 1},
    ]
    assert sorted(rows(read(events, tmp_path / "t"))) == [
        ("1 / async net", "get", 0, 5000),
        ("1 / async net 2", "get", 1000, 7000),
    ]


def test_spans_that_overlap_are_all_kept_on_lanes_of_their_own(tmp_path: Path) -> None:
    imported = read([x("a", 0, 4), x("b", 2, 4), x("c", 3, 4), x("d", 4, 1)], tmp_path / "t")
    assert len(imported.trace.spans) == 4
    ends: dict[str, int] = {}
    for lane, _, start, end in sorted(rows(imported), key=lambda row: row[2]):
        assert start >= ends.get(lane, 0)
        ends[lane] = end


def test_processes_and_threads_may_be_named_by_words_and_have_names(tmp_path: Path) -> None:
    events = [
        {"ph": "M", "name": "process_name", "pid": "p", "args": {"name": "worker"}},
        {"ph": "M", "name": "process_labels", "pid": "p", "args": {"labels": "GPU 0"}},
        {"ph": "M", "name": "thread_name", "pid": "p", "tid": "t", "args": {"name": "stream"}},
        x("a", 0, 1, "t", "p"),
        x("b", 0, 1, 7, "q"),
        {"ph": "X", "name": "c", "ts": 0, "dur": 1},
    ]
    assert [row[0] for row in rows(read(events, tmp_path / "t"))] == ["worker [GPU 0] / stream", "q / 7", "- / -"]


def test_two_threads_of_the_same_name_stay_two_lanes(tmp_path: Path) -> None:
    names = [{"ph": "M", "name": "thread_name", "pid": 1, "tid": t, "args": {"name": "worker"}} for t in (1, 2, 3)]
    imported = read([*names, x("a", 0, 1, 1), x("b", 0, 1, 2), x("c", 0, 1, 3)], tmp_path / "t")
    assert [lane.name for lane in imported.trace.lanes] == ["1 / worker", "1 / worker (2)", "1 / worker (3)"]
    assert len(set(imported.trace.lanes)) == 3


def test_counters_have_a_track_per_series(tmp_path: Path) -> None:
    events = [
        x("a", 5, 1),
        {"ph": "C", "name": "freq", "pid": 1, "ts": 6, "args": {"MHz": 1200.5}},
        {"ph": "C", "name": "memory", "pid": 1, "ts": 7, "args": {"used": 1, "free": "2"}},
        {"ph": "C", "name": "odd", "pid": 1, "ts": 7, "args": {"x": [1]}},
    ]
    imported = read(events, tmp_path / "t")
    assert [track.name for track in imported.trace.counters] == ["freq", "memory used", "memory free"]
    assert imported.trace.samples.tolist() == [(0, 1000, 1200.5), (1, 2000, 1.0), (2, 2000, 2.0)]
    assert imported.notes == ("1 events could not be read: event 3: counter odd without time or number",)


def test_what_is_not_kept_is_counted_by_kind(tmp_path: Path) -> None:
    events = [
        x("a", 0, 1) | {"args": {"k": 1}},
        {"ph": "i", "ts": 1},
        {"ph": "s", "id": 1},
        {"ph": "f", "id": 1},
        {"ph": "?"},
    ]
    imported = read({"traceEvents": events, "stackFrames": {"1": {"name": "f"}}}, tmp_path / "t")
    assert imported.notes == (
        "arguments of 1 spans are not kept",
        "1 event of unknown phase '?' events are not kept",
        "2 flow events are not kept",
        "1 instant events are not kept",
        "stackFrames is not read",
    )


@pytest.mark.parametrize(
    "bad",
    [
        x("neg", 1, -1),
        {"ph": "X", "name": "no time", "dur": 1},
        {"ph": "X", "name": "no end", "ts": 1},
        x("huge", 1e300, 1),
        {"ph": "X", "ts": "soon", "dur": 1},
        {"ph": "X", "ts": 1, "dur": 1, "pid": 1.5},
        17,
        "word",
    ],
)
def test_an_odd_event_is_counted_and_the_rest_is_read(bad: object, tmp_path: Path) -> None:
    imported = read({"traceEvents": [x("a", 0, 1), bad, x("b", 1, 1)]}, tmp_path / "t")
    assert [row[1] for row in rows(imported)] == ["a", "b"]
    assert any(note.startswith("1 events could not be read: event 1") for note in imported.notes)


def test_an_empty_last_event_that_saves_a_comma_is_no_error(tmp_path: Path) -> None:
    imported = read([x("a", 0, 1), {}], tmp_path / "t")
    assert len(imported.trace.spans) == 1
    assert imported.notes == ("1 event of unknown phase '' events are not kept",)


def test_times_from_long_ago_are_flagged(tmp_path: Path) -> None:
    imported = read([x("a", 1.7e15, 1)], tmp_path / "t")
    assert imported.notes == ("times are exact to 250 ns only: the file counts from long ago",)


def test_spans_that_touch_still_touch_after_rounding(tmp_path: Path) -> None:
    tick = 1e6 / 19.2e6
    events = [x("a", n * tick, tick) for n in range(1000)]
    imported = read(events, tmp_path / "t")
    assert len(imported.trace.lanes) == 1
    assert imported.trace.spans["end_ns"][-1] == round(1000 * tick * 1000)


def test_ops_are_names_with_calls_and_inclusive_times(tmp_path: Path) -> None:
    imported = read([x("a", 0, 10), x("b", 1, 2), x("b", 4, 3)], tmp_path / "t")
    assert [(op.name, op.calls, op.time_ns) for op in imported.ops] == [("a", 1, 10_000), ("b", 2, 5_000)]
    assert imported.trace.spans["op"].tolist() == [0, 1, 1]


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"nothing", r"byte 0x0: neither an object nor an array"),
        (b'{"traceEvents": [{"ph": "X", "na', r"cut short after 32 bytes"),
        (b'[{"ph": "X", "na', r"cut short after 16 bytes"),
        (b'{"traceEvents": 3}', r"Expected `array`"),
        (b"[" * 200_000, r"nested too deep"),
        (b'{"traceEvents": ' + b"[" * 200_000, r"nested too deep|Expected"),
        (b'{"traceEvents": [{"name": "\xff"}]}', r"not valid UTF-8"),
    ],
)
def test_damage_is_one_line_with_a_place(raw: bytes, words: str, tmp_path: Path) -> None:
    with pytest.raises(ImportFileError, match=words) as caught:
        read(raw, tmp_path / "t.json")
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(str(tmp_path / "t.json"))


def test_an_empty_trace_is_an_empty_trace(tmp_path: Path) -> None:
    imported = read({"traceEvents": []}, tmp_path / "t")
    assert not len(imported.trace.spans)
    assert imported.trace.spans.dtype.names
    assert np.array_equal(imported.trace.samples["value"], [])
