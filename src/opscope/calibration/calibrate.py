"""Target, Measurements → Calibrated: fitted figures, and how far predictions of networks left out lie off.

Each network is left out in turn (of more than `MOST_FOLDS`, groups of them), the figures are fitted to the others, and
the network is predicted: those errors set the range that later predictions get, and are what the result is judged by.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, log

import numpy as np
import numpy.typing as npt

from ..core.errors import ProfilerError, UsageError, printable
from ..core.units import format_seconds
from ..estimate.ranges import RANGE_SIGMAS, shares
from ..graph.graph import Graph
from ..machine.calibration import OP, Calibration, Validation
from ..machine.catalogue import figures, with_figures
from ..machine.target import Figure, Target
from .fit import Fit, Priors, Row, fit, linearise
from .left_out import COVERAGE, SPREAD, LeftOut
from .measurements import Measurement, contradictions, of_chip, repeated_once
from .priced import Models
from .terms import CALL, CLOCK, Floats, Terms, fitted_keys, is_common, terms_of, values_of

MOST_FOLDS = 40
SOURCE = "fit"
_FOLD_STEPS = 5
_DEFAULT_FACTOR = 3.0  # widths of a range, where there are too few networks to tell
_FEWEST_FOR_FOLDS = 3  # networks
_NEARLY = 10.0  # times what figures allow, for what a model leaves out
# How far machines of one family differ in a figure, as a standard deviation of its logarithm: clocks most.
_OWN_SIGMA = 0.35
_OWN_CLOCK_SIGMA = 1.0
_OWN_CALL_SIGMA = 0.5

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Prediction:
    """One measurement beside what the fitted target says, and beside what it says without that network."""

    measurement: Measurement
    machine: int
    fitted_s: float
    left_out_s: float | None  # None: too few networks to leave one out
    low_s: float
    high_s: float
    shares: Mapping[str, float]  # of the time, by figure

    @property
    def error(self) -> float:
        """Predicted ÷ measured - 1, for a network that was left out where there are enough."""
        found = self.fitted_s if self.left_out_s is None else self.left_out_s
        return found / self.measurement.seconds - 1

    @property
    def inside(self) -> bool:
        return self.low_s <= self.measurement.seconds <= self.high_s


@dataclass(frozen=True, slots=True)
class Calibrated:
    """The fitted targets with what is known of them."""

    base: Target
    machines: tuple[str, ...]  # names of the chips; one empty name: the target itself
    targets: tuple[Target, ...]  # of each machine, before the fit
    figures: tuple[Mapping[str, Figure], ...]  # of each machine, by key
    shared: Mapping[str, Figure]  # of a machine that nothing was measured of
    calibrations: tuple[Calibration, ...]  # of each machine, and of one that nothing was measured of
    predictions: tuple[Prediction, ...]
    skipped: tuple[str, ...]  # measurements that no prediction can be made for, and why; and those that contradict

    @property
    def calibration(self) -> Calibration:
        """What holds for machines of the family that nothing was measured of, or for the one that was fitted."""
        return self.calibrations[-1]

    @property
    def judges(self) -> bool:
        """Whether errors are of networks that were left out: with fewer than three none is."""
        return bool(self.predictions) and self.predictions[0].left_out_s is not None

    @property
    def of_language_models(self) -> bool:
        return any(row.measurement.phase for row in self.predictions)

    def validation(self, machine: int | None = None) -> Validation:
        """Errors on networks left out; of one machine, or of all."""
        rows = [row for row in self.predictions if machine in (None, row.machine)]
        return judged(rows)


def judged(rows: Sequence[Prediction]) -> Validation:
    """Median and 90th percentile of errors, and how often the range held."""
    errors = np.abs([row.error for row in rows])
    return Validation(
        networks=len({row.measurement.network for row in rows}),
        rows=len(rows),
        median_error=float(np.median(errors)),
        p90_error=float(np.quantile(errors, 0.9)),
        coverage=float(np.mean([row.inside for row in rows])),
        source=SOURCE,
    )


def calibrate(
    target: Target,
    measurements: Sequence[Measurement],
    *,
    variants: Mapping[str, Target] | None = None,
    fitted: Sequence[str] = (),
    progress: Progress = lambda _: None,
) -> Calibrated:
    """Fit a target to measurements.

    Args:
        fitted: keys of the figures that may move; all that make time and have a range, if none is given.
        variants: chip → the target whose data sheet it has; rows of several chips are then fitted together, each with
            figures of its own. Without, rows of the target's own name are fitted where there are some, else all.
    """
    given = measurements if variants is not None else of_chip(measurements, target.name)
    measurements = repeated_once(given)
    chips = tuple(dict.fromkeys(row.chip for row in measurements)) if variants is not None else ("",)
    machines = [target if variants is None else variants.get(chip, target) for chip in chips]
    keys = tuple(fitted) or fitted_keys(target)
    if not keys:
        raise UsageError(f"{target.name}: no figure that makes time has a range; expected low and high of some")
    for chip, sheet in zip(chips, machines, strict=True):
        known = {key for key, _ in figures(sheet)}
        lacks = next((key for key in keys if key not in known), None)
        if lacks is not None:
            raise UsageError(f"chip {printable(chip)}: has no {lacks}; expected a target that extends {target.name}")
    priors = _priors(machines, target, keys)
    pricing = _Pricing(target, keys)
    rows, kept, skipped = [], [], contradictions(given)
    for number, measurement in enumerate(measurements):
        machine = chips.index(measurement.chip) if variants is not None else 0
        terms = pricing.terms(measurement, machines[machine])
        if isinstance(terms, str):
            skipped.append(f"{measurement.place}: {terms}")
            continue
        row = Row(measurement.network, machine, terms, log(measurement.seconds))
        if beyond := _beyond(row, priors):
            skipped.append(f"{measurement.place}: {beyond}")
            continue
        rows.append(row)
        kept.append(measurement)
        progress(f"priced {number + 1} of {len(measurements)} measurements")
    if not rows:
        raise UsageError(f"none of {len(measurements)} measurements can be predicted: {skipped[-1]}")
    problem = _Problem(
        target, chips, tuple(machines), keys, priors, tuple(rows), tuple(kept), tuple(skipped), pricing.fixed
    )
    return _result(problem, fit(rows, priors), progress)


def _beyond(row: Row, priors: Priors) -> str:
    """Why no figures inside their ranges give a measured time, nor nearly; empty: some may.

    The fastest machine has every rate at the top of its range and every cost at the bottom.
    """
    rates = row.terms.exponents.min(axis=0, initial=0.0) < 0
    low, high = priors.low[row.machine], priors.high[row.machine]
    ends = np.array([np.where(rates, high, low), np.where(rates, low, high)])
    fastest, slowest = row.terms.latency(ends)[0].tolist()
    seconds = exp(row.log_seconds)
    if fastest / _NEARLY <= seconds <= slowest * _NEARLY:
        return ""
    possible = f"{format_seconds(fastest)} – {format_seconds(slowest)}"
    return f"measured {format_seconds(seconds)}; ranges of the figures allow {possible}"


@dataclass(frozen=True, slots=True)
class _Problem:
    """What is fitted to what."""

    target: Target
    chips: tuple[str, ...]
    machines: tuple[Target, ...]
    keys: tuple[str, ...]
    priors: Priors
    rows: tuple[Row, ...]
    measurements: tuple[Measurement, ...]  # of the rows
    skipped: tuple[str, ...]
    fixed: Mapping[str, float]  # largest share of a time of each figure that stays as it is


class _Pricing:
    """Terms of each network, priced once for all machines that differ in nothing but fitted figures."""

    def __init__(self, target: Target, keys: Sequence[str]) -> None:
        self.target = target
        self.keys = keys
        self.models = Models()
        self.found: dict[object, Terms | str] = {}
        self.fixed: dict[str, float] = {}  # largest share of a time of each figure that stays as it is

    def terms(self, row: Measurement, machine: Target) -> Terms | str:
        """Terms of a measurement, or why there are none."""
        fitted = set(self.keys)
        sizes = tuple(figure.value for key, figure in figures(machine) if key not in fitted)
        key = (*row.graph_key, row.precision, row.cores, sizes)
        if key not in self.found:
            self.found[key] = self._priced(row, machine)
        return self.found[key]

    def _priced(self, row: Measurement, machine: Target) -> Terms | str:
        try:
            found = self.models.priced(row, _with_values(machine, self.target, self.keys))
        except ProfilerError as error:
            return str(error)
        for key, share in shares(found.costs, found.target).items():
            if key not in self.keys:
                self.fixed[key] = max(share, self.fixed.get(key, 0.0))
        return terms_of(found.costs, found.target, self.keys)


def _with_values(machine: Target, base: Target, keys: Sequence[str]) -> Target:
    """A machine with the fitted figures of the base, so that machines alike in all else share terms."""
    return with_figures(machine, values_of(base, keys))


def _priors(machines: Sequence[Target], base: Target, keys: Sequence[str]) -> Priors:
    """Limits and centres of each machine's figures, relative to those that terms are priced with."""
    origin = values_of(base, keys)
    tables = [values_of(machine, keys) for machine in machines]

    def logs(end: str) -> Floats:
        return np.array([[log(getattr(table[key], end) / origin[key].value) for key in keys] for table in tables])

    return Priors(
        centre=logs("value"),
        low=logs("smallest"),
        high=logs("largest"),
        own_sigma=np.array([_own_sigma(key) for key in keys]),
    )


