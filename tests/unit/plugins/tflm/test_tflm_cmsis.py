"""Scratch of CMSIS-NN: each figure is what the library's own *_get_buffer_size returns, compiled at 99f736a6."""

from __future__ import annotations

import pytest

from opscope.plugins.tflm.cmsis import Core, kernel_sums, scratch
from opscope.plugins.tflm.nodes import ModelFile, Node
from support.models.tflite_build import Operator, Type, options
from support.models.tflm_models import conv, one_op

PLAIN, DSP, MVE = Core


def only(file: ModelFile) -> Node:
    (node,) = file.nodes(file.subgraphs[0])
    return node


def depthwise(data: tuple[int, ...], kernel: tuple[int, ...], result: tuple[int, ...]) -> ModelFile:
    chosen = options("DepthwiseConv2DOptions", strideW=1, strideH=1, dilationWFactor=1, dilationHFactor=1)
    return one_op(Operator.DEPTHWISE_CONV_2D, [data, kernel], result, chosen)


def pool(made: int) -> ModelFile:
    return one_op(Operator.AVERAGE_POOL_2D, [(1, 8, 8, 12)], (1, 1, 1, 12), types=[made], made=made)


def transposed(channels: int, stride: int) -> ModelFile:
    """Its data is the third operand; the first says the shape of the result."""
    chosen = options("TransposeConvOptions", strideW=stride, strideH=stride)
    shapes = [(4,), (8, 3, 3, channels), (1, 4, 4, channels)]
    return one_op(Operator.TRANSPOSE_CONV, shapes, (1, 4 * stride, 4 * stride, 8), chosen, types=[Type.INT32])


@pytest.mark.parametrize(
    ("file", "plain", "dsp", "mve"),
    [
        (conv((1, 8, 8, 3), (4, 3, 3, 3), (1, 8, 8, 4)), (112,), (112,), (128,)),  # 27 values rounded up to 28, to 32
        (conv((1, 8, 8, 3), (4, 3, 3, 3), (1, 8, 8, 4), made=Type.INT16), (108,), (108,), (256,)),
        (conv((1, 8, 8, 8), (4, 1, 1, 8), (1, 8, 8, 4)), (), (), ()),  # a 1x1 convolution reads its input in place
        (conv((1, 8, 8, 8), (4, 1, 1, 4), (1, 8, 8, 4)), (32,), (32,), (64,)),  # but not in groups
        (conv((1, 1, 16, 4), (4, 1, 3, 4), (1, 1, 16, 4)), (48,), (48,), (16,)),  # along a row
        (conv((1, 8, 8, 3), (4, 3, 3, 3), (1, 8, 8, 4), made=Type.FLOAT32), (), (), ()),
        (depthwise((1, 8, 8, 16), (1, 3, 3, 16), (1, 8, 8, 16)), (), (), (4464,)),
        (depthwise((1, 8, 8, 16), (1, 5, 5, 16), (1, 8, 8, 16)), (), (800,), (12400,)),
        (depthwise((1, 8, 8, 1), (1, 3, 3, 8), (1, 8, 8, 8)), (), (), (136,)),  # runs as a convolution with MVE
        (pool(Type.INT8), (), (48,), ()),
        (pool(Type.INT16), (), (48,), ()),
        (transposed(32, 2), (1152, 2304), (1152, 2304), (1152, 2304)),
        (transposed(8, 2), (864, 0), (864, 0), (864, 0)),
    ],
)
def test_scratch_of_a_kernel(
    file: ModelFile, plain: tuple[int, ...], dsp: tuple[int, ...], mve: tuple[int, ...]
) -> None:
    assert [tuple(scratch(only(file), core)) for core in Core] == [plain, dsp, mve]


def test_sums_over_constant_weights_are_kept_with_vectors_alone() -> None:
    node = only(one_op(Operator.FULLY_CONNECTED, [(1, 32), (10, 32)], (1, 10)))
    assert [tuple(kernel_sums(node, core)) for core in Core] == [(), (), (40,)]
    assert [tuple(scratch(node, core)) for core in Core] == [(), (), ()]


def test_a_dense_layer_of_rows_takes_a_scale_per_channel() -> None:
    rows = [(1, 6, 32), (10, 32)]
    whole = only(one_op(Operator.FULLY_CONNECTED, rows, (1, 6, 10)))
    each = only(one_op(Operator.FULLY_CONNECTED, rows, (1, 6, 10), channels=10))
    assert tuple(scratch(whole, DSP)) == (80,)
    assert tuple(scratch(each, DSP)) == ()


def test_a_kernel_that_the_library_lacks_is_the_reference_one_with_pointers_of_the_chip() -> None:
    node = only(one_op(Operator.ADD_N, [(1, 4)] * 3, (1, 4)))
    assert tuple(scratch(node, PLAIN)) == (12,)
    assert tuple(scratch(node, MVE)) == (12,)
