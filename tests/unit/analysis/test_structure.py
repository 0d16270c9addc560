"""Layers and blocks: by names, and by repeated structure where names do not tell."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opscope.analysis.structure import NOT_REPEATED, Repeat, find_repeat, structure_of
from opscope.program.program import OpInfo


@pytest.mark.parametrize(
    ("types", "repeat"),
    [
        ("XABCABCABCY", Repeat(1, 3, 3)),
        ("ABAB", Repeat(0, 2, 2)),
        ("ABCDE", None),
        ("AAAA", None),  # one op over and over is no structure
        ("", None),
        ("SABABCABABCE", Repeat(1, 5, 2)),
    ],
)
def test_the_repeat_that_covers_most_is_found(types: str, repeat: Repeat | None) -> None:
    assert find_repeat(types) == repeat


@given(st.text("ABC", max_size=30))
def test_what_is_called_a_repeat_is_one(types: str) -> None:
    found = find_repeat(types)
    if found is not None:
        blocks = [types[found.first + n * found.length :][: found.length] for n in range(found.count)]
        assert len(set(blocks)) == 1
        assert len(blocks[0]) == found.length
        assert found.count >= 2


def test_names_that_number_layers_are_believed_before_types() -> None:
    ops = [OpInfo(f"/block.{n}/{kind}", kind, "", "") for n in range(2) for kind in ("Conv", "Relu")]
    assert structure_of(ops).blocks == ("/block.*/Conv", "/block.*/Relu") * 2


def test_types_tell_where_names_do_not() -> None:
    kinds = ["Pool", "Conv", "Relu", "Conv", "Relu"]
    found = structure_of([OpInfo(f"n{chr(97 + n)}", kind, "", "") for n, kind in enumerate(kinds)])
    assert found.layers == (NOT_REPEATED, "repeat 1 of 2", "repeat 1 of 2", "repeat 2 of 2", "repeat 2 of 2")
    assert found.blocks == (NOT_REPEATED, *("repeat *, op 1: Conv", "repeat *, op 2: Relu") * 2)
