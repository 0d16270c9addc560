"""Bodies of loops: no core shares them, and their constants are read once where one has room for all of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from opscope.estimate.traffic.stores import loop_bytes
from opscope.graph.graph import DType, Graph
from opscope.program.program import NO_ROUTE
from opscope.simulation import simulate
from support.build import Sketch
from support.compiler.build import KB, build, small_target
from support.compiler.laws import Order, all_laws, compute_rows

TRIPS = 7


def loop(trips: int = TRIPS) -> Graph:
    """A loop over a product with 8 KB of weights."""
    draw = Sketch(dtype=DType.F16)
    made = draw.same("erf", draw.input(64, 64))
    state = draw.tensor((64, 64), name="state")  # what the body is given
    out = draw.op("loop", (made,), (64, 64), name="L")
    step = draw.op("matmul", (state, draw.constant(64, 64)), (64, 64), scope="L", trips=trips, k=64, n=64)
    draw.op("tanh", (step,), (64, 64), scope="L", trips=trips)
    return draw.graph(draw.same("softmax", out, axes=(1,)))


@pytest.mark.parametrize("cores", [1, 2, 4])
def test_a_body_runs_whole_between_the_operands_of_its_loop_and_its_readers(cores: int) -> None:
    built = build(loop(), small_target(), cores=cores)
    all_laws(built, simulate(built.program))
    order, rows = Order(built), compute_rows(built)
    place = {placed.op.kind: index for index, placed in enumerate(built.schedule.placed)}
    for kind in ("matmul", "tanh"):  # parts would wait for each other in every trip
        assert not built.schedule.splits[place[kind]].sharding.cuts
    for kinds in (("erf", "matmul"), ("matmul", "tanh"), ("tanh", "softmax")):
        before, after = (rows[place[kind]] for kind in kinds)
        for lane, commands in after.items():
            assert order.all_hold(before[lane if lane in before else min(before)], commands[0])


def test_a_body_costs_as_much_as_all_its_trips() -> None:
    once, built = build(loop(1), small_target()), build(loop(), small_target())
    assert built.program.metrics.macs == TRIPS * once.program.metrics.macs == TRIPS * 64**3
    assert int(built.program.commands["macs"].sum()) == TRIPS * 64**3
    assert built.schedule.placed[3].cycles == pytest.approx(TRIPS * once.schedule.placed[3].cycles)


@pytest.mark.parametrize(("local_bytes", "passes"), [(256 * KB, 0), (136 * KB, 1), (96 * KB, TRIPS)])
def test_constants_of_a_body_stay_or_are_read_once_or_in_every_trip(local_bytes: int, passes: int) -> None:
    draw = Sketch(dtype=DType.F16)
    state = draw.input(16, 256)
    out = draw.op("loop", (state,), (16, 256), name="L")
    draw.dense(draw.tensor((16, 256), name="state"), 256, bias=False, scope="L", trips=TRIPS)  # 128 KB
    graph = draw.graph(draw.dense(out, 1024, bias=False))  # 512 KB, which no core holds: so weights are streamed
    built = build(graph, small_target(local_bytes=local_bytes, weight_bytes=4 * KB, activation_bytes=8 * KB))
    read = dict.fromkeys(range(3), 0)
    for command in built.program.commands:
        if command["route"] != NO_ROUTE and command["op"] > 0:
            read[int(command["op"])] += int(command["moved_bytes"])
    assert read[1] == pytest.approx(passes * 128 * KB, rel=0.01)
    all_laws(built, simulate(built.program))


@pytest.mark.parametrize("cores", [1, 2, 4])
def test_what_a_loop_is_given_of_the_networks_inputs_is_read_once_for_all_cores(cores: int) -> None:
    draw = Sketch(dtype=DType.F16)
    rows = draw.input(50, 4, 128)  # the body reads a row of it in every trip, under another name
    out = draw.op("scan", (rows,), (50, 4, 128), name="L")
    draw.same("tanh", draw.tensor((4, 128), name="row"), scope="L", trips=50)
    built = build(draw.graph(out), small_target(), cores=cores)
    all_laws(built, simulate(built.program))
    routes = built.program.routes
    reads = [c for c in built.program.commands if c["route"] != NO_ROUTE and routes[c["route"]].carries == "read"]
    assert sum(int(command["moved_bytes"]) for command in reads) == 50 * 4 * 128 * 2


def test_the_bytes_of_a_loop_are_those_of_all_its_body_in_any_order_of_ops() -> None:
    graph = loop()
    assert loop_bytes(graph) == {"L": 64 * 64 * 2}
    assert loop_bytes(replace(graph, ops=graph.ops[::-1])) == {"L": 64 * 64 * 2}
    assert loop_bytes(loop(1)) == {}
