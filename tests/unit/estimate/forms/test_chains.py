"""Chains of elementwise ops run as one, and changes between channels first and last move nothing."""

from __future__ import annotations

import pytest

from opscope.estimate.canonical import canonicalise
from opscope.estimate.forms.chains import free_joins, fuse_chains, in_passing, rename_layouts, rescaled_joins
from opscope.graph.graph import DType, Graph, Role
from opscope.graph.kinds import Family
from opscope.graph.work_families import WorkFamily, work_family
from opscope.machine.target import Runtime
from support.build import Sketch, engine, target


def gelu(draw: Sketch, x: int) -> int:
    """x · (erf(x ÷ √2) + 1) · ½"""
    inner = draw.same("erf", draw.same("div", x, draw.constant()))
    return draw.same("mul", draw.same("mul", x, draw.same("add", inner, draw.constant())), draw.constant())


def kinds(graph: Graph) -> list[str]:
    return [op.kind for op in graph.ops]


def test_a_gelu_of_five_ops_is_one_that_reads_its_input_once() -> None:
    draw = Sketch()
    x = draw.dense(draw.input(1, 4, 8), 8)
    y = gelu(draw, x)
    found = fuse_chains(draw.graph(y))
    (product, chain) = found.ops
    assert product.kind == "matmul"
    assert chain.outputs == (y,)
    assert chain.inputs.count(x) == 1
    assert {found.tensors[t].role for t in chain.inputs if t != x} == {Role.CONSTANT}
    assert len(chain.sources) == 5
    assert work_family(chain, found) is WorkFamily.ERROR_FUNCTION


def test_a_silu_of_two_ops_is_one() -> None:
    draw = Sketch()
    x = draw.conv(draw.input(1, 8, 8, 4), 4)
    y = draw.same("mul", x, draw.same("sigmoid", x))
    (_, chain) = fuse_chains(draw.graph(y)).ops
    assert (chain.inputs, chain.outputs) == ((x,), (y,))
    assert chain.attributes["chain"] == "sigmoid mul"
    assert chain.kind == "sigmoid"  # the one that takes longest


def test_a_value_that_is_read_elsewhere_ends_a_chain() -> None:
    draw = Sketch()
    first = draw.same("exp", draw.input(1, 8))
    second = draw.same("relu", first)
    third = draw.same("abs", second)
    assert len(fuse_chains(draw.graph(third)).ops) == 1
    assert kinds(fuse_chains(draw.graph(third, first))) == ["exp", "relu"]  # an output of the network
    draw.dense(second, 2)
    found = fuse_chains(draw.graph(third, len(draw.tensors) - 1))
    assert [op.outputs[0] for op in found.ops[:2]] == [second, third]


def test_an_operand_that_is_made_later_than_a_chain_begins_ends_it() -> None:
    draw = Sketch()
    x = draw.input(1, 8)
    early = draw.same("exp", x)
    late = draw.dense(x, 8)
    sum_ = draw.same("add", early, late)
    assert kinds(fuse_chains(draw.graph(sum_))) == ["exp", "matmul", "add"]


def test_other_sizes_other_loops_and_other_families_end_a_chain() -> None:
    draw = Sketch()
    row = draw.same("exp", draw.input(1, 8))
    wide = draw.op("add", [row, draw.input(4, 8)], (4, 8))
    normal = draw.same("softmax", wide)
    inside = draw.op("abs", [normal], (4, 8), scope="loop", trips=3)
    last = draw.same("relu", inside)
    assert kinds(fuse_chains(draw.graph(last))) == ["exp", "add", "softmax", "abs", "relu"]


def test_chains_are_fused_where_the_target_says_so() -> None:
    draw = Sketch()
    y = gelu(draw, draw.dense(draw.input(1, 4, 8), 8))
    apart, together = (
        canonicalise(draw.graph(y), target(engine(), runtime=Runtime(fuses_chains=fuses))) for fuses in (False, True)
    )
    assert len(apart.ops) == 6
    assert len(together.ops) == 2


