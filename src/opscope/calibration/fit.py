"""Rows of measurements → figures: robust least squares on logarithms, pulled toward the data sheet.

What is fitted are logarithms of figures relative to the target file, so that an error of a factor two counts alike for
a small network and a large one. Each figure has a normal prior around its value; its range is the middle 99 % of it,
and its hard limit. Rows of several machines are fitted together: a figure is its data sheet's value, times a factor
that all machines share, times one of its own, for which small values are likely. Three rows therefore move little more
than the figures that they tell most about, and fifty are not followed into their noise. A row that lies far off counts
less, as under a Student t distribution.

The minimum is found by Gauss–Newton steps. With few rows and many figures, each is solved in the space of rows: for
residuals r, derivatives G (row × figure), prior variances V and weights W, the step is V Gᵀ W (1 + W G V Gᵀ W)⁻¹ W r.
What machines have of their own couples rows of one machine only, so that the large matrix is one block for each machine
and, beside them, what all share, which has the rank of the number of figures (Woodbury).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..core.columns import Floats
from .terms import Terms

NOISE = 0.1  # of the logarithm of a measurement: what repeats and runtimes differ by
FREEDOM = 1.5  # of the Student t: what the model leaves out of a network makes errors many times the noise
MOST_STEPS = 25
_LONGEST_STEP = 0.7
_DAMPING = 0.7  # of a step: which resource binds an op may change on the way
_SMALL_STEP = 2e-3
_MANY_ROWS = 3  # for each figure
_SIGMAS_IN_RANGE = 2 * 2.576  # from end to end of the middle 99 %


@dataclass(frozen=True, slots=True)
class FitRow:
    """A measurement, with the terms that predict it."""

    network: str
    machine: int  # its number among those that are fitted together
    terms: Terms
    log_measured: float
    moves: Floats | None = None  # 1 for each figure that it tells of, 0 for those that others tell of; None: of all


@dataclass(frozen=True, slots=True)
class Priors:
    """Logarithms of figures relative to those that terms were priced with; machine × figure."""

    centre: Floats  # the data sheet
    low: Floats
    high: Floats
    own_sigma: Floats  # figure: how far a machine differs from what machines alike have in common

    @property
    def shared_sigma(self) -> Floats:
        return np.asarray((self.high - self.low).max(axis=0) / _SIGMAS_IN_RANGE)


@dataclass(frozen=True, slots=True)
class Fit:
    """Logarithms of the fitted figures relative to the data sheet, and what is left open of them."""

    shared: Floats
    own: Floats  # machine × figure
    logs: Floats  # machine × figure: relative to what terms were priced with
    sigmas: Floats  # machine × figure


def fit(rows: Sequence[FitRow], priors: Priors, start: Fit | None = None, steps: int = MOST_STEPS) -> Fit:
    """Fit figures to rows; without any, the data sheet."""
    machines, figures = priors.centre.shape
    shared = np.zeros(figures) if start is None else start.shared
    own = np.zeros((machines, figures)) if start is None else start.own
    variances = priors.shared_sigma**2, priors.own_sigma**2
    machine = np.array([row.machine for row in rows], np.int64)
    lowest, highest = (priors.low - priors.centre).min(axis=0), (priors.high - priors.centre).max(axis=0)
    moves = np.array([np.ones(figures) if row.moves is None else row.moves for row in rows])
    scaled = np.zeros((0, figures))
    for _ in range(steps if rows else 0):
        slopes, residuals = linearise(rows, _logs(shared, own, priors))
        slopes = slopes * moves
        weights = 1 / np.sqrt(1 + (residuals / NOISE) ** 2 / FREEDOM) / NOISE
        scaled = slopes * weights[:, None]
        wanted = weights * (residuals + np.einsum("rf,rf->r", slopes, shared + own[machine]))
        pull = weights * solved(scaled, variances, machine, wanted)
        own_pull = np.zeros_like(own)
        np.add.at(own_pull, machine, slopes * pull[:, None])
        steps_to = variances[0] * (slopes.T @ pull) - shared, variances[1] * own_pull - own
        change = max(np.abs(step).max(initial=0.0) for step in steps_to)
        part = min(_DAMPING, _LONGEST_STEP / change) if change else 1.0
        shared, own = np.clip(shared + part * steps_to[0], lowest, highest), own + part * steps_to[1]
        if change < _SMALL_STEP:
            break
    sigmas = _sigmas(scaled, variances, machine[: len(scaled)], machines)
    return Fit(shared, own, _logs(shared, own, priors), sigmas)


def solved(scaled: Floats, variances: tuple[Floats, Floats], machine: npt.NDArray[np.int64], wanted: Floats) -> Floats:
    """(1 + S V₀ Sᵀ + S V₁ Sᵀ within each machine)⁻¹ applied to what is wanted of each row."""
    common = scaled * np.sqrt(variances[0])
    right = np.column_stack((wanted, common))
    for number in np.unique(machine):
        mine = machine == number
        right[mine] = _within(scaled[mine], variances[1], right[mine])
    alone, through = right[:, 0], right[:, 1:]
    inner = np.eye(common.shape[1]) + common.T @ through
    return np.asarray(alone - through @ np.linalg.solve(inner, common.T @ alone))


def _within(scaled: Floats, variances: Floats, right: Floats) -> Floats:
    """(1 + S V Sᵀ)⁻¹ applied to columns; of many more rows than figures in the space of figures, where it is small."""
    rows, figures = scaled.shape
    if rows <= _MANY_ROWS * figures:
        return np.asarray(np.linalg.solve(np.eye(rows) + (scaled * variances) @ scaled.T, right))
    own = scaled * np.sqrt(variances)
    return np.asarray(right - own @ np.linalg.solve(np.eye(figures) + own.T @ own, own.T @ right))


def _logs(shared: Floats, own: Floats, priors: Priors) -> Floats:
    return np.clip(priors.centre + shared + own, priors.low, priors.high)


def linearise(rows: Sequence[FitRow], logs: Floats) -> tuple[Floats, Floats]:
    """Derivative of each row's logarithm by each figure's, and the logarithm of measured ÷ predicted.

    Rows with the same terms are evaluated together.
    """
    slopes, residuals = np.zeros((len(rows), logs.shape[1])), np.zeros(len(rows))
    groups: dict[int, list[int]] = {}
    for number, row in enumerate(rows):
        groups.setdefault(id(row.terms), []).append(number)
    for numbers in groups.values():
        totals, derivatives = rows[numbers[0]].terms.total(logs[[rows[number].machine for number in numbers]])
        slopes[numbers] = derivatives / totals[:, None]
        residuals[numbers] = [rows[number].log_measured for number in numbers] - np.log(totals)
    return slopes, residuals


def _sigmas(scaled: Floats, variances: tuple[Floats, Floats], machine: npt.NDArray[np.int64], machines: int) -> Floats:
    """What the rows leave open of each figure of each machine while the others are as fitted.

    Rows of the machine itself tell of its figure; rows of others tell of what it shares with them.
    """
    told = np.zeros((machines, scaled.shape[1]))  # precision, from a machine's own rows
    np.add.at(told, machine, scaled**2)
    with np.errstate(divide="ignore"):
        through = 1 / (variances[1] + 1 / told)  # of what is shared, from each machine
        found = []
        for number in range(machines):
            shared = 1 / (1 / variances[0] + through.sum(axis=0) - through[number])
            found.append(1 / np.sqrt(1 / (shared + variances[1]) + told[number]))
    return np.array(found)
