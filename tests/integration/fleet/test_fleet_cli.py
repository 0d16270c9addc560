"""The verbs sweep, store, table and trend, from the command line to their files."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from support.cli.command_line import ended
from support.models import small_models


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    small_models.convnet(tmp_path / "net.onnx")
    return tmp_path


SWEEP = ("sweep", "--models", "net.onnx", "--target", "aic100-std,max32690-cm4", "--backend", "estimate", "--cores")


def test_from_a_sweep_to_tables_and_back(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = ended(capsys, *SWEEP, "1,2", "-o", "s", "--dry-run")
    assert "4 of 4 cells to run" in out
    assert not (folder / "s").exists()
    out, err = ended(capsys, *SWEEP, "1,2", "-o", "s", "--commit", "abc", "--jobs", "1")
    assert out == "3 ok, 0 failed, 1 refused of 4 cells\n"
    assert "--cores 2: max32690-cm4 has 1" in err
    assert "wrote s" in err
    out, _ = ended(capsys, *SWEEP, "1,2", "-o", "s", "--json")
    assert json.loads(out)["run"] == 0
    out, _ = ended(capsys, "store", "ls", "--store", "s")
    assert "version 3" in out
    assert json.loads(ended(capsys, "store", "ls", "--store", "s", "--json")[0])["groups"][0]["ok"] == 2
    question = "SELECT target, count(*) AS n FROM latest GROUP BY ALL ORDER BY ALL"
    out, _ = ended(capsys, "store", "query", question, "--store", "s", "--json")
    assert json.loads(out) == [{"target": "aic100-std", "n": 2}, {"target": "max32690-cm4", "n": 2}]
    out, _ = ended(capsys, "table", "s", "--best", "--format", "md")
    assert "| net |" in out
    ended(capsys, "table", "s", code=2)
    out, _ = ended(capsys, "trend", "s")
    assert out == "0 of 0 series of latency changed; 0 did not\n"
    ended(
        capsys, "profile", "net.onnx", "--target", "aic100-std", "--backend", "estimate", "--cores", "2", "-o", "n.run"
    )
    out, _ = ended(capsys, "compare", "s:abc,cores=2,target=aic100-std", "n.run", "--json")
    differences = {row["name"]: row for row in json.loads(out)["metrics"]}
    assert differences["latency"]["change"] == 0
    ended(capsys, "baseline", "check", "n.run", "s:abc,cores=2", "--fail-on", "latency>0")
    assert ended(capsys, "store", "add", "n.run", "--store", "s", "--json")[0] == '{"added": 1}\n'
    assert json.loads(ended(capsys, "store", "compact", "--store", "s", "--json")[0])["after"] == 4
    assert "became 4" in ended(capsys, "store", "gc", "--store", "s", "--superseded")[0]
    ended(capsys, "store", "export", "csv", "--store", "s", "-o", "cells.csv")
    assert len((folder / "cells.csv").read_text().splitlines()) == 6


def test_a_baseline_lives_in_a_store(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    profile = ("profile", "net.onnx", "--target", "aic100-std", "--backend", "estimate", "--cores", "2")
    ended(capsys, *profile, "-o", "n.run")
    ended(capsys, "store", "add", "n.run", "--store", "s", "--commit", "c")
    ended(capsys, "baseline", "save", "n.run", "-o", "s:release")
    assert (
        "s:release: is there; expected a new name"
        in ended(capsys, "baseline", "save", "n.run", "-o", "s:release", code=2)[1]
    )
    ended(capsys, "baseline", "check", "n.run", "s:release", "--fail-on", "latency>0")
    (folder / "net.onnx").unlink()
    ended(capsys, "zoo", "kws-cnn", "--no-weights", "-o", "net.onnx")
    ended(capsys, *profile, "-o", "m.run")
    out, _ = ended(
        capsys, "baseline", "check", "m.run", "s:release", "--fail-on", "latency>0", "--allow", "model", code=1
    )
    assert "latency" in out
    assert "s:other: has no such baseline" in ended(capsys, "baseline", "update", "m.run", "s:other", code=2)[1]
    assert "wrote s:release" in ended(capsys, "baseline", "update", "m.run", "s:release")[1]
    ended(capsys, "baseline", "check", "m.run", "s:release", "--fail-on", "latency>0")
    out, _ = ended(capsys, "store", "query", "SELECT commit FROM cells ORDER BY ALL", "--store", "s", "--json")
    assert [row["commit"] for row in json.loads(out)] == ["c", "release"]


def test_the_verbs_are_functions_too(folder: Path) -> None:
    """As in docs/fleet.md, from a script that has no guard around its main part."""
    code = (
        "import opscope\nfrom opscope.fleet.spec import Spec\nfrom pathlib import Path\n"
        "axes = {'target': ('aic100-std',), 'backend': ('estimate',), 'cores': (1, 2)}\n"
        "state = opscope.sweep(Spec(('*.onnx',), Path(), axes), 's')\n"
        "assert state.done == 2\n"
        "rows = opscope.ask_store('s', 'SELECT model, cores, latency_ns FROM latest ORDER BY ALL').dictionaries()\n"
        "print([row['cores'] for row in rows])\n"
    )
    (folder / "script.py").write_text(code)
    done = subprocess.run([sys.executable, "script.py"], cwd=folder, capture_output=True, text=True, check=True)
    assert done.stdout == "[1, 2]\n"


def test_a_spec_file_and_axes_beside_it_are_too_much(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "sweep.toml").write_text('models = ["net.onnx"]\n[axes]\ntarget = "aic100-std"\nbackend = "estimate"\n')
    _, err = ended(capsys, "sweep", "sweep.toml", "--cores", "1", "-o", "s", code=2)
    assert "expected no --models and no axes beside it" in err
    out, _ = ended(capsys, "sweep", "sweep.toml", "-o", "s", "--dry-run", "--json")
    assert [cell["model"] for cell in json.loads(out)["cells"]] == ["net"]


def test_open_dimensions_are_given_by_shape(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import onnx

    model = onnx.load("net.onnx")
    model.graph.input[0].type.tensor_type.shape.dim[2].dim_param = "height"
    onnx.save(model, "net.onnx")
    words = ("sweep", "--models", "net.onnx", "--target", "aic100-std", "--backend", "estimate", "-o", "s")
    out, _ = ended(capsys, *words)
    assert "1 refused" in out
    for keep in ("rows", "runs"):
        out, _ = ended(capsys, *words, "--shape", "height=32", "--keep", keep, *(["--fresh"] if keep == "runs" else []))
        assert out.startswith("1 ok")
    question = "SELECT DISTINCT latency_ns, options['shape'] FROM cells WHERE status = 'ok'"
    (row,) = json.loads(ended(capsys, "store", "query", question, "--store", "s", "--json")[0])
    assert list(row.values())[1] == "height=32"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("store", "ls", "--store", "nowhere"), "nowhere: is no store"),
        (("store", "query", "DROP VIEW cells", "--store", "s"), "SQL: is DROP; expected one SELECT"),
        (("table", "nowhere"), "nowhere: is no store"),
        (("trend", "nowhere"), "nowhere: is no store"),
        (("sweep", "-o", "s"), "no models"),
        (("sweep", "--models", "*.tflite", "--target", "aic100-std", "-o", "s"), "no such file"),
        (("sweep", "--models", "net.onnx", "--target", "aic100-std", "--time-limit", "soon", "-o", "s"), "'soon'"),
        (("store", "ls", "--store", "ftp9://x/y"), "cannot be reached"),
    ],
)
def test_mistakes_are_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], said: str
) -> None:
    from opscope.fleet.store import Store

    Store(folder / "s", create=True)
    _, err = ended(capsys, *words, code=2)
    assert said in err
    assert len(err.splitlines()) == 1


def test_help_loads_no_heavy_package() -> None:
    heavy = ("dask", "distributed", "duckdb", "fsspec", "pyarrow", "numpy")
    code = (
        "import sys; from opscope.cli import main\n"
        "for words in (['--help'], ['sweep', '--help'], ['store', '--help']):\n"
        "    try: main(words)\n"
        "    except SystemExit: pass\n"
        f"print([name for name in {heavy!r} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == "[]\n"
