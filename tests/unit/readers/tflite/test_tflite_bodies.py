"""Control flow: bodies stand after the operator that runs them, with scope and trips."""

from __future__ import annotations

from pathlib import Path

import pytest

from opscope.core.errors import ModelError
from opscope.graph.graph import Role
from opscope.readers.tflite import expand as tflite_expand
from support.models.tflite_build import ModelBuilder, Operator, SubgraphBuilder, options


def body(model: ModelBuilder, name: str, code: int = Operator.RELU) -> SubgraphBuilder:
    """A subgraph of one operator."""
    subgraph = model.subgraph(name)
    x = subgraph.input(f"{name}/x", (1, 4))
    subgraph.outputs = [subgraph.tensor(f"{name}/y", (1, 4))]
    subgraph.op(code, [x], subgraph.outputs)
    return subgraph


def running(code: int, how: object = None, how_2: object = None, *, bodies: int = 1) -> ModelBuilder:
    """A main subgraph of one operator that runs subgraphs 1 to `bodies`."""
    model = ModelBuilder()
    x = model.main.input("x", (1, 4))
    y = model.main.tensor("y", (1, 4))
    model.main.op(code, [x], [y], how, how_2)
    model.main.outputs = [y]
    for number in range(1, bodies + 1):
        body(model, f"body{number}")
    return model


def test_both_branches_of_an_if_are_counted_and_said_to_be_an_upper_bound(tmp_path: Path) -> None:
    how = options("IfOptions", thenSubgraphIndex=1, elseSubgraphIndex=2)
    graph = running(Operator.IF, how, bodies=2).graph(tmp_path)
    assert [(op.kind, op.name, op.scope, op.trips) for op in graph.ops] == [
        ("if", "y", "", 1),
        ("relu", "body1/y", "y", 1),
        ("relu", "body2/y", "y", 1),
    ]
    assert [op.location for op in graph.ops[1:]] == ["subgraph 1 operator 0", "subgraph 2 operator 0"]
    assert "upper bound" in graph.notes[0].text
    assert [t.role for t in graph.tensors if t.name == "body1/x"] == [Role.ACTIVATION]


@pytest.mark.parametrize(
    ("code", "how", "how_2"),
    [
        (Operator.WHILE, options("WhileOptions", condSubgraphIndex=1, bodySubgraphIndex=2), None),
        (Operator.STABLEHLO_WHILE, None, options("StablehloWhileOptions", condSubgraphIndex=1, bodySubgraphIndex=2)),
    ],
)
def test_a_loop_runs_an_unknown_number_of_times(tmp_path: Path, code: int, how: object, how_2: object) -> None:
    graph = running(code, how, how_2, bodies=2).graph(tmp_path)
    assert [(op.kind, op.trips) for op in graph.ops] == [("loop", 1), ("relu", None), ("relu", None)]
    assert "how often the loop runs is not in the file" in graph.notes[0].text


def test_weights_that_a_loop_hands_on_are_the_constants_that_it_is_given(tmp_path: Path) -> None:
    model = ModelBuilder()
    x, w = model.main.input("x", (1, 4)), model.main.constant("w", (1, 2, 3, 4))
    made = [model.main.tensor(name, (1, 4)) for name in ("y", "again")]
    model.main.op(Operator.WHILE, [x, w], made, options("WhileOptions", condSubgraphIndex=1, bodySubgraphIndex=2))
    model.main.outputs = made[:1]
    for name in ("condition", "body"):
        subgraph = model.subgraph(name)
        state, weights = subgraph.input(f"{name}/x", (1, 4)), subgraph.input(f"{name}/w", (1, 4))
        subgraph.outputs = [subgraph.tensor(f"{name}/y", (1, 4)), *([weights] if name == "body" else [])]
        subgraph.op(Operator.ADD, [state, weights], subgraph.outputs[:1])
    graph = model.graph(tmp_path)
    adds = [op for op in graph.ops if op.kind == "add"]
    assert [graph.tensors[op.inputs[1]].name for op in adds] == ["w", "w"]
    assert [graph.tensors[op.inputs[1]].role for op in adds] == [Role.CONSTANT, Role.CONSTANT]
    assert [graph.tensors[op.inputs[0]].name for op in adds] == ["condition/x", "body/x"]


def test_a_call_runs_its_body_once(tmp_path: Path) -> None:
    graph = running(Operator.CALL, options("CallOptions", subgraph=1)).graph(tmp_path)
    assert [(op.kind, op.trips) for op in graph.ops] == [("call", 1), ("relu", 1)]
    assert graph.notes == ()


def test_initialisation_is_not_part_of_an_inference(tmp_path: Path) -> None:
    graph = running(Operator.CALL_ONCE, options("CallOnceOptions", initSubgraphIndex=1)).graph(tmp_path)
    assert [(op.kind, op.trips) for op in graph.ops] == [("call", 1), ("relu", 0)]
    assert "when the model is loaded" in graph.notes[0].text


