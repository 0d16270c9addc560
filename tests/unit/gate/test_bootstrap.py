"""The bootstrap against drawing samples again, one by one; and how often it is wrong."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opscope.gate.bootstrap import FEWEST, effective_count, ratio_interval, spread_of, spread_of_sum
from opscope.gate.comparison import Interval
from opscope.gate.figures import Spread

SAMPLES = st.lists(st.integers(1, 10**9), min_size=FEWEST, max_size=40)


def interval_of(base: list[float] | np.ndarray, new: list[float] | np.ndarray) -> Interval:
    found = ratio_interval(spread_of(base), spread_of(new), seed=0)
    assert found is not None
    return found


def slow_interval(base: np.ndarray, new: np.ndarray) -> tuple[float, float]:
    """Draw again, take medians, divide; 20,000 times."""
    random = np.random.default_rng(7)
    above, below = (np.median(random.choice(runs, (20_000, len(runs))), axis=1) for runs in (new, base))
    ratios = above / below - 1
    low, high = np.quantile(ratios, [0.025, 0.975])
    return float(low), float(high)


@pytest.mark.parametrize("count", [9, 21, 30])
def test_the_interval_is_that_of_drawing_samples_again(count: int) -> None:
    random = np.random.default_rng(count)
    base, new = random.gamma(20, 50, count), random.gamma(20, 55, count)
    low, high = slow_interval(base, new)
    found = interval_of(base, new)
    width = high - low
    assert abs(found.low - low) < 0.15 * width
    assert abs(found.high - high) < 0.15 * width


@pytest.mark.parametrize("draw", ["gamma", "bimodal", "coarse"])
def test_two_runs_of_the_same_are_rarely_called_different(draw: str) -> None:
    random = np.random.default_rng(1)

    def samples() -> np.ndarray:
        if draw == "gamma":
            return random.gamma(8, 100, 30)
        if draw == "coarse":
            return np.round(random.normal(50, 2, 30))
        return random.normal(1000, 20, 30) + 300 * (random.random(30) < 0.2)

    wrong = sum(not interval_of(samples(), samples()).is_noise for _ in range(400))
    assert wrong <= 0.08 * 400


def test_a_drifting_machine_is_not_called_a_change_more_often_than_a_steady_one_would_be() -> None:
    random = np.random.default_rng(2)

    def samples() -> np.ndarray:
        noise, value, found = random.normal(0, 20, 60), 0.0, []
        for step in noise:
            value = 0.7 * value + step
            found.append(1000 + value)
        return np.array(found)

    wrong = sum(not interval_of(samples(), samples()).is_noise for _ in range(300))
    naive = 0.25  # what the same interval does when every sample counts as independent
    assert wrong / 300 < naive / 2


def test_a_shift_of_twice_the_spread_is_found() -> None:
    random = np.random.default_rng(3)
    found = [interval_of(random.normal(1000, 20, 20), random.normal(1040, 20, 20)) for _ in range(200)]
    assert sum(interval.low > 0 for interval in found) >= 198


@given(SAMPLES, SAMPLES)
def test_the_interval_turns_round_with_the_runs_and_is_always_the_same(base: list[int], new: list[int]) -> None:
    there, back = interval_of(base, new), interval_of(new, base)
    assert there == interval_of(base, new)
    assert (1 + there.low) * (1 + back.high) == pytest.approx(1)
    assert (1 + there.high) * (1 + back.low) == pytest.approx(1)
    assert there.low <= there.high


@given(st.lists(st.integers(1000, 10**9), min_size=FEWEST, max_size=40), st.floats(0.5, 4))
def test_the_interval_does_not_depend_on_the_unit(samples: list[int], factor: float) -> None:
    scaled = [np.array(samples) * scale for scale in (1, 1.5, factor, factor * 1.5)]
    base, new, other_base, other_new = (spread_of(values, tick=0) for values in scaled)
    one, other = ratio_interval(base, new, seed=0), ratio_interval(other_base, other_new, seed=0)
    assert one is not None
    assert other is not None
    assert one.low == pytest.approx(other.low, abs=2e-3, rel=1e-5)  # values are kept to a thousandth
    assert one.high == pytest.approx(other.high, abs=2e-3, rel=1e-5)


@pytest.mark.parametrize(("base", "new"), [([1.0] * 5, [1.0] * 9), ([1.0] * 9, [1.0] * 5), ([0.0] * 9, [1.0] * 9)])
def test_too_few_samples_and_samples_of_zero_say_nothing(base: list[float], new: list[float]) -> None:
    assert ratio_interval(spread_of(base), spread_of(new), seed=0) is None


def test_samples_without_spread_have_an_interval_without_width() -> None:
    found = interval_of([100.0] * 10, [110.0] * 10)
    assert (found.low, found.high) == (pytest.approx(0.1), pytest.approx(0.1))


def test_a_difference_of_one_tick_of_a_coarse_clock_proves_little() -> None:
    base, new = (spread_of([ns] * 40, tick=1000) for ns in (12_000, 13_000))
    found = ratio_interval(base, new, seed=0)
    assert found is not None
    assert found.low < 0.05 < 1 / 12 < found.high  # measured 12 us may be 12.5, and 13 may be 12.5
    assert spread_of([3000, 5000, 9000, 5000]).tick == 2000
    assert spread_of([3.5, 4.5]).tick == 1
    assert spread_of([3.5, 4.25]).tick == 0


def test_many_samples_are_kept_as_quantiles() -> None:
    samples = np.random.default_rng(5).normal(1000, 50, 50_000)
    spread = spread_of(samples)
    assert (spread.count, len(spread.values)) == (50_000, 101)
    assert spread.median == pytest.approx(np.median(samples), rel=1e-4)
    assert (spread.values[0], spread.values[-1]) == (round(samples.min(), 3), round(samples.max(), 3))
    found = interval_of(samples, samples * 1.01)
    assert 0.008 < found.low < 0.01 < found.high < 0.012


def test_alike_neighbours_count_for_less_and_independent_ones_in_full() -> None:
    random = np.random.default_rng(4)
    assert effective_count(random.normal(0, 1, 200)) == 200
    assert effective_count(np.cumsum(random.normal(0, 1, 200))) < 20
    assert effective_count(np.full(50, 3.0)) == 50


def test_a_sum_lies_no_further_apart_than_if_all_were_large_at_once() -> None:
    one, other = spread_of([1.0, 2, 3, 4, 5, 6, 7]), spread_of([10.0, 20, 30, 40, 50, 60, 70, 80, 90])
    found = spread_of_sum([one, other])
    assert (found.count, found.values[0], found.values[-1], found.median) == (7, 11.0, 97.0, 54.0)
    assert spread_of_sum([one]) is one


@pytest.mark.parametrize("wrong", [(0, 1.0, (1.0,)), (2, 1.0, ()), (2, 3.0, (1.0, 2.0)), (2, 2.0, (2.0, 1.0))])
def test_a_spread_that_cannot_be_is_refused(wrong: tuple[int, float, tuple[float, ...]]) -> None:
    with pytest.raises(ValueError, match="spread"):
        Spread(*wrong)


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=30))
def test_median_and_distance_from_it_are_those_of_numpy(samples: list[int]) -> None:
    spread = spread_of(samples)
    assert spread.median == np.median(samples)
    assert spread.mad == np.median(np.abs(np.array(samples) - np.median(samples)))
