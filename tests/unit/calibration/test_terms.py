"""A latency as a function of figures: what the estimator says, at the figures of a target and at others."""

from __future__ import annotations

from dataclasses import replace
from math import exp, log
from pathlib import Path

import numpy as np
import pytest

from opscope.calibration.quantities import Quantity
from opscope.calibration.terms import CLOCK, Terms, fitted_keys, is_common, makes, terms_of, values_of
from opscope.estimate.estimator import estimate
from opscope.estimate.machines import use_machine
from opscope.estimate.precision import in_precision, with_precision
from opscope.machine import catalogue
from opscope.machine.catalogue import with_figures
from opscope.machine.corners import is_rate
from opscope.machine.target import Figure, Holds, Target
from opscope.readers import graph_of
from support.estimate.measured_rows import make_networks, seconds_on

NAMES = ("kws", "mobile", "vit")
TARGETS = (  # and a precision that they run
    ("hexagon", None),
    ("snapdragon-8gen3", None),
    ("snapdragon-8gen3", "w8a16"),
    ("snapdragon-x-elite", "i8"),
    ("qcs6490", None),
    ("aic100-std", None),
    ("torq-sl2610", "i8"),
    ("max78002-cm4", None),
    ("adsp-21834-fx", None),
)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return make_networks(tmp_path_factory.mktemp("nets"), NAMES)


def terms(target: Target, model: Path, precision: str | None = None) -> tuple[Terms, float | None]:
    chosen = with_precision(target, precision)
    found = estimate(in_precision(graph_of(model), chosen, precision), use_machine(chosen))
    latency = found.totals.latency_s
    return terms_of(found.costs, chosen, fitted_keys(target)), None if latency is None else latency.value


def other_figures(target: Target, seed: int) -> tuple[dict[str, Figure], np.ndarray]:
    """Figures somewhere inside their ranges, and their logarithms relative to those of the target."""
    draw, keys = np.random.default_rng(seed), fitted_keys(target)
    found, logs = {}, []
    for key, figure in values_of(target, keys).items():
        value = exp(draw.uniform(log(figure.smallest), log(figure.largest)))
        found[key] = replace(figure, value=value)
        logs.append(log(value / figure.value))
    return found, np.array([logs])


@pytest.mark.parametrize(("name", "precision"), TARGETS)
def test_at_the_figures_of_a_target_terms_say_what_the_estimator_says(
    name: str, precision: str | None, models: dict[str, Path]
) -> None:
    target = catalogue.load(name)
    compared = 0
    for model in models.values():
        found, latency = terms(target, model, precision)
        if latency is not None:
            seconds, _ = found.total(np.zeros((1, len(fitted_keys(target)))))
            assert seconds[0] == pytest.approx(latency, rel=1e-9)
            compared += 1
    assert compared


def test_an_engine_that_is_called_like_a_memory_adds_nothing_to_it(models: dict[str, Path]) -> None:
    target = catalogue.load("hexagon")
    shared = target.home(Holds.CONSTANTS).name
    first, *others = target.engines
    layout = target.layout and replace(target.layout, engines=(shared,))
    other = replace(target, engines=(replace(first, name=shared), *others), layout=layout)
    for model in models.values():
        (found, _), (known, _) = terms(other, model), terms(target, model)
        logs = np.zeros((1, len(fitted_keys(target))))
        assert found.total(logs)[0] == pytest.approx(known.total(logs)[0])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("network", NAMES)
def test_at_other_figures_terms_say_what_pricing_again_says(network: str, seed: int, models: dict[str, Path]) -> None:
    target = catalogue.load("hexagon")  # one engine: nothing that is fitted moves an op or makes a tensor spill
    figures, logs = other_figures(target, seed)
    seconds, _ = terms(target, models[network])[0].total(logs)
    assert seconds[0] == pytest.approx(seconds_on(with_figures(target, figures), models[network]), rel=1e-9)


@pytest.mark.parametrize("network", NAMES)
def test_derivatives_are_those_of_finite_differences(network: str, models: dict[str, Path]) -> None:
    target = catalogue.load("hexagon")
    found, _ = terms(target, models[network])
    _, logs = other_figures(target, 7)
    _, derivatives = found.total(logs)
    step = 1e-6 * np.eye(logs.shape[1])
    slopes = (found.total(logs + step)[0] - found.total(logs - step)[0]) / 2e-6
    assert np.abs(derivatives).max() > 0
    assert derivatives[0] == pytest.approx(slopes, rel=1e-4, abs=1e-9)


def test_larger_rates_never_slow_a_network_down_and_larger_costs_never_speed_it_up(models: dict[str, Path]) -> None:
    target = catalogue.load("hexagon")
    found, _ = terms(target, models["vit"])
    _, derivatives = found.total(other_figures(target, 3)[1])
    for key, slope in zip(fitted_keys(target), derivatives[0], strict=True):
        assert slope <= 0 if is_rate(key) else slope >= 0, key


def test_a_faster_clock_leaves_what_is_told_in_seconds_as_it_is(models: dict[str, Path]) -> None:
    target = catalogue.load("hexagon")
    keys = fitted_keys(target)
    logs = np.zeros((1, len(keys)))
    logs[0, keys.index(CLOCK)] = 50.0
    seconds, _ = terms(target, models["kws"])[0].total(logs)
    assert seconds[0] > target.call_seconds["f16"].value


def test_several_machines_at_once_are_each_by_itself(models: dict[str, Path]) -> None:
    target = catalogue.load("hexagon")
    found, _ = terms(target, models["mobile"])
    logs = np.concatenate([other_figures(target, seed)[1] for seed in range(3)])
    together = found.total(logs)
    for number in range(3):
        alone = found.total(logs[number : number + 1])
        assert together[0][number] == pytest.approx(alone[0][0], rel=1e-12)
        assert together[1][number] == pytest.approx(alone[1][0], rel=1e-12)


def test_a_network_without_costs_takes_no_time() -> None:
    target = catalogue.load("hexagon")
    keys = fitted_keys(target)
    seconds, derivatives = terms_of([], target, keys).total(np.zeros((2, len(keys))))
    assert not seconds.any()
    assert not derivatives.any()


def test_a_figure_is_fitted_to_what_it_makes_and_sizes_to_nothing() -> None:
    for key in ("engines[0].launch_cycles", "memories[1].bytes_per_cycle", CLOCK, "call_seconds.*"):
        assert makes(key) is Quantity.LATENCY
    for key in (
        "engines[0].picojoules_per_mac.i8",
        "memories[0].picojoules_per_byte",
        "engines[1].busy_watts",
        "idle_watts",
    ):
        assert makes(key) is Quantity.ENERGY
    assert makes("runtime.bytes") is Quantity.RAM
    for key in ("memories[0].bytes", "engines[0].tile_extent", "topology.cores", "language_models.device_watts"):
        assert makes(key) is None
    assert is_common("engines[0].macs_per_cycle.i8")
    assert not is_common("engines[0].reached.softmax.*")
