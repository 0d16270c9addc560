"""Sums in which some values are not known."""

from __future__ import annotations

import pytest

from opscope.core.sums import known_sum, whole_sum


@pytest.mark.parametrize(
    ("values", "known", "whole"),
    [((1, 2), 3, 3), ((1, None), 1, None), ((None, None), None, None), ((), None, None), ((0, None), 0, None)],
)
def test_what_is_not_known_is_no_zero(values: tuple[int | None, ...], known: int | None, whole: int | None) -> None:
    assert known_sum(values) == known
    assert whole_sum(iter(values)) == whole


def test_sums_of_fractions_are_added_from_the_left_as_ever() -> None:
    assert known_sum((0.1, 0.2, 0.3)) == sum((0.1, 0.2, 0.3))
