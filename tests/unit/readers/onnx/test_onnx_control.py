"""Control flow and the model's own functions."""

from __future__ import annotations

from pathlib import Path

import pytest
from onnx import AttributeProto, FunctionProto, GraphProto, helper

from opscope.core.errors import ModelError
from opscope.graph.graph import Graph
from opscope.readers.onnx import read_onnx
from support.models.onnx_models import BOOL, FLOAT, INT64, graph, model, save, shape_of, value, weights

node = helper.make_node


def lines(read: Graph) -> list[tuple[str, str, str, int | None]]:
    return [(op.type, op.location, op.scope, op.trips) for op in read.ops]


def loop_body(condition: str = "Identity") -> GraphProto:
    nodes = [node(condition, ["go"], ["on"]), node("Add", ["s", "w"], ["s1"]), node("Relu", ["s1"], ["s2"])]
    inputs = [value("i", [], INT64), value("go", [], BOOL), value("s", [2, 4])]
    return graph(nodes, inputs, [value("on", [], BOOL), value("s2", [2, 4])])


def loop(folder: Path, *, trips: int | None = 7, condition: str = "Identity") -> Graph:
    inputs = [value("x", [2, 4])] + ([value("m", [], INT64)] if trips is None else [])
    constants = [weights("w", 4)] + ([] if trips is None else [helper.make_tensor("m", INT64, [], [trips])])
    nodes = [node("Loop", ["m", "", "x"], ["y"], name="L", body=loop_body(condition)), node("Exp", ["y"], ["z"])]
    return read_onnx(save(folder, model(graph(nodes, inputs, [value("z")], constants))))


def test_a_loop_of_constant_length_multiplies_its_body(tmp_path: Path) -> None:
    read = loop(tmp_path)
    assert lines(read) == [
        ("Loop", "node 0", "", 1),
        ("Identity", "node 0 body node 0", "L", 7),
        ("Add", "node 0 body node 1", "L", 7),
        ("Relu", "node 0 body node 2", "L", 7),
        ("Exp", "node 1", "", 1),
    ]
    assert not read.notes


def test_a_loop_hands_on_the_shape_its_body_keeps(tmp_path: Path) -> None:
    assert shape_of(loop(tmp_path), "z") == (2, 4)


def test_a_loop_of_unknown_length_is_counted_once_and_noted(tmp_path: Path) -> None:
    read = loop(tmp_path, trips=None)
    assert {op.trips for op in read.ops if op.scope == "L"} == {None}
    assert [(note.code, note.op) for note in read.notes] == [("unknown-trips", "L")]


def test_a_loop_ends_when_its_body_says_so(tmp_path: Path) -> None:
    read = loop(tmp_path, trips=7, condition="Not")  # a body runs while the condition is true: "not" ends it at once
    assert {op.trips for op in read.ops if op.scope == "L"} == {1}
    assert not read.notes


def test_weights_that_a_loop_hands_on_are_the_constants_that_it_is_given(tmp_path: Path) -> None:
    nodes = [
        node("Identity", ["go"], ["on"]),
        node("Add", ["s", "v"], ["s2"]),
        node("Identity", ["v"], ["v1"]),
        node("Identity", ["v1"], ["v2"]),
        node("Neg", ["u"], ["u2"]),
    ]
    inputs = [value("i", [], INT64), value("go", [], BOOL), *(value(name, [2, 4]) for name in "svu")]
    body = graph(nodes, inputs, [value("on", [], BOOL), *(value(name, [2, 4]) for name in ("s2", "v2", "u2"))])
    constants = [weights("w", 2, 4), weights("t", 2, 4), helper.make_tensor("m", INT64, [], [3])]
    carrying = node("Loop", ["m", "", "x", "w", "t"], ["y", "", "z"], body=body)
    read = read_onnx(
        save(tmp_path, model(graph([carrying], [value("x", [2, 4])], [value("y"), value("z")], constants)))
    )
    operands = {op.kind: [read.tensors[t].name for t in op.inputs] for op in read.ops if op.scope}
    assert operands["add"] == ["s", "w"]
    assert operands["negate"] == ["u"]  # what a trip changes is no constant, whatever it begins with


