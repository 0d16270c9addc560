"""Ops that read inputs of the graph alone run when their results are wanted."""

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


def ordered(graph: Graph) -> Plan:
    return run_when_wanted(place(Plan(graph, Machine(small_target()), CompileOptions())))


def test_caches_are_converted_layer_by_layer() -> None:
    wanted = ["convert0", "layer0", "convert1", "layer1", "convert2", "layer2"]
    assert [op.name for op in ordered(cached(3)).graph.ops] == wanted


def test_the_same_ops_run_each_behind_what_it_reads() -> None:
    graph = cached(40)
    plan = ordered(graph)
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
