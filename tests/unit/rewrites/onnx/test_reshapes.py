"""Chains of ops that only move elements, drawn, and in their shortest form."""

from __future__ import annotations

from math import prod
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.rewrites.rewriting import assert_same, operators, rewritten

SHAPES = [
    (24,),
    (1, 24),
    (4, 6),
    (2, 3, 4),
    (2, 1, 12),
    (2, 2, 3, 2),
    (1, 2, 2, 6),
    (3, 8),
    (2, 3, 1, 2, 2),
    (1, 1, 24),
]


def _text(body: str, inputs: str, outputs: str, opset: int = 17) -> str:
    return f'<ir_version: 8, opset_import: ["" : {opset}]> g ({inputs}) => ({outputs}) {{ {body} }}'


def _written(shape: tuple[int, ...]) -> str:
    return ",".join(map(str, shape))


@st.composite
def chains(draw: st.DrawFn) -> tuple[str, tuple[int, ...]]:
    """Lines of a chain from x of [2, 3, 4] to y, and the shape of y."""
    shape, lines = (2, 3, 4), []
    count = draw(st.integers(2, 6))
    for number in range(count):
        before, after = ("x" if number == 0 else f"v{number}"), ("y" if number == count - 1 else f"v{number + 1}")
        if draw(st.booleans()):
            order = draw(st.permutations(range(len(shape))))
            shape = tuple(shape[axis] for axis in order)
            lines.append(f"{after} = Transpose <perm = {list(order)}> ({before})")
        else:
            shape = draw(st.sampled_from(SHAPES))
            lines.append(
                f"c{number} = Constant <value_ints = {list(shape)}> () {after} = Reshape ({before}, c{number})"
            )
    return " ".join(lines), shape


@settings(max_examples=30)
@given(chains())
def test_a_chain_is_the_same_in_no_more_ops(chain: tuple[str, tuple[int, ...]]) -> None:
    body, shape = chain
    assert prod(shape) == 24
    text = _text(f"{body} z = Relu (y)", "float[2,3,4] x", f"float[{_written(shape)}] z")
    with TemporaryDirectory() as folder:
        before, after, _ = rewritten(text, "merge-layouts", Path(folder))
        assert_same(before, after)
        moves = [kind for kind in operators(after) if kind in ("Reshape", "Transpose")]
        originals = [kind for kind in operators(before) if kind in ("Reshape", "Transpose")]
        assert len(moves) <= len(originals)


@pytest.mark.parametrize(
    ("body", "outputs", "kept"),
    [
        ("a = Transpose <perm = [0, 2, 1]> (x) y = Relu (a)", "float[1,4,1] y", ["Reshape", "Relu"]),
        (
            "s = Constant <value_ints = [4]> () t = Constant <value_ints = [1, 4, 1]> () a = Reshape (x, s)"
            " b = Relu (a) "
            "c = Reshape (b, t) d = Transpose <perm = [1, 0, 2]> (c) y = Reshape (d, s)",
            "float[4] y",
            ["Reshape", "Relu"],
        ),
        (
            "s = Constant <value_ints = [0]> () a = Squeeze (x, s) b = Unsqueeze (a, s) y = Relu (b)",
            "float[1,1,4] y",
            ["Relu"],
        ),
    ],
    ids=["axes of 1 alone move", "nothing moves", "squeezed and back"],
)
def test_shortest_form(body: str, outputs: str, kept: list[str], tmp_path: Path) -> None:
    before, after, _ = rewritten(_text(body, "float[1,1,4] x", outputs), "merge-layouts", tmp_path)
    assert [kind for kind in operators(after) if kind != "Constant"] == kept
    assert_same(before, after)


def test_windows_are_cut_with_four_axes(tmp_path: Path) -> None:
    body = """c = Constant <value_ints = [1, 2, 3, 2, 3, 5]> () a = Reshape (x, c)
        b = Transpose <perm = [0, 1, 3, 2, 4, 5]> (a) d = Constant <value_ints = [4, 9, 5]> () y = Reshape (b, d)"""
    before, after, sites = rewritten(_text(body, "float[1,6,6,5] x", "float[4,9,5] y"), "merge-layouts", tmp_path)
    assert len(sites) == 1
    (order,) = (node.attribute[0].ints for node in onnx.load(after).graph.node if node.op_type == "Transpose")
    assert len(order) == 4
    assert_same(before, after)


def test_a_chain_that_is_read_on_the_way_stays(tmp_path: Path) -> None:
    body = """a = Transpose <perm = [2, 0, 1]> (x) z = Relu (a) y = Transpose <perm = [1, 2, 0]> (a)"""
    text = _text(body, "float[2,3,4] x", "float[4,2,3] z, float[2,3,4] y")
    before, after, sites = rewritten(text, "merge-layouts", tmp_path)
    assert not sites
    assert_same(before, after)


