"""Ends of figures' ranges, and the range of a simulated time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opscope.machine.corners import range_with
from opscope.machine.figure import Figure

FACTORS = st.floats(1.0, 20.0)


def test_without_an_error_of_the_model_the_range_is_that_of_the_figures() -> None:
    assert range_with(None, 3.0, (2.0, 5.0)) == (2.0, 5.0)
    assert range_with(None, 3.0, (4.0, 5.0)) == (3.0, 5.0)


def test_squares_of_both_errors_add_up() -> None:
    low, high = range_with(Figure(1.0, "", 1 / 1.4, 1.4), 10.0, (10.0, 10.0))
    assert (low, high) == (pytest.approx(10 / 1.4), pytest.approx(14.0))


@given(FACTORS, FACTORS, FACTORS)
def test_the_range_holds_both_and_is_no_wider_than_one_on_top_of_the_other(
    faster: float, slower: float, error: float
) -> None:
    low, high = range_with(Figure(1.0, "", 1 / error, error), 1.0, (1 / faster, slower))
    near = 1 + 1e-9
    assert 1 / (faster * error) / near <= low <= near * min(1 / faster, 1 / error)
    assert max(slower, error) / near <= high <= near * slower * error
