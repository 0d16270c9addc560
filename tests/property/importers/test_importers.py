"""Timelines survive the way through JSON; damaged files end in an error or a result, never in anything else."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from opscope.core.errors import ProfilerError
from opscope.importers.formats import formats, read_profile
from opscope.importers.trace_events import decode_events
from opscope.importers.trace_lanes import levels
from opscope.plugins.traces.trace_json import TraceJson
from opscope.recording.build import lane_totals, to_run
from opscope.recording.recording_file import decode_recording, encode_recording
from opscope.recording.trace import COUNTER, EDGE, NONE, SPAN, CounterTrack, Lane, SpanKind, Trace, blank_spans
from opscope.views.timeline.chrome_trace import ChromeTrace
from opscope.views.timeline.trace_args import is_instant
from opscope.workflows.program_recording import head_of
from support.device.build import DMA, HMX, HVX, Step, program_of
from support.draws import draws
from support.plugins.kineto_build import two_streams
from support.plugins.qaic_published import PERCENTILES, SUMMARY, written
from support.plugins.qnn.qnn_session import emulated

SAMPLES = Path(__file__).parents[2] / "samples"
FILES = sorted(path for path in SAMPLES.iterdir() if path.is_file() and path.suffix != ".md")
MADE: dict[str, Callable[[Path], Path]] = {
    PERCENTILES: lambda folder: written(folder, PERCENTILES),
    SUMMARY: lambda folder: written(folder, SUMMARY),
    "kineto.json.gz": lambda folder: two_streams(folder / "kineto.json.gz", layers=4, inferences=1),
    "prof.csv": lambda folder: emulated().write(folder) / "prof.csv",
    "prof_qnn.log": lambda folder: emulated().write(folder) / "prof_qnn.log",
}

names = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
times = st.integers(0, 10**12)


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    """Lanes that hold one span at a time, as a Trace has them; counters beside them."""
    lanes = tuple(Lane(0, NONE, f"0 / {number}") for number in range(draw(st.integers(1, 4))))
    words = draw(st.lists(names, min_size=1, max_size=5, unique=True))
    rows = []
    for lane in range(len(lanes)):
        edges = sorted(draw(st.lists(times, max_size=12)))
        rows += [(lane, start, end) for start, end in zip(edges[::2], edges[1::2], strict=False)]
    spans = blank_spans(len(rows))
    for column in ("op", "inference", "command", "ucycles", "pcycles", "waits_on"):
        spans[column] = NONE
    spans["kind"] = SpanKind.OP
    for number, (lane, start, end) in enumerate(rows):
        spans["lane"][number], spans["start_ns"][number], spans["end_ns"][number] = lane, start, end
        spans["name"][number] = draw(st.integers(0, len(words) - 1))
    values = draw(st.lists(st.tuples(times, st.floats(-1e9, 1e9)), max_size=5))
    samples = np.array([(0, time, value) for time, value in values], COUNTER)
    tracks = (CounterTrack(0, NONE, "value", ""),) if values else ()
    return Trace(lanes, words, spans, np.zeros(0, EDGE), tracks, samples, "measured")


def as_json(trace: Trace, *, pairs: bool) -> bytes:
    """Obvious and slow: an event per span."""
    events: list[dict[str, object]] = []
    for span in trace.spans.tolist():
        row = dict(zip(SPAN.names or (), span, strict=True))
        where = {"pid": 0, "tid": row["lane"], "name": trace.names[row["name"]]}
        start, end = row["start_ns"], row["end_ns"]
        if pairs:
            events += [{"ph": "B", "ts": start / 1000, **where}, {"ph": "E", "ts": end / 1000, **where}]
        else:
            events.append({"ph": "X", "ts": start / 1000, "dur": (end - start) / 1000, **where})
    for _, time, value in trace.samples.tolist():
        events.append({"ph": "C", "pid": 0, "ts": time / 1000, "name": "value", "args": {"value": value}})
    return json.dumps(events).encode()


def content(trace: Trace) -> tuple[Counter[tuple[object, ...]], Counter[tuple[object, ...]]]:
    """Everything that a timeline shows, whatever the order, from its first time on."""
    spans = trace.spans
    start = [int(c.min()) for c in (spans["start_ns"], trace.samples["time_ns"]) if len(c)]
    zero = min(start, default=0)
    rows = Counter(
        (trace.lanes[lane].name, trace.names[name], first - zero, last - zero)
        for lane, name, first, last in zip(
            *(spans[key].tolist() for key in ("lane", "name", "start_ns", "end_ns")), strict=True
        )
    )
    samples = Counter((trace.counters[c].name, t - zero, v) for c, t, v in trace.samples.tolist())
    return rows, samples


@given(traces(), st.booleans())
@settings(deadline=None, max_examples=draws(1.5))
def test_a_timeline_is_the_same_after_json(trace: Trace, pairs: bool) -> None:
    raw = as_json(trace, pairs=pairs)
    assert decode_events(raw, source="t").unread.count == 0
    assert content(_read(raw)) == content(trace)


def _read(raw: bytes) -> Trace:
    from tempfile import NamedTemporaryFile

    with NamedTemporaryFile() as file:
        file.write(raw)
        file.flush()
        return TraceJson().read(Path(file.name)).trace


begins_and_ends = st.lists(st.tuples(st.sampled_from("BE"), st.integers(0, 2)), max_size=30)


@given(begins_and_ends)
@settings(deadline=None, max_examples=draws(2))
def test_begins_and_ends_pair_like_brackets(marks: Sequence[tuple[str, int]]) -> None:
    """Against a stack per thread, however badly they are nested."""
    events = [{"ph": ph, "name": str(n), "pid": 1, "tid": tid, "ts": n} for n, (ph, tid) in enumerate(marks)]
    stacks: dict[int, list[int]] = {}
    expected = set()
    for number, (ph, tid) in enumerate(marks):
        stack = stacks.setdefault(tid, [])
        if ph == "B":
            stack.append(number)
        elif stack:
            expected.add((stack.pop(), number))
    file = decode_events(json.dumps(events).encode(), source="t")
    found = file.spans()
    assert {(s // 1000, e // 1000) for s, e in zip(found.start.tolist(), found.end.tolist(), strict=True)} == expected
    assert file.unread.count == len(marks) - 2 * len(expected)


spans = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 30), st.integers(0, 12)), max_size=40)


@given(spans)
@settings(deadline=None, max_examples=draws(3))
def test_every_span_has_a_lane_on_which_it_is_alone(rows: Sequence[tuple[int, int, int]]) -> None:
    thread, start, length = (
        (np.array(c, np.int64) for c in zip(*rows, strict=True)) if rows else (np.zeros(0, np.int64),) * 3
    )
    level = levels(thread, start, start + length)
    for a in range(len(rows)):
        for b in range(a):
            if thread[a] == thread[b] and level[a] == level[b]:
                assert start[a] >= start[b] + length[b] or start[b] >= start[a] + length[a]


def _nest(one: tuple[int, int, int], other: tuple[int, int, int]) -> bool:
    """One lies in the other, or they do not meet."""
    (_, start, length), (_, begin, long) = sorted((one, other), key=lambda row: (row[1], -row[2]))
    return begin >= start + length or begin + long <= start + length


@given(spans)
@settings(deadline=None, max_examples=draws(1.5))
def test_busy_and_idle_of_imported_lanes_make_the_wall(rows: Sequence[tuple[int, int, int]]) -> None:
    events = [{"ph": "X", "name": "a", "pid": 1, "tid": t, "ts": s, "dur": d} for t, s, d in rows]
    trace = _read(json.dumps(events).encode())
    wall = int(trace.spans["end_ns"].max(initial=0))
    totals = lane_totals(trace)
    assert all(lane.busy_ns + lane.idle_ns == wall and lane.idle_ns >= 0 for lane in totals)
    open_at = {(thread, at) for thread, start, length in rows for at in range(start, start + length)}
    busy = sum(lane.busy_ns for lane in totals)
    assert 1000 * len(open_at) <= busy <= 1000 * sum(d for _, _, d in rows)
    if all(one[0] != other[0] or _nest(one, other) for one in rows for other in rows):
        assert busy == 1000 * len(open_at)  # a call is counted once, not again with every call in it


def test_a_trace_of_our_own_comes_back_as_it_was(tmp_path: Path) -> None:
    """Simulated, decoded, written by the view, imported."""
    trace, program = _simulated()
    out = BytesIO()
    ChromeTrace(head_of(program)).render(trace, out)
    (tmp_path / "trace.json").write_bytes(out.getvalue())
    back = read_profile(tmp_path / "trace.json").trace
    assert back.provenance == "simulated"
    lasting = trace.spans[~is_instant(trace)]  # an instant is no span, and is not imported
    assert len(back.spans) == len(lasting) > 10
    before = Counter((s, e) for s, e in lasting[["start_ns", "end_ns"]].tolist())
    zero = int(lasting["start_ns"].min())
    assert Counter((s + zero, e + zero) for s, e in back.spans[["start_ns", "end_ns"]].tolist()) == before
    assert len(back.lanes) == len(set(lasting["lane"].tolist()))


def _simulated() -> tuple[Trace, object]:
    from opscope.decode import LaneIndex, check_buffer, decode_buffer, decode_trace
    from opscope.device import Inference, collect
    from opscope.program.capture import encode_capture
    from opscope.program.program import Detail, StatsOptions
    from opscope.simulation import simulate

    steps: list[Step] = []
    for tile in range(12):
        group = (DMA, HVX, HMX)[tile % 3]
        steps.append(Step(group=group, cycles=1000 + tile, needs=(tile - 1,) if tile else ()))
    program = replace(program_of(steps, stats=StatsOptions(level=70)), details=(Detail("op", "", "", "", (), ""),))
    capture = collect(program, simulate(program), Inference(0, 0, 0, start_tick=0), device=0)
    buffer = decode_buffer(encode_capture(capture), source="x")
    check_buffer(buffer, program, program_id=0)
    return decode_trace(program, buffer, LaneIndex.of(program), origin=0, provenance="simulated"), program


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_what_was_imported_is_the_same_after_its_own_file(path: Path) -> None:
    imported = read_profile(path)
    run = to_run(imported, command=(), created="", sha256=None)
    back = decode_recording(encode_recording(imported), run, source="recording.json")
    assert (back.ops, back.metrics, back.checks, back.notes) == (
        imported.ops,
        imported.metrics,
        imported.checks,
        imported.notes,
    )
    assert (back.maker, back.target, back.provenance) == (imported.maker, imported.target, imported.provenance)


def tried(path: Path, raw: bytes, form: str | None) -> None:
    """A result or an error that a user can read; whatever else is raised fails the test."""
    path.write_bytes(raw)
    try:
        read_profile(path, form=form)
    except ProfilerError as error:
        message = str(error)
    else:
        message = ""
    assert "\n" not in message


def whole(name: str, folder: Path) -> bytes:
    raw = (MADE[name](folder) if name in MADE else SAMPLES / name).read_bytes()
    return (gzip.decompress(raw) if name.endswith(".gz") else raw)[:20_000]


@pytest.mark.parametrize("name", [*(path.name for path in FILES), *MADE])
@given(data=st.data())
@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_damaged_file_ends_in_an_error_or_a_result(name: str, tmp_path: Path, data: st.DataObject) -> None:
    raw = bytearray(whole(name, tmp_path))
    form = next(known.name for known in formats() if known.fits(bytes(raw), name))
    for _ in range(data.draw(st.integers(0, 8))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    if data.draw(st.booleans()):
        del raw[data.draw(st.integers(0, len(raw))) :]
    tried(tmp_path / "file", bytes(raw), data.draw(st.sampled_from([None, form])))


@pytest.mark.parametrize("form", [form.name for form in formats()])
@given(raw=st.one_of(st.binary(max_size=200), st.text(max_size=200).map(lambda text: text.encode("utf-8", "replace"))))
@settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_format_is_upset_by_what_is_not_its_own(form: str, raw: bytes, tmp_path: Path) -> None:
    assume(raw)
    tried(tmp_path / "file", raw, form)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                [
                    "ph",
                    "ts",
                    "dur",
                    "pid",
                    "tid",
                    "name",
                    "args",
                    "cat",
                    "id",
                    "traceEvents",
                    "Layers",
                    "Name",
                    "graphs",
                    "nodes",
                    "buffers",
                    "count",
                    "averageMs",
                    "timeMs",
                    "exec_time",
                    "correlation",
                ]
            ),
            inner | st.sampled_from(["X", "B", "E", "C", "M", "Node", "kernel", "cpu_op"]),
            max_size=6,
        )
    ),
    max_leaves=25,
)


@pytest.mark.parametrize(
    "form",
    [
        "trace-events",
        "kineto",
        "onnxruntime",
        "qnn-timeline",
        "tensorrt-profile",
        "tensorrt-layers",
        "openvino-npu",
        "stedgeai-json",
    ],
)
@given(value=json_values)
@settings(deadline=None, max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_json_of_any_shape_ends_in_an_error_or_a_result(form: str, value: object, tmp_path: Path) -> None:
    for body in (value, [value], {"traceEvents": [value]}, {"traceEvents": value}):
        tried(tmp_path / "file", json.dumps(body).encode(), form)
