"""Caches that come back as inputs: a profile says what they cost on the host link, and how they stay on the device."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from opscope.cli import main
from opscope.zoo import Recipe, make

SMALL = {"layers": 1, "hidden": 256, "heads": 4, "intermediate": 512, "vocabulary": 300, "kv_length": 4096}


def screen_of(model: Path, *words: str, capsys: pytest.CaptureFixture[str]) -> str:
    """What a profile prints, on one line."""
    run = model.with_suffix(".run")
    assert main(["profile", str(model), "--target", "aic100-std", "--fresh", "-o", str(run), *words]) == 0
    return " ".join(capsys.readouterr().out.split())


def test_a_profile_says_that_caches_cross_the_link_and_how_they_stay(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = tmp_path / "decoder.onnx"
    make(Recipe("llm-decoder", precision="f16", weights=False, options=SMALL), model)
    crossing = screen_of(model, capsys=capsys)
    staying = screen_of(model, "--retained-state", capsys=capsys)
    assert "2 outputs (4.00 MB) come back as inputs (4.00 MB) over the host link" in crossing
    assert "--retained-state keeps them on the device" in crossing
    assert "4.00 MB) stay on the device" in staying
    links = [float(re.search(r"host-link .*?([\d.]+)% ", text)[1]) for text in (crossing, staying)]  # type: ignore[index]
    assert links[1] < links[0]


def test_nothing_is_said_of_a_network_without_state(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = tmp_path / "fc.onnx"
    make(Recipe("fc", precision="f16"), model)
    assert "retained-state" not in screen_of(model, capsys=capsys)
