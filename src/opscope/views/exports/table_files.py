"""Tables for spreadsheets: CSV, and workbooks with a sheet per table. Whatever exports a table writes it with these."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from math import isfinite
from typing import TYPE_CHECKING, BinaryIO

from ...core.errors import UsageError
from ...core.files import as_text

if TYPE_CHECKING:
    from xlsxwriter.worksheet import Worksheet

MOST_SHEET_ROWS = 1_048_575  # of a workbook, without the header
LONGEST_CELL = 32_767  # characters, of a workbook
_LONGEST_SHEET_NAME = 31
_WRITTEN = datetime(2000, 1, 1, tzinfo=UTC)  # the same input gives the same bytes
_NEEDS = "writing .xlsx needs XlsxWriter; expected `pip install 'opscope[xlsx]'`, or csv"


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table. Values are numbers, words, None for unknown; what has parts becomes JSON in one field."""

    name: str
    columns: Sequence[str]
    rows: Iterable[Sequence[object]]
    count: int  # of rows


def write_csv(sheet: Sheet, out: BinaryIO) -> None:
    """Unknown is an empty field."""
    with as_text(out) as text:
        rows = csv.writer(text, lineterminator="\n")
        rows.writerow(sheet.columns)
        rows.writerows([_flat(value) for value in row] for row in sheet.rows)


def write_xlsx(sheets: Sequence[Sheet], out: BinaryIO) -> None:
    """A name is never run as a formula, and never a link."""
    for sheet in sheets:
        if sheet.count > MOST_SHEET_ROWS:
            raise UsageError(
                f"export xlsx: {sheet.name} has {sheet.count:,} rows; expected at most {MOST_SHEET_ROWS:,}, or csv"
            )
    try:
        from xlsxwriter import Workbook
    except ImportError as error:
        raise UsageError(_NEEDS) from error
    with Workbook(out, {"strings_to_formulas": False, "strings_to_urls": False, "in_memory": True}) as book:
        book.set_properties({"created": _WRITTEN})
        for sheet in sheets:
            _fill(book.add_worksheet(sheet.name[:_LONGEST_SHEET_NAME]), sheet)


def _fill(page: Worksheet, sheet: Sheet) -> None:
    page.write_row(0, 0, sheet.columns)
    for number, row in enumerate(sheet.rows, start=1):
        for column, value in enumerate(row):
            found = _flat(value)
            page.write(number, column, found[:LONGEST_CELL] if isinstance(found, str) else found)
    page.freeze_panes(1, 0)


def _flat(value: object) -> object:
    """A value in one field; a number that is none is a word."""
    if isinstance(value, float) and not isfinite(value):
        return str(value)
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list | tuple) else value
