"""input_axes against arithmetic: an op on parts of its inputs gives that part of its output."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import prod

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opscope.compiler.passes.axes import WHOLE, halo, input_axes, needs
from opscope.compiler.sharding import REDUCED, Cut, Sharding, sharding
from opscope.graph.graph import Attribute
from support.build import Sketch

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Case:
    """An op of the vocabulary, and what it computes."""

    kind: str
    shapes: tuple[tuple[int, ...], ...]
    compute: Callable[..., Array]
    cuts: tuple[int, ...]  # axes of the output that can be cut
    attributes: dict[str, Attribute] = field(default_factory=dict)


def softmax(x: Array, axis: int = -1) -> Array:
    powers = np.exp(x - x.max(axis=axis, keepdims=True))
    return powers / powers.sum(axis=axis, keepdims=True)


def pool(x: Array) -> Array:
    n, h, w, c = x.shape
    return x.reshape(n, h // 2, 2, w // 2, 2, c).max(axis=(2, 4))


def to_depth(x: Array) -> Array:
    n, h, w, c = x.shape
    return x.reshape(n, h // 2, 2, w // 2, 2, c).transpose(0, 1, 3, 2, 4, 5).reshape(n, h // 2, w // 2, 4 * c)


def to_space(x: Array) -> Array:
    n, h, w, c = x.shape
    return x.reshape(n, h, w, 2, 2, c // 4).transpose(0, 1, 3, 2, 4, 5).reshape(n, 2 * h, 2 * w, c // 4)


def scatter(data: Array, indices: Array, updates: Array) -> Array:
    result = data.copy()
    np.put_along_axis(result, (indices % data.shape[1]).astype(int), updates, axis=1)
    return result


def conv3(x: Array, w: Array) -> Array:
    """3×3 with zeros around; weights as (out, 3, 3, in)."""
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))
    return np.einsum("nhwcij,oijc->nhwo", windows, w)


def depthwise(x: Array, w: Array) -> Array:
    return x * w  # 1×1, one weight a channel


CONV = {"kernel": (3, 3), "strides": (1, 1), "groups": 1, "channel_axis": 3}
CASES = (
    Case("add", ((4, 2, 6), (4, 2, 6)), np.add, (0, 1, 2)),
    Case("add", ((4, 2, 6), (6,)), np.add, (0, 1, 2)),
    Case("mul", ((4, 2, 6), (4, 1, 6)), np.multiply, (0, 1, 2)),
    Case("sub", ((2, 6), (4, 2, 6)), np.subtract, (0, 1, 2)),
    Case("cast", ((4, 6),), lambda x: x, (0, 1)),
    Case("matmul", ((4, 6), (6, 8)), np.matmul, (0, 1), {"k": 6, "n": 8}),
    Case("matmul", ((2, 4, 6), (6, 8)), np.matmul, (0, 1, 2), {"k": 6, "n": 8}),
    Case("matmul", ((2, 4, 4, 6), (2, 4, 6, 8)), np.matmul, (0, 1, 2, 3), {"k": 6, "n": 8}),
    Case("matmul", ((2, 4, 4, 6), (4, 6, 8)), np.matmul, (0, 1, 2, 3), {"k": 6, "n": 8}),
    Case("matmul", ((4, 6), (2, 6, 8)), np.matmul, (0, 1, 2), {"k": 6, "n": 8}),
    Case("matmul", ((2, 4, 6), (2, 8, 6)), lambda x, y: x @ y.swapaxes(1, 2), (0, 1, 2), {"k": 6, "n": 8}),
    Case("matmul", ((6, 2, 3), (8, 6)), lambda x, y: x.reshape(6, 6) @ y.T, (), {"k": 6, "n": 8}),
    Case("conv", ((2, 4, 4, 6), (8, 3, 3, 6)), conv3, (0, 3), CONV),
    Case("conv", ((2, 4, 4, 6), (6,)), depthwise, (0, 1, 2, 3), CONV | {"kernel": (1, 1), "groups": 6}),
    Case("softmax", ((4, 6, 8),), softmax, (0, 1), {"axes": (2,)}),
    Case("softmax", ((4, 6, 8),), lambda x: softmax(x, 0), (1, 2), {"axes": (0,)}),
    Case("reduce", ((4, 6, 8),), lambda x: x.sum(axis=1, keepdims=True), (0, 2), {"axes": (1,)}),
    Case("reduce", ((4, 6, 8),), lambda x: x.sum(axis=1), (0, 1), {"axes": (1,)}),
    Case("argmax", ((4, 6, 8),), lambda x: x.argmax(axis=2, keepdims=True), (0, 1), {"axes": (2,)}),
    Case("topk", ((4, 6),), lambda x: np.sort(x, axis=1)[:, :2], (0,), {"axes": (1,)}),
    Case("topk", ((4, 6),), lambda x: np.sort(x, axis=1), (0,), {"axes": (1,)}),
    Case("cumsum", ((4, 6),), lambda x: x.cumsum(axis=1), (0,), {"axes": (1,)}),
    Case("fft", ((4, 6, 8),), lambda x: abs(np.fft.rfft(x)), (0, 1), {"axes": (2,), "lengths": (8,)}),
    Case("fft", ((4, 6, 8),), lambda x: abs(np.fft.fft2(x)), (0,), {"axes": (1, 2), "lengths": (6, 8)}),
    Case("batch_norm", ((2, 4, 6), (4,)), lambda x, _: x * 2, (0, 1, 2), {"axes": (0, 2)}),
    Case("transpose", ((2, 4, 6),), lambda x: x.transpose(2, 0, 1), (0, 1, 2), {"permutation": (2, 0, 1)}),
    Case("concat", ((4, 2), (4, 6)), lambda x, y: np.concatenate((x, y), axis=1), (0,), {"axis": 1}),
    Case("slice", ((4, 6),), lambda x: x[:, 2:4], (0,)),
    Case("split", ((4, 6),), lambda x: x[:, :2], (0,), {"axis": 1}),
    Case("pad", ((4, 6),), lambda x: np.pad(x, ((0, 0), (1, 1))), (0,)),
    Case("tile", ((4, 6),), lambda x: np.tile(x, (1, 3)), (0,)),
    Case("space_to_depth", ((2, 4, 8, 6),), to_depth, (0, 1, 2)),
    Case("depth_to_space", ((2, 4, 8, 24),), to_space, (0, 1, 2)),
    Case("one_hot", ((4, 6),), lambda x: np.eye(4)[(x % 4).astype(int)], (0, 1), {"axis": 2}),
    Case("one_hot", ((4, 6),), lambda x: np.eye(4)[(x % 4).astype(int)].swapaxes(1, 2), (0, 2), {"axis": 1}),
    Case("scatter", ((4, 6), (4, 2), (4, 2)), scatter, (0,), {"axis": 1}),
    Case("scatter", ((4, 6), (4, 6), (4, 6)), scatter, (0,), {"axis": 1}),
    Case("max_pool", ((2, 4, 8, 6),), pool, (0, 1, 2, 3), {"kernel": (2, 2)}),
    Case("identity", ((4, 6),), lambda x: x, (0, 1)),
    Case("reshape", ((4, 6, 8),), lambda x: x.reshape(24, 8), (0, 1)),
    Case("reshape", ((4, 6, 8),), lambda x: x.reshape(4, 48), (0, 1)),
    Case("reshape", ((4, 48),), lambda x: x.reshape(4, 6, 8), (0, 1)),
    Case("reshape", ((4, 6),), lambda x: x.reshape(4, 1, 6, 1), (0, 2)),
    Case("reshape", ((4, 6),), lambda x: x.reshape(6, 4), ()),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.kind}-{case.shapes}")
def test_parts_of_the_inputs_give_that_part_of_the_output(case: Case) -> None:
    values = [np.arange(prod(shape), dtype=float).reshape(shape) % 7 - 3 for shape in case.shapes]
    whole = case.compute(*values)
    sketch = Sketch()
    inputs = [sketch.input(*shape) for shape in case.shapes]
    sketch.op(case.kind, inputs, whole.shape, **case.attributes)
    graph = sketch.graph()
    possible = []
    for axis, extent in enumerate(whole.shape):
        axes = input_axes(graph.ops[0], graph, axis)
        if axes is None or extent == 1:
            continue
        if all(own == WHOLE or case.shapes[i][own] % 2 == 0 for i, own in enumerate(axes)) and extent % 2 == 0:
            if _gives_the_parts(case, values, whole, axis, axes):
                possible.append(axis)
            else:  # only windows that overlap may need more than the part
                assert (case.kind, axis) in (("conv", 1), ("conv", 2))
    assert tuple(possible) == case.cuts


def _gives_the_parts(case: Case, values: list[Array], whole: Array, axis: int, axes: tuple[int, ...]) -> bool:
    for half in (0, 1):
        parts = [v if own == WHOLE else np.split(v, 2, axis=own)[half] for v, own in zip(values, axes, strict=True)]
        if case.kind == "conv" and axis == 3:  # weights are cut where the channels are
            parts[1] = np.split(values[1], 2, axis=0)[half]
        elif case.kind == "reshape":  # the bytes are the same; the shape is that of the part
            if not np.array_equal(parts[0].ravel(), np.split(whole, 2, axis=axis)[half].ravel()):
                return False
            continue
        if not np.allclose(case.compute(*parts), np.split(whole, 2, axis=axis)[half]):
            return False
    return True


SHAPES = st.lists(st.sampled_from([1, 2, 3, 4, 6]), min_size=1, max_size=4).map(tuple)


@given(SHAPES, st.data())
def test_any_axis_that_survives_a_reshape_holds_the_same_bytes(source: tuple[int, ...], data: st.DataObject) -> None:
    """Cut both sides into as many parts as there are lanes: each part is the same run of numbers."""
    left, out = prod(source), []
    while left > 1 and data.draw(st.booleans()):
        out.append(data.draw(st.sampled_from([d for d in range(1, left + 1) if left % d == 0])))
        left //= out[-1]
    out.append(left)
    sketch = Sketch()
    sketch.op("reshape", [sketch.input(*source)], out)
    graph = sketch.graph()
    before, after = np.arange(prod(source)).reshape(source), np.arange(prod(source)).reshape(out)
    for axis, extent in enumerate(out):
        axes = input_axes(graph.ops[0], graph, axis)
        for lanes in (2, 3, 4) if axes is not None and extent > 1 else ():
            own = axes[0] if axes is not None else 0
            if extent % lanes == 0 and source[own] % lanes == 0:
                for lane in range(lanes):
                    part, same = _part(after, axis, lane, lanes), _part(before, own, lane, lanes)
                    assert np.array_equal(part.ravel(), same.ravel())


def _part(values: npt.NDArray[np.int64], axis: int, lane: int, lanes: int) -> npt.NDArray[np.int64]:
    extent = values.shape[axis]
    return values.take(range(lane * extent // lanes, (lane + 1) * extent // lanes), axis=axis)


def test_an_op_without_known_axes_is_not_cut() -> None:
    sketch = Sketch()
    sketch.same("softmax", sketch.input(4, 6))
    sketch.same("reduce", sketch.input(4, 6))
    sketch.same("custom", sketch.input(4, 6))
    sketch.same("rotary", sketch.input(4, 6))
    graph = sketch.graph()
    assert [[input_axes(op, graph, axis) for axis in (0, 1)] for op in graph.ops] == [
        [None, None],
        [None, None],
        [None, None],
        [(0,), None],
    ]


def test_frames_of_a_signal_overlap_so_that_each_lane_has_all_of_it() -> None:
    sketch = Sketch()
    sketch.op("fft", [sketch.input(2, 160, 1)], (2, 9, 17, 2), axes=(2,), lengths=(32,))
    graph = sketch.graph()
    assert [input_axes(graph.ops[0], graph, axis) for axis in range(4)] == [(0,), (WHOLE,), None, None]


def test_regions_of_interest_come_from_any_image() -> None:
    sketch = Sketch()
    sketch.op("roi_pool", [sketch.input(2, 8, 16, 16), sketch.input(5, 4)], (5, 8, 7, 7))
    graph = sketch.graph()
    assert [input_axes(graph.ops[0], graph, axis) for axis in range(4)] == [None, (1, WHOLE), None, None]


def test_heads_of_attention_lie_side_by_side_in_its_last_axis() -> None:
    sketch = Sketch()
    operands = [sketch.input(2, 8, 16), sketch.input(2, 4, 8, 4), sketch.input(2, 4, 8, 4), sketch.input(2, 8)]
    sketch.op("attention", operands, (2, 8, 16), heads=4)
    sketch.op("attention", operands[:1], (2, 8, 16), heads=4, projection_macs=100)
    graph = sketch.graph()
    assert [input_axes(graph.ops[0], graph, axis) for axis in range(3)] == [(0, 0, 0, 0), None, (2, 1, 1, WHOLE)]
    assert input_axes(graph.ops[1], graph, 2) is None  # its projections mix the heads


def test_rows_of_a_table_go_with_their_indices() -> None:
    sketch = Sketch()
    sketch.op("gather", [sketch.constant(100, 64), sketch.input(2, 8)], (2, 8, 64), axis=0)
    graph = sketch.graph()
    assert [input_axes(graph.ops[0], graph, axis) for axis in range(3)] == [(WHOLE, 0), (WHOLE, 1), (1, WHOLE)]


# ---- what every lane needs ------------------------------------------------------------------------------------------


def lanes4(*cuts: Cut) -> Sharding:
    return sharding(cuts, 4, (0,), 4, 4)


def product() -> Sketch:
    sketch = Sketch()
    sketch.dense(sketch.input(8, 16, 32), 64)
    return sketch


def test_rows_of_a_product_need_their_rows_and_all_weights() -> None:
    graph = product().graph()
    found = needs(graph.ops[0], graph, lanes4(Cut(1, 16, 4)))
    assert found == (lanes4(Cut(1, 16, 4)), lanes4(), lanes4())


def test_channels_of_a_product_need_all_rows_and_their_part_of_the_weights() -> None:
    graph = product().graph()
    found = needs(graph.ops[0], graph, lanes4(Cut(2, 64, 4)))
    assert found == (lanes4(), lanes4(Cut(0, 64, 4)), lanes4())


def test_partial_sums_of_a_product_need_their_part_of_what_is_summed() -> None:
    graph = product().graph()
    found = needs(graph.ops[0], graph, lanes4(Cut(REDUCED, 32, 4)))
    assert found == (lanes4(Cut(2, 32, 4)), lanes4(Cut(1, 32, 4)), lanes4())


def test_a_grid_of_rows_and_channels_needs_one_cut_of_each() -> None:
    graph = product().graph()
    found = needs(graph.ops[0], graph, lanes4(Cut(0, 8, 2, inner=2), Cut(2, 64, 2)))
    assert found == (lanes4(Cut(0, 8, 2, inner=2)), lanes4(Cut(0, 64, 2)), lanes4())


def test_an_op_that_cannot_be_cut_so_has_no_needs() -> None:
    sketch = Sketch()
    sketch.same("softmax", sketch.input(4, 6), axes=(1,))
    graph = sketch.graph()
    assert needs(graph.ops[0], graph, lanes4(Cut(1, 6, 2))) is None


@pytest.mark.parametrize(
    ("kernel", "stride", "dilations", "before", "after"),
    [(3, 1, (1, 1), 1, 1), (3, 2, (1, 1), 0, 1), (1, 1, (1, 1), 0, 0), (2, 2, (1, 1), 0, 0), (3, 1, (2, 2), 2, 2)],
)
def test_windows_that_overlap_need_rows_beyond_the_part(
    kernel: int, stride: int, dilations: tuple[int, int], before: int, after: int
) -> None:
    sketch = Sketch()
    sketch.conv(sketch.input(1, 56, 56, 8), 16, kernel=kernel, stride=stride, dilations=dilations)
    graph = sketch.graph()
    assert halo(graph.ops[0], graph, 1, 1) == (before / 56, after / 56)
    assert halo(graph.ops[0], graph, 0, 0) == halo(graph.ops[0], graph, 3, 3) == (0.0, 0.0)


@pytest.mark.parametrize("stride", [1, 2])
def test_rows_with_their_halo_give_those_rows_of_a_convolution(stride: int) -> None:
    """Against arithmetic: only the rows that a lane needs are there, the others are not numbers."""
    sketch = Sketch()
    sketch.conv(sketch.input(1, 8, 8, 2), 3, stride=stride)
    graph, rows = sketch.graph(), 8 // stride
    values, weights = np.arange(128.0).reshape(1, 8, 8, 2) % 7, np.arange(54.0).reshape(3, 3, 3, 2) % 5
    begin = 1 if stride == 2 else 0  # padded at the end first, as frameworks do for an even extent
    whole = conv3(values, weights)[:, begin::stride, begin::stride]
    found = needs(graph.ops[0], graph, lanes4(Cut(1, rows, 4)))
    assert found is not None
    for lane, box in found[0].boxes.items():
        (_, low, high), own = box[0], slice(lane * rows // 4, (lane + 1) * rows // 4)
        part = np.full_like(values, np.nan)
        part[:, round(low * 8) : round(high * 8)] = values[:, round(low * 8) : round(high * 8)]
        made = conv3(part, weights)[:, begin::stride, begin::stride]
        assert np.array_equal(made[:, own], whole[:, own])
