"""Formats that are small tables: benchmark_model, ST Edge AI, TensorRT, OpenVINO."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from importer_samples import SAMPLES, all_hold, op, sample

from opscope.errors import ImportFileError, UsageError
from opscope.imported import Imported
from opscope.importers import read_profile
from opscope.importers.combine import combine


def changed(tmp_path: Path, name: str, old: str, new: str) -> Imported:
    text = (SAMPLES / name).read_text()
    assert old in text
    (tmp_path / name).write_text(text.replace(old, new))
    return read_profile(tmp_path / name)


# benchmark_model


def test_a_benchmark_log_gives_nodes_in_run_order_and_the_latency() -> None:
    imported = sample("tflite_log.txt")
    assert all_hold(imported)
    assert [o.type for o in imported.ops] == ["CONV_2D", "TfLiteXNNPackDelegate", "SOFTMAX"]
    assert imported.latency_ns == 9_620_500
    assert imported.model == "/data/local/tmp/mobile.tflite"
    assert imported.metric("initialization: ModifyGraphWithDelegate") == 2_100_000
    assert imported.inferences == 50


def test_a_node_called_twice_takes_twice_its_average() -> None:
    assert op(sample("tflite_log.txt"), "softmax").time_ns == 2 * 319_000


def test_fused_names_and_delegates_are_told() -> None:
    first, delegate, _ = sample("tflite_log.txt").ops
    assert first.origins == ("stem/relu", "stem/bn", "stem/conv")
    assert (delegate.name, delegate.engine) == ("TfLiteXNNPackDelegate:64", "delegate")


def test_the_csv_of_the_same_tool_may_have_commas_in_types() -> None:
    imported = sample("tflite_profile.csv")
    assert all_hold(imported)
    assert imported.ops[1].name == "Delegate/Fully Connected (NC, F32) GEMM:0"
    assert imported.ops[1].time_ns == 5_460_000


def test_a_row_of_the_log_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    imported = changed(tmp_path, "tflite_log.txt", "\t    0.320\t    0.319", "\t    0.320\t    -")
    assert imported.notes[0].startswith("1 rows could not be read: line 25:")
    assert not all_hold(imported)


def test_a_log_with_nothing_in_it_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("Operator-wise Profiling Info for Regular Benchmark Runs:\n")
    with pytest.raises(ImportFileError, match="no table of nodes and no timings"):
        read_profile(tmp_path / "x")


# ST Edge AI


def test_c_info_has_macs_bytes_placement_and_times() -> None:
    imported = sample("stedgeai_info.json")
    assert all_hold(imported)
    fc, relu = imported.ops
    assert (fc.time_ns, fc.cycles, fc.macs, fc.parameter_bytes, fc.in_bytes, fc.engine) == (
        100_000,
        16000,
        896,
        3584,
        52,
        "CPU",
    )
    assert relu.engine == "NPU"
    assert imported.latency_ns == 130_000
    assert imported.provenance == "measured"
    assert imported.tool == "ST Edge AI Core 2.2.0-20266"


def test_a_time_of_zero_is_no_time(tmp_path: Path) -> None:
    text = (SAMPLES / "stedgeai_info.json").read_text()
    body = json.loads(text)
    for holder in (body["graphs"][0], *body["graphs"][0]["nodes"]):
        holder["exec_time"] = {"counters": None, "cycles": 0, "duration_ms": 0.0}
    (tmp_path / "i.json").write_text(json.dumps(body))
    imported = read_profile(tmp_path / "i.json")
    assert imported.provenance == "compiler-fact"
    assert {o.time_ns for o in imported.ops} == {None}
    assert imported.notes == ("no times: they come with `stedgeai validate` on the target",)
    assert imported.target == "stm32u5"


def test_times_of_the_host_are_not_taken_for_the_target(tmp_path: Path) -> None:
    imported = changed(tmp_path, "stedgeai_info.json", "stm32u5, cortex-m33, 160MHz", "x86_64, x86_64, Linux")
    assert "times were measured on the host (x86_64, x86_64, Linux), not on the target" in imported.notes


def test_weights_that_do_not_add_up_are_a_violation(tmp_path: Path) -> None:
    imported = changed(tmp_path, "stedgeai_info.json", '"weights": 3584', '"weights": 9000')
    assert [c.name for c in imported.checks if not c.holds] == ["weights = sum of the constant buffers"]


def test_the_text_report_adds_up_to_its_totals() -> None:
    imported = sample("stedgeai_analyze.txt")
    assert all_hold(imported)
    assert [(o.name, o.macs, o.parameter_bytes) for o in imported.ops] == [
        ("conv2d", 38040, 1632),
        ("dense", 9516, 38064),
    ]
    assert imported.metric("ram") == 10144
    assert imported.notes == ("no times: they come with `stedgeai validate` on the target",)


def test_a_report_without_c_layers_gives_the_model_table() -> None:
    imported = sample("stedgeai_n6.txt")
    assert all_hold(imported)
    assert [o.macs for o in imported.ops] == [None, 6400, 460816, 51200]
    assert (imported.target, imported.model) == ("stm32n6", "rps")


def test_a_validation_report_has_times_per_node() -> None:
    imported = sample("stedgeai_validate.txt")
    assert [(o.name, o.time_ns, o.cycles) for o in imported.ops] == [("fc", 100_000, 16000), ("relu", 30_000, 4800)]
    assert (imported.latency_ns, imported.provenance) == (130_000, "measured")


# TensorRT


def test_profile_and_layers_of_an_engine_make_one() -> None:
    both = combine([sample("tensorrt_profile.json"), sample("tensorrt_layers.json")])
    assert all_hold(both)
    conv = op(both, "conv1 + relu1")
    assert (conv.time_ns, conv.median_ns, conv.type, conv.parameter_bytes) == (
        60_000,
        59_800,
        "CaskConvolution",
        132_096,
    )
    assert conv.origins == ("conv1", "relu1")
    assert conv.shape == "16×3×28×28 → 16×256×28×28"
    assert (both.provenance, both.inferences, both.latency_ns) == ("measured", 100, 100_000)


def test_an_average_that_is_not_total_by_runs_is_a_violation(tmp_path: Path) -> None:
    imported = changed(tmp_path, "tensorrt_profile.json", '"timeMs" : 6,', '"timeMs" : 7,')
    assert [c.detail for c in imported.checks if not c.holds] == ["2 of 3 layers; not conv1 + relu1"]


def test_a_layer_of_another_form_is_counted(tmp_path: Path) -> None:
    imported = changed(tmp_path, "tensorrt_layers.json", '"Name": "fc"', '"Name": 7')
    assert len(imported.ops) == 2
    assert imported.notes[0].startswith("1 layers could not be read: layer 2")


# OpenVINO


def test_counters_have_names_with_separators_and_layers_without_time() -> None:
    imported = sample("openvino_average.csv")
    assert all_hold(imported)
    conv = op(imported, "conv;with;separators")
    assert (conv.type, conv.kernel, conv.time_ns, conv.host_ns) == ("Convolution", "brgconv_avx512", 14_000, 12_000)
    assert op(imported, "/relu/Relu").time_ns is None
    assert imported.notes == ("2 of 4 layers have no time: left out or under 1 µs",)


def test_a_table_per_request_gives_the_mean_and_the_spread() -> None:
    imported = sample("openvino_cpp.csv")
    assert all_hold(imported)
    conv = op(imported, "conv")
    assert (conv.time_ns, conv.least_ns, conv.most_ns, imported.inferences) == (12_000, 10_000, 14_000, 2)


def test_counters_and_report_make_one() -> None:
    both = combine([sample("openvino_average.csv"), sample("openvino_report.csv")])
    assert (both.latency_ns, both.target, both.model) == (60_000, "CPU", "kws.onnx")
    assert both.metric("throughput") == 11242.87


def test_a_total_that_is_not_the_sum_of_its_table_is_a_violation(tmp_path: Path) -> None:
    imported = changed(tmp_path, "openvino_average.csv", "Total;;;;0.020", "Total;;;;0.090")
    assert [c.holds for c in imported.checks] == [False]


def test_a_layer_without_numbers_is_counted(tmp_path: Path) -> None:
    imported = changed(tmp_path, "openvino_average.csv", "brgemm_avx512;0.006;0.006", "brgemm_avx512;;")
    assert imported.notes[-1].startswith("1 rows could not be read: line 5: /fc/Gemm")


# together


def test_measured_and_modelled_files_do_not_make_one_run() -> None:
    with pytest.raises(UsageError, match=r"is measured, .* is vendor-model; expected files of one provenance"):
        combine([sample("openvino_average.csv"), sample("vela_summary.csv")])


@pytest.mark.parametrize(
    ("form", "head", "line"),
    [
        ("tflite-benchmark", "========== Run Order ==========\n[node type]\n", "a " + " " * 15_000 + "1 1 1 x\n"),
        ("tflite-benchmark", "========== Run Order ==========\n[node type]\n", "=" * 15_000 + "\n"),
        ("stedgeai-text", "ST Edge AI Core v4\nModel name - x\n", "1 a (b) " + " " * 4_000 + "x\n"),
        ("stedgeai-text", "ST Edge AI Core v4\n", "a " * 2_000 + ":" + " " * 4_000 + "x\n"),
        ("qaic-runner-stdout", "Metric,\n", "," * 4_000 + "\n"),
        ("openvino-counters", "layerName;execStatus;layerType;execType;a;b\n", ";" * 10_000 + "\n"),
    ],
)
def test_long_lines_take_no_longer_than_their_length(form: str, head: str, line: str, tmp_path: Path) -> None:
    (tmp_path / "x").write_text(head + line * 300)
    try:
        notes = read_profile(tmp_path / "x", form=form).notes
    except ImportFileError:
        return
    assert notes
