"""Values that shape arithmetic is made of, against what LiteRT computes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from opscope.readers.tflite.flatbuffer import Flatbuffer
from opscope.readers.tflite.model import StoredModel
from opscope.readers.tflite.shapes import evaluate as tflite_evaluate
from opscope.readers.tflite.shapes.evaluate import NEEDS, VALUED
from opscope.readers.tflite.shapes.frame import Unknown
from opscope.readers.tflite.shapes.infer import Inference
from opscope.readers.tflite.shapes.values import VALUES
from support.models.litert_run import Input, Operand, litert_outputs, one_open_operator
from support.models.tflite_build import ModelBuilder, Operator, Type, options

FLOAT, INT, LONG, BOOL = Type.FLOAT32, Type.INT32, Type.INT64, Type.BOOL


def ints(*values: int | Sequence[int]) -> Operand:
    return np.array(values, np.int32)


def scalar(value: float) -> Operand:
    return np.array(value, np.int32 if isinstance(value, int) else np.float32)


def floats(*values: float) -> Operand:
    return np.array(values, np.float32)


def bools(*values: bool) -> Operand:
    return np.array(values, np.bool_)


Case = tuple[int, list[Operand], list[int], object]


def binary(code: int) -> Case:
    return code, [ints(7, -7, 9, 3), ints(2, 2, -4, 3)], [INT], None


def compared(code: int) -> Case:
    return code, [ints(1, 2, 3), ints(2)], [BOOL], None


def unary(code: int) -> Case:
    return code, [floats(0.25, 2.5, 3.5, 9.0)], [FLOAT], None


def reduced(code: int, data: Operand, result: int = INT) -> Case:
    return code, [data, ints(1)], [result], options("ReducerOptions", keepDims=True)


TABLE = ints([4, 9, 2], [5, 1, 6])

CASES: list[Case] = [
    *map(binary, (Operator.ADD, Operator.SUB, Operator.MUL, Operator.DIV, Operator.FLOOR_DIV, Operator.FLOOR_MOD)),
    *map(binary, (Operator.MAXIMUM, Operator.MINIMUM, Operator.SQUARED_DIFFERENCE)),
    (Operator.POW, [ints(2, 3, -2), ints(10, 0, 3)], [INT], None),
    (Operator.DIV, [floats(7, 1), floats(2, 3)], [FLOAT], None),
    (Operator.ADD, [ints(2**31 - 1), ints(1)], [INT], None),  # wraps
    *map(compared, (Operator.EQUAL, Operator.NOT_EQUAL, Operator.LESS, Operator.LESS_EQUAL)),
    *map(compared, (Operator.GREATER, Operator.GREATER_EQUAL)),
    (Operator.LOGICAL_AND, [bools(True, False), bools(True, True)], [BOOL], None),
    (Operator.LOGICAL_OR, [bools(True, False), bools(False, False)], [BOOL], None),
    (Operator.LOGICAL_NOT, [bools(True, False)], [BOOL], None),
    (Operator.SELECT_V2, [bools(True, False), ints(1, 2), ints(3)], [INT], None),
    (Operator.SELECT, [bools(True, False), ints(1, 2), ints(3, 4)], [INT], None),
    *map(unary, (Operator.ABS, Operator.NEG, Operator.SQUARE, Operator.SQRT, Operator.LOG, Operator.EXP)),
    *map(unary, (Operator.CEIL, Operator.FLOOR, Operator.ROUND, Operator.SIGN)),
    (Operator.CAST, [floats(2.9, -2.9)], [INT], options("CastOptions", inDataType=FLOAT, outDataType=INT)),
    (Operator.CAST, [ints(0, 3)], [BOOL], options("CastOptions", inDataType=INT, outDataType=BOOL)),
    reduced(Operator.SUM, TABLE),
    reduced(Operator.REDUCE_PROD, TABLE),
    reduced(Operator.REDUCE_MAX, TABLE),
    reduced(Operator.REDUCE_MIN, TABLE),
    reduced(Operator.REDUCE_ALL, np.array([[True, False], [True, True]]), BOOL),
    reduced(Operator.REDUCE_ANY, np.array([[True, False], [False, False]]), BOOL),
    (Operator.ARG_MAX, [TABLE, scalar(1)], [INT], options("ArgMaxOptions", outputType=INT)),
    (Operator.ARG_MIN, [TABLE, scalar(0)], [LONG], options("ArgMinOptions", outputType=LONG)),
    (Operator.SHAPE, [Input((2, 5, 3))], [INT], options("ShapeOptions", outType=INT)),
    (Operator.SHAPE, [Input((2, 5, 3))], [LONG], options("ShapeOptions", outType=LONG)),
    (Operator.RANK, [Input((2, 5, 3))], [INT], None),
    (Operator.RESHAPE, [TABLE, ints(3, -1)], [INT], None),
    (Operator.SQUEEZE, [ints([1, 2])], [INT], options("SqueezeOptions")),
    (Operator.EXPAND_DIMS, [TABLE, scalar(1)], [INT], None),
    (Operator.RANGE, [scalar(7), scalar(-2), scalar(-2)], [INT], None),
    (Operator.RANGE, [scalar(0.5), scalar(2.0), scalar(0.25)], [FLOAT], None),
    (Operator.FILL, [ints(2, 3), scalar(5)], [INT], None),
    (Operator.BROADCAST_TO, [ints([1], [2]), ints(2, 3)], [INT], None),
    (Operator.BROADCAST_ARGS, [ints(3, 1), ints(2, 1, 5)], [INT], None),
    (Operator.ZEROS_LIKE, [TABLE], [INT], None),
    (Operator.TILE, [TABLE, ints(1, 2)], [INT], None),
    (Operator.TRANSPOSE, [TABLE, ints(1, 0)], [INT], None),
    (Operator.REVERSE_V2, [TABLE, ints(1)], [INT], None),
    (Operator.WHERE, [np.array([[True, False], [False, True]])], [LONG], None),
    (Operator.SLICE, [TABLE, ints(0, 1), ints(-1, 2)], [INT], None),
    (
        Operator.STRIDED_SLICE,
        [TABLE, ints(0, 2), ints(1, -9), ints(1, -2)],
        [INT],
        options("StridedSliceOptions", shrinkAxisMask=1),
    ),
    (Operator.GATHER, [TABLE, ints(2, 0)], [INT], options("GatherOptions", axis=1)),
    (Operator.GATHER_ND, [TABLE, ints([1, 2], [0, 0])], [INT], None),
    (Operator.CONCATENATION, [TABLE, ints([7], [8])], [INT], options("ConcatenationOptions", axis=-1)),
    (Operator.PACK, [ints(1, 2), ints(3, 4)], [INT], options("PackOptions", valuesCount=2, axis=1)),
    (Operator.UNPACK, [TABLE], [INT] * 3, options("UnpackOptions", num=3, axis=1)),
    (Operator.SPLIT, [scalar(1), TABLE], [INT] * 3, options("SplitOptions", numSplits=3)),
    (Operator.SPLIT_V, [TABLE, ints(-1, 1), scalar(1)], [INT] * 2, options("SplitVOptions", numSplits=2)),
    (Operator.ONE_HOT, [ints(2, 0), scalar(3), scalar(8), scalar(1)], [INT], options("OneHotOptions", axis=-1)),
    (Operator.ONE_HOT, [ints([2, 0]), scalar(3), scalar(8), scalar(1)], [INT], options("OneHotOptions", axis=1)),
    (Operator.CUMSUM, [TABLE, scalar(1)], [INT], options("CumsumOptions", exclusive=True, reverse=True)),
    (Operator.TOPK_V2, [ints(4, 9, 4, 7), scalar(3)], [INT, INT], None),
    (Operator.UNIQUE, [ints(4, 2, 4, 3)], [INT, INT], options("UniqueOptions", idxOutType=INT)),
    (Operator.PAD, [TABLE, ints([1, 0], [0, 2])], [INT], None),
    (Operator.PADV2, [TABLE, ints([1, 0], [0, 2]), scalar(9)], [INT], None),
    (Operator.DYNAMIC_UPDATE_SLICE, [TABLE, ints([0, 0]), ints(1, 5)], [INT], None),
    (Operator.SCATTER_ND, [ints([1], [3], [1]), ints(5, 6, 7), ints(5)], [INT], None),
]

NAMES = {code: name for name, code in vars(Operator).items() if not name.startswith("_")}


def evaluated(model: ModelBuilder, inputs: dict[int, tuple[int, ...]]) -> list[object]:
    """Return the outputs as evaluated here, or why they are not."""
    inference = Inference(StoredModel(Flatbuffer(model.build(), "model.tflite")), is_resized=True, observed={})
    frame = inference.run(inputs)
    found = [inference.evaluator.find(frame, tensor) for tensor in model.main.outputs]
    return [value.origin if isinstance(value, Unknown) else value for value in found]


@pytest.mark.parametrize("case", CASES, ids=[f"{NAMES[case[0]]}-{i}" for i, case in enumerate(CASES)])
def test_a_value_is_what_litert_computes(case: Case) -> None:
    code, operands, results, how = case
    model, shapes = one_open_operator(code, operands, results, how)
    found = evaluated(model, {place: shapes[f"operand{place}"] for place in model.main.inputs})
    for ours, theirs in zip(found, litert_outputs(model.build(), shapes), strict=True):
        assert isinstance(ours, np.ndarray), ours
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_every_value_rule_is_held_against_litert() -> None:
    assert {NAMES[case[0]] for case in CASES} == set(VALUES)


@pytest.mark.parametrize(
    ("case", "origin"),
    [
        ((Operator.ABS, [Input((2,))], [FLOAT], None), "the values of input 'operand0'"),
        ((Operator.ADD, [Input((2,)), floats(1)], [FLOAT], None), "the values of input 'operand0'"),
        (
            (Operator.FLOOR_DIV, [ints(1), ints(0)], [INT], None),
            "the result of FLOOR_DIV at subgraph 0 operator 0 (divides by zero)",
        ),
        (
            (Operator.GATHER, [TABLE, ints(5)], [INT], options("GatherOptions", axis=1)),
            "the result of GATHER at subgraph 0 operator 0 (an index is out of the 3 elements there are)",
        ),
        (
            (Operator.ADD, [ints(1), ints(0)], [INT], options("AddOptions", fusedActivationFunction=1)),
            "the result of ADD at subgraph 0 operator 0 (ADD with a fused activation)",
        ),
        ((Operator.SIN, [floats(1)], [FLOAT], None), "the result of SIN at subgraph 0 operator 0"),
    ],
)
def test_what_is_not_known_says_where_it_comes_from(case: Case, origin: str) -> None:
    code, operands, results, how = case
    model, shapes = one_open_operator(code, operands, results, how)
    assert evaluated(model, {place: shapes[f"operand{place}"] for place in model.main.inputs}) == [origin]


def test_a_quantised_number_is_not_taken_for_a_number(tmp_path: Path) -> None:
    model = ModelBuilder()
    x = model.main.tensor("x", (2,), Type.INT8, data=b"\1\2")
    y = model.main.tensor("y", None, Type.INT8, has_rank=False)
    model.main.op(Operator.ADD, [x, x], [y])
    model.main.outputs = [y]
    assert evaluated(model, {}) == ["the result of ADD at subgraph 0 operator 0"]


def test_a_value_beyond_the_budget_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    model = ModelBuilder()
    previous = model.main.constant("start", (1, 1))
    for number in range(2000):
        following = model.main.tensor(f"t{number}", None, INT, has_rank=False)
        model.main.op(Operator.ADD, [previous, previous], [following])
        previous = following
    model.main.outputs = [previous]
    (found,) = evaluated(model, {})
    assert isinstance(found, np.ndarray)  # a chain is followed however long it is
    monkeypatch.setattr(tflite_evaluate, "MAX_OPERATORS", 1000)
    assert evaluated(model, {}) == ["the result of ADD at subgraph 0 operator 1000"]


def test_the_names_of_operators_with_a_value_are_those_of_the_rules() -> None:
    assert set(VALUES) == VALUED
    assert set(NEEDS) <= VALUED
