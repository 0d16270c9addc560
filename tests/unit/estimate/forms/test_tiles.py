"""Tensors in whole tiles: what they take, and which changes of order keep tiles together."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from opscope.estimate.forms.tiles import in_tiles
from opscope.graph.graph import Attribute, DType, Graph, Op, Role, Tensor


def graph_of(kind: str, *shapes: tuple[int, ...], attributes: Mapping[str, Attribute] | None = None) -> Graph:
    last = len(shapes) - 1
    tensors = tuple(Tensor(f"t{n}", shape, DType.BF16, Role.INPUT) for n, shape in enumerate(shapes))
    op = Op(kind, kind, kind, tuple(range(last)), (last,), attributes or {})
    return Graph("g", "", "row", (op,), tensors, tuple(range(last)), (last,))


def test_the_last_two_axes_are_padded_each_on_their_own() -> None:
    tiled = in_tiles(graph_of("relu", (2, 19, 33), (2, 19, 33)), 32, 32)
    assert [tensor.bytes for tensor in tiled.tensors] == [2 * 32 * 64 * 2] * 2
    assert [tensor.shape for tensor in tiled.tensors] == [(2, 19, 33)] * 2  # shapes, and so MACs, stay


@pytest.mark.parametrize("shape", [(7,), (1, 7), (32, 32), (3, 64, 96)])
def test_nothing_gets_smaller_and_whole_tiles_stay(shape: tuple[int, ...]) -> None:
    graph = graph_of("relu", shape, shape)
    before, after = graph.tensors[0].bytes or 0, in_tiles(graph, 32, 32).tensors[0].bytes or 0
    assert after >= before
    assert after % (32 * 32 * 2) == 0
    assert (after == before) == (before % (32 * 32 * 2) == 0)


def test_pixels_of_images_are_rows_and_taps_of_weights_too() -> None:
    told = {"kernel": (3, 3), "groups": 1, "channel_axis": 1}
    tiled = in_tiles(graph_of("conv", (1, 3, 8, 8), (16, 3, 3, 3), (1, 16, 8, 8), attributes=told), 32, 32)
    assert [tensor.bytes for tensor in tiled.tensors] == [64 * 32 * 2, 32 * 32 * 2, 64 * 32 * 2]


@pytest.mark.parametrize(
    ("kind", "before", "after", "order", "becomes"),
    [
        ("reshape", (1, 19, 1280), (19, 20, 64), (), "retile"),
        ("reshape", (4, 3, 32, 64), (12, 32, 64), (), "reshape"),
        ("transpose", (2, 3, 32, 64), (3, 2, 32, 64), (1, 0, 2, 3), "move_tiles"),
        ("transpose", (2, 3, 32, 64), (2, 3, 64, 32), (0, 1, 3, 2), "move_tiles"),
        ("transpose", (1, 19, 20, 64), (1, 20, 19, 64), (0, 2, 1, 3), "transpose"),
    ],
)
def test_a_change_of_order_is_what_it_does_to_tiles(
    kind: str, before: tuple[int, ...], after: tuple[int, ...], order: tuple[int, ...], becomes: str
) -> None:
    graph = graph_of(kind, before, after, attributes={"permutation": order} if order else {})
    assert in_tiles(graph, 32, 32).ops[0].kind == becomes
