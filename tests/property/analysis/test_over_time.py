"""Counters over time hold what the spans hold: their areas are busy time and bytes, whatever the bins."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opscope.analysis.timeline.over_time import MOST_BINS, Bins

Work = tuple[npt.NDArray[np.int64], ...]


@st.composite
def lanes(draw: st.DrawFn) -> tuple[int, Work]:
    """Threads, and start, end and bytes of their spans, of which none overlap on one thread."""
    threads, rows = draw(st.integers(1, 4)), []
    longest = draw(st.sampled_from([5, 1_000, 10**7]))
    for _ in range(threads):
        moment = 0
        steps = st.tuples(st.integers(0, longest), st.integers(0, longest), st.integers(0, 10**9))
        for gap, length, size in draw(st.lists(steps, max_size=8)):
            rows.append((moment + gap, moment + gap + length, size))
            moment += gap + length
    return threads, tuple(np.array(rows, np.int64).reshape(-1, 3).T)


def area(samples: npt.NDArray[np.void], width_ns: int) -> float:
    """Of steps, from the first to the last sample."""
    steps = np.diff(samples["time_ns"]) * samples["value"][:-1]
    assert (samples["time_ns"] % width_ns == 0).all()
    return float(steps.sum())


@given(lanes())
def test_the_area_of_a_utilisation_is_the_time_that_threads_were_busy(found: tuple[int, Work]) -> None:
    threads, (start, end, _) = found
    bins = Bins.over(int(end.max(initial=0)))
    values = bins.busy_percent(start, end, threads)
    assert len(values) == bins.count <= MOST_BINS
    assert ((values >= 0) & (values <= 100 + 1e-6)).all()
    busy = area(bins.samples(0, values), bins.width_ns) * threads / 100
    assert busy == pytest.approx(int((end - start).sum()), rel=1e-9, abs=1e-5)


@given(lanes())
def test_the_area_of_a_rate_is_the_bytes_that_moved(found: tuple[int, Work]) -> None:
    _, (start, end, size) = found
    bins = Bins.over(int(end.max(initial=0)) + 1)
    rate = bins.per_ns(start, end, size)
    assert area(bins.samples(3, rate), bins.width_ns) == pytest.approx(int(size.sum()), rel=1e-9, abs=1e-3)


@given(st.integers(0, 10**15))
def test_bins_are_round_cover_the_window_and_are_no_more_than_there_may_be(end_ns: int) -> None:
    bins = Bins.over(end_ns)
    assert str(bins.width_ns).rstrip("0") in ("1", "2", "5")
    assert bins.count <= MOST_BINS
    assert (bins.count - 1) * bins.width_ns < max(end_ns, 1) <= bins.count * bins.width_ns


def test_a_step_is_written_once_and_the_last_sample_is_at_the_end() -> None:
    bins = Bins(10, 4)
    values = bins.busy_percent(np.array([4]), np.array([30]), 2)
    assert bins.samples(2, values).tolist() == [(2, 0, 30.0), (2, 10, 50.0), (2, 30, 0.0), (2, 40, 0.0)]
    assert bins.label == "mean of 10 ns"
