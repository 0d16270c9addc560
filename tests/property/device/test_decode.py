"""Laws of decoding and summing up, on random programs: nothing is lost, nothing overlaps, parts add up to totals."""

from __future__ import annotations

import json
from io import BytesIO, StringIO
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_device import programs

from opscope.analysis.timeline.intervals import most_open, total_between, union
from opscope.analysis.totals.summarise import summarise_device, timeline
from opscope.analysis.totals.work import InferenceWork
from opscope.core.columns import rising
from opscope.core.sublanes import sublanes
from opscope.decode import Barriers, LaneIndex, Threads, decode_buffer
from opscope.decode.lanes import read_lanes
from opscope.plugins.qaic.summary_text import read_opstats_text
from opscope.program.program import StatsOptions
from opscope.recording.trace import SPAN, SpanKind, Trace
from opscope.views.text.opstats_text import OpstatsText
from opscope.views.timeline.chrome_trace import ChromeTrace
from opscope.views.timeline.decimal_text import TextRows
from opscope.views.timeline.protobuf import varints
from opscope.views.timeline.trace_flows import apart, find_flows
from opscope.views.timeline.trace_rows import lay_out
from opscope.workflows.program_recording import head_of
from support.decode import opstats_reference as reference
from support.decode.build import Profiled, furnished, profiled

INTERVALS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 60), st.integers(0, 25)), max_size=30)


@st.composite
def profiles(draw: st.DrawFn, *, level: int | None = None) -> Profiled:
    from dataclasses import replace

    program = furnished(draw(programs()))
    chosen = draw(st.sampled_from([40, 50, 70, 100])) if level is None else level
    stats = StatsOptions(
        level=chosen,
        ddr=draw(st.booleans()),
        events=(0x2, 0x200),
        event_names=("CYCLES", "BUSY"),
        event_counts=("cycles", "busy_cycles"),
        batch_size=draw(st.integers(1, 9)),
    )
    return profiled(replace(program, stats=stats), seed=draw(st.integers(0, 5)))


