"""The detector of MLPerf: its parts add up, and all levels share the weights of its heads."""

from __future__ import annotations

from pathlib import Path

from opscope.estimate.work import work_of
from opscope.graph.graph import Graph, Role
from opscope.readers import graph_of
from opscope.zoo import Recipe, make

PLACES = 100**2 + 50**2 + 25**2 + 13**2 + 7**2  # of all levels
NUMBERS = 9 * (264 + 4)  # at each: classes and corners of nine boxes


def graph(folder: Path) -> Graph:
    path = folder / "retinanet.onnx"
    make(Recipe("retinanet", weights=False), path)
    return graph_of(path)


def test_heads_run_at_every_place_of_every_level(tmp_path: Path) -> None:
    found = graph(tmp_path)
    heads = [op for op in found.ops if op.name.startswith("/head")]
    macs = sum(work_of(op, found).macs for op in heads)
    assert macs == PLACES * 3 * 3 * 256 * (2 * 4 * 256 + NUMBERS)


def test_all_levels_share_the_weights_of_the_heads(tmp_path: Path) -> None:
    found = graph(tmp_path)
    used = {t for op in found.ops if op.name.startswith("/head") and op.kind == "conv" for t in op.inputs[1:]}
    sizes = [found.tensors[t].elements or 0 for t in used if found.tensors[t].role is Role.CONSTANT]
    assert sum(sizes) == 3 * 3 * 256 * (2 * 4 * 256 + NUMBERS) + 2 * 4 * 256 + NUMBERS


def test_the_best_scores_of_a_level_leave_with_their_places_and_boxes(tmp_path: Path) -> None:
    found = graph(tmp_path)
    shapes = [found.tensors[t].shape for t in found.outputs]
    assert shapes == [(1, 1000), (1, 1000), (1, 1000, 4)] * 5
