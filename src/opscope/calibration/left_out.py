"""Errors of networks left out → ranges: how far off predictions are where each figure rules, and how many such widths
hold the truth as often as a range promises.

A width is a standard deviation of a prediction's logarithm. It rests on what measurements leave open of each figure and
on how far off the model is where that figure rules, each by its share of the time. How many widths a range has is a
quantile of errors ÷ widths. Machines differ in it: times of one are medians of several runtimes, those of another are
of whichever runtime was tried. So half of what counts for a machine are its own networks, half those of all others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..core.columns import Floats
from .fit import FREEDOM

COVERAGE = 0.9
SPREAD = 0.08  # of one latency measured twice, by another runtime, as a standard deviation of its logarithm
_UNSURE = 0.1  # of the time that a figure rules: how far off the model is, to begin with
_PSEUDO_NETWORKS = 0.1  # that tell of a figure what was assumed to begin with
_VARIANCE_STEPS = 60


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Of each row, how far off the prediction of a fit without its network is, and what it rests on."""

    networks: Sequence[str]
    machines: npt.NDArray[np.int64]
    errors: Floats  # logarithm of measured ÷ predicted
    shares: Floats  # row × figure: of the time
    open_: Floats  # row × figure: variances that the fit left open
    own: npt.NDArray[np.bool_]  # figure: of one kind of work, not of all

    def unsure(self) -> Floats:
        """Variances by which the model itself is off where each figure rules."""
        return unsure_of((self.shares * self.own) ** 2, self.open_, self.errors**2, network_weights(self.networks))

    def widths(self, unsure: Floats) -> Floats:
        return np.asarray(np.sqrt(SPREAD**2 + (self.shares**2 * (self.open_ + unsure)).sum(axis=1)))

    def factors(self, unsure: Floats, machines: Iterable[int | None]) -> list[float]:
        """How many widths hold `COVERAGE` of the networks: on each machine; None: on any."""
        scores = np.abs(self.errors) / self.widths(unsure)
        return [quantile(scores, self._weights(machine)) for machine in machines]

    def _weights(self, machine: int | None) -> Floats:
        every = network_weights(self.networks)
        mine = np.zeros(len(every), bool) if machine is None else self.machines == machine
        if mine.all() or not mine.any():
            return every
        weights = np.where(mine, 0.0, every)
        weights[mine] = network_weights([self.networks[row] for row in np.flatnonzero(mine).tolist()])
        weights[~mine] *= weights[mine].sum() / weights[~mine].sum()
        return weights

    def chosen(self, rows: npt.NDArray[np.bool_]) -> LeftOut:
        places = np.flatnonzero(rows)
        return LeftOut(
            [self.networks[row] for row in places.tolist()],
            self.machines[places],
            self.errors[places],
            self.shares[places],
            self.open_[places],
            self.own,
        )

    def reaches(self, folds: npt.NDArray[np.int64]) -> Floats:
        """Half of each row's range, as a logarithm, as the other folds alone tell it: its own error has no part in it.

        Args:
            folds: of each row; networks of one were left out together.
        """
        found = np.zeros(len(self.errors))
        for fold in np.unique(folds):
            here, others = folds == fold, self.chosen(folds != fold)
            unsure = others.unsure()
            widths, machines = self.chosen(here).widths(unsure), self.machines[here]
            kinds = np.unique(machines).tolist()
            factor = dict(zip(kinds, others.factors(unsure, kinds), strict=True))
            found[here] = widths * np.array([factor[machine] for machine in machines.tolist()])
        return found


def network_weights(networks: Sequence[str]) -> Floats:
    """Weights of rows such that each network counts alike, whatever the number of machines it was measured on."""
    counts = Counter(networks)
    return np.array([1 / counts[network] for network in networks])


def unsure_of(squares: Floats, open_: Floats, errors: Floats, weights: Floats) -> Floats:
    """How far off the model itself is where each figure rules: variances that make the errors seen most likely.

    The error of a network left out has the variance s² = a² + Σ (share of a figure)² · (what is open of it + u). What a
    softmax takes is told less well by its bytes than what a convolution takes by its MACs, so its u is larger. Found by
    the multiplicative steps that raise the likelihood of errors under the Student t distribution that figures are
    fitted with, held near where they begin: one network that fell back to a processor does not widen all others.

    Args:
        squares: row × figure: of shares of the time.
        open_: row × figure: variances that the fit left open.
        errors: of each row, squared.
    """
    unsure = np.full(squares.shape[1], _UNSURE**2)
    held = _PSEUDO_NETWORKS * squares.max(axis=0, initial=0.0)
    told = held > 0
    for _ in range(_VARIANCE_STEPS):
        variance = SPREAD**2 + (squares * (open_ + unsure)).sum(axis=1)
        counted = errors * (FREEDOM + 1) / (FREEDOM + errors / variance)
        up = squares.T @ (weights * counted / variance**2) + held / unsure
        down = squares.T @ (weights / variance) + held / _UNSURE**2
        unsure = unsure * np.divide(up, down, out=np.ones_like(up), where=told)
    return np.asarray(unsure * told)


def quantile(widths: Floats, weights: Floats) -> float:
    """The width that holds `COVERAGE` of what was left out."""
    order = np.argsort(widths)
    reached = np.cumsum(weights[order]) / weights.sum()
    return float(widths[order][min(int(np.searchsorted(reached, COVERAGE)), len(widths) - 1)])
