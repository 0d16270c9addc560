"""One network, two versions of Arm's compiler: `compare` names the op and the cause of the cycles between them."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from opscope.cli import main

EARLIER = "4.5.0"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("ethosu") is None, reason="no ethos-u-vela; the extra [vela] brings it"),
]


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with an earlier version."""
    folder = tmp_path_factory.mktemp("earlier") / "vela"
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    pip = [folder / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check"]
    done = subprocess.run([*pip, f"ethos-u-vela=={EARLIER}"], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"ethos-u-vela {EARLIER} cannot be had here")
    return folder


def test_the_op_and_the_cause_of_the_cycles_between_two_versions(
    earlier: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["zoo", "kws-cnn", "--format", "tflite", "--precision", "int8", "-o", "kws.tflite"]) == 0
    assert main(["profile", "kws.tflite", "--backend", "vela", "--tool", str(earlier), "-o", "old.run"]) == 0
    assert main(["profile", "kws.tflite", "--backend", "vela", "-o", "new.run"]) == 0
    capsys.readouterr()
    assert main(["compare", "old.run", "new.run"]) == 0
    text = capsys.readouterr().out
    assert f"ethos-u-vela {EARLIER}" in text
    first = next(line for line in text.splitlines() if "GlobalAveragePool" in line)
    assert "SRAM 1,608 → NPU" in first
    assert main(["compare", "old.run", "new.run", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    whole = found["explanations"]["op"]
    assert sum(part["ns"] for part in whole["parts"]) + whole["rest_ns"] == pytest.approx(whole["change_ns"])
    assert all(op["cause"] for op in found["ops"] if op["own_ns"]["change"])


def test_what_an_earlier_version_leaves_to_the_cpu_has_no_latency(
    earlier: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Trap: versions 4 leave ops of the CPU out of their table of layers."""
    monkeypatch.chdir(tmp_path)
    assert main(["zoo", "deeplabv3-mobilenetv2", "--format", "tflite", "--precision", "int8", "-o", "v.tflite"]) == 0
    main(["profile", "v.tflite", "--backend", "vela", "--tool", str(earlier), "-o", "v.run"])
    assert "1 of" in capsys.readouterr().out
    assert json.loads(Path("v.run/summary.json").read_text())["latency"]["value_ns"] is None
