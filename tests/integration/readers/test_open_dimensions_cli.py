"""Models with open dimensions, as a user meets them in each verb."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from onnx import helper

from opscope.cli import main
from support.models.onnx_models import graph, model, save, value, weights

NOTE = "batch is open in the file; read at batch 1, --batch N for another"
VENDOR_NOTE = NOTE.replace("--batch N", "-batchsize=N")  # a command line of a vendor has flags of its own
TARGET = ["--target", "aic100-std", "--cores", "2"]


def network(folder: Path, dims: list[int | str]) -> Path:
    nodes = [helper.make_node("Conv", ["x", "w"], ["h"]), helper.make_node("Relu", ["h"], ["y"])]
    return save(folder, model(graph(nodes, [value("x", dims)], [value("y")], [weights("w", 8, 3, 3, 3)])))


def said(capsys: pytest.CaptureFixture[str]) -> str:
    captured = capsys.readouterr()
    return captured.out + captured.err


def test_every_verb_says_that_the_batch_was_open(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, build, run = str(network(tmp_path, ["n", 3, 32, 32])), str(tmp_path / "build"), str(tmp_path / "run")
    estimated, measured = str(tmp_path / "estimated"), str(tmp_path / "measured")
    for words in (
        ["report", path, *TARGET],
        ["compile", path, *TARGET, "-o", build],
        ["run", build, "--num-iter", "2"],
        ["profile", path, *TARGET, "-o", run],
        ["profile", path, *TARGET, "--num-iter", "5", "-o", run],  # with the program of the earlier run
        ["analyze", run],
        ["profile", path, *TARGET, "--backend", "estimate", "-o", estimated],
        ["analyze", estimated],
        ["profile", path, "--backend", "ort", "--repeats", "2", "--op-times", "off", "-o", measured],
    ):
        assert main(words) == 0
        assert NOTE in said(capsys), words
    assert main(["qaic-compile", f"-model={path}", f"-aic-binary-dir={build}", "-aic-num-cores=2"]) == 0
    assert VENDOR_NOTE in said(capsys)
    assert main(["compile", path, *TARGET, "--batch", "2", "-o", build]) == 0
    assert NOTE not in said(capsys)


@pytest.mark.parametrize("verb", ["report", "compile", "profile", "qaic-compile"])
def test_what_a_verb_suggests_it_accepts(tmp_path: Path, capsys: pytest.CaptureFixture[str], verb: str) -> None:
    path, output = str(network(tmp_path, ["n", 3, "height", "width"])), str(tmp_path / "out")
    words = [verb, path, *TARGET] if verb == "report" else [verb, path, *TARGET, "-o", output]
    example = "--shape x=1x3x224x224"
    if verb == "qaic-compile":
        words = [verb, f"-model={path}", f"-aic-binary-dir={output}", "-aic-num-cores=2"]
        symbols = (("n", 1), ("height", 224), ("width", 224))
        example = " ".join(f"-onnx-define-symbol={name},{size}" for name, size in symbols)
    assert main(words) == 2
    error = said(capsys)
    assert error == (
        f"opscope: {path}: 3 dimensions are open: 'n', 'height', 'width' (input 'x': [n, 3, height, width]); "
        f"expected their sizes, for example {example}\n"
    )
    assert main([*words, *shlex.split(error.partition("for example ")[2])]) == 0
    assert NOTE not in said(capsys)


@pytest.mark.parametrize(
    "words", [["--shape", "height=32", "--shape", "width=48"], ["--batch", "1", "--shape", "x=1x3x32x48"]]
)
def test_dimensions_are_set_by_name_or_by_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    path = str(network(tmp_path, ["n", 3, "height", "width"]))
    assert main(["report", path, *TARGET, "--format", "json", *words]) == 0
    assert f'"total_macs": {30 * 46 * 8 * 27}' in said(capsys)


def test_the_vendors_spelling_sets_any_dimension(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = network(tmp_path, ["n", 3, "height", "width"])
    words = ["qaic-compile", f"-model={path}", f"-aic-binary-dir={tmp_path / 'qpc'}", "-aic-num-cores=2"]
    assert main([*words, "-onnx-define-symbol=height,32", "-onnx-define-symbol=width,48"]) == 0
    assert "accepted" not in said(capsys)
    assert main([*words, "-onnx-define-symbol=hight,32"]) == 2
    assert "no input or dimension is called 'hight'; did you mean height?" in said(capsys)