def test_the_weights_that_a_scan_carries_are_constants(tmp_path: Path) -> None:
    nodes = [node("Add", ["s", "v"], ["s2"]), node("Add", ["s2", "e"], ["o"]), node("Identity", ["v"], ["v2"])]
    inputs = [value("s", [4]), value("v", [4]), value("e", [4])]
    body = graph(nodes, inputs, [value(name, [4]) for name in ("s2", "v2", "o")])
    scan = node("Scan", ["h", "w", "x"], ["last", "", "all"], body=body, num_scan_inputs=1)
    given = [value("h", [4]), value("x", [5, 4])]
    read = read_onnx(save(tmp_path, model(graph([scan], given, [value("last"), value("all")], [weights("w", 4)]))))
    first = next(op for op in read.ops if op.scope)
    assert [read.tensors[t].name for t in first.inputs] == ["s", "w"]


def test_a_body_reads_tensors_from_around_it(tmp_path: Path) -> None:
    read = loop(tmp_path)
    add = next(op for op in read.ops if op.type == "Add")
    assert read.tensors[add.inputs[1]].name == "w"


def test_both_branches_are_counted_and_noted_as_an_upper_bound(tmp_path: Path) -> None:
    then, other = (graph([node(kind, ["x"], ["r"])], [], [value("r")]) for kind in ("Relu", "Exp"))
    proto = node("If", ["c"], ["y"], name="choice", then_branch=then, else_branch=other)
    body = graph([proto], [value("x", [3]), value("c", [], BOOL)], [value("y")])
    read = read_onnx(save(tmp_path, model(body)))
    assert sorted(lines(read)[1:]) == [
        ("Exp", "node 0 else_branch node 0", "choice", 1),
        ("Relu", "node 0 then_branch node 0", "choice", 1),
    ]
    assert [tensor.shape for tensor in read.tensors if tensor.name == "r"] == [(3,), (3,)]
    assert [note.code for note in read.notes] == ["both-branches"]


def test_a_branch_that_cannot_run_with_these_shapes_is_not_taken(tmp_path: Path) -> None:
    """A network for two sample rates: which one it is stands in the data, but only one takes a row of this length."""
    then, other = (graph([node("MatMul", ["x", rate], ["r"])], [], [value("r")]) for rate in ("wide", "narrow"))
    proto = node("If", ["c"], ["y"], name="rate", then_branch=then, else_branch=other)
    constants = [weights("wide", 512, 4), weights("narrow", 256, 4)]
    body = graph([proto], [value("x", [1, "n"]), value("c", [], BOOL)], [value("y")], constants)
    path = save(tmp_path, model(body))
    for extent, branch in ((512, "then_branch"), (256, "else_branch")):
        read = read_onnx(path, shapes={"x": (1, extent)})
        assert [op.location for op in read.ops] == ["node 0", f"node 0 {branch} node 0"]
        assert shape_of(read, "y") == (1, 4)
        assert not read.notes
    with pytest.raises(ModelError, match=r"multiplies 1×100 by [0-9]+×4: the model cannot run with the shapes given"):
        read_onnx(path, shapes={"x": (1, 100)})


def test_a_scan_runs_once_per_slice(tmp_path: Path) -> None:
    inner = graph(
        [node("Add", ["s", "x"], ["s1"]), node("Identity", ["s1"], ["o"])],
        [value("s", [4]), value("x", [4])],
        [value("s1", [4]), value("o", [4])],
    )
    proto = node("Scan", ["a", "b"], ["c", "d"], name="S", body=inner, num_scan_inputs=1, scan_input_axes=[1])
    body = graph([proto], [value("a", [4]), value("b", [4, 9])], [value("c"), value("d")])
    read = read_onnx(save(tmp_path, model(body)))
    assert [op.trips for op in read.ops] == [1, 9, 9]


def test_a_body_is_inferred_also_where_the_outer_shapes_are_stated(tmp_path: Path) -> None:
    branch = graph([node("Relu", ["x"], ["t"]), node("Exp", ["t"], ["r"])], [], [value("r", [3])])
    proto = node("If", ["c"], ["y"], then_branch=branch, else_branch=branch)
    body = graph([proto], [value("x", [3]), value("c", [], BOOL)], [value("y", [3])])
    assert shape_of(read_onnx(save(tmp_path, model(body))), "t") == (3,)


