"""Shape arithmetic of any kind: a Graph or one line, in bounded memory, whatever the file asks for."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opscope.core.errors import ModelError
from opscope.graph.graph import Graph
from opscope.readers.tflite import read_tflite
from opscope.readers.tflite.shapes import control
from support.draws import draws
from support.models.tflite_build import ModelBuilder, Operator, SubgraphBuilder, Type, options

INT = Type.INT32
MOST_BYTES = 100_000_000  # of memory while one small file is read
LARGE = 2**31 - 1

Options = Callable[[int], object]


def of(name: str, **fields: int) -> Options:
    """Options with a number from the draw in these fields."""
    return lambda number: options(name, **dict.fromkeys(fields, number))


def keeping(number: int) -> object:
    return options("ReducerOptions", keepDims=bool(number))


# operator: number of inputs, of outputs, options
OPERATORS: list[tuple[int, int, int, Options | None]] = [
    (Operator.SHAPE, 1, 1, None),
    (Operator.RANK, 1, 1, None),
    (Operator.RANGE, 3, 1, None),
    (Operator.FILL, 2, 1, None),
    (Operator.TILE, 2, 1, None),
    (Operator.BROADCAST_TO, 2, 1, None),
    (Operator.BROADCAST_ARGS, 2, 1, None),
    (Operator.RESHAPE, 2, 1, None),
    (Operator.SQUEEZE, 1, 1, None),
    (Operator.EXPAND_DIMS, 2, 1, None),
    (Operator.TRANSPOSE, 2, 1, None),
    (Operator.PAD, 2, 1, None),
    (Operator.SLICE, 3, 1, None),
    (Operator.STRIDED_SLICE, 4, 1, of("StridedSliceOptions", shrinkAxisMask=0)),
    (Operator.STRIDED_SLICE, 4, 1, of("StridedSliceOptions", ellipsisMask=0, newAxisMask=0)),
    (Operator.GATHER, 2, 1, of("GatherOptions", axis=0)),
    (Operator.GATHER, 2, 1, of("GatherOptions", batchDims=0)),
    (Operator.GATHER_ND, 2, 1, None),
    (Operator.CONCATENATION, 2, 1, of("ConcatenationOptions", axis=0)),
    (Operator.PACK, 3, 1, of("PackOptions", axis=0)),
    (Operator.UNPACK, 1, 2, of("UnpackOptions", axis=0)),
    (Operator.SPLIT, 2, 2, None),
    (Operator.SPLIT_V, 3, 2, None),
    (Operator.ADD, 2, 1, None),
    (Operator.MUL, 2, 1, None),
    (Operator.FLOOR_DIV, 2, 1, None),
    (Operator.DIV, 2, 1, None),
    (Operator.POW, 2, 1, None),
    (Operator.CAST, 1, 1, None),
    (Operator.REDUCE_PROD, 2, 1, keeping),
    (Operator.CUMSUM, 2, 1, None),
    (Operator.ONE_HOT, 4, 1, of("OneHotOptions", axis=0)),
    (Operator.TOPK_V2, 2, 2, None),
    (Operator.WHERE, 1, 1, None),
    (Operator.UNIQUE, 1, 2, None),
    (Operator.SCATTER_ND, 3, 1, None),
    (Operator.SEGMENT_SUM, 2, 1, None),
    (Operator.BATCH_MATMUL, 2, 1, None),
    (Operator.FULLY_CONNECTED, 2, 1, None),
    (Operator.CONV_2D, 2, 1, of("Conv2DOptions", strideW=0, strideH=0)),
    (Operator.SPACE_TO_BATCH_ND, 3, 1, None),
    (Operator.RESIZE_BILINEAR, 2, 1, None),
    (Operator.UNIDIRECTIONAL_SEQUENCE_LSTM, 9, 1, None),
    (Operator.IF, 2, 1, lambda number: options("IfOptions", thenSubgraphIndex=1, elseSubgraphIndex=2)),
    (Operator.WHILE, 1, 1, lambda number: options("WhileOptions", condSubgraphIndex=1, bodySubgraphIndex=2)),
]

numbers = st.sampled_from([0, 1, 2, 3, -1, -2, 7, 1000, 65536, LARGE, -LARGE - 1]) | st.integers(-4, 4)
constants = st.lists(numbers, max_size=4) | numbers
dtypes = st.sampled_from([INT, INT, INT, Type.INT64, Type.FLOAT32, Type.BOOL])
steps = st.tuples(st.sampled_from(OPERATORS), st.lists(st.integers(0, 60), min_size=9, max_size=9), numbers, dtypes)


def add_operators(subgraph: SubgraphBuilder, pool: list[int], chosen: list[tuple[object, ...]]) -> None:
    for place, ((code, inputs, outputs, how), wires, number, dtype) in enumerate(chosen):  # type: ignore[misc]
        operands = [pool[wire % len(pool)] for wire in wires[:inputs]]
        results = [subgraph.tensor(f"t{place}.{i}", None, dtype, has_rank=False) for i in range(outputs)]
        subgraph.op(code, operands, results, None if how is None else how(number))
        pool.extend(results)
    subgraph.outputs = pool[-1:]


def constant(subgraph: SubgraphBuilder, values: list[int] | int) -> int:
    data = np.array(values, np.int32)
    return subgraph.tensor("c", data.shape, INT, data=data.tobytes())


def read(folder: Path, model: ModelBuilder, **how: object) -> Graph | str:
    path = folder / "hostile.tflite"
    path.write_bytes(model.build())
    tracemalloc.start()
    try:
        found: Graph | str = read_tflite(path, **how)  # type: ignore[arg-type]
    except ModelError as error:
        found = str(error)
        assert found.startswith(f"{path}: ")
        assert "\n" not in found
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < MOST_BYTES
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder; loops are given up earlier than they are for users, as most of those drawn have no end."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(control, "MAX_TRIPS", 100)
        yield tmp_path_factory.mktemp("hostile")


@settings(max_examples=draws(3), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    values=st.lists(constants, min_size=3, max_size=6),
    chosen=st.lists(steps, min_size=1, max_size=12),
    inner=st.tuples(*(st.lists(steps, max_size=3) for _ in range(2))),
    shape=st.lists(st.integers(1, 5), max_size=5),
)
def test_any_arithmetic_is_a_graph_or_one_line(
    folder: Path,
    values: list[list[int] | int],
    chosen: list[tuple[object, ...]],
    inner: tuple[list[tuple[object, ...]], list[tuple[object, ...]]],
    shape: list[int],
) -> None:
    model = ModelBuilder()
    x = model.main.tensor("x", (1,) * len(shape), INT, signature=(-1,) * len(shape))
    model.main.inputs = [x]
    add_operators(model.main, [x, *(constant(model.main, value) for value in values)], chosen)
    for operators in inner:
        body = model.subgraph("body")
        body.inputs = [body.tensor("in", None, INT, has_rank=False)]
        add_operators(body, [body.inputs[0], constant(body, values[0])], operators)
    read(folder, model, shapes={"x": tuple(shape)})


def chain(*operators: tuple[int, list[int] | None], start: list[int]) -> ModelBuilder:
    """A constant, then operators that each take what came before and a constant."""
    model = ModelBuilder()
    current = constant(model.main, start)
    for place, (code, value) in enumerate(operators):
        operands = [current] if value is None else [current, constant(model.main, value)]
        current = model.main.tensor(f"t{place}", None, INT, has_rank=False)
        model.main.op(code, operands, [current])
    return model


def test_a_fill_of_ten_to_the_fifteen_has_a_shape_and_no_elements(folder: Path) -> None:
    model = ModelBuilder()
    wanted = constant(model.main, [100_000, 100_000, 100_000])
    filled, total = (model.main.tensor(name, None, INT, has_rank=False) for name in ("filled", "total"))
    model.main.op(Operator.FILL, [wanted, constant(model.main, 1)], [filled])
    model.main.op(Operator.FILL, [filled, constant(model.main, 1)], [total])
    graph = read(folder, model)
    assert isinstance(graph, Graph)
    found = {tensor.name: tensor for tensor in graph.tensors}
    assert found["filled"].shape == (100_000, 100_000, 100_000)
    assert found["total"].shape is None
    assert found["total"].unknown_because == (
        "decided at run time by FILL at subgraph 0 operator 1, from the result of FILL at subgraph 0 operator 0"
    )


def test_a_range_of_two_thousand_million_is_not_made(folder: Path) -> None:
    model = ModelBuilder()
    ends = [constant(model.main, value) for value in (0, LARGE, 1)]
    long, picked = (model.main.tensor(name, None, INT, has_rank=False) for name in ("long", "picked"))
    model.main.op(Operator.RANGE, ends, [long])
    model.main.op(Operator.FILL, [long, ends[0]], [picked])
    graph = read(folder, model)
    assert isinstance(graph, Graph)
    assert [tensor.shape for tensor in graph.tensors if tensor.name in ("long", "picked")] == [(LARGE,), None]


def test_elements_without_bound_are_refused(folder: Path) -> None:
    growing = chain((Operator.TILE, [LARGE]), (Operator.TILE, [LARGE]), start=[1, 2])
    found = read(folder, growing)
    assert isinstance(found, str)
    assert "subgraph 0 operator 1: TILE: an output of shape" in found


def test_many_large_values_exhaust_a_budget_and_not_the_memory(folder: Path) -> None:
    """Each doubles what came before until one value is as long as any may be, then hundreds of that length follow."""
    doubling = [(Operator.TILE, [2])] * 15
    model = chain(*doubling, *[(Operator.ADD, [1])] * 400, start=[1, 2])
    last = len(model.main.tensors) - 1
    model.main.op(Operator.FILL, [last, constant(model.main, 1)], [model.main.tensor("y", None, INT, has_rank=False)])
    found = read(folder, model)
    assert isinstance(found, Graph)
    (y,) = (tensor for tensor in found.tensors if tensor.name == "y")
    assert y.unknown_because.startswith(
        "decided at run time by FILL at subgraph 0 operator 415, from the result of ADD"
    )


def test_a_stated_shape_does_not_hide_a_large_value(folder: Path) -> None:
    """The file states one element where its operator makes two thousand million."""
    model = ModelBuilder()
    small = model.main.tensor("small", (1,), INT)
    model.main.op(Operator.TILE, [constant(model.main, [1]), constant(model.main, [LARGE])], [small])
    y = model.main.tensor("y", None, INT, has_rank=False)
    model.main.op(Operator.FILL, [small, constant(model.main, 1)], [y])
    graph = read(folder, model)
    assert isinstance(graph, Graph)
    assert [tensor.shape for tensor in graph.tensors if tensor.name == "y"] == [None]
