"""A batch taken apart into samples, and samples put together, on drawn shapes."""

from __future__ import annotations

import re
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.rewrites.drawn_networks import Drawing
from support.rewrites.rewriting import assert_same, operators, rewrite_file, rewritten

SMALL = st.integers(1, 3)
# From x of [N, S, C], C even, and tokens t of [N, S]: every op keeps samples apart, wherever their axis goes.
FORMS = {
    "rows": "r = Reshape (x, flat) y = MatMul (r, w)",
    "columns": "t1 = Transpose <perm = [2, 0, 1]> (x) r = Reshape (t1, wide) y = MatMul (turned, r)",
    "heads": """
        r = Reshape (x, heads)
        q = Transpose <perm = [0, 2, 1, 3]> (r)
        k = Transpose <perm = [0, 2, 3, 1]> (r)
        s = MatMul (q, k)
        p = Softmax <axis = -1> (s)
        y = MatMul (p, q)""",
    "in-front": """
        r = Reshape (x, packed)
        f = Transpose <perm = [2, 0, 1, 3]> (r)
        z = Constant <value_int = 1> ()
        y = Gather <axis = 0> (f, z)""",
    "normalised": "y = LayerNormalization <axis = 2> (x, gain)",
    "reduced": "a = Constant <value_ints = [-1]> () y = ReduceSum <keepdims = 0> (x, a)",
    "extents": """
        m = Neg (x)
        s = Shape <start = 1> (m)
        f = Cast <to = 1> (s)
        r = ReduceMax (f)
        y = Add (m, r)""",
    "constant of each": "m = Mul (x, each) y = Sub (ones, m)",
    "class token": "e = Expand (token, batched) y = Concat <axis = 1> (e, x)",
    "embedded": "y = Gather <axis = 0> (table, t)",
    "best": "k = Constant <value_ints = [1]> () y, place = TopK <axis = 2> (x, k)",
    "sequence": """
        turn = Transpose <perm = [1, 0, 2]> (x)
        a, y, c = LSTM <hidden_size = 2> (turn, gates, again, , , state, state)""",
    "mixed": "a = Softmax <axis = 2> (x) b = Softmax <axis = 0> (a) y = Relu (b)",
    "cut": "b = Constant <value_ints = [0, 0]> () e = Constant <value_ints = [99, 1]> () y = Slice (x, b, e)",
    "picture": """
        u = Unsqueeze (x, one)
        c = Conv <kernel_shape = [1, 1]> (u, taps)
        y = GlobalMaxPool (c)""",
}


def _model(form: str, samples: int, tokens: int, channels: int) -> tuple[str, dict[str, np.ndarray]]:
    random = np.random.default_rng(samples * 100 + tokens * 10 + channels)

    def floats(*shape: int) -> np.ndarray:
        return random.standard_normal(shape).astype(np.float32)

    def whole(*values: int) -> np.ndarray:
        return np.asarray(values, np.int64)

    n, s, c = samples, tokens, 2 * channels
    weights = {
        "flat": whole(n * s, c),
        "wide": whole(c, n * s),
        "heads": whole(n, s, 2, channels),
        "one": whole(1),
        "packed": whole(n, s, 2, channels),
        "batched": whole(n, 1, c),
        "w": floats(c, 3),
        "turned": floats(3, c),
        "each": floats(n, 1, c),
        "ones": np.ones((n, s, 1), np.float32),
        "token": floats(1, 1, c),
        "table": floats(4, 5),
        "gates": floats(1, 8, c),
        "again": floats(1, 8, 2),
        "state": floats(1, n, 2),
        "taps": floats(2, 1, 1, 1),
        "gain": floats(c),
    }
    body = FORMS[form]
    used = {name: array for name, array in weights.items() if name in re.findall(r"\w+", body)}
    rank = {"embedded": 3, "heads": 4, "reduced": 2, "rows": 2, "columns": 2, "picture": 4}.get(form, 3)
    result = ", ".join("abcdef"[:rank])
    port = f"int64[{n}, {s}] t" if form == "embedded" else f"float[{n}, {s}, {c}] x"
    return f'<ir_version: 9, opset_import: ["" : 18]> g ({port}) => (float[{result}] y) {{ {body} }}', used


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=4)
@given(samples=st.integers(2, 4), tokens=SMALL, channels=SMALL)
def test_a_batch_is_as_many_samples(form: str, samples: int, tokens: int, channels: int) -> None:
    text, weights = _model(form, samples, tokens, channels)
    with TemporaryDirectory() as folder:
        before, after, sites = rewritten(text, "split-batch", Path(folder), **weights)
        assert len(sites) == 1
        assert operators(after).count("Concat") >= 1
        assert_same(before, after)
        joined = Path(folder) / "joined.onnx"
        rewrite_file(after, "join-batch", joined)
        assert_same(before, joined)


