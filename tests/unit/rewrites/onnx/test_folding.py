"""Scales and shifts taken into weights, on drawn shapes and kinds of ops."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.rewrites.weighted_models import drawn, model, rewrite_to

FORMS = st.sampled_from([(11, "float"), (13, "float"), (17, "float16"), (21, "float")])
TOLERANCES = {"float": 1e-5, "float16": 8e-3}
CHANNELS = 4
STATISTICS = {
    "s": drawn(CHANNELS) + 1.5,
    "h": drawn(CHANNELS),
    "m": drawn(CHANNELS, seed=3),
    "v": abs(drawn(CHANNELS)) + 0.5,
}
# What is done to {x}, giving {y}; c has a number for each channel.
STEPS = st.sampled_from(
    [
        "{y} = BatchNormalization({x}, s, h, m, v)",
        "{y} = Mul({x}, c)",
        "{y} = Mul(c, {x})",
        "{y} = Div({x}, c)",
        "{y} = Add({x}, c)",
        "{y} = Sub({x}, c)",
        "{y} = Sub(c, {x})",
    ]
)


@settings(max_examples=18)
@given(
    STEPS,
    st.sampled_from([("Conv", 1), ("Conv", 2), ("Conv", 4), ("ConvTranspose", 1), ("ConvTranspose", 2)]),
    st.booleans(),
    st.booleans(),
    FORMS,
)
def test_what_follows_a_convolution_is_in_its_weights(
    step: str, product: tuple[str, int], biased: bool, scalar: bool, form: tuple[int, str]
) -> None:
    kind, group = product
    dtype = "float" if kind == "ConvTranspose" else form[1]
    inputs = 8
    shape = (CHANNELS, inputs // group, 3, 3) if kind == "Conv" else (inputs, CHANNELS // group, 3, 3)
    made = model(
        f"T[1,{inputs},5,6] x",
        "T[] y",
        f"a = {kind} <group = {group}, pads = [1, 1, 1, 1]> (x, w{', b' if biased else ''})"
        f" {step.format(x='a', y='y')}",
        opset=form[0],
        dtype=dtype,
        w=drawn(*shape),
        b=drawn(CHANNELS, seed=5),
        c=drawn(*(() if scalar else (CHANNELS, 1, 1)), seed=7) + 1.5,
        **STATISTICS,
    )
    assert rewrite_to(made, "fold-into-previous", tolerance=TOLERANCES[dtype]) == [kind]


@settings(max_examples=14)
@given(STEPS, st.sampled_from([1, 2, 4]), st.booleans(), st.booleans(), FORMS)
def test_what_precedes_a_convolution_is_in_its_weights(
    step: str, group: int, biased: bool, padded: bool, form: tuple[int, str]
) -> None:
    shifts = any(word in step for word in ("Add", "Sub", "Batch"))
    made = model(
        f"T[1,{CHANNELS},5,6] x",
        "T[] y",
        f"{step.format(x='x', y='a')} y = Conv <group = {group}, pads = {[int(padded)] * 4}>"
        f" (a, w{', b' if biased else ''})",
        opset=form[0],
        dtype=form[1],
        w=drawn(8, CHANNELS // group, 3, 3),
        b=drawn(8, seed=5),
        c=drawn(1, CHANNELS, 1, 1, seed=7) + 1.5,
        **STATISTICS,
    )
    found = rewrite_to(made, "fold-into-next", tolerance=TOLERANCES[form[1]])
    assert (found == ["Conv"]) is not (shifts and padded)


@settings(max_examples=14)
@given(STEPS, st.booleans(), st.booleans(), st.booleans(), st.sampled_from([1.0, 0.5]))
def test_products_of_matrices_take_scales(step: str, transposed: bool, biased: bool, after: bool, alpha: float) -> None:
    wide, narrow = (8, CHANNELS) if after else (CHANNELS, 8)
    gemm = f"Gemm <transB = {int(transposed)}, alpha = {alpha}, beta = 2.0>"
    body = "a = {g} (x, w{b}) {s}" if after else "{s} y = {g} (a, w{b})"
    step = step.format(x="a", y="y") if after else step.format(x="x", y="a")
    made = model(
        f"T[3,{wide}] x",
        "T[] y",
        body.format(g=gemm, b=", b" if biased else "", s=step),
        w=drawn(narrow, wide) if transposed else drawn(wide, narrow),
        b=drawn(narrow, seed=5),
        c=drawn(CHANNELS, seed=7) + 1.5,
        **STATISTICS,
    )
    assert rewrite_to(made, "fold-into-previous" if after else "fold-into-next") == ["Gemm"]


@pytest.mark.parametrize("step", ["Mul(a, c)", "Div(a, c)", "Sub(c, a)", "Add(a, c)"])
def test_a_product_over_several_axes_takes_a_scale(step: str) -> None:
    made = model("T[2,5,8] x", "T[] y", f"a = MatMul(x, w) y = {step}", w=drawn(8, CHANNELS), c=drawn(CHANNELS) + 1.5)
    shifts = "Sub" in step or "Add" in step
    assert rewrite_to(made, "fold-into-previous") == ["MatMul", *(["Add"] if shifts else [])]
    made = model("T[2,5,4] x", "T[] y", f"a = Relu(x) b = {step} y = MatMul(b, w)", w=drawn(4, 3), c=drawn(4) + 1.5)
    assert rewrite_to(made, "fold-into-next") == ["Relu", "MatMul", *(["Add"] if shifts else [])]


@settings(max_examples=10)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), FORMS)
def test_a_normalisation_is_a_product_and_a_sum(shape: list[int], form: tuple[int, str]) -> None:
    extents = [shape[0], CHANNELS, *shape[1:]]
    body = "y = BatchNormalization(x, s, h, m, v)"
    made = model(f"T{extents} x", "T[] y", body, opset=form[0], dtype=form[1], **STATISTICS)
    assert rewrite_to(made, "batch-norm-to-mul-add", tolerance=TOLERANCES[form[1]]) == ["Mul", "Add"]


@pytest.mark.parametrize(
    ("body", "outputs"),
    [
        ("a = Conv(x, w) y = Mul(a, c)", "T[] y, T[] a"),  # a is read by others
        ("a = Conv(x, w) y = Mul(a, p)", "T[] y"),  # numbers differ from pixel to pixel
        ("a = Conv(x, w) y = Mul(a, a)", "T[] y"),
        ("a = Conv(x, w) y = Div(c, a)", "T[] y"),
    ],
)
def test_what_is_no_scale_of_channels_stays(body: str, outputs: str) -> None:
    made = model("T[1,4,3,3] x", outputs, body, w=drawn(4, 4, 1, 1), c=np.full((4, 1, 1), 2.0), p=drawn(3, 3))
    assert len(rewrite_to(made, "fold-into-previous")) == 2
