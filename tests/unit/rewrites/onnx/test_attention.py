"""Packed projections split, in the forms in which exporters write them, on drawn shapes."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.rewrites.rewriting import assert_same, operators, rewritten

REWRITE = "split-packed-qkv"
EXTENTS = st.integers(1, 4)
# From the packed result p of [B, S, 3*H*D] to three of [B, H, S, D], the key turned where a Transpose says so.
FORMS = {
    "gathers": """
        a = Constant <value_ints = [{B}, {S}, 3, {H}, {D}]> ()
        r = Reshape (p, a)
        t = Transpose <perm = [2, 0, 3, 1, 4]> (r)
        i0 = Constant <value_int = 0> ()
        i1 = Constant <value_int = 1> ()
        i2 = Constant <value_int = -1> ()
        q = Gather <axis = 0> (t, i0)
        k = Gather <axis = 0> (t, i1)
        v = Gather <axis = 0> (t, i2)""",
    "in-front": """
        sh = Shape (p)
        z = Constant <value_ints = [0]> ()
        e = Constant <value_ints = [2]> ()
        d3 = Constant <value_ints = [3]> ()
        rest = Constant <value_ints = [3, {C}]> ()
        bs = Slice (sh, z, e)
        a = Concat <axis = 0> (bs, rest)
        r = Reshape <allowzero = 1> (p, a)
        u = Unsqueeze (r, z)
        t = Transpose <perm = [3, 1, 2, 0, 4]> (u)
        front = Squeeze (t, d3)
        i0 = Constant <value_int = 0> ()
        i1 = Constant <value_int = 1> ()
        i2 = Constant <value_int = 2> ()
        h = Constant <value_ints = [{B}, {S}, {H}, {D}]> ()
        q1 = Gather <axis = 0> (front, i0)
        k1 = Gather <axis = 0> (front, i1)
        v1 = Gather <axis = 0> (front, i2)
        q2 = Reshape (q1, h)
        k2 = Reshape (k1, h)
        v2 = Reshape (v1, h)
        q = Transpose <perm = [0, 2, 1, 3]> (q2)
        k = Transpose <perm = [0, 2, 1, 3]> (k2)
        v = Transpose <perm = [0, 2, 1, 3]> (v2)""",
    "split-squeeze": """
        a = Constant <value_ints = [{B}, -1, 3, {H}, {D}]> ()
        r = Reshape (p, a)
        t = Transpose <perm = [2, 0, 3, 1, 4]> (r)
        n = Constant <value_ints = [1, 1, 1]> ()
        z = Constant <value_ints = [0]> ()
        q1, k1, v1 = Split <axis = 0> (t, n)
        q = Squeeze (q1, z)
        k = Squeeze (k1, z)
        v = Squeeze (v1, z)""",
    "slice-squeeze": """
        a = Constant <value_ints = [{B}, {S}, 3, {H}, {D}]> ()
        r = Reshape (p, a)
        t = Transpose <perm = [2, 0, 3, 1, 4]> (r)
        z = Constant <value_ints = [0]> ()
        o = Constant <value_ints = [1]> ()
        w2 = Constant <value_ints = [2]> ()
        far = Constant <value_ints = [9223372036854775807]> ()
        q1 = Slice (t, z, o, z)
        k1 = Slice (t, o, w2, z, o)
        v1 = Slice (t, w2, far, z)
        q = Squeeze (q1, z)
        k = Squeeze (k1, z)
        v = Squeeze (v1, z)""",
    "split-last": """
        n = Constant <value_ints = [{C}, {C}, {C}]> ()
        h = Constant <value_ints = [{B}, {S}, {H}, {D}]> ()
        q1, k1, v1 = Split <axis = -1> (p, n)
        q2 = Reshape (q1, h)
        k2 = Reshape (k1, h)
        v2 = Reshape (v1, h)
        q = Transpose <perm = [0, 2, 1, 3]> (q2)
        k = Transpose <perm = [0, 2, 1, 3]> (k2)
        v = Transpose <perm = [0, 2, 1, 3]> (v2)""",
    "in-projection": """
        a = Constant <value_ints = [{B}, {S}, 3, {C}]> ()
        z = Constant <value_ints = [0]> ()
        l = Constant <value_ints = [-2]> ()
        h = Constant <value_ints = [{B}, {S}, {H}, {D}]> ()
        i0 = Constant <value_int = 0> ()
        i1 = Constant <value_int = 1> ()
        i2 = Constant <value_int = 2> ()
        r = Reshape (p, a)
        u = Unsqueeze (r, z)
        t = Transpose <perm = [3, 1, 2, 0, 4]> (u)
        s = Squeeze (t, l)
        q1 = Gather <axis = 0> (s, i0)
        k1 = Gather <axis = 0> (s, i1)
        v1 = Gather <axis = 0> (s, i2)
        q2 = Reshape (q1, h)
        k2 = Reshape (k1, h)
        v2 = Reshape (v1, h)
        q = Transpose <perm = [0, 2, 1, 3]> (q2)
        k = Transpose <perm = [0, 2, 1, 3]> (k2)
        v = Transpose <perm = [0, 2, 1, 3]> (v2)""",
    "heads-first": """
        a = Constant <value_ints = [{B}, {S}, {H}, {D3}]> ()
        n = Constant <value_ints = [{D}, {D}, {D}]> ()
        r = Reshape (p, a)
        q1, k1, v1 = Split <axis = 3> (r, n)
        q = Transpose <perm = [0, 2, 1, 3]> (q1)
        k = Transpose <perm = [0, 2, 1, 3]> (k1)
        v = Transpose <perm = [0, 2, 1, 3]> (v1)""",
}
PRODUCTS = {
    "MatMul+Add": ("m = MatMul (x, w)\n p = Add (m, b)", "{B},{S},{K}", lambda k, n: (k, n)),
    "Add first": ("m = MatMul (x, w)\n p = Add (b, m)", "{B},{S},{K}", lambda k, n: (k, n)),
    "MatMul": ("p = MatMul (x, w)", "{B},{S},{K}", lambda k, n: (k, n)),
    "left": (
        "m = MatMul (w, x)\n t0 = Transpose <perm = [0, 2, 1]> (m)\n p = Identity (t0)",
        "{B},{K},{S}",
        lambda k, n: (n, k),
    ),
    "Gemm": (
        "g = Gemm <transB = 1, alpha = 0.5> (x, w, b)\n"
        "c = Constant <value_ints = [{B}, {S}, -1]> ()\n p = Reshape (g, c)",
        "{M},{K}",
        lambda k, n: (n, k),
    ),
    "Conv": (
        "g = Conv (x, w, b)\n f = Transpose <perm = [0, 2, 3, 1]> (g)\n"
        "c = Constant <value_ints = [{B}, {S}, {N}]> ()\n p = Reshape (f, c)",
        "{B},{K},1,{S}",
        lambda k, n: (n, k, 1, 1),
    ),
}


def _written(form: str, product: str, sizes: dict[str, int], kind: str = "float") -> tuple[str, dict[str, np.ndarray]]:
    sizes["C"], sizes["D3"] = sizes["H"] * sizes["D"], 3 * sizes["D"]
    sizes["N"], sizes["M"] = 3 * sizes["C"], sizes["B"] * sizes["S"]
    lines, shape, weights = PRODUCTS[product]
    body = (lines + FORMS[form]).format(**sizes)
    part = "{kind}[{B},{H},{S},{D}]".format(kind=kind, **sizes)
    text = f"""<ir_version: 8, opset_import: ["" : 17]>
    g ({kind}[{shape.format(**sizes)}] x) => ({part} q2o, {part} ko, {part} vo) {{
        {body}
        q2o = Relu (q)
        ko = Neg (k)
        vo = Abs (v)
    }}"""
    random = np.random.default_rng(sum(sizes.values()))
    type_ = np.float32 if kind == "float" else np.float16
    return text, {
        "w": random.standard_normal(weights(sizes["K"], sizes["N"])).astype(type_),
        "b": random.standard_normal(sizes["N"]).astype(type_),
    }


@pytest.mark.parametrize("product", PRODUCTS)
@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_three_products(form: str, product: str, tmp_path: Path) -> None:
    text, weights = _written(form, product, {"B": 2, "S": 5, "H": 2, "D": 3, "K": 4})
    before, after, sites = rewritten(text, REWRITE, tmp_path, **weights)
    assert len(sites) == 1
    made = operators(after)
    assert sum(made.count(kind) for kind in ("MatMul", "Gemm", "Conv")) == 3
    assert not {"Gather", "Split", "Slice", "Squeeze", "Unsqueeze", "Identity"} & set(made)
    assert made.count("Transpose") == 3
    assert_same(before, after)


@settings(max_examples=12)
@given(
    form=st.sampled_from(sorted(FORMS)),
    product=st.sampled_from(sorted(PRODUCTS)),
    sizes=st.fixed_dictionaries({"B": EXTENTS, "S": EXTENTS, "H": EXTENTS, "D": EXTENTS, "K": EXTENTS}),
    kind=st.sampled_from(["float", "float16"]),
)
def test_drawn_shapes(form: str, product: str, sizes: dict[str, int], kind: str) -> None:
    text, weights = _written(form, product, sizes, kind)
    with TemporaryDirectory() as folder:
        before, after, sites = rewritten(text, REWRITE, Path(folder), **weights)
        assert len(sites) == 1
        assert_same(before, after, tolerance=1e-5 if kind == "float" else 4e-3)


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=3)
@given(
    product=st.sampled_from(sorted(set(PRODUCTS) - {"Gemm"})),
    sizes=st.fixed_dictionaries({"S": EXTENTS, "H": EXTENTS, "D": EXTENTS, "K": EXTENTS}),
)
def test_a_batch_that_is_open_stays_open(form: str, product: str, sizes: dict[str, int]) -> None:
    text, weights = _written(form, product, {"B": 71, **sizes})
    text = text.replace("float[71,", "float[N,").replace("value_ints = [71,", "value_ints = [0,")
    with TemporaryDirectory() as folder:
        before, after, sites = rewritten(text, REWRITE, Path(folder), **weights)
        assert len(sites) == 1
        for batch in (1, 2, 5):
            assert_same(before, after, draws=1, batch=batch)
        ports = onnx.load(after).graph
        assert {port.type.tensor_type.shape.dim[0].dim_param for port in (*ports.input, *ports.output)} == {"N"}


def _attempt(body: str, outputs: str, folder: Path, inputs: str = "float[2,6,8] x") -> tuple[Path, Path, int]:
    text = f'<ir_version: 8, opset_import: ["" : 18]> g ({inputs}) => ({outputs}) {{ {body} }}'
    weight = np.random.default_rng(0).standard_normal((8, 12)).astype(np.float32)
    before, after, sites = rewritten(text, REWRITE, folder, w=weight)
    return before, after, len(sites)


def test_parts_of_unequal_size_in_every_head(tmp_path: Path) -> None:
    """As LeViT has them: keys and queries narrower than values, heads outside."""
    body = """p = MatMul (x, w) a = Constant <value_ints = [2, 6, 2, 6]> () r = Reshape (p, a)
        n = Constant <value_ints = [1, 2, 3]> () q, k, v = Split <axis = 3> (r, n)
        e = Constant <value_ints = [3]> () s = Mul (q, k) s1 = ReduceSum (s, e) y = Sub (v, s1)"""
    before, after, sites = _attempt(body, "float[2,6,2,3] y", tmp_path)
    assert sites == 1
    assert operators(after).count("MatMul") == 3
    assert_same(before, after)


def test_two_parts_one_of_them_an_output_and_read(tmp_path: Path) -> None:
    body = """p = MatMul (x, w) a = Constant <value_ints = [2, 6, 2, 6]> () r = Reshape (p, a)
        t = Transpose <perm = [2, 0, 1, 3]> (r) k, v = Split <axis = 0, num_outputs = 2> (t) y = Relu (k)"""
    before, after, sites = _attempt(body, "float[1,2,6,6] k, float[1,2,6,6] v, float[1,2,6,6] y", tmp_path)
    assert sites == 1
    assert operators(after).count("MatMul") == 2
    assert_same(before, after)


CUT = "k, v = Split <axis = 2, num_outputs = 2> (p) y = Add (k, v)"
OUTPUT = "float[2,6,6] y"


@pytest.mark.parametrize(
    ("body", "outputs", "inputs"),
    [
        (f"p = MatMul (x, w) {CUT}", f"{OUTPUT}, float[2,6,12] p", "float[2,6,8] x"),
        (f"p = MatMul (x, w) {CUT} z = Relu (p)", f"{OUTPUT}, float[2,6,12] z", "float[2,6,8] x"),
        (f"p = MatMul (x, u) {CUT}", OUTPUT, "float[2,6,8] x, float[8,12] u"),
        (
            "p = MatMul (x, w) k, v = Split <axis = 1, num_outputs = 2> (p) y = Add (k, v)",
            "float[2,3,12] y",
            "float[2,6,8] x",
        ),
        (f"p = MatMul (x, w) {CUT}", "float[2,N,6] y", "float[2,N,8] x"),
    ],
    ids=["packed is an output", "packed is read", "no constant", "another axis is cut", "an extent is unknown"],
)
def test_left_alone(body: str, outputs: str, inputs: str, tmp_path: Path) -> None:
    assert _attempt(body, outputs, tmp_path, inputs)[2] == 0


PAIR = "{o}q = QuantizeLinear ({i}, s, z) {o} = DequantizeLinear ({o}q, s, z)"


def _quantised(lines: list[tuple[str, str]]) -> str:
    """Ops, each with a pair after it: result and op of each, by the name that the next reads."""
    return " ".join(f"{name}0 = {op} " + PAIR.format(o=name, i=f"{name}0") for name, op in lines)


def test_quantised_values_stay_on_their_grid(tmp_path: Path) -> None:
    body = "wd = DequantizeLinear <axis = 1> (wq, ws, wz) bd = DequantizeLinear (b, s, z) "
    body += (
        "a = Constant <value_ints = [2, 5, 2, 2, 3]> () i0 = Constant <value_int = 0> ()"
        " i1 = Constant <value_int = 1> () "
        + _quantised(
            [
                ("m", "MatMul (x, wd)"),
                ("p", "Add (m, bd)"),
                ("r", "Reshape (p, a)"),
                ("t", "Transpose <perm = [2, 0, 3, 1, 4]> (r)"),
                ("k1", "Gather <axis = 0> (t, i0)"),
                ("v", "Gather <axis = 0> (t, i1)"),
                ("k", "Transpose <perm = [0, 1, 3, 2]> (k1)"),
                ("y", "MatMul (v, k)"),
            ]
        )
    )
    text = f'<ir_version: 8, opset_import: ["" : 17]> g (float[2,5,4] x) => (float[2,2,5,5] y) {{ {body} }}'
    random = np.random.default_rng(0)
    before, after, sites = rewritten(
        text,
        REWRITE,
        tmp_path,
        wq=random.integers(-99, 99, (4, 12)).astype(np.int8),
        ws=(0.01 + random.random(12) / 99).astype(np.float32),
        wz=np.zeros(12, np.int8),
        b=random.integers(-99, 99, 12).astype(np.int8),
        s=np.float32(0.05),
        z=np.int8(3),
    )
    assert len(sites) == 1
    made = operators(after)
    assert made.count("MatMul") == 3
    assert made.count("Transpose") == 2
    assert "Gather" not in made
    assert made.count("QuantizeLinear") == 2 * 2 + 2 * 2 + 1  # products, biases, moves, and the last product
    assert_same(before, after)
