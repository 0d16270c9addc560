"""Energies and peaks of RAM beside latencies: the same fit, each of its own figures."""

from __future__ import annotations

from dataclasses import replace
from math import exp, log
from pathlib import Path

import numpy as np
import pytest

from opscope.calibration.calibrate import Calibrated, calibrate, judged
from opscope.calibration.measurements import Measurement, contradictions, read_measurements, repeated_once
from opscope.calibration.priced import Models
from opscope.calibration.quantities import Quantity
from opscope.calibration.terms import fitted_keys, values_of
from opscope.calibration.validate import of_quantities, validate
from opscope.calibration.write import Writer
from opscope.core.errors import ImportFileError
from opscope.estimate.build_report import report_model
from opscope.machine import catalogue
from opscope.machine.catalogue import with_figures
from opscope.machine.target import Compression, Figure, Target
from opscope.options import ReportOptions
from support.estimate.measured_rows import make_networks, rows_of

NAMES = ("kws", "small", "fc-wide", "mobile", "vit", "resnet")
OTHERS = (Quantity.ENERGY, Quantity.RAM)


def ranged(value: float) -> Figure:
    return Figure(value, "prm", value / 10, value * 10)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return make_networks(tmp_path_factory.mktemp("nets"), NAMES)


@pytest.fixture(scope="module")
def base() -> Target:
    found = catalogue.load("hexagon")
    source = next(iter(found.sources))
    table = {
        "engines[0].picojoules_per_mac.f16": ranged(1.0),
        "engines[0].busy_watts": ranged(2.0),
        "memories[0].picojoules_per_byte": ranged(50.0),
        "idle_watts": ranged(0.5),
        "runtime.bytes": ranged(200_000.0),
    }
    return with_figures(found, {key: replace(figure, source=source) for key, figure in table.items()})


@pytest.fixture(scope="module")
def truth(base: Target) -> Target:
    factors = {"idle_watts": 3.0, "engines[0].busy_watts": 2.0, "runtime.bytes": 4.0}
    factors["engines[0].picojoules_per_mac.f16"] = 0.4
    table = dict(catalogue.figures(base))
    return with_figures(base, {key: replace(table[key], value=table[key].value * f) for key, f in factors.items()})


def told(target: Target, row: Measurement, quantity: Quantity) -> float:
    return Models().priced(row, target).range(quantity).value


def measured(target: Target, models: dict[str, Path]) -> list[Measurement]:
    return [
        replace(row, joules=told(target, row, Quantity.ENERGY), ram_bytes=told(target, row, Quantity.RAM))
        for row in rows_of(target, models)
    ]


@pytest.fixture(scope="module")
def rows(truth: Target, models: dict[str, Path]) -> list[Measurement]:
    return measured(truth, models)


@pytest.fixture(scope="module")
def found(base: Target, rows: list[Measurement]) -> Calibrated:
    return calibrate(base, rows)


@pytest.mark.parametrize("quantity", OTHERS)
@pytest.mark.parametrize("seed", range(3))
def test_terms_say_what_pricing_again_says(
    quantity: Quantity, seed: int, base: Target, rows: list[Measurement]
) -> None:
    keys = tuple(key for each in Quantity for key in fitted_keys(base, each))
    draw, table = np.random.default_rng(seed), values_of(base, keys)
    value = {key: exp(draw.uniform(log(figure.smallest), log(figure.largest))) for key, figure in table.items()}
    logs = np.array([[log(value[key] / table[key].value) for key in keys]])
    other = with_figures(base, {key: replace(table[key], value=value[key]) for key in keys})
    for row in rows[:4]:
        terms = Models().priced(row, base).terms(quantity, keys)
        assert terms.total(np.zeros_like(logs))[0][0] == pytest.approx(told(base, row, quantity), rel=1e-9)
        assert terms.total(logs)[0][0] == pytest.approx(told(other, row, quantity), rel=1e-5)  # whole bytes of RAM


