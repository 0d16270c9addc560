"""Fits: a machine that is known is found again, few rows move little, and nothing leaves its range."""

from __future__ import annotations

from dataclasses import replace
from math import exp, log, sqrt
from pathlib import Path

import numpy as np
import pytest

from opscope.calibration.calibrate import Calibrated, calibrate
from opscope.calibration.fit import Priors, fit, solved
from opscope.calibration.measurements import Measurement
from opscope.calibration.terms import fitted_keys, values_of
from opscope.core.errors import UsageError
from opscope.machine import catalogue
from opscope.machine.catalogue import with_figures
from opscope.machine.target import Figure, Target
from support.estimate.measured_rows import make_networks, rows_of, seconds_on


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return make_networks(tmp_path_factory.mktemp("nets"))


def another(target: Target, factor: float, *words: str) -> Target:
    """A machine that differs from its data sheet: figures whose key has a word are `factor` times as large."""
    table = values_of(target, [key for key in fitted_keys(target) if any(word in key for word in words)])
    assert table
    limits = {key: min(max(f.value * factor, f.smallest), f.largest) for key, f in table.items()}
    return with_figures(target, {key: replace(table[key], value=value) for key, value in limits.items()})


def shuffled(rows: list[Measurement], seed: int) -> list[Measurement]:
    return [rows[number] for number in np.random.default_rng(seed).permutation(len(rows))]


@pytest.fixture(scope="module")
def base() -> Target:
    return catalogue.load("hexagon")


@pytest.fixture(scope="module")
def truth(base: Target) -> Target:
    return another(another(base, 0.6, "core_hz"), 1.8, "call_seconds", "launch_cycles")


@pytest.fixture(scope="module")
def found(base: Target, truth: Target, models: dict[str, Path]) -> Calibrated:
    return calibrate(base, rows_of(truth, models))


def test_a_machine_that_is_known_is_found_again(found: Calibrated, base: Target) -> None:
    for row in found.predictions:
        before = seconds_on(base, row.measurement.model)
        assert abs(log(before / row.measurement.seconds)) > 0.15  # the data sheet was off
        assert row.fitted == pytest.approx(row.measurement.seconds, rel=0.08)  # pulled toward the data sheet
    errors = [abs(log(row.fitted / row.measurement.seconds)) for row in found.predictions]
    assert np.median(errors) < 0.04


def test_networks_left_out_are_predicted_too(found: Calibrated, base: Target) -> None:
    assert found.validation().median_error < 0.1
    for row in found.predictions:
        assert row.left_out is not None
        before = abs(log(seconds_on(base, row.measurement.model) / row.measurement.seconds))
        assert abs(log(row.left_out / row.measurement.seconds)) < before


def test_the_fitted_target_says_what_the_fit_said(found: Calibrated, base: Target) -> None:
    target = with_figures(base, found.figures[0])
    for row in found.predictions:
        assert seconds_on(target, row.measurement.model) == pytest.approx(row.fitted, rel=1e-6)


@pytest.mark.parametrize("rows", [3, 40])  # fewer than figures, and many more
def test_what_is_solved_is_solved_in_either_space(rows: int) -> None:
    draw, figures = np.random.default_rng(rows), 6
    scaled, wanted = draw.normal(size=(rows, figures)), draw.normal(size=rows)
    variances = draw.uniform(0.1, 2, figures), draw.uniform(0.1, 2, figures)
    machine = np.zeros(rows, np.int64)
    whole = np.eye(rows) + (scaled * (variances[0] + variances[1])) @ scaled.T
    assert solved(scaled, variances, machine, wanted) == pytest.approx(np.linalg.solve(whole, wanted), rel=1e-9)


@pytest.mark.parametrize("factor", [0.05, 300.0])
def test_figures_stay_inside_their_ranges(factor: float, base: Target, models: dict[str, Path]) -> None:
    rows = [replace(row, seconds=row.seconds * factor) for row in rows_of(base, models)]
    fitted = calibrate(base, rows)
    before = values_of(base, fitted_keys(base))
    for table in (*fitted.figures, fitted.shared):
        assert table.keys() == before.keys()
        for key, figure in table.items():
            assert before[key].smallest <= figure.smallest <= figure.value <= figure.largest <= before[key].largest


@pytest.mark.parametrize("names", [("kws", "mobile", "vit"), ("fc", "resnet", "unet"), ("small", "fc-wide", "vit")])
def test_three_rows_do_no_harm_to_others(
    names: tuple[str, ...], base: Target, truth: Target, models: dict[str, Path]
) -> None:
    rows = {row.network: row for row in rows_of(truth, models)}
    target = with_figures(base, calibrate(base, [rows[name] for name in names]).figures[0])
    before = [abs(log(seconds_on(base, row.model) / row.seconds)) for row in rows.values()]
    after = [abs(log(seconds_on(target, row.model) / row.seconds)) for row in rows.values()]
    assert np.median(after) < np.median(before)
    assert max(now - then for now, then in zip(after, before, strict=True)) < log(1.15)


def test_rows_that_a_data_sheet_already_explains_move_nothing(base: Target, models: dict[str, Path]) -> None:
    fitted = calibrate(base, rows_of(base, models))
    for key, figure in values_of(base, fitted_keys(base)).items():
        assert fitted.figures[0][key].value == pytest.approx(figure.value, rel=1e-6), key
    assert fitted.validation().median_error < 1e-6


