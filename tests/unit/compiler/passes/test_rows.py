"""Which axis of every tensor counts rows, and which rows of it are needed for some rows of a result."""

from __future__ import annotations

import pytest

from opscope.compiler.passes.rows import row_axes, rows_needed
from opscope.graph.graph import DType
from support.build import Sketch


def channels_first(draw: Sketch, data: int, channels: int, *, kernel: int = 3, stride: int = 1) -> int:
    """A padded convolution of images with their channels before their rows."""
    batch, depth, height, width = draw.tensors[data].shape or ()
    return draw.op(
        "conv",
        (data, draw.constant(channels, depth, kernel, kernel)),
        (batch, channels, height // stride, width // stride),
        kernel=(kernel, kernel),
        strides=(stride, stride),
        groups=1,
        channel_axis=1,
    )


def test_windows_tell_which_axis_counts_rows_and_neighbours_follow() -> None:
    draw = Sketch(dtype=DType.I8)
    image = draw.input(1, 8, 40, 50)
    before = draw.same("relu", image)
    data = channels_first(draw, before, 8)
    total = draw.same("add", data, before)
    graph = draw.graph(total)
    assert {row_axes(graph)[t] for t in (image, before, data, total)} == {2}


def test_rows_are_followed_through_changes_of_shape() -> None:
    draw = Sketch(dtype=DType.I8)
    data = channels_first(draw, draw.input(1, 8, 40, 50), 36)
    apart = draw.op("reshape", (data,), (1, 9, 4, 40, 50))
    last = draw.op("transpose", (apart,), (1, 40, 50, 9, 4), permutation=(0, 3, 4, 1, 2))
    flat = draw.op("reshape", (last,), (1, 18000, 4))
    graph = draw.graph(flat)
    axes = row_axes(graph)
    assert [axes[t] for t in (data, apart, last, flat)] == [2, 3, 1, 1]
    needed = rows_needed(graph.ops, graph, axes, (900, 1351))  # of 450 for every row of the image
    assert [needed[t] for t in (last, apart, data)] == [(2, 4), (2, 4), (2, 4)]


@pytest.mark.parametrize(
    ("stride", "rows", "expected"),
    [(1, (0, 4), (0, 5)), (1, (4, 8), (3, 9)), (2, (4, 8), (8, 17)), (2, (16, 20), (32, 40))],
)
def test_windows_need_the_rows_around_and_no_padding(
    stride: int, rows: tuple[int, int], expected: tuple[int, int]
) -> None:
    draw = Sketch(dtype=DType.I8)
    image = draw.input(1, 8, 40, 50)
    graph = draw.graph(channels_first(draw, image, 8, stride=stride))
    assert rows_needed(graph.ops, graph, row_axes(graph), rows)[image] == expected


def test_a_larger_image_takes_rows_of_the_smaller_one() -> None:
    draw = Sketch(dtype=DType.I8)
    small = channels_first(draw, draw.input(1, 8, 20, 20), 8)
    large = draw.op("resize", (small,), (1, 8, 40, 40))
    graph = draw.graph(large)
    assert rows_needed(graph.ops, graph, row_axes(graph), (10, 20))[small] == (4, 11)


def test_ops_that_mix_rows_have_none() -> None:
    draw = Sketch(dtype=DType.I8)
    data = channels_first(draw, draw.input(1, 8, 20, 20), 8)
    pooled = draw.op("reduce", (data,), (1, 8, 1, 1), axes=(2, 3))
    graph = draw.graph(pooled)
    assert pooled not in row_axes(graph)
