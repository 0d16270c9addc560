"""From the files that the library leaves to the profile: files are made here, so it runs without the package."""

from __future__ import annotations

import json
from dataclasses import replace
from io import BytesIO, StringIO
from pathlib import Path

import numpy as np
import pytest

from opscope.analysis.run_analysis import RunAnalysis
from opscope.core.errors import ModelError, UsageError
from opscope.plugins.qnn.compilation import _check_taken, _check_target
from opscope.plugins.qnn.details import parts_of
from opscope.plugins.qnn.importers.op_trace import OpTrace, Refused
from opscope.plugins.qnn.manifest import LEVELS
from opscope.plugins.qnn.options import HtpOptions
from opscope.plugins.qnn.qhas_files import QhasHtml, QhasJson
from opscope.recording.build import to_run
from opscope.recording.recording import Placed, Recording
from opscope.recording.recording_file import encode_recording
from opscope.recording.run import Run
from opscope.recording.trace import SpanKind
from opscope.views.text.profile_text import ProfileText
from opscope.views.timeline.chrome_trace import ChromeTrace
from opscope.workflows.analysing import findings_for
from support.plugins.qnn.htp_samples import profiled, tiny, two_partitions
from support.plugins.qnn.qnn_session import FIRST, MHZ, SECOND, WHOLE

READ_BY_TWO = FIRST.total("dram_read") + SECOND.total("dram_read")


def run_of(result: Recording) -> Run:
    return to_run(result, command=(), created="", sha256=None)


def text_of(result: Recording, level: str = "detailed") -> str:
    out, run = StringIO(), run_of(result)
    ProfileText(sections=LEVELS[level]).render(run, findings_for(RunAnalysis(run), result), result, out)
    return out.getvalue()


def test_two_graphs_are_counted_once_each() -> None:
    result = profiled(two_partitions())
    assert [part.cycles for part in parts_of(result)] == [FIRST.cycles, SECOND.cycles]
    assert result.latency is not None
    assert result.latency.value_ns == sum(round(graph.cycles * 1000 / MHZ) for graph in (FIRST, SECOND))
    assert result.value("ddr_write") == 2 * 65536
    assert result.value("input_fill") == READ_BY_TWO


def test_a_node_on_the_cpu_keeps_the_words_of_the_runtime_and_withholds_the_total() -> None:
    result = profiled(two_partitions())
    (node,) = result.placed(Placed.CPU)
    assert node.name == "acosh_mid"
    assert node.reason.startswith("Operators of type `Acosh` are not supported by QNN EP. Acosh node")
    total = result.metric("total_inference_time")
    assert total is not None
    assert total.value is None
    assert "nodes on the CPU (1) is unknown" in total.note


def test_every_node_of_the_model_stands_once_and_shares_of_the_path_add_up() -> None:
    result = profiled(two_partitions())
    names = [node.name for node in result.ops]
    assert len(set(names)) == len(names)
    assert set(names) >= {"conv0", "acosh_mid", "conv1", "relu1", "graph 1 input", "graph 2 output"}
    assert [part.name for part in parts_of(result)] == ["graph 1", "graph 2"]
    assert sum(node.path_share or 0 for node in result.ops) == pytest.approx(1, abs=1e-3)


def test_fused_and_inserted_nodes_are_called_so() -> None:
    result = profiled(tiny())
    fused = {node.name: node.reason for node in result.placed(Placed.FUSED)}
    assert fused["sig3"] == "no kernel of its own; its work is part of mul3"
    assert {"Transpose_token_34", "graph input"} <= {node.name for node in result.placed(Placed.INSERTED)}
    assert {node.name for node in result.placed(Placed.ACCELERATOR)} >= {"conv0", "mul3"}
    covers = {node.name: node.covers for node in result.ops}
    assert covers["mul3"] == ("sig3",)
    assert covers["sig3"] == ()


def test_a_node_that_others_do_the_work_of_has_no_time_of_its_own() -> None:
    for result in (profiled(tiny()), profiled(two_partitions())):
        assert all((node.time_ns is None) == (node.placed in (Placed.FUSED, Placed.CPU)) for node in result.ops)


def test_bytes_of_nodes_add_up_to_the_total_and_the_vtcm_peak_is_the_models() -> None:
    result = profiled(tiny())
    assert (
        sum(node.outer_read_bytes or 0 for node in result.ops) == result.value("ddr_read") == WHOLE.total("dram_read")
    )
    assert sum(node.outer_write_bytes or 0 for node in result.ops) == result.value("ddr_write") == 40
    assert result.trace is not None
    assert result.value("vtcm_peak") == WHOLE.peak == max(result.trace.samples["value"])


def test_busy_wait_and_idle_fill_every_thread() -> None:
    result = profiled(tiny())
    assert result.latency is not None
    assert {lane.wall_ns for lane in result.lanes} == {result.latency.value_ns}
    assert [lane.name for lane in result.lanes] == ["FG", "HVX 1", "HVX 2", "HVX 3", "HVX 4", "DMA"]


def test_the_parts_of_the_dominant_path_add_up() -> None:
    result = profiled(tiny())
    assert sum(part.share for part in result.path_shares) == pytest.approx(1)
    assert sum(part.ns for part in result.path_shares) == pytest.approx(WHOLE.cycles * 1000 / MHZ)
    assert {part.cause for part in result.path_shares} >= {"HVX", "HMX", "dispatch and waits"}


