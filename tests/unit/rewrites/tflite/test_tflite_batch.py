"""A batch taken apart into samples, on drawn shapes: the same to the bit."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opscope.zoo import Recipe, make
from support.models.tflite_build import ModelBuilder, Operator, options
from support.rewrites.tflite_rewriting import assert_same, constant, operators, rewrite_file, rewritten

REWRITE = "split-batch"


@settings(max_examples=12)
@given(
    samples=st.integers(2, 4),
    size=st.integers(1, 4),
    channels=st.integers(1, 3),
    padded=st.booleans(),
    kept=st.booleans(),
    read_twice=st.booleans(),
)
def test_a_batch_is_as_many_samples(
    *, samples: int, size: int, channels: int, padded: bool, kept: bool, read_twice: bool
) -> None:
    """Pad, convolution, a sum with a constant and with a value that is an output too, joined, and a mean."""
    random = np.random.default_rng(samples + 10 * size + 100 * channels)
    model = ModelBuilder()
    main, height = model.main, size + 2 * padded
    x = main.input("x", (samples, size, size, channels))
    if padded:
        pads = constant(main, np.asarray([[0, 0], [1, 1], [1, 1], [0, 0]], np.int32))
        wide = main.tensor("wide", (samples, height, height, channels))
        main.op(Operator.PAD, [x, pads], [wide], options("PadOptions"))
        x = wide
    taps = constant(main, random.standard_normal((2, 1, 1, channels)).astype(np.float32))
    bias = constant(main, random.standard_normal(2).astype(np.float32))
    shape = (samples, height, height, 2)
    y, z, both = main.tensor("y", shape), main.tensor("z", shape), main.tensor("both", (*shape[:3], 4))
    main.op(Operator.CONV_2D, [x, taps, bias], [y], options("Conv2DOptions", strideH=1, strideW=1))
    main.op(Operator.ADD, [constant(main, np.ones((1, 1, 1, 2), np.float32)), y], [z], options("AddOptions"))
    main.op(Operator.CONCATENATION, [y, z], [both], options("ConcatenationOptions", axis=3))
    mean = main.tensor("mean", (samples, 1, 1, 4) if kept else (samples, 4))
    axes = constant(main, np.asarray([1, 2], np.int32))
    main.op(Operator.MEAN, [both, axes], [mean], options("ReducerOptions", keepDims=kept))
    main.outputs = [mean, y] if read_twice else [mean]
    with TemporaryDirectory() as folder:
        before, after, sites = rewritten(model, REWRITE, Path(folder))
        assert len(sites) == 1
        assert operators(after).count("CONV_2D") == samples
        assert_same(before, after)


@pytest.mark.parametrize("precision", ["f32", "int8"])
def test_a_network_comes_apart_whole(precision: str, tmp_path: Path) -> None:
    path = tmp_path / "before.tflite"
    make(Recipe("kws-cnn", batch=3, precision=precision, format="tflite"), path)
    after, sites = rewrite_file(path, REWRITE, tmp_path / "after.tflite")
    assert [len(site.removed) for site in sites] == [len(operators(path))]
    assert operators(after).count("SOFTMAX") == 3
    assert_same(path, after, tolerance=1e-6)
    assert not rewrite_file(after, REWRITE, tmp_path / "again.tflite")[1]


@pytest.mark.parametrize("axes", [[0], [0, 1]])
def test_what_one_sample_has_of_another_stays_together(axes: list[int], tmp_path: Path) -> None:
    model = ModelBuilder()
    x = model.main.input("x", (2, 2, 3))
    y = model.main.tensor("y", (2, 3) if axes == [0] else (3,))
    model.main.op(Operator.MEAN, [x, constant(model.main, np.asarray(axes, np.int32))], [y], options("ReducerOptions"))
    model.main.outputs = [y]
    assert not rewritten(model, REWRITE, tmp_path)[2]