def test_the_order_of_rows_does_not_matter(
    found: Calibrated, base: Target, truth: Target, models: dict[str, Path]
) -> None:
    again = calibrate(base, shuffled(rows_of(truth, models), 1))
    for key, figure in found.figures[0].items():
        assert again.figures[0][key].value == pytest.approx(figure.value, rel=1e-6), key
        assert again.figures[0][key].largest == pytest.approx(figure.largest, rel=1e-6), key
    assert again.calibration.factor == pytest.approx(found.calibration.factor, rel=1e-3)
    assert again.validation().median_error == pytest.approx(found.validation().median_error, rel=1e-6)


def test_the_same_rows_give_the_same_figures(
    found: Calibrated, base: Target, truth: Target, models: dict[str, Path]
) -> None:
    again = calibrate(base, rows_of(truth, models))
    assert (again.figures, again.calibration) == (found.figures, found.calibration)


def test_one_row_that_is_far_off_is_not_followed(base: Target, truth: Target, models: dict[str, Path]) -> None:
    rows = rows_of(truth, models)
    rows[0] = replace(rows[0], seconds=rows[0].seconds * 100)
    fitted = calibrate(base, rows)
    others = [abs(log(row.fitted / row.measurement.seconds)) for row in fitted.predictions[1:]]
    assert np.median(others) < 0.1


def test_more_rows_leave_less_open(base: Target, truth: Target, models: dict[str, Path], found: Calibrated) -> None:
    few = calibrate(base, rows_of(truth, models)[:1])
    key = "call_seconds.f16"

    def width(each: Calibrated) -> float:
        return each.figures[0][key].largest / each.figures[0][key].smallest

    assert width(found) < width(few) < base.call_seconds["f16"].largest / base.call_seconds["f16"].smallest


def test_fewer_than_three_networks_have_no_prediction_without_themselves(
    base: Target, truth: Target, models: dict[str, Path]
) -> None:
    fitted = calibrate(base, rows_of(truth, models)[:2])
    assert [row.left_out for row in fitted.predictions] == [None, None]
    assert all(row.low < row.fitted < row.high for row in fitted.predictions)


def test_chips_are_fitted_together_and_each_has_its_own_figures(base: Target, models: dict[str, Path]) -> None:
    fast, slow = another(base, 1.6, "core_hz"), another(base, 0.5, "core_hz")
    rows = [*rows_of(fast, models, chip="fast"), *rows_of(slow, models, chip="slow")]
    fitted = calibrate(base, rows, variants={})
    assert fitted.machines == ("fast", "slow")
    assert fitted.figures[0]["clocks.core_hz"].value > 1.5 * fitted.figures[1]["clocks.core_hz"].value
    assert fitted.validation().median_error < 0.1
    clock = fitted.shared["clocks.core_hz"]  # of a chip that nothing was measured of
    assert clock.largest / clock.smallest > max(
        table["clocks.core_hz"].largest / table["clocks.core_hz"].smallest for table in fitted.figures
    )


def test_a_chip_of_another_family_is_refused(base: Target, models: dict[str, Path]) -> None:
    rows = [Measurement("rows.csv:2", models["kws"], 1e-3, chip="other")]
    with pytest.raises(UsageError, match=r"chip other: has no .*; expected a target that extends"):
        calibrate(base, rows, variants={"other": catalogue.load("aic100-std")})


def test_a_target_without_any_range_cannot_be_fitted(models: dict[str, Path]) -> None:
    target = catalogue.load("adsp-21834-fx")
    with pytest.raises(UsageError, match="no figure that makes time has a range; expected low and high of some"):
        calibrate(target, rows_of(target, {"kws": models["kws"]}))


def test_without_rows_a_fit_is_the_data_sheet() -> None:
    priors = Priors(np.zeros((1, 2)), np.full((1, 2), -1.0), np.full((1, 2), 1.0), np.array([0.3, 0.3]))
    found = fit([], priors)
    assert not found.logs.any()
    assert found.sigmas[0] == pytest.approx(np.full(2, sqrt((2 / (2 * 2.576)) ** 2 + 0.3**2)))


def test_other_figures_change_nothing_else(base: Target) -> None:
    new = Figure(base.clocks.core_hz.value / exp(1), "part")
    changed = with_figures(base, {"clocks.core_hz": new, "engines[0].reached.softmax.*": Figure(0.2, "prior")})
    assert changed.clocks.core_hz == new
    assert changed.engines[0].reached["softmax"]["*"].value == 0.2
    assert replace(changed, clocks=base.clocks, engines=base.engines) == base


@pytest.mark.parametrize("seed", range(5))
def test_machine_by_machine_the_rows_are_solved_as_all_at_once(seed: int) -> None:
    draw = np.random.default_rng(seed)
    scaled, wanted = draw.normal(size=(30, 7)), draw.normal(size=30)
    variances, machine = (draw.random(7), draw.random(7)), draw.integers(0, 4, 30)
    same = machine[:, None] == machine[None, :]
    whole = np.eye(30) + (scaled * variances[0]) @ scaled.T + same * ((scaled * variances[1]) @ scaled.T)
    assert solved(scaled, variances, machine, wanted) == pytest.approx(np.linalg.solve(whole, wanted))
