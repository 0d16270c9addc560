"""Channels shuffled, gathered, cut and put together, on drawn shapes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.rewrites.weighted_models import drawn, model, rewrite_to


@settings(max_examples=8)
@given(st.integers(1, 3), st.integers(1, 4), st.integers(0, 2))
def test_a_shuffle_is_a_gather(groups: int, width: int, spatial: int) -> None:
    rest = [3, 2][:spatial]
    order = [0, 2, 1, *range(3, 3 + spatial)]
    made = model(
        f"T{[2, groups * width, *rest]} x",
        "T[] y",
        f"a = Reshape(x, p) t = Transpose <perm = {order}> (a) y = Reshape(t, q)",
        p=[2, groups, width, *rest],
        q=[2, groups * width, *rest],
    )
    assert rewrite_to(made, "shuffle-to-gather") == ["Gather"]
    if spatial == 2:
        assert rewrite_to(made, "shuffle-to-conv") == ["Conv"]


@pytest.mark.parametrize("inner", ["s", "t"])
def test_a_quantised_shuffle_is_found_among_its_pairs(inner: str) -> None:
    def pair(x: str, y: str, scale: str) -> str:
        return f"{y}_q = QuantizeLinear({x}, {scale}, z) {y} = DequantizeLinear({y}_q, {scale}, z)"

    body = f"""{pair("x", "a", "s")} b = Reshape(a, p) {pair("b", "c", inner)}
        d = Transpose <perm = [0, 2, 1, 3, 4]> (c) {pair("d", "u", "s")} y = Reshape(u, q)"""
    scales = {"s": np.array(0.03), "t": np.array(0.02), "z": np.array(3, np.int8)}
    made = model("T[1,6,4,4] x", "T[] y", body, p=[1, 2, 3, 4, 4], q=[1, 6, 4, 4], **scales)
    assert (rewrite_to(made, "shuffle-to-gather", tolerance=0)[-1] == "Gather") is (inner == "s")
    assert rewrite_to(made, "shuffle-to-conv", tolerance=0)[-1] == "Reshape"


@settings(max_examples=12)
@given(st.lists(st.integers(-4, 3), min_size=1, max_size=6), st.booleans(), st.sampled_from(["float", "float16"]))
def test_a_gather_is_in_the_weights_of_its_neighbours(order: list[int], biased: bool, dtype: str) -> None:
    tolerance, bias = 1e-5 if dtype == "float" else 5e-3, ", b" if biased else ""
    constants = {"w": drawn(3, len(order), 3, 3), "v": drawn(4, 2, 1, 1), "i": order}
    after = model(
        "T[1,4,5,5] x",
        "T[] y",
        f"g = Gather <axis = 1> (x, i) y = Conv <pads = [1, 1, 1, 1]> (g, w{bias})",
        dtype=dtype,
        b=drawn(3),
        **constants,
    )
    before = model(
        "T[1,2,5,5] x",
        "T[] y",
        f"c = Conv(x, v{bias}) y = Gather <axis = 1> (c, i)",
        dtype=dtype,
        b=drawn(4),
        **constants,
    )
    for made in (after, before):
        assert rewrite_to(made, "gather-into-conv", tolerance=tolerance) == ["Conv"]
    assert rewrite_to(after, "gather-to-conv", tolerance=tolerance) == ["Conv", "Conv"]


@pytest.mark.parametrize("order", [[3, 1, 0, 2], [0, 0, 1, 2]])
def test_quantised_weights_are_moved_but_never_added(order: list[int]) -> None:
    made = model(
        "T[1,4,5,5] x",
        "T[] y",
        "g = Gather <axis = 1> (x, i) w = DequantizeLinear(q, s, z) y = Conv(g, w)",
        i=order,
        q=np.random.default_rng(0).integers(0, 255, (3, 4, 3, 3)).astype(np.uint8),
        s=np.array(0.01),
        z=np.array(131, np.uint8),
    )
    found = rewrite_to(made, "gather-into-conv")
    assert found == (["DequantizeLinear", "Conv"] if len(set(order)) == 4 else ["Gather", "DequantizeLinear", "Conv"])


@settings(max_examples=8)
@given(st.integers(-3, 2), st.integers(-3, 2), st.booleans())
def test_concats_of_one_axis_are_one(outer: int, inner: int, read: bool) -> None:
    outputs = "T[] y, T[] a" if read else "T[] y"
    body = f"a = Concat <axis = {inner}> (x, x) b = Relu(a) c = Concat <axis = {outer}> (a, b) y = Relu(c)"
    alone = f"a = Concat <axis = {inner}> (x, z) y = Concat <axis = {outer}> (a, a)"
    nested = model("T[2,2,2] x, T[2,2,2] z", outputs, alone)
    assert rewrite_to(model("T[2,2,2] x", outputs, body), "flatten-concats")[0] == "Concat"
    same = outer % 3 == inner % 3
    assert len(rewrite_to(nested, "flatten-concats")) == (2 if read or not same else 1)


@settings(max_examples=10)
@given(st.lists(st.integers(1, 3), min_size=1, max_size=4), st.booleans(), st.sampled_from([1, -1]), st.booleans())
def test_parts_put_together_are_the_whole(lengths: list[int], split: bool, axis: int, swapped: bool) -> None:
    names = [f"p{number}" for number in range(len(lengths))]
    ends = np.cumsum([0, *lengths]).tolist()
    constants = {f"e{number}": [end] for number, end in enumerate(ends)} | {"axes": [axis], "s": lengths}
    cut = (
        f"{', '.join(names)} = Split <axis = {axis}> (r, s)"
        if split
        else " ".join(f"p{number} = Slice(r, e{number}, e{number + 1}, axes)" for number in range(len(lengths)))
    )
    order = names[::-1] if swapped else names
    body = f"r = Relu(x) {cut} c = Concat <axis = {axis}> ({', '.join(order)}) y = Relu(c)"
    found = rewrite_to(model(f"T[2,{ends[-1]}] x", "T[] y", body, **constants), "undo-slices")
    assert (found == ["Relu", "Relu"]) is (order == names)
