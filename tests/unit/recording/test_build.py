"""Recording → Run: totals of lanes against adding them up span by span, and what a source does not tell."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from opscope.core.meaning import LaneRole
from opscope.core.provenance import Provenance
from opscope.gate.run_figures import of_run
from opscope.importers.combine import combine
from opscope.recording.build import lane_totals, to_run
from opscope.recording.folder_reader import read_run
from opscope.recording.recording import OpRecord, Recording
from opscope.recording.run import Run
from opscope.recording.summary import DeviceSummary, LaneTotal, ThreadRow
from opscope.recording.trace import COUNTER, EDGE, NONE, Lane, SpanKind, Trace, blank_spans
from opscope.workflows.comparing import figures_of
from support.plugins.torq_samples import imported
from support.recording.run_build import write_run

LANES = (Lane(0, 0, "A"), Lane(0, 0, "B"), Lane(0, 0, "A (estimated)", provenance=Provenance.ESTIMATED))
KINDS = st.sampled_from([SpanKind.OP, SpanKind.HOST, SpanKind.WAIT])
Row = tuple[int, SpanKind, int, int]


@st.composite
def rows(draw: st.DrawFn, kinds: st.SearchStrategy[SpanKind] = KINDS) -> list[Row]:
    """Lane, kind, start, end; one span after the other on every lane."""
    found, free = [], [draw(st.integers(0, 9)) for _ in LANES]
    for lane in draw(st.lists(st.integers(0, len(LANES) - 1), max_size=12)):
        start = free[lane] + draw(st.integers(0, 5))
        free[lane] = start + draw(st.integers(0, 20))
        found.append((lane, draw(kinds), start, free[lane]))
    return found


def made(recording: Recording) -> Run:
    return to_run(recording, command=(), created="", sha256=None)


def trace_of(found: list[Row]) -> Trace:
    spans = blank_spans(len(found))
    for key, column in zip(("lane", "kind", "start_ns", "end_ns"), zip(*found, strict=True), strict=False):
        spans[key] = column
    for key in ("op", "command", "inference", "ucycles", "pcycles", "waits_on"):
        spans[key] = NONE
    return Trace(LANES, ("work",), spans, np.zeros(0, EDGE), (), np.zeros(0, COUNTER), Provenance.MEASURED)


@given(rows())
def test_lanes_of_the_files_own_provenance_have_what_their_spans_add_up_to(found: list[Row]) -> None:
    own = [row for row in found if row[0] < 2]
    wall = max(end for *_, end in own) - min(start for _, _, start, _ in own) if own else 0
    tells = any(kind is SpanKind.WAIT for _, kind, _, _ in own)
    totals = lane_totals(trace_of(found))
    assert [total.name for total in totals] == ["A", "B"]
    for number, total in enumerate(totals):
        waited = sum(end - start for lane, kind, start, end in own if lane == number and kind is SpanKind.WAIT)
        busy = sum(end - start for lane, kind, start, end in own if lane == number and kind is not SpanKind.WAIT)
        assert (total.busy_ns, total.wait_ns) == (busy, waited if tells else None)
        assert total.wall_ns == wall
        assert total.barrier_ns is None


def test_marks_and_the_calls_that_a_call_consists_of_are_no_lanes_at_work() -> None:
    thread, queue = Lane(0, 0, "thread"), Lane(0, 0, "queue")
    inside = Lane(0, 0, "thread 2", role=LaneRole.NESTED, owner=0)
    beside = Lane(0, 0, "queue 2", role=LaneRole.NESTED, owner=2)
    lanes = (thread, inside, queue, beside, Lane(0, 0, "m"))
    rows = [
        (0, SpanKind.OP, 0, 40),
        (0, SpanKind.OP, 50, 90),
        (1, SpanKind.OP, 0, 40),
        (1, SpanKind.OP, 60, 70),
        (2, SpanKind.OP, 0, 30),
        (3, SpanKind.OP, 20, 60),
        (4, SpanKind.PHASE, 0, 100),
    ]
    found = lane_totals(replace(trace_of(rows), lanes=lanes))
    assert [(lane.name, lane.busy_ns) for lane in found] == [("thread", 80), ("queue", 30), ("queue 2", 40)]


def test_threads_that_a_table_tells_the_use_of_are_as_busy_as_it_says() -> None:
    threads = (ThreadRow(0, 0, "HVX", 0, 100, 1000, 250, None), ThreadRow(1, 0, "HMX", 0, 100, 1000, None, None))
    table = DeviceSummary("n", None, None, None, 1, 1e9, (), threads)
    marks = replace(trace_of([(0, SpanKind.PHASE, 0, 100)]), lanes=LANES[:1])
    run = made(Recording("f", Provenance.MEASURED, marks, tables=(table,)))
    assert run.summary.lanes == (LaneTotal(0, 0, "HVX", 25, None, 75, engine="HVX"),)
    assert (run.info.batch, run.summary.batch) == (None, None)


def test_a_file_that_records_no_waits_does_not_say_that_there_were_none() -> None:
    (lane, _) = lane_totals(trace_of([(0, SpanKind.OP, 0, 60), (1, SpanKind.OP, 60, 100)]))
    assert (lane.busy_ns, lane.wait_ns, lane.idle_ns) == (60, None, 40)


def overlaid(folder: Path) -> Recording:
    compiled = imported(folder, 'DI0,0,160,loc("m.mlir":1:1),DMA_IN\nS0,160,480,loc("m.mlir":2:1),conv\n')
    ran = 'id;time_since_open;time_since_start;location\n0;100;40;loc("m.mlir":1:1)\n1;300;100;loc("m.mlir":2:1)\n'
    return combine([compiled, imported(folder, ran)])


def test_an_estimate_laid_over_a_measurement_is_in_none_of_its_totals(tmp_path: Path) -> None:
    run = made(overlaid(tmp_path))
    write_run(run, tmp_path / "run")
    assert read_run(tmp_path / "run").trace.lanes == run.trace.lanes
    assert [lane.provenance for lane in run.trace.lanes] == [None, "vendor-model", "vendor-model"]
    assert [(lane.name, lane.busy_ns, lane.idle_ns) for lane in run.summary.lanes] == [
        ("NSS Programs", 140_000, 100_000)
    ]
    for found in (figures_of(tmp_path / "run"), of_run(run, label="run")):
        values = {metric.name: metric.value for metric in found.metrics}
        assert (values["busy"], values["idle"], values["wait"]) == (140_000, 100_000, None)
        assert [(op.name, op.own_ns) for op in found.ops] == [('"m.mlir":1:1', 40_000), ('"m.mlir":2:1', 100_000)]
        assert "lanes marked (vendor-model) are in no total" in found.caveats


def test_a_run_of_one_provenance_has_no_column_for_it(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    ran = imported(tmp_path, "id;time_since_open;time_since_start;location\n0;100;40;a\n")
    write_run(made(ran), tmp_path / "run")
    assert "provenance" not in pq.read_schema(tmp_path / "run" / "spans.parquet").names


def test_totals_of_lanes_that_are_of_more_than_one_inference_say_so() -> None:
    found = Recording("f", Provenance.MEASURED, trace_of([(0, SpanKind.OP, 0, 60)]), (OpRecord("a"),), inferences=3)
    run = made(found)
    assert "totals of lanes are of the whole timeline: 3 inferences" in run.info.caveats
