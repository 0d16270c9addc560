from __future__ import annotations

import numpy as np
import pytest

from opscope.importers import trace_lanes
from opscope.importers.trace_lanes import levels


def columns(*spans: tuple[int, int, int]) -> tuple[np.ndarray, ...]:
    return tuple(np.array(column, np.int64) for column in zip(*spans, strict=True))


def test_nested_spans_have_the_level_of_their_depth() -> None:
    spans = columns((0, 0, 10), (0, 1, 5), (0, 1, 3), (0, 6, 9), (0, 10, 12), (1, 0, 10))
    assert levels(*spans).tolist() == [0, 1, 2, 1, 0, 0]


def test_a_span_without_length_fits_between_two_others() -> None:
    assert levels(*columns((0, 0, 5), (0, 5, 5), (0, 5, 9))).tolist() == [0, 0, 0]


@pytest.mark.parametrize("rounds", [0, 1, 8])
def test_spans_that_overlap_in_a_chain_take_turns_however_long_it_is(
    rounds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace_lanes, "_ROUNDS", rounds)
    start = np.arange(1000)
    level = levels(np.zeros(1000, np.int64), start, start + 2)
    for number in np.unique(level):
        on = np.flatnonzero(level == number)
        assert (start[on][1:] >= start[on][:-1] + 2).all()


def test_no_spans_have_no_levels() -> None:
    nothing = np.zeros(0, np.int64)
    assert levels(nothing, nothing, nothing).tolist() == []
