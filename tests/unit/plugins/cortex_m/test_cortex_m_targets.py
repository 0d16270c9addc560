"""Cores of micro-controllers: off by little for networks left out, and float, int8 and energy as published."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from opscope.core.plugins import target_folder
from opscope.estimate.estimator import estimate
from opscope.estimate.machines import use_machine
from opscope.estimate.report import Totals
from opscope.machine import catalogue
from opscope.plugins.cortex_m.manifest import MANIFEST
from opscope.readers import graph_of
from opscope.zoo.catalogue import Recipe, make

FOLDER = target_folder(MANIFEST) or Path()
FITTED = ("cortex-m0plus", "cortex-m4", "cortex-m7", "cortex-m33", "cortex-m4-cmsis-nn", "cortex-m33-cmsis-nn")


class Row(NamedTuple):
    """A result of MLPerf Tiny: milliseconds, and microjoules where they were measured."""

    target: str
    network: str
    megahertz: int  # of the board; cycles are what a core has
    milliseconds: float
    microjoules: float | None = None


# Round 1.2, Bosch HALE, and round 1.1, microTVM with CMSIS-NN, on the boards of the targets: these set the figures.
SET_BY = (
    Row("cortex-m0plus", "kws-cnn", 64, 474.61),
    Row("cortex-m4", "kws-cnn", 120, 60.16),
    Row("cortex-m4", "vww-mobilenetv1", 120, 180.51),
    Row("cortex-m7", "kws-cnn", 280, 14.69),
    Row("cortex-m7", "vww-mobilenetv1", 280, 43.76),
    Row("cortex-m33", "kws-cnn", 160, 38.58),
    Row("cortex-m33", "vww-mobilenetv1", 160, 119.83),
    Row("cortex-m4-cmsis-nn", "kws-cnn", 120, 99.81),
    Row("cortex-m33-cmsis-nn", "vww-mobilenetv1", 128, 233.32),
)
# The same rounds and others, of other compilers, on the same cores: these judge. Rounds 1.0 and 1.1, X-CUBE-AI 7.3 and
# 8.1 and Plumerai.
JUDGED_BY = (
    Row("cortex-m4", "kws-cnn", 120, 62.96, 2833.1),
    Row("cortex-m4", "vww-mobilenetv1", 120, 208.55),
    Row("cortex-m7", "kws-cnn", 280, 15.29, 1869.4),
    Row("cortex-m7", "vww-mobilenetv1", 280, 50.22, 7810.7),
    Row("cortex-m33", "kws-cnn", 160, 38.3, 1004.2),
    Row("cortex-m33", "vww-mobilenetv1", 160, 132.89, 3364.5),
)


def totals(name: str, network: str, folder: Path, precision: str = "int8") -> Totals:
    model = folder / f"{network}.tflite"
    make(Recipe(network, precision=precision, format="tflite"), model)
    return estimate(graph_of(model), use_machine(catalogue.read(FOLDER / f"{name}.toml"))).totals


@pytest.mark.parametrize("name", FITTED)
def test_networks_left_out_are_off_by_a_fifth_at_the_most(name: str) -> None:
    target = catalogue.read(FOLDER / f"{name}.toml")
    assert target.validation is not None
    assert target.validation.median_error <= 0.2
    assert "published" in target.sources[target.validation.source]


@pytest.mark.parametrize("row", SET_BY)
def test_the_range_holds_what_was_published(row: Row, tmp_path: Path) -> None:
    latency = totals(row.target, row.network, tmp_path).latency_s
    assert latency is not None
    low, high = latency.low * 1e3, latency.high * 1e3
    assert low <= row.milliseconds * scale(row) <= high, f"{low:.1f} to {high:.1f} ms"
    assert high / low < 5  # a range that says something


@pytest.mark.parametrize("row", JUDGED_BY)
def test_another_compiler_of_these_years_is_within_a_fifth(row: Row, tmp_path: Path) -> None:
    found = totals(row.target, row.network, tmp_path)
    assert found.latency_s is not None
    assert found.latency_s.value * 1e3 == pytest.approx(row.milliseconds * scale(row), rel=0.2)
    if row.microjoules is not None:
        assert found.energy_j is not None
        assert found.energy_j.value * 1e6 == pytest.approx(row.microjoules, rel=0.3)


def scale(row: Row) -> float:
    """From the clock of the board to that of the target."""
    return row.megahertz * 1e6 / catalogue.read(FOLDER / f"{row.target}.toml").clocks.core_hz.value


@pytest.mark.parametrize(("name", "published"), [("cortex-m4", 479.85 / 162.21), ("cortex-m7", 124.22 / 45.85)])
def test_float_takes_about_three_times_as_long_as_int8(name: str, published: float, tmp_path: Path) -> None:
    whole, real = (totals(name, "cifar-resnet", tmp_path, precision).latency_s for precision in ("int8", "f32"))
    assert whole is not None
    assert real is not None
    assert real.value / whole.value == pytest.approx(published, rel=0.15)


def test_a_core_without_published_results_is_an_estimate_with_a_wide_range(tmp_path: Path) -> None:
    target = catalogue.read(FOLDER / "cortex-m55.toml")
    assert target.calibration is None
    latency = totals("cortex-m55", "kws-cnn", tmp_path).latency_s
    assert latency is not None
    assert latency.high / latency.low > 3
