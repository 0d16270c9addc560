"""Whole networks, with one rewrite after the other: the same to the bit in integers, and read by our own reader."""

from __future__ import annotations

from pathlib import Path

import pytest

from opscope.rewrites import catalogue
from opscope.rewrites.rewrite import everywhere
from opscope.rewrites.tflite import editor
from opscope.zoo import Recipe, make
from support.rewrites.tflite_rewriting import assert_same, operators

NETWORKS = {
    "vit-tiny": {"layers": 1, "hidden": 32, "heads": 4, "size": 32},
    "yolox-nano": {"size": 32, "classes": 2, "focus": "slices", "activation": "relu"},
    "mobilenetv3-small": {"size": 32, "classes": 10},
    "regnety-400mf": {"size": 32, "classes": 10},
    "deeplabv3-mobilenetv2": {"size": 33, "classes": 2},
}


@pytest.mark.parametrize("precision", ["f32", "int8"])
@pytest.mark.parametrize(
    "name", [name if name == "vit-tiny" else pytest.param(name, marks=pytest.mark.slow) for name in NETWORKS]
)
def test_every_rewrite_on_top_of_the_others(name: str, precision: str, tmp_path: Path) -> None:
    before, after = tmp_path / "before.tflite", tmp_path / "after.tflite"
    make(Recipe(name, 2, None, precision, "tflite", options=NETWORKS[name]), before)
    model, done = editor.open_model(before), 0
    for entry in catalogue.known("tflite"):
        model, sites = editor.apply(editor.copy(model), entry, everywhere)
        done += len(sites)
    assert done > 0
    editor.save(model, after)
    assert operators(after)
    assert_same(before, after, draws=1, tolerance=1e-4)
    again = tmp_path / "again.tflite"
    editor.save(editor.open_model(after), again)
    assert again.read_bytes() == after.read_bytes()
