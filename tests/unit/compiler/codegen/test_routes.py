"""Routes and memories of a target, in the cycles of a program."""

from __future__ import annotations

import pytest

from opscope.compiler.codegen.context import memories
from opscope.core.meaning import Carries
from opscope.graph.graph import DType
from opscope.machine import catalogue as targets
from opscope.machine.corners import Corner, at_corner
from support.build import Sketch
from support.compiler.build import build, small_target


def test_a_memory_has_the_rate_that_reads_and_writes_reach_together() -> None:
    outer, local = memories(targets.load("aic100-std"))
    assert outer.bytes_per_cycle == pytest.approx(137e9 * 0.78 / 1233.12e6)
    assert (outer.on_core_clock, local.bytes_per_cycle) == (False, None)
    assert memories(targets.load("torq-sl2610"))[0].on_core_clock


@pytest.mark.parametrize(("corner", "latency"), [(Corner.FAST, 0.4e-6), (Corner.TYPICAL, 1e-6), (Corner.SLOW, 2e-6)])
def test_the_link_between_devices_has_its_latency_at_every_corner(corner: Corner, latency: float) -> None:
    draw = Sketch(dtype=DType.F16)
    graph = draw.graph(draw.dense(draw.input(4, 64), 64))
    program = build(graph, at_corner(small_target(), corner), cores=1, devices=2).program
    (link,) = [route for route in program.routes if route.carries is Carries.LINK]
    assert link.latency_cycles == pytest.approx(latency * program.clock_hz)
    assert {route.latency_cycles for route in program.routes if route is not link} == {0.0}
