"""Statistics of the benchmark file, against other ways to reckon them."""

from __future__ import annotations

from statistics import fmean, median, stdev

from hypothesis import given
from hypothesis import strategies as st

from opscope.views.exports.pytest_benchmark import _stats

samples = st.lists(st.floats(1e-9, 1e3, allow_nan=False), min_size=1, max_size=40).map(sorted)


@given(samples)
def test_statistics_are_those_of_the_samples(data: list[float]) -> None:
    found = _stats(data)
    assert (found["min"], found["max"], found["rounds"]) == (data[0], data[-1], len(data))
    assert (found["mean"], found["median"]) == (fmean(data), median(data))
    assert found["stddev"] == (stdev(data) if len(data) > 1 else 0)
    assert found["min"] <= found["q1"] <= found["median"] <= found["q3"] <= found["max"]  # type: ignore[operator]
    assert found["iqr"] == found["q3"] - found["q1"]  # type: ignore[operator]
    assert found["outliers"] == f"{found['stddev_outliers']};{found['iqr_outliers']}"


def test_quartiles_and_outliers_of_a_known_series() -> None:
    """1 2 3 4 5 6 7 8 90: the halves share the 5; the range reaches to 1.5 × 4 beyond the quartiles."""
    found = _stats([1, 2, 3, 4, 5, 6, 7, 8, 90])
    assert (found["q1"], found["q3"], found["iqr_outliers"], found["hd15iqr"]) == (3, 7, 1, 8)
