"""Formats that are small tables: benchmark_model, TensorRT, OpenVINO."""

from __future__ import annotations

from pathlib import Path

import pytest

from opscope.core.errors import ImportFileError, UsageError
from opscope.importers.combine import combine
from opscope.importers.formats import read_profile
from support.plugins.importer_samples import SAMPLES, all_hold, changed, op, sample

# benchmark_model


def test_a_benchmark_log_gives_nodes_in_run_order_and_the_latency() -> None:
    imported = sample("tflite_log.txt")
    assert all_hold(imported)
    assert [o.type for o in imported.ops] == ["CONV_2D", "TfLiteXNNPackDelegate", "SOFTMAX"]
    assert imported.latency_ns == 9_620_500
    assert imported.model == "/data/local/tmp/mobile.tflite"
    assert imported.value("initialization: ModifyGraphWithDelegate") == 2_100_000
    assert imported.inferences == 50


def test_a_node_called_twice_takes_twice_its_average() -> None:
    assert op(sample("tflite_log.txt"), "softmax").time_ns == 2 * 319_000


def test_fused_names_and_delegates_are_told() -> None:
    first, delegate, _ = sample("tflite_log.txt").ops
    assert first.covers == ("stem/relu", "stem/bn", "stem/conv")
    assert (delegate.name, delegate.engines) == ("TfLiteXNNPackDelegate:64", ("delegate",))


def test_the_csv_of_the_same_tool_may_have_commas_in_types() -> None:
    imported = sample("tflite_profile.csv")
    assert all_hold(imported)
    assert imported.ops[1].name == "Delegate/Fully Connected (NC, F32) GEMM:0"
    assert imported.ops[1].time_ns == 5_460_000


def test_a_row_of_the_log_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    imported = changed(tmp_path, "tflite_log.txt", "\t    0.320\t    0.319", "\t    0.320\t    -")
    assert imported.notes[0].startswith("1 rows could not be read: line 25:")
    assert not all_hold(imported)


def test_a_step_of_initialization_that_was_done_twice_took_twice_its_average() -> None:
    assert sample("tflite_log.txt").value("initialization: AllocateTensors") == 2 * 450_000


def test_litert_counts_in_milliseconds_and_says_more_digits_elsewhere() -> None:
    imported = sample("tflite_litert_log.txt")
    assert all_hold(imported)
    assert imported.latency_ns == 500_500
    assert (imported.value("latency, least"), imported.value("latency, most")) == (482_000, 900_000)
    assert (imported.value("init"), imported.value("first inference")) == (3_100_000, 910_000)
    assert imported.value("memory footprint, overall") == 11.25 * 2**20


def test_litert_without_the_line_of_its_runs_has_two_digits(tmp_path: Path) -> None:
    imported = changed(tmp_path, "tflite_litert_log.txt", "INFO: count=1000 ", "INFO: counted=1000 ")
    assert imported.latency_ns == 500_000


def test_a_node_called_less_than_once_a_run_has_its_share_and_not_nothing() -> None:
    row = op(sample("tflite_litert_log.txt"), "AllocateTensors/0")
    assert (row.calls, row.time_ns) == (None, 1_000)  # 0.25 % of 400 µs


def test_a_log_that_counts_no_calls_at_all_has_one_of_each(tmp_path: Path) -> None:
    text = (SAMPLES / "tflite_log.txt").read_text().replace("0.000\t        1\t[", "0.000\t        0\t[")
    (tmp_path / "x").write_text(text.replace("0.000\t        2\t[", "0.000\t        0\t["))
    assert [row.time_ns for row in read_profile(tmp_path / "x").ops] == [3_640_000, 5_300_000, 319_000]