def test_loops_within_loops_multiply(tmp_path: Path) -> None:
    inner = loop_body()
    outer = graph(
        [node("Identity", ["g0"], ["g1"]), node("Loop", ["m", "", "t"], ["t1"], name="inner", body=inner)],
        [value("j", [], INT64), value("g0", [], BOOL), value("t", [2, 4])],
        [value("g1", [], BOOL), value("t1", [2, 4])],
    )
    constants = [weights("w", 4), helper.make_tensor("m", INT64, [], [5])]
    body = graph(
        [node("Loop", ["m", "", "x"], ["y"], name="outer", body=outer)], [value("x", [2, 4])], [value("y")], constants
    )
    read = read_onnx(save(tmp_path, model(body)))
    assert {op.trips for op in read.ops if op.scope == "inner"} == {25}
    assert next(op.location for op in read.ops if op.type == "Relu") == "node 0 body node 1 body node 2"


def function(name: str, nodes: list[object], inputs: list[str], outputs: list[str]) -> FunctionProto:
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("mine", 1)]
    return helper.make_function("mine", name, inputs, outputs, nodes, imports, attributes=["slope"])


def with_functions(folder: Path, nodes: list[object], *functions: FunctionProto) -> Path:
    content = model(graph(nodes, [value("x", [2, 4])], [value("y")]), mine=1)
    content.functions.extend(functions)
    return save(folder, content)


def test_functions_are_inlined_with_their_attributes(tmp_path: Path) -> None:
    leaky = node("LeakyRelu", ["t"], ["b"])
    leaky.attribute.append(AttributeProto(name="alpha", type=AttributeProto.FLOAT, ref_attr_name="slope"))
    twice = function("Twice", [node("Exp", ["a"], ["t"]), leaky], ["a"], ["b"])
    calls = [
        node("Twice", ["x"], ["h"], domain="mine", name="first", slope=0.5),
        node("Twice", ["h"], ["y"], domain="mine", name="second"),
    ]
    read = read_onnx(with_functions(tmp_path, calls, twice))
    assert [(op.type, op.name, op.location) for op in read.ops] == [
        ("Exp", "first/Exp_0", "node 0 function Twice node 0"),
        ("LeakyRelu", "first/LeakyRelu_1", "node 0 function Twice node 1"),
        ("Exp", "second/Exp_0", "node 1 function Twice node 0"),
        ("LeakyRelu", "second/LeakyRelu_1", "node 1 function Twice node 1"),
    ]
    assert all(tensor.shape == (2, 4) for tensor in read.tensors)


def test_a_function_that_calls_itself_is_an_error(tmp_path: Path) -> None:
    again = function("Again", [node("Again", ["a"], ["b"], domain="mine")], ["a"], ["b"])
    with pytest.raises(ModelError, match="function 'Again' is nested deeper than 32 calls; does it call itself"):
        read_onnx(with_functions(tmp_path, [node("Again", ["x"], ["y"], domain="mine")], again))


def test_functions_that_multiply_without_end_are_refused_in_time(tmp_path: Path) -> None:
    functions = []
    for level in range(30):
        call = "Relu" if level == 29 else f"F{level + 1}"
        domain = "" if level == 29 else "mine"
        nodes = [node(call, ["a"], [f"t{number}"], domain=domain) for number in range(8)] + [
            node("Relu", ["t0"], ["b"])
        ]
        functions.append(function(f"F{level}", nodes, ["a"], ["b"]))
    with pytest.raises(ModelError, match="functions expand to more than 200,000 nodes"):
        read_onnx(with_functions(tmp_path, [node("F0", ["x"], ["y"], domain="mine")], *functions))


def test_a_body_inside_a_function_sees_the_functions_names(tmp_path: Path) -> None:
    branch = graph([node("Relu", ["t"], ["r"])], [], [value("r", None, FLOAT)])
    nodes = [node("Exp", ["a"], ["t"]), node("If", ["c"], ["b"], then_branch=branch, else_branch=branch)]
    pick = function("Pick", nodes, ["a", "c"], ["b"])
    content = model(
        graph(
            [node("Pick", ["x", "flag"], ["y"], domain="mine", name="p")],
            [value("x", [2, 4]), value("flag", [], BOOL)],
            [value("y")],
        ),
        mine=1,
    )
    content.functions.append(pick)
    read = read_onnx(save(tmp_path, content))
    relu = next(op for op in read.ops if op.type == "Relu")
    assert read.tensors[relu.inputs[0]].name.startswith("t@")
    assert read.tensors[relu.outputs[0]].shape == (2, 4)
