"""Tables from columns: what stands over a column, in its cells and on which side is said in one place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, TypeVar

from ..core.units import UNKNOWN
from . import markdown
from .text.columns import columns as aligned

Row = TypeVar("Row")
LEFT, RIGHT = "<", ">"


class Column(NamedTuple, Generic[Row]):
    """One column of a table of such rows."""

    head: str
    text: Callable[[Row], str]
    side: str = RIGHT
    limit: int | None = None  # widest that a name is shown on a terminal


def known_columns(columns: Sequence[Column[Row]], rows: Sequence[Row]) -> list[Column[Row]]:
    """Those in which something is known of a row, and those without a head."""
    return [each for each in columns if not each.head or any(each.text(row) != UNKNOWN for row in rows)]


def text_table(columns: Sequence[Column[Row]], rows: Sequence[Row]) -> list[str]:
    """Lines for a terminal: the heads, a rule, and a line for each row."""
    limits = {place: each.limit for place, each in enumerate(columns) if each.limit is not None}
    return aligned(_heads(columns), _cells(columns, rows), align="".join(each.side for each in columns), limits=limits)


def markdown_table(columns: Sequence[Column[Row]], rows: Sequence[Row]) -> list[str]:
    """Lines for a page or a comment."""
    right = [place for place, each in enumerate(columns) if each.side == RIGHT]
    return markdown.table(_heads(columns), _cells(columns, rows), right=right)[:-1]


def _heads(columns: Sequence[Column[Row]]) -> list[str]:
    return [each.head for each in columns]


def _cells(columns: Sequence[Column[Row]], rows: Sequence[Row]) -> list[list[str]]:
    return [[each.text(row) for each in columns] for row in rows]