def test_bodies_and_insides_of_delegates_are_not_counted_twice() -> None:
    imported = sample("tflite_subgraphs_log.txt")
    assert all_hold(imported)
    assert [(row.name, (row.time_ns or 0) // 1000) for row in imported.ops] == [
        ("Delegate/Convolution (NHWC, F32) IGEMM:0", 400),
        ("Delegate/Add (ND, F32):1", 100),
        ("a: the rest", 100),
        ("loop", 300),
        ("softmax", 100),
    ]
    assert sum(row.time_ns or 0 for row in imported.ops) == imported.latency_ns
    assert imported.inferences == 50
    assert imported.notes == (
        "1 nodes of 1 subgraphs are part of the ops that run them",
        "1 delegates are shown as the 2 nodes inside of them, and the rest of their time",
    )


def test_nodes_that_take_longer_than_their_delegate_are_left_out(tmp_path: Path) -> None:
    imported = changed(tmp_path, "tflite_subgraphs_log.txt", "\t    0.400\t    0.400", "\t    0.900\t    0.900")
    assert [row.name for row in imported.ops] == ["a", "loop", "softmax"]
    assert imported.notes[-1] == "2 nodes inside of delegates are left out: they take longer than these"


def test_memory_of_the_benchmark_is_read_in_bytes() -> None:
    imported = sample("tflite_subgraphs_log.txt")
    assert imported.value("memory footprint, init") == 3.5 * 2**20
    assert imported.value("memory footprint, overall") == 12.25 * 2**20
    assert imported.value("peak memory footprint, overall") == 20.5 * 2**20


def test_a_log_with_nothing_in_it_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("Operator-wise Profiling Info for Regular Benchmark Runs:\n")
    with pytest.raises(ImportFileError, match="no table of nodes and no timings"):
        read_profile(tmp_path / "x")


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
    assert conv.covers == ("conv1", "relu1")
    assert conv.shape == "16×3×28×28 → 16×256×28×28"
    assert (both.provenance, both.inferences, both.latency_ns) == ("measured", 100, 100_000)


def test_an_average_that_is_not_total_by_runs_is_a_violation(tmp_path: Path) -> None:
    imported = changed(tmp_path, "tensorrt_profile.json", '"timeMs" : 6,', '"timeMs" : 7,')
    assert [c.detail for c in imported.checks if not c.holds] == ["2 of 3 layers; not conv1 + relu1"]


def test_a_layer_of_another_form_is_counted(tmp_path: Path) -> None:
    imported = changed(tmp_path, "tensorrt_layers.json", '"Name": "fc"', '"Name": 7')
    assert len(imported.ops) == 2
    assert imported.notes[0].startswith("1 layers could not be read: layer 2")


def test_an_entry_of_another_form_is_counted_and_the_latency_withheld(tmp_path: Path) -> None:
    imported = changed(tmp_path, "tensorrt_profile.json", '"timeMs" : 6,', '"timeMs" : "6",')
    assert [row.time_ns for row in imported.ops] == [15_000, 25_000]
    assert imported.latency_ns is None
    assert imported.notes[0] == "latency is withheld: layers have no time"
    assert imported.notes[1].startswith("1 entries could not be read: entry 2: Expected `float | null`")


def test_a_negative_time_is_none_and_the_latency_withheld(tmp_path: Path) -> None:
    imported = changed(tmp_path, "tensorrt_profile.json", '"averageMs" : 0.025', '"averageMs" : -0.025')
    assert [row.time_ns for row in imported.ops] == [15_000, 60_000, None]
    assert imported.latency_ns is None


@pytest.mark.parametrize(
    ("weights", "size"),
    [('"Int4", "Count": 101', 51 + 1024), ('"E8M0", "Count": 9', None), ('"E8M0", "Count": 0', 1024)],
)
def test_weights_of_an_unknown_type_make_the_size_unknown(tmp_path: Path, weights: str, size: int | None) -> None:
    imported = changed(tmp_path, "tensorrt_layers.json", '"Int8", "Count": 131072', weights)
    assert op(imported, "conv1 + relu1").parameter_bytes == size


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
    assert (conv.time_ns, conv.low_ns, conv.high_ns, imported.inferences) == (12_000, 10_000, 14_000, 2)


@pytest.mark.parametrize("name", ["openvino_sort.csv", "openvino_sorted.csv"])
def test_sorted_counters_have_a_column_of_shares_behind_their_times(name: str) -> None:
    imported = sample(name)
    assert all_hold(imported)
    assert len(imported.checks) == 1
    assert [(row.time_ns, row.host_ns) for row in imported.ops] == [(30_000, 20_000), (10_000, 10_000)]
    assert imported.notes == ()


def test_a_name_with_commas_is_one_cell() -> None:
    assert [row.name for row in sample("openvino_sorted.csv").ops] == ["conv", "odd,name"]


def test_columns_are_found_by_their_names(tmp_path: Path) -> None:
    text = (
        "layerName;execStatus;layerType;execType;numaId;realTime (ms);cpuTime (ms);\na;b;EXECUTED;C;k;1;0.030;0.020;\n"
    )
    (tmp_path / "x").write_text(text)
    (row,) = read_profile(tmp_path / "x").ops
    assert (row.name, row.type, row.time_ns, row.host_ns) == ("a;b", "C", 30_000, 20_000)


def test_counters_may_be_json() -> None:
    imported = sample("openvino_detailed.json")
    assert all_hold(imported)
    assert [(row.name, row.kernel, row.time_ns) for row in imported.ops] == [
        ("conv", "brgconv", 30_000),
        ("relu", "", None),
    ]


def test_a_report_of_the_cpp_tool_ends_every_line_with_a_separator() -> None:
    imported = sample("openvino_report_cpp.csv")
    assert (imported.latency_ns, imported.model, imported.target) == (50_500_000, "kws.xml", "CPU")
    assert imported.value("throughput") == 39.998
    assert imported.value("Average latency") == 51_250_000
    assert imported.value("batch") == 1
    assert imported.notes == ("latencies of 1 groups of shapes are not read",)


def test_another_percentile_than_the_median_is_not_the_latency(tmp_path: Path) -> None:
    text = (SAMPLES / "openvino_report_cpp.csv").read_text()
    text = text.replace("Median latency", "latency (90 percentile)").replace("boundary;50", "boundary;90")
    (tmp_path / "x").write_text(text)
    imported = read_profile(tmp_path / "x")
    assert imported.latency_ns == 51_250_000
    assert imported.value("latency (90 percentile)") == 50_500_000


def test_counters_and_report_make_one() -> None:
    both = combine([sample("openvino_average.csv"), sample("openvino_report.csv")])
    assert (both.latency_ns, both.target, both.model) == (60_000, "CPU", "kws.onnx")
    assert both.value("throughput") == 11242.87


def test_a_total_that_is_not_the_sum_of_its_table_is_a_violation(tmp_path: Path) -> None:
    imported = changed(tmp_path, "openvino_average.csv", "Total;;;;0.020", "Total;;;;0.090")
    assert [c.holds for c in imported.checks] == [False]


def test_a_layer_without_numbers_is_counted(tmp_path: Path) -> None:
    imported = changed(tmp_path, "openvino_average.csv", "brgemm_avx512;0.006;0.006", "brgemm_avx512;;")
    assert imported.notes[-1].startswith("1 rows could not be read: line 5: /fc/Gemm")


# together


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
@pytest.mark.parametrize(
    "name",
    [
        "openvino_average.csv",
        "tensorrt_profile.json",
        "vela_summary.csv",
        "tflite_log.txt",
        "latency.txt",
        "stedgeai_info.json",
        "stedgeai_v8.txt",
    ],
)
def test_a_file_that_went_through_windows_says_the_same(name: str, encoding: str, tmp_path: Path) -> None:
    text = (SAMPLES / name).read_text()
    (tmp_path / name).write_bytes(text.replace("\n", "\r\n").encode(encoding))
    there, back = sample(name), read_profile(tmp_path / name)
    assert (back.ops, back.metrics, back.checks, back.notes) == (there.ops, there.metrics, there.checks, there.notes)


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
