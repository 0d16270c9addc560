"""The real compiler and performance model of the vendor, on small models made here."""

from __future__ import annotations

import gzip
import json
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from opscope import api, cli
from opscope.core.errors import ModelError, TargetError, UsageError
from opscope.plugins.qnn.details import parts_of
from opscope.plugins.qnn.profiler import HtpProfiler
from opscope.recording.recording import Placed, Recording
from opscope.workflows import profiling
from support.models.onnx_models import classifier
from support.models.packed_models import gzipped, zipped
from support.models.tflite_build import BY_HAND

profile = partial(profiling.profile, backend="htp", options={})

pytestmark = pytest.mark.skipif(
    find_spec("onnxruntime_qnn") is None, reason="onnxruntime-qnn is not installed: pip install 'opscope[htp]'"
)

GOLDEN = {  # version of the package → what it says of `conv_model` on each part
    "2.7.0": {
        "52": {
            "cycles": 35626,
            "low": 31826,
            "high": 40036,
            "ddr_read": 32768,
            "ddr_write": 65536,
            "vtcm_peak": 135168,
        },
    }
}
UNSTEADY = {"compile_time"}  # of this machine


def write(path: Path, nodes: list[object], shape: list[int | str], constants: dict[str, tuple[int, ...]]) -> Path:
    random = np.random.default_rng(7)
    weights = [
        numpy_helper.from_array(random.standard_normal(extents).astype(np.float32), name)
        for name, extents in constants.items()
    ]
    ports = [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)]
    result = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    graph = helper.make_graph(nodes, "g", ports, result, weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), str(path))
    return path


def conv(name: str, source: str, target: str, weight: str) -> object:
    return helper.make_node("Conv", [source, weight], [target], name=name, pads=[1, 1, 1, 1])


@pytest.fixture
def conv_model(tmp_path: Path) -> Path:
    nodes = [
        conv("first", "x", "a", "w0"),
        helper.make_node("Relu", ["a"], ["b"], name="act"),
        conv("second", "b", "c", "w1"),
        helper.make_node("Sigmoid", ["c"], ["y"], name="gate"),
    ]
    return write(tmp_path / "conv.onnx", nodes, [1, 3, 32, 32], {"w0": (16, 3, 3, 3), "w1": (16, 16, 3, 3)})


@pytest.fixture
def two_graphs(tmp_path: Path) -> Path:
    nodes = [
        conv("first", "x", "a", "w0"),
        helper.make_node("Acosh", ["a"], ["b"], name="odd"),
        conv("second", "b", "y", "w1"),
    ]
    return write(tmp_path / "two.onnx", nodes, [1, 3, 32, 32], {"w0": (16, 3, 3, 3), "w1": (16, 16, 3, 3)})


def figures(result: Recording) -> dict[str, float | None]:
    return {metric.name: metric.value for metric in result.metrics if metric.name not in UNSTEADY}


def test_two_runs_give_the_same_numbers_and_they_are_those_of_this_version(conv_model: Path) -> None:
    first, second = (profile(conv_model, options={"soc": "52"}) for _ in range(2))
    assert figures(first) == figures(second)
    assert first.ops == second.ops
    assert first.vendor_tables == second.vendor_tables
    assert first.trace is not None
    assert second.trace is not None
    assert first.trace.spans.tobytes() == second.trace.spans.tobytes()
    known = GOLDEN.get(version("onnxruntime-qnn"))
    if known is not None:
        (part,) = parts_of(first)
        found = {"cycles": part.cycles, "low": part.low_cycles, "high": part.high_cycles}
        found |= {name: first.value(name) for name in ("ddr_read", "ddr_write", "vtcm_peak")}
        assert found == known["52"]


