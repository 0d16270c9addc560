"""The shape rule of each operator, against hand-worked shapes and against what LiteRT has after running it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from opscope.core.errors import ModelError
from opscope.readers.tflite.schema import BUILTINS
from opscope.readers.tflite.shapes.control import CONTROL
from opscope.readers.tflite.shapes.infer import VARIABLES
from opscope.readers.tflite.shapes.rules import RULES
from support.models.litert_run import Input, Operand, State, litert_shapes, one_open_operator
from support.models.tflite_build import Operator, Type, options

Shape = tuple[int, ...]
FLOAT, INT, LONG, BOOL = Type.FLOAT32, Type.INT32, Type.INT64, Type.BOOL


def floats(*shape: int) -> npt.NDArray[np.float32]:
    return np.ones(shape, np.float32)


def ints(*values: int | Sequence[int]) -> npt.NDArray[np.int32]:
    return np.array(values, np.int32)


def scalar(value: int) -> npt.NDArray[np.int32]:
    return np.array(value, np.int32)


def conv(**more: int) -> object:
    return options("Conv2DOptions", **{"strideW": 1, "strideH": 1, "dilationWFactor": 1, "dilationHFactor": 1, **more})


def depthwise(**more: int) -> object:
    names = {"strideW": 1, "strideH": 1, "dilationWFactor": 1, "dilationHFactor": 1, "depthMultiplier": 1}
    return options("DepthwiseConv2DOptions", **{**names, **more})


def pool(**more: int) -> object:
    return options("Pool2DOptions", strideW=2, strideH=2, filterWidth=3, filterHeight=2, **more)


def lstm_operands(data: Shape, units: int, states: Sequence[Operand]) -> list[Operand]:
    weights: list[Operand] = [floats(units, data[-1]) for _ in range(4)]
    recurrent: list[Operand] = [floats(units, units) for _ in range(4)]
    biases: list[Operand] = [floats(units) for _ in range(4)]
    return [Input(data), *weights, *recurrent, None, None, None, *biases, None, None, *states]


VALID = 1

Case = tuple[int, list[Operand], list[int], object, list[Shape]]

# operator, operands, results by type, options, shapes of the results worked by hand
CASES: list[Case] = [
    (Operator.ABS, [Input((2, 3))], [FLOAT], None, [(2, 3)]),
    (Operator.SOFTMAX, [Input((2, 3))], [FLOAT], options("SoftmaxOptions", beta=1.0), [(2, 3)]),
    (Operator.CAST, [Input((4,))], [INT], options("CastOptions", inDataType=FLOAT, outDataType=INT), [(4,)]),
    (Operator.ADD, [Input((2, 1, 3)), Input((4, 1))], [FLOAT], options("AddOptions"), [(2, 4, 3)]),
    (Operator.MAXIMUM, [Input((2, 3)), floats(1)], [FLOAT], None, [(2, 3)]),
    (Operator.PRELU, [Input((2, 5, 4, 3)), floats(1, 1, 3)], [FLOAT], None, [(2, 5, 4, 3)]),
    (Operator.LESS, [Input((5,)), floats(1)], [BOOL], None, [(5,)]),
    (Operator.SELECT_V2, [Input((3, 1), BOOL), Input((1, 4)), floats(1)], [FLOAT], None, [(3, 4)]),
    (Operator.SELECT, [Input((3, 4), BOOL), Input((3, 4)), Input((3, 4))], [FLOAT], None, [(3, 4)]),
    (Operator.CONV_2D, [Input((2, 9, 7, 3)), floats(5, 3, 2, 3), floats(5)], [FLOAT], conv(strideW=2), [(2, 9, 4, 5)]),
    (
        Operator.CONV_2D,
        [Input((1, 9, 7, 3)), floats(5, 3, 2, 3), floats(5)],
        [FLOAT],
        conv(padding=VALID, dilationHFactor=2, strideH=3),
        [(1, 2, 6, 5)],  # height: 5 of 9 rows per window, by 3: at 0 and 3
    ),
    (Operator.CONV_2D, [Input((1, 4, 4, 6)), floats(4, 1, 1, 3), floats(4)], [FLOAT], conv(), [(1, 4, 4, 4)]),
    (
        Operator.DEPTHWISE_CONV_2D,
        [Input((1, 8, 8, 3)), floats(1, 3, 3, 6), floats(6)],
        [FLOAT],
        depthwise(depthMultiplier=2, padding=VALID, strideH=2, strideW=2),
        [(1, 3, 3, 6)],
    ),
    (Operator.MAX_POOL_2D, [Input((1, 5, 7, 2))], [FLOAT], pool(), [(1, 3, 4, 2)]),
    (Operator.AVERAGE_POOL_2D, [Input((1, 5, 7, 2))], [FLOAT], pool(padding=VALID), [(1, 2, 3, 2)]),
    (
        Operator.TRANSPOSE_CONV,
        [ints(1, 8, 6, 4), floats(4, 3, 3, 2), Input((1, 4, 3, 2))],
        [FLOAT],
        options("TransposeConvOptions", strideW=2, strideH=2),
        [(1, 8, 6, 4)],
    ),
    (
        Operator.CONV_3D,
        [Input((1, 6, 5, 4, 2)), floats(3, 2, 2, 2, 7)],
        [FLOAT],
        options("Conv3DOptions", padding=VALID, strideD=1, strideW=1, strideH=2),
        [(1, 4, 2, 3, 7)],
    ),
    (
        Operator.CONV_3D_TRANSPOSE,
        [ints(1, 3, 5, 4, 2), floats(2, 2, 2, 2, 3), Input((1, 2, 4, 3, 3))],
        [FLOAT],
        options("Conv3DOptions", padding=VALID, strideD=1, strideW=1, strideH=1),
        [(1, 3, 5, 4, 2)],
    ),
    (
        Operator.FULLY_CONNECTED,
        [Input((2, 3, 4)), floats(5, 4), floats(5)],
        [FLOAT],
        options("FullyConnectedOptions"),
        [(6, 5)],
    ),
    (
        Operator.FULLY_CONNECTED,
        [Input((2, 3, 4)), floats(5, 4), None],
        [FLOAT],
        options("FullyConnectedOptions", keepNumDims=True),
        [(2, 3, 5)],
    ),
    (
        Operator.BATCH_MATMUL,
        [Input((2, 1, 3, 4)), Input((5, 6, 4))],
        [FLOAT],
        options("BatchMatMulOptions", adjY=True),
        [(2, 5, 3, 6)],
    ),
    (
        Operator.BATCH_MATMUL,
        [Input((2, 4, 3)), Input((2, 4, 6))],
        [FLOAT],
        options("BatchMatMulOptions", adjX=True),
        [(2, 3, 6)],
    ),
    (Operator.EMBEDDING_LOOKUP, [Input((3,), INT), floats(7, 2, 5)], [FLOAT], None, [(3, 2, 5)]),
    (Operator.RESHAPE, [Input((2, 3, 4)), ints(4, -1)], [FLOAT], None, [(4, 6)]),
    (Operator.RESHAPE, [Input((2, 6))], [FLOAT], options("ReshapeOptions", newShape=[3, -1]), [(3, 4)]),
    (Operator.SQUEEZE, [Input((1, 2, 1, 3))], [FLOAT], options("SqueezeOptions"), [(2, 3)]),
    (Operator.SQUEEZE, [Input((1, 2, 1, 3))], [FLOAT], options("SqueezeOptions", squeezeDims=[-2]), [(1, 2, 3)]),
    (Operator.EXPAND_DIMS, [Input((2, 3)), scalar(-1)], [FLOAT], None, [(2, 3, 1)]),
    (Operator.TRANSPOSE, [Input((2, 3, 4)), ints(2, 0, 1)], [FLOAT], None, [(4, 2, 3)]),
    (Operator.SLICE, [Input((5, 6)), ints(1, 2), ints(3, -1)], [FLOAT], None, [(3, 4)]),
    (
        Operator.STRIDED_SLICE,
        [Input((9, 8, 7, 6)), ints(1, 0, -1), ints(-1, 5, 0), ints(2, 1, -2)],
        [FLOAT],
        options("StridedSliceOptions", endMask=2),
        [(4, 8, 3, 6)],  # rows 1, 3, 5, 7; all of the second axis; 6, 4, 2 of the third
    ),
    (
        Operator.STRIDED_SLICE,
        [Input((9, 8, 7)), ints(2, 0, 0, 3), ints(3, 0, 0, 6), ints(1, 1, 1, 1)],
        [FLOAT],
        options("StridedSliceOptions", shrinkAxisMask=1, newAxisMask=2, ellipsisMask=4),
        [(1, 8, 3)],
    ),
    (
        Operator.STRIDED_SLICE,
        [Input((9, 8)), ints(2, 1), ints(3, 4), ints(1, 1)],
        [FLOAT],
        options("StridedSliceOptions", offset=True),
        [(3, 4)],
    ),
    (
        Operator.GATHER,
        [Input((4, 5, 6)), ints([0, 1, 2], [2, 1, 0])],
        [FLOAT],
        options("GatherOptions", axis=1),
        [(4, 2, 3, 6)],
    ),
    (
        Operator.GATHER,
        [Input((2, 5, 6)), ints([0, 1, 2], [2, 1, 0])],
        [FLOAT],
        options("GatherOptions", axis=1, batchDims=1),
        [(2, 3, 6)],
    ),
    (Operator.GATHER_ND, [Input((4, 5, 6)), ints([0, 1], [2, 1], [0, 0])], [FLOAT], None, [(3, 6)]),
    (
        Operator.CONCATENATION,
        [Input((2, 3)), Input((2, 4))],
        [FLOAT],
        options("ConcatenationOptions", axis=-1),
        [(2, 7)],
    ),
    (
        Operator.PACK,
        [Input((2, 3)), Input((2, 3))],
        [FLOAT],
        options("PackOptions", valuesCount=2, axis=1),
        [(2, 2, 3)],
    ),
    (Operator.UNPACK, [Input((2, 3))], [FLOAT, FLOAT], options("UnpackOptions", num=2, axis=0), [(3,), (3,)]),
    (Operator.SPLIT, [scalar(1), Input((2, 6))], [FLOAT] * 3, options("SplitOptions", numSplits=3), [(2, 2)] * 3),
    (
        Operator.SPLIT_V,
        [Input((2, 6)), ints(1, -1), scalar(1)],
        [FLOAT] * 2,
        options("SplitVOptions", numSplits=2),
        [(2, 1), (2, 5)],
    ),
    (Operator.PAD, [Input((2, 3)), ints([1, 0], [2, 3])], [FLOAT], None, [(3, 8)]),
    (Operator.PADV2, [Input((2, 3)), ints([1, 0], [2, 3]), floats(1)], [FLOAT], None, [(3, 8)]),
    (Operator.MIRROR_PAD, [Input((2, 4)), ints([1, 0], [2, 3])], [FLOAT], options("MirrorPadOptions"), [(3, 9)]),
    (Operator.TILE, [Input((2, 3)), ints(3, 1)], [FLOAT], None, [(6, 3)]),
    (
        Operator.SPACE_TO_DEPTH,
        [Input((1, 4, 6, 3))],
        [FLOAT],
        options("SpaceToDepthOptions", blockSize=2),
        [(1, 2, 3, 12)],
    ),
    (
        Operator.DEPTH_TO_SPACE,
        [Input((1, 2, 3, 12))],
        [FLOAT],
        options("DepthToSpaceOptions", blockSize=2),
        [(1, 4, 6, 3)],
    ),
    (
        Operator.SPACE_TO_BATCH_ND,
        [Input((2, 5, 6, 3)), ints(2, 3), ints([1, 0], [0, 0])],
        [FLOAT],
        None,
        [(12, 3, 2, 3)],
    ),
    (
        Operator.BATCH_TO_SPACE_ND,
        [Input((12, 3, 2, 3)), ints(2, 3), ints([1, 0], [0, 0])],
        [FLOAT],
        None,
        [(2, 5, 6, 3)],
    ),
    (Operator.FILL, [ints(2, 3), floats()], [FLOAT], None, [(2, 3)]),
    (Operator.BROADCAST_TO, [Input((3, 1)), ints(2, 3, 4)], [FLOAT], None, [(2, 3, 4)]),
    (Operator.SCATTER_ND, [ints([0], [2]), Input((2, 3)), ints(5, 3)], [FLOAT], None, [(5, 3)]),
    (Operator.SPARSE_TO_DENSE, [ints(0, 2), ints(5), Input((2,)), floats()], [FLOAT], None, [(5,)]),
    (Operator.MEAN, [Input((2, 3, 4)), ints(1, -1)], [FLOAT], options("ReducerOptions"), [(2,)]),
    (Operator.SUM, [Input((2, 3, 4)), ints(1)], [FLOAT], options("ReducerOptions", keepDims=True), [(2, 1, 4)]),
    (Operator.REDUCE_MAX, [Input((2, 3)), scalar(0)], [FLOAT], options("ReducerOptions"), [(3,)]),
    (Operator.ARG_MAX, [Input((2, 3, 4)), scalar(1)], [INT], options("ArgMaxOptions", outputType=INT), [(2, 4)]),
    (Operator.TOPK_V2, [Input((2, 9)), scalar(4)], [FLOAT, INT], None, [(2, 4), (2, 4)]),
    (
        Operator.ONE_HOT,
        [Input((2, 3), INT), scalar(7), floats(), floats()],
        [FLOAT],
        options("OneHotOptions", axis=-1),
        [(2, 3, 7)],
    ),
    (
        Operator.ONE_HOT,
        [Input((2, 3), INT), scalar(7), floats(), floats()],
        [FLOAT],
        options("OneHotOptions", axis=1),
        [(2, 7, 3)],
    ),
    (
        Operator.RESIZE_BILINEAR,
        [Input((1, 4, 4, 3)), ints(9, 7)],
        [FLOAT],
        options("ResizeBilinearOptions"),
        [(1, 9, 7, 3)],
    ),
    (Operator.RESIZE_NEAREST_NEIGHBOR, [Input((2, 4, 4, 3)), ints(2, 8)], [FLOAT], None, [(2, 2, 8, 3)]),
    (Operator.RANGE, [scalar(2), scalar(11), scalar(4)], [INT], None, [(3,)]),
    (Operator.RANGE, [scalar(9), scalar(-1), scalar(-3)], [INT], None, [(4,)]),
    (Operator.SHAPE, [Input((2, 3, 4))], [INT], options("ShapeOptions", outType=INT), [(3,)]),
    (Operator.RANK, [Input((2, 3, 4))], [INT], None, [()]),
    (Operator.RFFT2D, [Input((3, 4, 16)), ints(4, 16)], [Type.COMPLEX64], None, [(3, 4, 9)]),
    (Operator.BROADCAST_ARGS, [ints(3, 1), ints(2, 1, 5)], [INT], None, [(3,)]),
    (Operator.WHERE, [np.array([[True, False], [True, True]])], [LONG], None, [(3, 2)]),
    (Operator.UNIQUE, [ints(4, 4, 2, 4)], [INT, INT], options("UniqueOptions", idxOutType=INT), [(2,), (4,)]),
    (Operator.SEGMENT_SUM, [Input((4, 3)), ints(0, 0, 1, 2)], [FLOAT], None, [(3, 3)]),
    (Operator.UNSORTED_SEGMENT_SUM, [Input((4, 3)), ints(0, 4, 2, 2), scalar(6)], [FLOAT], None, [(6, 3)]),
    (Operator.MATRIX_DIAG, [Input((2, 3))], [FLOAT], None, [(2, 3, 3)]),
    (Operator.CUMSUM, [Input((2, 3)), scalar(1)], [FLOAT], options("CumsumOptions"), [(2, 3)]),
    (Operator.REVERSE_V2, [Input((2, 3)), ints(1)], [FLOAT], None, [(2, 3)]),
    (Operator.DYNAMIC_UPDATE_SLICE, [Input((4, 3)), Input((2, 3)), ints(1, 0)], [FLOAT], None, [(4, 3)]),
    (Operator.RANDOM_UNIFORM, [ints(2, 5)], [FLOAT], options("RandomOptions", seed=1, seed2=2), [(2, 5)]),
    (Operator.MULTINOMIAL, [Input((2, 5)), scalar(3)], [LONG], options("RandomOptions", seed=1, seed2=2), [(2, 3)]),
    (Operator.BITCAST, [Input((2, 3), LONG)], [INT], None, [(2, 3, 2)]),
    (Operator.ADD_N, [Input((2, 3)), Input((2, 3))], [FLOAT], None, [(2, 3)]),
    (
        Operator.NON_MAX_SUPPRESSION_V4,
        [Input((6, 4)), Input((6,)), scalar(3), floats(), floats()],
        [INT, INT],
        None,
        [(3,), ()],
    ),
    (
        Operator.NON_MAX_SUPPRESSION_V5,
        [Input((6, 4)), Input((6,)), scalar(3), floats(), floats(), floats()],
        [INT, FLOAT, INT],
        None,
        [(3,), (3,), ()],
    ),
    (
        Operator.RNN,
        [Input((2, 3)), floats(5, 3), floats(5, 5), floats(5), State((2, 5))],
        [FLOAT],
        options("RNNOptions"),
        [(2, 5)],
    ),
    (
        Operator.UNIDIRECTIONAL_SEQUENCE_RNN,
        [Input((2, 7, 3)), floats(5, 3), floats(5, 5), floats(5), State((2, 5))],
        [FLOAT],
        options("SequenceRNNOptions"),
        [(2, 7, 5)],
    ),
    (
        Operator.UNIDIRECTIONAL_SEQUENCE_LSTM,
        lstm_operands((2, 7, 3), 5, [State((2, 5)), State((2, 5))]),
        [FLOAT],
        options("UnidirectionalSequenceLSTMOptions"),
        [(2, 7, 5)],
    ),
    (
        Operator.SVDF,
        [Input((2, 3)), floats(10, 3), floats(10, 4), None, State((2, 40))],
        [FLOAT],
        options("SVDFOptions", rank=2),
        [(2, 5)],
    ),
]

NAMES = {code: name for name, code in vars(Operator).items() if not name.startswith("_")}


@pytest.mark.parametrize("case", CASES, ids=[f"{NAMES[case[0]]}-{i}" for i, case in enumerate(CASES)])
def test_a_rule_gives_the_shapes_that_litert_has(tmp_path: Path, case: Case) -> None:
    code, operands, results, how, expected = case
    model, shapes = one_open_operator(code, operands, results, how)
    graph = model.graph(tmp_path, shapes=shapes)
    assert [graph.tensors[tensor].shape for tensor in graph.ops[0].outputs] == expected
    found = litert_shapes(model.build(), shapes)
    assert [found[f"result{i}"] for i in range(len(results))] == expected


def test_every_builtin_operator_has_a_rule_or_none_is_possible() -> None:
    without = {builtin.name for builtin in BUILTINS} - {*RULES, *CONTROL, *VARIABLES}
    assert without == {
        "CONCAT_EMBEDDINGS",  # no kernel exists
        "CUSTOM",
        "DELEGATE",
        "EMBEDDING_LOOKUP_SPARSE",  # its combiner decides
        "HASHTABLE_IMPORT",  # writes nothing
        "LSH_PROJECTION",
        "PLACEHOLDER_FOR_GREATER_OP_CODES",
        "SKIP_GRAM",  # strings
        "STABLEHLO_BROADCAST_IN_DIM",  # from here, the type of the result is part of the operator and never open
        "STABLEHLO_CONVOLUTION",
        "STABLEHLO_CUSTOM_CALL",
        "STABLEHLO_GATHER",
        "STABLEHLO_IOTA",
        "STABLEHLO_REDUCE_WINDOW",
        "STABLEHLO_RESHAPE",
        "STABLEHLO_RNG_BIT_GENERATOR",
    }
    assert {*RULES, *CONTROL, *VARIABLES} <= {builtin.name for builtin in BUILTINS}


REFUSED: list[tuple[int, list[Operand], object, str]] = [
    (Operator.ADD, [Input((2, 3)), Input((4,))], None, "operands of shapes [2, 3] and [4] do not broadcast"),
    (Operator.RESHAPE, [Input((2, 3)), ints(-1, -1)], None, "new shape [-1, -1]"),
    (Operator.RESHAPE, [Input((2, 3)), ints(0, 7)], None, "data of shape [2, 3] cannot take the shape [0, 7]"),
    (Operator.TRANSPOSE, [Input((2, 3)), ints(0, 0)], None, "permutation [0, 0] of a tensor of shape [2, 3]"),
    (Operator.GATHER, [Input((2, 3)), ints(0)], options("GatherOptions", axis=2), "axis 2 of a tensor of rank 2"),
    (Operator.SLICE, [Input((2, 3)), ints(0, 0), ints(2, 4)], None, "takes 4 elements from 0 out of 3"),
    (
        Operator.TILE,
        [Input((2, 3)), ints(2)],
        None,
        "1 numbers for a tensor of shape [2, 3]; expected one for each axis",
    ),
    (Operator.RANGE, [scalar(0), scalar(5), scalar(0)], None, "a range from 0 to 5 by 0 has no end"),
    (Operator.TILE, [Input((2, 3)), ints(-1, 2)], None, "an output of shape [-2, 6]"),
    (
        Operator.CONV_2D,
        [Input((1, 2, 2, 1)), floats(1, 3, 3, 1)],
        conv(padding=VALID),
        "a window of 3 does not fit into",
    ),
    (Operator.CONV_2D, [Input((2, 2)), floats(1, 3, 3, 1)], conv(), "input 0 of shape [2, 2]; expected rank 4"),
    (Operator.FULLY_CONNECTED, [Input((2, 3)), floats(5, 4)], None, "data of shape [2, 3] for weights of shape [5, 4]"),
    (Operator.UNIDIRECTIONAL_SEQUENCE_RNN, [Input((1, 2, 3)), floats()], None, "an operand has fewer dimensions"),
    (Operator.EXPAND_DIMS, [Input((2,))], None, "input 1 is missing"),
    (Operator.ONE_HOT, [Input((2,), INT), ints(1, 2)], None, "input 1 has 2 elements; expected one"),
]


@pytest.mark.parametrize(("code", "operands", "how", "problem"), REFUSED)
def test_operands_that_do_not_fit_are_refused_at_the_operator(
    tmp_path: Path, code: int, operands: list[Operand], how: object, problem: str
) -> None:
    model, shapes = one_open_operator(code, operands, [FLOAT], how)
    with pytest.raises(ModelError) as error:
        model.graph(tmp_path, shapes=shapes)
    assert f"subgraph 0 operator 0: {NAMES[code]}: {problem}" in str(error.value)
