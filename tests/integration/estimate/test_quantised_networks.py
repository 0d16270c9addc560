"""`--precision i8` against networks that come quantised, in time and in work."""

from __future__ import annotations

from pathlib import Path

import pytest

from opscope import api
from opscope.simulation import simulate
from opscope.zoo import Recipe, make

TARGET = "aic100-std"
NETWORKS = {"resnet50": {}, "bert-base": {"layers": 4}, "vit-b16": {"layers": 4}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("networks")


@pytest.fixture(params=NETWORKS)
def models(request: pytest.FixtureRequest, folder: Path) -> tuple[Path, Path]:
    """A network in f32, and as the zoo quantises it."""
    name: str = request.param
    found = []
    for precision in ("f32", "int8"):
        found.append(folder / f"{name}-{precision}.onnx")
        if not found[-1].exists():
            make(Recipe(name, precision=precision, weights=False, options=NETWORKS[name]), found[-1])
    return found[0], found[1]


def estimated(model: Path, precision: str | None = None) -> float:
    latency = api.report(model, TARGET, precision=precision, advise=False).totals.latency_s
    assert latency is not None
    return latency.value


def simulated(model: Path, precision: str | None = None) -> float:
    program = api.compile_model(model, TARGET, precision=precision).program
    return float(simulate(program, seed=0).total_cycles)


def test_the_estimate_is_that_of_the_quantised_network(models: tuple[Path, Path]) -> None:
    plain, quantised = models
    assert estimated(plain, "i8") == pytest.approx(estimated(quantised), rel=0.1)


def test_the_simulation_is_that_of_the_quantised_network(models: tuple[Path, Path]) -> None:
    plain, quantised = models
    assert simulated(plain, "i8") == pytest.approx(simulated(quantised), rel=0.1)


def test_half_the_bits_are_at_most_a_little_more_than_twice_as_fast(models: tuple[Path, Path]) -> None:
    plain, _ = models
    assert 1.0 < estimated(plain) / estimated(plain, "i8") <= 2.2
