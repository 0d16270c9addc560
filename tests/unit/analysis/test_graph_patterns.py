"""Forms of a graph that move data, found in small graphs typed by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from opscope.analysis.graph_patterns import DataFlow
from opscope.program.program import OpInfo
from opscope.recording.run import GRAPH_EDGE
from support.recording.analyse_build import run_of


def flow(kinds: dict[str, str], *edges: tuple[str, str]) -> tuple[DataFlow, dict[str, int]]:
    place = {name: number for number, name in enumerate(kinds)}
    run = run_of(ops=[OpInfo(name, kind, kind, "") for name, kind in kinds.items()])
    pairs = np.array([(place[one], place[other]) for one, other in edges], GRAPH_EDGE)
    return DataFlow(replace(run, graph=pairs)), place


def test_slices_that_a_concatenation_joins_are_a_focus_layer() -> None:
    slices = {f"slice{number}": "slice" for number in range(4)}
    found, place = flow(
        {"image": "add", **slices, "join": "concat", "conv": "conv"},
        *(("image", name) for name in slices),
        *((name, "join") for name in slices),
        ("join", "conv"),
    )
    pattern = found.pattern([place["slice2"]])
    assert pattern is not None
    assert "join puts together again" in pattern.seen
    assert "SpaceToDepth" in pattern.action


def test_slices_of_two_tensors_that_are_joined_are_none() -> None:
    found, place = flow(
        {"one": "add", "other": "mul", "a": "slice", "b": "slice", "join": "concat"},
        ("one", "a"),
        ("other", "b"),
        ("a", "join"),
        ("b", "join"),
    )
    assert found.pattern([place["a"]]) is None


@pytest.mark.parametrize("cut", ["slice", "gather", "split"])
def test_a_projection_that_is_cut_for_attention_is_packed(cut: str) -> None:
    found, place = flow(
        {
            "qkv": "matmul",
            "heads": "reshape",
            "q": cut,
            "k": cut,
            "v": cut,
            "q1": "reshape",
            "turn": "transpose",
            "scores": "matmul",
            "softmax": "softmax",
            "mix": "matmul",
        },
        ("qkv", "heads"),
        ("heads", "q"),
        ("heads", "k"),
        ("heads", "v"),
        ("q", "q1"),
        ("q1", "scores"),
        ("k", "turn"),
        ("turn", "scores"),
        ("scores", "softmax"),
        ("softmax", "mix"),
        ("v", "mix"),
    )
    for name in ("q", "k", "v", "q1"):
        pattern = found.pattern([place[name]])
        assert pattern is not None
        assert "qkv is cut into parts for 2 products" in pattern.seen
        assert "split the weights of qkv" in pattern.action


def test_an_uncut_result_that_two_products_read_is_not_packed() -> None:
    found, place = flow(
        {"one": "matmul", "shape": "reshape", "a": "matmul", "b": "matmul"},
        ("one", "shape"),
        ("shape", "a"),
        ("shape", "b"),
    )
    assert found.pattern([place["shape"]]) is None


def test_a_lonely_transposition_is_a_change_of_layout() -> None:
    found, place = flow({"conv": "conv", "turn": "transpose", "add": "add"}, ("conv", "turn"), ("turn", "add"))
    pattern = found.pattern([place["turn"]])
    assert pattern is not None
    assert "order of axes" in pattern.seen


def test_a_run_without_a_graph_tells_nothing() -> None:
    run = run_of(ops=[OpInfo("a", "Slice", "slice", "")])
    assert DataFlow(run).pattern([0]) is None
