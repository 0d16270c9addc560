"""Estimate → Terms: a latency, an energy or a peak of RAM as a function of a target's figures, in columns.

Every part of a cost is a monomial in figures: bytes ÷ bandwidth ÷ efficiency, MACs ÷ rate ÷ share reached. So the
estimator prices a network once, and from then on its latency for other figures is a sum over ops of

    Σ parts that do not overlap  +  max over resources ( Σ parts on that resource )

with each part scaled by the figures that it names. A thousand networks are evaluated in the time that pricing one
takes. Which engine runs an op and what spills stay as they were priced. An energy is such a sum too: picojoules of the
work, each proportional to a figure, and watts times each part of the time; RAM is what is planned and what the runtime
keeps.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..core.columns import Floats
from ..estimate.cost import Cost, Energy, Resource
from ..machine.catalogue import figures
from ..machine.corners import is_rate
from ..machine.target import Figure, Target
from .quantities import Quantity

CLOCK = "clocks.core_hz"
CALL = "call_"  # begins the keys of what an inference costs beside its ops
_SECONDS = "second"  # in keys of figures that no clock scales
Powers = tuple[tuple[int, float], ...]  # column of a figure and its exponent


@dataclass(frozen=True, slots=True)
class Terms:
    """Parts of what one network, or one op, takes, sorted by op and then by resource."""

    amounts: Floats  # of each part, at the figures it was priced with: seconds, joules or bytes
    exponents: Floats  # part × figure: 1 for a cost, -1 for a rate
    resources: npt.NDArray[np.int64]  # where the parts of each resource of each op begin
    ops: npt.NDArray[np.int64]  # where the resources of each op begin; those that overlap

    def total(self, logs: Floats) -> tuple[Floats, Floats]:
        """What all parts come to, and its derivative by the logarithm of each figure.

        Args:
            logs: machine × figure: logarithms of the figures relative to those priced with.
        """
        parts = self.amounts * np.exp(logs @ self.exponents.T)
        if not len(self.amounts):
            return np.zeros(len(logs)), np.zeros_like(logs)
        sums = np.add.reduceat(parts, self.resources, axis=1)
        longest = np.maximum.reduceat(sums, self.ops, axis=1)
        lengths = np.diff([*self.ops, len(self.resources)])
        binds = sums >= np.repeat(longest, lengths, axis=1)
        widths = np.diff([*self.resources, len(self.amounts)])
        counted = parts * np.repeat(binds, widths, axis=1)
        return longest.sum(axis=1), counted @ self.exponents

    def ends(self, low: Floats, high: Floats) -> tuple[float, float]:
        """Least and most that it comes to: every rate at the top of its range and every cost at the bottom, and the
        other way round. The ends of figures are logarithms relative to those priced with."""
        rates = self.exponents.min(axis=0, initial=0.0) < 0
        least, most = self.total(np.array([np.where(rates, high, low), np.where(rates, low, high)]))[0].tolist()
        return least, most


def terms_of(costs: Sequence[tuple[Cost, float]], target: Target, keys: Sequence[str]) -> Terms:
    """Terms of a network's latency.

    Args:
        costs: of every op and of the call, with how often each is paid.
        keys: figures of the target that are columns of the terms.
    """
    columns, clock = _Columns(target, keys), target.clocks.core_hz.value
    ops = (
        [
            _Piece(part.resource if part.overlaps else None, part.cycles * trips / clock, columns.of(part.figures))
            for part in cost.parts
        ]
        for cost, trips in costs
    )
    return _terms(ops, len(keys))


def energy_terms(draws: Sequence[tuple[Energy, Cost, float]], target: Target, keys: Sequence[str]) -> Terms:
    """Terms of a network's energy.

    Args:
        draws: what each op draws, and for how long; with how often each runs.
    """
    columns, clock = _Columns(target, keys), target.clocks.core_hz.value
    ops = (
        [
            *(_Piece(None, each * 1e-12 * trips, columns.of(found, clocked=False)) for each, found in energy.work),
            *(
                _Piece(
                    part.resource if part.overlaps else None,
                    watts.value * part.cycles * trips / clock,
                    columns.of((*part.figures, watts)),
                )
                for watts in energy.draws
                for part in cost.parts
            ),
        ]
        for energy, cost, trips in draws
    )
    return _terms(ops, len(keys))


def ram_terms(planned_bytes: int, kept: Figure | None, target: Target, keys: Sequence[str]) -> Terms:
    """Terms of a network's peak of RAM: what is planned for it, and what the runtime keeps whatever runs."""
    pieces = [_Piece(None, planned_bytes, ())]
    if kept is not None:
        pieces.append(_Piece(None, kept.value, _Columns(target, keys).of((kept,), clocked=False)))
    return _terms([pieces], len(keys))


