"""Focus layers in their forms, on drawn shapes and orders of pixels."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.rewrites.weighted_models import drawn, model, rewrite_to

END = 2**63 - 1
PIXELS = [(0, 0), (0, 1), (1, 0), (1, 1)]
ORDERS = st.permutations(PIXELS)


def _focus(order: list[tuple[int, int]], *, chained: bool = False, first: int = 2) -> tuple[str, dict[str, list[int]]]:
    """Slices of x and their Concat c, as text, with the constants that they read."""
    constants = {"one": [1], "zero": [0], "two": [2], "end": [END], "rows": [first], "columns": [first + 1]}
    lines, names = [], []
    for number, (row, column) in enumerate(order):
        names.append(f"s{number}")
        if chained:
            rows, columns = ("one" if part else "zero" for part in (row, column))
            lines.append(f"r{number} = Slice(x, {rows}, end, rows, two)")
            lines.append(f"s{number} = Slice(r{number}, {columns}, end, columns, two)")
        else:
            constants |= {f"at{number}": [row, column], "ends": [END, 2**31 - 1], "both": [first, first - 3]}
            constants |= {"twos": [2, 2]}
            lines.append(f"s{number} = Slice(x, at{number}, ends, both, twos)")
    return "\n".join([*lines, f"c = Concat <axis = {1 if first == 2 else -1}> ({', '.join(names)})"]), constants


@settings(max_examples=12)
@given(
    ORDERS,
    st.booleans(),
    st.tuples(st.integers(1, 2), st.integers(1, 4), st.integers(2, 5), st.integers(2, 5)),
    st.tuples(st.integers(1, 3), st.integers(1, 2), st.integers(0, 2), st.integers(0, 2)),
    st.sampled_from([(11, "float"), (17, "float"), (17, "float16"), (21, "float")]),
)
def test_a_focus_layer_and_its_convolution_are_one_convolution(
    order: list[tuple[int, int]],
    chained: bool,
    shape: tuple[int, int, int, int],
    window: tuple[int, int, int, int],
    form: tuple[int, str],
) -> None:
    (batch, channels, rows, columns), (size, stride, before, after) = shape, window
    slices, constants = _focus(order, chained=chained)
    pads = [before, min(before, size), after, after]
    made = model(
        f"T[{batch},{channels},{2 * rows},{2 * columns}] x",
        "T[] y",
        f"{slices} y = Conv <pads = {pads}, strides = [{stride}, 1]> (c, w, b)",
        opset=form[0],
        dtype=form[1],
        w=drawn(3, 4 * channels, min(size, rows), min(size, columns)),
        b=drawn(3),
        **constants,
    )
    tolerance = 1e-5 if form[1] == "float" else 4e-3
    assert rewrite_to(made, "focus-to-strided-conv", tolerance=tolerance) == ["Conv"]
    assert rewrite_to(made, "focus-to-space-to-depth", tolerance=tolerance) == ["SpaceToDepth", "Conv"]


@settings(max_examples=8)
@given(ORDERS, st.booleans(), st.sampled_from([1, 2]), st.tuples(*[st.integers(1, 4)] * 4))
def test_a_focus_layer_is_space_to_depth_in_either_layout(
    order: list[tuple[int, int]], chained: bool, first: int, shape: tuple[int, int, int, int]
) -> None:
    slices, constants = _focus(order, chained=chained, first=first)
    extents = [2 * extent if axis in (first, first + 1) else extent for axis, extent in enumerate(shape)]
    made = model(f"T{extents} x", "T[] y", f"{slices} y = Relu(c)", **constants)
    turned = ["Transpose", "SpaceToDepth", "Transpose"] if first == 1 else ["SpaceToDepth"]
    gathered = [] if order == PIXELS else ["Gather"]
    assert rewrite_to(made, "focus-to-space-to-depth") == [*turned, *gathered, "Relu"]
    regular = order in (PIXELS, [pixel[::-1] for pixel in PIXELS])
    found = rewrite_to(made, "focus-to-reshapes")
    assert (found == ["Reshape", "Transpose", "Reshape", "Relu"]) is regular


@settings(max_examples=12)
@given(
    st.tuples(st.integers(1, 3), st.integers(2, 6), st.integers(2, 6)),
    st.tuples(st.integers(1, 7), st.integers(1, 4)),
    st.tuples(*[st.integers(0, 3)] * 4),
    st.sampled_from(["NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"]),
)
def test_a_strided_convolution_reads_blocks(
    shape: tuple[int, int, int], kernel: tuple[int, int], pads: tuple[int, ...], automatic: str
) -> None:
    channels, rows, columns = shape
    size = [min(kernel[0], 2 * rows), min(kernel[1], 2 * columns)]
    padding = f"pads = {list(pads)}" if automatic == "NOTSET" else f'auto_pad = "{automatic}"'
    made = model(
        f"T[1,{channels},{2 * rows},{2 * columns}] x",
        "T[] y",
        f"y = Conv <{padding}, strides = [2, 2]> (x, w)",
        w=drawn(3, channels, *size),
    )
    assert rewrite_to(made, "strided-conv-to-space-to-depth") in (["SpaceToDepth", "Conv"], ["Conv"])


def test_the_first_layer_of_a_picture_network_reads_blocks() -> None:
    body = "y = Conv <pads = [3, 3, 3, 3], strides = [2, 2]> (x, w)"
    made = model("T[1,3,32,32] x", "T[] y", body, w=drawn(4, 3, 7, 7))
    assert rewrite_to(made, "strided-conv-to-space-to-depth") == ["SpaceToDepth", "Conv"]


def _focus_and_conv(outputs: str = "T[] y", x: str = "T[1,3,8,8] x", then: str = "") -> onnx.ModelProto:
    slices, constants = _focus(PIXELS[::-1])
    return model(x, outputs, f"{slices} y = Conv(c, w) {then}", w=drawn(2, 12, 1, 1), **constants)


def test_slices_that_others_read_stay() -> None:
    made = _focus_and_conv("T[] y, T[] s1, T[] z", then="z = Relu(c)")
    assert sorted(rewrite_to(made, "focus-to-strided-conv")) == ["Concat", "Conv", "Relu", *["Slice"] * 4]
    left = rewrite_to(made, "focus-to-space-to-depth")
    assert sorted(left) == ["Conv", "Gather", "Relu", "Slice", "SpaceToDepth"]


def test_a_picture_of_unknown_size_is_cut_to_its_end() -> None:
    made = _focus_and_conv(x="T[n,3,h,w] x")
    assert rewrite_to(made, "focus-to-strided-conv") == ["Conv"]
    assert rewrite_to(made, "focus-to-space-to-depth") == ["SpaceToDepth", "Conv"]


def test_quantised_weights_are_moved_with_their_scales() -> None:
    slices, constants = _focus([(0, 0), (1, 0), (0, 1), (1, 1)])
    made = model(
        "T[1,3,8,8] x",
        "T[] y",
        f"{slices} w = DequantizeLinear <axis = 0> (q, s, p) y = Conv(c, w)",
        q=np.random.default_rng(0).integers(-128, 127, (2, 12, 3, 3)).astype(np.int8),
        s=np.array([0.01, 0.02]),
        p=np.zeros(2, np.int8),
        **constants,
    )
    assert rewrite_to(made, "focus-to-strided-conv") == ["DequantizeLinear", "Conv"]
    assert rewrite_to(made, "focus-to-space-to-depth") == ["SpaceToDepth", "DequantizeLinear", "Conv"]


def _pair(x: str, y: str, scale: str = "s") -> str:
    return f"{y}_q = QuantizeLinear({x}, {scale}, z) {y} = DequantizeLinear({y}_q, {scale}, z)"


@pytest.mark.parametrize("outer", ["s", "t"])
def test_a_quantised_focus_layer_is_found_among_its_pairs(outer: str) -> None:
    """As quantisers write it: every slice on the grid of the picture, the Concat on that or another."""
    order = [(0, 0), (1, 0), (0, 1), (1, 1)]
    _, constants = _focus(order, chained=True)
    lines = [_pair("x", "p")]
    for number, pixel in enumerate(order):
        rows, columns = ("one" if part else "zero" for part in pixel)
        lines.append(f"r{number} = Slice(p, {rows}, end, rows, two) {_pair(f'r{number}', f'rr{number}')}")
        lines.append(
            f"s{number} = Slice(rr{number}, {columns}, end, columns, two) {_pair(f's{number}', f'ss{number}')}"
        )
    body = f"{' '.join(lines)} c = Concat <axis = 1> (ss0, ss1, ss2, ss3) {_pair('c', 'd', outer)} y = Conv(d, w)"
    scales = {"s": np.array(0.03), "t": np.array(0.02), "z": np.array(7, np.int8)}
    made = model("T[1,3,8,8] x", "T[] y", body, w=drawn(2, 12, 3, 3), **scales, **constants)
    pair = ["QuantizeLinear", "DequantizeLinear"]
    again = pair if outer == "t" else []
    assert rewrite_to(made, "focus-to-strided-conv") == [*pair, *again, "Conv"]
    assert rewrite_to(made, "focus-to-space-to-depth") == [*pair, "SpaceToDepth", *pair, "Conv"]


def test_slices_that_are_put_on_another_grid_stay() -> None:
    slices, constants = _focus(PIXELS)
    body = f"{slices.replace('(s0,', '(q0,').replace('c = ', _pair('s0', 'q0') + ' c = ')} y = Conv(c, w)"
    made = model(
        "T[1,3,8,8] x", "T[] y", body, w=drawn(2, 12, 3, 3), s=np.array(0.03), z=np.array(7, np.int8), **constants
    )
    for rewrite in ("focus-to-strided-conv", "focus-to-space-to-depth"):
        assert "Concat" in rewrite_to(made, rewrite)


@pytest.mark.parametrize(
    "slices",
    [
        "a = Slice(x, zero, six, rows, two) c = Concat <axis = 1> (a, a)",
        "a = Slice(x, zero, end, rows, two) b = Slice(x, one, end, rows, two) c = Concat <axis = 1> (a, b)",
        "a = Slice(x, zero, end, rows) c = Concat <axis = 1> (a, a)",
    ],
)
def test_what_is_no_focus_layer_stays(slices: str) -> None:
    _, constants = _focus(PIXELS, chained=True)
    made = model("T[1,2,8,8] x", "T[] y", f"{slices} y = Conv(c, w)", w=drawn(2, 4, 1, 1), six=[6], **constants)
    for rewrite in ("focus-to-strided-conv", "focus-to-space-to-depth", "focus-to-reshapes"):
        assert "Concat" in rewrite_to(made, rewrite)
