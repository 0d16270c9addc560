"""Timelines of the vendor's model: counters that hold what the metrics hold, in the vendor's own words."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from opscope.analysis.laws.conservation import window_is_latency
from opscope.analysis.run_analysis import RunAnalysis
from opscope.analysis.timeline.over_time import Bins
from opscope.analysis.timeline.path_marks import path_marks
from opscope.importers.formats import find_format
from opscope.plugins.qnn.compilation import Compilation
from opscope.plugins.qnn.importers.timeline import Thread, read_timeline
from opscope.plugins.qnn.node_path import Order
from opscope.plugins.qnn.node_times import is_wait
from opscope.plugins.qnn.trace import _counters, _started_after
from opscope.recording.build import to_run
from opscope.recording.recording import Recording
from opscope.recording.trace import SpanKind, blank_spans
from opscope.workflows.record import trace_json
from support.plugins.qnn.htp_samples import profiled, schematic, timeline, tiny, two_partitions
from support.plugins.qnn.qnn_session import WHOLE
from support.recording.analyse_build import analyse

Event = dict[str, object]


def events_of(recording: Recording) -> list[Event]:
    run = to_run(recording, command=(), created="", sha256=None)
    return json.loads(trace_json(RunAnalysis(run)))["traceEvents"]  # type: ignore[no-any-return]


def area(recording: Recording, word: str) -> float:
    """Of the counter whose name starts so: value × ns."""
    trace = recording.trace
    (number,) = [place for place, track in enumerate(trace.counters) if track.name.startswith(word)]
    own = trace.samples[trace.samples["counter"] == number]
    return float((np.diff(own["time_ns"]) * own["value"][:-1]).sum())


def spans_with(recording: Recording, column: str) -> npt.NDArray[np.void]:
    """Spans that have something in a column of what the model counts."""
    trace = recording.trace
    counted = trace.op_counts.of(trace.spans)[:, trace.op_counts.names.index(column)]
    found: npt.NDArray[np.void] = trace.spans[counted > 0]
    return found


@pytest.mark.parametrize("engine", ["HVX", "HMX", "DMA"])
def test_the_mean_of_a_utilisation_over_time_is_the_metric(engine: str) -> None:
    """HMX has no thread of its own on this part: its work runs on the foreground thread."""
    result = profiled(tiny())
    share = result.value(f"{engine.lower()}_utilization")
    assert share
    assert "HMX 1" not in {lane.name for lane in result.trace.lanes}
    window = int(result.trace.spans["end_ns"].max())
    assert area(result, f"{engine} utilisation") / 100 / window == pytest.approx(share, rel=1e-2)


def test_the_step_behind_the_last_work_lasts_until_the_model_ends() -> None:
    """Steps take no time in the file: 50 cycles from the end of the work to the step, 6 from there to the end."""
    work = {"name": "q::Transpose.2D", "ph": "X", "tid": 1, "ts": 12, "dur": 100, "args": {"flags": ["for_hvx"]}}
    step = {"ph": "X", "tid": 0, "dur": 0, "args": {"flags": ["scalar"]}}
    entries: list[Event] = [
        *(
            {"name": "thread_name", "ph": "M", "tid": n, "args": {"name": name}}
            for n, name in enumerate(("FG:", "HVX 1:"))
        ),
        step | {"name": "default_hvx_spawn (q::Transpose.2D)", "ts": 6},
        work,
        step | {"name": "default_hvx_validate (q::Transpose.2D)", "ts": 162},
        {"name": "TCM usage", "ph": "C", "ts": 168, "args": {"Bytes": 0}},
    ]
    raw = json.dumps({"traceEvents": entries, "Hextimate Configuration": {"sim_core_freq": 1000}}).encode()
    line = read_timeline(raw, source="timeline")
    assert [(int(row["start"]), int(row["end"])) for row in line.work] == [(6, 6), (12, 112), (112, 168)]
    assert line.end == 168
    assert not is_wait(line).any()  # nothing is at work any more


@pytest.mark.parametrize("compilation", [tiny, two_partitions])
def test_the_timeline_is_as_long_as_the_latency(compilation: Callable[[], Compilation]) -> None:
    result = profiled(compilation())
    assert result.latency is not None
    assert int(result.trace.spans["end_ns"].max()) == result.latency.value_ns
    run = to_run(result, command=(), created="", sha256=None)
    assert all(check.holds for check in window_is_latency(RunAnalysis(run)))
    assert not {part.cause for part in analyse(run).breakdown} & {"unknown", "other"}


def test_what_kernels_do_is_told_from_words_and_said_so() -> None:
    run = to_run(profiled(tiny()), command=(), created="", sha256=None)
    assert {"commands", "spans", "summary"} <= set(run.info.classified)
    assert "lanes" not in run.info.classified  # those say what they are


def test_ddr_over_time_holds_the_bytes_that_transfers_move() -> None:
    result = profiled(tiny())
    assert area(result, "DDR read") == pytest.approx(WHOLE.total("dram_read"))
    assert {track.unit for track in result.trace.counters} == {"bytes", "%", "GB/s"}
    assert all("mean of" in track.name for track in result.trace.counters if track.unit != "bytes")


def test_graphs_follow_each_other_on_one_axis_of_counters() -> None:
    result = profiled(two_partitions())
    ends = [int(result.trace.samples["time_ns"][result.trace.samples["counter"] == n].max()) for n in range(1, 4)]
    assert min(ends) >= int(result.trace.spans["end_ns"].max())


def test_bytes_that_an_hvx_thread_reads_through_its_own_row_of_dma_are_counted_once() -> None:
    line = timeline((1, "HVX 1", 0, 10, False), (1, "HVX_DMA 1", 0, 10, False), engines=(1, 0))
    line.work["dram_read"] = 100
    spans = blank_spans(2)
    spans["lane"], spans["kind"], spans["end_ns"] = [0, 1], SpanKind.OP, 10
    tracks, samples = _counters(spans, line.work, line.lanes, (*line.lanes, Thread.of(0, "HVX 2")), np.zeros((0, 2)))
    names = [track.name.partition(",")[0] for track in tracks]
    assert names == ["VTCM used", "HVX utilisation", "DDR read", "DDR write"]
    bins = Bins.over(11)
    read = samples[(samples["counter"] == 2) & (samples["value"] > 0)]
    assert int(read["value"].sum() * 10 * bins.width_ns) == 100
    assert samples["value"][samples["counter"] == 1].max() == 50  # of two threads, one works


def test_spans_speak_as_the_vendors_traces_do() -> None:
    result = profiled(tiny())
    work = [e for e in events_of(result) if e["ph"] == "X" and "QNN Op Name" in e["args"]]  # type: ignore[operator]
    assert {e["cat"] for e in work} == {"htp"}
    conv = next(e["args"] for e in work if str(e["name"]).startswith("conv0 · ConvLayer"))
    assert isinstance(conv, dict)
    assert (conv["Model Node"], conv["QNN Op Name"], conv["QNN Op Type"]) == ("conv0", "conv0_token_1", "Conv2d")
    assert conv["HTP Op Type"].startswith("ConvLayer")
    assert {"ID", "Start Cycle", "Duration (cycles)", "DDR read bytes", "VTCM write bytes"} <= set(conv)
    keys = {key for e in events_of(result) if e["ph"] in "Xsf" for key in e["args"]}  # type: ignore[attr-defined, union-attr, operator]
    assert not {key for key in keys if key.startswith("op") or key in ("oc", "waitsOn", "effectiveFreq")}
    moved = spans_with(result, "DDR read bytes")
    assert 0 < len(moved) < len(result.trace.spans)


def test_spans_of_the_path_are_marked_with_the_cycles_that_they_are_of_it() -> None:
    result = profiled(tiny())
    run = to_run(result, command=(), created="", sha256=None)
    path = path_marks(RunAnalysis(run))
    marked = [e["args"] for e in events_of(result) if e["ph"] == "X" and "critical path" in e["args"]]  # type: ignore[operator]
    assert len(marked) == int((path.ns > 0).sum()) > 5
    cycles = sum(int(args["Dominant Path Cycles"]) for args in marked)  # type: ignore[index]
    assert cycles == pytest.approx(path.ns.sum() * WHOLE.end / run.trace.spans["end_ns"].max(), rel=0.02)


def test_our_own_timeline_is_not_taken_for_one_of_a_device(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(trace_json(RunAnalysis(to_run(profiled(tiny()), command=(), created="", sha256=None))))
    assert b"HTP Op Type" in path.read_bytes()
    assert find_format(path).name == "trace-events"


def test_work_of_the_foreground_thread_begins_when_what_it_awaited_is_done() -> None:
    """Nothing of `pool` goes into `conv`, which stands behind the wait for it."""
    pool, awaits, conv = 1 << 32 | 7, 2 << 32 | 7, 3 << 32 | 8
    line = timeline(
        (pool, "HVX 1", 0, 100, False),
        (awaits, "FG", 101, 101, True),  # a wait of no length, as the vendor's model draws it
        (conv, "FG", 102, 110, False),
    )
    order = Order(line, schematic((1, pool, ()), (2, awaits, (1,)), (3, conv, ())))
    assert list(_started_after(order, line)) == [(0, 2, False)]
