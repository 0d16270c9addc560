"""Totals of benchmark_app as JSON, and the timeline of the NPU."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from opscope.core.errors import ImportFileError
from opscope.core.meaning import Does
from opscope.importers.formats import read_profile
from opscope.recording.build import lane_totals, to_run
from support.plugins.importer_samples import SAMPLES, all_hold, op, sample

NPU = "openvino_npu.json"


def test_totals_of_the_python_tool_are_read_from_json() -> None:
    imported = sample("openvino_report.json")  # recorded: benchmark_app of OpenVINO 2026.4.1 on a CPU
    assert (imported.model, imported.target) == ("kws.onnx", "CPU")
    assert imported.latency_ns == 70_000
    assert imported.value("max latency") == 3_380_000
    assert imported.value("throughput") == 2848.27
    assert imported.value("first inference time") == 29_090_000
    assert (imported.value("batch"), imported.value("parallel infer requests")) == (1, 1)


def test_totals_of_the_other_tool_have_the_same_names() -> None:
    imported = sample("openvino_report_cpp.json")
    assert (imported.model, imported.target) == ("mobilenet.xml", "NPU")
    assert imported.latency_ns == 4_850_000
    assert imported.value("Average latency") == 4_910_000
    assert imported.value("parallel infer requests") == 4
    assert imported.value("compile model time") == 812_400_000


def test_a_benchmark_that_failed_says_so(tmp_path: Path) -> None:
    body = json.loads((SAMPLES / "openvino_report_cpp.json").read_text())
    body["execution_results"] = {"error": "no device"}
    (tmp_path / "report.json").write_text(json.dumps(body))
    imported = read_profile(tmp_path / "report.json")
    assert imported.latency_ns is None
    assert imported.notes == ("the benchmark ended with an error: no device",)


def test_the_time_of_a_layer_is_that_in_which_a_task_of_it_ran() -> None:
    imported = sample(NPU)
    assert all_hold(imported)
    conv, softmax = op(imported, "conv1"), op(imported, "softmax")
    assert (conv.time_ns, conv.calls, conv.engines) == (10_500, 4, ("DPU", "DMA"))  # two clusters at once count once
    assert (softmax.time_ns, softmax.type, softmax.engines) == (5_125, "Softmax", ("SHAVE",))
    assert imported.latency_ns == 17_125
    assert imported.clocks_hz == {"DPU": 1.3e9}


def test_layers_and_variants_are_marks_and_no_lane_at_work() -> None:
    trace = sample(NPU).trace
    busy = {(lane.core, lane.name): lane.busy_ns for lane in lane_totals(trace)}
    assert busy == {(-1, "DMA"): 4_000, (0, "DPU"): 6_000, (0, "SHAVE"): 5_125, (1, "DPU"): 6_250}
    assert len(trace.spans) == 9  # all are on the timeline


def test_engines_say_what_they_do_and_types_of_layers_tell_of_the_others() -> None:
    run = to_run(sample(NPU), command=(), created="", sha256=None)
    assert "spans" in run.info.classified
    trace = run.trace
    does = {trace.lanes[span["lane"]].name: Does(int(span["does"])) for span in trace.spans}
    assert (does["DPU"], does["DMA"], does["SHAVE"]) == (Does.COMPUTE, Does.MOVE, Does.COMPUTE)


def test_a_sum_that_its_tasks_do_not_have_is_violated(tmp_path: Path) -> None:
    text = (SAMPLES / NPU).read_text().replace('"Sum of DPU task durations":12.250', '"Sum of DPU task durations":13.5')
    (tmp_path / NPU).write_text(text)
    assert [check.name for check in read_profile(tmp_path / NPU).checks if not check.holds] == ["sum of DPU tasks"]


def test_a_timeline_without_a_task_is_refused(tmp_path: Path) -> None:
    (tmp_path / NPU).write_text('{"traceEvents": []}')
    with pytest.raises(ImportFileError, match="no task of an engine"):
        read_profile(tmp_path / NPU, form="openvino-npu")
