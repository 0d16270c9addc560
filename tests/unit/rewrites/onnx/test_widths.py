"""Channels filled up to the width of an engine."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.rewrites.weighted_models import drawn, model, rewrite_to

BETWEEN = {
    "": [],
    "b = Relu(a)": ["Relu"],
    "s = Sigmoid(a) b = Mul(a, s)": ["Sigmoid", "Mul"],
    "s = HardSigmoid(a) b = Mul(s, a)": ["HardSigmoid", "Mul"],
    "t = Tanh(a) b = Clip(t, low, high)": ["Tanh", "Clip"],
}


@settings(max_examples=12)
@given(st.integers(1, 70), st.sampled_from(list(BETWEEN)), st.booleans(), st.sampled_from(["float", "float16"]))
def test_channels_between_two_convolutions_fill_the_width(count: int, between: str, biased: bool, dtype: str) -> None:
    read = "b" if between else "a"
    made = model(
        "T[1,3,5,5] x",
        "T[] y",
        f"a = Conv <pads = [1, 1, 1, 1]> (x, w{', c' if biased else ''}) {between} y = Conv <pads = [1, 0, 1, 0]>"
        f" ({read}, v)",
        dtype=dtype,
        w=drawn(count, 3, 3, 3),
        c=drawn(count),
        v=drawn(2, count, 3, 3),
        low=drawn(),
        high=drawn() + 2,
    )
    found = rewrite_to(made, "pad-channels", tolerance=1e-5 if dtype == "float" else 5e-3)
    assert found == ["Conv", *BETWEEN[between], "Conv"]


@pytest.mark.parametrize(
    ("body", "outputs"),
    [
        ("a = Conv(x, w) b = Relu(a) y = Conv(b, v)", "T[] y, T[] a"),
        ("a = Conv(x, w) b = Reciprocal(a) y = Conv(b, v)", "T[] y"),
        ("a = Conv(x, w) b = Mul(a, k) y = Conv(b, v)", "T[] y"),
        ("a = Conv(x, w) s = Sigmoid(a) b = Mul(a, s) c = Relu(a) y = Conv(b, v)", "T[] y, T[] c"),
    ],
)
def test_channels_that_others_read_stay(body: str, outputs: str) -> None:
    made = model("T[1,3,5,5] x", outputs, body, w=drawn(5, 3, 1, 1), v=drawn(2, 5, 1, 1), k=drawn(5, 1, 1))
    before = [node.op_type for node in made.graph.node]
    assert rewrite_to(made, "pad-channels") == before
