"""`opscope optimize` from end to end: small models, our own judges, the files that it leaves."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest

from opscope.cli import main
from opscope.recording.folder_reader import read_run
from opscope.rewrites import catalogue
from support.rewrites.rewriting import assert_same, operators
from support.rewrites.searching import write_model

HEAD = '<ir_version: 8, opset_import: ["" : 17]>'
TEXT = f"""{HEAD}
g (float[1,16,32,32] x) => (float[1,16,32,32] y) {{
    [to] a = Transpose <perm = [0,2,3,1]> (x)
    [back] b = Transpose <perm = [0,3,1,2]> (a)
    [one] y = Sigmoid (b)
}}"""
ALL = catalogue.OWN
JUDGE = ("--target", "aic100-std", "--backend", "estimate")


def optimize(*words: str | Path) -> int:
    return main(["optimize", *map(str, words)])


@pytest.fixture(scope="module", autouse=True)
def _few_rewrites() -> Iterator[None]:
    """Two, so that a search takes seconds; all of them together have their own tests."""
    few = tuple(catalogue.named(name, "onnx") for name in ("merge-transposes", "merge-reshapes"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(catalogue, "OWN", few)
        yield


@pytest.fixture(scope="module")
def better(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A result, with its model beside it."""
    folder = tmp_path_factory.mktemp("optimize")
    model = write_model(folder / "model.onnx", TEXT)
    np.savez(folder / "inputs.npz", x=np.ones((1, 16, 32, 32), np.float32))
    assert optimize(model, *JUDGE, "--data", folder / "inputs.npz", "-o", folder / "better.onnx") == 0
    return folder / "better.onnx"


def test_the_result_is_faster_the_same_and_explained(better: Path) -> None:
    model, folder = better.with_name("model.onnx"), better.with_name("better.optimize")
    assert operators(better) == ["Sigmoid"]
    assert_same(model, better)
    told = json.loads((folder / "optimize.json").read_text())
    assert told["schema"] == "opscope.optimize/1"
    assert told["speedup"] > 1
    assert [(step["rewrite"], step["is_exact"], step["error"]) for step in told["steps"]] == [
        ("merge-transposes", True, 0.0)
    ]
    assert told["before"]["provenance"] == told["after"]["provenance"] == "estimated"
    assert told["checked_with"].startswith("3 drawn inputs and 1 samples of")


def test_runs_before_and_after_lie_beside_it_with_a_page(better: Path) -> None:
    folder = better.with_name("better.optimize")
    before, after = (read_run(folder / name).summary.latency.known_ns for name in ("before", "after"))
    assert after < before
    page = (folder / "timelines.html").read_text()
    assert "before/report.html#timeline" in page
    assert "merge-transposes" in page
    assert (folder / "compare.html").stat().st_size > 10_000
    trials = json.loads((folder / "before" / "findings.json").read_text())["trials"]
    assert "opscope optimize: merge-transposes (1 place)" in {trial["change"] for trial in trials}


