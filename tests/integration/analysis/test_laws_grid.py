"""Laws between points of a grid: cores, batches, precisions, bounds, `report` and `profile` of the same machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache

import pytest

from support.device.law_grid import LAWS, MOST_BATCH, NETWORKS, Case, Machine, Point, Violation, points_of

Law = Callable[[Sequence[Point]], Iterator[Violation]]

STANDARD = tuple(Machine("aic100-std", cores) for cores in (1, 4, 14))
ALL_CORES = tuple(Machine("aic100-std", cores) for cores in (1, 2, 4, 7, 8, 12, 14))
ULTRA = tuple(Machine("aic100-ultra", 16, devices) for devices in (1, 2, 4))
BATCHES = (1, 2, 8, 14, 16, 32, 64)


@cache
def small_grid(network: str) -> tuple[Point, ...]:
    cases = [Case(network, "f16", batch, STANDARD) for batch in (1, 8, 16)] + [Case(network, "i8", 8, STANDARD)]
    return tuple(point for case in cases for point in points_of(case))


@cache
def large_grid(network: str) -> tuple[Point, ...]:
    batches = [batch for batch in BATCHES if batch <= MOST_BATCH.get(network, batch)]
    cases = [Case(network, precision, batch, (*ALL_CORES, *ULTRA)) for precision in ("f16", "i8") for batch in batches]
    return tuple(point for case in cases for point in points_of(case))


def names_of(points: Sequence[Point], law: Law) -> list[str]:
    return [str(violation) for violation in law(points)]


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
@pytest.mark.parametrize(
    "network", ["bert-2-layers", *(pytest.param(name, marks=pytest.mark.slow) for name in ("resnet50", "vit-2-layers"))]
)
def test_a_small_grid_obeys(network: str, law: Law) -> None:
    points = small_grid(network)
    assert len(points) == 12
    assert names_of(points, law) == []


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
@pytest.mark.parametrize("network", [name for name in NETWORKS if not name.endswith("-layers")])
def test_the_whole_grid_obeys(network: str, law: Law) -> None:
    assert names_of(large_grid(network), law) == []


# ---- the judge itself --------------------------------------------------------------------------------------------


def point(**changes: object) -> Point:
    usual = {
        "network": "net",
        "precision": "f16",
        "batch": 8,
        "machine": Machine("card", 4),
        "seconds": 2e-3,
        "bound": 1e-3,
        "bound_by": "MACs",
        "estimate": 2e-3,
        "matrix": 0.0,
        "outer_bytes": 0,
        "idle": 0.0,
    }
    return Point(**usual | changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("points", "words"),
    [
        (
            [point(), point(machine=Machine("card", 8), seconds=2.2e-3)],
            "more cores are not slower: net f16 batch 8 on card 8: 2.2 ms, card 4 2 ms (1.10 ×)",
        ),
        (
            [point(), point(machine=Machine("card", 4, devices=2), seconds=2.2e-3)],
            "more cores are not slower: net f16 batch 8 on card 2 × 4: 2.2 ms, card 4 2 ms (1.10 ×)",
        ),
        (
            [point(), point(batch=16, seconds=5e-3, bound=2e-3, estimate=5e-3)],
            "a larger batch is not slower: net f16 batch 16 on card 4: 3,200/s, batch 8 4,000/s",
        ),
        ([point(seconds=0.9e-3, estimate=1e-3)], "time ≥ bound: net f16 batch 8 on card 4: 900 us, bound 1 ms (MACs)"),
        (
            [point(seconds=4e-3, estimate=4e-3, named={"layout": 1e-3})],
            "time ≤ 2.5 × bound, or named: net f16 batch 8 on card 4: 4 ms = 4.0 × the bound 1 ms (MACs), "
            "75% not named",
        ),
        (
            [point(), point(precision="i8", seconds=0.8e-3, bound=0.5e-3, estimate=0.8e-3)],
            "half the bits are ≤ 2.2 × as fast at the same clock: net i8 batch 8 on card 4: 800 us, f16 2 ms (0.40 ×)",
        ),
        (
            [point(estimate=1e-3)],
            "report and profile within 1.5 ×: net f16 batch 8 on card 4: 2 ms, report 1 ms (2.00 ×)",
        ),
        ([point(broken=("DDR bytes (2 and 1)",))], "laws of a run: net f16 batch 8 on card 4: DDR bytes (2 and 1)"),
    ],
)
def test_a_point_that_cannot_be_is_found(points: list[Point], words: str) -> None:
    assert [str(violation) for law in LAWS for violation in law(points)] == [words]


def test_what_is_named_or_inevitable_is_no_violation() -> None:
    named = point(seconds=6e-3, estimate=6e-3, named={"layout": 1e-3, "vector engine": 2.6e-3})
    small = point(seconds=9e-3, estimate=9e-3, named={"launch": 6.4e-3})
    filled = point(seconds=6e-3, estimate=6e-3, matrix=3.5e-3)
    half = point(seconds=5e-3, estimate=5e-3, idle=0.5)
    fast = [point(), point(precision="i8", seconds=0.87e-3, bound=0.5e-3, estimate=0.87e-3, same_clock=1e-3)]
    assert [violation for law in LAWS for violation in law(fast)] == []
    assert [violation for law in LAWS for alone in (named, small, filled, half) for violation in law([alone])] == []
