"""Padding in ops and apart from them, on drawn amounts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.rewrites.weighted_models import drawn, model, rewrite_to

AMOUNTS = st.tuples(*[st.integers(0, 2)] * 4)
KINDS = {
    "Conv": "Conv <pads = {pads}> ({x}, w)",
    "AveragePool": "AveragePool <kernel_shape = [5, 5], pads = {pads}, count_include_pad = 1> ({x})",
    "MaxPool": "MaxPool <kernel_shape = [5, 5], pads = {pads}> ({x})",
}


@settings(max_examples=14)
@given(st.sampled_from(list(KINDS)), AMOUNTS, AMOUNTS, st.sampled_from([11, 13, 18, 21]), st.booleans())
def test_a_pad_is_padding_of_its_reader(
    kind: str, apart: tuple[int, ...], own: tuple[int, ...], opset: int, by_axes: bool
) -> None:
    short = by_axes and opset >= 18
    amounts = list(apart) if short else [0, 0, *apart[:2], 0, 0, *apart[2:]]
    reader = KINDS[kind].format(x="p", pads=list(own))
    body = f"r = Relu(x) p = Pad(r, amounts, zero{', axes' if short else ''}) y = {reader}"
    constants = {"w": drawn(2, 3, 3, 3), "amounts": amounts, "zero": np.array(0.0), "axes": [2, -1]}
    found = rewrite_to(model("T[1,3,8,9] x", "T[] y", body, opset=opset, **constants), "fold-pad")
    assert found == ["Relu", kind]


@pytest.mark.parametrize(
    ("value", "kind", "folds"),
    [
        (0.0, "MaxPool", False),
        (-np.inf, "MaxPool", True),
        (1.0, "Conv", False),
        (0.0, "Conv", True),
        (1.0, "AveragePool", False),
    ],
)
def test_a_pad_of_another_value_stays(value: float, kind: str, folds: bool) -> None:
    body = f"p = Pad(x, amounts, value) y = {KINDS[kind].format(x='p', pads=[0, 0, 0, 0])}"
    constants = {"w": drawn(2, 3, 3, 3), "amounts": [0, 0, 1, 1, 0, 0, 1, 1], "value": np.array(value)}
    assert (rewrite_to(model("T[1,3,8,9] x", "T[] y", body, **constants), "fold-pad") == [kind]) is folds


@settings(max_examples=10)
@given(st.sampled_from(["Conv", "AveragePool"]), AMOUNTS, st.sampled_from([11, 17, 21]))
def test_uneven_padding_is_an_op(kind: str, amounts: tuple[int, ...], opset: int) -> None:
    body = f"y = {KINDS[kind].format(x='x', pads=list(amounts))}"
    found = rewrite_to(model("T[1,3,8,9] x", "T[] y", body, opset=opset, w=drawn(2, 3, 3, 3)), "pad-apart")
    applies = any(amounts) if kind == "AveragePool" else amounts[:2] != amounts[2:]
    assert found == (["Pad", kind] if applies else [kind])
