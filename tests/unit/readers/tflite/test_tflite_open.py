"""Models that leave shapes open inside: shape arithmetic, branches, loops and variables, as LiteRT runs them."""

from __future__ import annotations

import sys
from pathlib import Path
from subprocess import run

import numpy as np
import pytest

from opscope.graph.graph import Graph
from opscope.readers.tflite.shapes import control as tflite_control
from support.build import macs_of
from support.models.litert_run import litert_shapes
from support.models.tflite_build import ModelBuilder, Operator, SubgraphBuilder, Type, options

INT, BOOL = Type.INT32, Type.BOOL


def opened(subgraph: SubgraphBuilder, name: str, rank: int, dtype: int = Type.FLOAT32) -> int:
    """A tensor that the file stores as converters do: every extent 1, and open."""
    return subgraph.tensor(name, (1,) * rank, dtype, signature=(-1,) * rank)


def unknown(subgraph: SubgraphBuilder, name: str, dtype: int = Type.FLOAT32) -> int:
    return subgraph.tensor(name, None, dtype, has_rank=False)


def shapes_of(graph: Graph) -> dict[str, tuple[int, ...] | None]:
    return {tensor.name: tensor.shape for tensor in graph.tensors}


def framed() -> ModelBuilder:
    """Cut a wave into frames of 4 by shape arithmetic, then a dense layer on each: what feature extractors do."""
    model = ModelBuilder()
    main = model.main
    wave = main.input("wave", (1, 8), signature=(-1, 8))
    shape = main.tensor("shape", (2,), INT)
    main.op(Operator.SHAPE, [wave], [shape], options("ShapeOptions", outType=INT))
    length = main.tensor("length", (), INT)
    one = [main.constant(name, (value,)) for name, value in (("begin", 1), ("end", 2), ("step", 1))]
    main.op(Operator.STRIDED_SLICE, [shape, *one], [length], options("StridedSliceOptions", shrinkAxisMask=1))
    frames = main.tensor("frames", (), INT)
    main.op(Operator.FLOOR_DIV, [length, main.tensor("width", (), INT, data=b"\4\0\0\0")], [frames])
    wanted = main.tensor("wanted", (3,), INT)
    rest = [
        main.tensor(name, (), INT, data=value.to_bytes(4, "little")) for name, value in (("w", 4), ("b", 0xFFFFFFFF))
    ]
    main.op(Operator.PACK, [rest[1], frames, rest[0]], [wanted], options("PackOptions", valuesCount=3, axis=0))
    cut = opened(main, "cut", 3)
    main.op(Operator.RESHAPE, [wave, wanted], [cut])
    dense = opened(main, "dense", 3)
    weights = main.tensor("weights", (5, 4), data=bytes(80))
    how = options("FullyConnectedOptions", keepNumDims=True)
    main.op(Operator.FULLY_CONNECTED, [cut, weights, -1], [dense], how)
    main.outputs = [dense]
    return model


def test_inner_shapes_are_worked_out_by_value(tmp_path: Path) -> None:
    graph = framed().graph(tmp_path)
    assert shapes_of(graph)["cut"] == (1, 2, 4)
    assert macs_of(graph) == 2 * 4 * 5
    wider = framed().graph(tmp_path, shapes={"wave": (3, 20)})
    found = shapes_of(wider)
    assert (found["cut"], found["dense"]) == ((3, 5, 4), (3, 5, 5))
    assert macs_of(wider) == 3 * 5 * 4 * 5
    theirs = litert_shapes(framed().build(), {"wave": (3, 20)})
    assert {name: shape for name, shape in found.items() if theirs[name] != shape} == {}


def test_a_shape_that_the_data_decide_is_unknown_and_says_who_decides(tmp_path: Path) -> None:
    model = ModelBuilder()
    main = model.main
    x = main.input("scores", (6, 4))
    mask = main.tensor("mask", (6, 4), BOOL)
    main.op(Operator.GREATER, [x, main.tensor("limit", (1,), data=bytes(4))], [mask])
    places = main.tensor("places", (1, 2), Type.INT64, signature=(-1, 2))
    main.op(Operator.WHERE, [mask], [places])
    picked = main.tensor("picked", (1,), signature=(-1,))
    main.op(Operator.GATHER_ND, [x, places], [picked])
    fixed = main.tensor("fixed", (4,))  # the converter knew this one
    main.op(Operator.ABS, [picked], [fixed])
    graph = model.graph(tmp_path)
    reason = "decided at run time by WHERE at subgraph 0 operator 1, from the values of input 'scores'"
    found = {tensor.name: (tensor.shape, tensor.unknown_because) for tensor in graph.tensors}
    assert found["places"] == (None, reason)
    assert found["picked"] == (None, reason)
    assert found["fixed"] == ((4,), "")