def columns(intervals: list[tuple[int, int, int]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    table = np.array(intervals, np.int64).reshape(-1, 3)
    return table[:, 0], table[:, 1], table[:, 1] + table[:, 2]


@given(profiles())
def test_decoding_gives_back_what_was_encoded(profile: Profiled) -> None:
    for device, wrote in enumerate(profile.captures):
        capture = decode_buffer(profile.raw(device), source="a.bin").capture
        assert (capture.program_id, capture.device, capture.level) == (wrote.program_id, wrote.device, wrote.level)
        assert {key: records.tobytes() for key, records in capture.sections.items()} == {
            key: records.tobytes() for key, records in wrote.sections.items()
        }


@given(profiles(), st.sampled_from(Threads), st.sampled_from(Barriers))
@settings(max_examples=50)
def test_spans_of_a_lane_never_overlap(profile: Profiled, threads: Threads, barriers: Barriers) -> None:
    for device in range(profile.program.devices):
        trace = profile.trace(device, threads=threads, barriers=barriers)
        for lane in range(len(trace.lanes)):
            own = trace.spans[trace.spans["lane"] == lane]
            order = sorted(zip(own["start_ns"].tolist(), own["end_ns"].tolist(), strict=True))
            assert all(before[1] <= after[0] for before, after in pairwise(order)), trace.lanes[lane]


@given(profiles(level=70))
@settings(max_examples=30)
def test_merging_threads_keeps_every_tick(profile: Profiled) -> None:
    """A merged command lasts as long as its longest thread; waits are those of each thread."""
    index = LaneIndex.of(profile.program)
    merged, apart = profile.trace(), profile.trace(threads=Threads.APART)
    for lane in read_lanes(profile.buffer(), profile.program, index):
        for row, command in enumerate(lane.commands.tolist()):
            spans = [
                t.spans[(t.spans["command"] == command) & (t.spans["kind"] == SpanKind.OP)] for t in (merged, apart)
            ]
            assert len(spans[0]) == 1
            assert len(spans[1]) == lane.ucycles.shape[1]
            assert spans[0]["ucycles"].max() == spans[1]["ucycles"].max()
            if not index.moves[command]:
                assert sorted(spans[1]["ucycles"].tolist()) == sorted(lane.ucycles[row].tolist())
    for trace in (merged, apart):
        waits = trace.spans[trace.spans["kind"] == SpanKind.WAIT]
        per_command = {int(c): int(u) for c, u in zip(waits["command"], waits["ucycles"], strict=True)}
        assert per_command == {
            int(c): int(w)
            for lane in read_lanes(profile.buffer(), profile.program, index)
            for c, w in zip(lane.commands, lane.wait, strict=True)
            if w
        }


@given(profiles())
@settings(max_examples=30)
def test_every_number_of_the_table_is_that_of_a_slow_and_obvious_sum(profile: Profiled) -> None:
    program = profile.program
    for device, capture in enumerate(profile.captures):
        summary = summarise_device(InferenceWork.of(profile.trace(device), profile.index), capture, network="network")
        for core in range(capture.cores):
            rows = [row for row in summary.kinds if row.core == core]
            found = {(r.kind, r.group, r.memory, r.types): r for r in rows if not r.is_wait}
            expected = reference.op_table(program, capture, core)
            assert set(found) == set(expected)
            for key, row in expected.items():
                for name in ("ucycles", "pcycles", "count", "out_bytes"):
                    assert getattr(found[key], name) == row[name]
                assert found[key].deviation == (None if row["deviation"] is None else pytest.approx(row["deviation"]))
            waited = {(r.kind, r.group): (r.ucycles, r.count) for r in rows if r.is_wait}
            assert waited == reference.waits(program, capture, core)
            for thread in summary.threads_of(core):
                if capture.level >= 70:
                    assert thread.busy_pcycles == reference.busy_pcycles(capture, core, thread.thread)


def of_kind(trace: Trace, kind: SpanKind) -> np.ndarray:
    return trace.spans[trace.spans["kind"] == kind]


def in_turn(profile: Profiled, trace: Trace) -> int:
    """Nanoseconds in which any transfer of a queue is on its way, of all queues: slowly, one at a time."""
    moving: dict[tuple[int, int], set[int]] = {}
    for span in of_kind(trace, SpanKind.TRANSFER):
        row = profile.program.commands[span["command"]]
        moving.setdefault((row["core"], row["route"]), set()).update(range(span["start_ns"], span["end_ns"]))
    return sum(map(len, moving.values()))


@given(profiles(level=70))
@settings(max_examples=30)
def test_parts_add_up_to_totals(profile: Profiled) -> None:
    for device, capture in enumerate(profile.captures):
        trace = profile.trace(device)
        totals = summarise_device(InferenceWork.of(trace, profile.index), capture, network="network").totals
        assert totals is not None
        for lane in totals.lanes:
            assert min(lane.busy_ns, lane.wait_ns, lane.idle_ns) >= 0
        assert sum(part.share for part in totals.occupancy) == pytest.approx(1.0 if totals.occupancy else 0.0)
        assert all(part.ns >= -1e-6 for part in totals.occupancy)
        route = profile.program.commands["route"]
        computed = [span for span in of_kind(trace, SpanKind.OP) if route[span["command"]] < 0]
        once = np.concatenate((np.array(computed, SPAN), of_kind(trace, SpanKind.TRANSFER)))
        busy = sum(int(span["end_ns"] - span["start_ns"]) for span in computed) + in_turn(profile, trace)
        for table in (totals.ops, totals.op_types, totals.layers, totals.blocks):
            assert sum(row.busy_ns for row in table) == busy
            assert sum(row.commands for row in table) == len(once)
            assert all(row.wall_ns <= row.busy_ns for row in table)
        waited = trace.spans[trace.spans["kind"] == SpanKind.WAIT]
        assert sum(row.wait_ns for row in totals.waits) == int((waited["end_ns"] - waited["start_ns"]).sum())
        assert sum(bucket.count for bucket in totals.histogram) == len(once)
        assert sum(row.local_ns + row.outer_ns for row in totals.placement) == busy


@given(profiles(level=70))
@settings(max_examples=40)
def test_true_dma_time_is_the_union_of_flights(profile: Profiled) -> None:
    trace = profile.trace()
    totals = summarise_device(InferenceWork.of(trace, profile.index), profile.captures[0], network="network").totals
    assert totals is not None
    for row in totals.routes:
        flights = [
            (int(span["start_ns"]), int(span["end_ns"]))
            for span in trace.spans[trace.spans["kind"] == SpanKind.TRANSFER]
            if profile.program.routes[profile.program.commands["route"][span["command"]]].name == row.route
            and row.core in (None, int(profile.program.commands["core"][span["command"]]))
        ]
        assert len(flights) == row.transfers
        assert reference.covered(flights) == row.busy_ns


@given(profiles(), st.booleans())
@settings(max_examples=30)
def test_the_text_reads_back_as_the_tables_it_was_made_from(profile: Profiled, sections: bool) -> None:
    summary = summarise_device(InferenceWork.of(profile.trace(), profile.index), profile.captures[0], network="network")
    text = StringIO()
    OpstatsText(sections=sections).render(summary, text)
    text.seek(0)
    again = read_opstats_text(text, source="a.txt")
    assert [(r.core, r.thread, r.start, r.end, r.pcycles, r.activate) for r in again.threads] == [
        (r.core, r.thread, r.start, r.end, r.pcycles, r.activate) for r in summary.threads
    ]
    assert [(r.core, r.kind, r.group, r.ucycles, r.pcycles, r.count) for r in again.kinds] == [
        (r.core, r.kind, r.group, r.ucycles, r.pcycles, r.count) for r in summary.kinds
    ]
    assert again.ports == summary.ports
    assert (again.network, again.batch_size) == ("network", profile.program.stats.batch_size)


def drawn(trace: Trace, profile: Profiled, **options: object) -> dict[str, list[dict[str, object]]]:
    out = BytesIO()
    ChromeTrace(head_of(profile.program), **options).render(trace, out)  # type: ignore[arg-type]
    events: dict[str, list[dict[str, object]]] = {}
    for event in json.loads(out.getvalue())["traceEvents"]:
        events.setdefault(event["ph"], []).append(event)
    return events


@given(profiles(), st.sampled_from(Threads), st.sampled_from(Barriers))
@settings(max_examples=30)
def test_chrome_json_holds_every_span_counter_and_arrow_to_the_nanosecond(
    profile: Profiled, threads: Threads, barriers: Barriers
) -> None:
    plain = timeline(InferenceWork.of(profile.trace(), profile.index))
    trace = profile.trace(threads=threads, barriers=barriers)
    events = drawn(trace, profile, flows=True)
    rows = lay_out(trace, head_of(profile.program).info)
    expected = sorted(
        (rows.of_lane[s["lane"]].tid, trace.names[s["name"]], int(s["start_ns"]), int(s["end_ns"] - s["start_ns"]))  # type: ignore[union-attr]
        for s in apart(trace).spans
    )
    found = sorted(
        (e["tid"], e["name"], round(e["ts"] * 1000), round(e.get("dur", 0) * 1000))  # type: ignore[operator, call-overload]
        for e in (*events.get("X", ()), *events.get("i", ()))
    )
    assert found == expected
    flows = find_flows(trace, rows.shown)
    assert len(events.get("s", ())) == len(events.get("f", ())) == len(flows.ids)
    assert len(drawn(plain, profile).get("C", ())) == len(plain.samples)
    tids = {e["tid"] for e in events.get("X", ())}
    pids = {e["pid"] for e in events.get("X", ())}
    assert not tids & pids
    assert all(isinstance(tid, int) and tid > 0 for tid in tids)


@given(INTERVALS)
def test_the_union_is_that_of_single_nanoseconds(intervals: list[tuple[int, int, int]]) -> None:
    key, start, end = columns(intervals)
    found = union(key, start, end)
    for number in range(4):
        own = [(int(s), int(e)) for k, s, e in zip(key, start, end, strict=True) if k == number]
        assert found.total(4)[number] == reference.covered(own)
        mine = sorted(zip(found.start[found.key == number], found.end[found.key == number], strict=True))
        assert all(before[1] < after[0] for before, after in pairwise(mine))


@given(INTERVALS)
def test_most_open_counts_one_moment_at_a_time(intervals: list[tuple[int, int, int]]) -> None:
    key, start, end = columns(intervals)
    found = most_open(key, start, end, 4)
    for number in range(4):
        own = [(int(s), int(e)) for k, s, e in zip(key, start, end, strict=True) if k == number and e > s]
        depth = max((sum(s <= moment < e for s, e in own) for moment in range(90)), default=0)
        assert found[number] >= depth
        assert found[number] <= max(depth, 1) or any(
            s == e for k, s, e in zip(key, start, end, strict=True) if k == number
        )


@given(INTERVALS, st.lists(st.integers(0, 100), min_size=2, max_size=8, unique=True))
def test_what_intervals_bring_is_all_there_between_the_first_and_the_last_edge(
    intervals: list[tuple[int, int, int]], edges: list[int]
) -> None:
    amount, start, end = columns(intervals)
    cuts = np.array([-1, *sorted(edges), 101])
    found = total_between(cuts, start, end, amount)
    assert found.sum() == pytest.approx(amount.sum(), abs=1e-6)
    assert (found >= -1e-6).all()


@given(st.lists(st.integers(0, 2**62), max_size=30))
def test_rising_sorts_and_keeps_the_order_of_equals(values: list[int]) -> None:
    assert rising(np.array(values, np.int64)).tolist() == sorted(range(len(values)), key=values.__getitem__)


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 20)), max_size=30))
def test_sublanes_never_overlap_and_are_no_more_than_needed(pairs: list[tuple[int, int]]) -> None:
    start = np.array([s for s, _ in pairs], np.int64)
    end = start + np.array([n for _, n in pairs], np.int64)
    level = sublanes(start, end)
    for lane in set(level.tolist()):
        own = sorted(zip(start[level == lane].tolist(), end[level == lane].tolist(), strict=True))
        assert all(before[1] <= after[0] for before, after in pairwise(own))
    if len(pairs) and (end > start).all():
        open_at_once = max(int(((start <= t) & (t < end)).sum()) for t in start)
        assert level.max() + 1 == open_at_once


