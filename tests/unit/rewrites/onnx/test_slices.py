"""Parts of an axis, cut in one way and in another, on drawn shapes."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.rewrites.rewriting import assert_same, operators, rewritten


@st.composite
def apart(draw: st.DrawFn) -> tuple[str, int]:
    """A model that takes a value apart along an axis, in Slices and Gathers, and the number of parts."""
    axis, rank, opset = draw(st.integers(0, 2)), 3, draw(st.sampled_from([11, 13, 17, 22]))
    sizes = draw(st.lists(st.integers(1, 3), min_size=2, max_size=4))
    shape = [2, 3, 4]
    shape[axis] = sum(sizes)
    lines, outputs, start = [], [], 0
    for number, size in enumerate(sizes):
        part = [*shape[:axis], size, *shape[axis + 1 :]]
        form = draw(st.sampled_from(["Slice", "Gather", "one"] if size == 1 else ["Slice", "Gather"]))
        if form == "Slice":
            given_axis = axis - rank if draw(st.booleans()) else axis
            lines += [
                f"s{number} = Constant <value_ints = [{start}]> ()",
                f"e{number} = Constant <value_ints = [{start + size}]> ()",
                f"a{number} = Constant <value_ints = [{given_axis}]> ()",
                f"p{number} = Slice (x, s{number}, e{number}, a{number})",
            ]
        else:
            places = f"value_int = {start}" if form == "one" else f"value_ints = {list(range(start, start + size))}"
            lines.append(f"i{number} = Constant <{places}> () p{number} = Gather <axis = {axis}> (x, i{number})")
            part = [*shape[:axis], *shape[axis + 1 :]] if form == "one" else part
        lines.append(f"y{number} = Neg (p{number})")
        outputs.append(f"float[{','.join(map(str, part))}] y{number}")
        start += size
    text = f"""<ir_version: 8, opset_import: ["" : {max(opset, 12)}]>
        g (float[{",".join(map(str, shape))}] x0) => ({", ".join(outputs)}) {{ x = Neg (x0) {" ".join(lines)} }}"""
    return text, len(sizes)


@settings(max_examples=15)
@given(apart())
def test_cuts_are_one_split_and_slices_again(model: tuple[str, int]) -> None:
    text, parts = model
    with TemporaryDirectory() as folder:
        before, after, sites = rewritten(text, "cuts-to-split", Path(folder))
        assert len(sites) == 1
        assert operators(after).count("Split") == 1
        assert not {"Slice", "Gather"} & set(operators(after))
        assert_same(before, after)
        assert len(sites[0].removed) == parts


@settings(max_examples=8)
@given(apart())
def test_gathers_are_slices(model: tuple[str, int]) -> None:
    with TemporaryDirectory() as folder:
        before, after, _ = rewritten(model[0], "gather-to-slice", Path(folder))
        assert "Gather" not in operators(after)
        assert_same(before, after)


@pytest.mark.parametrize("opset", [12, 13, 18])
def test_split_is_slices(opset: int, tmp_path: Path) -> None:
    sizes = "Constant <value_ints = [1, 3]> ()"
    split = "<axis = -1, split = [1, 3]> (x)" if opset < 13 else "<axis = -1> (x, n)"
    text = f"""<ir_version: 8, opset_import: ["" : {opset}]> g (float[2,4] x0) => (float[2,1] y, float[2,3] b)
        {{ x = Neg (x0) n = {sizes} a, b = Split {split} y = Neg (a) }}"""
    before, after, sites = rewritten(text, "split-to-slices", tmp_path)
    assert len(sites) == 1
    assert operators(after).count("Slice") == 2
    assert_same(before, after)


def test_one_element_is_gathered(tmp_path: Path) -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]> g (float[2,4,3] x) => (float[2,3] y) {
        s = Constant <value_ints = [-1]> () e = Constant <value_ints = [99]> () a = Constant <value_ints = [1]> ()
        p = Slice (x, s, e, a) y = Squeeze (p, a) }"""
    before, after, sites = rewritten(text, "slice-to-gather", tmp_path)
    assert len(sites) == 1
    assert "Gather" in operators(after)
    assert_same(before, after)


@pytest.mark.parametrize(
    "body",
    [
        "p = Slice (x, zero, one, zero) q = Slice (x, two, far, zero)",
        "p = Slice (x, zero, two, zero) q = Slice (x, one, far, zero)",
        "p = Slice (x, zero, two, zero) q = Slice (x, two, far, one)",
        "p = Slice (x, zero, far, zero, two) q = Slice (x, one, far, zero, two)",
    ],
    ids=["a gap", "an overlap", "two axes", "every other"],
)
def test_left_alone(body: str, tmp_path: Path) -> None:
    names = {"zero": 0, "one": 1, "two": 2, "far": 99}
    constants = " ".join(f"{name} = Constant <value_ints = [{value}]> ()" for name, value in names.items())
    text = f"""<ir_version: 8, opset_import: ["" : 17]> g (float[4,4] x) => (float[A,B] p, float[C,D] q)
        {{ {constants} {body} }}"""
    assert not rewritten(text, "cuts-to-split", tmp_path)[2]
