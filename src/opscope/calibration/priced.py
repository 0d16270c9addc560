"""Measurement, Target → Priced: what a target says of what was measured, with the parts that it adds up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ..core.errors import ModelError, UsageError
from ..estimate.build_report import PeakRam, peak_ram
from ..estimate.cost import Cost, Energy
from ..estimate.estimator import Estimate, estimate
from ..estimate.interpreters import examine, refused
from ..estimate.machines import use_machine
from ..estimate.precision import in_precision, with_precision
from ..estimate.ranges import calibrated_range, energy_shares, range_by, shares
from ..graph.graph import Graph
from ..machine.catalogue import figures
from ..machine.target import Target
from ..readers import graph_of
from ..recording.resources import Range
from .measurements import Measurement, Steps, of_one_op
from .quantities import Quantity
from .terms import Terms, energy_terms, fitted_keys, ram_terms, terms_of, values_of

ENDS = ("smallest", "largest")  # of a figure's range


@dataclass(frozen=True, slots=True)
class Priced:
    """Estimates of what was measured together, each with how often it ran."""

    parts: tuple[tuple[Estimate, float], ...]
    stored: Graph | None = None  # as it is in its file, where that ran: an interpreter may plan it
    ops: tuple[str, ...] = ()  # of the model, that are meant; empty: all of it, and the call

    @property
    def target(self) -> Target:
        """Whose figures the estimates name."""
        return self.parts[0][0].machine.target

    def range(self, quantity: Quantity) -> Range:
        """What the target says, with its range; an error where it says nothing."""
        if quantity is Quantity.RAM:
            return self._ram_range()
        if self.ops:
            return self._ops_range()
        found = [(_told(part, quantity), times) for part, times in self.parts]
        ends = ("value", "low", "high")
        total = Range(*(sum(getattr(each, end) * times for each, times in found) for end in ends))
        if quantity is Quantity.LATENCY and self.target.calibration is not None and len(self.parts) > 1:
            total, _ = calibrated_range(total.value, self._costs, self.target)
        return total

    def terms(self, quantity: Quantity, keys: Sequence[str]) -> Terms:
        """The same as a function of figures."""
        if quantity is Quantity.RAM:
            ram = self._ram()
            return ram_terms(ram.total - (ram.kept or 0 if ram.figure else 0), ram.figure, self.target, keys)
        for part, _ in self.parts if not self.ops else ():
            _told(part, quantity)
        if quantity is Quantity.ENERGY:
            return energy_terms(self._draws, self.target, keys)
        return terms_of(self._costs, self.target, keys)

    def shares(self, quantity: Quantity) -> dict[str, float]:
        """Share of it that is proportional to each figure."""
        if quantity is Quantity.ENERGY:
            return energy_shares(self._draws, self.target)
        if quantity is Quantity.LATENCY:
            return shares(self._costs, self.target)
        ram = self._ram()
        place = {id(figure): key for key, figure in figures(self.target)}
        return {} if ram.figure is None else {place[id(ram.figure)]: (ram.kept or 0) / ram.total}

    @property
    def _costs(self) -> list[tuple[Cost, float]]:
        if self.ops:
            return self._costs_of_ops()
        return [(cost, trips * times) for part, times in self.parts for cost, trips in part.costs]

    @property
    def _draws(self) -> list[tuple[Energy, Cost, float]]:
        return [(energy, cost, trips * times) for part, times in self.parts for energy, cost, trips in part.draws]

    def _costs_of_ops(self) -> list[tuple[Cost, float]]:
        """Costs of the layers that some ops of the model are run as; an error where there is none."""
        layers = [layer for layer in self.parts[0][0].layers if layer.name in self.ops]
        if not layers:
            raise UsageError("runs as a part of another op on the target; expected an op that has a time of its own")
        unknown = next((layer.unknown for layer in layers if layer.cost is None), None)
        if unknown is not None:
            raise UsageError(unknown)
        costs: list[tuple[Cost, float]] = [(layer.cost, layer.trips or 1) for layer in layers if layer.cost is not None]
        if not any(cost.total for cost, _ in costs):
            raise UsageError("takes no time on the target")
        return costs

    def _ops_range(self) -> Range:
        """The time of some ops: errors seen where the target is calibrated, else its figures from end to end."""
        costs, target = self._costs, self.target
        keys = fitted_keys(target)
        low, high = (np.log([getattr(f, end) / f.value for f in values_of(target, keys).values()]) for end in ENDS)
        fast, slow = terms_of(costs, target, keys).ends(low, high)
        value = float(terms_of(costs, target, ()).total(np.zeros((1, 0)))[0][0])
        return calibrated_range(value, costs, target)[0] if target.calibration is not None else Range(value, fast, slow)

    def _ram(self) -> PeakRam:
        """The peak of the report; an error where the report has none."""
        base, _ = self.parts[0]
        examined = None if self.stored is None else examine(self.stored, self.target.runtime)
        if examined is not None and examined.refusals:
            raise ModelError(base.graph.source, "", refused(examined))
        ram = peak_ram(base, examined)
        if base.plan.unknown_tensors or not ram.total:
            raise UsageError(f"{base.plan.unknown_tensors} tensors have no size in the model: its RAM is not known")
        return ram

    def _ram_range(self) -> Range:
        ram, fitted = self._ram(), self.target.ram.calibration
        if fitted is not None:
            return range_by(ram.total, self.shares(Quantity.RAM), self.target, fitted)[0]
        planned = ram.total if ram.figure is None else ram.total - (ram.kept or 0)
        ends = (0.0, 0.0) if ram.figure is None else (ram.figure.smallest, ram.figure.largest)
        return Range(ram.total, *(planned + end for end in ends))


def _told(part: Estimate, quantity: Quantity) -> Range:
    """Latency or energy of one estimate; an error says why there is none."""
    totals = part.totals
    if totals.latency_s is None:
        raise UsageError(totals.withheld)
    if quantity is Quantity.LATENCY:
        return totals.latency_s
    if totals.energy_j is None or not totals.energy_j.value:
        raise UsageError(totals.energy_note)
    return totals.energy_j


class Models:
    """Reads each model that measurements name once, and estimates it as it was measured."""

    def __init__(self) -> None:
        self._read: dict[object, Graph] = {}
        self._last: tuple[object, Target, Priced] | None = None

    def priced(self, row: Measurement, target: Target) -> Priced:
        """What a target says of a row, in its precision and on its cores. Rows of one model come one behind the other:
        it is estimated once for all of them."""
        key = (*row.graph_key, row.precision, row.cores)
        if self._last is None or self._last[0] != key or self._last[1] is not target:
            self._last = key, target, self._priced(row, target)
        return replace(self._last[2], ops=row.ops)

    def _priced(self, row: Measurement, target: Target) -> Priced:
        if isinstance(row.model, Steps):
            machine = use_machine(target, cores=row.cores)
            return Priced(tuple((estimate(graph, machine), times) for graph, times in row.model.graphs(target)))
        key = row.graph_key
        if key not in self._read:
            self._read[key] = graph_of(row.model, shapes=row.shapes, batch=row.batch)
        chosen = with_precision(target if isinstance(row.model, Path) else of_one_op(target), row.precision)
        graph = in_precision(self._read[key], chosen, row.precision)
        as_stored = isinstance(row.model, Path) and not (row.shapes or row.batch or row.precision)
        found = estimate(graph, use_machine(chosen, cores=row.cores))
        return Priced(((found, 1),), self._read[key] if as_stored else None)
