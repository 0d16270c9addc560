"""Ops that read inputs of the graph alone run when their results are wanted, where these could not wait."""

from __future__ import annotations

import pytest

from opscope.compiler.passes.op_order import run_when_wanted
from opscope.compiler.passes.place import place
from opscope.compiler.plan import Plan
from opscope.estimate.price import Machine
from opscope.graph.graph import DType, Graph
from opscope.options import CompileOptions
from opscope.program.program import NO_ROUTE
from support.build import Sketch
from support.compiler.build import KB, build, small_target


def cached(layers: int) -> Graph:
    """Every layer adds a cache that was converted before the first of them; 8 KB each."""
    draw = Sketch(dtype=DType.F16)
    caches = [draw.same("exp", draw.input(64, 64, name=f"cache{i}"), name=f"convert{i}") for i in range(layers)]
    state = draw.input(64, 64, name="state")
    for number, cache in enumerate(caches):
        state = draw.same("add", state, cache, name=f"layer{number}")
    return draw.graph(state, caches[0])


def order(graph: Graph, kb: int, *, cores: int = 1) -> list[str]:
    return [op.name for op in ordered(graph, kb, cores=cores).graph.ops]


def ordered(graph: Graph, kb: int, *, cores: int = 1) -> Plan:
    plan = place(Plan(graph, Machine(small_target(local_bytes=kb * KB), cores=cores), CompileOptions()))
    return run_when_wanted(plan)


def test_what_cannot_wait_in_local_memory_is_converted_layer_by_layer() -> None:
    wanted = ["convert0", "layer0", "convert1", "layer1", "convert2", "layer2"]
    assert order(cached(3), kb=16) == wanted


@pytest.mark.parametrize(("kb", "cores"), [(24, 1), (6, 4)])
def test_what_can_wait_is_converted_while_nothing_else_can_run(kb: int, cores: int) -> None:
    graph = cached(3)
    assert order(graph, kb=kb, cores=cores) == [op.name for op in graph.ops]


def test_the_same_ops_run_each_behind_what_it_reads() -> None:
    graph = cached(40)
    plan = ordered(graph, kb=1)
    assert sorted(op.name for op in plan.graph.ops) == sorted(op.name for op in graph.ops)
    assert [placed.op for placed in plan.placed] == list(plan.graph.ops)
    made = set(graph.inputs)
    for op in plan.graph.ops:
        assert made.issuperset(op.inputs)
        made.update(op.outputs)


def test_caches_that_are_converted_late_are_not_spilled() -> None:
    built = build(cached(12), small_target(local_bytes=64 * KB, activation_bytes=8 * KB))
    program = built.program
    carried = [program.routes[route].carries for route in program.commands["route"] if route != NO_ROUTE]
    sizes = program.commands["moved_bytes"][program.commands["route"] != NO_ROUTE]
    written = sum(int(size) for size, carries in zip(sizes, carried, strict=True) if carries == "write")
    assert written == pytest.approx(2 * 64 * 64 * 2, rel=0.01)  # the two results of the graph
