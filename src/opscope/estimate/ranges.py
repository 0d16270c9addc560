"""Cost → Range: how far a calibrated prediction may lie off.

A calibrated target's figures have the ranges that measurements left open, and it knows how far predictions were off for
networks that were left out of the fit. A prediction's logarithm has the spread of those, and the spread that each
figure brings by its share of the time; so many widths of both together held the truth as often as the range promises.
A network that rests on figures nobody measured gets a wider range by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import exp, hypot, log, sqrt

from ..machine.calibration import Calibration
from ..machine.catalogue import figures
from ..machine.target import Figure, Target
from ..recording.resources import Range
from .cost import Cost, Energy

RANGE_SIGMAS = 2 * 1.645  # from end to end of a fitted figure's range, its middle 90 %
_STRANGE = 1.5  # times the share of time that a figure had in any network that was measured
_SLIGHT = 0.1  # a share below which nothing is strange


def shares(costs: Iterable[tuple[Cost, float]], target: Target) -> dict[str, float]:
    """Share of the time that is proportional to each figure, by key; what hides behind other work counts nothing."""
    place = {id(figure): key for key, figure in figures(target)}
    cycles: dict[str, float] = {}
    total = 0.0
    for cost, trips in costs:
        total += cost.total * trips
        for part in cost.binding():
            for figure in part.figures:
                key = place.get(id(figure), "")
                cycles[key] = cycles.get(key, 0.0) + part.cycles * trips
    return {key: found / total for key, found in cycles.items() if key} if total else {}


def energy_shares(draws: Iterable[tuple[Energy, Cost, float]], target: Target) -> dict[str, float]:
    """Share of the energy that is proportional to each figure, by key: of work, of power, and of its time."""
    place = {id(figure): key for key, figure in figures(target)}
    joules: dict[str, float] = {}
    total = 0.0
    for energy, cost, trips in draws:
        watts = sum(figure.value for figure in energy.draws)
        parts = [(found, picojoules * 1e-12) for picojoules, found in energy.work]
        parts += [((figure,), figure.value * cost.total / target.clocks.core_hz.value) for figure in energy.draws]
        total += sum(part for _, part in parts) * trips
        parts += [(part.figures, watts * part.cycles / target.clocks.core_hz.value) for part in cost.binding()]
        for found, part in parts:
            for figure in found:
                key = place.get(id(figure), "")
                joules[key] = joules.get(key, 0.0) + part * trips
    return {key: found / total for key, found in joules.items() if key and found} if total else {}


def width(found: Mapping[str, float], target: Target, calibration: Calibration) -> float:
    """Standard deviation of a prediction's logarithm."""
    by_key = dict(figures(target))
    return sqrt(calibration.spread**2 + sum((share * _open(by_key[key])) ** 2 for key, share in found.items()))


def _open(figure: Figure) -> float:
    """What measurements leave open of a figure, as a standard deviation of its logarithm."""
    return log(figure.largest / figure.smallest) / RANGE_SIGMAS if figure.smallest > 0 else 0.0


@dataclass(frozen=True, slots=True)
class Strange:
    """A figure that takes a larger share of the time than in any network that was measured."""

    key: str
    share: float
    seen: float


def strange(found: Mapping[str, float], calibration: Calibration) -> tuple[Strange, ...]:
    """What is unlike anything that was measured, largest share first."""
    rows = [Strange(key, share, calibration.seen.get(key, 0.0)) for key, share in found.items()]
    odd = [row for row in rows if row.share > max(_SLIGHT, _STRANGE * row.seen)]
    return tuple(sorted(odd, key=lambda row: -row.share))


def calibrated_range(
    value: float, costs: Iterable[tuple[Cost, float]], target: Target
) -> tuple[Range, tuple[Strange, ...]]:
    """The range of a latency on a calibrated target, and what in the network is unlike what was measured."""
    calibration = target.calibration
    if calibration is None:
        raise ValueError(f"{target.name} is not calibrated")
    return range_by(value, shares(costs, target), target, calibration)


def range_by(
    value: float, found: Mapping[str, float], target: Target, calibration: Calibration
) -> tuple[Range, tuple[Strange, ...]]:
    """The range of what was calibrated, by the shares that figures have in it, and what is unlike what was measured."""
    odd = strange(found, calibration)
    wide = width(found, target, calibration)
    if odd:  # beyond what was seen, errors of the model itself grow with what is new
        wide = hypot(wide, max(row.share - row.seen for row in odd) / 2)
    reach = exp(calibration.factor * wide)
    return Range(value, value / reach, value * reach), odd
