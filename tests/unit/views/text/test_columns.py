"""Columns for terminals."""

from __future__ import annotations

from unicodedata import east_asian_width

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opscope.views.text.columns import bar, columns, fit_names, pairs


def width(text: str) -> int:
    return sum(2 if east_asian_width(c) in "WF" else 1 for c in text)


def test_cells_are_aligned_by_column() -> None:
    assert columns(("name", "size"), [("a", "1"), ("long", "1,000")], align="<>", limits={}) == [
        "name   size",
        "────  ─────",
        "a         1",
        "long  1,000",
    ]


def test_a_long_name_loses_its_middle() -> None:
    lines = columns(("name",), [("/model/layer.0/attention/query/MatMul",)], align="<", limits={0: 16})
    assert lines[2] == "/mode…ery/MatMul"
    assert len(lines[2]) == 16


def test_names_cannot_move_the_cursor() -> None:
    lines = columns(("name",), [("evil\x1b[2J\nname",)], align="<", limits={})
    assert lines[2] == "evil\\x1b[2J\\nname"


@given(st.lists(st.tuples(st.text("abc名前ｗ\x00é", max_size=30), st.text("0123456789", max_size=8)), max_size=5))
def test_every_line_is_at_most_as_wide_as_the_rule(rows: list[tuple[str, str]]) -> None:
    lines = columns(("name", "size"), rows, align="<>", limits={0: 12})
    assert len(lines) == len(rows) + 2
    assert all(width(line) <= width(lines[1]) for line in lines)
    assert len(lines[1].split("  ")[0]) <= 12


def test_pairs_align_their_values() -> None:
    assert pairs([("a", "1"), ("long", "2")]) == ["  a     1", "  long  2"]


@pytest.mark.parametrize(
    ("share", "drawn"),
    [(0, ""), (1, "██████████"), (0.5, "█████"), (0.0125, "▏"), (0.55, "█████▌"), (7, "██████████"), (-1, "")],
)
def test_a_bar_has_eighths_of_a_character(share: float, drawn: str) -> None:
    assert bar(share, 10) == drawn


# -- names that differ in what would be cut away

BLOCKS = [f"/features/features.{block}/conv/conv.{n}/conv.{n}.2/Clip_output_0" for block in (2, 3, 12) for n in (0, 1)]


def test_the_number_of_a_block_stays_where_it_tells_names_apart() -> None:
    shown = fit_names(BLOCKS, 44)
    assert len(set(shown)) == len(BLOCKS)
    assert all(f"features.{block}…" in text for text, block in zip(shown, (2, 2, 3, 3, 12, 12), strict=True))
    assert all(text.endswith("/Clip_output_0") for text in shown)
    alone = fit_names(BLOCKS[:1], 44)  # nothing to be told apart from: both ends
    assert alone == [f"{BLOCKS[0][:14]}…{BLOCKS[0][-29:]}"]


def test_names_that_are_the_same_look_the_same() -> None:
    first, again = fit_names([BLOCKS[0], BLOCKS[0]], 30)
    assert first == again


@given(
    st.lists(st.text("ab/._1", min_size=1, max_size=60), min_size=1, max_size=30),
    st.integers(8, 40),
)
def test_different_names_never_look_alike_and_always_fit(names: list[str], limit: int) -> None:
    shown = fit_names(names, limit)
    assert all(len(text) <= limit for text in shown)
    assert len(set(shown)) == len(set(names))
