"""Figures that a store does not have, such as prices of targets and accuracies of models, from CSV files.

Columns that cells have as well (model, target, precision, …) say which cells a row is about; every other column is a
figure, and its head says which way is better: `target,price_usd:less`, `model,precision,accuracy:more`.
"""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..core.errors import UsageError, did_you_mean, printable
from ..core.files import read_whole
from .spec import LARGEST_BYTES

_DIRECTIONS = ("less", "more")


@dataclass(frozen=True, slots=True)
class FigureTable:
    """One figure, by what cells it is about."""

    name: str
    better: str
    axes: tuple[str, ...]
    values: dict[tuple[str, ...], float]


def read_figure_tables(path: Path, axes: Collection[str]) -> list[FigureTable]:
    """The figures of a file; `axes` are the columns that cells have."""
    expected = "a table of figures in CSV"
    raw = read_whole(path, expected, most_bytes=LARGEST_BYTES)
    try:
        rows = list(csv.reader(raw.decode("utf-8-sig").splitlines()))
    except (UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"{path}: cannot be read ({printable(str(error), 200)}); expected {expected}") from error
    head = [word.strip() for word in rows[0]] if rows else []
    keys = [place for place, word in enumerate(head) if word in axes]
    figures = list(_figures(path, head, keys, axes))
    for line, row in enumerate(rows[1:], start=2):
        if len(row) != len(head):
            raise UsageError(f"{path}: line {line}: {len(row)} fields; expected {len(head)}")
        for place, figure in figures:
            if row[place].strip():
                figure.values[tuple(row[key].strip() for key in keys)] = _number(path, line, row[place])
    return [figure for _, figure in figures]


def _figures(
    path: Path, head: Sequence[str], keys: Sequence[int], axes: Collection[str]
) -> Iterator[tuple[int, FigureTable]]:
    if not keys or len(keys) == len(head):
        raise UsageError(f"{path}: heads {printable(', '.join(head), 200)!r}; expected such as target,price_usd:less")
    for place, word in enumerate(head):
        if place in keys:
            continue
        name, _, better = word.rpartition(":")
        if not name or better not in _DIRECTIONS:
            hint = did_you_mean(word, axes)
            problem = f"head {printable(word)!r} is no column of cells, and does not say which way is better"
            raise UsageError(f"{path}: {problem}; {hint}expected NAME:less or NAME:more")
        yield place, FigureTable(name, better, tuple(head[key] for key in keys), {})


def _number(path: Path, line: int, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if value - value != 0:
        raise UsageError(f"{path}: line {line}: {printable(text)!r}; expected a number, or nothing")
    return value