def _own_sigma(key: str) -> float:
    if key == CLOCK:
        return _OWN_CLOCK_SIGMA
    return _OWN_CALL_SIGMA if key.startswith(CALL) else _OWN_SIGMA


def _folds(rows: Sequence[Row]) -> npt.NDArray[np.int64] | None:
    """Of each row, the number of the fit that its network is left out of; None where there are too few networks."""
    networks = list(dict.fromkeys(row.network for row in rows))
    if len(networks) < _FEWEST_FOR_FOLDS:
        return None
    count = min(len(networks), MOST_FOLDS)
    fold_of = {network: number % count for number, network in enumerate(networks)}
    return np.array([fold_of[row.network] for row in rows], np.int64)


def _left_out(problem: _Problem, found: Fit, folds: npt.NDArray[np.int64], progress: Progress) -> LeftOut:
    """Fit without each network in turn, and see how far off it is."""
    rows, count = problem.rows, int(folds.max()) + 1
    errors, open_ = np.zeros(len(rows)), np.zeros((len(rows), len(problem.keys)))
    for fold in range(count):
        progress(f"left out {fold + 1} of {count}")
        others = [row for row, place in zip(rows, folds, strict=True) if place != fold]
        without = fit(others, problem.priors, found, _FOLD_STEPS)
        here = np.flatnonzero(folds == fold)
        errors[here] = linearise([rows[row] for row in here], without.logs)[1]
        open_[here] = without.sigmas[[rows[row].machine for row in here]] ** 2
    return LeftOut(
        [row.network for row in rows],
        np.array([row.machine for row in rows], np.int64),
        errors,
        linearise(rows, found.logs)[0],
        open_,
        np.array([not is_common(key) for key in problem.keys]),
    )