def test_a_file_that_leaves_nothing_open_needs_no_rules_and_no_numpy(tmp_path: Path) -> None:
    """Batch open and inner shapes with constant axes: rules run, but no value does."""
    model = ModelBuilder()
    x = model.main.input("x", (1, 4, 3), signature=(-1, 4, 3))
    y = model.main.tensor("y", (1, 3), signature=(-1, 3))
    model.main.op(Operator.MEAN, [x, model.main.constant("axes", (1,))], [y], options("ReducerOptions"))
    fixed = ModelBuilder()
    x = fixed.main.input("x", (1, 4, 3))
    fixed.main.op("theirs", [x], [fixed.main.tensor("y", (1, 3))])
    (tmp_path / "open.tflite").write_bytes(model.build())
    (tmp_path / "fixed.tflite").write_bytes(fixed.build())
    text = (
        "import sys\nfrom pathlib import Path\nfrom opscope.readers.tflite import read_tflite\n"
        "read_tflite(Path('fixed.tflite'))\nprint('opscope.readers.tflite.shapes.rules' in sys.modules)\n"
        "read_tflite(Path('open.tflite'))\nprint('opscope.readers.tflite.shapes.rules' in sys.modules)\n"
        "print('numpy' in sys.modules)\n"
    )
    done = run([sys.executable, "-c", text], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True", "False"]


def branching(condition: bytes | None) -> ModelBuilder:
    """IF with a dense layer of 5 in one branch and of 7 in the other."""
    model = ModelBuilder()
    main = model.main
    x = main.input("x", (2, 3))
    chosen = (
        main.input("chosen", (1,), BOOL) if condition is None else main.tensor("chosen", (1,), BOOL, data=condition)
    )
    y = unknown(main, "y")
    main.op(Operator.IF, [chosen, x], [y], options("IfOptions", thenSubgraphIndex=1, elseSubgraphIndex=2))
    main.outputs = [y]
    for name, units in (("then", 5), ("else", 7)):
        inner = model.subgraph(name)
        data = inner.input(f"{name}/x", (2, 3))
        inner.outputs = [inner.tensor(f"{name}/y", (2, units))]
        weights = inner.tensor(f"{name}/w", (units, 3), data=bytes(12 * units))
        inner.op(Operator.FULLY_CONNECTED, [data, weights, -1], inner.outputs, options("FullyConnectedOptions"))
    return model


@pytest.mark.parametrize(("condition", "units"), [(b"\1", 5), (b"\0", 7)])
def test_a_known_condition_counts_the_branch_that_is_taken(tmp_path: Path, condition: bytes, units: int) -> None:
    graph = branching(condition).graph(tmp_path)
    assert shapes_of(graph)["y"] == (2, units)
    assert macs_of(graph) == 2 * 3 * units
    assert graph.notes == ()
    assert litert_shapes(branching(condition).build(), {})["y"] == (2, units)


def test_a_condition_of_the_data_leaves_both_branches(tmp_path: Path) -> None:
    graph = branching(None).graph(tmp_path)
    y = next(tensor for tensor in graph.tensors if tensor.name == "y")
    assert y.shape is None
    assert y.unknown_because == "decided at run time by IF at subgraph 0 operator 0, from the values of input 'chosen'"
    assert macs_of(graph) == 2 * 3 * (5 + 7)
    assert "upper bound" in graph.notes[0].text


def looping(*, count: int | None, grows: bool = False, step: int = 1) -> ModelBuilder:
    """WHILE i < count: a dense layer of x; with `grows`, x gets one row more each time."""
    model = ModelBuilder()
    main = model.main
    x = main.input("x", (2, 3))
    zero = main.tensor("zero", (1,), INT, data=bytes(4))
    limit = main.input("limit", (1,), INT) if count is None else main.constant("limit", (count,))
    results = [unknown(main, name, dtype) for name, dtype in (("i", INT), ("n", INT), ("y", Type.FLOAT32))]
    how = options("WhileOptions", condSubgraphIndex=1, bodySubgraphIndex=2)
    main.op(Operator.WHILE, [zero, limit, x], results, how)
    main.outputs = results
    rows = (-1, 3) if grows else None
    test = model.subgraph("test")
    inputs = [test.input("t/i", (1,), INT), test.input("t/n", (1,), INT), test.tensor("t/x", (2, 3), signature=rows)]
    test.inputs = inputs
    test.outputs = [test.tensor("t/go", (1,), BOOL)]
    test.op(Operator.LESS, inputs[:2], test.outputs)
    body = model.subgraph("body")
    i, n = body.input("b/i", (1,), INT), body.input("b/n", (1,), INT)
    data = body.tensor("b/x", (2, 3), signature=rows)
    body.inputs.append(data)
    following, dense = body.tensor("b/next", (1,), INT), body.tensor("b/dense", (2, 3), signature=rows)
    body.op(Operator.ADD, [i, body.constant("b/one", (step,))], [following], options("AddOptions"))
    weights = body.tensor("b/w", (3, 3), data=bytes(36))
    body.op(Operator.FULLY_CONNECTED, [data, weights, -1], [dense], options("FullyConnectedOptions"))
    if grows:
        longer = body.tensor("b/longer", (1, 3), signature=(-1, 3))
        row = body.tensor("b/row", (1, 3), data=bytes(12))
        body.op(Operator.CONCATENATION, [dense, row], [longer], options("ConcatenationOptions", axis=0))
        dense = longer
    body.outputs = [following, n, dense]
    return model


def test_trips_of_a_loop_are_counted_by_its_condition(tmp_path: Path) -> None:
    graph = looping(count=9, step=2).graph(tmp_path)
    assert [(op.name, op.trips) for op in graph.ops] == [("i", 1), ("t/go", 6), ("b/next", 5), ("b/dense", 5)]
    assert shapes_of(graph)["y"] == (2, 3)
    assert macs_of(graph) == 5 * 2 * 3 * 3
    assert graph.notes == ()


def nested(start: bytes | None) -> ModelBuilder:
    """WHILE x < 3: WHILE x < 3: x + 1."""
    model = ModelBuilder()
    test, inner, outer = model.subgraph("test"), model.subgraph("inner"), model.subgraph("outer")
    test.outputs = [test.tensor("go", (1,), BOOL)]
    test.op(Operator.LESS, [test.input("t", (1,), INT), test.constant("three", (3,))], test.outputs)
    inner.outputs = [inner.tensor("more", (1,), INT)]
    inner.op(
        Operator.ADD, [inner.input("i", (1,), INT), inner.constant("one", (1,))], inner.outputs, options("AddOptions")
    )
    for subgraph, body in ((outer, 2), (model.main, 3)):
        is_given = subgraph is outer or start is None
        x = subgraph.input("x", (1,), INT) if is_given else subgraph.tensor("x", (1,), INT, data=start)
        subgraph.outputs = [subgraph.tensor(f"y{body}", (1,), INT)]
        how = options("WhileOptions", condSubgraphIndex=1, bodySubgraphIndex=body)
        subgraph.op(Operator.WHILE, [x], subgraph.outputs, how)
    return model


@pytest.mark.parametrize(
    ("start", "trips"),
    [
        (bytes(4), [1, 2, 1, 4, 3]),  # the outer body runs once, the inner one three times within it
        (b"\7\0\0\0", [1, 1, 0, 0, 0]),
        (None, [1, None, None, None, None]),
    ],
)
def test_loops_within_loops_are_counted(tmp_path: Path, start: bytes | None, trips: list[int | None]) -> None:
    graph = nested(start).graph(tmp_path)
    assert [op.name for op in graph.ops] == ["y3", "go", "y2", "go", "more"]
    assert [op.trips for op in graph.ops] == trips


def test_a_loop_that_does_not_run_counts_nothing(tmp_path: Path) -> None:
    graph = looping(count=0).graph(tmp_path)
    assert [(op.name, op.trips) for op in graph.ops] == [("i", 1), ("t/go", 1), ("b/next", 0), ("b/dense", 0)]


def test_a_loop_whose_end_the_data_decide_is_counted_once_and_noted(tmp_path: Path) -> None:
    graph = looping(count=None).graph(tmp_path)
    assert [op.trips for op in graph.ops] == [1, None, None, None]
    assert shapes_of(graph)["y"] == (2, 3)  # no trip changes it
    assert "how often the loop runs is not in the file" in graph.notes[0].text


def test_a_shape_that_grows_in_a_loop_is_known_behind_it_and_not_within(tmp_path: Path) -> None:
    graph = looping(count=3, grows=True).graph(tmp_path)
    found = {tensor.name: tensor for tensor in graph.tensors}
    assert found["y"].shape == (5, 3)
    assert litert_shapes(looping(count=3, grows=True).build(), {})["y"] == (5, 3)
    assert found["b/dense"].shape is None
    assert found["b/dense"].unknown_because == "changes from trip to trip of WHILE at subgraph 0 operator 0"
    endless = {tensor.name: tensor for tensor in looping(count=None, grows=True).graph(tmp_path).tensors}
    assert endless["y"].shape is None
    assert endless["y"].unknown_because == "changes from trip to trip of WHILE at subgraph 0 operator 0"


@pytest.mark.parametrize("grows", [False, True])
@pytest.mark.parametrize("step", [0, 1])
def test_a_loop_without_end_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int, grows: bool
) -> None:
    monkeypatch.setattr(tflite_control, "MAX_TRIPS", 1 << 11)
    graph = looping(count=2**31 - 1, step=step, grows=grows).graph(tmp_path)
    assert [op.trips for op in graph.ops[:3]] == [1, None, None]


