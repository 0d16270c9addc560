"""Repeated samples → how far apart they lie, and what they say about the ratio of two medians.

The median of n samples drawn again with replacement is the sample at level U, where U is distributed as the middle
of n uniform numbers: Beta((n+1)/2, (n+1)/2). Drawing U instead of the n samples is the same bootstrap (exactly so for
odd n) in time that does not depend on n, and needs no more than the quantiles of the samples.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from .comparison import Interval
from .figures import Spread

Floats = npt.NDArray[np.float64]

CONFIDENCE = 0.95
FEWEST = 6  # with fewer samples, not even least and most enclose the true median in 95 of 100 cases
_DRAWS = 4000


def spread_of(samples: Sequence[float] | Floats, *, most: int = 101, tick: float | None = None) -> Spread:
    """Samples in the order in which they were taken; of more than `most`, quantiles are kept.

    `tick` is of the clock; where it is not known, what all differences between samples are multiples of.
    """
    values = np.asarray(samples, np.float64)
    step = tick_of(values - values.min()) if tick is None else tick
    ordered = np.sort(values)
    if len(ordered) > most:
        ordered = np.quantile(ordered, np.linspace(0, 1, most))
    effective = min(max(round(effective_count(values), 1), 1.0), len(values))
    return Spread(len(values), effective, tuple(ordered.round(3).tolist()), step)


def tick_of(values: Floats) -> float:
    """The largest whole number that all values are multiples of; 0 where they are not whole, or all zero."""
    whole = values.astype(np.int64)
    return float(np.gcd.reduce(whole)) if len(whole) and bool((whole == values).all()) else 0.0


def spread_of_sum(spreads: Sequence[Spread]) -> Spread:
    """As if all were large at the same time: no sum of such samples lies further apart."""
    if len(spreads) == 1:
        return spreads[0]
    levels = np.linspace(0, 1, min(len(spread.values) for spread in spreads))
    total = sum((np.quantile(spread.values, levels) for spread in spreads), start=np.zeros(len(levels)))
    count, effective = min(spread.count for spread in spreads), min(spread.effective for spread in spreads)
    tick = sum(spread.tick for spread in spreads)
    return Spread(count, effective, tuple(np.maximum.accumulate(total).tolist()), tick)


def effective_count(samples: Floats) -> float:
    """Independent samples that say as much: a machine that drifts repeats itself.

    n (1 − r) ÷ (1 + r) with r the correlation of the ranks of neighbours, where that is above what chance gives.
    """
    count = len(samples)
    if count < FEWEST:
        return float(count)
    _, place, times = np.unique(samples, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(times) - (times + 1) / 2)[place.reshape(-1)]  # of samples that are equal: their mean
    centred = ranks - ranks.mean()
    if not centred.any():
        return float(count)
    correlation = float((centred[1:] * centred[:-1]).sum() / (centred**2).sum())
    if correlation <= 2 / count**0.5:  # two standard errors of independent samples
        return float(count)
    return max(1.0, count * (1 - correlation) / (1 + correlation))


def ratio_interval(base: Spread, new: Spread, *, seed: int) -> Interval | None:
    """Where the relative change of the median lies; None: too few samples to say, or samples of zero."""
    if min(base.count, new.count) < FEWEST or min(base.values[0], new.values[0]) <= 0:
        return None
    random = np.random.default_rng(seed)
    one, other = sorted((base, new), key=_order)
    logs = np.log(_medians(one, random)) - np.log(_medians(other, random))
    logs = np.concatenate((logs, -logs)) if one == other else logs if one is new else -logs
    low, high = np.quantile(logs, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2]).tolist()
    return Interval(float(np.expm1(low)) + 0.0, float(np.expm1(high)) + 0.0, CONFIDENCE, base, new)


def _order(spread: Spread) -> tuple[float, ...]:
    """Whichever run comes first on the command line, the same draws: the interval turns round with the runs."""
    return (spread.count, spread.effective, spread.tick, *spread.values)


def _medians(spread: Spread, random: np.random.Generator) -> Floats:
    """Medians of samples drawn again, each as uncertain as the clock is coarse."""
    values = np.asarray(spread.values)
    middle = (spread.effective + 1) / 2
    level = random.beta(middle, middle, _DRAWS)
    if len(values) == spread.count:
        drawn: Floats = values[np.minimum((level * len(values)).astype(np.int64), len(values) - 1)]
    else:
        drawn = np.interp(level, np.linspace(0, 1, len(values)), values)
    blurred = drawn + spread.tick * random.uniform(-0.5, 0.5, _DRAWS)
    positive: Floats = np.maximum(blurred, values[0] / 2)  # ratios are taken
    return positive