def test_reshapes_merge_where_the_batch_is_unknown(tmp_path: Path) -> None:
    body = """a = Constant <value_ints = [0, 2, 6]> () b = Constant <value_ints = [-1, 4, 3]> ()
        c = Reshape (x, a) d = Reshape (c, b) y = Relu (d)"""
    _, after, sites = rewritten(_text(body, "float[N,12] x", "float[N,4,3] y"), "merge-reshapes", tmp_path)
    assert len(sites) == 1
    assert operators(after).count("Reshape") == 1


@pytest.mark.parametrize(
    "line",
    [
        "y = Identity (r)",
        "y = Cast <to = 1> (r)",
        "y = Transpose <perm = [0, 1]> (r)",
        "y = Dropout (r)",
        "y = Concat <axis = 0> (r)",
        "p = Constant <value_ints = [0, 0, 0, 0]> () y = Pad (r, p)",
        "a = Constant <value_ints = [0]> () e = Constant <value_ints = [99]> () y = Slice (r, a, e)",
        "o = Constant <value_float = 1.0> () y = Mul (r, o)",
        "o = Constant <value_float = 0.0> () y = Sub (r, o)",
        "c = Constant <value_ints = [3, -1]> () y = Reshape (r, c)",
        "c = Constant <value_ints = [1, 1]> () y = Expand (r, c)",
    ],
)
def test_what_does_nothing_goes(line: str, tmp_path: Path) -> None:
    text = _text(f"r = Relu (x) {line} z = Neg (y)", "float[3,4] x", "float[3,4] z")
    before, after, sites = rewritten(text, "drop-no-ops", tmp_path)
    assert len(sites) == 1
    assert [kind for kind in operators(after) if kind != "Constant"] == ["Relu", "Neg"]
    assert_same(before, after)


@pytest.mark.parametrize(
    "line",
    [
        "y = Cast <to = 10> (x)",
        "p = Constant <value_ints = [1, 0, -1, 0]> () y = Pad (x, p)",
        "o = Constant <value_floats = [1.0, 1.0, 2.0, 1.0]> () y = Mul (x, o)",
        "y = Identity (x)",
    ],
    ids=["another type", "moved by its pad", "not one", "an input that is an output"],
)
def test_what_does_something_stays(line: str, tmp_path: Path) -> None:
    kind = "float16" if "to = 10" in line else "float"
    before, after, sites = rewritten(_text(line, "float[3,4] x", f"{kind}[3,4] y"), "drop-no-ops", tmp_path)
    assert not sites
    assert_same(before, after)


def test_a_chain_of_one_grid_keeps_it(tmp_path: Path) -> None:
    pair = "{o}q = QuantizeLinear ({i}, s, z) {o} = DequantizeLinear ({o}q, s, z)".format
    body = f"""s = Constant <value_float = 0.1> ()
        c = Constant <value_ints = [6, 4]> () {pair(o="a", i="x")}
        b0 = Transpose <perm = [0, 2, 1]> (a) {pair(o="b", i="b0")}
        d0 = Transpose <perm = [0, 2, 1]> (b) {pair(o="d", i="d0")}
        e0 = Reshape (d, c) {pair(o="y", i="e0")}"""
    text = _text(body, "float[2,3,4] x", "float[6,4] y")
    before, after, sites = rewritten(text, "merge-layouts", tmp_path, z=np.int8(4))
    assert len(sites) == 1
    assert [kind for kind in operators(after) if "Linear" not in kind and kind != "Constant"] == ["Reshape"]
    assert operators(after).count("QuantizeLinear") == 2
    assert_same(before, after)


@pytest.mark.parametrize(("wanted", "sites_found"), [("[3, -1]", 1), ("[4, 3]", 1), ("[0, 4]", 0)])
def test_a_reshape_loses_a_mark_that_it_does_not_need(wanted: str, sites_found: int, tmp_path: Path) -> None:
    rows = 0 if wanted == "[0, 4]" else 3  # the mark says that a 0 is an extent, not one that is kept
    body = f"c = Constant <value_ints = {wanted}> () y = Reshape <allowzero = 1> (x, c)"
    text = _text(body, f"float[{rows},4] x", "float[N,M] y")
    before, after, sites = rewritten(text, "plain-reshapes", tmp_path)
    assert len(sites) == sites_found
    reshape = onnx.load(after).graph.node[-1]
    assert [each.name for each in reshape.attribute] == ["allowzero"] * (not sites_found)
    assert_same(before, after)
