"""Views of tables and answers: text, Markdown, HTML, JSON."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from datetime import date
from typing import TextIO

from ..core.errors import printable
from ..core.json_files import write_json
from ..core.units import UNKNOWN
from ..views import markdown
from ..views.text.columns import columns
from .query import Answer
from .table import Table

_WIDEST = 60


class TableText:
    """For a terminal."""

    def render(self, table: Table, out: TextIO) -> None:
        header, rows = _grid(table)
        align = "<" + ">" * len(table.columns)
        for line in columns(header, rows, align=align, limits=dict.fromkeys(range(len(header)), _WIDEST)):
            print(line, file=out)
        for line in _below(table):
            print(line, file=out)


class TableMarkdown:
    """For a page or a comment."""

    def render(self, table: Table, out: TextIO) -> None:
        header, rows = _grid(table)
        print(*markdown.table(header, rows, right=range(1, len(header)))[:-1], sep="\n", file=out)
        for line in _below(table):
            print(f"\n{markdown.safe(line)}", file=out)


class TableHtml:
    """One file that needs nothing else."""

    def render(self, table: Table, out: TextIO) -> None:
        header, rows = _grid(table)
        out.write('<!doctype html><html lang="en"><meta charset="utf-8"><title>opscope table</title><style>')
        out.write("body{font:14px system-ui;color-scheme:light dark}td,th{padding:4px 10px;text-align:right}")
        out.write("td:first-child,th:first-child{text-align:left}</style><table>")
        for tag, group in (("th", [header]), ("td", rows)):
            for row in group:
                out.write("<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in row) + "</tr>")
        out.write("</table>" + "".join(f"<p>{html.escape(line)}</p>" for line in _below(table)) + "</html>\n")


class TableJson:
    """For programs."""

    def render(self, table: Table, out: TextIO) -> None:
        entries = [
            {"row": row, "column": column, "value": e.value, "status": e.status, "note": e.note}
            for (row, column), e in table.entries.items()
        ]
        found = {"metric": table.metric, "unit": table.unit, "rows": table.rows, "columns": table.columns}
        write_json(found | {"cells": entries}, out)


def _grid(table: Table) -> tuple[list[str], list[list[str]]]:
    def shown(row: str, column: str) -> str:
        entry = table.entries.get((row, column))
        text = table.text(row, column)
        return f"{text} {entry.note}" if entry and entry.note and entry.value is not None else text

    return [table.corner, *table.columns], [
        [row, *(shown(row, column) for column in table.columns)] for row in table.rows
    ]


def _below(table: Table) -> Iterable[str]:
    yield f"{table.metric}; {UNKNOWN} is not known, an empty place was not run"
    for place, reason in table.reasons.items():
        yield f"{place}: {printable(reason, 200)}"


class AnswerText:
    """An answer to SQL, as aligned columns."""

    def render(self, answer: Answer, out: TextIO) -> None:
        numbers = ("INT", "DOUBLE", "FLOAT", "DECIMAL", "HUGEINT")
        align = "".join(
            ">" if any(word in kind for word in numbers) and "[" not in kind else "<" for kind in answer.types
        )
        rows = [[shown(value) for value in row] for row in answer.rows]
        limits = dict.fromkeys(range(len(answer.columns)), _WIDEST)
        for line in columns(answer.columns, rows, align=align, limits=limits):
            print(line, file=out)


class AnswerJson:
    """An answer to SQL, one object per row."""

    def render(self, answer: Answer, out: TextIO) -> None:
        write_json([plain(row) for row in answer.dictionaries()], out)


def shown(value: object) -> str:
    """A value for people; null is unknown."""
    if value is None:
        return UNKNOWN
    if isinstance(value, float):
        return f"{value:.6g}"
    return value if isinstance(value, str) else str(plain(value))


def plain(value: object) -> object:
    """A value that JSON has a form for; what is no number is null."""
    if isinstance(value, dict):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, date):  # and times
        return value.isoformat()
    return value if value is None or isinstance(value, str | int) else str(value)