def test_ops_that_keep_samples_apart_are_those_of_one_sample_and_back(tmp_path: Path) -> None:
    text, weights = _model("heads", 3, 2, 2)
    before, after, _ = rewritten(text, "split-batch", tmp_path, **weights)
    assert operators(after).count("MatMul") == 3 * 2
    rewrite_file(after, "join-batch", tmp_path / "joined.onnx")
    assert sorted(operators(tmp_path / "joined.onnx")) == sorted(operators(before))


@pytest.mark.parametrize("seed", range(6))
def test_drawn_networks_come_apart_and_together(seed: int, tmp_path: Path) -> None:
    before, apart, together = (tmp_path / f"{name}.onnx" for name in ("before", "apart", "together"))
    net = Drawing(seed)
    net.batch = 2 + seed % 2
    net.save(before)
    assert rewrite_file(before, "split-batch", apart)
    assert_same(before, apart, tolerance=1e-4)
    rewrite_file(apart, "join-batch", together)
    assert_same(before, together, tolerance=1e-4)


@pytest.mark.parametrize(
    "body",
    [
        "y = Softmax <axis = 0> (x)",
        "a = Constant <value_ints = [0]> () y = ReduceMean (x, a)",
        "q, s, z = DynamicQuantizeLinear (x) y = DequantizeLinear (q, s, z)",
        "b = Constant <value_ints = [1]> () e = Constant <value_ints = [2]> () y = Slice (x, b, e)",
        "r = Constant <value_ints = [3, 4, 2]> () y = Reshape (x, r)",
    ],
)
def test_what_one_sample_has_of_another_stays_together(body: str, tmp_path: Path) -> None:
    text = f'<ir_version: 9, opset_import: ["" : 18]> g (float[2, 4, 3] x) => (float[a, b, c] y) {{ {body} }}'
    assert not rewritten(text, "split-batch", tmp_path)[2]


CAMERAS = """<ir_version: 9, opset_import: ["" : 18]>
    g (float[1, 2, 4, 4] l, float[1, 2, 4, 4] r) => (float[n, m, 4, 4] y) {
        a = Conv <kernel_shape = [1, 1]> (l, w)
        b = Conv <kernel_shape = [1, 1]> (r, w)
        c = Relu (a)
        d = Relu (b)
        y = Concat <axis = 0> (c, d)
    }"""
TAPS = np.random.default_rng(0).standard_normal((2, 3, 2, 1, 1)).astype(np.float32)


def test_one_network_behind_several_inputs_runs_once(tmp_path: Path) -> None:
    """As behind the cameras of a car."""
    before, after, sites = rewritten(CAMERAS, "join-batch", tmp_path, w=TAPS[0])
    assert [site.group for site in sites] == ["samples(2 of 1x3x4x4)"]
    assert operators(after) == ["Concat", "Conv", "Relu"]
    assert_same(before, after)


@pytest.mark.parametrize(
    ("change", "kept"),
    [
        pytest.param(("(r, w)", "(r, v)"), ["Conv", "Conv", "Concat", "Relu"], id="weights of their own"),
        pytest.param(("Concat <axis = 0>", "Concat <axis = 1>"), None, id="channels are joined"),
        pytest.param(("=> (", "=> (float[1, 3, 4, 4] c, "), None, id="one is read alone"),
    ],
)
def test_what_is_not_the_same_for_all_samples_stays(
    change: tuple[str, str], kept: list[str] | None, tmp_path: Path
) -> None:
    before, after, _ = rewritten(CAMERAS.replace(*change), "join-batch", tmp_path, w=TAPS[0], v=TAPS[1])
    assert operators(after) == (kept or operators(before))
    assert_same(before, after)
