"""Shape arithmetic: values computed where a shape depends on them, loops followed, hostile models bounded."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence
from pathlib import Path
from time import process_time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import GraphProto, NodeProto, TensorProto, ValueInfoProto, helper
from onnx.reference import ReferenceEvaluator

from opscope.graph.graph import Graph, Role
from opscope.readers.onnx import read_onnx
from support.build import macs_of
from support.draws import draws
from support.models.onnx_models import BOOL, FLOAT, INT64, graph, model, save, shape_of, value, weights, whole

node = helper.make_node


def read(
    folder: Path,
    nodes: Sequence[NodeProto],
    inputs: Sequence[ValueInfoProto],
    constants: Sequence[TensorProto] = (),
    output: str = "y",
) -> Graph:
    return read_onnx(save(folder, model(graph(nodes, inputs, [value(output)], constants))))


def because(found: Graph, name: str) -> str:
    return next(tensor.unknown_because for tensor in found.tensors if tensor.name == name)


def scalar(name: str, number: float, element: int = INT64) -> TensorProto:
    return helper.make_tensor(name, element, [], [number])


def test_pads_computed_from_a_shape_as_exporters_write_them(tmp_path: Path) -> None:
    """ConstantOfShape, Concat, Reshape, Slice backwards, Transpose, Cast: how PyTorch exports a Pad."""
    nodes = [
        node("ConstantOfShape", ["four"], ["zeros"], value=helper.make_tensor("", INT64, [1], [0])),
        node("Concat", ["sides", "zeros"], ["flat"], axis=0),
        node("Reshape", ["flat", "pairs"], ["table"]),
        node("Slice", ["table", "last", "before", "axis", "back"], ["turned"]),
        node("Transpose", ["turned"], ["columns"], perm=[1, 0]),
        node("Reshape", ["columns", "all"], ["pads"]),
        node("Cast", ["pads"], ["whole"], to=INT64),
        node("Pad", ["x", "whole"], ["p"], mode="reflect"),
        node("Relu", ["p"], ["y"]),
    ]
    constants = [
        whole("four", [4]),
        whole("sides", [1, 2]),
        whole("pairs", [-1, 2]),
        whole("last", [-1]),
        whole("before", [-(2**63) + 1]),
        whole("axis", [0]),
        whole("back", [-1]),
        whole("all", [-1]),
    ]
    found = read(tmp_path, nodes, [value("x", [2, 3, 8])], constants)
    assert shape_of(found, "y") == (2, 3, 11)
    assert [op.type for op in found.ops] == ["Pad", "Relu"]  # the arithmetic is folded


def test_a_branch_on_a_shape_is_taken_and_the_other_one_is_gone(tmp_path: Path) -> None:
    then, other = (graph([node(kind, ["x"], ["r"])], [], [value("r")]) for kind in ("Relu", "Exp"))
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Gather", ["s", "zero"], ["n"]),
        node("Equal", ["n", "two"], ["is_two"]),
        node("If", ["is_two"], ["y"], name="choice", then_branch=then, else_branch=other),
    ]
    constants = [scalar("zero", 0), scalar("two", 2)]
    for extent, kind in ((2, "Relu"), (3, "Exp")):
        found = read(tmp_path, nodes, [value("x", [extent, 4])], constants)
        assert [op.type for op in found.ops] == ["If", kind]
        assert shape_of(found, "y") == (extent, 4)
        assert not found.notes


def growing_loop() -> list[NodeProto]:
    """Appends a row to a cache and multiplies the cache by weights, trip after trip."""
    nodes = [
        node("Identity", ["go"], ["on"]),
        node("Concat", ["cache", "row"], ["longer"], axis=0),
        node("MatMul", ["longer", "w"], ["product"]),
    ]
    inputs = [value("i", [], INT64), value("go", [], BOOL), value("cache")]
    body = graph(nodes, inputs, [value("on", [], BOOL), value("longer"), value("product")])
    return [node("Loop", ["trips", "", "x"], ["y", "products"], name="L", body=body)]


def test_a_loop_that_grows_a_tensor_is_followed_trip_by_trip(tmp_path: Path) -> None:
    constants = [scalar("trips", 3), weights("row", 1, 4), weights("w", 4, 5)]
    found = read(tmp_path, growing_loop(), [value("x", [2, 4])], constants)
    assert shape_of(found, "y") == (5, 4)
    assert macs_of(found) == (3 + 4 + 5) * 4 * 5
    assert "differ in shape" in because(found, "products")


def test_a_loop_that_grows_without_end_is_given_up(tmp_path: Path) -> None:
    constants = [scalar("trips", 1 << 40), weights("row", 1, 4), weights("w", 4, 5)]
    found = read(tmp_path, growing_loop(), [value("x", [2, 4])], constants)
    assert shape_of(found, "y") is None
    assert "trips of different shapes" in because(found, "y")
    assert [note.code for note in found.notes] == ["unknown-trips", "unknown-shape"]


def counting_loop() -> list[NodeProto]:
    """While n < limit: n += step. The trip count is not given."""
    nodes = [
        node("Add", ["n", "step"], ["more"]),
        node("Less", ["more", "limit"], ["on"]),
        node("MatMul", ["x", "w"], ["product"]),
    ]
    inputs = [value("i", [], INT64), value("go", [], BOOL), value("n", [], INT64)]
    body = graph(nodes, inputs, [value("on", [], BOOL), value("more", [], INT64), value("product")])
    return [
        node("Loop", ["", "", "start"], ["end", "products"], name="L", body=body),
        node("ConstantOfShape", ["shape"], ["z"]),
        node("Unsqueeze", ["end", "shape"], ["row"]),
        node("Expand", ["x", "row"], ["y"]),
    ]


def counting_constants(step: int, limit: int) -> list[TensorProto]:
    numbers = [scalar("start", 0), scalar("step", step), scalar("limit", limit), whole("shape", [0])]
    return [*numbers, weights("w", 3, 5)]


def test_a_loop_that_counts_is_run_by_value(tmp_path: Path) -> None:
    found = read(tmp_path, counting_loop(), [value("x", [1, 3])], counting_constants(3, 10))
    assert {op.trips for op in found.ops if op.scope == "L"} == {4}  # 3, 6, 9, 12
    assert macs_of(found) == 4 * 3 * 5
    assert shape_of(found, "products") == (4, 1, 5)
    assert because(found, "y").startswith("Expand at node 3 cannot broadcast 1×3 and 12")


def test_a_loop_that_never_ends_is_given_up(tmp_path: Path) -> None:
    found = read(tmp_path, counting_loop(), [value("x", [1, 3])], counting_constants(0, 10))
    assert {op.trips for op in found.ops if op.scope == "L"} == {None}
    assert "would take more than" in because(found, "products")


def test_a_value_at_the_end_of_a_counted_loop_is_computed_when_asked_for(tmp_path: Path) -> None:
    body = graph(
        [node("Identity", ["go"], ["on"]), node("Add", ["n", "two"], ["more"])],
        [value("i", [], INT64), value("go", [], BOOL), value("n", [1], INT64)],
        [value("on", [], BOOL), value("more", [1], INT64)],
    )
    nodes = [node("Loop", ["five", "", "one"], ["end"], body=body), node("Tile", ["x", "end"], ["y"])]
    constants = [scalar("five", 5), whole("one", [1]), whole("two", [2])]
    assert shape_of(read(tmp_path, nodes, [value("x", [4])], constants), "y") == (4 * 11,)


def test_a_slice_at_the_counter_of_a_loop_is_followed_by_value(tmp_path: Path) -> None:
    """Trip i multiplies the first i + 1 rows."""
    nodes = [
        node("Identity", ["go"], ["on"]),
        node("Add", ["i", "unit"], ["end"]),
        node("Unsqueeze", ["end", "first"], ["ends"]),
        node("Slice", ["x", "first", "ends", "first"], ["rows"]),
        node("MatMul", ["rows", "w"], ["product"]),
        node("ReduceSum", ["product"], ["sum"], keepdims=0),
    ]
    inputs = [value("i", [], INT64), value("go", [], BOOL)]
    body = graph(nodes, inputs, [value("on", [], BOOL), value("sum")])
    constants = [scalar("trips", 4), scalar("unit", 1), whole("first", [0]), weights("w", 3, 5)]
    found = read(tmp_path, [node("Loop", ["trips", ""], ["y"], body=body)], [value("x", [9, 3])], constants)
    assert macs_of(found) == (1 + 2 + 3 + 4) * 3 * 5
    assert shape_of(found, "y") == (4,)


def test_the_condition_behind_the_last_trip_is_not_asked_for(tmp_path: Path) -> None:
    nodes = [node("Greater", ["x", "zero"], ["on"]), node("Relu", ["x"], ["r"])]
    body = graph(nodes, [value("i", [], INT64), value("go", [], BOOL)], [value("on", [], BOOL), value("r")])
    loop = node("Loop", ["trips", ""], ["y"], body=body)
    for trips, expected in ((1, {1}), (2, {None})):
        constants = [scalar("trips", trips), helper.make_tensor("zero", FLOAT, [], [0.0])]
        found = read(tmp_path, [loop], [value("x", [])], constants)
        assert {op.trips for op in found.ops if op.scope} == expected


def test_a_sequence_is_known_item_by_item(tmp_path: Path) -> None:
    nodes = [
        node("SplitToSequence", ["x", "lengths"], ["parts"], axis=1),
        node("SequenceAt", ["parts", "second"], ["part"]),
        node("SequenceInsert", ["parts", "part"], ["more"]),
        node("ConcatFromSequence", ["more"], ["y"], axis=1),
    ]
    constants = [whole("lengths", [1, 3, 2]), scalar("second", 1)]
    found = read(tmp_path, nodes, [value("x", [2, 6])], constants)
    assert (shape_of(found, "part"), shape_of(found, "y")) == ((2, 3), (2, 9))


def test_weights_that_are_only_transposed_are_stored_transposed(tmp_path: Path) -> None:
    nodes = [node("Transpose", ["w"], ["t"]), node("MatMul", ["x", "t"], ["y"])]
    found = read(tmp_path, nodes, [value("x", [2, 3])], [weights("w", 5, 3)])
    assert [op.type for op in found.ops] == ["MatMul"]
    assert {t.name: t.bytes for t in found.tensors if t.role is Role.CONSTANT} == {"t": 60}


def test_a_product_of_constants_is_executed_and_counted(tmp_path: Path) -> None:
    nodes = [node("MatMul", ["a", "b"], ["c"]), node("Add", ["x", "c"], ["y"])]
    found = read(tmp_path, nodes, [value("x", [2, 4])], [weights("a", 2, 3), weights("b", 3, 4)])
    assert macs_of(found) == 2 * 3 * 4


def test_random_numbers_are_drawn_at_every_inference(tmp_path: Path) -> None:
    nodes = [node("RandomNormal", [], ["r"], shape=[4]), node("Add", ["x", "r"], ["y"])]
    assert [op.type for op in read(tmp_path, nodes, [value("x", [4])]).ops] == ["RandomNormal", "Add"]


def test_values_in_a_file_beside_the_model_are_read_when_needed(tmp_path: Path) -> None:
    (tmp_path / "data.bin").write_bytes(b"\0" * 8 + np.array([3, 4], np.int64).tobytes())
    target = TensorProto(name="s", dims=[2], data_type=INT64, data_location=TensorProto.EXTERNAL)
    for key, text in (("location", "data.bin"), ("offset", "8"), ("length", "16")):
        target.external_data.add(key=key, value=text)
    found = read(tmp_path, [node("Reshape", ["x", "s"], ["y"])], [value("x", [12])], [target])
    assert shape_of(found, "y") == (3, 4)
    target.external_data[0].value = "../data.bin"
    found = read(tmp_path, [node("Reshape", ["x", "s"], ["y"])], [value("x", [12])], [target])
    assert because(found, "y").endswith("Reshape at node 0: the elements of constant 's' are not in the file")


# -- hostile models


def hostile() -> dict[str, tuple[list[NodeProto], list[TensorProto]]]:
    huge = 10**15
    counted = [node("Range", ["a", "b", "c"], ["r"])]
    ends = [scalar("a", 0), scalar("b", huge), scalar("c", 1)]
    chain = [node("Add", ["one" if not n else f"t{n - 1}", "one"], [f"t{n}"]) for n in range(8_000)]
    doubled = [node("Concat", ["row" if not n else f"d{n - 1}"] * 2, [f"d{n}"], axis=0) for n in range(60)]
    return {
        "range": ([*counted, node("Expand", ["x", "r"], ["y"])], ends),
        "sum of a range": (
            [*counted, node("ReduceSum", ["r"], ["s"], keepdims=1), node("Expand", ["x", "s"], ["y"])],
            ends,
        ),
        "expand": ([node("Expand", ["x", "s"], ["e"]), node("Relu", ["e"], ["y"])], [whole("s", [huge, 1])]),
        "constant": (
            [
                node("ConstantOfShape", ["s"], ["k"]),
                node("NonZero", ["k"], ["i"]),
                node("Cast", ["i"], ["y"], to=FLOAT),
            ],
            [whole("s", [10**9, 10**9, 10**9])],
        ),
        "tile": (
            [node("Tile", ["row", "s"], ["k"]), node("NonZero", ["k"], ["i"]), node("Cast", ["i"], ["y"], to=FLOAT)],
            [whole("row", [1, 2]), whole("s", [1 << 40])],
        ),
        "doubling": ([*doubled, node("Expand", ["x", "d59"], ["y"])], [whole("row", [1, 2])]),
        "chain": ([*chain, node("Expand", ["x", "t7999"], ["y"])], [whole("one", [1])]),
        "one hot": (
            [
                node("OneHot", ["row", "n", "v"], ["h"]),
                node("ReduceSum", ["h"], ["s"]),
                node("Expand", ["x", "s"], ["y"]),
            ],
            [whole("row", [1, 2]), scalar("n", huge), whole("v", [0, 1])],
        ),
        "split": (
            [node("SplitToSequence", ["x2", "n"], ["p"]), node("SequenceAt", ["p", "n"], ["y"])],
            [weights("x2", 0, 4), scalar("n", 1)],
        ),
        "negative": ([node("Pad", ["x", "s"], ["y"])], [whole("s", [-huge, 0])]),
        "power": (
            [node("Pow", ["row", "row"], ["p"]), node("Expand", ["x", "p"], ["y"])],
            [whole("row", [1 << 40, 1 << 40])],
        ),
        "division": (
            [node("Div", ["row", "z"], ["p"]), node("Mod", ["p", "z"], ["m"]), node("Expand", ["x", "m"], ["y"])],
            [whole("row", [4, 4]), whole("z", [0, 0])],
        ),
    }


@pytest.mark.parametrize("name", hostile())
def test_hostile_arithmetic_is_bounded(tmp_path: Path, name: str) -> None:
    """Whatever a model asks for, it is read in bounded time and memory, and nothing unknown is given a size."""
    nodes, constants = hostile()[name]
    tracemalloc.start()
    begun = process_time()
    found = read(tmp_path, nodes, [value("x", [1])], constants)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert process_time() - begun < 30
    assert peak < 400 << 20
    assert all(tensor.bytes is not None or tensor.unknown_because for tensor in found.tensors)


def nested_loops(depth: int) -> GraphProto:
    """Each loop runs 2^20 times and ends by a condition that is computed, so that all are followed."""
    inner = [] if not depth else [node("Loop", ["trips", "", "n"], [f"deep{depth}"], body=nested_loops(depth - 1))]
    nodes = [*inner, node("Add", ["n", "one"], ["m"]), node("Less", ["m", "trips"], ["on"])]
    for item in nodes:
        item.input[:] = [f"n{depth}" if name == "n" else f"m{depth}" if name == "m" else name for name in item.input]
        item.output[:] = [f"{name}{depth}" if name in ("m", "on") else name for name in item.output]
    names = [f"i{depth}", f"go{depth}", f"n{depth}"]
    inputs = [value(name, [], BOOL if name.startswith("go") else INT64) for name in names]
    return graph(nodes, inputs, [value(f"on{depth}", [], BOOL), value(f"m{depth}", [], INT64)])


def test_loops_within_loops_are_bounded(tmp_path: Path) -> None:
    nodes = [node("Loop", ["trips", "", "one"], ["y"], body=nested_loops(3))]
    begun = process_time()
    found = read_onnx(
        save(tmp_path, model(graph(nodes, [], [value("y", [], INT64)], [scalar("trips", 1 << 20), scalar("one", 1)])))
    )
    assert process_time() - begun < 60
    assert None in {op.trips for op in found.ops}


# -- against onnx's own evaluator


OPERATORS = ("Add", "Sub", "Mul", "Div", "Max", "Min", "Concat", "Gather", "Slice", "Neg", "Where", "ReduceSum")
NON_ZERO = st.integers(-9, 9).filter(bool)  # integers divided by zero have no value


@st.composite
def arithmetic(draw: st.DrawFn) -> tuple[list[NodeProto], list[TensorProto]]:
    """A chain of operators on small integer vectors, each of which reads earlier ones."""
    constants = [whole(f"c{index}", draw(st.lists(NON_ZERO, min_size=1, max_size=4))) for index in range(3)]
    constants += [whole("at0", [0]), whole("at1", [1]), whole("end", [draw(st.integers(-3, 5))])]
    names = ["c0", "c1", "c2"]
    nodes = []
    for index in range(draw(st.integers(1, 8))):
        kind = draw(st.sampled_from(OPERATORS))
        first, second = draw(st.sampled_from(names)), draw(st.sampled_from(names))
        out = f"v{index}"
        if kind == "Concat":
            nodes.append(node(kind, [first, second], [out], axis=0))
        elif kind == "Gather":
            nodes.append(node(kind, [first, "at0"], [out]))
        elif kind == "Slice":
            nodes.append(node(kind, [first, draw(st.sampled_from(("at0", "at1"))), "end"], [out]))
        elif kind == "Div":
            nodes.append(node(kind, [first, draw(st.sampled_from(names[:3]))], [out]))
        elif kind == "Neg":
            nodes.append(node(kind, [first], [out]))
        elif kind == "Where":
            nodes += [node("Greater", [first, second], [f"{out}b"]), node(kind, [f"{out}b", first, second], [out])]
        elif kind == "ReduceSum":
            nodes.append(node(kind, [first], [out], keepdims=1))
        else:
            nodes.append(node(kind, [first, second], [out]))
        names.append(out)
    return nodes, constants


@settings(max_examples=draws(1.5), deadline=None)
@given(arithmetic())
def test_evaluated_integers_are_those_of_the_reference(case: tuple[list[NodeProto], list[TensorProto]]) -> None:
    from test_onnx_sweep import evaluated

    nodes, constants = case
    name = nodes[-1].output[0]
    content = model(graph(nodes, [], [value(name, None, INT64)], constants))
    try:
        (expected,) = ReferenceEvaluator(content).run([name], {})
    except (IndexError, TypeError, ValueError):  # vectors that do not broadcast, an index behind the end
        return
    frame = evaluated(content)
    assert frame.operands[name].shape == expected.shape
    assert frame.array(name).tolist() == expected.tolist()
