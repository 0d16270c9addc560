"""Through which memories bytes travel, by the formulas of `report`."""

from __future__ import annotations

import pytest

from opscope.estimate.estimator import estimate
from opscope.estimate.machines import use_machine
from opscope.graph.graph import DType, Graph
from support.build import Sketch

MB = 1 << 20


def outer_bytes(graph: Graph, cores: int) -> int:
    """Bytes that the ops of a network move to and from the memory outside of the cores."""
    (outer,) = (memory.name for memory in use_machine("aic100-std").target.memories if memory.is_outer)
    return sum(layer.traffic.get(outer, 0) for layer in estimate(graph, use_machine("aic100-std", cores=cores)).layers)


@pytest.mark.parametrize("cores", [1, 14])
def test_a_network_without_weights_may_be_larger_than_local_memory(cores: int) -> None:
    draw = Sketch(dtype=DType.F16)
    graph = draw.graph(draw.same("relu", draw.input(64, 64, 64, 64)))
    assert outer_bytes(graph, cores) == 2 * 64**4 * 2  # read and written


def test_weights_stay_whole_or_not_at_all() -> None:
    """On one core with room for some 5 MB: of 4 × 2 MB two stay, of one with 16 MB no part does."""
    draw = Sketch(dtype=DType.F16)
    value = draw.input(1, 1024)
    for _ in range(4):
        value = draw.dense(value, 1024, bias=False)
    few = outer_bytes(draw.graph(value), 1)
    assert few == pytest.approx(2 * 2 * MB, rel=0.01)
    draw = Sketch(dtype=DType.F16)
    one = outer_bytes(draw.graph(draw.dense(draw.input(1, 4096), 2048, bias=False)), 1)
    assert one == pytest.approx(16 * MB, rel=0.01)
