"""Devices that share the images of a batch: laws hold, nothing crosses a link, and each takes as long as alone."""

from __future__ import annotations

import pytest

from opscope.compiler.passes.batch import batch_axes
from opscope.compiler.passes.device_images import on_all_devices, share_of_device
from opscope.compiler.passes.parts import PartsChooser
from opscope.compiler.plan import Part, Plan
from opscope.core.meaning import Carries
from opscope.graph.graph import DType, Graph
from opscope.simulation import simulate
from support.build import Sketch
from support.compiler.build import KB, Built, Parts, build, small_target
from support.compiler.laws import all_laws

DEVICES = 2


def network(batch: int) -> Graph:
    """A convolution, a product of the flattened images, and constants that no image has a part in."""
    draw = Sketch(dtype=DType.F16)
    data = draw.conv(draw.input(batch, 16, 16, 32), 64)
    rows = draw.op("reshape", (data,), (batch * 256, 64))
    same = draw.dense(rows, 64, bias=False)
    table = draw.same("exp", draw.constant(64))
    return draw.graph(draw.op("add", (same, table), (batch * 256, 64)))


def by_images(unit: int) -> Parts:
    def chosen(plan: Plan) -> tuple[Part, ...]:
        axes = batch_axes(plan.graph)
        alone = share_of_device(plan, axes, DEVICES)
        assert alone is not None
        parts = on_all_devices(PartsChooser(alone).parts(unit), plan, axes, DEVICES)
        assert parts is not None
        return parts

    return chosen


def seconds(built: Built) -> float:
    timeline = simulate(built.program)
    all_laws(built, timeline)
    return timeline.total_cycles / built.program.clock_hz


@pytest.mark.parametrize(
    ("batch", "unit", "local_bytes"),
    [(8, 4, 1024 * KB), (8, 2, 128 * KB), (5, 3, 1024 * KB), (3, 2, 1024 * KB), (11, 6, 1024 * KB)],
)
def test_devices_that_share_images_exchange_nothing(batch: int, unit: int, local_bytes: int) -> None:
    target = small_target(local_bytes=local_bytes, weight_bytes=4 * KB)
    built = build(network(batch), target, cores=3, devices=DEVICES, parts=by_images(unit))
    assert seconds(built) > 0
    link = next(number for number, route in enumerate(built.program.routes) if route.carries is Carries.LINK)
    assert not (built.program.commands["route"] == link).any()
    assert sum(part.images for part in built.passed.parts) == batch


def test_twice_the_images_on_twice_the_devices_take_as_long() -> None:
    target = small_target(weight_bytes=4 * KB)
    one = build(network(4), target, cores=3)
    two = build(network(8), target, cores=3, devices=DEVICES, parallel="auto")
    assert seconds(two) <= 1.05 * seconds(one)


def test_images_that_are_mixed_or_fewer_than_devices_are_not_shared() -> None:
    draw = Sketch(dtype=DType.F16)
    mixed = draw.graph(draw.same("softmax", draw.input(8, 64), axes=(0,)))
    for graph in (mixed, network(1)):
        plan = build(graph, small_target(), cores=2).passed
        assert share_of_device(plan, batch_axes(plan.graph), DEVICES) is None
