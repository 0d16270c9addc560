"""Markdown: tables, folded parts, and names that cannot act as markup."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ..core.errors import printable

_MARKS = str.maketrans(  # all at once: what stands for one mark holds others
    {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
    | {mark: f"\\{mark}" for mark in "\\`*_[]~"}
    | {mark: f"&#{ord(mark)};" for mark in "|@#!"}
)


def safe(text: str, limit: int = 300) -> str:
    """A name as text: no markup, no mention of a person, no new cell, no line of its own."""
    return printable(text, limit).translate(_MARKS)


def table(
    header: Sequence[str], rows: Sequence[Sequence[str]], *, right: Collection[int] = (), limit: int = 300
) -> list[str]:
    """The lines of a table, and an empty one; columns of numbers stand to the right."""
    marks = ["---:" if column in right else "---" for column in range(len(header))]
    head, *body = ([safe(cell, limit) for cell in row] for row in (header, *rows))
    return [f"| {' | '.join(cells)} |" for cells in (head, marks, *body)] + [""]


def folded(title: str, lines: Sequence[str]) -> list[str]:
    """Lines behind a click."""
    return [f"<details><summary>{safe(title)}</summary>", "", *lines, "</details>", ""] if lines else []