@dataclass(frozen=True, slots=True)
class _Piece:
    """A part of what an op takes."""

    resource: Resource | None  # None: nothing overlaps it
    amount: float
    powers: Powers


class _Columns:
    """Which columns of the terms figures of a target are."""

    def __init__(self, target: Target, keys: Sequence[str]) -> None:
        self.place = {id(figure): key for key, figure in figures(target)}
        self.column = {key: number for number, key in enumerate(keys)}

    def of(self, found: Sequence[Figure], *, clocked: bool = True) -> Powers:
        """Columns and exponents of figures; `clocked`: of a time, told in cycles where no figure has seconds."""
        named = [self.place[id(figure)] for figure in found]
        row = {self.column[key]: -1.0 if is_rate(key) else 1.0 for key in named if key in self.column}
        if clocked and CLOCK in self.column and not any(_SECONDS in key for key in named):
            row[self.column[CLOCK]] = -1.0
        return tuple(sorted(row.items()))


def _terms(pieces: Iterable[Sequence[_Piece]], columns: int) -> Terms:
    """Terms of the pieces of every op."""
    alone: dict[Powers, float] = {}  # what nothing overlaps adds up, whichever op it is of
    amounts: list[float] = []
    rows: list[Powers] = []
    resources: list[int] = []
    ops: list[int] = []
    for op in pieces:
        overlapping: dict[Resource, dict[Powers, float]] = {}
        for piece in op:
            table = overlapping.setdefault(piece.resource, {}) if piece.resource is not None else alone
            table[piece.powers] = table.get(piece.powers, 0.0) + piece.amount
        if len(overlapping) == 1:
            for row, found in next(iter(overlapping.values())).items():
                alone[row] = alone.get(row, 0.0) + found
            continue
        if overlapping:
            ops.append(len(resources))
        for table in overlapping.values():
            resources.append(len(amounts))
            rows += table
            amounts += table.values()
    for row, found in alone.items():
        ops.append(len(resources))
        resources.append(len(amounts))
        rows.append(row)
        amounts.append(found)
    exponents = np.zeros((len(rows), columns))
    for number, row in enumerate(rows):
        for figure, exponent in row:
            exponents[number, figure] = exponent
    return Terms(np.array(amounts, np.float64), exponents, np.array(resources, np.int64), np.array(ops, np.int64))


def fitted_keys(target: Target, quantity: Quantity = Quantity.LATENCY) -> tuple[str, ...]:
    """Figures that a fit to a quantity may move: those that make it, and have a range, whose logarithms there are."""
    ranged = (key for key, figure in figures(target) if 0 < figure.smallest < figure.largest)
    return tuple(key for key in ranged if makes(key) is quantity)


def makes(key: str) -> Quantity | None:
    """Of the quantities that are measured, the one that a figure is fitted to; None: none depends on it smoothly."""
    of_part = key.startswith(("engines[", "memories["))
    if key == "idle_watts" or (of_part and ("picojoules" in key or key.endswith("_watts"))):
        return Quantity.ENERGY
    if key == "runtime.bytes":
        return Quantity.RAM
    if of_part:
        return None if key.endswith(("].bytes", "_extent", "_share")) else Quantity.LATENCY
    return Quantity.LATENCY if key == CLOCK or key.startswith((CALL, "compression.")) else None


def is_common(key: str) -> bool:
    """Whether work of every kind depends on a figure."""
    return key == CLOCK or "macs_per_cycle" in key or "vector_bytes_per_cycle" in key


def values_of(target: Target, keys: Sequence[str]) -> Mapping[str, Figure]:
    found = dict(figures(target))
    return {key: found[key] for key in keys}
