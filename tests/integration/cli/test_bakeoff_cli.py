"""The verb bakeoff with real runtimes and compilers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.cli.command_line import ended

CHIPS = "cpu,ethos-u55-128,max32690-cm4,stm32n6"


def test_one_model_on_runtimes_compilers_and_targets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for package in ("ai_edge_litert", "ethosu", "duckdb"):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    ended(capsys, "zoo", "kws-cnn", "--format", "tflite", "--precision", "int8", "-o", "kws.tflite")
    words = ("bakeoff", "kws.tflite", "--on", CHIPS, "-o", "s", "--json")
    first = json.loads(ended(capsys, *words)[0])
    rows = {row["target"]: row for row in first["rows"]}
    assert {name: (row["backend"], row["provenance"]) for name, row in rows.items()} == {
        "cpu": ("litert", "measured"),
        "ethos-u55-128": ("vela", "vendor-model"),
        "stm32n6": ("estimate", "calibrated"),
        "max32690-cm4": ("estimate", "estimated"),
    }
    assert all(row["is_on_front"] for row in rows.values())  # alone of their kinds
    assert rows["ethos-u55-128"]["compile_s"] > 0
    assert rows["ethos-u55-128"]["accelerator_time_share"] == 1
    assert rows["max32690-cm4"]["fits"] is True
    assert rows["max32690-cm4"]["accelerator_op_share"] == 0
    assert first["cells_run"] == 4
    again = json.loads(ended(capsys, *words)[0])
    assert again["cells_run"] == 0
    assert again["rows"] == first["rows"]


def test_what_cannot_be_is_a_row_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    ended(capsys, "zoo", "kws-cnn", "-o", "kws.onnx")
    on = ("--on", "ethos-u55-128,max32690-cm4", "--backend", "estimate")
    out, err = ended(capsys, "bakeoff", "kws.onnx", *on, "--budget", "latency=1ms")
    assert "ethos-u55-128 by estimate, as-is: cost not known of 9 Conv" in out
    assert "ethos-u55-128 does not support f32" in out
    assert "ethos-u55-128  estimate  w8a8" in out  # which it takes
    assert "ok    within the budget: ethos-u55-128 by estimate (calibrated)" in err
    _, err = ended(capsys, "bakeoff", "kws.onnx", *on, "--budget", "latency=1us", code=1)
    assert "FAIL  no row is within the budget" in err
    out, _ = ended(capsys, "bakeoff", "kws.onnx", *on, "--precision", "i8", "--format", "md")
    assert "| \\* | ethos-u55-128 | estimate | w8a8 |" in out
    _, err = ended(capsys, "bakeoff", "kws.onnx", "--on", "nonsense", code=2)
    assert "--on nonsense: not known" in err
