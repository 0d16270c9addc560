"""Rewrites of transposes, on drawn orders of axes."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from support.rewrites.rewriting import assert_same, operators, rewritten

SHAPE = (2, 3, 4, 5)
ORDERS = st.permutations(range(4))


@given(ORDERS, ORDERS)
def test_two_transposes_are_one_or_none(first: list[int], second: list[int]) -> None:
    order = [first[axis] for axis in second]
    text = f"""<ir_version: 8, opset_import: ["" : 17]>
    g (float[2,3,4,5] x) => (float[{",".join(str(SHAPE[axis]) for axis in order)}] y) {{
        a = Transpose <perm = {first}> (x)
        y = Transpose <perm = {second}> (a)
    }}"""
    with TemporaryDirectory() as folder:
        before, after, sites = rewritten(text, "merge-transposes", Path(folder))
        assert_same(before, after)
        assert len(sites) == 1
        assert operators(after) == ["Identity" if order == sorted(order) else "Transpose"]
