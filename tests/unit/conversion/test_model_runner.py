"""Files are run at the sizes of the samples, also where they leave them open."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from opscope.conversion.model_runner import _array, work
from support.models.tflite_build import ModelBuilder, Operator, options


def test_an_open_file_that_does_not_run_as_stored_runs_at_the_size_of_its_samples(tmp_path: Path) -> None:
    model, samples, outputs = ModelBuilder(), tmp_path / "samples", tmp_path / "outputs"
    main = model.main
    x = main.input("x", (1, 1, 1, 2), signature=(-1, -1, -1, 2))
    y = main.tensor("y", (1, 1, 1, 2), signature=(-1, -1, -1, 2))
    window = options("Pool2DOptions", padding=1, filterHeight=2, filterWidth=2, strideH=1, strideW=1)
    main.op(Operator.MAX_POOL_2D, [x], [y], window)  # no window of two rows fits in the one that is stored
    main.outputs = [y]
    path = tmp_path / "open.tflite"
    path.write_bytes(model.build())
    samples.mkdir()
    outputs.mkdir()
    for number, rows in enumerate((3, 3, 5)):
        values = np.arange(rows * 8, dtype=np.float32).reshape(1, rows, 4, 2)
        np.savez(samples / f"{number}.npz", **{"0": values})
    request = {"format": "tflite", "model": str(path), "inputs": ["x"], "samples": samples, "outputs": outputs}
    assert work(request)["outputs"] == ["y"]
    found = [np.load(outputs / f"{number}.npz")["0"] for number in range(3)]
    assert [array.shape for array in found] == [(1, 2, 3, 2), (1, 2, 3, 2), (1, 4, 3, 2)]
    assert found[0][0, 0, 0].tolist() == [10, 11]


@pytest.mark.parametrize(
    ("output", "wanted"),
    [
        ([{1: 0.2, 0: 0.8}], [[0.8, 0.2]]),  # of a classifier: probabilities by class
        (np.array(["cat", "dog"], object), ["cat", "dog"]),
        ([np.ones((1, 2)), np.zeros(1)], [1, 1, 0]),
        ([], []),
        (np.ones((1, 1)), [[1]]),
    ],
)
def test_every_kind_of_output_is_an_array_that_a_file_can_hold(output: object, wanted: object, tmp_path: Path) -> None:
    np.savez(tmp_path / "o.npz", o=_array(output))
    with np.load(tmp_path / "o.npz") as kept:
        assert kept["o"].tolist() == wanted
