"""The backend: options, rows of nodes from recorded compilations, and the compiler itself where it is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from opscope.backends import environments
from opscope.backends.process import Ended
from opscope.core.errors import ModelError, UsageError
from opscope.core.provenance import Provenance
from opscope.plugins.sophgo.backend import SophgoBackend
from opscope.plugins.sophgo.chips import CHIPS, figures_of
from opscope.plugins.sophgo.compilation import Compilation, DeviceMemory, reason_of
from opscope.plugins.sophgo.compiled_files import merged, read_mlir
from opscope.plugins.sophgo.manifest import CHIP_NAMES, MANIFEST, PRECISIONS
from opscope.plugins.sophgo.options import SophgoOptions
from opscope.plugins.sophgo.profile import assemble
from opscope.plugins.sophgo.profile_file import read_profile
from opscope.readers import read_model
from opscope.recording.recording import Placed, Recording, StageTime
from support.plugins.sophgo_build import SAMPLES, cut_model, small_model

needs_compiler = pytest.mark.skipif(environments.find("sophgo") is None, reason="Sophgo's compiler is not here")


def recorded(name: str, model: Path, **options: str) -> Recording:
    """What the backend makes of a recorded compilation."""
    compiled = merged([read_mlir(SAMPLES / f"{name}.mlir.gz")])
    memory = DeviceMemory(4096, 1000, 8192, 0)
    profile = read_profile(SAMPLES / f"{name}.txt.gz")
    found = Compilation((profile,), compiled, memory, 99, (StageTime("model_deploy", 7),), "", "1.30.2")
    return assemble(model, read_model(model), SophgoOptions.of(dict(options)), found)


def test_chips_of_the_table_are_those_of_the_command_line() -> None:
    assert set(CHIPS) == set(CHIP_NAMES)
    assert len(CHIP_NAMES) == 15
    assert {word for chip in CHIPS.values() for word in chip.precisions} <= set(PRECISIONS)
    timed = {entry.part for entry in MANIFEST.entries if Provenance.VENDOR_MODEL in entry.tells}  # type: ignore[union-attr]
    assert timed == {name for name, chip in CHIPS.items() if chip.has_model}
    assert {figures_of(name).cores.source for name in CHIPS} <= set(figures_of("bm1684x").sources)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"chip": "bm1684x", "precision": "w4a4"}, "--precision w4a4: not of bm1684x; expected one of f16, bf16, f32"),
        ({"chip": "bm1688", "num-core": 3}, "--num-core 3: expected a whole number from 1 to 2"),
        ({"chip": "bm1"}, "--chip bm1: not known; expected one of bm1684x"),
        ({"speed": 3}, "option speed: not one of the sophgo backend"),
    ],
)
def test_choices_that_a_chip_does_not_take_are_refused(options: dict[str, str | int], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        SophgoOptions.of(options)


def test_a_type_alone_is_that_of_weights_and_activations() -> None:
    assert SophgoOptions.of({"chip": "bm1688", "precision": "i8"}).quantize == "INT8"
    assert SophgoOptions.of({"chip": "bm1688", "precision": "i4"}).quantize == "INT4"
    assert SophgoOptions.of({"chip": "bm1684"}).precision == "w8a8"


def test_commands_belong_to_nodes_of_the_model(tmp_path: Path) -> None:
    found = recorded("f16", small_model(tmp_path / "small.onnx"), chip="bm1684x")
    ops = {op.name: op for op in found.ops}
    assert ops["stem"].placed is Placed.ACCELERATOR
    assert ops["stem"].covers == ("act",)
    assert ops["stem"].macs == 8 * 8 * 8 * 27
    assert (ops["act"].placed, ops["act"].reason) == (Placed.FUSED, "fused into stem")
    assert {"mix", "skip", "pool", "head"} <= {op.name for op in found.placed(Placed.ACCELERATOR)}
    casts = found.placed(Placed.INSERTED)
    assert casts
    assert {op.type for op in casts} == {"Cast"}
    assert found.latency_ns == 1166
    assert found.commands is not None
    assert int(found.commands.rows["macs"].sum()) == sum(op.macs or 0 for op in found.ops)


def test_memory_and_compile_time_are_told(tmp_path: Path) -> None:
    found = recorded("f16", small_model(tmp_path / "small.onnx"), chip="bm1684x")
    assert found.totals is not None
    assert found.totals.memory[0].peak_bytes == 4096 + 1000 + 8192
    assert found.value("compile_time") == 7
    assert found.value("model_file") == 99
    assert found.value("ops_on_cpu") == 0


def test_what_no_schedule_has_is_of_unknown_cost(tmp_path: Path) -> None:
    found = recorded("cut", cut_model(tmp_path / "cut.onnx"), chip="bm1684x")
    top = next(op for op in found.ops if op.name == "top")
    assert top.unknown.startswith("compiled dynamically")
    assert top.time_ns is None
    assert any(note.startswith("1 ops are in no schedule") for note in found.notes)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (
            "ASSERT executed at x.h:3\nASSERT INFO:Not Implemented\nRuntimeError: [!Error]: tpuc-opt m",
            "Not Implemented",
        ),
        ("RuntimeError: Op not support:{'Det'}", "Op not support:{'Det'}"),
        ("terminate\n  what():  basic_string::replace", "basic_string::replace"),
        ("KeyError: 'x'\nRuntimeError: [!Error]: tpuc-opt m", "KeyError: 'x'"),
        ("only this", "only this"),
    ],
)
def test_a_failure_is_told_in_the_compilers_own_words(said: str, words: str) -> None:
    assert reason_of(Ended(1, "", said, False)) == words


@needs_compiler
def test_the_compiler_makes_what_was_recorded(tmp_path: Path) -> None:
    model = small_model(tmp_path / "small.onnx")
    np.savez(tmp_path / "data.npz", x=np.random.default_rng(0).uniform(-1, 1, (3, 3, 16, 16)).astype(np.float32))
    options = {"chip": "bm1688", "precision": "i8", "data": str(tmp_path / "data.npz")}
    found = SophgoBackend().profile(model, options)
    assert found.value("cycles") == 3354
    assert any("calibrated with 3 samples of" in note for note in found.notes)
    assert all(check.holds for check in found.checks)
    assert [stage.name for stage in found.stages] == ["model_transform", "run_calibration", "model_deploy"]
    assert (found.value("compile_time") or 0) > 0


@needs_compiler
def test_an_op_that_the_compiler_does_not_have_is_named(tmp_path: Path) -> None:
    model = small_model(tmp_path / "small.onnx", "Det")
    with pytest.raises(ModelError, match=r"model_transform of Sophgo's compiler ended with code 1; .*Det"):
        SophgoBackend().profile(model, {})
