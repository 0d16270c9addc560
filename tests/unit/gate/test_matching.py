from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opscope.gate.comparison import ADDED, FUSED, LOCATION, NAME, REMOVED, SPLIT, STRUCTURE, Match
from opscope.gate.figures import OpFigure, Row
from opscope.gate.matching import match_ops
from support.recording.compare_build import op

NAMES = st.sampled_from(["a", "b", "c", "a + b", "b, c", "a, b, c", "d", "d", "", "(no op)", "+", "a +"])
OPS = st.lists(
    st.builds(
        lambda name, kind, place, ns: op(name, ns, kind=kind, location=place),
        NAMES,
        st.sampled_from(["X", "Y", ""]),
        st.sampled_from(["", "node 1", "a, b", "file.py:3"]),
        st.sampled_from([100, None]),
    ),
    max_size=8,
)


def matched(base: list[OpFigure], new: list[OpFigure], *, same_model: bool = False) -> list[tuple[str, ...]]:
    """`(how, base names…, "→", new names…)`"""
    return [
        (m.how, *(base[p].name for p in m.base), "→", *(new[p].name for p in m.new))
        for m in match_ops(base, new, same_model=same_model)
    ]


@given(OPS, OPS, st.booleans())
def test_every_op_is_in_exactly_one_group(base: list[OpFigure], new: list[OpFigure], same: bool) -> None:
    found = match_ops(base, new, same_model=same)
    assert sorted(p for match in found for p in match.base) == list(range(len(base)))
    assert sorted(p for match in found for p in match.new) == list(range(len(new)))
    for match in found:
        assert (match.how == ADDED) == (not match.base)
        assert (match.how == REMOVED) == (not match.new)


@given(OPS)
def test_a_run_matches_itself_op_by_op(ops: list[OpFigure]) -> None:
    assert match_ops(ops, ops, same_model=True) == [Match((n,), (n,), NAME) for n in range(len(ops))]


@given(
    st.lists(st.tuples(NAMES, st.sampled_from("XY")), max_size=8),
    st.lists(st.tuples(NAMES, st.sampled_from("XY")), max_size=8),
)
def test_by_name_and_structure_the_order_of_the_runs_does_not_matter(
    one: list[tuple[str, str]], other: list[tuple[str, str]]
) -> None:
    base = [op(name.replace("+", "").replace(",", ""), kind=kind) for name, kind in one]
    new = [op(name.replace("+", "").replace(",", ""), kind=kind) for name, kind in other]
    there = {(m.base, m.new) for m in match_ops(base, new, same_model=False)}
    back = {(m.new, m.base) for m in match_ops(new, base, same_model=False)}
    assert there == back


def test_names_come_first_and_duplicates_keep_their_order() -> None:
    base, new = [op("a", 1), op("a", 2), op("b")], [op("b"), op("a", 3), op("a", 4)]
    assert [(m.base, m.new) for m in match_ops(base, new, same_model=False)] == [
        ((2,), (0,)),
        ((0,), (1,)),
        ((1,), (2,)),
    ]


@pytest.mark.parametrize(
    "fused",
    [
        op("fused_0", kind="FusedConv", location="conv, bias, relu"),  # says what it was made from
        op("conv + bias + relu", kind="FusedConv"),  # is named after it
        op("conv", kind="FusedConv", location="conv, bias, relu"),  # keeps the name of the first
    ],
)
def test_a_fused_op_goes_with_all_that_it_was_made_from(fused: OpFigure) -> None:
    base = [op("in"), op("conv", kind="Conv"), op("bias", kind="Add"), op("relu", kind="Relu"), op("out")]
    found = matched(base, [op("in"), fused, op("out")])
    assert found[1] == (FUSED, "conv", "bias", "relu", "→", fused.name)
    assert [row[0] for row in found] == [NAME, FUSED, NAME]
    assert (SPLIT, fused.name, "→", "conv", "bias", "relu") in matched([op("in"), fused, op("out")], base)


def test_an_op_that_became_two_goes_with_both() -> None:
    kernels = [op("conv_0", kind="Kernel", location="conv"), op("conv_1", kind="Kernel", location="conv")]
    assert matched([op("conv", kind="Conv")], kernels) == [(SPLIT, "conv", "→", "conv_0", "conv_1")]
    assert matched(kernels, [op("conv", kind="Conv")]) == [(FUSED, "conv_0", "conv_1", "→", "conv")]


def test_an_op_that_only_sounds_fused_is_left_alone() -> None:
    base, new = [op("a"), op("b")], [op("a"), op("b"), op("a + b", kind="Add")]
    assert matched(base, new)[2] == (ADDED, "→", "a + b")


def test_a_renamed_op_is_found_by_the_one_op_it_was_made_from() -> None:
    assert matched([op("conv", kind="Conv")], [op("conv_nchwc", kind="Conv", location="conv")]) == [
        (LOCATION, "conv", "→", "conv_nchwc")
    ]


def test_a_place_in_the_file_counts_only_in_the_same_file() -> None:
    base, new = [op("a", kind="X", location="node 3"), op("q")], [op("q"), op("b", kind="X", location="node 3")]
    assert (LOCATION, "a", "→", "b") in matched(base, new, same_model=True)
    assert (LOCATION, "a", "→", "b") not in matched(base, new)
    source = [op("a", kind="X", location="net.py:12")], [op("b", kind="X", location="net.py:12")]
    assert matched(*source) == [(LOCATION, "a", "→", "b")]
    assert matched([op("a", kind="X", location="net.py:12")], [op("b", kind="Y", location="net.py:12")])[0][0] == ADDED


