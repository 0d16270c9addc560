"""A module of PyTorch from end to end: the command line, a run by module, a real runtime, the decorator, the page."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import opscope
from opscope.cli import main
from opscope.recording.folder_reader import read_run

torch = pytest.importorskip("torch")
networks = pytest.importorskip("support.models.torch_networks")
ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("torch") / "encoder.run"
    arguments = [
        "profile",
        "support.models.torch_networks:mlp",
        "--target",
        "aic100-std",
        "--cores",
        "2",
        "-o",
        str(folder),
    ]
    assert main(arguments) == 0
    return folder


def test_a_run_keeps_module_and_line_and_obeys_every_law(run: Path) -> None:
    read = read_run(run)
    assert {op.module for op in read.ops} == {"inner", "outer"}
    assert all(re.fullmatch(r"torch_networks\.py:\d+", op.line) for op in read.ops)
    assert read.info.model == "support.models.torch_networks:mlp"
    assert not [check for check in opscope.check(run) if check.holds is False]


def test_tables_pages_and_comparisons_go_by_module(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["analyze", str(run), "--by", "module", "--json"]) == 0
    rollup = next(each for each in json.loads(capsys.readouterr().out)["rollups"] if each["by"] == "module")
    assert {row["name"]: row["macs"] for row in rollup["rows"] if row["macs"]} == {"inner": 1024, "outer": 256}
    assert main(["compare", str(run), str(run), "--by", "module", "--side-by-side"]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"^inner ", shown, re.MULTILINE)
    page = (run / "report.html").read_text(encoding="utf-8")
    assert '"module":"inner"' in page
    assert re.search(r'"line":"torch_networks\.py:\d+"', page)


def test_a_baseline_keeps_modules(run: Path, tmp_path: Path) -> None:
    opscope.save_baseline(run, tmp_path / "base.json")
    found = opscope.side_by_side([tmp_path / "base.json", run], by="module")
    assert {"inner", "outer"} <= {row.name for row in found.rows}


def test_runs_without_modules_say_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["zoo", "kws-cnn", "-o", str(tmp_path / "kws.onnx")]) == 0
    for name in "ab":
        model = opscope.read(tmp_path / "kws.onnx")
        opscope.profile(model, "max32690-cm4", backend="estimate", run=tmp_path / name)
    assert main(["compare", str(tmp_path / "a"), str(tmp_path / "b"), "--by", "module"]) == 2
    assert "--by module: these runs do not tell it; expected runs of a model" in capsys.readouterr().err


def test_a_real_runtime_gets_the_weights_and_its_ops_their_modules() -> None:
    found = opscope.profile(networks.Mlp(), torch.zeros(2, 16), backend="ort")
    assert found.run.info.provenance == "measured"
    assert {"inner", "outer"} <= {op.module for op in found.run.ops}
    assert found.run.info.model == "Mlp"


def test_a_decorated_module_is_profiled_when_it_is_called() -> None:
    class Decorated(networks.Mlp):
        pass

    module = opscope.profiled("aic100-std", backend="estimate")(Decorated)()
    assert module.profiled is None
    inputs = torch.ones(2, 16)
    assert torch.equal(module(inputs), networks.Mlp.forward(module, inputs))
    first = module.profiled
    assert first.run.info.provenance == "estimated"
    module(torch.zeros(2, 16))
    assert module.profiled is first, "shapes that were profiled are not profiled again"


def test_what_is_no_module_cannot_be_decorated() -> None:
    with pytest.raises(opscope.core.errors.UsageError, match="profiled: is on int; expected a module class"):
        opscope.profiled("aic100-std")(3)


def test_the_python_examples_of_the_page_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "pytorch.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert len(blocks) >= 3
    space: dict[str, object] = {"__name__": "docs_pytorch"}
    for block in blocks:
        exec(compile(block, "pytorch.md", "exec"), space)  # noqa: S102 - our own page