def test_a_ratio_of_compression_is_a_figure_like_any_other(base: Target, rows: list[Measurement]) -> None:
    key = "compression.ratio"
    sheet = replace(base, compression=Compression(Figure(1.5, next(iter(base.sources)), 1.0, 3.0)))
    assert key in fitted_keys(sheet)
    other = with_figures(sheet, {key: replace(dict(catalogue.figures(sheet))[key], value=2.5)})
    for quantity in (Quantity.LATENCY, Quantity.ENERGY):
        for row in rows[:4]:
            terms = Models().priced(row, sheet).terms(quantity, [key])
            found = terms.total(np.array([[log(2.5 / 1.5)]]))[0][0]
            assert found == pytest.approx(told(other, row, quantity), rel=1e-3)  # whole bytes of traffic
            assert found <= told(base, row, quantity) * (1 + 1e-9)


def test_shares_are_derivatives_of_terms(base: Target, rows: list[Measurement]) -> None:
    keys = tuple(key for each in Quantity for key in fitted_keys(base, each))
    for row in rows[:3]:
        priced = Models().priced(row, base)
        for quantity in Quantity:
            total, slopes = priced.terms(quantity, keys).total(np.zeros((1, len(keys))))
            by_figure = priced.shares(quantity)
            for key, slope in zip(keys, slopes[0] / total[0], strict=True):
                if key != "clocks.core_hz":  # cycles of all kinds depend on it; shares are of other figures
                    assert by_figure.get(key, 0.0) == pytest.approx(abs(slope), abs=1e-6), key


@pytest.mark.parametrize("quantity", OTHERS)
def test_a_machine_that_is_known_is_found_again(quantity: Quantity, found: Calibrated, base: Target) -> None:
    for row in found.others[quantity].predictions:
        before = abs(log(told(base, row.measurement, quantity) / row.measured))
        assert abs(log(row.fitted / row.measured)) < max(0.1, before / 3)
    errors = judged(found.others[quantity].predictions)
    assert errors.median_error < 0.15
    assert errors.coverage is not None
    assert errors.coverage >= 0.8


def test_energies_move_no_figure_of_time(base: Target, rows: list[Measurement]) -> None:
    alone = calibrate(base, [replace(row, joules=None, ram_bytes=None) for row in rows])
    wild = calibrate(base, [replace(row, joules=5.0 * (row.joules or 0.0)) for row in rows])
    for key, figure in alone.figures[0].items():
        assert wild.figures[0][key].value == pytest.approx(figure.value, rel=5e-3), key
    assert [row.fitted for row in wild.predictions] == pytest.approx(
        [row.fitted for row in alone.predictions], rel=1e-2
    )


def test_peaks_that_nothing_explains_leave_most_of_a_range_open(base: Target, rows: list[Measurement]) -> None:
    key = "runtime.bytes"
    small = with_figures(base, {key: replace(dict(catalogue.figures(base))[key], value=30.0, low=3.0, high=300.0)})
    wild = [
        replace(row, ram_bytes=(row.ram_bytes or 0.0) * (5 if number % 2 else 0.3)) for number, row in enumerate(rows)
    ]
    figure = calibrate(small, wild).figures[0][key]
    assert 3.0 <= figure.smallest < 10.0
    assert 100.0 < figure.largest <= 300.0


def test_a_figure_that_may_be_nothing_stays(base: Target, rows: list[Measurement]) -> None:
    source = next(iter(base.sources))
    sheet = with_figures(base, {"idle_watts": Figure(0.5, source, 0.0, 5.0)})
    assert "idle_watts" not in fitted_keys(sheet, Quantity.ENERGY)
    assert "idle_watts" not in calibrate(sheet, rows).figures[0]


def test_figures_stay_inside_their_ranges(base: Target, rows: list[Measurement]) -> None:
    fitted = calibrate(base, [replace(row, joules=9.0 * (row.joules or 0.0)) for row in rows])
    for key, sheet in values_of(base, fitted_keys(base, Quantity.ENERGY)).items():
        figure = fitted.figures[0][key]
        assert sheet.smallest <= figure.smallest <= figure.value <= figure.largest <= sheet.largest


