"""ONNX models through the real converters, where the environment `convert` is here."""

from __future__ import annotations

from pathlib import Path

import pytest

import opscope
from opscope.backends import environments
from opscope.core.errors import ModelError

HERE = environments.find("convert") is not None


def _kws(folder: Path) -> Path:
    from opscope.cli import main

    model = folder / "kws.onnx"
    assert main(["zoo", "kws-cnn", "-o", str(model)]) == 0
    return model


@pytest.mark.skipif(not HERE, reason="the environment `convert` is not here: opscope setup convert")
def test_an_onnx_model_gets_to_an_int8_compiler_by_itself(tmp_path: Path) -> None:
    recorded = opscope.profile(_kws(tmp_path), backend="vela", run=tmp_path / "run")
    steps = recorded.recording.details["conversion"]
    assert [step["tool"] for step in steps] == ["onnx2tf", "ai-edge-quantizer"]  # type: ignore[index,attr-defined]
    assert (tmp_path / "run" / "kws.w8a8.tflite").is_file()
    assert any(op.name == "/conv/Conv;/relu/Relu" for op in recorded.recording.ops)
    assert any("channels last" in note for note in recorded.recording.notes)


def test_a_missing_environment_is_said_with_the_command_that_brings_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = _kws(tmp_path)
    monkeypatch.delenv("OPSCOPE_CONVERT", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(
        ModelError, match=r"float ONNX, and --backend vela takes w8a8 in tflite; .*opscope setup convert"
    ):
        opscope.profile(model, backend="vela")


@pytest.mark.skipif(not HERE, reason="the environment `convert` is not here: opscope setup convert")
def test_what_is_asked_for_wins_and_a_refusal_names_the_model(tmp_path: Path) -> None:
    with pytest.raises(
        ModelError, match=r"kws\.onnx: converted, the accelerator takes none .*expected a model of int8$"
    ):
        opscope.profile(_kws(tmp_path), backend="vela", options={"precision": "as-is"})
