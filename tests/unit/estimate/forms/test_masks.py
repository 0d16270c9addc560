"""Masks that are added inside the softmax behind them."""

from __future__ import annotations

import pytest

from opscope.estimate.canonical import canonicalise
from opscope.estimate.forms.masks import fuse_masks
from opscope.graph.graph import DType, Graph
from opscope.machine import catalogue
from support.build import Sketch


def attention(mask: tuple[int, ...], *, over: int = 3, read_twice: bool = False) -> Graph:
    """Scores of 4 heads of 8 queries and 16 keys, with a mask of some shape, and the softmax of their sum."""
    draw = Sketch(dtype=DType.F16)
    scores, added = draw.same("relu", draw.input(1, 4, 8, 16)), draw.input(*mask)
    total = draw.op("add", (scores, added), (1, 4, 8, 16), name="masked")
    shares = draw.op("softmax", (total,), (1, 4, 8, 16), name="shares", axes=(over,))
    return draw.graph(shares, total) if read_twice else draw.graph(shares)


@pytest.mark.parametrize("mask", [(1, 1, 8, 16), (8, 16), (4, 8, 16)[1:]])
def test_a_mask_of_queries_and_keys_is_read_by_the_softmax(mask: tuple[int, ...]) -> None:
    found = fuse_masks(attention(mask))
    assert [op.kind for op in found.ops] == ["relu", "masked_softmax"]
    last = found.ops[-1]
    assert last.sources == ("masked", "shares")
    assert found.tensors[last.inputs[1]].shape == mask


@pytest.mark.parametrize(
    "graph",
    [
        attention((1, 1, 1, 16)),
        attention((16,)),
        attention((1, 4, 8, 16)),
        attention((1, 1, 8, 16), over=2),
        attention((1, 1, 8, 16), read_twice=True),
    ],
    ids=["keys alone", "one row", "of every head", "softmax over queries", "sum read by others"],
)
def test_anything_else_stays_as_it_is(graph: Graph) -> None:
    assert fuse_masks(graph).ops == graph.ops


def test_only_a_target_with_the_kernel_runs_it() -> None:
    graph = attention((1, 1, 8, 16))
    assert canonicalise(graph, catalogue.load("aic100-std")).ops[-1].kind == "masked_softmax"
    assert canonicalise(graph, catalogue.load("torq-sl2610")).ops[-1].kind == "softmax"
