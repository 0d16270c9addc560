"""Nodes of a model and nodes that ran: small graphs typed by hand, and random ones that are fused at random."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opscope.plugins.ort.fusion import NOWHERE, Node, map_nodes
from support.draws import draws


def node(name: str, kind: str, inputs: str, outputs: str) -> Node:
    return Node(name, kind, tuple(inputs.split()), tuple(outputs.split()))


def fates(model: list[Node], executed: list[Node], constants: tuple[str, ...] = ()) -> dict[str, str]:
    """Node of the model → the executed node that does its work, or why none does."""
    mapped = map_nodes(model, executed, set(constants))
    return {
        one.name: executed[fate.ran].name if fate.ran != NOWHERE else fate.reason
        for one, fate in zip(model, mapped.fates, strict=True)
    }


def leaders(model: list[Node], executed: list[Node]) -> dict[str, str]:
    mapped = map_nodes(model, executed, set())
    return {
        one.name: model[leader].name if leader != NOWHERE else "inserted"
        for one, leader in zip(executed, mapped.leaders, strict=True)
    }


CONV_RELU = [node("conv", "Conv", "x w", "a"), node("relu", "Relu", "a", "b"), node("pool", "MaxPool", "b", "y")]


def test_a_node_that_kept_its_name_and_took_the_next_ones_tensor_covers_both() -> None:
    executed = [node("conv", "FusedConv", "x w", "b"), node("pool", "MaxPool", "b", "y")]
    assert fates(CONV_RELU, executed) == {"conv": "conv", "relu": "conv", "pool": "pool"}


def test_a_node_named_after_the_tensor_it_wrote_is_shown_as_the_one_of_its_type() -> None:
    executed = [
        node("b_nchwc", "Conv", "x reorder", "reorder_token_0"),
        node("y_nchwc", "MaxPool", "reorder_token_0", "r1"),
        node("ReorderOutput", "ReorderOutput", "r1", "y"),
    ]
    assert fates(CONV_RELU, executed) == {"conv": "b_nchwc", "relu": "b_nchwc", "pool": "y_nchwc"}
    assert leaders(CONV_RELU, executed) == {"b_nchwc": "conv", "y_nchwc": "pool", "ReorderOutput": "inserted"}


def test_moves_around_a_fused_node_are_inserted_and_what_it_replaced_is_its_own() -> None:
    model = [node("mm", "MatMul", "x w", "a"), node("add", "Add", "bias a", "b"), node("act", "Relu", "b", "y")]
    executed = [
        node("gemm_input_reshape", "Reshape", "x s", "r"),
        node("mm/MatMulAddFusion", "Gemm", "r w bias", "g"),
        node("gemm_output_reshape", "Reshape", "g s2", "b"),
        node("act", "Relu", "b", "y"),
    ]
    assert fates(model, executed) == {"mm": "mm/MatMulAddFusion", "add": "mm/MatMulAddFusion", "act": "act"}
    assert leaders(model, executed)["gemm_output_reshape"] == "inserted"


def test_a_quantisation_behind_a_node_is_its_own_and_one_before_it_too() -> None:
    model = [
        node("dq0", "DequantizeLinear", "x sx zx", "a"),
        node("dqw", "DequantizeLinear", "w sw zw", "wf"),
        node("conv", "Conv", "a wf", "c"),
        node("relu", "Relu", "c", "r"),
        node("q1", "QuantizeLinear", "r s1 z1", "q"),
        node("dq1", "DequantizeLinear", "q s1 z1", "d"),
        node("conv2", "Conv", "d wf", "y"),
    ]
    executed = [node("conv_token_25", "QLinearConv", "x w", "conv"), node("conv2", "QLinearConv", "conv w", "y")]
    assert fates(model, executed) == {
        "dq0": "conv_token_25",
        "dqw": "conv_token_25",
        "conv": "conv_token_25",
        "relu": "conv_token_25",
        "q1": "conv_token_25",
        "dq1": "conv2",
        "conv2": "conv2",
    }


def test_a_pattern_that_became_one_node_is_shown_as_its_last_node() -> None:
    names = ["div", "erf", "add", "mul", "mul1"]
    model = [
        node("div", "Div", "x k", "a"),
        node("erf", "Erf", "a", "b"),
        node("add", "Add", "b one", "c"),
        node("mul", "Mul", "x c", "d"),
        node("mul1", "Mul", "d half", "y"),
    ]
    executed = [node("Gelu", "Gelu", "x", "y")]
    assert fates(model, executed) == dict.fromkeys(names, "Gelu")
    assert leaders(model, executed) == {"Gelu": "mul1"}


def test_what_does_not_run_says_why() -> None:
    model = [
        node("folded", "Add", "k k", "kk"),
        node("nothing", "Identity", "x", "i"),
        node("one", "Exp", "i", "e"),
        node("twin", "Exp", "i", "e2"),
        node("use", "Mul", "e e2", "m"),
        node("last", "MatMul", "m kk", "y"),
        node("unused", "Log", "m", "dead"),
    ]
    executed = [node("one", "Exp", "x", "e"), node("use", "Mul", "e e", "m"), node("last", "MatMul", "m kk", "y")]
    found = fates(model, executed, ("kk",))
    assert found["folded"] == "computed once, before the first inference: its result is a constant"
    assert found["nothing"] == "does nothing at run time"
    assert found["twin"] == "the same as one, which runs once for both"
    assert found["unused"] == "its result is not used"


def test_a_node_that_changed_both_names_is_known_by_who_reads_it() -> None:
    model = [node("call/relu", "Relu", "x", "t"), node("call/exp", "Exp", "t", "y")]
    executed = [node("_inl_relu", "Relu", "x", "_inl_t"), node("_inl_exp", "Exp", "_inl_t", "y")]
    assert fates(model, executed) == {"call/relu": "_inl_relu", "call/exp": "_inl_exp"}


def test_a_tensor_that_is_kept_in_another_precision_is_known_by_its_name() -> None:
    model = [
        node("add", "Add", "x b", "a"),
        node("norm", "LayerNormalization", "a w", "n"),
        node("mm", "MatMul", "n k", "y"),
    ]
    executed = [
        node("SkipLayerNormalization", "SkipLayerNormalization", "x b w", "InsertedPrecisionFreeCast_n"),
        node("InsertedPrecisionFreeCast_n", "Cast", "InsertedPrecisionFreeCast_n", "n"),
        node("mm", "MatMul", "n k", "y"),
    ]
    assert fates(model, executed) == {"add": "SkipLayerNormalization", "norm": "SkipLayerNormalization", "mm": "mm"}
    assert leaders(model, executed)["InsertedPrecisionFreeCast_n"] == "inserted"


def test_what_a_node_was_taken_apart_into_is_part_of_the_last_of_it() -> None:
    model = [node("mm", "MatMul", "x w", "a"), node("soft", "Softmax", "a", "y")]
    executed = [
        model[0],
        node("", "ReduceMax", "a", "m"),
        node("", "Sub", "a m", "s"),
        node("", "Exp", "s", "e"),
        node("", "ReduceSum", "e", "r"),
        node("", "Div", "e r", "y"),
    ]
    mapped = map_nodes(model, executed, set())
    assert mapped.parts == (NOWHERE, 5, 5, 5, 5, NOWHERE)
    assert mapped.leaders == (0, NOWHERE, NOWHERE, NOWHERE, NOWHERE, 1)


def test_a_second_copy_is_named_after_the_first() -> None:
    model = [node("dq", "DequantizeLinear", "x s z", "a"), node("one", "Exp", "a", "b"), node("two", "Log", "a", "y")]
    copy = node("dq/duplicated", "DequantizeLinear", "x s z", "a2")
    mapped = map_nodes(model, [model[0], copy, model[1], node("two", "Log", "a2", "y")], set())
    assert mapped.reasons[1] == "a copy of dq: the runtime's own"


@pytest.mark.parametrize("kind", ["Transpose", "Reshape", "Cast"])
def test_a_move_that_is_in_the_model_is_not_inserted(kind: str) -> None:
    model = [node("conv", "Conv", "x w", "a"), node("move", kind, "a", "y")]
    assert leaders(model, [*model]) == {"conv": "conv", "move": "move"}


@st.composite
def fused_chains(draw: st.DrawFn) -> tuple[list[Node], list[Node], list[int]]:
    """A chain with branches back to earlier tensors, and what a runtime makes of it: runs of nodes become one.

    The last list has the executed node that each node of the model went into.
    """
    count = draw(st.integers(1, 30))
    model = []
    for place in range(count):
        other = draw(st.integers(0, place))
        kind = draw(st.sampled_from(("Conv", "Relu", "Add", "Mul", "Sigmoid", "Transpose")))
        model.append(Node(f"n{place}", kind, (f"t{place}", f"t{other}"), (f"t{place + 1}",)))
    cuts = draw(st.lists(st.booleans(), min_size=count - 1, max_size=count - 1))
    group_of = [sum(cuts[:place]) for place in range(count)]
    executed = []
    for group in range(group_of[-1] + 1):
        places = [place for place in range(count) if group_of[place] == group]
        first, last = model[places[0]], model[places[-1]]
        style = draw(st.sampled_from(("fused {}", "{}", "{}_token_3", "Pattern_{}")))
        kind = first.type if len(places) == 1 else "Fused" + first.type
        executed.append(Node(style.format(first.name), kind, first.inputs, last.outputs))
    return model, executed, group_of


@given(fused_chains())
def test_every_node_has_one_fate_and_chains_go_where_they_were_fused(
    example: tuple[list[Node], list[Node], list[int]],
) -> None:
    model, executed, group_of = example
    mapped = map_nodes(model, executed, set())
    assert [fate.ran for fate in mapped.fates] == group_of
    for ran, places in mapped.covered().items():
        assert mapped.leaders[ran] in places
    assert NOWHERE not in mapped.leaders


names = st.text("abc_", max_size=3)
any_nodes = st.lists(
    st.builds(
        Node,
        names,
        st.sampled_from(("Conv", "Relu", "QuantizeLinear", "Reshape", "Identity", "Gemm")),
        st.lists(names, max_size=3).map(tuple),
        st.lists(names, min_size=1, max_size=2).map(tuple),
    ),
    max_size=12,
)


@given(any_nodes, any_nodes, st.sets(names))
@settings(max_examples=draws(3))
def test_any_two_graphs_are_mapped_whole(model: list[Node], executed: list[Node], constants: set[str]) -> None:
    """Names that collide, loops, tensors written twice: nothing is lost, nothing is counted twice."""
    mapped = map_nodes(model, executed, constants)
    assert len(mapped.fates) == len(model)
    assert len(mapped.leaders) == len(mapped.reasons) == len(executed)
    assert all((fate.ran == NOWHERE) == bool(fate.reason) for fate in mapped.fates)
    shown = [leader for leader in mapped.leaders if leader != NOWHERE]
    assert len(shown) == len(set(shown))
    for ran, leader in enumerate(mapped.leaders):
        assert (leader == NOWHERE and mapped.parts[ran] == NOWHERE) == bool(mapped.reasons[ran])
        assert mapped.parts[ran] == NOWHERE or mapped.leaders[mapped.parts[ran]] != NOWHERE
        assert leader == NOWHERE or mapped.fates[leader].ran == ran
    counted = sum(len(places) for places in mapped.covered().values())
    assert counted + sum(fate.ran == NOWHERE for fate in mapped.fates) == len(model)