def test_the_same_command_comes_to_the_same_bytes_without_a_trial(
    better: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, folder = better.with_name("model.onnx"), better.with_name("better.optimize")
    kept, steps = better.read_bytes(), (folder / "steps.json").read_bytes()
    assert optimize(model, *JUDGE, "-o", better, "--json") == 0
    assert json.loads(capsys.readouterr().out)["trials"] == 0
    assert (better.read_bytes(), (folder / "steps.json").read_bytes()) == (kept, steps)
    assert not (folder / "work").exists()
    assert optimize(model, *JUDGE, "-o", tmp_path / "better.onnx", "--jobs", "1") == 0
    assert (tmp_path / "better.onnx").read_bytes() == kept


def test_steps_are_taken_again_on_another_export(
    better: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = TEXT.replace("[to]", "[t_0]").replace("[back]", "[t_1]").replace("16,32,32", "8,32,32")
    model = write_model(tmp_path / "anew.onnx", text)
    steps = better.with_name("better.optimize") / "steps.json"
    assert optimize(model, "--replay", steps, "-o", tmp_path / "b.onnx", "--format", "md") == 0
    assert operators(tmp_path / "b.onnx") == ["Sigmoid"]
    assert "| merge-transposes | 1 |" in capsys.readouterr().out
    other = write_model(tmp_path / "other.onnx", f"{HEAD}\ng (float[2] x) => (float[2] y) {{ y = Relu (x) }}")
    assert optimize(other, "--replay", steps, "-o", tmp_path / "c.onnx") == 0
    assert "fits nowhere any more" in capsys.readouterr().out
    assert (tmp_path / "c.onnx").read_bytes() == other.read_bytes()


def test_weights_beside_a_model_too_large_for_one_file_go_with_the_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from opscope.rewrites.onnx import files

    monkeypatch.setattr(files, "LARGEST_FILE", 1000)
    text = TEXT.replace("{\n", "<float[16,16,1,1] w> {\n").replace("Sigmoid (b)", "Conv (b, w)")
    model = onnx.parser.parse_model(text)
    del model.graph.initializer[:]
    weights = np.random.default_rng(0).standard_normal((16, 16, 1, 1)).astype(np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    onnx.save(model, tmp_path / "m.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    (tmp_path / "out").mkdir()
    assert optimize(tmp_path / "m.onnx", *JUDGE, "-o", tmp_path / "out" / "b.onnx", "--json") == 0
    assert json.loads(capsys.readouterr().out)["steps"][0]["rewrite"] == "merge-transposes"
    assert (tmp_path / "out" / "b.onnx.data").stat().st_size >= weights.nbytes
    assert_same(tmp_path / "m.onnx", tmp_path / "out" / "b.onnx")


def test_operators_that_only_some_runtimes_know_are_told(tmp_path: Path) -> None:
    from opscope.readers import read_model
    from opscope.rewrites.optimize import _foreign

    plain = write_model(tmp_path / "m.onnx", f"{HEAD}\ng (float[2] x) => (float[2] y) {{ y = Relu (x) }}")
    text = """<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>
    g (float[2] x) => (float[2] y) { y = com.microsoft.Gelu (x) }"""
    other = write_model(tmp_path / "b.onnx", text)
    told = list(_foreign(read_model(plain), other, {}))
    assert told == ["the result has operators that not every runtime knows: com.microsoft:Gelu"]
    assert list(_foreign(read_model(other), other, {})) == []


def test_a_model_that_nothing_helps_stays_as_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = write_model(tmp_path / "m.onnx", f"{HEAD}\ng (float[2] x) => (float[2] y) {{ y = Relu (x) }}")
    assert optimize(model, *JUDGE, "-o", tmp_path / "b.onnx") == 0
    assert "nothing helped: the result is the model as it was" in capsys.readouterr().out
    assert (tmp_path / "b.onnx").read_bytes() == model.read_bytes()


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ((), "nobody judges; expected --target T or --backend B"),
        ((*JUDGE, "--allow", "aproximate"), "did you mean approximate?"),
        ((*JUDGE, "--data", "none.npz"), "none.npz"),
        (("--replay", "none.json"), "none.json: cannot be read"),
        (("--target", "no-such-chip"), "no-such-chip"),
        ((*JUDGE, "--soc", "SA8255"), "--soc"),
    ],
)
def test_wrong_usage_is_one_line(
    words: tuple[str, ...], problem: str, better: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert optimize(better.with_name("model.onnx"), *words, "-o", tmp_path / "b.onnx") == 2
    told = capsys.readouterr().err
    assert problem in told
    assert told.count("\n") == 1
    assert not (tmp_path / "b.onnx").exists()


def test_a_name_of_another_format_is_refused(better: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert optimize(better.with_name("model.onnx"), *JUDGE, "-o", tmp_path / "b.tflite") == 2
    assert "b.tflite: the result is of the model's own format; expected a name that ends in .onnx" in (
        capsys.readouterr().err
    )


def test_the_model_itself_is_not_written_over(better: Path) -> None:
    model = better.with_name("model.onnx")
    assert optimize(model, *JUDGE, "-o", model) == 2
    onnx.checker.check_model(onnx.load(model))


def test_without_its_packages_one_line_says_how_to_get_them(
    better: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from opscope.rewrites import editors

    known = editors.find_spec
    monkeypatch.setattr(editors, "find_spec", lambda name: None if name == "onnx_ir" else known(name))
    assert optimize(better.with_name("model.onnx"), *JUDGE, "-o", tmp_path / "b.onnx") == 2
    assert "onnx_ir is not here; expected `pip install 'opscope[optimize]'`" in capsys.readouterr().err


def test_help_loads_no_editor() -> None:
    code = (
        "import sys, opscope.cli\n"
        "try:\n    opscope.cli.main(['optimize', '--help'])\n"
        "except SystemExit:\n    pass\n"
        "print(sorted({'onnx_ir', 'onnxscript', 'onnxslim', 'onnx'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.slow
def test_measured_times_are_confirmed(better: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--backend", "ort", "--repeats", "20", "-o", tmp_path / "b.onnx", "--json")
    assert optimize(better.with_name("model.onnx"), *words) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["before"]["provenance"] == "measured"
    assert all(step["speedup"] > 1 for step in told["steps"])


@pytest.mark.slow
def test_a_vendor_s_own_compiler_judges(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("onnxruntime_qnn")
    text = f"{HEAD}\ng (float[1,64,64,64] x) => (float[1,64,1,1] y) {{ y = GlobalMaxPool (x) }}"
    model = write_model(tmp_path / "m.onnx", text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(catalogue, "OWN", ALL)
        words = ("--backend", "htp", "--soc", "SA8255", "-o", tmp_path / "b.onnx", "--json")
        assert optimize(model, *words) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["before"]["provenance"] == "vendor-model"
    assert told["speedup"] > 2
    assert_same(model, tmp_path / "b.onnx")


def test_tensorflow_lite_models_are_judged_and_proven_alike(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["zoo", "kws-cnn", "--format", "tflite", "-o", str(tmp_path / "kws.tflite")]) == 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(catalogue, "OWN", tuple(each for each in ALL if each.name == "average-pool-to-mean"))
        assert optimize(tmp_path / "kws.tflite", *JUDGE, "-o", tmp_path / "b.tflite", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert [(step["rewrite"], step["is_exact"]) for step in told["steps"]] == [("average-pool-to-mean", True)]
    assert told["speedup"] > 1
