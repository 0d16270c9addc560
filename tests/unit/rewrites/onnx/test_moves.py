"""Transposes and reshapes that meet through other ops, on drawn orders and shapes."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.rewrites.rewriting import assert_same, operators, rewritten

SHAPE = (2, 3, 4)


def _text(body: str, result: tuple[int, ...], inputs: str = "float[2,3,4] x") -> str:
    return f"""<ir_version: 8, opset_import: ["" : 17]> g ({inputs}) => (float[{",".join(map(str, result))}] y)
        {{ {body} }}"""


def _weights(shape: tuple[int, ...]) -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    return {
        "w": random.standard_normal(shape[-1:]).astype(np.float32),
        "v": random.standard_normal((shape[0], 1, shape[-1])).astype(np.float32),
        "one": np.asarray(1.5, np.float32),
    }


STEPS = ("Relu ({i})", "Mul ({i}, w)", "Add (v, {i})", "Mul ({i}, {i})", "Div ({i}, one)", "Softmax <axis = 1> ({i})")


@settings(max_examples=20)
@given(st.permutations(range(3)), st.lists(st.sampled_from(STEPS), min_size=1, max_size=4))
def test_transposes_meet_through_other_ops(order: list[int], steps: list[str]) -> None:
    back = [order.index(axis) for axis in range(3)]
    body = f"t = Transpose <perm = {order}> (x) "
    for number, step in enumerate(steps):
        body += f"a{number} = {step.format(i='t' if number == 0 else f'a{number - 1}')} "
    body += f"y = Transpose <perm = {back}> (a{len(steps) - 1})"
    turned = tuple(SHAPE[axis] for axis in order)
    with TemporaryDirectory() as folder:
        before, after, sites = rewritten(_text(body, SHAPE), "cancel-transposes", Path(folder), **_weights(turned))
        assert len(sites) == 1
        assert "Transpose" not in operators(after)
        assert_same(before, after)


@pytest.mark.parametrize(
    ("between", "left"),
    [
        ("b = Add (a, m)", 1),  # the mask, as shifted windows have it, is reshaped instead
        ("b = Softmax <axis = -1> (a)", 0),
        ("b = Mul (c, a)", 0),
        ("d = Relu (a) b = Mul (d, d)", 0),
    ],
)
def test_reshapes_meet_through_other_ops(between: str, left: int, tmp_path: Path) -> None:
    body = f"""s = Constant <value_ints = [1, 3, 2, 4, 5]> () r = Constant <value_ints = [-1, 2, 4, 5]> ()
        z = Relu (x) a = Reshape (z, s) {between} y = Reshape (b, r)"""
    mask = "float[3,2,4,5] x, float[1,3,1,4,5] m"
    constant = np.random.default_rng(1).standard_normal((3, 1, 1, 5)).astype(np.float32)
    before, after, sites = rewritten(_text(body, (3, 2, 4, 5), mask), "cancel-reshapes", tmp_path, c=constant)
    assert len(sites) == 1
    assert operators(after).count("Reshape") == left
    assert_same(before, after)


@pytest.mark.parametrize(
    "between", ["b = Softmax <axis = 0> (a)", "b = Add (a, c)"], ids=["along an axis that goes", "broadcast within one"]
)
def test_reshapes_that_matter_stay(between: str, tmp_path: Path) -> None:
    body = f"""s = Constant <value_ints = [2, 3, 20]> () r = Constant <value_ints = [6, 4, 5]> ()
        z = Relu (x) a = Reshape (z, s) {between} y = Reshape (b, r)"""
    constant = np.ones((2, 1, 20), np.float32)
    text = _text(body, (6, 4, 5), "float[6,4,5] x")
    before, after, sites = rewritten(text, "cancel-reshapes", tmp_path, c=constant)
    assert not sites
    assert_same(before, after)


def test_a_transpose_that_is_read_elsewhere_stays(tmp_path: Path) -> None:
    body = """t = Transpose <perm = [1, 0, 2]> (x) a = Relu (t) b = Transpose <perm = [1, 0, 2]> (a)
        c = ReduceSum (a) y = Add (b, c)"""
    before, after, sites = rewritten(_text(body, SHAPE), "cancel-transposes", tmp_path)
    assert not sites
    assert_same(before, after)


@settings(max_examples=8)
@given(st.permutations(range(3)), st.sampled_from(["Add (a, b)", "Mul (a, b)", "Concat <axis = 1> (a, b)"]))
def test_inputs_transposed_alike_are_transposed_once(order: list[int], op: str) -> None:
    turned = [SHAPE[axis] for axis in order]
    result = (turned[0], 2 * turned[1], turned[2]) if "Concat" in op else tuple(turned)
    body = f"n = Neg (x) a = Transpose <perm = {order}> (x) b = Transpose <perm = {order}> (n) y = {op}"
    with TemporaryDirectory() as folder:
        before, after, sites = rewritten(_text(body, result), "join-transposes", Path(folder))
        assert len(sites) == 1
        assert operators(after).count("Transpose") == 1
        assert_same(before, after)


@settings(max_examples=6)
@given(st.permutations(range(3)))
def test_parts_transposed_alike_are_transposed_before(order: list[int]) -> None:
    half = (2, 3, 2)
    result = tuple(half[axis] for axis in order)
    body = f"""n = Constant <value_ints = [2, 2]> () p, q = Split <axis = -1> (x, n) a = Transpose <perm = {order}> (p)
        b = Transpose <perm = {order}> (q) y = Sub (a, b)"""
    with TemporaryDirectory() as folder:
        before, after, sites = rewritten(_text(body, result), "transpose-before-split", Path(folder))
        assert len(sites) == 1
        assert operators(after).count("Transpose") == 1
        assert_same(before, after)
