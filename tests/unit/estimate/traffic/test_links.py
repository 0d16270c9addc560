"""How devices share the work in an estimate: by images, by products, or not at all; and what crosses the links."""

from __future__ import annotations

from dataclasses import replace

import pytest

from opscope.core.meaning import Carries
from opscope.estimate.estimator import Estimate, estimate, predict
from opscope.estimate.machines import use_machine
from opscope.estimate.price import Machine, Sharing, link_price
from opscope.estimate.traffic.links import SharedOp, shared_ops, ways_to_share
from opscope.graph.graph import DType, Graph
from support.build import Sketch


def layers(batch: int, width: int, *, count: int = 4) -> Graph:
    draw = Sketch(dtype=DType.F16)
    data = draw.input(batch, width)
    for _ in range(count):
        data = draw.same("relu", draw.dense(data, width))
    return draw.graph(data)


def estimated(graph: Graph, devices: int) -> Estimate:
    return estimate(graph, use_machine("aic100-ultra", cores=16, devices=devices))


def seconds(found: Estimate) -> float:
    assert found.totals.latency_s is not None
    return found.totals.latency_s.value


@pytest.mark.parametrize("batch", [1, 2, 3, 8, 64])
@pytest.mark.parametrize("width", [64, 4096])
def test_more_devices_are_never_estimated_slower(batch: int, width: int) -> None:
    times = [seconds(estimated(layers(batch, width), devices)) for devices in (1, 2, 4)]
    assert times == sorted(times, reverse=True)


def test_large_weights_are_shared_and_small_ones_are_not() -> None:
    large, small = (estimated(layers(1, width, count=8), 4) for width in (8192, 64))
    assert (large.machine.devices, large.machine.sharing) == (4, Sharing.PRODUCTS)
    assert small.machine.devices == 1
    assert [note.text for note in small.graph.notes if note.code == "devices"] == [
        "one of 4 devices does all of it: what others would have to send takes longer"
    ]


def conv_network(batch: int) -> Graph:
    draw = Sketch(dtype=DType.F16)
    data = draw.input(batch, 56, 56, 64)
    for _ in range(4):
        data = draw.conv(data, 64)
    return draw.graph(data)


@pytest.mark.parametrize(("batch", "own"), [(8, 2), (5, 2), (2, 1)])
def test_devices_that_share_images_take_what_one_takes_for_its_own(batch: int, own: int) -> None:
    several, alone = estimated(conv_network(batch), 4), estimated(conv_network(own), 1)
    assert (several.machine.devices, several.machine.sharing) == (min(4, batch), Sharing.IMAGES)
    assert seconds(several) == pytest.approx(seconds(alone), rel=0.03)


def test_a_suggestion_is_compared_with_the_same_way_to_share() -> None:
    graph, machine = conv_network(8), use_machine("aic100-ultra", cores=16, devices=4)
    assert predict(graph, machine).latency_s == pytest.approx(seconds(estimate(graph, machine)))


def test_what_every_device_has_is_not_sent() -> None:
    draw = Sketch(dtype=DType.F16)
    data = draw.input(8, 64)
    hidden = draw.same("relu", draw.dense(data, 128, bias=False))
    graph = draw.graph(draw.dense(hidden, 32, bias=False), draw.dense(hidden, 48, bias=False))
    machine = Machine(use_machine("aic100-ultra").target, devices=4, cores=16, sharing=Sharing.PRODUCTS)
    size = 8 * 128 * 2
    sent = [op.linked_bytes for op in shared_ops(graph, machine)]
    assert sent == [0, 0, size * 3 // 4, 0]  # an input is read by all; it is sent once
    assert shared_ops(graph, replace(machine, sharing=Sharing.IMAGES)) == [SharedOp()] * 4


def test_devices_have_rows_of_a_large_image_and_channels_of_a_small_one() -> None:
    draw = Sketch(dtype=DType.F16)
    large = draw.conv(draw.conv(draw.input(1, 224, 224, 64), 64, bias=False), 64, bias=False)
    small = draw.op("max_pool", (large,), (1, 7, 7, 64), kernel=(32, 32), strides=(32, 32))
    graph = draw.graph(draw.conv(draw.conv(small, 512, bias=False), 512, bias=False))
    machine = Machine(use_machine("aic100-ultra").target, devices=4, cores=16, sharing=Sharing.PRODUCTS)
    row, pooled, channels = 224 * 64 * 2, 7 * 7 * 64 * 2, 7 * 7 * 512 * 2
    assert shared_ops(graph, machine) == [
        SharedOp(0, readers=4),  # every device reads the rows of the input that it needs
        SharedOp(2 * row, readers=4),
        SharedOp(),
        SharedOp(pooled * 3 // 4),
        SharedOp(channels * 3 // 4),
    ]


def test_a_link_takes_its_latency_and_its_bytes() -> None:
    machine = use_machine("aic100-ultra", cores=16, devices=4)
    price = link_price(machine)
    assert machine.clock_hz / price.per_byte == pytest.approx(16e9)
    assert price.start > 1e-6 * machine.clock_hz


def test_without_a_link_devices_share_images_or_one_does_all() -> None:
    machine = use_machine("aic100-ultra", cores=16, devices=4)
    routes = tuple(route for route in machine.target.routes if route.carries is not Carries.LINK)
    bare = replace(machine, target=replace(machine.target, routes=routes))
    ways = [(way.devices, way.sharing) for way in ways_to_share(layers(8, 64), bare)]
    assert ways == [(1, Sharing.PRODUCTS), (4, Sharing.IMAGES)]
