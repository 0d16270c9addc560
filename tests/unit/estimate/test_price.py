"""Cycles on every resource, by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from opscope.core.meaning import Does
from opscope.core.units import Cycles
from opscope.estimate.cost import EXCHANGE, LAUNCH, TRANSFER, Cost, Part, Resource, Role, labels
from opscope.estimate.estimator import estimate
from opscope.estimate.placement import Placement
from opscope.estimate.price import Machine, Task, energy_of, engine_cycles, price
from opscope.estimate.traffic.moving import memory_cycles
from opscope.estimate.work import Work
from opscope.graph.graph import DType, Graph, Op
from opscope.machine import catalogue as targets
from opscope.machine.target import Engine, Holds, Scope
from support.build import Sketch, engine, figure, memory, target


def task(engine_: Engine, work: Work, *, kind: str = "conv", traffic: dict[str, int] | None = None) -> Task:
    op = Op(kind, kind, kind, (), ())
    return Task(op, work, Placement(engine_, DType.I8), traffic or {})


def test_parts_that_overlap_hide_behind_the_longest_and_the_rest_adds_up() -> None:
    mac, ram = Resource(Role.ENGINE, "mac"), Resource(Role.OUTER, "RAM")
    cost = Cost((Part(mac, Cycles(70)), Part(ram, Cycles(100)), Part(LAUNCH, Cycles(5), overlaps=False)))
    assert (cost.total, cost.bound) == (105, ram)


def test_what_is_called_alike_is_not_the_same() -> None:
    engine_, memory_ = Resource(Role.ENGINE, "launch"), Resource(Role.OUTER, "launch")
    work = [Part(engine_, Cycles(70)), Part(memory_, Cycles(100))]
    cost = Cost((*work, Part(LAUNCH, Cycles(5), overlaps=False)))
    assert (cost.total, cost.bound) == (105, memory_)
    assert cost.by_resource() == {engine_: 70, memory_: 100, LAUNCH: 5}
    assert cost.spent(Does.COMPUTE) == {Does.LAUNCH: 5, Does.COMPUTE: 100}


@pytest.mark.parametrize("names", [("mac", "RAM"), ("RAM", "mac")])
def test_of_parts_that_take_as_long_the_first_binds_whatever_they_are_called(names: tuple[str, str]) -> None:
    first, second = Resource(Role.ENGINE, names[0]), Resource(Role.OUTER, names[1])
    cost = Cost((Part(first, Cycles(70)), Part(second, Cycles(70))))
    assert [part.resource for part in cost.binding()] == [cost.bound] == [first]


def test_people_are_told_the_role_of_what_shares_its_name() -> None:
    ram = memory("RAM", Holds.ACTIVATIONS, Holds.CONSTANTS)
    plain = labels(target(engine("cpu"), memories=(ram,)))
    assert {label for resource, label in plain.items() if label != resource.name} == set()
    shared = labels(target(engine("launch"), engine("RAM"), memories=(ram,)))
    assert [label for resource, label in shared.items() if label != resource.name] == [
        "launch (engine)",
        "RAM (engine)",
        "RAM (memory)",
    ]
    assert shared[TRANSFER] == "transfer"


def test_an_op_without_parts_costs_nothing_and_is_bound_by_nothing() -> None:
    assert (Cost().total, Cost().bound) == (0, None)


def test_macs_run_at_the_rate_of_their_type_times_the_efficiency() -> None:
    unit = engine(macs={"i8": 100, "*": 1}, efficiency=figure(0.5))
    assert engine_cycles(task(unit, Work(macs=10_000)), unit) == 200


def test_elements_and_macs_of_one_engine_add_up() -> None:
    unit = engine(macs={"*": 10}, elements={"*": 2})
    assert engine_cycles(task(unit, Work(macs=100, element_ops=100)), unit) == 10 + 50


def test_a_published_kernel_beats_the_peak_rate() -> None:
    unit = engine(kernels={"softmax": figure(245.88), "normalise": figure(1)})
    assert engine_cycles(task(unit, Work(element_ops=9, write_bytes=2048), kind="softmax"), unit) == 2 * 245.88
    assert engine_cycles(task(unit, Work(element_ops=9, write_bytes=2048), kind="layer_norm"), unit) == 2


def test_lanes_share_the_work_but_not_the_launch() -> None:
    unit = engine(launch_cycles=figure(10))
    machine = Machine(target(unit, cores=4, devices=2), devices=2, cores=4)
    cost = price(task(unit, Work(macs=800)), unit, machine)
    assert {part.resource.name: part.cycles for part in cost.parts} == {"cpu": 100, "launch": 10}
    assert cost.total == 110


def test_an_engine_with_one_cost_for_all_commands_is_not_made_faster_by_lanes() -> None:
    unit = engine(command_cycles=figure(30))
    assert price(task(unit, Work(macs=800)), unit, Machine(target(unit, cores=4), cores=4)).total == 30


def test_an_op_without_work_is_not_launched() -> None:
    unit = engine(launch_cycles=figure(10))
    assert price(task(unit, Work(), kind="reshape"), unit, Machine(target(unit))).total == 0


@pytest.mark.parametrize(("scope", "instances"), [(Scope.CORE, 8), (Scope.DEVICE, 2), (Scope.HOST, 1)])
def test_a_memory_is_as_wide_as_it_has_instances(scope: Scope, instances: int) -> None:
    ram = memory("RAM", Holds.ACTIVATIONS, Holds.CONSTANTS, scope=scope, bytes_per_cycle=figure(4))
    machine = Machine(target(memories=(ram,), cores=4, devices=2), devices=2, cores=4)
    assert memory_cycles(ram, 3200, machine) == 3200 / 4 / instances


def test_bytes_per_second_turn_into_cycles_of_the_core_clock() -> None:
    ram = memory("RAM", Holds.ACTIVATIONS, Holds.CONSTANTS, bytes_per_second=figure(8e6), efficiency=figure(0.5))
    machine = Machine(target(memories=(ram,), clock=figure(2e6)))
    assert memory_cycles(ram, 4000, machine) == 2000


def test_a_memory_without_a_bandwidth_takes_no_part() -> None:
    ram = memory("RAM", Holds.ACTIVATIONS, Holds.CONSTANTS)
    unit = engine()
    cost = price(task(unit, Work(macs=5), traffic={"RAM": 1000}), unit, Machine(target(unit, memories=(ram,))))
    assert [part.resource for part in cost.parts] == [Resource.of_engine(unit)]


def test_energy_is_arithmetic_plus_bytes() -> None:
    unit = engine(picojoules_per_mac={"*": figure(2)}, picojoules_per_element_op={"*": figure(1)})
    ram = memory("RAM", Holds.ACTIVATIONS, Holds.CONSTANTS, picojoules_per_byte=figure(10))
    work = Work(macs=100, element_ops=50)
    found = energy_of(task(unit, work, traffic={"RAM": 7}), unit, target(unit, memories=(ram,)))
    assert found is not None
    assert found.joules(1, 5.0) == pytest.approx((200 + 50 + 70) * 1e-12)
    assert found.joules(3, 0.0) == pytest.approx(3 * found.joules(1, 0.0))


def test_what_is_drawn_while_an_engine_works_adds_to_what_is_drawn_always() -> None:
    unit = engine(busy_watts=figure(2))
    found = energy_of(task(unit, Work(macs=100)), unit, replace(target(unit), idle_watts=figure(3)))
    assert found is not None
    assert found.joules(7, 4.0) == pytest.approx((2 + 3) * 4.0)


def test_energy_without_a_figure_is_unknown_not_zero() -> None:
    unit = engine()
    assert energy_of(task(unit, Work(macs=100)), unit, target(unit)) is None
    assert energy_of(task(unit, Work(macs=100)), unit, replace(target(unit), idle_watts=figure(3))) is None


def convolution(images: int) -> Graph:
    draw = Sketch(dtype=DType.F16)
    return draw.graph(draw.conv(draw.input(images, 28, 28, 64), 64, bias=False))


def test_cores_with_images_of_their_own_take_what_one_takes_for_its_share() -> None:
    card = targets.load("aic100-std")
    one = estimate(convolution(2), Machine(card)).layers[0]
    shared = estimate(convolution(8), Machine(card, cores=4)).layers[0]
    fewer, uneven = (estimate(convolution(images), Machine(card, cores=4)).layers[0] for images in (7, 5))
    assert one.cost is not None
    assert shared.cost is not None
    assert fewer.cost is not None
    assert uneven.cost is not None
    own, others, some = (
        {part.resource: part.cycles for part in layer.parts if part.resource.name != "DDR"}
        for layer in (one.cost, shared.cost, fewer.cost)
    )
    assert others == pytest.approx(own)
    assert EXCHANGE not in own
    assert some == pytest.approx(others)  # a core has one image fewer
    assert EXCHANGE in [part.resource for part in uneven.cost.parts]


def test_a_network_waits_for_its_input_and_for_its_result_to_leave() -> None:
    card, draw = targets.load("aic100-std"), Sketch(dtype=DType.F16)
    hidden = draw.dense(draw.input(64, 1280), 1024, bias=False)
    graph = draw.graph(draw.dense(draw.dense(hidden, 1024, bias=False), 1000, bias=False))
    (memory,) = (memory for memory in card.memories if memory.is_outer)
    ends = []
    for layer in estimate(graph, Machine(card, cores=14)).layers:
        assert layer.cost is not None
        ends.append(sum(part.cycles for part in layer.cost.parts if part.resource.is_outer and not part.overlaps))
    assert memory.bytes_per_second is not None
    rate = memory.bytes_per_second.value * memory.reached / card.clocks.core_hz.value
    assert ends == pytest.approx([64 * 1280 * 2 / rate, 0, 64 * 1000 * 2 / rate])


def test_an_elementwise_op_waits_for_the_first_piece_and_leaves_the_last_behind() -> None:
    card, draw = targets.load("aic100-std"), Sketch(dtype=DType.F16)
    (layer,) = estimate(draw.graph(draw.same("relu", draw.input(64, 1 << 20))), Machine(card, cores=14)).layers
    assert layer.cost is not None
    alone, beside = (
        sum(part.cycles for part in layer.cost.parts if part.resource.is_outer and part.overlaps is overlaps)
        for overlaps in (False, True)
    )
    assert 0 < alone < 0.1 * beside


def test_cores_cut_what_weights_enter_long() -> None:
    """A row for each core: to give each a part of the weights, and rows to all, takes less than all weights in all."""
    draw = Sketch(dtype=DType.F16)
    graph = draw.graph(draw.dense(draw.input(4, 2048), 2048, bias=False))
    card = targets.load("aic100-std")
    alone, shared = (estimate(graph, Machine(card, cores=cores)).layers[0].cost for cores in (1, 4))
    assert alone is not None
    assert shared is not None
    assert EXCHANGE in [part.resource for part in shared.parts]
    assert shared.total < alone.total / 2
