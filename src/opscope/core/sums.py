"""Sums of values of which some are not known: None is unknown, and never 0."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

Number = TypeVar("Number", int, float)


def known_sum(values: Iterable[Number | None]) -> Number | None:
    """What is known, added up; None where nothing is."""
    known = [value for value in values if value is not None]
    return sum(known[1:], known[0]) if known else None


def whole_sum(values: Iterable[Number | None]) -> Number | None:
    """All of them added up; None where one is not known, or there is none."""
    found = list(values)
    return None if None in found else known_sum(found)
