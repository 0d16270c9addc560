"""Rows of measurements → figures: robust least squares on logarithms, pulled toward the data sheet.

What is fitted are logarithms of figures relative to the target file, so that an error of a factor two counts alike for
a small network and a large one. Each figure has a normal prior around its value; its range is the middle 99 % of it,
and its hard limit. Rows of several machines are fitted together: a figure is its data sheet's value, times a factor
that all machines share, times one of its own, for which small values are likely. Three rows therefore move little more
than the figures that they tell most about, and fifty are not followed into their noise. A row that lies far off counts
less, as under a Student t distribution.

The minimum is found by Gauss–Newton steps. With few rows and many figures, each step is solved in the space of rows: for
residuals r, derivatives G (row × figure), prior variances V and weights W, the step is V Gᵀ W (1 + W G V Gᵀ W)⁻¹ W r.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .terms import Floats, Terms

NOISE = 0.2  # of a logarithm of a measured latency: what repeats and runtimes differ by, and what the model leaves out
FREEDOM = 4.0  # of the Student t: how soon a row counts as an outlier
_MOST_STEPS = 25
_LONGEST_STEP = 0.7
_DAMPING = 0.7  # of a step: which resource binds an op may change on the way
_SMALL_STEP = 2e-3
_SIGMAS_IN_RANGE = 2 * 2.576  # from end to end of the middle 99 %


@dataclass(frozen=True, slots=True)
class Row:
    """A measurement, with the terms that predict it."""

    network: str
    machine: int  # its number among those that are fitted together
    terms: Terms
    log_seconds: float
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Priors:
    """Logarithms relative to the data sheet: limits of each figure, and how far machines differ."""

    low: Floats  # machine × figure
    high: Floats
    own_sigma: Floats  # figure: of a machine's own factor; 0: one machine, or a figure that all share

    @property
    def shared_sigma(self) -> Floats:
        return np.asarray((self.high - self.low).max(axis=0) / _SIGMAS_IN_RANGE)

    @property
    def machines(self) -> int:
        return len(self.low)


@dataclass(frozen=True, slots=True)
class Fit:
    """Logarithms of the fitted figures, and what is left open of them."""

    shared: Floats
    own: Floats  # machine × figure
    sigmas: Floats  # machine × figure: what the rows leave open
    residuals: Floats  # of each row: logarithm of measured ÷ predicted

    @property
    def logs(self) -> Floats:
        return np.asarray(self.shared + self.own)


def fit(rows: Sequence[Row], priors: Priors, start: Fit | None = None, steps: int = _MOST_STEPS) -> Fit:
    """Fit figures to rows; without any, the data sheet."""
    figures, machines = priors.low.shape[1], priors.machines
    shared = np.zeros(figures) if start is None else start.shared
    own = np.zeros((machines, figures)) if start is None else start.own
    variances = priors.shared_sigma**2, priors.own_sigma**2
    machine = np.array([row.machine for row in rows], np.int64)
    same = machine[:, None] == machine[None, :]
    slopes, residuals, weights = np.zeros((len(rows), figures)), np.zeros(len(rows)), np.ones(len(rows))
    inverse = np.zeros((len(rows), len(rows)))
    for _ in range(steps):
        logs = np.clip(shared + own, priors.low, priors.high)
        slopes, residuals = _linearise(rows, logs)
        far = residuals / NOISE
        weights = np.sqrt([row.weight for row in rows] / (1 + far**2 / FREEDOM)) / NOISE
        scaled = slopes * weights[:, None]
        covariance = (scaled * variances[0]) @ scaled.T + same * ((scaled * variances[1]) @ scaled.T)
        inverse = np.linalg.inv(np.eye(len(rows)) + covariance)
        wanted = weights * (residuals + np.einsum("rf,rf->r", slopes, shared + own[machine]))
        pull = weights * (inverse @ wanted)
        new_shared = variances[0] * (slopes.T @ pull)
        new_own = np.zeros_like(own)
        np.add.at(new_own, machine, slopes * pull[:, None])
        new_own *= variances[1]
        change = max(np.abs(new_shared - shared).max(initial=0.0), np.abs(new_own - own).max(initial=0.0))
        part = min(_DAMPING, _LONGEST_STEP / change) if change else 1.0
        shared, own = shared + part * (new_shared - shared), own + part * (new_own - own)
        shared = np.clip(shared, priors.low.min(axis=0), priors.high.max(axis=0))
        if change < _SMALL_STEP:
            break
    logs = np.clip(shared + own, priors.low, priors.high)
    _, residuals = _linearise(rows, logs)
    sigmas = _sigmas(slopes * weights[:, None], inverse, variances, machine, machines)
    return Fit(shared, logs - shared, sigmas, residuals)


def _linearise(rows: Sequence[Row], logs: Floats) -> tuple[Floats, Floats]:
    """Derivative of each row's logarithm by each figure's, and how far measurement and prediction lie apart.

    Rows with the same terms are evaluated together.
    """
    slopes, residuals = np.zeros((len(rows), logs.shape[1])), np.zeros(len(rows))
    groups: dict[int, list[int]] = {}
    for number, row in enumerate(rows):
        groups.setdefault(id(row.terms), []).append(number)
    for numbers in groups.values():
        seconds, derivatives = rows[numbers[0]].terms.latency(logs[[rows[number].machine for number in numbers]])
        slopes[numbers] = derivatives / seconds[:, None]
        residuals[numbers] = [rows[number].log_seconds for number in numbers] - np.log(seconds)
    return slopes, residuals


def _sigmas(
    scaled: Floats,
    inverse: Floats,
    variances: tuple[Floats, Floats],
    machine: np.ndarray[tuple[int], np.dtype[np.int64]],
    machines: int,
) -> Floats:
    """Standard deviation of each figure of each machine, given the rows."""
    found = []
    for number in range(machines):
        # Covariance of this machine's figure with every row: through what is shared, and through its own factor.
        reach = scaled * (variances[0] + (machine == number)[:, None] * variances[1])
        known = np.einsum("rf,rs,sf->f", reach, inverse, reach)
        found.append(np.sqrt(np.maximum(variances[0] + variances[1] - known, 0.0)))
    return np.array(found)