@pytest.mark.parametrize(
    ("order", "moves"),
    [
        ((0, 2, 3, 1), False),
        ((0, 3, 1, 2), False),
        ((0, 2, 1), False),
        ((0, 1, 3, 2), True),
        ((1, 0), True),
        ((1, 2, 0), True),
        ((0, 2, 1, 3), True),
        ((0, 2, 3, 4, 1), False),
    ],
)
def test_changes_between_channels_first_and_last_are_views(order: tuple[int, ...], moves: bool) -> None:
    draw = Sketch()
    shape = tuple(range(2, 2 + len(order)))
    y = draw.op("transpose", [draw.input(*shape)], [shape[axis] for axis in order], permutation=order)
    assert kinds(rename_layouts(draw.graph(y))) == ["transpose" if moves else "identity"]
    kept = canonicalise(draw.graph(y), target(engine()))
    assert kinds(kept) == ["transpose"]  # a target whose runtime says nothing moves them


def test_a_concatenation_whose_operands_nobody_else_reads_moves_nothing() -> None:
    draw = Sketch()
    x = draw.input(1, 4, 4, 8)
    left, right = draw.conv(x, 8), draw.conv(x, 8)
    whole = draw.op("concat", [left, right], (1, 4, 4, 16))
    assert kinds(free_joins(draw.graph(whole))) == ["conv", "conv", "identity"]
    assert kinds(free_joins(draw.graph(whole, left))) == ["conv", "conv", "concat"]  # read elsewhere
    draw.op("concat", [x, right], (1, 4, 4, 16))
    assert kinds(free_joins(draw.graph(whole))) == ["conv", "conv", "concat", "concat"]  # nobody makes an input


def test_a_gelu_behind_a_product_with_weights_is_applied_as_results_leave_it() -> None:
    draw = Sketch()
    x = draw.dense(draw.input(1, 4, 8), 8)
    y = gelu(draw, x)
    (product,) = in_passing(fuse_chains(draw.graph(y)), "gelu").ops
    assert (product.kind, product.outputs, product.attributes["activation"]) == ("matmul", (y,), "gelu")
    assert len(product.sources) == 6


def test_a_gelu_that_no_product_makes_the_input_of_alone_stays_an_op() -> None:
    draw = Sketch()
    convolved = gelu(draw, draw.conv(draw.input(1, 8, 8, 4), 4))
    assert len(in_passing(fuse_chains(draw.graph(convolved)), "gelu").ops) == 2
    draw = Sketch()
    x = draw.dense(draw.input(1, 4, 8), 8)
    found = in_passing(fuse_chains(draw.graph(gelu(draw, x), x)), "gelu")  # others read the product too
    assert [op.family for op in found.ops] == [Family.CONTRACTION, Family.ELEMENTWISE]


def joined_twice(dtype: DType) -> Graph:
    draw = Sketch(dtype=dtype)
    first, second = draw.same("relu", draw.input(1, 8)), draw.same("abs", draw.input(1, 8))
    once = draw.op("concat", (first, second), (1, 16))
    again = draw.op("concat", (once, first), (1, 24))
    return draw.graph(again, once)


def test_what_two_concatenations_of_integers_read_is_rescaled_for_the_second() -> None:
    found = rescaled_joins(joined_twice(DType.I8))
    assert kinds(found) == ["relu", "abs", "concat", "quantize", "concat"]
    rescale, last = found.ops[3:]
    assert rescale.inputs == found.ops[0].outputs
    assert last.inputs == (*found.ops[2].outputs, *rescale.outputs)
    assert found.tensors[rescale.outputs[0]].shape == (1, 8)


def test_floats_have_no_scale_to_change() -> None:
    graph = joined_twice(DType.F16)
    assert rescaled_joins(graph).ops == graph.ops
