"""TensorFlow Lite models with open dimensions, as a user meets them."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from opscope.cli import main
from support.models.tflite_build import ModelBuilder, Operator, options

REPORT = ["--target", "max32690-cm4", "--no-advice", "--format", "json"]


def spotter(folder: Path, *, width: int) -> str:
    """A dense layer on each row; `width` is -1 where the file leaves the rows open too."""
    model = ModelBuilder()
    x = model.main.input("serving_default_x:0", (1, max(width, 1), 40), signature=(-1, width, 40))
    y = model.main.tensor("y", (1, max(width, 1), 5), signature=(-1, width, 5))
    weights = model.main.tensor("w", (5, 40), data=bytes(800))
    how = options("FullyConnectedOptions", keepNumDims=True)
    model.main.op(Operator.FULLY_CONNECTED, [x, weights, -1], [y], how)
    model.main.outputs = [y]
    model.signature("serving_default", 0, {"x": x})
    path = folder / "spotter.tflite"
    path.write_bytes(model.build())
    return str(path)


def macs(capsys: pytest.CaptureFixture[str]) -> int:
    found: int = json.loads(capsys.readouterr().out)["opportunities"]["total_macs"]
    return found


def test_what_is_suggested_is_accepted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = spotter(tmp_path, width=-1)
    assert main(["report", path, *REPORT]) == 2
    error = capsys.readouterr().err
    assert error == (
        f"opscope: {path}: 2 dimensions are open: dimension 0 of 'serving_default_x:0', dimension 1 of "
        "'serving_default_x:0' (input 'serving_default_x:0': [?, ?, 40]); expected their sizes, for example "
        "--shape serving_default_x:0=1x100x40\n"
    )
    assert main(["report", path, *REPORT, *shlex.split(error.partition("for example ")[2])]) == 0
    assert macs(capsys) == 100 * 40 * 5


def test_an_input_is_set_by_the_name_in_the_signature(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", spotter(tmp_path, width=-1), *REPORT, "--shape", "x=2x30x40"]) == 0
    assert macs(capsys) == 2 * 30 * 40 * 5


def test_an_open_batch_is_read_as_one_and_can_be_set(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = spotter(tmp_path, width=12)
    assert main(["report", path, *REPORT]) == 0
    assert macs(capsys) == 12 * 40 * 5
    assert main(["report", path, *REPORT, "--batch", "3"]) == 0
    assert macs(capsys) == 3 * 12 * 40 * 5
    assert main(["report", path, "--target", "max32690-cm4"]) == 0
    captured = capsys.readouterr()
    assert "batch is open in the file; read at batch 1, --batch N for another" in captured.out + captured.err