@given(st.lists(st.integers(0, 10**15), min_size=1, max_size=20), st.sampled_from([0, 2, 3]))
def test_columns_of_text_read_back_as_their_numbers(values: list[int], places: int) -> None:
    numbers = np.array(values, np.int64)
    rows = (
        TextRows(len(values))
        .text(b"[")
        .number(numbers, places=places)
        .text(b',{"a":1')
        .string("b", numbers, places=places, present=numbers % 2 == 0)
        .text(b"}]")
        .rows()
    )
    for row, value in zip(rows, values, strict=True):
        number, args = json.loads(row.tobytes().decode(), parse_float=str, parse_int=str)
        text = f"{value / 1:.0f}" if not places else f"{value // 10**places}.{value % 10**places:0{places}d}"
        assert number == str(value) if not places else number == text
        assert args.get("b") == (None if value % 2 else str(value) if not places else text)


@given(st.lists(st.integers(0, 2**63 - 1), min_size=1, max_size=20))
def test_padded_varints_read_back(values: list[int]) -> None:
    rows = varints(np.array(values, np.uint64), 9)
    for row, value in zip(rows.tolist(), values, strict=True):
        assert sum((byte & 0x7F) << 7 * place for place, byte in enumerate(row)) == value
        assert [byte >> 7 for byte in row] == [1] * 8 + [0]
