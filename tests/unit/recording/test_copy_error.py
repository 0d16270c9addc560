"""How far the copy that was profiled is from the model, as recordings say it."""

from __future__ import annotations

import pytest

from opscope.recording.quantized import CopyError, copy_error


def test_a_quantised_copy_tells_its_worst_output() -> None:
    part = {"signal": 100.0, "noise": 1.0, "cosine": 0.99, "max_abs": 0.5, "largest": 3.0}
    better = {**part, "noise": 0.01, "cosine": 1.0}
    outputs = [{"name": "a", "difference": better}, {"name": "b", "difference": part}, {"name": "c"}]
    found = copy_error({"quantization": {"precision": "w8a8", "outputs": outputs, "calibration": {"told": "data"}}})
    assert found == CopyError("w8a8", pytest.approx(20.0), 0.99, "data")


def test_of_conversions_the_last_one_counts() -> None:
    first = {"to": {"format": "tflite", "precision": "float"}, "outputs": [{"sqnr_db": 120.0, "cosine": 1.0}]}
    outputs = [{"sqnr_db": None, "cosine": 1.0}, {"sqnr_db": 31.0, "cosine": 0.999}]
    last = {"to": {"format": "tflite", "precision": "w8a8"}, "outputs": outputs}
    assert copy_error({"conversion": [first, last]}) == CopyError("w8a8", 31.0, 0.999, "")


@pytest.mark.parametrize("details", [{}, {"quantization": 3}, {"conversion": []}, {"conversion": [{"outputs": 1}]}])
def test_what_nobody_compared_has_no_error(details: dict[str, object]) -> None:
    assert copy_error(details) is None