def test_a_composite_is_counted_by_its_decomposition(tmp_path: Path) -> None:
    how = options("StableHLOCompositeOptions", name=b"odml.rms_norm", decompositionSubgraphIndex=1)
    graph = running(Operator.STABLEHLO_COMPOSITE, None, how).graph(tmp_path)
    assert [(op.kind, op.trips) for op in graph.ops] == [("call", 1), ("relu", 1)]
    assert "decomposition" in graph.notes[0].text


def test_every_branch_of_a_case_is_counted(tmp_path: Path) -> None:
    how = options("StablehloCaseOptions", branchSubgraphIndices=[1, 2, 3])
    graph = running(Operator.STABLEHLO_CASE, None, how, bodies=3).graph(tmp_path)
    assert [op.name for op in graph.ops] == ["y", "body1/y", "body2/y", "body3/y"]


def test_the_scalar_function_of_a_reduction_is_not_counted_again(tmp_path: Path) -> None:
    how = options("StablehloReduceOptions", dimensions=[1], bodySubgraphIndex=1)
    graph = running(Operator.STABLEHLO_REDUCE, None, how).graph(tmp_path)
    assert len(graph.ops) == 1
    assert graph.notes == ()


def test_a_body_run_from_two_places_is_counted_twice_with_tensors_of_its_own(tmp_path: Path) -> None:
    model = running(Operator.CALL, options("CallOptions", subgraph=1))
    weights = model.subgraphs[1].tensor("w", (4,), data=bytes(16))
    model.subgraphs[1].op(Operator.MUL, [1, weights], [model.subgraphs[1].tensor("z", (1, 4))])
    model.main.op(Operator.CALL, [1], [model.main.tensor("again", (1, 4))], options("CallOptions", subgraph=1))
    graph = model.graph(tmp_path)
    assert [op.scope for op in graph.ops] == ["", "y", "y", "", "again", "again"]
    assert graph.ops[1].outputs != graph.ops[4].outputs
    assert graph.ops[2].inputs[1] == graph.ops[5].inputs[1]  # the constant is one


def test_a_body_of_a_loop_within_a_call_keeps_the_unknown(tmp_path: Path) -> None:
    model = running(Operator.WHILE, options("WhileOptions", condSubgraphIndex=1, bodySubgraphIndex=2), bodies=2)
    inner = model.subgraphs[2]
    inner.op(Operator.CALL, [0], [inner.tensor("called", (1, 4))], options("CallOptions", subgraph=3))
    body(model, "deep")
    graph = model.graph(tmp_path)
    assert [(op.name, op.scope, op.trips) for op in graph.ops[-2:]] == [
        ("called", "y", None),
        ("deep/y", "called", None),
    ]


def test_other_entry_points_are_noted_and_not_counted(tmp_path: Path) -> None:
    model = running(Operator.RELU)
    model.signature("serving_default", 0, {})
    model.signature("encode", 1, {})
    graph = model.graph(tmp_path)
    assert len(graph.ops) == 1
    assert graph.notes[0].text == "not counted, as subgraph 0 does not run them: subgraph 1 (encode)"


def test_recursion_is_an_error_that_names_the_operator(tmp_path: Path) -> None:
    model = running(Operator.CALL, options("CallOptions", subgraph=1))
    inner = model.subgraphs[1]
    inner.op(Operator.CALL, [0], [inner.tensor("back", (1, 4))], options("CallOptions", subgraph=0))
    with pytest.raises(ModelError, match=r"subgraph 1 operator 1: CALL runs subgraph 0 from within subgraph 0"):
        model.graph(tmp_path)


def test_a_body_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    model = running(Operator.CALL, options("CallOptions", subgraph=7))
    with pytest.raises(ModelError, match=r"subgraph 0 operator 0: CALL runs subgraph 7; the file has 2"):
        model.graph(tmp_path)


def chain(length: int, calls: int) -> ModelBuilder:
    """Subgraphs that each call the next one `calls` times."""
    model = ModelBuilder()
    for number in range(length):
        subgraph = model.main if number == 0 else model.subgraph()
        x = subgraph.input("x", (1,))
        for _ in range(calls if number < length - 1 else 0):
            y = subgraph.tensor("y", (1,))
            subgraph.op(Operator.CALL, [x], [y], options("CallOptions", subgraph=number + 1))
    return model


def test_nesting_without_end_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="runs a body within 32 others; deeper nesting is not followed"):
        chain(40, 1).graph(tmp_path)


def test_a_small_file_cannot_ask_for_a_graph_without_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tflite_expand, "MAX_OPS", 1000)
    with pytest.raises(ModelError, match="more than 1000 operators to count"):
        chain(30, 2).graph(tmp_path)
    monkeypatch.setattr(tflite_expand, "MAX_TENSORS", 1000)
    with pytest.raises(ModelError, match="more than 1000 tensors to count"):
        chain(30, 2).graph(tmp_path)


def test_very_many_notes_are_cut(tmp_path: Path) -> None:
    model = ModelBuilder()
    x = model.main.input("x", (1,))
    body(model, "body")
    for number in range(120):
        y = model.main.tensor(f"y{number}", (1,))
        model.main.op(Operator.CALL_ONCE, [x], [y], options("CallOnceOptions", initSubgraphIndex=1))
    assert model.graph(tmp_path).notes[-1].text == "20 more notes are left out"
