"""The way from what a model is to what a backend takes."""

from __future__ import annotations

import numpy as np
import pytest

from opscope.conversion import plan
from opscope.conversion.check import garbage
from opscope.conversion.steps import MovedInput, MovedSamples
from opscope.core.manifest import BackendEntry, Conversion, Form
from opscope.quantization.samples import RandomSamples
from opscope.recording.quantized import Difference, OutputDifference

TO_TFLITE = Conversion("exporter", Form("onnx", "float"), Form("tflite", "float"), ".x:y")
QUANTISE = Conversion("quantiser", Form("tflite", "float"), Form("tflite", "w8a8"), ".x:y")
TO_MLIR = Conversion("lowering", Form("tflite"), Form("mlir"), ".x:y")
STEPS = (TO_TFLITE, QUANTISE, TO_MLIR)


@pytest.mark.parametrize(
    ("start", "formats", "precision", "way"),
    [
        (Form("onnx", "float"), ("tflite",), "w8a8", (TO_TFLITE, QUANTISE)),
        (Form("onnx", "float"), ("mlir",), "w8a8", (TO_TFLITE, QUANTISE, TO_MLIR)),
        (Form("onnx", "float"), ("tflite", "mlir"), "float", (TO_TFLITE,)),
        (Form("tflite", "w8a8"), ("mlir",), "w8a8", (TO_MLIR,)),
        (Form("onnx", "w8a8"), ("tflite",), "w8a8", ()),
        (Form("mlir", "float"), ("tflite",), "float", ()),
    ],
)
def test_the_shortest_way_is_found(
    start: Form, formats: tuple[str, ...], precision: str, way: tuple[Conversion, ...]
) -> None:
    assert plan.shortest(start, formats, precision, STEPS) == way


def test_what_is_asked_for_wins_over_what_the_backend_needs() -> None:
    entry = BackendEntry("toy", "Toy", ".x:y", models=("tflite",), precisions=("w8a8", "w8a16"))
    assert plan.goal(entry, "float", None) == "w8a8"
    assert plan.goal(entry, "float", "w8a16") == "w8a16"
    assert plan.goal(entry, "w8a16", None) == "w8a16"


def test_samples_follow_their_inputs_through_every_step() -> None:
    given = MovedSamples(RandomSamples([("x", "f32", (1, 3, 4, 5))], 1))
    after = given.then({"x": MovedInput("x__0", (0, 2, 3, 1))}, ["x"]).then({"x__0": MovedInput("in")}, ["x"])
    (before,), (found,) = given.feeds(), after.feeds()
    assert list(found) == ["in"]
    assert found["in"].shape == (1, 4, 5, 3)
    np.testing.assert_array_equal(found["in"], before["x"].transpose(0, 2, 3, 1))


def test_an_unrelated_output_is_garbage_and_a_noisy_one_is_not() -> None:
    bad = OutputDifference("y", Difference(1.0, 2.0, 0.1, 1.0, 1.0))
    good = OutputDifference("z", Difference(1.0, 0.1, 0.95, 0.1, 1.0))
    assert garbage([bad, good], exact=True) == "output y: cosine 0.10 to the model's"
    assert garbage([bad, good], exact=False) == ""
    assert garbage([bad], exact=False) != ""
