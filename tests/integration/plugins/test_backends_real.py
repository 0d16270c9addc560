"""The real runtimes and the real compiler, on small models made here: nothing is mocked."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path

import numpy as np
import onnx
import pytest

from opscope import cli
from opscope.backends import registry as backends
from opscope.backends.measuring import allowed_cpus
from opscope.core.errors import ModelError, UsageError
from opscope.estimate.estimator import estimate
from opscope.estimate.price import Machine
from opscope.machine.catalogue import load
from opscope.readers import read_model
from opscope.recording.build import to_run
from opscope.recording.recording import Placed, Recording
from opscope.recording.run import Run
from opscope.recording.trace import SpanKind
from opscope.views.timeline.chrome_trace import ChromeTrace
from opscope.zoo import Recipe, make
from support.recording.analyse_build import analyse

needs_ort = pytest.mark.skipif(find_spec("onnxruntime") is None, reason="onnxruntime is not installed")
needs_vela = pytest.mark.skipif(find_spec("ethosu") is None, reason="not installed: pip install 'opscope[vela]'")
needs_litert = pytest.mark.skipif(
    find_spec("ai_edge_litert") is None, reason="not installed: pip install 'opscope[litert]'"
)
FEW = {"warmup": 1, "repeats": 4}
Maker = Callable[..., Path]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Maker:
    folder = tmp_path_factory.mktemp("models")

    def made(name: str, form: str = "onnx", precision: str = "f32", **options: int) -> Path:
        path = folder / f"{name}-{precision}-{'-'.join(map(str, options.values()))}.{form}"
        if not path.exists():
            sequence = options.pop("seq", None)
            make(Recipe(name, sequence=sequence, precision=precision, format=form, options=options), path)
        return path

    return made


def profile(backend: str, path: Path, shapes: dict[str, tuple[int, ...]] | None = None, **options: object) -> Recording:
    named = {name.replace("_", "-"): value for name, value in options.items()}
    return backends.load(backend).profile(path, named, shapes=shapes)  # type: ignore[arg-type]


def check_whole(result: Recording, path: Path, **shapes: tuple[int, ...]) -> None:
    """Every op of the model is in the table once; times add up to no more than their inference."""
    names = [op.name for op in read_model(path, shapes=shapes, folds=False).ops]
    assert [node.name for node in result.ops if node.placed != Placed.INSERTED] == names
    fused = [node.name for node in result.ops if node.placed == Placed.FUSED and "in the body of" not in node.reason]
    assert sorted(name for node in result.ops for name in node.covers) == sorted(fused)
    for node in result.ops:
        if node.low_ns is not None:
            assert node.time_ns is not None
            assert node.high_ns is not None
            assert node.low_ns <= node.time_ns <= node.high_ns
        assert (node.time_ns is None) == (
            node.placed in (Placed.FUSED, Placed.REMOVED) or (node.placed == Placed.CPU and not node.calls)
        )
    for lane in result.lanes:
        assert lane.wait_ns is None
        assert lane.busy_ns + lane.idle_ns == lane.wall_ns
    if len(result.trace.spans):
        check_spans(result)


def run_of(result: Recording) -> Run:
    return to_run(result, command=(), created="2026-01-01T00:00:00Z", sha256=None)


def check_spans(result: Recording) -> None:
    spans = result.trace.spans
    for inference in np.unique(spans["inference"]).tolist():
        here = spans[spans["inference"] == inference]
        length = here["end_ns"] - here["start_ns"]
        whole = length[here["kind"] == SpanKind.PHASE]
        assert length[here["kind"] == SpanKind.OP].sum() <= (whole.sum() if len(whole) else length.sum())
    for lane in range(len(result.trace.lanes)):
        own = spans[spans["lane"] == lane]
        own = own[np.argsort(own["start_ns"], kind="stable")]
        assert (own["end_ns"][:-1] <= own["start_ns"][1:]).all()
    out = BytesIO()
    ChromeTrace(run_of(result), flows=True).render(result.trace, out)
    assert len(json.loads(out.getvalue())["traceEvents"]) > len(spans)


@needs_ort
@pytest.mark.parametrize("level", ["none", "basic", "extended", "all"])
@pytest.mark.parametrize(
    ("name", "precision", "options"),
    [
        ("kws-cnn", "f32", {}),
        ("cifar-resnet", "int8", {}),
        ("bert-base", "f16", {"seq": 8, "layers": 1, "hidden": 64, "heads": 2, "intermediate": 128, "vocabulary": 100}),
    ],
)
def test_onnx_runtime_accounts_for_every_node_at_every_level(
    model: Maker, name: str, precision: str, options: dict[str, int], level: str
) -> None:
    path = model(name, precision=precision, **options)
    result = profile("ort", path, graph_optimization=level, **FEW)
    check_whole(result, path)
    assert len(result.samples_ns) == 4
    assert result.target == "cpu"
    if (
        level == "none"
    ):  # even then it copies what reads one quantised tensor twice, and casts what it has no kernel for
        assert not result.placed(Placed.FUSED)
        assert not result.placed(Placed.REMOVED)
        assert all(
            node.type == "Cast" or node.reason.startswith("a copy of ") for node in result.placed(Placed.INSERTED)
        )
    if level in ("extended", "all"):
        assert result.placed(Placed.FUSED)


@pytest.mark.parametrize(
    ("backend", "form"),
    [pytest.param("ort", "onnx", marks=needs_ort), pytest.param("litert", "tflite", marks=needs_litert)],
)
def test_the_latency_alone_is_of_inferences_that_nothing_watched(model: Maker, backend: str, form: str) -> None:
    result = profile(backend, model("kws-cnn", form), op_times="off", **FEW)
    assert not len(result.trace.spans)
    assert result.ops
    assert all(node.time_ns is None for node in result.ops)
    assert len(result.samples_ns) == 4
    assert result.latency is not None
    assert result.latency.value_ns in result.samples_ns


@needs_ort
def test_onnx_runtime_shows_activations_where_they_were_fused(model: Maker) -> None:
    result = profile("ort", model("kws-cnn"), graph_optimization="all", **FEW)
    rows = {node.name: node for node in result.ops}
    assert rows["/relu/Relu"].reason == "fused into /conv/Conv"
    assert rows["/conv/Conv"].covers == ("/relu/Relu",)
    assert rows["/conv/Conv"].time_ns is not None


@needs_ort
def test_onnx_runtime_runs_open_shapes_and_nodes_without_names(tmp_path: Path) -> None:
    helper, kinds = onnx.helper, onnx.TensorProto
    body = helper.make_graph(
        [helper.make_node("Add", ["s", "s"], ["s2"], name="twice"), helper.make_node("Identity", ["c"], ["c2"])],
        "body",
        [
            helper.make_tensor_value_info("i", kinds.INT64, []),
            helper.make_tensor_value_info("c", kinds.BOOL, []),
            helper.make_tensor_value_info("s", kinds.FLOAT, None),
        ],
        [helper.make_tensor_value_info("c2", kinds.BOOL, []), helper.make_tensor_value_info("s2", kinds.FLOAT, None)],
    )
    nodes = [
        helper.make_node("Relu", ["x"], ["a"]),
        helper.make_node("Exp", ["a"], ["b"], name="same"),
        helper.make_node("Exp", ["b"], ["c"], name="same"),
        helper.make_node("Loop", ["n", "", "c"], ["y"], body=body),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", kinds.FLOAT, ["batch", 8])],
        [helper.make_tensor_value_info("y", kinds.FLOAT, None)],
        [onnx.numpy_helper.from_array(np.array(3), "n")],
    )
    path = tmp_path / "odd.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), str(path))
    result = profile("ort", path, {"x": (2, 8)}, **FEW)
    check_whole(result, path, x=(2, 8))
    assert [(node.type, node.placed) for node in result.ops][:4] == [
        ("Relu", Placed.CPU),
        ("Exp", Placed.CPU),
        ("Exp", Placed.CPU),
        ("Loop", Placed.CPU),
    ]


@needs_ort
def test_onnx_runtime_finds_weights_in_a_file_beside_the_model(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    make(Recipe("kws-cnn", options={"external_above_mb": 0}), path)
    assert (tmp_path / "net.onnx.data").exists()
    check_whole(profile("ort", path, **FEW), path)


@needs_ort
@pytest.mark.skipif(len(allowed_cpus()) < 2, reason="this process may use one CPU only")
def test_onnx_runtime_takes_two_threads(model: Maker) -> None:
    result = profile("ort", model("kws-cnn"), threads=2, **FEW)
    assert (result.machine["threads"], result.options["threads"]) == (2, 2)


@needs_ort
def test_onnx_runtime_explains_what_it_cannot_run(tmp_path: Path, model: Maker) -> None:
    helper, kinds = onnx.helper, onnx.TensorProto
    node = helper.make_node("Unheard", ["x"], ["y"], domain="far.away")
    ports = [helper.make_tensor_value_info(name, kinds.FLOAT, [2]) for name in "xy"]
    path = tmp_path / "unheard.onnx"
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("far.away", 1)]
    graph = helper.make_graph([node], "g", ports[:1], ports[1:])
    onnx.save(helper.make_model(graph, opset_imports=imports, ir_version=9), str(path))
    with pytest.raises(ModelError, match=r"unheard\.onnx: ONNX Runtime cannot run it: .*Unheard"):
        profile("ort", path, **FEW)
    with pytest.raises(ModelError, match=r"a TensorFlow Lite model; backend ort runs ONNX; expected --backend litert"):
        profile("ort", model("kws-cnn", "tflite", "int8"), **FEW)


@needs_litert
@pytest.mark.parametrize("kernels", ["xnnpack", "builtin", "reference"])
@pytest.mark.parametrize(
    ("name", "precision", "options"),
    [
        ("kws-cnn", "int8", {}),
        ("kws-cnn", "f32", {}),
        ("vit-b16", "int8", {"layers": 1, "size": 32, "hidden": 64, "heads": 2}),
    ],
)
def test_litert_accounts_for_every_op(
    model: Maker, name: str, precision: str, options: dict[str, int], kernels: str
) -> None:
    path = model(name, "tflite", precision, **options)
    result = profile("litert", path, kernels=kernels, **FEW)
    assert result.ops, result.notes
    check_whole(result, path)
    assert len(result.samples_ns) == 4
    if kernels != "xnnpack":
        assert len(result.trace.spans)
        assert len(result.placed(Placed.CPU)) == len(result.ops)


@needs_litert
def test_litert_names_the_kernel_of_every_op_it_handed_over(model: Maker) -> None:
    result = profile("litert", model("kws-cnn", "tflite", "int8"), **FEW)
    kinds = {node.type: node.reason for node in result.ops if node.reason.startswith("ran as")}
    assert "DWConv" in kinds["DEPTHWISE_CONV_2D"]
    assert any("GEMM" in kinds[kind] for kind in ("CONV_2D", "FULLY_CONNECTED"))


@needs_litert
def test_litert_gives_the_latency_alone_where_its_profiler_cannot_be_reached(model: Maker) -> None:
    path = model("kws-cnn", "tflite", "f32")
    graph = read_model(path)
    tensor = graph.tensors[graph.inputs[0]]
    assert tensor.shape is not None
    result = profile("litert", path, {tensor.name: tensor.shape}, **FEW)
    assert result.ops == ()
    assert result.latency is not None
    assert any("no times of ops" in note and "fixed shapes only" in note for note in result.notes)


vela = partial(profile, "vela")
VIT = {"layers": 1, "size": 32, "hidden": 64, "heads": 2}


@needs_vela
@pytest.mark.parametrize("accelerator", ["ethos-u55-128", "ethos-u65-512", "ethos-u85-256"])
@pytest.mark.parametrize("name", ["kws-cnn", "cifar-resnet"])
def test_arms_compiler_accounts_for_every_op(model: Maker, name: str, accelerator: str) -> None:
    path = model(name, "tflite", "int8")
    result = vela(path, accelerator=accelerator)
    check_whole(result, path)
    assert result.latency is not None
    assert sum(node.cycles or 0 for node in result.ops) == result.value("npu_cycles")
    cycles, clock = result.value("npu_cycles"), result.machine["clock_hz"]
    assert result.latency.value_ns == round((cycles or 0) * 1e9 / float(clock or 0))
    assert sum(part.share for part in result.path_shares) == pytest.approx(1)
    assert not [note for note in result.notes if "check fails" in note or "the compiler's total" in note]


@needs_vela
@pytest.mark.parametrize("accelerator", ["ethos-u55-128", "ethos-u65-256", "ethos-u85-256"])
@pytest.mark.parametrize("name", ["cifar-resnet", "vww-mobilenetv1"])
def test_targets_of_ethos_u_estimate_what_arms_compiler_says(model: Maker, name: str, accelerator: str) -> None:
    path = model(name, "tflite", "int8")
    said, chip = vela(path, accelerator=accelerator).latency, load(accelerator)
    found = estimate(read_model(path), Machine(chip)).totals.latency_s
    assert said is not None
    assert found is not None
    assert chip.validation is not None
    assert found.value == pytest.approx(said.value_ns / 1e9, rel=2 * chip.validation.p90_error)


@needs_vela
def test_trap_ops_on_the_cpu_cost_nothing_in_the_files_so_the_latency_is_withheld(model: Maker) -> None:
    path = model("vit-b16", "tflite", "int8", **VIT)
    result = vela(path)
    check_whole(result, path)
    left = result.placed(Placed.CPU)
    assert {(node.type, node.reason) for node in left} == {("GATHER", "Unsupported opType")}
    assert all(node.time_ns is None and node.cycles is None for node in left)
    assert result.latency is None
    assert result.value("latency") is None
    assert result.value("npu_time")


@needs_vela
def test_trap_a_float_model_ends_well_without_a_single_op_on_the_accelerator(model: Maker) -> None:
    with pytest.raises(ModelError, match=r"takes none of its 13 ops \(.*Float32.*\); expected a model of int8$"):
        vela(model("kws-cnn", "tflite", "f32"))


@needs_vela
def test_trap_a_compiled_model_ends_well_with_a_rate_that_is_not_a_number(model: Maker, tmp_path: Path) -> None:
    from subprocess import run
    from sys import executable

    path = model("kws-cnn", "tflite", "int8")
    run([executable, "-m", "ethosu.vela", str(path), "--output-dir", str(tmp_path)], check=True, capture_output=True)
    (compiled,) = tmp_path.glob("*_vela.tflite")
    with pytest.raises(ModelError, match=r"subgraph 0 operator 0: compiled already \(CUSTOM:ethos-u\); expected what"):
        vela(compiled)


@needs_vela
def test_trap_values_of_weights_change_the_estimate(model: Maker, tmp_path: Path) -> None:
    """Same shapes, weights that compress: fewer bytes travel, and the note about random weights is gone."""
    tflite = pytest.importorskip("tflite")
    path = model("mobilenetv2", "tflite", "int8", size=96)
    data = bytearray(path.read_bytes())
    net = tflite.Model.GetRootAs(data, 0)
    for number in range(net.BuffersLength()):
        weights = net.Buffers(number).DataAsNumpy()
        if not isinstance(weights, int) and weights.nbytes > 4096:
            weights[:] = 0
    other = tmp_path / "zero.tflite"
    other.write_bytes(data)
    random, zero = vela(path), vela(other)
    assert (zero.value("npu_encoded_weights") or 0) < (random.value("npu_encoded_weights") or 0) / 2
    assert (zero.value("npu_cycles") or 0) < (random.value("npu_cycles") or 0)
    assert random.value("macs") == zero.value("macs")
    assert any("hardly compress" in note for note in random.notes)
    assert not any("hardly compress" in note for note in zero.notes)


@needs_vela
def test_trap_work_that_waits_for_memory_gains_nothing_from_more_macs(model: Maker) -> None:
    path = model("vit-b16", "tflite", "int8", **VIT)
    small, large = (vela(path, accelerator=f"ethos-u55-{macs}") for macs in (128, 256))
    dense = [place for place, node in enumerate(large.ops) if node.type == "FULLY_CONNECTED"]
    assert {small.ops[place].bound for place in dense} == {"off-chip flash"}
    assert all(small.ops[place].cycles == large.ops[place].cycles for place in dense)


@needs_vela
@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "the file is empty"),
        (None, "cannot be read"),
        (300, "the file ends at 0x12c"),
        (20_000, "the file ends at"),
    ],
)
def test_trap_damaged_files_crash_the_compiler_and_never_reach_it(
    model: Maker, tmp_path: Path, data: bytes | int | None, words: str
) -> None:
    path = tmp_path / "odd.tflite"
    if data is not None:
        path.write_bytes(data if isinstance(data, bytes) else model("kws-cnn", "tflite", "int8").read_bytes()[:data])
    with pytest.raises(ModelError, match=words):
        vela(path)


@needs_vela
def test_trap_without_options_the_compiler_assumes_a_system_so_all_are_given(model: Maker) -> None:
    result = vela(model("kws-cnn", "tflite", "int8"))
    assert result.options["system_config"] == "Ethos_U55_High_End_Embedded"
    assert (result.machine["clock_hz"], result.machine["memory_mode"]) == (5e8, "Shared_Sram")
    slow = vela(model("kws-cnn", "tflite", "int8"), system_config="Ethos_U55_Deep_Embedded")
    assert slow.machine["clock_hz"] == 2e8
    assert result.latency is not None
    assert slow.latency is not None
    assert slow.latency.known_ns > 2 * result.latency.known_ns
    with pytest.raises(UsageError, match="not a system of ethos-u55-256"):
        vela(model("kws-cnn", "tflite", "int8"), system_config="Ethos_U65_High_End")


@needs_vela
def test_trap_one_op_becomes_many_rows_and_shares_still_add_up(model: Maker) -> None:
    result = vela(model("kws-cnn", "tflite", "int8"))
    softmax = next(node for node in result.ops if node.type == "SOFTMAX")
    assert softmax.calls > 20
    assert sum(node.path_share or 0 for node in result.placed(Placed.ACCELERATOR)) == pytest.approx(1)
    assert 0 < (result.value("mac_utilization") or 0) < 1


@needs_vela
def test_trap_memory_depends_on_the_strategy(model: Maker) -> None:
    path = model("mobilenetv2", "tflite", "int8", size=96)
    fast, small = (vela(path, optimise=strategy) for strategy in ("performance", "size"))
    assert (small.value("sram_used") or 0) < (fast.value("sram_used") or 0)
    assert any("memory is of --optimise size" in note for note in small.notes)


@pytest.mark.parametrize(
    ("backend", "form", "options"),
    [
        pytest.param("ort", "onnx", FEW, marks=needs_ort),
        pytest.param("vela", "tflite", {}, marks=needs_vela),
        pytest.param("litert", "tflite", {**FEW, "kernels": "builtin"}, marks=needs_litert),
        pytest.param("litert", "tflite", FEW, marks=needs_litert),
    ],
)
def test_a_run_of_it_obeys_the_laws_of_every_run(
    model: Maker, backend: str, form: str, options: dict[str, object]
) -> None:
    """busy + wait + idle = wall, timeline = latency, spans of a lane do not overlap, and the others."""
    result = profile(backend, model("kws-cnn", form, "f32" if form == "onnx" else "int8"), **options)
    checks = analyse(run_of(result)).checks
    assert not [check for check in checks if check.holds is False]
    assert any(check.holds for check in checks)


@pytest.mark.parametrize(
    ("backend", "form", "words"),
    [
        pytest.param("ort", "onnx", "ran as com.microsoft", marks=needs_ort),
        pytest.param("vela", "tflite", "bound by", marks=needs_vela),
        pytest.param("litert", "tflite", "ran as Convolution", marks=needs_litert),
    ],
)
def test_the_command_prints_a_table_and_leaves_a_run(  # noqa: PLR0917
    model: Maker, tmp_path: Path, capsys: pytest.CaptureFixture[str], backend: str, form: str, words: str
) -> None:
    run = tmp_path / "run"
    path = model("kws-cnn", form, "f32" if form == "onnx" else "int8")
    few = [] if backend == "vela" else ["--repeats", "3", "--warmup", "1"]
    assert cli.main(["profile", str(path), "--backend", backend, "-o", str(run), *few]) == 0
    printed = capsys.readouterr().out
    how = "vendor-model" if backend == "vela" else "measured"
    assert words in printed
    assert f"[{how}" in printed
    found = json.loads((run / "recording.json").read_text())
    assert found["maker"] == backend
    assert found["latency"]["value_ns"] > 0
    assert len(found["samples_ns"]) == (0 if backend == "vela" else 3)
    assert json.loads((run / "run.json").read_text())["provenance"] == how


def test_doctor_knows_the_backends(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["doctor", "--json"]) == 0
    states = {state["name"]: state for state in json.loads(capsys.readouterr().out)["backends"]}
    assert {"ort", "vela", "litert"} <= set(states)
    for name, package in (("ort", "onnxruntime"), ("vela", "ethosu"), ("litert", "ai_edge_litert")):
        assert states[name]["works"] is (find_spec(package) is not None)
        assert states[name]["works"] or states[name]["install"].startswith("pip install")
