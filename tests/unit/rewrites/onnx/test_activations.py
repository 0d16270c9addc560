"""Activations named and spelled out, in the forms in which exporters write them."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.rewrites.rewriting import assert_same, operators, rewritten

NUMBERS = {"h": 0.5, "one": 1.0, "r": 2**0.5, "ir": 0.5**0.5, "c": 0.044715, "p": 0.7978845608028654, "three": 3.0}
NUMBERS |= {"six": 6.0, "zero": 0.0, "sixth": 1 / 6, "two": 2.0}
SPELLED = {  # the result of each on x is y
    "Gelu": [
        "a = Div (x, r) b = Erf (a) d = Add (b, one) e = Mul (h, d) y = Mul (x, e)",
        "a = Mul (x, ir) b = Erf (a) d = Add (one, b) e = Mul (x, d) y = Mul (e, h)",
        "a = Div (x, r) b = Erf (a) d = Add (b, one) e = Mul (x, h) y = Mul (e, d)",
    ],
    "FastGelu": [
        "a = Pow (x, three) b = Mul (a, c) d = Add (x, b) e = Mul (d, p) f = Tanh (e) g = Add (f, one)"
        " i = Mul (x, h) y = Mul (i, g)",
        "a = Mul (x, x) b = Mul (a, x) k = Mul (b, c) d = Add (x, k) e = Mul (d, p) f = Tanh (e) g = Add (f, one)"
        " i = Mul (x, g) y = Mul (h, i)",
    ],
    "HardSwish": [
        "a = Add (x, three) b = Clip (a, zero, six) d = Mul (x, b) y = Div (d, six)",
        "a = Add (x, three) b = Clip (a, zero, six) d = Div (b, six) y = Mul (x, d)",
        "a = HardSigmoid <alpha = 0.16666667, beta = 0.5> (x) y = Mul (x, a)",
    ],
    "Mish": [
        "a = Softplus (x) b = Tanh (a) y = Mul (x, b)",
        "a = Exp (x) b = Add (a, one) d = Log (b) e = Tanh (d) y = Mul (x, e) ",
    ],
    "Sigmoid": ["a = Neg (x) b = Exp (a) d = Add (b, one) y = Div (one, d)"],
    "HardSigmoid": ["a = Add (x, three) b = Clip (a, zero, six) y = Mul (b, sixth)"],
    "Softplus": ["a = Exp (x) b = Add (a, one) y = Log (b)"],
}
CASES = [(op, body) for op, bodies in SPELLED.items() for body in bodies]


def _text(body: str, opset: int, shape: str = "2,3,4") -> str:
    constants = " ".join(f"{name} = Constant <value_float = {value!r}> ()" for name, value in NUMBERS.items())
    return f"""<ir_version: 9, opset_import: ["" : {opset}]>
        g (float[{shape}] w) => (float[{shape}] z) {{ {constants} x = Neg (w) {body} z = Neg (y) }}"""


def _ops(path: Path) -> list[str]:
    return [kind for kind in operators(path) if kind not in ("Constant", "Neg")]


@pytest.mark.parametrize(("op", "body"), CASES)
def test_spelled_out_is_the_op(op: str, body: str, tmp_path: Path) -> None:
    before, after, _ = rewritten(_text(body, 18), "name-activations", tmp_path)
    assert _ops(after) == [op]
    assert_same(before, after)


@pytest.mark.parametrize(("opset", "found"), [(13, ["HardSigmoid", "Mul"]), (14, ["HardSwish"])])
def test_an_op_that_the_version_lacks_is_not_made(opset: int, found: list[str], tmp_path: Path) -> None:
    before, after, _ = rewritten(_text(SPELLED["HardSwish"][0], opset), "name-activations", tmp_path)
    assert _ops(after) == found
    assert_same(before, after)


@settings(max_examples=15)
@given(
    case=st.sampled_from(CASES), opset=st.integers(13, 22), shape=st.lists(st.integers(1, 4), min_size=1, max_size=4)
)
def test_drawn_versions_and_shapes(case: tuple[str, str], opset: int, shape: list[int]) -> None:
    text = _text(case[1], opset, shape=",".join(map(str, shape)))
    with TemporaryDirectory() as folder:
        before, after, _ = rewritten(text, "name-activations", Path(folder))
        assert_same(before, after)


@pytest.mark.parametrize(
    ("line", "opset"),
    [
        ("y = Gelu (x)", 20),
        ('y = Gelu <approximate = "tanh"> (x)', 20),
        ("y = HardSwish (x)", 14),
        ("y = Mish (x)", 18),
    ],
)
def test_ops_are_spelled_out(line: str, opset: int, tmp_path: Path) -> None:
    before, after, sites = rewritten(_text(line, opset), "spell-activations", tmp_path)
    assert len(sites) == 1
    assert len(_ops(after)) > 1
    assert_same(before, after)


@pytest.mark.parametrize(
    ("rewrite", "bound", "kinds"),
    [("gelu-to-tanh", 5e-4, {"Tanh"}), ("gelu-to-sigmoid", 0.021, {"Sigmoid"}), ("erf-to-tanh", 4e-4, {"Tanh"})],
)
def test_approximations_keep_their_bound(rewrite: str, bound: float, kinds: set[str], tmp_path: Path) -> None:
    before, after, sites = rewritten(_text(SPELLED["Gelu"][0], 17, shape="50,50"), rewrite, tmp_path)
    assert len(sites) == 1
    assert "Erf" not in _ops(after)
    assert kinds <= set(_ops(after))
    assert_same(before, after, tolerance=bound)  # of outputs that reach 3 and more


@pytest.mark.parametrize(
    "body",
    [
        "a = Div (x, r) b = Erf (a) d = Add (b, one) e = Mul (h, d) y = Mul (w, e)",
        "a = Mul (x, h) b = Erf (a) d = Add (b, one) e = Mul (h, d) y = Mul (x, e)",
        "a = Add (x, three) b = Clip (a, zero, three) d = Div (b, six) y = Mul (x, d)",
    ],
    ids=["of another value", "another scale", "another end"],
)
def test_what_computes_something_else_stays(body: str, tmp_path: Path) -> None:
    assert not rewritten(_text(body, 20), "name-activations", tmp_path)[2]


def test_a_value_inside_that_is_read_stays(tmp_path: Path) -> None:
    body = SPELLED["Gelu"][0].replace("y = ", "y0 = ") + " y = Add (y0, b)"
    before, after, sites = rewritten(_text(body, 20), "name-activations", tmp_path)
    assert len(sites) == 1
    assert "Erf" in _ops(after)
    assert "Gelu" in _ops(after)
    assert_same(before, after)