def _result(problem: _Problem, found: Fit, progress: Progress) -> Calibrated:
    rows, keys, machines = problem.rows, problem.keys, range(len(problem.chips))
    folds = _folds(rows)
    shares, inside = linearise(rows, found.logs)
    unsure, factors = np.zeros(len(keys)), [_DEFAULT_FACTOR] * (len(machines) + 1)
    if folds is not None:
        left_out = _left_out(problem, found, folds, progress)
        unsure = left_out.unsure()
        factors = left_out.factors(unsure, [*machines, None])
        errors, reaches = left_out.errors, left_out.reaches(folds)
    else:
        open_ = np.array([found.sigmas[row.machine] ** 2 for row in rows])
        errors, reaches = inside, _DEFAULT_FACTOR * np.sqrt(SPREAD**2 + (shares**2 * open_).sum(axis=1))
    predictions = []
    for number, (row, measurement) in enumerate(zip(rows, problem.measurements, strict=True)):
        fitted = measurement.seconds / exp(inside[number])
        centre, reach = measurement.seconds / exp(errors[number]), exp(reaches[number])
        by_key = dict(zip(keys, np.abs(shares[number]).tolist(), strict=True))
        without = None if folds is None else centre
        predictions.append(
            Prediction(measurement, row.machine, fitted, without, centre / reach, centre * reach, by_key)
        )
    sheet = values_of(problem.target, keys)
    tables = [
        _figures(values_of(machine, keys), sheet, found.logs[number], np.sqrt(found.sigmas[number] ** 2 + unsure))
        for number, machine in enumerate(problem.machines)
    ]
    elsewhere = np.sqrt(found.sigmas.mean(axis=0) ** 2 + problem.priors.own_sigma**2 + unsure)
    return Calibrated(
        problem.target,
        problem.chips,
        problem.machines,
        tuple(tables),
        _figures(sheet, sheet, found.shared, elsewhere),
        tuple(_calibration(problem, shares, factor) for factor in factors),
        tuple(predictions),
        problem.skipped,
    )


def _calibration(problem: _Problem, shares: Floats, factor: float) -> Calibration:
    moved = {key: float(np.abs(shares[:, number]).max()) for number, key in enumerate(problem.keys)}
    seen = {key: round(share, 4) for key, share in {**moved, **problem.fixed}.items()}
    return Calibration(
        rows=len(problem.rows),
        networks=len({row.network for row in problem.rows}),
        spread=SPREAD,
        factor=round(factor, 4),
        coverage=COVERAGE,
        seen={key: share for key, share in seen.items() if share > 0},
        precisions=tuple(sorted({row.precision or "float" for row in problem.measurements})),
        unit=OP if all(isinstance(row.model, Graph) for row in problem.measurements) else None,
    )


def _figures(own: Mapping[str, Figure], base: Mapping[str, Figure], logs: Floats, sigmas: Floats) -> dict[str, Figure]:
    """Fitted figures with what measurements leave open of them, inside the limits that they had."""
    found = {}
    for (key, sheet), move, sigma in zip(own.items(), logs, sigmas, strict=True):
        value = min(max(base[key].value * exp(move), sheet.smallest), sheet.largest)
        reach = exp(sigma * RANGE_SIGMAS / 2)
        found[key] = Figure(value, SOURCE, max(value / reach, sheet.smallest), min(value * reach, sheet.largest))
    return found
