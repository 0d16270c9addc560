"""Products with constant weights in other forms, on drawn shapes."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.rewrites.rewriting import assert_same, operators, rewritten

K, N = 4, 6
TOLERANCE = {"float": 1e-5, "float16": 1e-2}


def _weights(kind: str = "float") -> dict[str, np.ndarray]:
    random = np.random.default_rng(3)
    type_ = np.float32 if kind == "float" else np.float16
    shapes = {"w": (K, N), "wt": (N, K), "w4": (1, 1, K, N), "b": (N,), "f": (N,), "fk": (K,), "c": (N, K, 1, 1)}
    made = {name: random.standard_normal(shape).astype(type_) for name, shape in shapes.items()}
    return made | {"eighth": np.asarray(0.125, type_), "u": random.standard_normal((K, N)).astype(type_)}


def _text(body: str, shape: list[int], result: list[int], kind: str = "float", opset: int = 17) -> str:
    given_, made = (",".join(map(str, each)) for each in (shape, result))
    return f"""<ir_version: 8, opset_import: ["" : {opset}]>
        g ({kind}[{given_}] x0) => ({kind}[{made}] z) {{ x = Neg (x0) {body} z = Neg (y) }}"""


PRODUCTS = {
    "MatMul": "y = MatMul (x, w)",
    "MatMul+Add": "m = MatMul (x, w) y = Add (m, b)",
    "Add+MatMul": "m = MatMul (x, w) y = Add (b, m)",
}
LEADS = st.lists(st.integers(1, 3), min_size=1, max_size=3)
FORMS = {
    "matmul-to-gemm": {"Gemm"},
    "matmul-to-conv": {"Conv"},
    "flatten-matmul": {"MatMul", "Reshape"},
}


@settings(max_examples=20)
@given(st.sampled_from(sorted(FORMS)), st.sampled_from(sorted(PRODUCTS)), LEADS, st.sampled_from(["float", "float16"]))
def test_products_in_another_form(rewrite: str, product: str, lead: list[int], kind: str) -> None:
    text = _text(PRODUCTS[product], [*lead, K], [*lead, N], kind)
    with TemporaryDirectory() as folder:
        before, after, sites = rewritten(text, rewrite, Path(folder), **_weights(kind))
        assert len(sites) == (0 if rewrite == "flatten-matmul" and len(lead) == 1 else 1)
        assert not sites or FORMS[rewrite] <= set(operators(after))
        assert_same(before, after, tolerance=TOLERANCE[kind])


@pytest.mark.parametrize("opset", [11, 17, 22])
@pytest.mark.parametrize(
    "case",
    [
        ("gemm-to-matmul", "y = Gemm <transB = 1, alpha = 0.5, beta = 2.0> (x, wt, b)", [3, K], [3, N], "Gemm"),
        ("gemm-to-matmul", "y = Gemm (x, w)", [3, K], [3, N], "Gemm"),
        ("conv-to-matmul", "y = Conv (x, c, b)", [2, K, 3, 5], [2, N, 3, 5], "Conv"),
        ("conv-to-matmul", "y = Conv (x, c)", [2, K, 3, 5], [2, N, 3, 5], "Conv"),
        ("fold-scale", "m = MatMul (x, w) y = Mul (m, eighth)", [2, 3, K], [2, 3, N], "Mul"),
        ("fold-scale", "m = MatMul (x, w) a = Add (m, b) y = Mul (f, a)", [2, 3, K], [2, 3, N], "Mul"),
        ("fold-scale", "m = Gemm (x, w, b) y = Div (m, eighth)", [3, K], [3, N], "Div"),
        (
            "fold-scale",
            "m = MatMul (x, w) t = Transpose <perm = [0, 2, 1]> (m) y = Mul (t, eighth)",
            [2, 3, K],
            [2, N, 3],
            "Mul",
        ),
        (
            "fold-scale",
            "q = MatMul (x, w) k = MatMul (x, u) t = Transpose <perm = [0, 2, 1]> (k)"
            " p = MatMul (q, t) y = Mul (p, eighth)",
            [2, 3, K],
            [2, 3, 3],
            "Mul",
        ),
        ("fold-scale-ahead", "s = Mul (x, fk) m = MatMul (s, w) y = Add (m, b)", [2, 3, K], [2, 3, N], "Mul"),
        (
            "turn-product",
            "m = MatMul (x, w) a = Add (m, b) y = Transpose <perm = [0, 2, 1]> (a)",
            [2, 3, K],
            [2, N, 3],
            "",
        ),
    ],
)
def test_rewritten(case: tuple[str, str, list[int], list[int], str], opset: int, tmp_path: Path) -> None:
    rewrite, body, shape, result, gone = case
    before, after, sites = rewritten(_text(body, shape, result, opset=opset), rewrite, tmp_path, **_weights())
    assert len(sites) == 1
    assert gone not in operators(after)
    assert_same(before, after)


def test_keys_are_projected_as_they_are_read(tmp_path: Path) -> None:
    body = """h = Constant <value_ints = [2, 3, 2, 3]> () m = MatMul (x, w) a = Add (m, b) r = Reshape (a, h)
        y = Transpose <perm = [0, 2, 3, 1]> (r)"""
    before, after, sites = rewritten(_text(body, [2, 3, K], [2, 2, 3, 3]), "turn-product", tmp_path, **_weights())
    assert len(sites) == 1
    assert [each for each in operators(after) if each != "Neg"] == ["Transpose", "MatMul", "Add", "Reshape"]
    assert_same(before, after)


@pytest.mark.parametrize(
    ("moves", "result"),
    [("r = Reshape (m, flat)", [6, N]), ("r = Transpose <perm = [0, 2, 1]> (m)", [2, N, 3])],
    ids=["LeViT", "channels second"],
)
def test_a_norm_after_moves_is_taken_in(moves: str, result: list[int], tmp_path: Path) -> None:
    body = (
        f"flat = Constant <value_ints = [6, {N}]> () m = MatMul (x, w) {moves} y = BatchNormalization (r, f, b, f, v)"
    )
    spread = np.linspace(0.5, 2, N).astype(np.float32)
    text = _text(body, [2, 3, K], result)
    before, after, sites = rewritten(text, "fold-norm-past-moves", tmp_path, v=spread, **_weights())
    assert len(sites) == 1
    assert "BatchNormalization" not in operators(after)
    assert_same(before, after)


def test_a_norm_of_another_axis_stays(tmp_path: Path) -> None:
    body = "m = MatMul (x, w) y = BatchNormalization (m, f, b, f, v)"
    weights = _weights() | {"v": np.ones(N, np.float32)}
    assert not rewritten(_text(body, [2, N, K], [2, N, N]), "fold-norm-past-moves", tmp_path, **weights)[2]


def test_reshapes_around_a_product_go(tmp_path: Path) -> None:
    body = """a1 = Constant <value_ints = [6, 4]> () c1 = Constant <value_ints = [2, 3, 6]> () f1 = Reshape (x, a1)
        m = MatMul (f1, w) y = Reshape (m, c1)"""
    before, after, sites = rewritten(_text(body, [2, 3, K], [2, 3, N]), "unflatten-matmul", tmp_path, **_weights())
    assert len(sites) == 1
    assert "Reshape" not in operators(after)
    assert_same(before, after)


@pytest.mark.parametrize(
    ("rewrite", "body"),
    [
        ("fold-scale", "m = MatMul (x, w) a = Mul (m, eighth) y = Add (a, m)"),
        ("fold-scale", "m = MatMul (x, w) a = Mul (m, m) y = Add (a, m)"),
        ("fold-scale-ahead", "s = Mul (x, fk) m = MatMul (s, w) n = MatMul (s, u) y = Add (m, n)"),
        ("matmul-to-gemm", "t = MatMul (r0, x) v = Transpose (t) o = MatMul (t, v) y = Add (o, o)"),
    ],
    ids=["read without the factor", "no constant factor", "read with the factor", "no constant weights"],
)
def test_left_alone(rewrite: str, body: str, tmp_path: Path) -> None:
    text = _text(body, [3, K], [3, 3] if "r0" in body else [3, N]).replace("x0) =>", "x0, float[3,3] r0) =>")
    assert not rewritten(text, rewrite, tmp_path, **_weights())[2]
