"""Columns for terminals."""

from __future__ import annotations

from unicodedata import east_asian_width

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opscope.views.text.columns import bar, columns, pairs


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