def test_the_fitted_target_says_what_was_fitted_and_its_reports_have_the_range(
    found: Calibrated, models: dict[str, Path], tmp_path: Path
) -> None:
    Writer(found, "hexagon", "rows.csv").target(tmp_path / "mine.toml")  # `base` has nothing but figures of its own
    mine = catalogue.load(str(tmp_path / "mine.toml"))
    assert mine.energy.calibration is not None
    assert mine.energy.validation is not None
    assert mine.ram.calibration is not None
    assert mine.energy.calibration.rows == len(NAMES)
    assert "energies" in mine.sources["fit"]
    report = report_model(models["mobile"], mine, ReportOptions(advise=False))
    energy = report.totals.energy_j
    row = next(each for each in found.others[Quantity.ENERGY].predictions if each.measurement.network == "mobile")
    assert energy is not None
    assert energy.low < energy.value < energy.high
    assert energy.low <= row.measured <= energy.high
    assert report.memory.runtime_bytes == round(found.figures[0]["runtime.bytes"].value)


def test_validate_judges_each_quantity_on_its_own(base: Target, rows: list[Measurement]) -> None:
    some = [replace(row, joules=None) if number else row for number, row in enumerate(rows)]
    predictions, _ = validate(base, some)
    counts = {quantity: len(each) for quantity, each in of_quantities(predictions)}
    assert counts == {Quantity.LATENCY: len(rows), Quantity.ENERGY: 1, Quantity.RAM: len(rows)}
    for row in predictions:
        assert row.low <= row.predicted <= row.high


def test_ram_that_is_planned_byte_by_byte_has_no_range_to_hold(rows: list[Measurement]) -> None:
    predictions, _ = validate(catalogue.load("hexagon"), rows)
    ram = dict(of_quantities(predictions))[Quantity.RAM]
    assert judged(ram).coverage is None


def test_a_target_without_energy_figures_says_so_once(rows: list[Measurement]) -> None:
    _, skipped = validate(catalogue.load("hexagon"), rows)
    assert skipped == (f"energy_uj of {len(rows)} rows: the target file has no energy figures",)
    fitted = calibrate(catalogue.load("hexagon"), rows)
    assert skipped[0] in fitted.skipped
    assert Quantity.ENERGY not in fitted.others


def test_an_energy_that_no_figures_allow_is_named_and_its_latency_counts(base: Target, rows: list[Measurement]) -> None:
    fitted = calibrate(base, [replace(rows[0], joules=1e6), *rows[1:]])
    assert len(fitted.predictions) == len(rows)
    assert len(fitted.others[Quantity.ENERGY].predictions) == len(rows) - 1
    assert any("ranges of the figures allow" in text and " J" in text for text in fitted.skipped)


def test_repeats_become_one_row_with_medians_of_what_each_says(rows: list[Measurement]) -> None:
    row = replace(rows[0], joules=1.0, ram_bytes=None)
    same = [row, replace(row, joules=None), replace(row, joules=5.0)]
    (one,) = repeated_once(same)
    assert (one.joules, one.ram_bytes) == (3.0, None)
    (text,) = contradictions(same)
    assert "energies differ by a factor of 5" in text


@pytest.mark.parametrize("column", ["energy_uj", "ram_bytes"])
@pytest.mark.parametrize("cell", ["0", "-3", "nan", "inf", "1e99", "lots"])
def test_a_cell_that_nobody_measures_is_refused_with_its_line(column: str, cell: str, tmp_path: Path) -> None:
    (tmp_path / "net.onnx").touch()
    (tmp_path / "rows.csv").write_text(f"model,latency_ms,{column}\nnet,1,\nnet,1,{cell}\n")
    with pytest.raises(ImportFileError, match=rf"rows\.csv: line 3: {column} is '.*'; expected a number above 0"):
        read_measurements([tmp_path / "rows.csv"])


def test_cells_that_are_missing_say_nothing(tmp_path: Path) -> None:
    (tmp_path / "net.onnx").touch()
    (tmp_path / "rows.csv").write_text("model,latency_ms,energy_uj,ram_bytes\nnet,1,,\nnet,2,7,1024\nnet,3\n")
    found = read_measurements([tmp_path / "rows.csv"])
    assert [(row.joules, row.ram_bytes) for row in found] == [(None, None), (pytest.approx(7e-6), 1024.0), (None, None)]
