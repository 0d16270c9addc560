"""Convolutions and pools of TensorFlow Lite in their forms: the same to the bit in integers, to rounding in floats."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from support.models.tflite_build import ModelBuilder, Operator, Type, options
from support.rewrites.tflite_rewriting import assert_same, constant, operators, quantised, rewrite_file, rewritten

SAME, VALID = 0, 1
FLOAT, INT8 = Type.FLOAT32, Type.INT8
KINDS = {"CONV_2D": "Conv2DOptions", "DEPTHWISE_CONV_2D": "DepthwiseConv2DOptions"}


class Picture:
    """A model under construction, in floats or in int8; every value has its own scale unless it keeps one."""

    def __init__(self, shape: tuple[int, ...], dtype: int, *, zero: int = 3) -> None:
        self.model, self.dtype, self.random = ModelBuilder(), dtype, np.random.default_rng(5)
        self.main = self.model.main
        self.last = self.main.input("x", shape, dtype)
        self.scale, self.zero = 0.05, zero
        self._scaled(self.last)

    def _scaled(self, number: int) -> int:
        return quantised(self.main, number, self.scale, self.zero) if self.dtype == INT8 else number

    def op(
        self, code: int, shape: tuple[int, ...], table: object, *more: int, scale: float = 0.0, zero: int = 3
    ) -> int:
        """Add an operator of the last value; a scale that is given is that of the result."""
        source = self.last
        if scale:
            self.scale, self.zero = scale, zero
        self.last = self._scaled(self.main.tensor(f"v{len(self.main.operators)}", shape, self.dtype))
        self.main.op(code, [source, *more], [self.last], table)
        return self.last

    def conv(self, kind: str, kernel: tuple[int, int], channels: int, shape: tuple[int, ...], **values: int) -> None:
        deep = self.main.tensors[self.last].shape[3] // values.pop("groups", 1)
        weights = (channels, *kernel, deep) if kind == "CONV_2D" else (1, *kernel, channels)
        axis, source_scale = (0 if kind == "CONV_2D" else 3), self.scale
        if self.dtype == INT8:
            scales = self.random.uniform(0.005, 0.02, channels).astype(np.float32)
            w = constant(self.main, self.random.integers(-127, 128, weights).astype(np.int8), "w")
            b = constant(self.main, self.random.integers(-999, 999, channels).astype(np.int32), "b")
            more = (
                quantised(self.main, w, scales, 0, axis),
                quantised(self.main, b, scales * np.float32(source_scale)),
            )
        else:
            more = (
                constant(self.main, self.random.standard_normal(weights).astype(np.float32), "w"),
                constant(self.main, self.random.standard_normal(channels).astype(np.float32), "b"),
            )
        given = {"strideH": 1, "strideW": 1, "dilationHFactor": 1, "dilationWFactor": 1} | values
        if kind != "CONV_2D":
            given["depthMultiplier"] = channels // deep
        self.op(getattr(Operator, kind), shape, options(KINDS[kind], **given), *more, scale=0.21, zero=-11)

    def done(self) -> ModelBuilder:
        self.main.outputs = [self.last]
        return self.model


def padded(shape: tuple[int, ...], amounts: tuple[int, int, int, int], dtype: int, **more: int) -> Picture:
    picture = Picture(shape, dtype, **more)
    top, bottom, left, right = amounts
    result = (shape[0], shape[1] + top + bottom, shape[2] + left + right, shape[3])
    sizes = constant(picture.main, np.array([[0, 0], [top, bottom], [left, right], [0, 0]], np.int32))
    picture.op(Operator.PAD, result, options("PadOptions"), sizes)
    return picture


@pytest.mark.parametrize("dtype", [FLOAT, INT8])
@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize(
    ("size", "kernel", "stride", "amounts", "folds"),
    [
        ((7, 9), (3, 3), 1, (1, 1, 1, 1), True),
        ((8, 8), (3, 3), 2, (0, 1, 0, 1), True),  # an even picture is padded at the end alone
        ((8, 8), (3, 3), 2, (1, 1, 1, 1), False),  # as PyTorch pads: not what SAME does
        ((7, 7), (5, 3), 2, (2, 2, 1, 1), True),
        ((7, 7), (3, 3), 1, (2, 2, 2, 2), False),
    ],
)
def test_a_pad_is_folded_where_same_adds_as_much(
    *,
    dtype: int,
    kind: str,
    size: tuple[int, int],
    kernel: tuple[int, int],
    stride: int,
    amounts: tuple[int, int, int, int],
    folds: bool,
    tmp_path: Path,
) -> None:
    picture = padded((2, *size, 4), amounts, dtype)
    rows = [
        (n + sum(amounts[2 * i : 2 * i + 2]) - k) // stride + 1
        for i, (n, k) in enumerate(zip(size, kernel, strict=True))
    ]
    picture.conv(kind, kernel, 4, (2, rows[0], rows[1], 4), padding=VALID, strideH=stride, strideW=stride)
    before, after, sites = rewritten(picture.done(), "fold-pad", tmp_path)
    assert bool(sites) is folds
    assert operators(after) == ([kind] if folds else ["PAD", kind])
    assert_same(before, after)


@pytest.mark.parametrize(("dtype", "zero", "folds"), [(INT8, -128, True), (INT8, 3, False), (FLOAT, 0, False)])
def test_a_pad_before_a_maximum_is_folded_where_nothing_is_below_zero(
    dtype: int, zero: int, folds: bool, tmp_path: Path
) -> None:
    picture = padded((1, 8, 8, 3), (0, 1, 0, 1), dtype, zero=zero)
    window = options("Pool2DOptions", padding=VALID, filterHeight=3, filterWidth=3, strideH=2, strideW=2)
    picture.op(Operator.MAX_POOL_2D, (1, 4, 4, 3), window)
    before, after, sites = rewritten(picture.done(), "fold-pad", tmp_path)
    assert bool(sites) is folds
    assert_same(before, after)


@pytest.mark.parametrize("dtype", [FLOAT, INT8])
@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize(
    ("size", "kernel", "block", "padding", "crops"),
    [
        ((8, 8), (3, 3), (2, 2), (2, 2, 2, 2), (0, 0, 0, 0)),
        ((7, 7), (3, 3), (2, 2), (2, 3, 2, 3), (0, 1, 0, 1)),  # rows that fill the last block are cut off again
        ((9, 12), (3, 3), (3, 3), (0, 0, 0, 0), (0, 0, 0, 0)),
        ((1, 12), (1, 3), (1, 4), (0, 0, 4, 4), (0, 0, 0, 0)),
    ],
)
def test_batches_made_of_space_are_a_dilation(
    *,
    dtype: int,
    kind: str,
    size: tuple[int, int],
    kernel: tuple[int, int],
    block: tuple[int, int],
    padding: tuple[int, ...],
    crops: tuple[int, ...],
    tmp_path: Path,
) -> None:
    picture = Picture((1, *size, 2), dtype)
    main, many = picture.main, block[0] * block[1]
    rows = [(n + sum(padding[2 * i : 2 * i + 2])) // block[i] for i, n in enumerate(size)]
    blocks = main.constant("block", block)
    pads, cuts = (constant(main, np.reshape(np.array(each, np.int32), (2, 2))) for each in (padding, crops))
    picture.op(Operator.SPACE_TO_BATCH_ND, (many, *rows, 2), options("SpaceToBatchNDOptions"), blocks, pads)
    small = [n - k + 1 for n, k in zip(rows, kernel, strict=True)]
    picture.conv(kind, kernel, 2, (many, small[0], small[1], 2), padding=VALID)
    large = [n * b - sum(crops[2 * i : 2 * i + 2]) for i, (n, b) in enumerate(zip(small, block, strict=True))]
    picture.op(Operator.BATCH_TO_SPACE_ND, (1, large[0], large[1], 2), options("BatchToSpaceNDOptions"), blocks, cuts)
    before, after, _ = rewritten(picture.done(), "fold-dilation", tmp_path)
    assert operators(after) == [kind]
    assert_same(before, after)


@pytest.mark.parametrize("dtype", [FLOAT, INT8])
@pytest.mark.parametrize("code", ["RELU", "RELU6"])
@pytest.mark.parametrize("scale", [0.0, 0.3])
def test_an_activation_goes_into_the_operator_before_it_at_one_scale(
    dtype: int, code: str, scale: float, tmp_path: Path
) -> None:
    picture = Picture((1, 6, 6, 3), dtype)
    picture.conv("CONV_2D", (3, 3), 4, (1, 6, 6, 4), padding=SAME)
    picture.op(getattr(Operator, code), (1, 6, 6, 4), None, scale=scale)
    before, after, _ = rewritten(picture.done(), "fuse-activation", tmp_path)
    changes_scale = dtype == INT8 and scale > 0
    assert operators(after) == (["CONV_2D", code] if changes_scale else ["CONV_2D"])
    assert_same(before, after)


def corner(picture: Picture, source: int, start: tuple[int, int], *, at_once: bool, masks: int) -> int:
    """Every other row and column, in one slice or in two."""
    main, (_, rows, columns, deep) = picture.main, picture.main.tensors[source].shape
    cuts = [(start, (2, 2))] if at_once else [((start[0], 0), (2, 1)), ((0, start[1]), (1, 2))]
    for first, steps in cuts:
        begin, stride = main.constant("begin", (0, *first, 0)), main.constant("stride", (1, *steps, 1))
        end = main.constant("end", (0, 0, 0, 0) if masks else (1, rows, columns, deep))
        rows, columns = -(-(rows - first[0]) // steps[0]), -(-(columns - first[1]) // steps[1])
        cut = options("StridedSliceOptions", endMask=masks)
        picture.last = source
        source = picture.op(Operator.STRIDED_SLICE, (1, rows, columns, deep), cut, begin, end, stride)
    return source


@pytest.mark.parametrize("dtype", [FLOAT, INT8])
@pytest.mark.parametrize("order", [[(0, 0), (1, 0), (0, 1), (1, 1)], [(0, 0), (0, 1), (1, 0), (1, 1)]])
@pytest.mark.parametrize(("at_once", "masks"), [(True, 15), (False, 0)])
@pytest.mark.parametrize(("padding", "kernel"), [(SAME, 3), (VALID, 2)])
def test_squares_of_pixels_before_a_convolution_are_its_stride(
    *, dtype: int, order: list[tuple[int, int]], at_once: bool, masks: int, padding: int, kernel: int, tmp_path: Path
) -> None:
    picture = Picture((1, 8, 12, 3), dtype)
    x = picture.last
    parts = [corner(picture, x, start, at_once=at_once, masks=masks) for start in order]
    picture.last = parts[0]
    picture.op(Operator.CONCATENATION, (1, 4, 6, 12), options("ConcatenationOptions", axis=3), *parts[1:])
    less = 0 if padding == SAME else kernel - 1
    picture.conv("CONV_2D", (kernel, kernel), 5, (1, 4 - less, 6 - less, 5), padding=padding)
    before, after, _ = rewritten(picture.done(), "focus-to-strided-conv", tmp_path)
    assert operators(after) == ["CONV_2D"]
    assert_same(before, after)
    _, after, sites = rewritten(picture.done(), "focus-to-space-to-depth", tmp_path)
    assert bool(sites) is (order == sorted(order))
    assert_same(before, after)


def test_squares_that_lack_a_corner_stay(tmp_path: Path) -> None:
    picture = Picture((1, 8, 8, 3), FLOAT)
    x = picture.last
    parts = [corner(picture, x, start, at_once=True, masks=0) for start in [(0, 0), (1, 0), (0, 1), (0, 1)]]
    picture.last = parts[0]
    picture.op(Operator.CONCATENATION, (1, 4, 4, 12), options("ConcatenationOptions", axis=3), *parts[1:])
    picture.conv("CONV_2D", (3, 3), 2, (1, 4, 4, 2), padding=SAME)
    assert rewritten(picture.done(), "focus-to-strided-conv", tmp_path)[2] == ()


@pytest.mark.parametrize("dtype", [FLOAT, INT8])
@pytest.mark.parametrize("code", ["AVERAGE_POOL_2D", "MAX_POOL_2D"])
@pytest.mark.parametrize(("size", "goes"), [((5, 7), True), ((5, 15), True), ((6, 8), False), ((10, 14), False)])
def test_a_window_that_fits_once_needs_no_stride(
    dtype: int, code: str, size: tuple[int, int], goes: bool, tmp_path: Path
) -> None:
    picture = Picture((2, *size, 3), dtype)
    window = options("Pool2DOptions", padding=VALID, filterHeight=5, filterWidth=7, strideH=5, strideW=7)
    picture.op(getattr(Operator, code), (2, size[0] // 5, size[1] // 7, 3), window)
    before, after, sites = rewritten(picture.done(), "unit-stride", tmp_path)
    assert bool(sites) is goes
    assert_same(before, after, tolerance=0)


@pytest.mark.parametrize("dtype", [FLOAT, INT8])
@pytest.mark.parametrize(("groups", "goes"), [(2, True), (4, True), (1, False)])
def test_groups_of_a_convolution_are_convolutions(dtype: int, groups: int, goes: bool, tmp_path: Path) -> None:
    picture = Picture((1, 6, 5, 8), dtype)
    picture.conv("CONV_2D", (3, 2), 12, (1, 6, 5, 12), padding=SAME, groups=groups)
    before, after, sites = rewritten(picture.done(), "grouped-conv-to-convs", tmp_path)
    assert bool(sites) is goes
    assert operators(after) == (["SPLIT", *["CONV_2D"] * groups, "CONCATENATION"] if goes else ["CONV_2D"])
    assert_same(before, after)


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("dtype", [FLOAT, INT8])
def test_a_mean_over_the_picture_is_a_pool_of_floats(keep: bool, dtype: int, tmp_path: Path) -> None:
    picture = Picture((2, 5, 7, 3), dtype)
    shape = (2, 1, 1, 3) if keep else (2, 3)
    axes = picture.main.constant("axes", (1, -2))
    picture.op(Operator.MEAN, shape, options("ReducerOptions", keepDims=keep), axes)
    before, after, sites = rewritten(picture.done(), "mean-to-average-pool", tmp_path)
    assert bool(sites) is (dtype == FLOAT)
    assert_same(before, after)
    if dtype == FLOAT and keep:
        pooled = tmp_path / "pooled.tflite"
        after.rename(pooled)
        back, sites = rewrite_file(pooled, "average-pool-to-mean", tmp_path / "back.tflite")
        assert operators(back) == ["MEAN"]
        assert_same(before, back)