def remembering(*, also_at_run: bool) -> ModelBuilder:
    """A variable set when the model is loaded; its value is a shape."""
    model = ModelBuilder()
    main, start = model.main, model.subgraph("start")
    how = options("VarHandleOptions", container=b"", sharedName=b"wanted")

    def handle(subgraph: SubgraphBuilder, name: str) -> int:
        tensor = subgraph.tensor(name, (), Type.RESOURCE)
        subgraph.op(Operator.VAR_HANDLE, [], [tensor], how)
        return tensor

    start.op(Operator.ASSIGN_VARIABLE, [handle(start, "s"), start.constant("to", (3, 4))], [])
    x = main.input("x", (2, 6))
    main.op(Operator.CALL_ONCE, [], [], options("CallOnceOptions", initSubgraphIndex=1))
    wanted, read = unknown(main, "wanted", INT), handle(main, "h")
    main.op(Operator.READ_VARIABLE, [read], [wanted])
    y = opened(main, "y", 2)
    main.op(Operator.RESHAPE, [x, wanted], [y])
    if also_at_run:
        main.op(Operator.ASSIGN_VARIABLE, [read, main.constant("other", (4, 3))], [])
    main.outputs = [y]
    return model


def test_a_variable_has_what_was_assigned_to_it(tmp_path: Path) -> None:
    found = shapes_of(remembering(also_at_run=False).graph(tmp_path))
    assert (found["wanted"], found["y"]) == ((2,), (3, 4))
    assert litert_shapes(remembering(also_at_run=False).build(), {})["y"] == (3, 4)


