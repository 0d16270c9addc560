"""What a machine of planes does to a graph."""

from __future__ import annotations

from opscope.estimate.canonical import canonicalise
from opscope.graph.graph import DType, Graph
from opscope.machine import catalogue as targets
from support.build import Sketch

TORQ = targets.load("torq-sl2610")


def kinds(graph: Graph) -> list[str]:
    return [op.kind for op in canonicalise(graph, TORQ).ops]


def test_images_are_transposed_once_on_their_way_in_and_once_on_their_way_out() -> None:
    draw = Sketch("net", dtype=DType.I8)
    data = draw.input(1, 16, 16, 8)
    graph = draw.graph(draw.conv(draw.conv(data, 8), 8))
    assert kinds(graph) == ["transpose", "conv", "conv", "transpose"]


def test_a_canonical_graph_stays_as_it_is() -> None:
    draw = Sketch("net", dtype=DType.I8)
    graph = canonicalise(draw.graph(draw.conv(draw.input(1, 16, 16, 8), 8)), TORQ)
    assert canonicalise(graph, TORQ) == graph


def test_a_target_without_planes_transposes_nothing() -> None:
    draw = Sketch("net", dtype=DType.I8)
    graph = draw.graph(draw.conv(draw.input(1, 16, 16, 8), 8))
    assert "transpose" not in [op.kind for op in canonicalise(graph, targets.load("aic100-std")).ops]
