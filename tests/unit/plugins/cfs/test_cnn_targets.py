"""The CNN accelerator of MAX78000 and MAX78002: cycles as its maker counts them, and what it does not take, and why."""

from __future__ import annotations

import pytest

from opscope.estimate.estimator import Estimate, estimate
from opscope.estimate.machines import use_machine
from opscope.graph.graph import DType, Graph
from opscope.machine import catalogue
from support.build import Sketch


def conv(channels: int, side: int, results: int, **options: int) -> Graph:
    draw = Sketch(dtype=DType.I8)
    return draw.graph(draw.conv(draw.input(1, side, side, channels), results, **options))


def estimated(graph: Graph, name: str = "max78000-cnn") -> Estimate:
    return estimate(graph, use_machine(catalogue.load(name)))


# analogdevicesinc/ai8x-synthesis, izer/test/test_cycles.py: a 3x3 convolution with one pixel of padding.
@pytest.mark.parametrize(
    ("channels", "side", "results", "cycles"), [(3, 32, 64, 67981), (128, 8, 16, 2485), (1, 28, 8, 8189)]
)
def test_the_range_holds_what_its_maker_counts(channels: int, side: int, results: int, cycles: int) -> None:
    found = estimated(conv(channels, side, results))
    assert found.totals.latency_s is not None
    low, high = (seconds * 50e6 for seconds in (found.totals.latency_s.low, found.totals.latency_s.high))
    assert low <= cycles <= high
    assert found.layers[0].cycles == pytest.approx(cycles, rel=0.2)


def test_a_kernel_of_one_tap_takes_as_long_as_one_of_nine() -> None:
    one, nine = (estimated(conv(64, 16, 32, kernel=kernel)).layers[0].cycles for kernel in (1, 3))
    assert one == nine


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"kernel": 5}, "CNN takes kernel 1x1 or 3x3"),
        ({"stride": 2}, "CNN takes strides 1x1 or 1; this is 2x2"),
        ({"groups": 4}, "CNN takes groups 1; this is 4"),
        ({"results": 1028}, "CNN takes output_channels up to 1,024; this is 1028"),
    ],
)
def test_what_it_does_not_take_runs_on_the_processor_and_says_why(options: dict[str, int], reason: str) -> None:
    (layer,) = estimated(conv(4, 8, **{"results": 4, **options})).layers
    assert layer.engine == "CPU"
    assert layer.reason.startswith(reason)


def test_the_larger_one_takes_a_kernel_for_each_channel() -> None:
    layers = [estimated(conv(4, 8, 4, groups=4), f"max7800{n}-cnn").layers[0] for n in (0, 2)]
    assert [layer.engine for layer in layers] == ["CPU", "CNN"]
