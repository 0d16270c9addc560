"""Analog Devices' processor cores: rates per type, and the vendor's flat figures beside them."""

from __future__ import annotations

from pathlib import Path

import pytest

from opscope import api
from opscope.estimate.price import Machine
from opscope.estimate.report import Report
from opscope.graph.graph import DType
from opscope.machine import catalogue
from opscope.machine.target import Engine
from opscope.plugins.cfs.flat import flat_report, vendor_machine
from opscope.readers import graph_of
from opscope.zoo.catalogue import Recipe, make

PARTS = {"max32690-cm4": "cortex-m4", "max78002-cm4": "cortex-m4", "max32657-cm33": "cortex-m33"}


def rates(engine: Engine, dtype: DType) -> dict[str, tuple[float, float]]:
    """Of the inner loop and of every family, in a type: value and largest."""
    tables = {"macs": engine.macs_per_cycle, **{str(family): table for family, table in engine.reached.items()}}
    known = {name: engine.rate(table, dtype) for name, table in tables.items()}
    return {name: (rate.value, rate.largest) for name, rate in known.items() if rate is not None}


@pytest.mark.parametrize(("name", "core"), PARTS.items())
def test_rates_are_those_of_the_fitted_cores(name: str, core: str) -> None:
    """Whole numbers with CMSIS-NN; float, which it has no kernels for, from the core that was fitted to float."""
    part = catalogue.load(name)
    whole, real = catalogue.load(f"{core}-cmsis-nn"), catalogue.load("cortex-m4")
    cpu = part.engines[0]
    for dtype, fitted in ((DType.I8, whole), (DType.F32, real)):
        own, expected = rates(cpu, dtype), rates(fitted.engines[0], dtype)
        for family in ("macs", "dense_convolution", "pointwise_convolution", "depthwise_convolution"):
            assert own[family] == pytest.approx(expected[family]), (dtype, family)


@pytest.mark.parametrize("name", PARTS)
def test_float_takes_longer_than_int8_unless_counting_is_flat(name: str, tmp_path: Path) -> None:
    machine = Machine(catalogue.load(name))
    own, flat = {}, {}
    for precision in ("int8", "f32"):
        model = tmp_path / f"{precision}.tflite"
        make(Recipe("kws-cnn", precision=precision, format="tflite"), model)
        own[precision] = milliseconds(api.report(model, name, advise=False))
        flat[precision] = milliseconds(flat_report(graph_of(model), machine, sha256=None))
    assert own["f32"] > 1.5 * own["int8"]
    assert flat["f32"] == flat["int8"]


def milliseconds(report: Report) -> float:
    assert report.totals.latency_s is not None
    return report.totals.latency_s.value * 1e3


def test_the_vendors_figures_price_a_keyword_spotter_as_its_tool_does(tmp_path: Path) -> None:
    """2,656,908 operations of 2 cycles and 0.17 nJ."""
    model = tmp_path / "kws.tflite"
    make(Recipe("kws-cnn", precision="int8", format="tflite"), model)
    totals = flat_report(graph_of(model), Machine(catalogue.load("max32690-cm4")), sha256=None).totals
    assert totals.cycles == 2 * 2_656_908
    assert totals.energy_j is not None
    assert totals.energy_j.value == pytest.approx(2_656_908 * 0.17e-9)


def test_a_target_of_another_name_is_counted_flat_as_it_is() -> None:
    machine = Machine(catalogue.load("cfs-sample"))
    assert vendor_machine(machine) is machine
