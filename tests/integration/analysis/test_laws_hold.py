"""Networks of the zoo obey every law on the simulated device and in an estimate; what is too large is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from opscope import api
from opscope.cli import main
from opscope.machine import catalogue as targets
from opscope.program.file_names import PROGRAM_FILE
from opscope.program.program_file import decode_program, encode_program
from opscope.zoo import Recipe, make

NETWORKS = {
    "resnet50": Recipe("resnet50", precision="f16", weights=False),
    "resnet50-i8": Recipe("resnet50", precision="int8", weights=False),
    "bert": Recipe("bert-base", batch=8, sequence=128, precision="f16", weights=False, options={"layers": 2}),
    "decoder": Recipe("llm-decoder", precision="f16", weights=False, options={"layers": 1, "kv_length": 256}),
    "conv-small": Recipe("conv-small"),
}
PHYSICAL = (
    "DDR bytes per second ≤ peak",
    "latency ≥ bytes of DDR ÷ peak",
    "DDR read bytes per second ≤ peak",
    "HMX MACs per second ≤ peak",
    "latency ≥ MACs ÷ peak",
    "busy ≤ wall of every unit",
    "VTCM peak ≤ capacity",
    "DDR peak ≤ capacity",
    "outer memory reads ≥ constants that do not stay resident",
    "MACs of ops = MACs of the graph",
)


@pytest.mark.parametrize(
    ("network", "options"),
    [
        ("resnet50", {}),
        ("resnet50-i8", {"cores": 4}),
        ("bert", {"cores": 2}),
        ("decoder", {"cores": 4, "devices": 2}),
        ("conv-small", {"cores": 1}),
    ],
)
def test_a_simulated_run_obeys_every_law_and_tells_enough_for_each(
    network: str, options: dict[str, int], tmp_path: Path
) -> None:
    target = "aic100-ultra" if "devices" in options else "aic100-std"
    make(NETWORKS[network], tmp_path / "model.onnx")
    done = api.profile(tmp_path / "model.onnx", target, options=options, run=tmp_path / "a.run")
    checks = {check.name: check for check in (*done.findings.checks, *api.check(tmp_path / "a.run"))}
    assert [check for check in checks.values() if check.holds is False] == []
    assert [name for name in PHYSICAL if not checks[name].holds] == []


def test_rows_that_slices_make_twice_are_counted_for_both(tmp_path: Path) -> None:
    make(Recipe("mobilenetv2", format="tflite", precision="int8"), tmp_path / "model.tflite")
    done = api.profile(tmp_path / "model.tflite", "torq-sl2610", backend="sim")
    checks = {check.name: check for check in done.findings.checks}
    assert [check for check in checks.values() if check.holds is False] == []
    assert "done again by further cores or slices of rows" in checks["MACs of ops = MACs of the graph"].detail


def test_a_run_with_ops_of_unknown_cost_breaks_no_law(tmp_path: Path) -> None:
    make(Recipe("mobilenetv2", weights=False), tmp_path / "model.onnx")  # floats, for which the target has no rate
    done = api.profile(tmp_path / "model.onnx", "torq-sl2610", backend="sim")
    assert done.run.unknown_ops
    assert [check for check in done.findings.checks if check.holds is False] == []


def test_an_estimate_obeys_the_laws_that_it_can_be_held_to(tmp_path: Path) -> None:
    make(NETWORKS["resnet50"], tmp_path / "model.onnx")
    done = api.profile(tmp_path / "model.onnx", "aic100-std", backend="estimate", run=tmp_path / "a.run")
    checks = {check.name: check.holds for check in done.findings.checks}
    assert False not in checks.values()
    for name in ("HMX MACs per second ≤ peak", "latency ≥ MACs ÷ peak", "MACs of ops = MACs of the graph"):
        assert checks[name]


# ---- what does not fit ----------------------------------------------------------------------------------------------

REFUSED = (
    "tiny: the program needs 48.98 MB of DDR (48.70 MB of constants, 294.00 KB of inputs and outputs); "
    "it has 32.00 MB; expected a model that fits, more devices (--devices N) or a smaller data type (--precision)"
)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    make(NETWORKS["resnet50"], tmp_path / "model.onnx")
    return tmp_path / "model.onnx"


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """aic100-std with 32 MB of outer memory."""
    text = Path(targets.catalogue()["aic100-std"]).read_text()
    small = text.replace("17179869184", str(32 << 20)).replace('name = "aic100-std"', 'name = "tiny"')
    assert small.count(str(32 << 20)) == 1
    (tmp_path / "tiny.toml").write_text(small)
    return tmp_path / "tiny.toml"


@pytest.mark.parametrize("verb", ["compile", "profile"])
def test_a_program_larger_than_its_memory_is_refused_with_the_numbers(
    verb: str, model: Path, tiny: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([verb, str(model), "--target", str(tiny), "--cores", "2", "-o", str(tmp_path / "out")]) == 2
    assert REFUSED in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    assert main([verb, str(model), "--target", str(tiny), "--precision", "i8", "-o", str(tmp_path / "out")]) == 0


def test_run_refuses_it_too(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compile", str(model), "--target", "aic100-std", "--cores", "2", "-o", str(tmp_path / "out")]) == 0
    file = tmp_path / "out" / PROGRAM_FILE
    program = decode_program(file.read_bytes(), source="")
    assert program.bounds is not None
    holdings = tuple(replace(held, capacity_bytes=1 << 20) for held in program.bounds.holdings)
    file.write_bytes(encode_program(replace(program, bounds=replace(program.bounds, holdings=holdings))))
    capsys.readouterr()
    assert main(["run", str(tmp_path / "out"), "--out-dir", str(tmp_path)]) == 2
    assert "the program needs" in (said := capsys.readouterr().err)
    assert "it has 1.00 MB" in said
