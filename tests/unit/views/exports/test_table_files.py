"""Tables as CSV and workbooks."""

from __future__ import annotations

from io import BytesIO

import openpyxl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opscope.core.errors import UsageError
from opscope.views.exports.table_files import LONGEST_CELL, MOST_SHEET_ROWS, Sheet, write_csv, write_xlsx

ROWS = [["a", 1, None], ["=1+1", 2.5, ["x", 1]]]
SHEET = Sheet("one", ("name", "value", "more"), ROWS, 2)


def test_unknown_is_an_empty_field_and_what_has_parts_is_json() -> None:
    out = BytesIO()
    write_csv(SHEET, out)
    assert out.getvalue().decode() == 'name,value,more\na,1,\n=1+1,2.5,"[""x"", 1]"\n'


def test_a_workbook_has_a_sheet_per_table_and_runs_no_name() -> None:
    out = BytesIO()
    write_xlsx([SHEET, Sheet("two", ("long",), [["x" * 40_000], [float("inf")]], 2)], out)
    book = openpyxl.load_workbook(out)
    assert book.sheetnames == ["one", "two"]
    assert [[cell.value for cell in row] for row in book["one"]][2] == ["=1+1", 2.5, '["x", 1]']
    assert book["one"]["A3"].data_type == "s"
    assert [len(str(book["two"]["A2"].value)), book["two"]["A3"].value] == [LONGEST_CELL, "inf"]


def test_the_same_table_is_the_same_workbook() -> None:
    first, second = BytesIO(), BytesIO()
    write_xlsx([SHEET], first)
    write_xlsx([SHEET], second)
    assert first.getvalue() == second.getvalue()


def test_a_table_that_no_sheet_holds_is_refused_before_anything_is_written() -> None:
    out = BytesIO()
    with pytest.raises(UsageError, match=r"spans has 1,048,576 rows; expected at most 1,048,575, or csv"):
        write_xlsx([Sheet("spans", ("a",), (), MOST_SHEET_ROWS + 1)], out)
    assert not out.getvalue()


values = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats() | st.text(max_size=20)


@given(st.lists(st.lists(values, min_size=2, max_size=2), max_size=5))
@settings(deadline=None, max_examples=30)
def test_a_workbook_takes_every_value(rows: list[list[object]]) -> None:
    write_xlsx([Sheet("drawn", ("a", "b"), rows, len(rows))], BytesIO())
