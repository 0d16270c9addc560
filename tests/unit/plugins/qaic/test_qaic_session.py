"""Session in the vendor's words: names of options, host profile, and what a profile can write."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from onnx import helper, numpy_helper

import opscope
from opscope.core.errors import UsageError
from opscope.plugins.qaic.session_options import our_names, read_options
from support.models.onnx_models import graph, model, save, value


@pytest.fixture
def relu(tmp_path: Path) -> Path:
    body = graph([helper.make_node("Relu", ["x"], ["y"])], [value("x", [4, 64])], [value("y", [4, 64])])
    return save(tmp_path, model(body))


def test_the_vendors_names_are_ours(relu: Path) -> None:
    session = opscope.Session(
        relu,
        "aic100-std",
        aic_num_cores=2,
        num_activations=3,
        set_size=2,
        dev_id=0,
        aic_pmu_recipe="KernelUtil",
        ddr_stats=True,
        stats_batchsize=4,
        num_iter=5,
    )
    stats = session.program.stats
    assert (session.program.cores, stats.recipe, stats.ddr, stats.batch_size) == (2, "KernelUtil", True, 4)
    completed, _, _, batch = session.run_benchmark()
    assert (completed, batch) == (15, 4)
    percentiles = {"P25", "P50", "P75", "P90", "P99", "P999"}
    totals = {"num_of_inferences", "min_latency", "max_latency", "total_inference_time", "avg_latency"}
    assert set(session.get_metrics()) == percentiles | totals


def test_an_option_under_two_names_is_an_error() -> None:
    assert our_names({"aic_num_cores": 2, "aic_pmu_events": [0x3F, "70"], "dev_id": 1}) == {
        "cores": 2,
        "pmu_events": "3F,70",
    }
    with pytest.raises(UsageError, match=r"^option aic_num_cores: the same as cores, which is given too; expected one"):
        our_names({"cores": 1, "aic_num_cores": 2})


def test_options_may_stand_in_a_file_and_keywords_come_first(relu: Path, tmp_path: Path) -> None:
    path = tmp_path / "options.yaml"
    path.write_text("# how to compile\naic_num_cores: 4\nddr_stats: true  # bytes\naic-pmu-recipe: 'AxiRd'\n")
    assert read_options(path) == {"aic_num_cores": 4, "ddr_stats": True, "aic_pmu_recipe": "AxiRd"}
    session = opscope.Session(relu, "aic100-std", options_path=path, cores=2)
    assert (session.program.cores, session.program.stats.ddr, session.program.stats.recipe) == (2, True, "AxiRd")
    path.write_text("onnx_define_symbol:\n  batch: 1\n  seq_len: 8\nset_size: 2\n")
    assert read_options(path) == {"onnx_define_symbol": {"batch": 1, "seq_len": 8}, "set_size": 2}
    for text, line in (("  b: 1", "line 1: 'b: 1'"), ("a: 1\n  b: 1", "line 2: 'b: 1'"), ("a:\n  b:", "line 2: 'b:'")):
        path.write_text(text)
        with pytest.raises(UsageError, match=rf"options\.yaml: {line}; expected `name: value`$"):
            read_options(path)


def test_a_session_has_a_model_or_a_program(relu: Path, tmp_path: Path) -> None:
    opscope.compile_model(relu, "aic100-std", tmp_path / "built", cores=1)
    assert opscope.Session(qpc=tmp_path / "built").program.cores == 1
    assert opscope.Session(tmp_path / "built" / "programqpc.bin").program.cores == 1
    assert opscope.Session(model_path=relu, backend="aic").program.target == "aic100-std"
    for given in ({}, {"model": relu, "qpc": tmp_path / "built"}, {"model": relu, "model_path": relu}):
        with pytest.raises(UsageError, match=r"^model \(or model_path\) and qpc: expected one of them$"):
            opscope.Session(**given)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"^enable_profiling and enable_metrics exclude each other"):
        opscope.Session(relu, "aic100-std", enable_profiling=True, enable_metrics=True)


@pytest.fixture
def product(tmp_path: Path) -> Path:
    """y = x · w, of f32 and with two symbols."""
    body = graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        [value("x", ["batch_size", "seq_len", 32])],
        [value("y", ["batch_size", "seq_len", 16])],
        [numpy_helper.from_array(np.ones((32, 16), np.float32), "w")],
    )
    return save(tmp_path, model(body))


def test_flags_of_the_compiler_are_keywords(product: Path, tmp_path: Path) -> None:
    sizes = [("batch_size", 2), ("seq_len", 8)]
    session = opscope.Session(
        product,
        onnx_define_symbol=sizes,
        convert_to_fp16=True,
        mos=1,
        multicast_weights=True,
        allocator_dealloac_delay=2,
        output_dir=tmp_path / "out",
    )
    assert session.model_input_shape_dict == {"x": ((2, 8, 32), np.dtype(np.float32))}
    assert session.model_output_shape_dict == {"y": ((2, 8, 16), np.dtype(np.float32))}
    assert (tmp_path / "out" / "programqpc.bin").is_file()
    devices = [{"deviceId": n, "numCores": 2} for n in range(2)]
    (tmp_path / "mdp.json").write_text(json.dumps({"partitions": [{"name": "P", "devices": devices}]}))
    partition = str(tmp_path / "mdp.json")
    program = opscope.Session(product, onnx_define_symbol=dict(sizes), mdp_load_partition_config=partition).program
    assert (program.devices, program.cores, program.target) == (2, 2, "aic100-ultra")
    with pytest.raises(UsageError, match=r"^-aic-num-cores=4: -mdp-load-partition-config has 2 cores a device"):
        opscope.Session(product, aic_num_cores=4, mdp_load_partition_config=partition)


def test_f32_stays_f32_where_that_is_asked_for(product: Path) -> None:
    engines = []
    for kept in ({}, {"convert_to_fp16": False}):
        program = opscope.Session(product, onnx_define_symbol={"batch_size": 2, "seq_len": 8}, **kept).program  # type: ignore[arg-type]
        kinds = np.array(program.kinds)[program.commands["kind"]]
        groups = program.commands["group"][kinds == "aicconvolutiond32"]
        engines.append({program.groups[group].name for group in groups})
    assert engines == [{"HMX"}, {"HVX"}]


def test_shapes_of_inputs_choose_the_specialization(product: Path, tmp_path: Path) -> None:
    rows = [{"batch_size": "1", "seq_len": "64"}, {"batch_size": "4", "seq_len": "1"}]
    (tmp_path / "s.json").write_text(json.dumps({"specializations": rows}))
    made = opscope.Session(
        product, network_specialization_config=tmp_path / "s.json", output_dir=tmp_path / "out", num_iter=2
    )
    for session in (made, opscope.Session(tmp_path / "out" / "programqpc.bin", num_iter=2)):
        for shape in ((1, 64, 32), (4, 1, 32)):
            given = {"x": np.ones(shape, np.float32)}
            assert session.run(given)["y"].shape == (*shape[:2], 16)
            assert session.run_benchmark(input_dict=given)[3] == shape[0]
            assert session.profile(given).program.inputs[0][2] == shape
        with pytest.raises(
            UsageError, match=r"^run: inputs x 2x2x32 fit none of 2 specializations; expected x 1x64x32"
        ):
            session.run({"x": np.ones((2, 2, 32), np.float32)})


def test_benchmarks_run_as_long_and_as_wide_as_asked(relu: Path) -> None:
    session = opscope.Session(relu, aic_num_cores=2, num_activations=2, set_size=1)
    assert session.run_benchmark(num_inferences=5)[0] == 10
    assert session.run_benchmark(inf_time=0.01)[2] >= 0.01
    with pytest.raises(UsageError, match=r"^num_inferences and inf_time exclude each other; expected one of them$"):
        session.run_benchmark(5, 0.01)
    for strange in ({"nope": np.ones(3)}, {}):
        for ask in (session.profile, lambda given: session.run_benchmark(input_dict=given)):
            with pytest.raises(UsageError, match=r"^input '.*': .*; expected "):
                ask(strange)
    session.update_backend_options(num_activations=3)
    assert session.backend_options() == {"num_activations": 3, "set_size": 1, "dev_id": 0}
    assert session.run_benchmark(num_inferences=5)[0] == 15


def test_calls_of_the_host_are_printed_where_they_were_watched(relu: Path, capsys: pytest.CaptureFixture[str]) -> None:
    session = opscope.Session(relu, "aic100-std", enable_profiling=True)
    for _ in range(3):
        session.run({"x": np.zeros((4, 64), np.float32)})
    session.print_profile_data(n=2)  # of the first two calls, as the vendor has it
    printed = capsys.readouterr().out
    assert [line for line in printed.splitlines() if line.startswith("iteration ")] == [
        "iteration 0, measured on this machine",
        "iteration 1, measured on this machine",
    ]
    header = printed.splitlines()[1]
    assert [cell.strip() for cell in header.split("|")] == ["File-Line-Function", "num calls", "func time", "tot time"]
    with pytest.raises(UsageError, match=r"^n 0: expected a whole number of calls, at least 1$"):
        session.print_profile_data(0)
    with pytest.raises(UsageError, match=r"^no calls were watched; expected a session with enable_profiling=True$"):
        opscope.Session(relu, "aic100-std").print_profile_data(5)


def test_what_is_no_value_of_an_option_or_an_input_is_told(relu: Path) -> None:
    with pytest.raises(UsageError, match=r"^option stats_level: found '70'; expected a whole number$"):
        opscope.Session(relu, stats_level="70")
    with pytest.raises(UsageError, match=r"^aic_num_cores 15: aic100-std has 14; expected 1 to 14$"):
        opscope.Session(relu, aic_num_cores=15)
    session = opscope.Session(relu, aic_num_cores=2)
    with pytest.raises(UsageError, match=r"^option num_iter: found 'many'; expected a whole number$"):
        session.run_benchmark(num_inferences="many")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"^input 'x': found list; expected x \(float32 of 4x64\)$"):
        session.run({"x": [1.0, 2.0]})  # type: ignore[dict-item]
    with pytest.raises(UsageError, match=r"^option aic_num_cores: not one of benchmarks; expected num_activations, "):
        session.update_backend_options(aic_num_cores=4)
    with pytest.raises(UsageError, match=r"expected the folder that `opscope compile` wrote$"):
        opscope.Session(qpc=relu.parent / "nothing")


def test_a_session_that_was_reset_loads_again(relu: Path) -> None:
    session = opscope.Session(relu, aic_num_cores=2)
    inputs = {"x": np.zeros((4, 64), np.float32)}
    session.run(inputs)
    before = session.get_metrics()
    session.reset()
    assert session.get_metrics() == {"num_of_inferences": 0}
    session.run(inputs)
    assert session.get_metrics() == before


def test_quantisation_that_is_asked_for_is_simulated(product: Path) -> None:
    symbols = {"onnx_define_symbol": {"batch_size": 1, "seq_len": 64}}
    half, whole = (
        opscope.Session(product, aic_num_cores=1, **symbols, **more).program.metrics.constants_bytes
        for more in ({}, {"convert_to_quantize": True})
    )
    assert whole < 0.6 * half


def test_a_profile_can_be_written_as_summary_and_timeline(relu: Path, tmp_path: Path) -> None:
    profile = opscope.Session(relu, "aic100-std", cores=2).profile()
    assert len(profile.spans) > 4
    assert str(profile).startswith(
        f"<SessionTrace {relu.stem} on aic100-std, 1 × 2 cores: {len(profile.spans)} spans in "
    )
    events = json.loads(profile.write_trace(tmp_path / "t.json").read_bytes())["traceEvents"]
    assert any(event["name"] == "inference-Inf-0" for event in events)
    assert profile.write_trace(tmp_path / "t.pftrace").stat().st_size > 100
    for name, found in (("t.xyz", r"\.xyz"), ("t", "no suffix")):
        with pytest.raises(UsageError, match=rf"{name}: {found} says no form of a timeline; expected \.json or"):
            profile.write_trace(tmp_path / name)
    assert "[QAicGraph] Device instance inf/s" in profile.write_summary(tmp_path / "s.txt").read_text()


def test_profile_takes_options_by_name(relu: Path) -> None:
    assert opscope.profile(relu, "aic100-std", cores=2, num_iter=3, stats_level=70).run.info.cores == 2
    assert opscope.profile(relu, "aic100-std", options=opscope.ProfileOptions(cores=2), num_iter=3).run.info.cores == 2
    with pytest.raises(UsageError, match="coers"):
        opscope.profile(relu, "aic100-std", coers=2)
