"""`--backend torch` on the CPU of this machine: a module, a .pt2 and a factory, measured in PyTorch."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import opscope
from opscope.cli import main
from opscope.core.errors import ProfilerError
from opscope.recording.folder_reader import read_run
from opscope.recording.recording import Recording
from opscope.recording.trace import SpanKind

torch = pytest.importorskip("torch")
networks = pytest.importorskip("support.models.torch_networks")
FEW = {"device": "cpu", "warmup": 1, "repeats": 4}


def profiled(module: object, *inputs: object, **options: str | int) -> Recording:
    found = opscope.profile(module, *inputs, backend="torch", **{**FEW, **options})  # type: ignore[arg-type]
    assert found.recording is not None
    return found.recording


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("torch") / "mlp.run"
    words = ["profile", "support.models.torch_networks:mlp", "--backend", "torch", "--device", "cpu", "--repeats", "4"]
    assert main([*words, "-o", str(folder)]) == 0
    return folder


def test_a_factory_is_measured_and_its_run_obeys_every_law(run: Path) -> None:
    read = read_run(run)
    assert [(op.name, op.module) for op in read.ops] == [
        ("inner/linear", "inner"),
        ("Mlp/relu", "Mlp"),
        ("outer/linear", "outer"),
    ]
    assert all(re.fullmatch(r"torch_networks\.py:\d+", op.line) for op in read.ops)
    assert {op.name: op.macs for op in read.summary.ops} == {"inner/linear": 1024, "outer/linear": 256, "Mlp/relu": 0}
    assert len(read.summary.samples_ns) == 4
    assert not [check for check in opscope.check(run) if check.holds is False]


def test_ops_take_no_longer_than_the_inference_they_are_of() -> None:
    result = profiled(networks.Encoder(), torch.rand(2, 16, 32))
    spans = result.trace.spans
    for number, whole in enumerate(result.samples_ns):
        work = spans[(spans["inference"] == number) & (spans["kind"] == SpanKind.OP)]
        assert len(work) == len(result.ops)
        assert 0 < (work["end_ns"] - work["start_ns"]).sum() <= whole
    assert all(op.time_ns and op.low_ns and op.low_ns <= op.time_ns <= (op.high_ns or 0) for op in result.ops)
    assert {op.module for op in result.ops} >= {"layers.0", "layers.0.attention", "layers.1.down"}
    assert result.batch == 2
    assert result.metric("latency_without_profiler") is not None


def test_memory_over_time_rises_to_its_peak() -> None:
    result = profiled(networks.Mlp(), torch.rand(2, 16))
    (memory,) = result.memory
    held = result.trace.samples["value"]
    assert memory.peak_bytes == held.max() >= 2 * 32 * 4  # what the inner product writes
    assert [track.unit for track in result.trace.counters] == ["bytes"]
    assert len(set(held.tolist())) > 1
    assert result.value("weights") == 4 * (16 * 32 + 32 + 32 * 4 + 4)


def test_an_exported_program_has_the_ops_modules_and_lines_of_its_module(tmp_path: Path) -> None:
    inputs = torch.rand(1, 16, 32)
    torch.export.save(torch.export.export(networks.Encoder().eval(), (inputs,)), tmp_path / "encoder.pt2")
    exported, eager = profiled(tmp_path / "encoder.pt2"), profiled(networks.Encoder(), inputs)
    assert [(op.name, op.module, op.line) for op in exported.ops] == [(op.name, op.module, op.line) for op in eager.ops]
    assert exported.model == str(tmp_path / "encoder.pt2")


def test_the_users_module_is_left_as_it_was() -> None:
    module, threads = networks.ConvNet().train(), torch.get_num_threads()
    result = profiled(module, torch.zeros(1, 3, 8, 8), dtype="bf16")
    assert all(each.training for each in module.modules())
    assert {each.dtype for each in module.parameters()} == {torch.float32}
    assert torch.get_num_threads() == threads
    assert next(op.dtype for op in result.ops if op.kind == "conv") == "bf16"
    assert any("inputs of zeros are random" in note for note in result.notes)


def test_without_times_of_ops_the_latency_is_that_without_the_profiler() -> None:
    result = profiled(networks.Mlp(), torch.rand(2, 16), **{"op-times": "off"})
    assert len(result.samples_ns) == 4
    assert [op.time_ns for op in result.ops] == [None] * 3
    assert not len(result.trace.spans)


@pytest.mark.parametrize(
    ("model", "options", "words"),
    [
        (
            "support.models.torch_networks:mlp",
            {"mode": "graph"},
            "--mode graph: CUDA graphs are of a GPU, and the device is cpu",
        ),
        ("support.models.torch_networks:meta_decoder", {}, "is on meta, and PyTorch needs weights"),
        ("support.models.torch_networks:bare", {}, "has no example inputs"),
        (
            "support.models.torch_networks:mlp",
            {"mode": "fast"},
            "--mode fast: not known; expected one of eager, graph, compile",
        ),
    ],
)
def test_what_cannot_run_is_refused_in_one_line(model: str, options: dict[str, str], words: str) -> None:
    with pytest.raises(ProfilerError, match=re.escape(words)) as caught:
        profiled(model, **options)
    assert "\n" not in str(caught.value)


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_a_device_that_is_not_there_is_refused() -> None:
    with pytest.raises(ProfilerError, match="--device cuda: this torch sees no GPU; expected"):
        profiled(networks.Mlp(), torch.rand(2, 16), device="cuda")


def test_an_onnx_file_inputs_that_do_not_fit_and_strange_shapes_are_refused(tmp_path: Path) -> None:
    assert main(["zoo", "kws-cnn", "-o", str(tmp_path / "kws.onnx")]) == 0
    with pytest.raises(ProfilerError, match="is ONNX, and backend torch runs modules of PyTorch; expected"):
        profiled(tmp_path / "kws.onnx")
    with pytest.raises(
        ProfilerError, match=r"RuntimeError: mat1 and mat2 shapes cannot be multiplied.*expected"
    ) as caught:
        profiled(networks.Mlp(), torch.rand(2, 17))
    assert "\n" not in str(caught.value)
    with pytest.raises(
        ProfilerError, match=r"--shape y=…: no input of support\.models\.torch_networks:mlp; expected one of x"
    ):
        opscope.profile("support.models.torch_networks:mlp", backend="torch", shapes={"y": (1,)})


def test_two_backends_tell_of_this_cpu(capsys: pytest.CaptureFixture[str]) -> None:
    assert {"ort", "torch"} <= {source.backend for entry in opscope.targets("cpu") for source in entry.sources}
    assert main(["targets", "show", "cpu"]) == 0
    assert "torch" in capsys.readouterr().out


@pytest.mark.slow
def test_torch_compile_shows_its_own_kernels() -> None:
    result = profiled(networks.Mlp(), torch.rand(2, 16), mode="compile")
    assert any("fused" in op.name for op in result.ops)
    assert any(op.type == "aten::addmm" for op in result.ops)