def test_renamed_layers_are_found_by_their_surroundings_between_ops_that_kept_their_names() -> None:
    kinds = ["MatMul", "Add", "Relu", "MatMul"]
    base = [op("in", kind="I"), *(op(f"old{n}", kind=k) for n, k in enumerate(kinds)), op("out", kind="O")]
    new = [
        op("in", kind="I"),
        *(op(f"new{n}", kind=k) for n, k in enumerate(kinds)),
        op("extra", kind="Tanh"),
        op("out", kind="O"),
    ]
    found = matched(base, new)
    assert [row for row in found if row[0] == STRUCTURE] == [(STRUCTURE, f"old{n}", "→", f"new{n}") for n in range(4)]
    assert (ADDED, "→", "extra") in found


def test_surroundings_do_not_reach_across_an_op_that_is_matched() -> None:
    base = [op("old", kind="Tanh"), op("anchor", kind="A")]
    new = [op("anchor", kind="A"), op("new", kind="Tanh")]
    assert sorted(row[0] for row in matched(base, new)) == [ADDED, NAME, REMOVED]


def test_what_a_baseline_has_only_the_sum_of_takes_what_is_left() -> None:
    others = replace(op("the rest", kind=""), row=Row.OTHERS)
    assert matched([op("a"), others], [op("a"), op("x"), op("y")])[1] == (STRUCTURE, "the rest", "→", "x", "y")


def test_an_op_that_is_called_like_work_of_no_op_is_an_op() -> None:
    nobody = replace(op("(no op)", kind=""), row=Row.NO_OP)
    base, new = [op("(no op)"), nobody], [op("(other ops)"), nobody]
    assert matched(base, new) == [(STRUCTURE, "(no op)", "→", "(other ops)"), (NAME, "(no op)", "→", "(no op)")]


def test_large_graphs_with_nothing_in_common_by_name_take_no_time_that_a_test_would_notice() -> None:
    base = [op(f"a{n}", kind="X") for n in range(30_000)]
    new = [op(f"b{n}", kind="X") for n in range(30_000)]
    assert all(match.how == STRUCTURE for match in match_ops(base, new, same_model=False))


def test_the_same_network_in_two_formats_is_matched_by_kinds() -> None:
    onnx = [op(name, kind=kind) for name, kind in (("c", "Conv"), ("p", "MaxPool"), ("g", "Gemm"))]
    tflite = [op(name, kind=kind) for name, kind in (("0", "CONV_2D"), ("1", "MAX_POOL_2D"), ("2", "FULLY_CONNECTED"))]
    kinds = ("conv", "pool", "matmul")
    base, new = ([replace(o, kind=k) for o, k in zip(ops, kinds, strict=True)] for ops in (onnx, tflite))
    assert matched(base, new) == [(STRUCTURE, a, "→", b) for a, b in (("c", "0"), ("p", "1"), ("g", "2"))]
    assert {how for how, *_ in matched(onnx, tflite)} == {ADDED, REMOVED}


@pytest.mark.parametrize("nothing", [None, 0])
def test_an_op_that_does_the_work_of_another_is_matched_with_both(nothing: int | None) -> None:
    apart = [op("conv", kind="Conv"), op("relu", kind="Relu")]
    fused = [op("conv", nothing, kind="Conv"), op("relu", kind="Relu", location="graph, conv")]
    assert matched(apart, fused) == [(FUSED, "conv", "relu", "→", "conv", "relu")]
    assert matched(fused, fused) == [(NAME, "conv", "→", "conv"), (NAME, "relu", "→", "relu")]
    alone = [op("conv", kind="Conv")]  # the other run knows the convolution only
    assert matched(alone, fused) == [(LOCATION, "conv", "→", "conv", "relu")]


def test_ops_folded_into_others_do_not_stand_between_neighbours() -> None:
    folded = [
        op("c", kind="conv", location="r"),
        op("r", None, kind="relu"),
        op("d", kind="conv", location="s"),
        op("s", None, kind="relu"),
        op("g", kind="matmul"),
    ]
    plain = [op("0", kind="conv"), op("1", kind="conv"), op("2", kind="matmul")]
    assert matched(folded, plain) == [
        (STRUCTURE, "c", "r", "→", "0"),
        (STRUCTURE, "d", "s", "→", "1"),
        (STRUCTURE, "g", "→", "2"),
    ]


def test_a_position_in_a_file_is_no_place_in_another_whatever_was_fused_into_the_op() -> None:
    base = [op("a", kind="Conv", location="node 3, relu"), op("s")]
    new = [op("b", kind="Conv", location="node 3, relu"), op("s"), op("t", kind="T")]
    assert ("location", "a", "→", "b") in matched(base, new, same_model=True)
    assert ("structure", "a", "→", "b") in matched(base, new)


def test_ops_of_a_run_without_any_time_go_with_the_same_ones_that_have_some() -> None:
    timed = [op("conv", 9, kind="Conv", location="relu"), op("relu", None, kind="Relu")]
    untimed = [op("conv", None, kind="Conv", location="relu"), op("relu", None, kind="Relu")]
    for base, new in ((timed, untimed), (untimed, timed), (untimed, untimed)):
        assert matched(base, new) == [("name", "conv", "→", "conv"), ("name", "relu", "→", "relu")]


def test_an_op_that_names_itself_as_its_origin_is_not_inside_itself() -> None:
    ops = [op("a", None, location="a"), op("b", None, location="b")]
    assert matched(ops, ops) == [("name", "a", "→", "a"), ("name", "b", "→", "b")]
