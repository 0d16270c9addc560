"""Target, Measurements → Calibrated: fitted figures, and how far predictions of networks left out lie off.

Each network is left out in turn (of more than `MOST_FOLDS`, groups of them), the figures are fitted to the others, and
the network is predicted: those errors set the range that later predictions get, and are what the result is judged by.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, log

import numpy as np
import numpy.typing as npt

from ..core.columns import Floats
from ..core.errors import ProfilerError, UsageError, printable
from ..estimate.ranges import RANGE_SIGMAS
from ..graph.graph import Graph
from ..machine.calibration import OP, Calibration, Validation
from ..machine.catalogue import figures, with_figures
from ..machine.target import Figure, Target
from .fit import Fit, FitRow, Priors, fit, linearise
from .left_out import COVERAGE, SPREAD, LeftOut
from .measurements import Measurement, contradictions, of_chip, quantities, repeated_once
from .priced import Models
from .quantities import Quantity
from .terms import CALL, CLOCK, Terms, fitted_keys, is_common, makes, values_of

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
    fitted: float  # seconds, joules or bytes, as the others
    left_out: float | None  # None: too few networks to leave one out
    low: float
    high: float
    shares: Mapping[str, float]  # of the time, of the energy or of the RAM, by figure
    quantity: Quantity = Quantity.LATENCY

    @property
    def measured(self) -> float:
        return self.measurement.of(self.quantity) or 0.0

    @property
    def predicted(self) -> float:
        """For a network that was left out where there are enough."""
        return self.fitted if self.left_out is None else self.left_out

    @property
    def error(self) -> float:
        """Predicted ÷ measured - 1."""
        return self.predicted / self.measured - 1

    @property
    def inside(self) -> bool:
        return self.low <= self.measured <= self.high


@dataclass(frozen=True, slots=True)
class Told:
    """What a fit found out of one quantity."""

    calibrations: tuple[Calibration, ...]  # of each machine, and of one that nothing was measured of
    predictions: tuple[Prediction, ...]

    @property
    def calibration(self) -> Calibration:
        """What holds for machines of the family that nothing was measured of, or for the one that was fitted."""
        return self.calibrations[-1]

    @property
    def judges(self) -> bool:
        """Whether errors are of networks that were left out: with fewer than three none is."""
        return bool(self.predictions) and self.predictions[0].left_out is not None


@dataclass(frozen=True, slots=True)
class Calibrated:
    """The fitted targets with what is known of them."""

    base: Target
    machines: tuple[str, ...]  # names of the chips; one empty name: the target itself
    targets: tuple[Target, ...]  # of each machine, before the fit
    figures: tuple[Mapping[str, Figure], ...]  # of each machine, by key
    shared: Mapping[str, Figure]  # of a machine that nothing was measured of
    found: Mapping[Quantity, Told]  # latencies first
    skipped: tuple[str, ...]  # measurements that no prediction can be made for, and why; and those that contradict

    @property
    def calibration(self) -> Calibration:
        """To latencies."""
        return self.told(Quantity.LATENCY).calibration

    @property
    def predictions(self) -> tuple[Prediction, ...]:
        """Of latencies."""
        return self.told(Quantity.LATENCY).predictions

    @property
    def all_predictions(self) -> list[Prediction]:
        """Of latencies, then of what else was measured."""
        return [row for told in self.found.values() for row in told.predictions]

    @property
    def typical_figures(self) -> Mapping[str, Figure]:
        """Of the family, where several chips were fitted; else of the one."""
        return self.shared if len(self.machines) > 1 else self.figures[0]

    @property
    def others(self) -> Mapping[Quantity, Told]:
        """What was measured beside latencies."""
        return {quantity: told for quantity, told in self.found.items() if quantity is not Quantity.LATENCY}

    @property
    def judges(self) -> bool:
        return self.told(Quantity.LATENCY).judges

    @property
    def of_language_models(self) -> bool:
        return any(row.measurement.phase for row in self.predictions)

    def told(self, quantity: Quantity) -> Told:
        return self.found[quantity]

    def validation(self, machine: int | None = None, quantity: Quantity = Quantity.LATENCY) -> Validation | None:
        """Errors on networks left out; of one machine, or of all; None: nothing was measured there."""
        rows = [row for row in self.told(quantity).predictions if machine in (None, row.machine)]
        return judged(rows) if rows else None


def judged(rows: Sequence[Prediction]) -> Validation:
    """Median and 90th percentile of errors, and how often the range held."""
    errors = np.abs([row.error for row in rows])
    return Validation(
        networks=len({row.measurement.network for row in rows}),
        rows=len(rows),
        median_error=float(np.median(errors)),
        p90_error=float(np.quantile(errors, 0.9)),
        coverage=None if all(row.low == row.high for row in rows) else float(np.mean([row.inside for row in rows])),
        source=SOURCE,
    )


class Skipped:
    """Measurements that no prediction can be made for, and why."""

    def __init__(self) -> None:
        self.rows: list[tuple[Quantity, str, str]] = []

    def add(self, row: Measurement, quantity: Quantity, why: str) -> None:
        self.rows.append((quantity, row.place, why))

    def texts(self) -> list[str]:
        """One for each row; where all of several lack the same, and it is not the latency, one for all of them."""
        alike: Counter[tuple[Quantity, str]] = Counter(
            (quantity, why) for quantity, _, why in self.rows if quantity is not Quantity.LATENCY
        )
        found = {
            (quantity, why): f"{quantity.column} of {count} rows: {why}"
            for (quantity, why), count in alike.items()
            if count > 1
        }
        each = [found.get((quantity, why), f"{place}: {why}") for quantity, place, why in self.rows]
        return list(dict.fromkeys(each))


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
    measured = quantities(measurements)
    keys = tuple(fitted) or tuple(key for quantity in measured for key in fitted_keys(target, quantity))
    if not keys:
        raise UsageError(f"{target.name}: no figure that makes time has a range; expected low and high of some")
    _check_figures(target, dict(zip(chips, machines, strict=True)), keys)
    priors = _priors(machines, target, keys)
    pricing = _Pricing(target, keys)
    rows, kept, skipped = [], [], Skipped()
    for number, measurement in enumerate(measurements):
        machine = chips.index(measurement.chip) if variants is not None else 0
        for quantity in quantities([measurement]):
            row: Terms | FitRow | str = pricing.terms(measurement, quantity, machines[machine])
            if isinstance(row, Terms):
                row = _row(measurement, quantity, row, machine=machine, priors=priors, keys=keys)
            if isinstance(row, FitRow):
                rows.append(row)
                kept.append((measurement, quantity))
            else:
                skipped.add(measurement, quantity, row)
        progress(f"priced {number + 1} of {len(measurements)} measurements")
    told = [*contradictions(given), *skipped.texts()]
    if not any(quantity is Quantity.LATENCY for _, quantity in kept):
        raise UsageError(f"none of {len(measurements)} measurements can be predicted: {told[-1]}")
    problem = _Problem(
        target, chips, tuple(machines), keys, priors, tuple(rows), tuple(kept), tuple(told), pricing.fixed
    )
    return _result(problem, fit(rows, priors), progress)


def _check_figures(target: Target, machines: Mapping[str, Target], keys: Sequence[str]) -> None:
    """The target of every chip has the figures that are fitted."""
    for chip, sheet in machines.items():
        known = {key for key, _ in figures(sheet)}
        lacks = next((key for key in keys if key not in known), None)
        if lacks is not None:
            raise UsageError(f"chip {printable(chip)}: has no {lacks}; expected a target that extends {target.name}")


def _row(
    measurement: Measurement, quantity: Quantity, terms: Terms, *, machine: int, priors: Priors, keys: Sequence[str]
) -> FitRow | str:
    """What was measured as a row of the fit; or why no figures inside their ranges give it, nor nearly.

    Energies tell of watts and picojoules alone: how long they are drawn is told by times, which are better known.
    """
    measured = measurement.of(quantity) or 0.0
    least, most = terms.ends(priors.low[machine], priors.high[machine])
    if least / _NEARLY <= measured <= most * _NEARLY:
        moves = np.array([makes(key) is quantity for key in keys], np.float64) if quantity is Quantity.ENERGY else None
        return FitRow(measurement.network, machine, terms, log(measured), moves)
    possible = f"{quantity.text(least)} – {quantity.text(most)}"
    return f"measured {quantity.text(measured)}; ranges of the figures allow {possible}"


@dataclass(frozen=True, slots=True)
class _Problem:
    """What is fitted to what."""

    target: Target
    chips: tuple[str, ...]
    machines: tuple[Target, ...]
    keys: tuple[str, ...]
    priors: Priors
    rows: tuple[FitRow, ...]
    measurements: tuple[tuple[Measurement, Quantity], ...]  # of the rows
    skipped: tuple[str, ...]
    fixed: Mapping[Quantity, Mapping[str, float]]  # largest share of each figure that stays as it is

    @property
    def quantities(self) -> tuple[Quantity, ...]:
        """What was measured, latencies first."""
        found = {quantity for _, quantity in self.measurements}
        return tuple(quantity for quantity in Quantity if quantity in found)


class _Pricing:
    """Terms of each network, priced once for all machines that differ in nothing but fitted figures."""

    def __init__(self, target: Target, keys: Sequence[str]) -> None:
        self.target = target
        self.keys = keys
        self.models = Models()
        self.found: dict[object, Terms | str] = {}
        self.fixed: dict[Quantity, dict[str, float]] = {}  # largest share of each figure that stays as it is
        self._machines: dict[object, Target] = {}

    def terms(self, row: Measurement, quantity: Quantity, machine: Target) -> Terms | str:
        """Terms of what was measured, or why there are none."""
        fitted = set(self.keys)
        sizes = tuple(figure.value for key, figure in figures(machine) if key not in fitted)
        key = (*row.graph_key, row.ops, row.precision, row.cores, quantity, sizes)
        if key not in self.found:
            if sizes not in self._machines:
                self._machines[sizes] = _with_values(machine, self.target, self.keys)
            self.found[key] = self._terms(row, quantity, self._machines[sizes])
        return self.found[key]

    def _terms(self, row: Measurement, quantity: Quantity, machine: Target) -> Terms | str:
        try:
            found = self.models.priced(row, machine)
            terms = found.terms(quantity, self.keys)
        except ProfilerError as error:
            return str(error)
        stays = self.fixed.setdefault(quantity, {})
        for figure, share in found.shares(quantity).items():
            if figure not in self.keys:
                stays[figure] = max(share, stays.get(figure, 0.0))
        return terms


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


def _folds(rows: Sequence[FitRow]) -> npt.NDArray[np.int64] | None:
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
    keys, folds = problem.keys, _folds(problem.rows)
    left_out = None if folds is None else _left_out(problem, found, folds, progress)
    told, unsure = {}, np.zeros(len(keys))
    for quantity in problem.quantities:
        here = np.array([each is quantity for _, each in problem.measurements])
        own = None if folds is None or left_out is None else (left_out.chosen(here), folds[here])
        told[quantity], open_ = _told(problem, quantity, found, own)
        unsure = np.where([makes(key) in (quantity, None) for key in keys], open_, unsure)
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
        told,
        problem.skipped,
    )


def _told(
    problem: _Problem, quantity: Quantity, found: Fit, left_out: tuple[LeftOut, npt.NDArray[np.int64]] | None
) -> tuple[Told, Floats]:
    """What the rows of a quantity say of its errors, and how far off the model is where each figure rules."""
    keys, machines = problem.keys, range(len(problem.chips))
    chosen = [number for number, (_, each) in enumerate(problem.measurements) if each is quantity]
    rows = [problem.rows[number] for number in chosen]
    measurements = [problem.measurements[number][0] for number in chosen]
    shares, inside = linearise(rows, found.logs)
    unsure, factors = np.zeros(len(keys)), [_DEFAULT_FACTOR] * (len(machines) + 1)
    judges = left_out is not None and len(set(left_out[0].networks)) >= _FEWEST_FOR_FOLDS
    if left_out is not None and judges:
        without, folds = left_out
        unsure = without.unsure()
        factors = without.factors(unsure, [*machines, None])
        errors, reaches = without.errors, without.reaches(folds)
    else:
        open_ = np.array([found.sigmas[row.machine] ** 2 for row in rows])
        errors, reaches = inside, _DEFAULT_FACTOR * np.sqrt(SPREAD**2 + (shares**2 * open_).sum(axis=1))
    predictions = []
    for number, (row, measurement) in enumerate(zip(rows, measurements, strict=True)):
        measured = measurement.of(quantity) or 0.0
        centre, reach = measured / exp(errors[number]), exp(reaches[number])
        predictions.append(
            Prediction(
                measurement=measurement,
                machine=row.machine,
                fitted=measured / exp(inside[number]),
                left_out=centre if judges else None,
                low=centre / reach,
                high=centre * reach,
                shares=dict(zip(keys, np.abs(shares[number]).tolist(), strict=True)),
                quantity=quantity,
            )
        )
    moved = {key: float(np.abs(shares[:, number]).max()) for number, key in enumerate(keys)}
    seen = {**moved, **problem.fixed.get(quantity, {})}
    calibrations = tuple(_calibration(rows, measurements, seen, factor) for factor in factors)
    return Told(calibrations, tuple(predictions)), unsure


def _calibration(
    rows: Sequence[FitRow], measurements: Sequence[Measurement], shares: Mapping[str, float], factor: float
) -> Calibration:
    seen = {key: round(share, 4) for key, share in shares.items()}
    return Calibration(
        rows=len(rows),
        networks=len({row.network for row in rows}),
        spread=SPREAD,
        factor=round(factor, 4),
        coverage=COVERAGE,
        seen={key: share for key, share in seen.items() if share > 0},
        precisions=tuple(sorted({row.data_type for row in measurements})),
        unit=OP if all(row.ops or isinstance(row.model, Graph) for row in measurements) else None,
    )


def _figures(own: Mapping[str, Figure], base: Mapping[str, Figure], logs: Floats, sigmas: Floats) -> dict[str, Figure]:
    """Fitted figures with what measurements leave open of them, inside the limits that they had."""
    found = {}
    for (key, sheet), move, sigma in zip(own.items(), logs, sigmas, strict=True):
        value = min(max(base[key].value * exp(move), sheet.smallest), sheet.largest)
        whole = log(sheet.largest / sheet.smallest)  # no more is left of it, however little is told
        reach = exp(min(sigma * RANGE_SIGMAS / 2, whole))
        found[key] = Figure(value, SOURCE, max(value / reach, sheet.smallest), min(value * reach, sheet.largest))
    return found