def test_ddr_vtcm_and_macs_are_those_of_the_vendors_counters_and_of_the_graph(tmp_path: Path) -> None:
    """Two megabytes of activations in one of VTCM: some are spilled, some weights are read again."""
    wide = {f"w{number}": (64, 64, 3, 3) for number in range(3)} | {"w": (64, 3, 3, 3)}
    nodes = [
        conv("Conv_1", "x", "a", "w"),  # names that look like places of others
        conv("Conv_0", "a", "b", "w0"),
        helper.make_node("Relu", ["b"], ["d"], name="act"),
        conv("c1", "d", "e", "w1"),
        conv("c2", "e", "f", "w2"),
        helper.make_node("Add", ["a", "f"], ["y"], name="sum"),
    ]
    model = write(tmp_path / "wide.onnx", nodes, [1, 3, 96, 96], wide)
    result = profile(model, options={"soc": "52", "vtcm-mb": 1})
    fill, spill = result.value("intermediate_fill"), result.value("intermediate_spill")
    assert fill  # else the model shows nothing
    assert spill
    assert result.value("ddr_read") == (result.value("input_fill") or 0) + fill
    assert result.value("ddr_write") == (result.value("output_spill") or 0) + spill
    again = result.value("ddr_read_again") or 0
    assert sum(op.outer_read_bytes or 0 for op in result.ops) == (result.value("ddr_read") or 0) + again
    assert (result.value("vtcm_peak") or 0) <= 1024 * 1024
    macs = 96 * 96 * 64 * 9 * (3 + 3 * 64)
    assert sum(op.macs or 0 for op in result.ops) == macs
    macs_of = {op.name: op.macs for op in result.ops if op.macs}
    assert macs_of == {"Conv_1": macs * 3 // 195} | dict.fromkeys(("Conv_0", "c1", "c2"), macs * 64 // 195)


def test_copies_of_another_precision_give_the_same_numbers_again(conv_model: Path) -> None:
    first, second = (profile(conv_model, options={"precision": "w8a8"}) for _ in range(2))
    assert figures(first) == figures(second)
    assert parts_of(first) == parts_of(second)
    assert first.vendor_tables == second.vendor_tables
    assert first.files == second.files


def with_metadata(model: Path) -> Path:
    """As exporters leave it, with entries that a step of the vendor's fails on."""
    proto = onnx.load(str(model))
    helper.set_model_props(proto, {"names": "{0: 'cat'}", "stride": "32"})
    onnx.save(proto, str(model))
    return model


@pytest.mark.parametrize("precision", ["w8a8", "w8a16", "w4a16", "f16"])
def test_a_copy_of_a_model_with_metadata_is_kept_with_its_error(
    conv_model: Path, tmp_path: Path, precision: str
) -> None:
    model, run = with_metadata(conv_model), tmp_path / "run"
    recorded = api.profile(model, backend="htp", options={"precision": precision}, run=run)
    assert recorded.recording.latency is not None
    copy = onnx.load(str(run / f"{precision}.onnx"))
    assert {entry.key: entry.value for entry in copy.metadata_props}["stride"] == "32"
    found = recorded.recording.details["quantization"]
    assert isinstance(found, dict)
    assert found["outputs"][0]["sqnr_db"] > 10
    assert any("error against float: y " in note for note in recorded.recording.notes)
    is_said = any("calibrated with random data" in note for note in recorded.recording.notes)
    assert is_said == (precision != "f16")


def test_a_copy_is_calibrated_with_data_where_they_are_given(conv_model: Path, tmp_path: Path) -> None:
    data = tmp_path / "inputs.npz"
    np.savez(data, x=np.random.default_rng(1).standard_normal((3, 3, 32, 32)).astype(np.float32))
    result = profile(conv_model, options={"precision": "w8a8", "data": str(data)})
    assert any("calibrated with 3 samples of " in note for note in result.notes)
    assert not any("random" in note for note in result.notes)
    with pytest.raises(UsageError, match=r"nothing\.npz: no such file or folder; expected an \.npz"):
        profile(conv_model, options={"precision": "w8a8", "data": "nothing.npz"})


@pytest.mark.slow
def test_advice_counts_copies_of_a_model_with_metadata(conv_model: Path) -> None:
    result = profile(with_metadata(conv_model), advise=True)
    assert not any("not tried" in note for note in result.notes)
    assert any("--precision" in cause.title for cause in result.causes)


def test_a_model_is_quantised_for_the_compiler_and_profiled_before_and_after(conv_model: Path, tmp_path: Path) -> None:
    made = api.quantize(with_metadata(conv_model), tmp_path / "q.onnx", backend="htp", random=2, runs=tmp_path / "runs")
    assert made.before is not None
    assert made.after is not None
    assert made.before.latency is not None
    assert made.after.latency is not None
    assert made.after.latency.known_ns < made.before.latency.known_ns
    assert made.after.latency.provenance == "vendor-model"
    again = profile(tmp_path / "q.onnx")
    assert any("calibrated with random data" in note for note in again.notes)
    assert (tmp_path / "runs" / "after" / "run.json").is_file()


def test_a_part_that_takes_integers_alone_has_a_time_of_the_copy_and_a_reason_for_the_model(
    conv_model: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "q.onnx"
    made = api.quantize(conv_model, copy, backend="htp", backend_options={"soc": "SAR2230P"}, random=1)
    assert made.before is not None
    assert "SAR2230P does not take one of its nodes" in made.before.problem
    assert made.after is not None
    assert made.after.latency is not None
    with pytest.raises(TargetError, match="SoC SM9999: not known"):
        api.quantize(conv_model, tmp_path / "none", backend="htp", backend_options={"soc": "SM9999"}, random=1)
    assert not (tmp_path / "none").exists()


def test_the_estimate_lies_in_its_range_and_nodes_are_the_models_fused_ones_too(conv_model: Path) -> None:
    result = profile(conv_model)
    metric = result.metric("htp_execution_time")
    assert metric is not None
    assert metric.low is not None
    assert metric.high is not None
    assert metric.value is not None
    assert 0 < metric.low <= metric.value <= metric.high
    assert {"first", "act", "second", "gate"} <= {node.name for node in result.ops}
    assert all(node.placed != Placed.CPU for node in result.ops)
    assert sum(node.path_share or 0 for node in result.ops) == pytest.approx(1, abs=2e-3)
    assert all("kernel" in node.reason for node in result.placed(Placed.FUSED))


def test_the_performance_profile_does_not_change_the_estimate_and_the_report_says_so(conv_model: Path) -> None:
    plain, burst = (profile(conv_model, options={"perf-profile": word}) for word in ("balanced", "burst"))
    assert figures(plain) == figures(burst)
    assert "--perf-profile burst has no effect: the model is fixed at the highest clock" in burst.notes


def test_a_node_that_is_not_supported_cuts_the_model_and_says_why(two_graphs: Path) -> None:
    result = profile(two_graphs)
    assert len(parts_of(result)) == 2
    (node,) = result.placed(Placed.CPU)
    assert (node.name, "Acosh" in node.reason) == ("odd", True)
    assert result.latency is not None
    assert result.latency.value_ns == sum(part.latency.value_ns for part in parts_of(result) if part.latency)


def test_open_shapes_are_refused_with_the_flag_that_helps(tmp_path: Path) -> None:
    model = write(tmp_path / "open.onnx", [helper.make_node("Relu", ["x"], ["y"], name="r")], ["N", 3, "h", 8], {})
    with pytest.raises(ModelError, match=r"2 dimensions are open: 'N', 'h' .* for example --shape x=1x3x224x8$"):
        profile(model)
    assert profile(model, shapes={"x": (2, 3, 8, 8)}).latency is not None
    alone = profile(model, shapes={"h": (8,)})
    assert alone.latency is not None
    assert "batch is open in the file; read at batch 1, --batch N for another" in alone.notes


def test_a_model_of_which_nothing_is_taken_fails_with_the_reason(tmp_path: Path) -> None:
    model = write(tmp_path / "odd.onnx", [helper.make_node("Acosh", ["x"], ["y"], name="odd")], [1, 3, 8, 8], {})
    with pytest.raises(ModelError, match=r"takes none of its nodes: 1 × Acosh \(odd\): Operators of type `Acosh`"):
        profile(model)


def test_a_float_model_on_a_part_without_float_is_refused_with_the_flag_that_helps(conv_model: Path) -> None:
    words = (
        r"SAR2230P does not take one of its nodes in this precision; expected a quantised model, or --precision w8a8"
    )
    with pytest.raises(ModelError, match=words):
        profile(conv_model, options={"soc": "SAR2230P"})
    assert profile(conv_model, options={"soc": "SAR2230P", "precision": "w8a8"}).latency is not None


def test_spills_are_counted_where_vtcm_is_tight_and_only_there(tmp_path: Path) -> None:
    nodes = [conv(f"c{n}", "x" if not n else f"t{n}", f"t{n + 1}", f"w{n}") for n in range(3)]
    nodes.append(helper.make_node("Add", ["t1", "t3"], ["y"], name="sum"))
    shapes: dict[str, tuple[int, ...]] = {"w0": (64, 3, 3, 3), "w1": (64, 64, 3, 3), "w2": (64, 64, 3, 3)}
    model = write(tmp_path / "wide.onnx", nodes, [1, 3, 96, 96], shapes)
    tight, wide = (profile(model, options={"vtcm-mb": size}) for size in (1, 8))
    assert (tight.value("intermediate_spill") or 0) > 0
    assert wide.value("intermediate_spill") == 0
    assert "spill" in {cause.id for cause in tight.causes}


def test_nodes_without_names_get_some(tmp_path: Path) -> None:
    nodes = [conv("", "x", "a", "w0"), helper.make_node("Relu", ["a"], ["y"])]
    result = profile(write(tmp_path / "m.onnx", nodes, [1, 3, 16, 16], {"w0": (8, 3, 3, 3)}))
    assert {"Conv_0", "Relu_1"} <= {node.name for node in result.ops}


def test_the_command_leaves_a_run_a_trace_and_a_summary(conv_model: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    arguments = [
        "profile",
        str(conv_model),
        "--backend",
        "htp",
        "--qhas",
        "html",
        "--output-chrome-trace",
        "-o",
        str(run),
    ]
    assert cli.main(arguments) == 0
    assert {
        "run.json",
        "spans.parquet",
        "summary.json",
        "recording.json",
        "findings.json",
        "trace.json",
        "qhas.html",
    } <= {path.name for path in run.iterdir()}
    events = json.loads((run / "trace.json").read_text())["traceEvents"]
    assert {"X", "C", "M", "s", "f"} <= {event["ph"] for event in events}
    assert (
        cli.main(
            [
                "profile",
                str(conv_model),
                "--backend",
                "htp",
                "--json",
                "--baseline",
                str(run),
                "--max-regression",
                "0%",
                "-o",
                str(tmp_path / "again"),
            ]
        )
        == 0
    )


def test_emulation_gives_outputs_and_no_time(
    conv_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outputs = tmp_path / "out.npz"
    arguments = [
        "profile",
        str(conv_model),
        "--backend",
        "htp",
        "--execute",
        "--outputs",
        str(outputs),
        "-o",
        str(tmp_path / "run"),
    ]
    assert cli.main(arguments) == 0
    assert "ran once in emulation (emulated): outputs only" in capsys.readouterr().err
    assert np.load(outputs)["y"].shape == (1, 16, 32, 32)


def test_emulated_outputs_that_are_maps_are_several_arrays(tmp_path: Path) -> None:
    made = tmp_path / "out.npz"
    profiling.execute(classifier(tmp_path / "m.onnx"), made, backend="htp", options={})
    with np.load(made, allow_pickle=False) as outputs:
        assert sorted(outputs.files) == ["chances.keys", "chances.values", "label"]
        assert (outputs["chances.values"].argmax(1) == outputs["label"]).all()


def test_what_if_runs_the_grid_best_first(conv_model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["whatif", str(conv_model), "--precision", "as-is,w8a8", "--vtcm-mb", "1,8", "--json"]
    assert cli.main(arguments) == 0
    result = json.loads(capsys.readouterr().out)
    times = [point["time_us"] for point in result["points"]]
    assert len(times) == 4
    assert times == sorted(times)
    assert result["points"][0]["on_front"]
    assert any("calibrated with random data" in note for note in result["notes"])


def test_the_profiler_class_gives_outputs_metrics_and_bottlenecks(conv_model: Path) -> None:
    profiler = HtpProfiler(profiling_level="detailed", perf_profile="high_performance", enable_optrace=True)
    inputs = {"x": np.ones((1, 3, 32, 32), np.float32)}
    outputs, metrics = profiler.profile_model_execution(model_path=conv_model, inputs=inputs, backend="htp")
    assert outputs["y"].shape == (1, 16, 32, 32)
    assert (metrics["htp_execution_time"] or 0) > 0
    assert metrics["rpc_time"] is None
    assert metrics.why("rpc_time") == "only a device can tell: import its profile"
    assert isinstance(profiler.analyze_bottlenecks(metrics), tuple)


def test_both_forms_of_the_summary_are_kept_and_ours_can_be_imported(conv_model: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    command = ["profile", str(conv_model), "--backend", "htp", "-o", str(run)]
    assert cli.main([*command, "--qhas", "json", "--qhas", "html"]) == 0
    first = (run / "qhas.json").read_bytes()
    (run / "qhas.html").unlink()
    assert cli.main([*command, "--qhas", "html"]) == 0
    assert (run / "qhas.html").is_file()
    assert (run / "qhas.json").read_bytes() == first
    assert cli.main(["import", str(run / "qhas.json"), "-o", str(tmp_path / "again")]) == 0
    assert (
        cli.main(["compare", str(run), str(tmp_path / "again"), "--allow", "target", "--fail-on", "latency>1ns"]) == 0
    )
    assert cli.main(command) == 0  # overwrites the run: without the files that were not asked for
    assert not (run / "qhas.json").exists()


def test_a_packed_model_is_profiled_executed_and_varied_under_its_own_name(conv_model: Path, tmp_path: Path) -> None:
    packed = tmp_path / "net.onnx.gz"
    packed.write_bytes(gzip.compress(conv_model.read_bytes()))
    outputs, metrics = HtpProfiler().profile_model_execution(packed)
    assert list(outputs) == ["y"]
    assert metrics.recording.model == str(packed)
    grid = profiling.what_if(packed, {"vtcm-mb": ["2"], "opt-level": ["2"]}, jobs=1)
    assert [point.recording and point.recording.model for point in grid.points] == [grid.model] == [str(packed)]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            zipped({"model": b"x", "dlc.metadata": b"y"}),
            r"a Qualcomm deep learning container \(\.dlc\); expected the ONNX",
        ),
        (gzipped(BY_HAND), r"a TensorFlow Lite model, and the vendor's compiler takes ONNX here; expected its"),
    ],
)
def test_other_files_say_what_they_are(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "model.dlc"
    path.write_bytes(content)
    with pytest.raises(ModelError, match=rf"^{path}: {message}"):
        profile(path)


def test_fused_nodes_stand_beside_the_op_that_an_estimate_has_for_them(tmp_path: Path) -> None:
    """The compiler names `act` what `first` does, and the estimate runs `act` in `first`: one row with a ratio."""
    nodes = [
        conv("first", "x", "a", "w0"),
        helper.make_node("Relu", ["a"], ["b"], name="act"),
        conv("second", "b", "y", "w1"),
    ]
    model = write(tmp_path / "relu.onnx", nodes, [1, 16, 32, 32], {"w0": (16, 16, 3, 3), "w1": (16, 16, 3, 3)})
    vendor = api.profile(model, backend="htp", run=tmp_path / "htp")
    done = {node.name: node.covers for node in vendor.recording.placed(Placed.ACCELERATOR)}
    assert done["first"] == ("act",)  # else the model shows nothing
    assert [node.name for node in vendor.recording.placed(Placed.FUSED)] == ["act"]
    api.profile(model, "max32690-cm4", run=tmp_path / "estimate")
    rows = {row.name: row for row in api.side_by_side([tmp_path / "estimate", tmp_path / "htp"]).rows}
    for name in ("first", "second"):
        assert None not in rows[name].values
        assert rows[name].ratios[1]
    assert "act" not in rows


def test_doctor_says_that_the_backend_works(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["doctor"]) == 0
    assert f"ok       htp {version('onnxruntime-qnn')}" in capsys.readouterr().out


def test_an_unknown_part_is_a_usage_error(conv_model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["profile", str(conv_model), "--backend", "htp", "--soc", "SM9999"]) == 2
    assert "SoC SM9999: not known; known names: SM8350" in capsys.readouterr().err
