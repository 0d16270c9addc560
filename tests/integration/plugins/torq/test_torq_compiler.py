"""The vendor's own Torq compiler, where it is found: its schedule, its identities, its simulator, its dumps."""

from __future__ import annotations

import subprocess
from math import ceil
from pathlib import Path

import numpy as np
import pytest

from opscope.backends import environments, registry
from opscope.cli import main
from opscope.core.errors import ModelError, ProfilerError
from opscope.core.meaning import Does
from opscope.plugins.torq.importers.compile_csv import read_rows
from opscope.plugins.torq.parts import Hardware
from opscope.recording.recording import Placed, Recording


def _is_here() -> bool:
    try:
        return environments.find("torq") is not None
    except ProfilerError:
        return False


pytestmark = pytest.mark.skipif(not _is_here(), reason="the environment torq is not here")


def zoo(name: str, file: Path, *words: str) -> Path:
    assert main(["zoo", name, "--format", "tflite", "--precision", "int8", "-o", str(file), *words]) == 0
    return file


def profile(model: Path, **options: str) -> Recording:
    return registry.load("torq").profile(model, {name.replace("_", "-"): value for name, value in options.items()})


# cycles, rows, bytes in and out as the compiler 2.3.0 gave them for these networks
@pytest.mark.parametrize(
    ("network", "part", "cycles", "spans", "read", "written"),
    [
        ("conv-small", "SL2610", 16_538, 67, 28_597, 42),
        ("conv-small", "SR200", 20_534, 48, 21_557, 42),
        pytest.param("kws-cnn", "SL2610", 34_406, 184, 88_196, 21_146, marks=pytest.mark.slow),
    ],
)
def test_schedules_are_those_that_are_published(  # noqa: PLR0917 - columns of a table
    network: str, part: str, cycles: int, spans: int, read: int, written: int, tmp_path: Path
) -> None:
    found = profile(zoo(network, tmp_path / "m.tflite"), torq_hw=part, torq_clock_mhz="800")
    assert (found.value("cycles"), len(found.trace.spans)) == (cycles, spans)
    assert (found.value("dma_in_bytes"), found.value("dma_out_bytes")) == (read, written)
    assert found.producer == {"torq-compiler": environments.version(environments.found("torq"))}


def test_a_schedule_obeys_the_identities_of_the_compilers_model(tmp_path: Path) -> None:
    found = profile(zoo("conv-small", tmp_path / "m.tflite"))
    (tmp_path / "t.csv").write_bytes(found.files["timeline.csv"])
    rows = read_rows(tmp_path / "t.csv", "C")
    rate = Hardware.of("SL2610").dma_bytes_per_cycle
    assert rate is not None
    moves = rows.bytes >= 0
    length = rows.end - rows.start
    assert length[moves].tolist() == [ceil(size / rate) for size in rows.bytes[moves].tolist()]
    busy = np.zeros(int(rows.end.max()), np.int64)
    queue = np.zeros(len(busy), np.int64)
    for start, end, is_move in zip(rows.start.tolist(), rows.end.tolist(), moves.tolist(), strict=True):
        busy[start:end] += 1
        queue[start:end] += is_move
    assert busy.min() >= 1
    assert queue.max() == 1
    edges = found.trace.edges
    spans = {int(span["command"]): span for span in found.trace.spans}
    assert len(edges) > len(spans)
    assert all(spans[int(e["source"])]["end_ns"] <= spans[int(e["target"])]["start_ns"] for e in edges)


def test_control_traffic_is_told_apart_from_data(tmp_path: Path) -> None:
    found = profile(zoo("conv-small", tmp_path / "m.tflite"))
    launches = found.trace.spans[found.trace.spans["does"] == Does.LAUNCH]
    assert len(launches) == 16 + 13  # programs of the sequencer, a descriptor per job of a slice
    assert found.value("control_bytes") == 14_504
    ops = {op.name: op for op in found.ops}
    assert ops["sequencer programs"].placed is Placed.INSERTED
    assert ops["/Flatten_output_0"].placed is Placed.REMOVED
    assert sum(op.outer_read_bytes or 0 for op in found.ops) == 28_597 - 14_504
    assert {row.name: row.peak_bytes for row in found.memory}["LRAM"] == 32_128


def test_without_a_clock_there_are_cycles_and_no_times(tmp_path: Path) -> None:
    found = profile(zoo("fc", tmp_path / "m.tflite"), torq_hw="SR200")
    assert found.value("cycles") == 555_239
    assert found.latency is None
    assert not len(found.trace.spans)
    assert all(op.time_ns is None for op in found.ops)


def test_what_the_compiler_says_when_it_dies_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"torq-compile crashed \(SIGABRT\); it says: .*failed to recompute"):
        profile(zoo("sample-resnet", tmp_path / "m.tflite"))


def test_outputs_of_the_simulator_are_those_of_litert(tmp_path: Path) -> None:
    interpreter = pytest.importorskip("ai_edge_litert.interpreter")
    model = zoo("conv-small", tmp_path / "m.tflite")
    data = np.random.default_rng(1).integers(-128, 128, (1, 32, 32, 3), np.int8)
    np.savez(tmp_path / "in.npz", input=data)
    registry.load_executing("torq").execute(model, {}, tmp_path / "out.npz", inputs=tmp_path / "in.npz")
    reference = interpreter.Interpreter(model_path=str(model))
    reference.allocate_tensors()
    reference.set_tensor(reference.get_input_details()[0]["index"], data)
    reference.invoke()
    expected = reference.get_tensor(reference.get_output_details()[0]["index"])
    with np.load(tmp_path / "out.npz") as outputs:
        assert np.abs(outputs["output"].astype(int) - expected.astype(int)).max() <= 1


def test_annotate_joins_a_real_dump_with_a_real_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("iree.compiler")
    monkeypatch.chdir(tmp_path)
    zoo("conv-small", tmp_path / "m.tflite")
    phases = ["--dump-compilation-phases-to=phases", "--torq-enable-profiling", "--torq-dump-profiling=t.csv"]
    programs = environments.found("torq").programs
    words = ["--text", "--emit-debug-info", "m.tflite", "-o", "m.mlir"]
    subprocess.run([str(programs["tosa-converter-for-tflite"]), *words], check=True)
    assert main(["torq-compile", "--real", "m.mlir", "-o", "m.vmfb", *phases]) == 0
    run = ["--device=torq", "--module=m.vmfb", "--input=1x32x32x3xi8=1", "--torq_profile_host=host.csv"]
    assert main(["torq-run-module", "--real", *run]) == 0
    assert main(["annotate", "phases/m.10.executable-targets.mlir", "host.csv", "a.csv"]) == 0
    assert "conv2d" in Path("a.csv").read_text()