def test_a_variable_that_inferences_change_has_a_shape_and_no_value(tmp_path: Path) -> None:
    graph = remembering(also_at_run=True).graph(tmp_path)
    y = next(tensor for tensor in graph.tensors if tensor.name == "y")
    assert shapes_of(graph)["wanted"] == (2,)
    assert y.unknown_because == (
        "decided at run time by RESHAPE at subgraph 0 operator 3, "
        "from a variable that READ_VARIABLE reads at subgraph 0 operator 2"
    )


def test_a_state_of_fixed_batch_follows_the_batch_and_is_noted(tmp_path: Path) -> None:
    model = ModelBuilder()
    x = model.main.input("x", (1, 3), signature=(-1, 3))
    weights, recurrent = (model.main.tensor(f"w{n}", (5, n), data=bytes(20 * n)) for n in (3, 5))
    bias = model.main.tensor("bias", (5,), data=bytes(20))
    state = model.main.tensor("state", (1, 5), is_variable=True)
    y = model.main.tensor("y", (1, 5), signature=(-1, 5))
    model.main.op(Operator.RNN, [x, weights, recurrent, bias, state], [y])
    graph = model.graph(tmp_path, batch=4)
    assert (shapes_of(graph)["state"], shapes_of(graph)["y"]) == ((4, 5), (4, 5))
    assert graph.notes[0].code == "fixed-batch"


def test_values_of_inputs_are_data_and_never_read(tmp_path: Path) -> None:
    """An input that stores bytes, as some converters leave them, is still what the user gives."""
    model = ModelBuilder()
    main = model.main
    x = main.input("x", (2, 6))
    wanted = main.tensor("wanted", (2,), INT, data=np.array([3, 4], np.int32).tobytes())
    main.inputs.append(wanted)
    y = opened(main, "y", 2)
    main.op(Operator.RESHAPE, [x, wanted], [y])
    assert shapes_of(model.graph(tmp_path))["y"] is None
