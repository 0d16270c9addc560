"""Ops that are alike share their options; prices and choices are those that each would have on its own."""

from __future__ import annotations

from itertools import count

import pytest

from opscope.compiler import PASSES
from opscope.compiler.passes.split import Splitter
from opscope.compiler.plan import Plan
from opscope.estimate.price import Machine
from opscope.graph.graph import DType, Graph
from opscope.options import CompileOptions
from support.build import Sketch
from support.compiler.build import KB, small_target


def layers(number: int) -> Graph:
    """Two products with a softmax between them and their input added behind, so often."""
    draw = Sketch(dtype=DType.F16)
    data = draw.input(8, 256)
    for _ in range(number):
        wide = draw.op("softmax", (draw.dense(data, 512),), (8, 512), axes=(1,))
        data = draw.op("add", (draw.dense(wide, 256), data), (8, 256))
    return draw.graph(data)


def split_plan(graph: Graph, *, cores: int, devices: int) -> Plan:
    machine = Machine(small_target(local_bytes=256 * KB), devices=devices, cores=cores)
    plan = Plan(graph, machine, CompileOptions())
    for name, run in PASSES:
        if name == "tile":
            break
        plan = run(plan)
    return plan


@pytest.mark.parametrize(("cores", "devices"), [(4, 1), (7, 1), (2, 2)])
def test_sharing_options_changes_no_choice_and_no_price(
    cores: int, devices: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = split_plan(layers(3), cores=cores, devices=devices)
    numbers = count()
    monkeypatch.setattr(Splitter, "_likeness", lambda *_: (next(numbers),))  # no two are alike
    alone = split_plan(layers(3), cores=cores, devices=devices)
    assert (shared.parts, shared.alternatives) == (alone.parts, alone.alternatives)


def test_more_layers_have_no_more_options_to_price(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the first layer and of those behind it, however many: the input of the first is stored in outer memory."""
    priced: list[int] = []
    options = Splitter._options
    monkeypatch.setattr(Splitter, "_options", lambda self, index: priced.append(index) or options(self, index))
    found = []
    for number in (3, 6):
        priced.clear()
        split_plan(layers(number), cores=4, devices=1)
        found.append(len(priced))
    assert found[0] == found[1] > 0
