"""Sample models in TOSA: stock IREE parses and runs them, and they compute what the same network does elsewhere."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime
import pytest

from opscope.cli import main
from opscope.core.errors import UsageError
from opscope.device.host.reference import open_reference
from opscope.readers import read_model
from opscope.zoo import Recipe, make

ir = pytest.importorskip("iree.compiler.ir", reason="the extra [mlir] is not installed")

STEP = 8.0 / 256  # of int8 values that span -4 to 4, as a network's inputs and outputs do


def tosa(name: str, folder: Path) -> Path:
    path = folder / f"{name}.mlir"
    make(Recipe(name, precision=None, format="tosa"), path)
    return path


@pytest.mark.parametrize("name", ["fc", "conv-small"])
def test_stock_iree_parses_what_the_zoo_writes(name: str, tmp_path: Path) -> None:
    module = ir.Module.parseFile(str(tosa(name, tmp_path)), ir.Context())
    assert module.operation.verify()


@pytest.mark.parametrize("name", ["fc", "conv-small"])
def test_the_same_recipe_gives_the_same_bytes(name: str, tmp_path: Path) -> None:
    first = tosa(name, tmp_path).read_bytes()
    assert tosa(name, tmp_path).read_bytes() == first


def test_the_dense_layer_is_the_one_of_the_manual(tmp_path: Path) -> None:
    graph = read_model(tosa("fc", tmp_path))
    ports = [(graph.tensors[t].shape, graph.tensors[t].dtype.label) for t in (*graph.inputs, *graph.outputs)]
    assert ports == [((1, 1280), "i8"), ((1, 1000), "i8")]


@pytest.mark.parametrize(("name", "image"), [("fc", False), ("conv-small", True)])
def test_integers_compute_what_floats_do(name: str, image: bool, tmp_path: Path) -> None:
    make(Recipe(name), tmp_path / "float.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "float.onnx", providers=["CPUExecutionProvider"])
    data = np.random.default_rng(3).integers(-100, 100, session.get_inputs()[0].shape).astype(np.int8)
    (expected,) = session.run(None, {session.get_inputs()[0].name: data.astype(np.float32) * STEP})
    reference = open_reference(tosa(name, tmp_path), inputs=["arg0"], outputs=["out"])
    found = reference.run({"arg0": np.ascontiguousarray(np.moveaxis(data, 1, -1) if image else data)})["out"]
    real = found.astype(np.float64) * STEP
    assert np.corrcoef(real.ravel(), expected.ravel())[0, 1] > 0.99
    assert np.abs(real - np.clip(expected, -4, 4)).max() < 8 * STEP


def test_the_suffix_chooses_the_format_and_other_networks_have_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["zoo", "fc", "--units", "8", "-o", str(tmp_path / "a.mlir")]) == 0
    assert (tmp_path / "a.mlir").read_text(encoding="utf-8").startswith("module {\n")
    with pytest.raises(UsageError, match="bert-base: cannot be made as 'tosa'; expected one of onnx"):
        make(Recipe("bert-base", format="tosa"), tmp_path / "b.mlir")
    with pytest.raises(UsageError, match="precision 'f32' does not exist in tosa; expected one of int8"):
        make(Recipe("fc", format="tosa"), tmp_path / "c.mlir")
    with pytest.raises(UsageError, match="a tosa file always holds its weights"):
        make(Recipe("fc", format="tosa", precision="int8", weights=False), tmp_path / "d.mlir")
