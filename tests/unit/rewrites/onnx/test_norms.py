"""Normalisations named and spelled out, on drawn shapes."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.rewrites.rewriting import assert_same, operators, rewritten

CENTRE = "m = ReduceMean <axes = [-1]> (x) d = Sub (x, m) "
SQUARES = {"Pow": "s = Pow (d, two)", "Mul": "s = Mul (d, d)", "twice": "d2 = Sub (x, m) s = Pow (d2, two)"}
ROOTS = {
    "Div": "r = Sqrt (e) n = Div (d, r)",
    "Reciprocal": "r = Sqrt (e) q = Reciprocal (r) n = Mul (d, q)",
    "Pow": "q = Pow (e, minus) n = Mul (q, d)",
    "one over": "r = Pow (e, half) q = Div (one, r) n = Mul (d, q)",
}
ENDS = {"both": "a = Mul (n, g) y = Add (a, b)", "scale": "y = Mul (g, n)", "neither": "y = Identity (n)"}
SHAPES = st.lists(st.integers(2, 5), min_size=2, max_size=4)


def _text(body: str, shape: list[int], opset: int) -> str:
    numbers = {"two": 2.0, "eps": 1e-5, "minus": -0.5, "half": 0.5, "one": 1.0}
    constants = " ".join(f"{name} = Constant <value_float = {value}> ()" for name, value in numbers.items())
    if opset >= 18:
        body = body.replace("ReduceMean <axes = [-1]> (x)", "ReduceMean (x, last)").replace(
            "ReduceMean <axes = [-1]> (s)", "ReduceMean (s, last)"
        )
        constants += " last = Constant <value_ints = [-1]> ()"
    extents = ",".join(map(str, shape))
    return f"""<ir_version: 9, opset_import: ["" : {opset}]>
        g (float[{extents}] w) => (float[{extents}] z) {{ {constants} x = Neg (w) {body} z = Neg (y) }}"""


def _weights(shape: list[int]) -> dict[str, np.ndarray]:
    random = np.random.default_rng(len(shape))
    return {name: random.standard_normal(shape[-1:]).astype(np.float32) for name in ("g", "b")}


def _ops(path: Path) -> list[str]:
    return [kind for kind in operators(path) if kind not in ("Constant", "Neg", "Identity")]


@settings(max_examples=12)
@given(
    st.sampled_from(sorted(SQUARES)),
    st.sampled_from(sorted(ROOTS)),
    st.sampled_from(sorted(ENDS)),
    SHAPES,
    st.booleans(),
)
def test_layer_norm(square: str, root: str, end: str, shape: list[int], is_new: bool) -> None:
    body = f"{CENTRE} {SQUARES[square]} v = ReduceMean <axes = [-1]> (s) e = Add (v, eps) {ROOTS[root]} {ENDS[end]}"
    with TemporaryDirectory() as folder:
        text = _text(body, shape, 20 if is_new else 17)
        before, after, sites = rewritten(text, "name-layer-norms", Path(folder), **_weights(shape))
        assert len(sites) == 1
        assert _ops(after) == ["LayerNormalization"]
        assert_same(before, after)


@pytest.mark.parametrize("opset", [12, 13, 16])
def test_an_older_model_is_raised_to_have_it(opset: int, tmp_path: Path) -> None:
    body = f"{CENTRE} {SQUARES['Pow']} v = ReduceMean <axes = [-1]> (s) e = Add (v, eps) {ROOTS['Div']} {ENDS['both']}"
    text = _text(body, [2, 3, 4], opset)
    before, after, sites = rewritten(text, "raise-for-layer-norms", tmp_path, **_weights([2, 3, 4]))
    assert len(sites) == 1
    assert _ops(after) == ["LayerNormalization"]
    assert_same(before, after)


def test_a_model_without_layer_norms_keeps_its_version(tmp_path: Path) -> None:
    text = _text("y = Mul (x, g)", [2, 3, 4], 13)
    before, after, sites = rewritten(text, "raise-for-layer-norms", tmp_path, **_weights([4]))
    assert not sites
    assert onnx.load(after).opset_import[0].version == 13
    assert_same(before, after)


@settings(max_examples=6)
@given(st.sampled_from(sorted(ROOTS)), SHAPES)
def test_rms_norm(root: str, shape: list[int]) -> None:
    mean = "s = Mul (d, d) v = ReduceMean <axes = [-1]> (s) e = Add (v, eps)"
    body = f"d = Identity (x) {mean} {ROOTS[root]} {ENDS['scale']}"
    with TemporaryDirectory() as folder:
        before, after, sites = rewritten(_text(body, shape, 23), "name-rms-norms", Path(folder), **_weights(shape))
        assert len(sites) == 1
        assert _ops(after) == ["RMSNormalization"]
        assert_same(before, after)


@pytest.mark.parametrize(
    ("line", "opset"),
    [
        ("y = LayerNormalization <axis = 1, epsilon = 0.01> (x, g2, b2)", 17),
        ("y = LayerNormalization (x, g)", 20),
        ("y = RMSNormalization (x, g)", 23),
    ],
)
def test_norms_are_spelled_out(line: str, opset: int, tmp_path: Path) -> None:
    weights = _weights([2, 3, 4])
    wide = {"g2": np.ones((3, 4), np.float32) * 2, "b2": np.ones((3, 4), np.float32)}
    before, after, sites = rewritten(_text(line, [2, 3, 4], opset), "spell-norms", tmp_path, **weights, **wide)
    assert len(sites) == 1
    assert "Sqrt" in _ops(after)
    assert_same(before, after)


@settings(max_examples=6)
@given(SHAPES, st.booleans(), st.data())
def test_softmax(shape: list[int], is_shifted: bool, data: st.DataObject) -> None:
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    first = f"m = ReduceMax <axes = [{axis}]> (x) i = Sub (x, m)" if is_shifted else "i = Identity (x)"
    body = f"{first} e = Exp (i) a = Constant <value_ints = [{axis}]> () s = ReduceSum (e, a) y = Div (e, s)"
    with TemporaryDirectory() as folder:
        before, after, sites = rewritten(_text(body, shape, 17), "name-softmax", Path(folder))
        assert len(sites) == 1
        assert _ops(after) == ["Softmax"]
        assert_same(before, after)


@pytest.mark.parametrize(
    "body",
    [
        "m = ReduceMean <axes = [-1]> (x) d = Sub (x, m) s = Mul (d, x) v = ReduceMean <axes = [-1]> (s)",
        "m = ReduceMean <axes = [0]> (x) d = Sub (x, m) s = Mul (d, d) v = ReduceMean <axes = [-1]> (s)",
        "m = ReduceMean <axes = [1]> (x) d = Sub (x, m) s = Mul (d, d) v = ReduceMean <axes = [1]> (s)",
    ],
    ids=["no square", "two axes", "not the last"],
)
def test_what_is_no_layer_norm_stays(body: str, tmp_path: Path) -> None:
    text = _text(f"{body} e = Add (v, eps) r = Sqrt (e) n = Div (d, r) y = Mul (n, g)", [2, 3, 4], 17)
    assert not rewritten(text, "name-layer-norms", tmp_path, **_weights([2, 3, 4]))[2]
