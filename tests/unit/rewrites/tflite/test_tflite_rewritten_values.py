"""Moves, products and parts of TensorFlow Lite in their forms."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

from opscope.zoo import Recipe, make
from support.models.tflite_build import ModelBuilder, Operator, SubgraphBuilder, Type, options
from support.rewrites.tflite_rewriting import assert_same, constant, operators, quantised, rewrite_file, rewritten

FLOAT, INT8 = Type.FLOAT32, Type.INT8
RANDOM = np.random.default_rng(3)


def start(shape: tuple[int, ...], dtype: int = FLOAT) -> tuple[ModelBuilder, SubgraphBuilder, int]:
    model = ModelBuilder()
    x = model.main.input("x", shape, dtype)
    return model, model.main, quantised(model.main, x, 0.1, 5) if dtype == INT8 else x


def value(
    main: SubgraphBuilder, shape: tuple[int, ...], dtype: int = FLOAT, *, scale: float = 0.1, zero: int = 5
) -> int:
    made = main.tensor(f"v{len(main.tensors)}", shape, dtype)
    return quantised(main, made, scale, zero) if dtype == INT8 else made


def numbers(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(np.float32)


def chain(steps: list[tuple[str, tuple[int, ...], tuple[int, ...]]], dtype: int) -> ModelBuilder:
    """Moves of (2, 1, 3, 4), one after the other: operator, its numbers, the shape of the result."""
    model, main, x = start((2, 1, 3, 4), dtype)
    for kind, given, shape in steps:
        y = value(main, shape, dtype)
        if kind == "SQUEEZE":
            main.op(Operator.SQUEEZE, [x], [y], options("SqueezeOptions", squeezeDims=list(given)))
        else:
            table = {"RESHAPE": "ReshapeOptions", "TRANSPOSE": "TransposeOptions", "EXPAND_DIMS": "ExpandDimsOptions"}
            main.op(getattr(Operator, kind), [x, main.constant("given", given)], [y], options(table[kind]))
        x = y
    main.outputs = [x]
    return model


@pytest.mark.parametrize("dtype", [FLOAT, INT8])
@pytest.mark.parametrize(
    ("steps", "rewrite", "left"),
    [
        ([("RESHAPE", (6, 4), (6, 4)), ("RESHAPE", (3, 8), (3, 8))], "merge-reshapes", ["RESHAPE"]),
        ([("SQUEEZE", (1,), (2, 3, 4)), ("EXPAND_DIMS", (0,), (1, 2, 3, 4))], "merge-reshapes", ["RESHAPE"]),
        ([("SQUEEZE", (1,), (2, 3, 4))], "reshapes-as-one-kind", ["RESHAPE"]),
        ([("EXPAND_DIMS", (-1,), (2, 1, 3, 4, 1))], "reshapes-as-one-kind", ["RESHAPE"]),
        ([("TRANSPOSE", (1, 0, 2, 3), (1, 2, 3, 4))], "transpose-to-reshape", ["RESHAPE"]),
        ([("TRANSPOSE", (0, 2, 1, 3), (2, 3, 1, 4))], "transpose-to-reshape", ["RESHAPE"]),
        ([("TRANSPOSE", (0, 1, 3, 2), (2, 1, 4, 3))], "transpose-to-reshape", ["TRANSPOSE"]),
        ([("TRANSPOSE", (0, 1, 2, 3), (2, 1, 3, 4)), ("RESHAPE", (24,), (24,))], "drop-no-ops", ["RESHAPE"]),
        ([("RESHAPE", (2, 1, 3, 4), (2, 1, 3, 4)), ("RESHAPE", (24,), (24,))], "drop-no-ops", ["RESHAPE"]),
    ],
)
def test_moves(
    steps: list[tuple[str, tuple[int, ...], tuple[int, ...]]], rewrite: str, left: list[str], dtype: int, tmp_path: Path
) -> None:
    before, after, _ = rewritten(chain(steps, dtype), rewrite, tmp_path)
    assert operators(after) == left
    assert_same(before, after, tolerance=0)


@pytest.mark.parametrize("first", list(permutations(range(3)))[1:])
def test_any_two_transposes_are_one(first: tuple[int, ...], tmp_path: Path) -> None:
    for second in permutations(range(3)):
        model, main, x = start((2, 3, 4))
        for order in (first, second):
            shape = tuple(int(main.tensors[x].shape[axis]) for axis in order)
            y = value(main, shape)
            main.op(Operator.TRANSPOSE, [x, main.constant("order", order)], [y], options("TransposeOptions"))
            x = y
        main.outputs = [x]
        before, after, _ = rewritten(model, "merge-transposes", tmp_path)
        assert len(operators(after)) == 1
        assert_same(before, after, draws=1, tolerance=0)


@pytest.mark.parametrize(("scale", "goes"), [(0.1, True), (0.2, False)])
def test_a_change_of_scale_stays(scale: float, goes: bool, tmp_path: Path) -> None:
    model, main, x = start((4, 4), INT8)
    y, z = value(main, (4, 4), INT8, scale=scale), value(main, (16,), INT8, scale=scale)
    main.op(Operator.QUANTIZE, [x], [y], options("QuantizeOptions"))
    main.op(Operator.RESHAPE, [y, main.constant("shape", (16,))], [z], options("ReshapeOptions"))
    main.outputs = [z]
    before, after, sites = rewritten(model, "drop-no-ops", tmp_path)
    assert bool(sites) is goes
    assert_same(before, after)


@pytest.mark.parametrize("shape", [(5, 6), (2, 3, 6)])
@pytest.mark.parametrize("bias", [True, False])
def test_a_dense_layer_of_floats_is_a_convolution_and_back(shape: tuple[int, ...], bias: bool, tmp_path: Path) -> None:
    model, main, x = start(shape)
    y = value(main, (*shape[:-1], 4))
    more = [constant(main, numbers(4))] if bias else [-1]
    dense = options("FullyConnectedOptions", keepNumDims=len(shape) > 2, fusedActivationFunction=1)
    main.op(Operator.FULLY_CONNECTED, [x, constant(main, numbers(4, 6)), *more], [y], dense)
    main.outputs = [y]
    before, after, _ = rewritten(model, "dense-to-conv", tmp_path)
    assert "CONV_2D" in operators(after)
    assert_same(before, after)
    back, _ = rewrite_file(after, "conv-to-dense", tmp_path / "back.tflite")
    assert "FULLY_CONNECTED" in operators(back)
    assert_same(before, back)


def test_a_dense_layer_of_integers_is_not_a_convolution(tmp_path: Path) -> None:
    path = tmp_path / "fc.tflite"
    make(Recipe("fc", precision="int8", format="tflite", options={"features": 16, "units": 8}), path)
    assert rewrite_file(path, "dense-to-conv", tmp_path / "after.tflite")[1] == ()


@pytest.mark.parametrize("dtype", [FLOAT, INT8])
@pytest.mark.parametrize("transposed", [True, False])
@pytest.mark.parametrize("shape", [(7, 6), (2, 5, 6), (2, 3, 5, 6)])
def test_a_batch_of_products_with_one_matrix_is_a_dense_layer(
    dtype: int, transposed: bool, shape: tuple[int, ...], tmp_path: Path
) -> None:
    model, main, x = start(shape, dtype)
    y = value(main, (*shape[:-1], 4), dtype, scale=1.7, zero=-3)
    matrix = (4, 6) if transposed else (6, 4)
    if dtype == INT8:
        w = quantised(main, constant(main, RANDOM.integers(-127, 128, matrix).astype(np.int8)), 0.013)
    else:
        w = constant(main, numbers(*matrix))
    main.op(Operator.BATCH_MATMUL, [x, w], [y], options("BatchMatMulOptions", adjY=transposed))
    main.outputs = [y]
    before, after, _ = rewritten(model, "batch-product-to-dense", tmp_path)
    assert operators(after) == ["FULLY_CONNECTED"]
    assert_same(before, after)


@pytest.mark.parametrize("kind", ["MUL", "ADD", "SUB"])
@pytest.mark.parametrize("product", ["CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"])
@pytest.mark.parametrize("shape", [(), (3,), (1, 1, 1, 3)])
def test_factors_and_offsets_are_folded(kind: str, product: str, shape: tuple[int, ...], tmp_path: Path) -> None:
    model, main, x = start((1, 4, 4, 3))
    y, z = value(main, (1, 4, 4, 3)), value(main, (1, 4, 4, 3))
    weights = {"CONV_2D": (3, 3, 3, 3), "DEPTHWISE_CONV_2D": (1, 3, 3, 3), "FULLY_CONNECTED": (3, 3)}[product]
    window = {"strideH": 1, "strideW": 1, "dilationHFactor": 1, "dilationWFactor": 1}
    table = {
        "CONV_2D": options("Conv2DOptions", **window),
        "DEPTHWISE_CONV_2D": options("DepthwiseConv2DOptions", depthMultiplier=1, **window),
        "FULLY_CONNECTED": options("FullyConnectedOptions", keepNumDims=True),
    }[product]
    operands = [x, constant(main, numbers(*weights)), constant(main, numbers(3))]
    main.op(getattr(Operator, product), operands, [y], table)
    given = options(f"{kind.title()}Options", fusedActivationFunction=1)
    main.op(getattr(Operator, kind), [y, constant(main, numbers(*shape))], [z], given)
    main.outputs = [z]
    before, after, _ = rewritten(model, "fold-scale", tmp_path)
    assert operators(after) == [product]
    assert_same(before, after, tolerance=1e-5)


def test_a_factor_that_others_miss_is_not_folded(tmp_path: Path) -> None:
    model, main, x = start((2, 3))
    y, z = value(main, (2, 3)), value(main, (2, 3))
    main.op(Operator.FULLY_CONNECTED, [x, constant(main, numbers(3, 3)), -1], [y], options("FullyConnectedOptions"))
    main.op(Operator.MUL, [y, constant(main, numbers(3))], [z], options("MulOptions"))
    main.outputs = [y, z]
    assert rewritten(model, "fold-scale", tmp_path)[2] == ()


@pytest.mark.parametrize("dtype", [FLOAT, INT8])
def test_parts_of_one_size_are_a_split_and_back(dtype: int, tmp_path: Path) -> None:
    model, main, x = start((2, 6, 3), dtype)
    parts = [value(main, (2, 2, 3), dtype) for _ in range(3)]
    for number, part in enumerate(parts):
        bounds = [main.constant("begin", (0, 2 * number, 0)), main.constant("size", (2, 2, 3))]
        main.op(Operator.SLICE, [x, *bounds], [part], options("SliceOptions"))
    main.outputs = parts
    before, after, _ = rewritten(model, "slices-to-split", tmp_path)
    assert operators(after) == ["SPLIT"]
    assert_same(before, after, tolerance=0)
    back, _ = rewrite_file(after, "split-to-slices", tmp_path / "back.tflite")
    assert operators(back) == ["SLICE"] * 3
    assert_same(before, back, tolerance=0)


@pytest.mark.parametrize("dtype", [FLOAT, INT8])
@pytest.mark.parametrize(
    ("index", "axis", "goes"), [((), 0, True), ((), 1, True), ((1,), 1, True), ((2,), -2, True), ((2,), 2, False)]
)
def test_neighbours_that_are_gathered_are_a_slice(
    dtype: int, index: tuple[int, ...], axis: int, goes: bool, tmp_path: Path
) -> None:
    model, main, x = start((2, 6, 3), dtype)
    given = np.arange(1, 1 + int(np.prod(index)), dtype=np.int32).reshape(index) if goes else np.array([2, 0], np.int32)
    shape = [2, 6, 3]
    shape[axis : axis + 1 or None] = given.shape
    y = value(main, tuple(shape), dtype)
    main.op(Operator.GATHER, [x, constant(main, given)], [y], options("GatherOptions", axis=axis))
    main.outputs = [y]
    before, after, sites = rewritten(model, "gather-to-slice", tmp_path)
    assert bool(sites) is goes
    assert_same(before, after, tolerance=0)


@pytest.mark.parametrize(
    ("order", "goes"),
    [
        ((2, 0, 1, 3, 4), True),
        ((1, 2, 0, 3, 4), True),
        ((0, 4, 2, 3, 1), True),
        ((4, 3, 2, 1, 0), True),
        ((2, 0, 3, 1, 4), False),
    ],
)
def test_a_transpose_of_many_axes_is_one_of_few(order: tuple[int, ...], goes: bool, tmp_path: Path) -> None:
    shape = (2, 3, 4, 1 if order == (4, 3, 2, 1, 0) else 5, 2)
    model, main, x = start(shape, INT8)
    y = value(main, tuple(shape[axis] for axis in order), INT8)
    main.op(Operator.TRANSPOSE, [x, main.constant("order", order)], [y], options("TransposeOptions"))
    main.outputs = [y]
    before, after, sites = rewritten(model, "narrow-transpose", tmp_path)
    assert bool(sites) is goes
    assert_same(before, after)


@pytest.mark.parametrize("dtype", [FLOAT, INT8])
@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize(
    ("shape", "goes"), [((2, 5, 8), True), ((2, 3, 4, 9), True), ((1, 5, 8), False), ((7, 8), False)]
)
def test_a_mean_over_the_last_axis_is_one_of_rows(
    dtype: int, keep: bool, shape: tuple[int, ...], goes: bool, tmp_path: Path
) -> None:
    model, main, x = start(shape, dtype)
    y = value(main, (*shape[:-1], 1) if keep else shape[:-1], dtype, scale=0.03, zero=-7)
    main.op(Operator.MEAN, [x, main.constant("axis", (-1,))], [y], options("ReducerOptions", keepDims=keep))
    main.outputs = [y]
    before, after, sites = rewritten(model, "flatten-mean", tmp_path)
    assert bool(sites) is goes
    assert_same(before, after)


@pytest.mark.parametrize("kind", ["GATHER", "STRIDED_SLICE", "UNPACK"])
def test_parts_of_a_packed_projection_are_taken_in_any_way(kind: str, tmp_path: Path) -> None:
    model, main, x = start((2, 5, 6))
    joint, heads, moved = value(main, (2, 5, 24)), value(main, (2, 5, 3, 2, 4)), value(main, (3, 2, 2, 5, 4))
    parts = [value(main, (2, 2, 5, 4)) for _ in range(3)]
    dense = options("FullyConnectedOptions", keepNumDims=True)
    main.op(Operator.FULLY_CONNECTED, [x, constant(main, numbers(24, 6)), constant(main, numbers(24))], [joint], dense)
    main.op(Operator.RESHAPE, [joint, main.constant("s", (2, 5, 3, 2, 4))], [heads], options("ReshapeOptions"))
    main.op(Operator.TRANSPOSE, [heads, main.constant("o", (2, 0, 3, 1, 4))], [moved], options("TransposeOptions"))
    for number, part in enumerate(parts):
        if kind == "GATHER":
            main.op(Operator.GATHER, [moved, constant(main, np.int32(number))], [part], options("GatherOptions"))
        elif kind == "STRIDED_SLICE":
            ends = [(number, 0, 0, 0, 0), (number + 1, 0, 0, 0, 0), (1, 1, 1, 1, 1)]
            cut = options("StridedSliceOptions", beginMask=30, endMask=30, shrinkAxisMask=1)
            main.op(Operator.STRIDED_SLICE, [moved, *(main.constant("e", end) for end in ends)], [part], cut)
    if kind == "UNPACK":
        main.op(Operator.UNPACK, [moved], parts, options("UnpackOptions", num=3, axis=0))
    main.outputs = parts
    before, after, _ = rewritten(model, "split-packed-qkv", tmp_path)
    assert operators(after) == ["FULLY_CONNECTED", "RESHAPE", "TRANSPOSE"] * 3
    assert_same(before, after)


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("divided", [True, False])
@pytest.mark.parametrize("swapped", [True, False])
def test_hard_swish_is_found(fused: bool, divided: bool, swapped: bool, tmp_path: Path) -> None:
    model, main, x = start((2, 5))
    total, clipped, gate, y = (value(main, (2, 5)) for _ in range(4))
    three, six = (constant(main, np.float32(number)) for number in (3, 6 if divided else 1 / 6))
    main.op(Operator.ADD, [x, three], [total], options("AddOptions", fusedActivationFunction=3 if fused else 0))
    if not fused:
        main.op(Operator.RELU6, [total], [clipped])
    kind, table = (Operator.DIV, "DivOptions") if divided else (Operator.MUL, "MulOptions")
    main.op(kind, [total if fused else clipped, six], [gate], options(table))
    main.op(Operator.MUL, [gate, x] if swapped else [x, gate], [y], options("MulOptions"))
    main.outputs = [y]
    before, after, _ = rewritten(model, "hard-swish", tmp_path)
    assert operators(after) == ["HARD_SWISH"]
    assert_same(before, after)


@pytest.mark.parametrize("precision", ["f32", "int8"])
def test_a_packed_projection_is_split(precision: str, tmp_path: Path) -> None:
    path, sizes = tmp_path / "vit.tflite", {"layers": 1, "hidden": 32, "heads": 4, "size": 32}
    make(Recipe("vit-tiny", 2, None, precision, "tflite", options=sizes), path)
    after, sites = rewrite_file(path, "split-packed-qkv", tmp_path / "after.tflite")
    assert len(sites) == 1
    assert operators(after).count("FULLY_CONNECTED") == operators(path).count("FULLY_CONNECTED") + 2
    assert_same(path, after)
