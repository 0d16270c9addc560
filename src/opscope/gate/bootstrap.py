"""Bootstrap statistics: the spread of repeated samples, and a confidence interval for the ratio of two medians.

A bootstrap draws n samples with replacement and takes their median, many times over. That median is the sample at rank
U × n, where U is the median of n uniform numbers, distributed as Beta((n+1)/2, (n+1)/2). Drawing U directly is the same
bootstrap (exactly so for odd n) in time that does not depend on n, and needs only the quantiles of the samples.

Example: eight latencies of 10 to 17 ms and one outlier of 40 ms. Beta(5, 5) puts U near 0.5; the outlier is the median
in 0.1 % of the draws only, so the interval does not reach it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..core.columns import Floats
from .comparison import Interval
from .figures import Spread

CONFIDENCE = 0.95
FEWEST = 6  # with 5 samples, [least, most] contains the true median in only 1 - 2 × 0.5⁵ = 94 % of cases
_DRAWS = 4000


def spread_of(samples: Sequence[float] | Floats, *, most: int = 101, tick: float | None = None) -> Spread:
    """Return the spread of samples given in the order they were taken; of more than `most`, only quantiles.

    `tick` is the resolution of the clock; if it is not given, the greatest common divisor of all differences is used.
    """
    values = np.asarray(samples, np.float64)
    step = tick_of(values - values.min()) if tick is None else tick
    ordered = np.sort(values)
    if len(ordered) > most:
        ordered = np.quantile(ordered, np.linspace(0, 1, most))
    effective = min(max(round(effective_count(values), 1), 1.0), len(values))
    return Spread(len(values), effective, tuple(ordered.round(3).tolist()), step)


def tick_of(values: Floats) -> float:
    """Return the greatest common divisor of the values; 0 if they are not integers or all are zero."""
    integers = values.astype(np.int64)
    return float(np.gcd.reduce(integers)) if len(integers) and bool((integers == values).all()) else 0.0


def spread_of_sum(spreads: Sequence[Spread]) -> Spread:
    """Return the spread of a sum as if all parts were large at the same time, which is the widest it can be."""
    if len(spreads) == 1:
        return spreads[0]
    # Adding quantiles level by level is the case of perfectly correlated parts.
    levels = np.linspace(0, 1, min(len(spread.values) for spread in spreads))
    total = sum((np.quantile(spread.values, levels) for spread in spreads), start=np.zeros(len(levels)))
    count, effective = min(spread.count for spread in spreads), min(spread.effective for spread in spreads)
    tick = sum(spread.tick for spread in spreads)
    return Spread(count, effective, tuple(np.maximum.accumulate(total).tolist()), tick)


def effective_count(samples: Floats) -> float:
    """Return the number of independent samples that hold the same information.

    Neighbouring samples of a drifting machine are alike, so n of them say less than n independent ones: n (1 − r) ÷ (1
    + r) for a first-order autoregressive series, with r the rank correlation of neighbours. With r = 0.5, 30 samples
    count as 10. A correlation within two standard errors of chance counts as none.
    """
    count = len(samples)
    if count < FEWEST:
        return float(count)
    _, inverse, counts = np.unique(samples, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts + 1) / 2)[inverse.reshape(-1)]  # equal samples share their mean rank
    centred = ranks - ranks.mean()
    if not centred.any():
        return float(count)
    correlation = float((centred[1:] * centred[:-1]).sum() / (centred**2).sum())
    if correlation <= 2 / count**0.5:  # two standard errors of r for independent samples
        return float(count)
    return max(1.0, count * (1 - correlation) / (1 + correlation))


def ratio_interval(base: Spread, new: Spread, *, seed: int) -> Interval | None:
    """Return a confidence interval of the relative change of the median.

    None if there are too few samples, or samples of zero.
    """
    if min(base.count, new.count) < FEWEST or min(base.values[0], new.values[0]) <= 0:
        return None
    # Draw in a fixed order of the two runs, whichever is the base: comparing B with A then gives exactly the inverse
    # interval of A with B. Two equal runs get an interval that is symmetric about no change.
    random = np.random.default_rng(seed)
    first, second = sorted((base, new), key=_sort_key)
    logs = np.log(_medians(first, random)) - np.log(_medians(second, random))
    logs = np.concatenate((logs, -logs)) if first == second else logs if first is new else -logs
    low, high = np.quantile(logs, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2]).tolist()
    return Interval(float(np.expm1(low)) + 0.0, float(np.expm1(high)) + 0.0, CONFIDENCE, base, new)


def median_interval(spread: Spread, *, seed: int) -> tuple[float, float] | None:
    """Return a confidence interval of the median; None if there are too few samples."""
    if spread.count < FEWEST:
        return None
    medians = _medians(spread, np.random.default_rng(seed))
    low, high = np.quantile(medians, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2]).tolist()
    return float(low), float(high)


def _sort_key(spread: Spread) -> tuple[float, ...]:
    """Order two spreads independently of their order on the command line."""
    return (spread.count, spread.effective, spread.tick, *spread.values)


def _medians(spread: Spread, random: np.random.Generator) -> Floats:
    """Return bootstrap medians, each blurred by half a clock tick up or down."""
    values = np.asarray(spread.values)
    # Fewer effective samples give a flatter Beta distribution, hence a wider interval.
    middle = (spread.effective + 1) / 2
    level = random.beta(middle, middle, _DRAWS)
    # All samples are kept: pick one by rank. Otherwise the values are quantiles: interpolate between them.
    if len(values) == spread.count:
        drawn: Floats = values[np.minimum((level * len(values)).astype(np.int64), len(values) - 1)]
    else:
        drawn = np.interp(level, np.linspace(0, 1, len(values)), values)
    blurred = drawn + spread.tick * random.uniform(-0.5, 0.5, _DRAWS)
    positive: Floats = np.maximum(blurred, values[0] / 2)  # keeps the ratio of medians defined
    return positive
