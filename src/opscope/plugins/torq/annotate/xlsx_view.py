"""Annotated as a workbook: one sheet, columns as wide as their longest cell, and a sheet of metrics."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, BinaryIO

from ....core.errors import UsageError
from .annotated import Annotated
from .columns import Headers, Table

if TYPE_CHECKING:
    import pyarrow as pa
    from xlsxwriter import Workbook
    from xlsxwriter.worksheet import Worksheet

SHEET, METRICS = "Detailed Performance Data", "Metrics"
MOST_ROWS = 1_048_576  # of a sheet, with its header
_MARGIN = 2  # characters beside the longest cell
_WIDEST = 120
_WRITTEN = datetime(2000, 1, 1, tzinfo=UTC)  # the same input gives the same bytes
_NEEDS = "writing .xlsx needs XlsxWriter; expected `pip install 'opscope[xlsx]'`, or .csv"


class AnnotatedXlsx:
    """Rows beyond what a sheet holds go on in another."""

    suffix = ".xlsx"

    def __init__(self, *, headers: Headers = Headers.HUMAN) -> None:
        self.headers = headers

    def render(self, annotated: Annotated, out: BinaryIO) -> None:
        try:
            from xlsxwriter import Workbook
        except ImportError as error:
            raise UsageError(_NEEDS) from error
        options = {"constant_memory": True, "strings_to_formulas": False, "strings_to_urls": False}
        with Workbook(out, options) as book:
            book.set_properties({"created": _WRITTEN})
            self._rows(Table(annotated), book)
            _metrics(annotated, book)

    def _rows(self, table: Table, book: Workbook) -> None:
        names = [column.called(self.headers) for column in table.columns]
        sheet, row, sheets = self._sheet(book, names, 0), 1, 1
        widths = [len(name) for name in names]
        for part in table.parts():
            widths = [max(width, _longest(column)) for width, column in zip(widths, part, strict=True)]
            for values in zip(*(column.to_pylist() for column in part), strict=True):
                if row == MOST_ROWS:
                    _set_widths(sheet, widths)
                    sheet, row, sheets = self._sheet(book, names, sheets), 1, sheets + 1
                _write_row(sheet, row, values)
                row += 1
        _set_widths(sheet, widths)

    def _sheet(self, book: Workbook, names: list[str], before: int) -> Worksheet:
        sheet = book.add_worksheet(f"{SHEET} {before + 1}" if before else SHEET)
        for column, name in enumerate(names):
            sheet.write_string(0, column, name)
        return sheet


def _write_row(sheet: Worksheet, row: int, values: tuple[object, ...]) -> None:
    for column, value in enumerate(values):
        if isinstance(value, bool):
            sheet.write_boolean(row, column, value)
        elif isinstance(value, str):
            sheet.write_string(row, column, value[:32767])
        elif isinstance(value, int | float):
            sheet.write_number(row, column, value)


def _longest(column: pa.Array) -> int:
    import pyarrow as pa
    import pyarrow.compute as pc

    length = pc.max(pc.utf8_length(pc.cast(column, pa.string()))).as_py()
    return int(length or 0)


def _set_widths(sheet: Worksheet, widths: list[int]) -> None:
    for column, width in enumerate(widths):
        sheet.set_column(column, column, min(width + _MARGIN, _WIDEST))


def _metrics(annotated: Annotated, book: Workbook) -> None:
    sheet = book.add_worksheet(METRICS)
    sheet.set_column(0, 0, max(len(share.name) for share in annotated.shares) + _MARGIN)
    for column, name in enumerate(("Metric", "Time [us]", "Percent", "Provenance")):
        sheet.write_string(0, column, name)
    for row, share in enumerate(annotated.shares, start=1):
        _write_row(sheet, row, (share.name, share.time_ns / 1000, share.percent, annotated.provenance))
