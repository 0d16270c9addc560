"""The verbs sweep, store, table and trend, from the command line to their files."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import small_models
from opscope.cli import main


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    small_models.convnet(tmp_path / "net.onnx")
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> tuple[str, str]:
    assert main(list(words)) == code
    found = capsys.readouterr()
    assert "Traceback" not in found.err
    return found.out, found.err


SWEEP = ("sweep", "--models", "net.onnx", "--target", "aic100-std,max32690-cm4", "--backend", "estimate", "--cores")


def test_from_a_sweep_to_tables_and_back(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = run(capsys, *SWEEP, "1,2", "-o", "s", "--dry-run")
    assert "4 of 4 cells to run" in out
    assert not (folder / "s").exists()
    out, err = run(capsys, *SWEEP, "1,2", "-o", "s", "--commit", "abc", "--jobs", "1")
    assert out == "3 ok, 0 failed, 1 refused of 4 cells\n"
    assert "--cores 2: max32690-cm4 has 1" in err
    assert "wrote s" in err
    out, _ = run(capsys, *SWEEP, "1,2", "-o", "s", "--json")
    assert json.loads(out)["run"] == 0
    out, _ = run(capsys, "store", "ls", "--store", "s")
    assert "version 1" in out
    assert json.loads(run(capsys, "store", "ls", "--store", "s", "--json")[0])["groups"][0]["ok"] == 2
    question = "SELECT target, count(*) AS n FROM latest GROUP BY ALL ORDER BY ALL"
    out, _ = run(capsys, "store", "query", question, "--store", "s", "--json")
    assert json.loads(out) == [{"target": "aic100-std", "n": 2}, {"target": "max32690-cm4", "n": 2}]
    out, _ = run(capsys, "table", "s", "--best", "--format", "md")
    assert "| net |" in out
    run(capsys, "table", "s", code=2)
    out, _ = run(capsys, "trend", "s")
    assert out == "0 of 0 series of latency changed; 0 did not\n"
    run(capsys, "profile", "net.onnx", "--target", "aic100-std", "--backend", "estimate", "--cores", "2", "-o", "n.run")
    out, _ = run(capsys, "compare", "s:abc,cores=2,target=aic100-std", "n.run", "--json")
    differences = {row["name"]: row for row in json.loads(out)["metrics"]}
    assert differences["latency"]["change"] == 0
    assert run(capsys, "store", "add", "n.run", "--store", "s", "--json")[0] == '{"added": 1}\n'
    assert json.loads(run(capsys, "store", "compact", "--store", "s", "--json")[0])["after"] == 4
    assert "became 4" in run(capsys, "store", "gc", "--store", "s", "--superseded")[0]
    run(capsys, "store", "export", "csv", "--store", "s", "-o", "cells.csv")
    assert len((folder / "cells.csv").read_text().splitlines()) == 6


def test_a_spec_file_and_axes_beside_it_are_too_much(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "sweep.toml").write_text('models = ["net.onnx"]\n[axes]\ntarget = "aic100-std"\nbackend = "estimate"\n')
    _, err = run(capsys, "sweep", "sweep.toml", "--cores", "1", "-o", "s", code=2)
    assert "expected no --models and no axes beside it" in err
    out, _ = run(capsys, "sweep", "sweep.toml", "-o", "s", "--dry-run", "--json")
    assert [cell["model"] for cell in json.loads(out)["cells"]] == ["net"]


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
    _, err = run(capsys, *words, code=2)
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
