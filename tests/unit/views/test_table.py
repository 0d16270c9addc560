"""Tables from columns, on a terminal and in Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from opscope.core.units import UNKNOWN
from opscope.views.table import LEFT, Column, known_columns, markdown_table, text_table

COLUMNS: Sequence[Column[tuple[str, int]]] = (
    Column("op", lambda row: row[0], LEFT, 8),
    Column("us", lambda row: str(row[1])),
    Column("energy", lambda _: UNKNOWN),
    Column("", lambda row: "*" if row[1] > 5 else "", LEFT),
)
ROWS = [("conv", 12), ("a_very_long_name", 3)]


def test_columns_in_which_nothing_is_known_are_left_out_and_marks_stay() -> None:
    assert [column.head for column in known_columns(COLUMNS, ROWS)] == ["op", "us", ""]
    assert [column.head for column in known_columns(COLUMNS, [])] == [""]


def test_names_are_cut_and_numbers_stand_to_the_right() -> None:
    assert text_table(known_columns(COLUMNS, ROWS), ROWS) == [
        "op        us",
        "────────  ──  ─",
        "conv      12  *",
        "a_…_name   3",
    ]


def test_markdown_holds_names_whole_and_safe() -> None:
    assert markdown_table(COLUMNS[:2], ROWS) == [
        "| op | us |",
        "| --- | ---: |",
        "| conv | 12 |",
        r"| a\_very\_long\_name | 3 |",
    ]
