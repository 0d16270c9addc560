"""The critical path in timelines: marked spans, a row of its own, the same in both forms."""

from __future__ import annotations

import json
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import pytest

from opscope.analysis.run_analysis import RunAnalysis
from opscope.analysis.timeline.path_marks import path_marks
from opscope.plugins.traces.trace_json import TraceJson
from opscope.program.program import OpInfo
from opscope.recording.run import Run
from opscope.recording.trace import NONE
from opscope.views.timeline.chrome_trace import ChromeTrace
from opscope.views.timeline.perfetto_trace import PerfettoTrace
from opscope.views.timeline.trace_path import with_path
from support.recording.analyse_build import DMA, HVX, Command, Span, run_of
from support.viewers.trace_forms import Reader, from_json

OPS = tuple(OpInfo(name, "", "", "") for name in ("early", "copy", "product"))
SPANS = (
    Span(0, 0, 400, op=0, command=0, name="work"),
    Span(1, 0, 600, op=1, command=1, name="work"),
    Span(0, 700, 900, op=2, command=2, name="work"),
)


def sample(*, described: bool = True) -> Run:
    """The product waits for the copy, and starts 100 ns after it; `early` is not on the path."""
    if not described:
        return run_of([replace(span, command=NONE) for span in SPANS], lanes=(HVX, DMA), ops=OPS)
    return run_of(SPANS, lanes=(HVX, DMA), ops=OPS, edges=[(1, 2)], commands=[Command(op) for op in range(3)])


def drawn(run: Run, view: type[ChromeTrace] | type[PerfettoTrace], *, flows: bool = True) -> bytes:
    out = BytesIO()
    view(run, flows=flows, path=path_marks(RunAnalysis(run))).render(run.trace, out)
    return out.getvalue()


def test_stretches_lie_end_to_end_and_gaps_say_what_they_count_as() -> None:
    run = sample()
    trace, path_ns = with_path(run.trace, path_marks(RunAnalysis(run)))
    own = trace.spans[trace.spans["lane"] == len(run.trace.lanes)]
    rows = [(trace.names[n], int(a), int(b)) for n, a, b in own[["name", "start_ns", "end_ns"]].tolist()]
    assert rows == [("work", 0, 600), ("gap: launch", 600, 700), ("work", 700, 900)]
    assert path_ns.tolist() == [0, 600, 200, 0, 0, 0]
    assert trace.spans[: len(SPANS)].tolist() == run.trace.spans.tolist()


@pytest.mark.parametrize("described", [True, False], ids=["of commands", "plain"])
def test_both_forms_mark_the_same_spans(described: bool) -> None:
    run = sample(described=described)
    spans, _, _ = from_json(drawn(run, ChromeTrace))
    marked = sorted(start for _, _, start, _, args in spans if ("critical path", "True") in args)
    assert marked == [0, 700]
    assert sorted(Reader(drawn(run, PerfettoTrace)).spans) == sorted(spans)
    assert sorted(start for row, _, start, _, _ in spans if row == "Critical path") == [0, 600, 700]


def test_the_row_is_the_first_of_a_process_that_is_alone_and_else_a_process_of_its_own() -> None:
    several = replace(sample().trace, lanes=(HVX, replace(DMA, core=1)))
    for run, process in ((sample(), "net_Core_0"), (replace(sample(), trace=several), "Overview")):
        events = json.loads(drawn(run, ChromeTrace))["traceEvents"]
        rows = {e["tid"]: e for e in events if e["name"] == "thread_name"}
        order = {e["tid"]: e["args"]["sort_index"] for e in events if e["name"] == "thread_sort_index"}
        first = rows[min(order, key=order.__getitem__)]
        assert first["args"]["name"] == "Critical path"
        processes = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
        assert processes[first["pid"]] == process
        assert len(processes) == (1 if run.trace is not several else 3)


def test_a_timeline_without_a_path_has_no_such_row() -> None:
    out, run = BytesIO(), sample()
    ChromeTrace(run).render(run.trace, out)
    assert b"ritical path" not in out.getvalue()
    assert with_path(run.trace, path_marks(RunAnalysis(run_of()))) == (run.trace, pytest.approx([0, 0, 0]))


def test_the_row_is_no_lane_at_work_where_the_file_is_imported(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(drawn(sample(), ChromeTrace))
    imported = TraceJson().read(path)
    assert len(imported.trace.spans) == len(SPANS)
    assert not any("Critical" in lane.name for lane in imported.trace.lanes)
