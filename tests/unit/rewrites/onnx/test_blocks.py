"""Pixels moved and repeated, in the forms that exporters write, on drawn shapes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.rewrites.weighted_models import model, rewrite_to

EXTENTS = st.tuples(*[st.integers(1, 3)] * 4)  # batch, channels, rows and columns, in blocks where there are any


@settings(max_examples=18)
@given(EXTENTS, st.integers(2, 3), st.sampled_from(["dcr", "crd", "unshuffle", "blocks", "last", "back"]))
def test_reshapes_that_move_pixels_are_one_op(shape: tuple[int, int, int, int], block: int, form: str) -> None:
    n, c, h, w = shape
    b, deep = block, c * block * block
    picture, channels = [n, c, h * b, w * b], [n, deep, h, w]
    before, between, order, after, wanted = {
        "dcr": (channels, [n, b, b, c, h, w], [0, 3, 4, 1, 5, 2], picture, ["DepthToSpace"]),
        "crd": (channels, [n, c, b, b, h, w], [0, 1, 4, 2, 5, 3], picture, ["DepthToSpace"]),
        "blocks": (picture, [n, c, h, b, w, b], [0, 3, 5, 1, 2, 4], channels, ["SpaceToDepth"]),
        "unshuffle": (picture, [n, c, h, b, w, b], [0, 1, 3, 5, 2, 4], channels, ["SpaceToDepth", "Gather"]),
        "last": (
            [n, h * b, w * b, c],
            [n, h, b, w, b, c],
            [0, 1, 3, 2, 4, 5],
            [n, h, w, deep],
            ["Transpose", "SpaceToDepth", "Transpose"],
        ),
        "back": (
            [n, h, w, deep],
            [n, h, w, b, b, c],
            [0, 1, 3, 2, 4, 5],
            [n, h * b, w * b, c],
            ["Transpose", "DepthToSpace", "Transpose"],
        ),
    }[form]
    body = f"a = Reshape(x, p) t = Transpose <perm = {order}> (a) y = Reshape(t, q)"
    assert rewrite_to(model(f"T{before} x", "T[] y", body, p=between, q=after), "reshapes-to-blocks") == wanted


def test_reshapes_that_others_read_stay() -> None:
    body = "a = Reshape(x, p) t = Transpose <perm = [0, 1, 4, 2, 5, 3]> (a) y = Reshape(t, q)"
    made = model("T[1,8,3,3] x", "T[] y, T[] t", body, p=[1, 2, 2, 2, 3, 3], q=[1, 2, 6, 6])
    assert sorted(rewrite_to(made, "reshapes-to-blocks")) == ["DepthToSpace", "Reshape", "Transpose"]


@settings(max_examples=14)
@given(
    EXTENTS,
    st.tuples(st.integers(1, 4), st.integers(1, 4)),
    st.sampled_from(["asymmetric", "half_pixel", "pytorch_half_pixel", "align_corners"]),
    st.sampled_from(["floor", "round_prefer_floor", "round_prefer_ceil", "ceil"]),
    st.tuples(st.booleans(), st.sampled_from([11, 13, 18])),
)
def test_a_resize_that_repeats_pixels_has_three_other_forms(
    shape: tuple[int, int, int, int],
    times: tuple[int, int],
    coordinates: str,
    rounding: str,
    form: tuple[bool, int],
) -> None:
    by_size, opset = form
    sizes = [*shape[:2], shape[2] * times[0], shape[3] * times[1]]
    modes = f'mode = "nearest", coordinate_transformation_mode = "{coordinates}", nearest_mode = "{rounding}"'
    inputs = "x, none, empty, sizes" if by_size else "x, none, scales"
    made = model(
        f"T{list(shape)} x",
        "T[] y",
        f"y = Resize <{modes}> ({inputs})",
        opset=opset,
        none=np.zeros(0),
        empty=np.zeros(0, np.float32),
        scales=np.array([1, 1, *times], np.float32),
        sizes=sizes,
    )
    repeats = (coordinates, rounding) == ("asymmetric", "floor") or ("half" in coordinates and "round" in rounding)
    expected = {
        "resize-to-depth-to-space": ["Concat", "DepthToSpace"],
        "resize-to-conv-transpose": ["ConvTranspose"],
        "resize-to-expand": ["Reshape", "Expand", "Reshape"],
    }
    for rewrite, wanted in expected.items():
        applies = repeats and times != (1, 1) and (times[0] == times[1] or rewrite != "resize-to-depth-to-space")
        assert rewrite_to(made, rewrite) == (wanted if applies else ["Resize"])


@settings(max_examples=8)
@given(EXTENTS, st.tuples(st.integers(1, 3), st.integers(2, 3)), st.booleans())
def test_pixels_that_are_spread_are_a_resize(
    shape: tuple[int, int, int, int], times: tuple[int, int], tiled: bool
) -> None:
    n, c, h, w = shape
    spread = "Tile(a, r)" if tiled else "Expand(a, e)"
    made = model(
        f"T{list(shape)} x",
        "T[] y",
        f"a = Reshape(x, p) b = {spread} y = Reshape(b, q)",
        p=[n, c, h, 1, w, 1],
        e=[n, c, h, times[0], w, times[1]],
        r=[1, 1, 1, times[0], 1, times[1]],
        q=[n, c, h * times[0], w * times[1]],
    )
    assert rewrite_to(made, "expand-to-resize") == ["Resize"]


@pytest.mark.parametrize("scales", [[1, 1, 2.5, 2.0], [1, 1, 2.2, 2.0], [1, 1, 0.5, 0.5]])
def test_a_resize_by_no_whole_number_stays(scales: list[float]) -> None:
    modes = 'mode = "nearest", coordinate_transformation_mode = "asymmetric", nearest_mode = "floor"'
    made = model("T[1,2,4,4] x", "T[] y", f"y = Resize <{modes}> (x, , s)", s=np.array(scales, np.float32))
    for rewrite in ("resize-to-depth-to-space", "resize-to-conv-transpose", "resize-to-expand"):
        assert rewrite_to(made, rewrite) == ["Resize"]
