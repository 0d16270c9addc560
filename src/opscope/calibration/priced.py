"""Measurement, Target → Priced: what a target says of what was measured, with the costs that it adds up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..core.errors import UsageError
from ..estimate.cost import Cost
from ..estimate.estimator import Estimate, estimate
from ..estimate.machines import use_machine
from ..estimate.precision import in_precision, with_precision
from ..estimate.ranges import calibrated_range
from ..graph.graph import Graph
from ..machine.target import Target
from ..readers import graph_of
from ..recording.resources import Range
from .measurements import Measurement, Steps, of_one_op


@dataclass(frozen=True, slots=True)
class Priced:
    """A latency, and the costs that it is the sum of, each with how often it is paid."""

    latency: Range
    costs: tuple[tuple[Cost, float], ...]
    target: Target  # whose figures the costs name


class Models:
    """Reads each model that measurements name once, and estimates it as it was measured."""

    def __init__(self) -> None:
        self._read: dict[object, Graph] = {}

    def priced(self, row: Measurement, target: Target) -> Priced:
        """What a target says of a row, in its precision and on its cores; an error where it says nothing."""
        if isinstance(row.model, Steps):
            machine = use_machine(target, cores=row.cores)
            return _together([(estimate(graph, machine), times) for graph, times in row.model.graphs(target)])
        key = row.graph_key
        if key not in self._read:
            self._read[key] = graph_of(row.model, shapes=row.shapes, batch=row.batch)
        chosen = with_precision(target if isinstance(row.model, Path) else of_one_op(target), row.precision)
        graph = in_precision(self._read[key], chosen, row.precision)
        return _together([(estimate(graph, use_machine(chosen, cores=row.cores)), 1)])


def _together(parts: Sequence[tuple[Estimate, float]]) -> Priced:
    target = parts[0][0].machine.target
    latencies = []
    for found, times in parts:
        latency = found.totals.latency_s
        if latency is None:
            raise UsageError(found.totals.withheld)
        latencies.append((latency, times))
    costs = tuple((cost, trips * times) for found, times in parts for cost, trips in found.costs)
    ends = ("value", "low", "high")
    latency = Range(*(sum(getattr(each, end) * times for each, times in latencies) for end in ends))
    if target.calibration is not None and len(parts) > 1:
        latency, _ = calibrated_range(latency.value, costs, target)
    return Priced(latency, costs, target)
