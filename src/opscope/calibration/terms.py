"""Estimate → Terms: a latency as a function of a target's figures, in columns.

Every part of a cost is a monomial in figures: bytes ÷ bandwidth ÷ efficiency, MACs ÷ rate ÷ share reached. So the
estimator prices a network once, and from then on its latency for other figures is a sum over ops of

    Σ parts that do not overlap  +  max over resources ( Σ parts on that resource )

with each part scaled by the figures that it names. A thousand networks are evaluated in the time that pricing one
takes. Which engine runs an op and what spills stay as they were priced.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..estimate.cost import Cost
from ..machine.catalogue import figures
from ..machine.corners import is_rate
from ..machine.target import Figure, Target

CLOCK = "clocks.core_hz"
CALL = "call_"  # begins the keys of what an inference costs beside its ops
_SECONDS = "second"  # in keys of figures that no clock scales
Floats = npt.NDArray[np.float64]
Powers = tuple[tuple[int, float], ...]  # column of a figure and its exponent


@dataclass(frozen=True, slots=True)
class Terms:
    """Parts of the latency of one network, or of one op, sorted by op and then by resource."""

    seconds: Floats  # of each part, at the figures it was priced with
    exponents: npt.NDArray[np.float64]  # part × figure: 1 for a cost, -1 for a rate
    resources: npt.NDArray[np.int64]  # where the parts of each resource of each op begin
    ops: npt.NDArray[np.int64]  # where the resources of each op begin; those that overlap

    def latency(self, logs: Floats) -> tuple[Floats, Floats]:
        """Seconds, and their derivative by the logarithm of each figure.

        Args:
            logs: machine × figure: logarithms of the figures relative to those priced with.
        """
        parts = self.seconds * np.exp(logs @ self.exponents.T)
        if not len(self.seconds):
            return np.zeros(len(logs)), np.zeros_like(logs)
        sums = np.add.reduceat(parts, self.resources, axis=1)
        longest = np.maximum.reduceat(sums, self.ops, axis=1)
        lengths = np.diff([*self.ops, len(self.resources)])
        binds = sums >= np.repeat(longest, lengths, axis=1)
        widths = np.diff([*self.resources, len(self.seconds)])
        counted = parts * np.repeat(binds, widths, axis=1)
        return longest.sum(axis=1), counted @ self.exponents


def terms_of(costs: Sequence[tuple[Cost, float]], target: Target, keys: Sequence[str]) -> Terms:
    """Terms of a network's costs.

    Args:
        costs: of every op and of the call, with how often each is paid.
        keys: figures of the target that are columns of the terms.
    """
    place = {id(figure): key for key, figure in figures(target)}
    column = {key: number for number, key in enumerate(keys)}
    clock = target.clocks.core_hz.value

    def powers(found: Sequence[Figure]) -> Powers:
        named = [place[id(figure)] for figure in found]
        row = {column[key]: -1.0 if is_rate(key) else 1.0 for key in named if key in column}
        if CLOCK in column and not any(_SECONDS in key for key in named):
            row[column[CLOCK]] = -1.0
        return tuple(sorted(row.items()))

    alone: dict[Powers, float] = {}  # what nothing overlaps adds up, whichever op it is of
    seconds: list[float] = []
    rows: list[Powers] = []
    resources: list[int] = []
    ops: list[int] = []
    for cost, trips in costs:
        overlapping: dict[str, dict[Powers, float]] = {}
        for part in cost.parts:
            table = overlapping.setdefault(part.resource, {}) if part.overlaps else alone
            row = powers(part.figures)
            table[row] = table.get(row, 0.0) + part.cycles * trips / clock
        if len(overlapping) == 1:
            for row, found in next(iter(overlapping.values())).items():
                alone[row] = alone.get(row, 0.0) + found
            continue
        if overlapping:
            ops.append(len(resources))
        for table in overlapping.values():
            resources.append(len(seconds))
            rows += table
            seconds += table.values()
    for row, found in alone.items():
        ops.append(len(resources))
        resources.append(len(seconds))
        rows.append(row)
        seconds.append(found)
    exponents = np.zeros((len(rows), len(keys)))
    for number, row in enumerate(rows):
        for figure, exponent in row:
            exponents[number, figure] = exponent
    return Terms(np.array(seconds, np.float64), exponents, np.array(resources, np.int64), np.array(ops, np.int64))


def fitted_keys(target: Target) -> tuple[str, ...]:
    """Figures that a fit may move: those that make time, and have a range."""
    return tuple(key for key, figure in figures(target) if figure.smallest < figure.largest and makes_time(key))


def makes_time(key: str) -> bool:
    """Whether a latency depends on a figure, as far as an estimate can tell."""
    if key.startswith(("engines[", "memories[")):
        return "picojoules" not in key and not key.endswith(("].bytes", "_extent"))
    return key == CLOCK or key.startswith(CALL)


def is_common(key: str) -> bool:
    """Whether work of every kind depends on a figure."""
    return key == CLOCK or "macs_per_cycle" in key or "vector_bytes_per_cycle" in key


def values_of(target: Target, keys: Sequence[str]) -> Mapping[str, Figure]:
    found = dict(figures(target))
    return {key: found[key] for key in keys}