def test_spans_of_one_lane_never_overlap() -> None:
    trace = profiled(two_partitions()).trace
    assert trace is not None
    for lane in range(len(trace.lanes)):
        spans = np.sort(trace.spans[trace.spans["lane"] == lane], order=["start_ns", "end_ns"])
        assert (spans["start_ns"][1:] >= spans["end_ns"][:-1]).all()


def test_waits_say_whom_they_are_for() -> None:
    result = profiled(tiny())
    assert result.trace is not None
    waits = result.trace.spans[result.trace.spans["kind"] == SpanKind.WAIT]
    assert len(waits) > 0
    assert (waits["waits_on"] >= 0).mean() > 0.9


def test_the_chrome_trace_has_rows_names_flows_and_the_vtcm_counter() -> None:
    result = profiled(tiny())
    out = BytesIO()
    ChromeTrace(run_of(result), flows=True).render(result.trace, out)
    events = json.loads(out.getvalue())["traceEvents"]
    rows = {event["args"]["name"] for event in events if event["name"] == "thread_name"}
    assert rows == {"FG", "HVX 1", "HVX 2", "HVX 3", "HVX 4", "DMA"}
    assert any(event["ph"] == "X" and event["name"].startswith("conv0 · ConvLayer") for event in events)
    assert max(next(iter(e["args"].values())) for e in events if e["ph"] == "C") == WHOLE.peak
    assert sum(event["ph"] == "s" for event in events) == sum(event["ph"] == "f" for event in events) > 20


def test_the_same_files_give_the_same_bytes() -> None:
    def whole() -> str:
        out = StringIO()
        result = profiled(two_partitions())
        out.write(encode_recording(result).decode())
        QhasJson().render(result, out)
        return out.getvalue()

    assert whole() == whole()


def test_text_shows_every_number_with_its_provenance() -> None:
    text = text_of(profiled(tiny()))
    least, middle, most = (f"{WHOLE.cycles * factor / MHZ:.2f} us" for factor in (0.9, 1, 1.2))
    assert f"htp execution time     {middle} ({least} – {most})  [vendor-model;" in text
    assert f"vtcm peak              {WHOLE.peak / 1024:.2f} KB  [compiler-fact]" in text
    assert "rpc time               —  (only a device can tell: import its profile)" in text


@pytest.mark.parametrize(
    ("level", "has", "lacks"),
    [
        ("basic", ["ddr read"], ["threads –", "nodes ("]),
        ("client", ["stages of the compiler"], ["threads –", "nodes ("]),
        ("backend", ["threads", "stages of the compiler"], ["nodes ("]),
        ("detailed", ["threads", "nodes (", "of the critical path"], ["kernels ("]),
        ("linting", ["waits and overlap", "of the critical path"], ["nodes ("]),
        ("optrace", ["nodes (", "kernels (", "stages of the compiler"], []),
    ],
)
def test_levels_show_what_they_say(level: str, has: list[str], lacks: list[str]) -> None:
    text = text_of(profiled(tiny()), level=level)
    assert [word for word in has if word not in text] == []
    assert [word for word in lacks if word in text] == []


def test_the_analysis_summary_has_the_short_form_and_the_vendors_tables() -> None:
    out = StringIO()
    QhasJson().render(profiled(tiny()), out)
    summary = json.loads(out.getvalue())
    assert summary["execution_summary"]["htp_execution_time_ms"] == pytest.approx(WHOLE.cycles / MHZ / 1000, rel=1e-4)
    assert summary["execution_summary"]["total_inference_time_ms"] is None
    assert summary["resource_utilization"]["vtcm_peak_usage_kb"] == WHOLE.peak / 1024
    data = summary["data"]
    assert data["htp_overall_summary"]["data"][0]["timeline_cycles"] == WHOLE.cycles
    path = data["dominant_path_htp_0"]["data"]
    assert sum(row["cycles"] for row in path) == WHOLE.cycles
    assert {"qnn_op_types", "qnn_op_instances_nodes", "htp_op_types", "htp_op_instances"} <= set(data)


def test_the_page_escapes_names_and_needs_no_network() -> None:
    result = profiled(tiny())
    evil = replace(result.ops[0], name="<script>alert(1)</script>")
    out = StringIO()
    QhasHtml().render(replace(result, ops=(evil, *result.ops[1:])), out)
    page = out.getvalue()
    assert "&lt;script&gt;alert(1)" in page
    assert "<script" not in page
    assert "http" not in page.replace("http-equiv", "")


def test_a_part_without_a_model_has_facts_and_no_times() -> None:
    whole = two_partitions()
    bare = replace(whole, graphs=tuple(replace(g, timeline=None, prepared=None) for g in whole.graphs))
    result = profiled(bare, soc="57")
    assert result.latency is None
    assert not len(result.trace.spans)
    assert result.provenance == "compiler-fact"
    assert result.value("ddr_read") == READ_BY_TWO
    assert all(node.time_ns is None for node in result.ops)
    assert "cycles —, bytes compiler-fact" in text_of(result)


def test_a_silent_fallback_to_another_part_is_refused() -> None:
    options = HtpOptions.of({"soc": "SM8650"})
    with pytest.raises(UsageError, match=r"^--soc SM8650: asked for id 57, but the library compiled for its default"):
        _check_target(OpTrace(0, {}, ()), options)
    _check_target(OpTrace(57, {}, ()), options)


def test_a_model_of_which_nothing_is_taken_says_why() -> None:
    refused = (Refused("a", "Acosh", "not supported"),)
    with pytest.raises(
        ModelError, match=r"^m\.onnx: the accelerator takes none of its nodes: 1 × Acosh \(a\): not supp"
    ):
        _check_taken(OpTrace(52, {}, refused), Path("m.onnx"))
