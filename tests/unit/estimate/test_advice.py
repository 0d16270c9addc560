"""Suggestions: best first, none that harms, each reproduced by estimating the changed graph from scratch."""

from __future__ import annotations

from math import log

import pytest

from opscope.estimate import graph_changes
from opscope.estimate.advice import INPUT_SCALE, PRUNED_TO, heavy_macs, heavy_memory, suggestions
from opscope.estimate.estimator import Estimate, estimate
from opscope.estimate.price import Machine
from opscope.estimate.quantiser import quantise
from opscope.estimate.traffic.stores import parameter_bytes
from opscope.graph.graph import DType, Graph
from opscope.machine import catalogue as targets
from opscope.machine.target import Holds, Support
from opscope.recording.resources import Footprint, Suggestion
from support.build import Sketch, engine, figure, machine, memory, mobilenet, resnet

PRICES = {"picojoules_per_mac": {"*": figure(100)}, "picojoules_per_element_op": {"*": figure(100)}}


def big_dense() -> Graph:
    draw = Sketch("dense")
    data = draw.dense(draw.input(1, 512), 512)
    return draw.graph(draw.same("softmax", draw.dense(draw.same("relu", data), 256)))


CASES = {
    "resnet on the sample profile": (resnet(), Machine(targets.load("cfs-sample"))),
    "resnet on a small processor": (resnet(), Machine(targets.load("max78002-cm4"))),
    "resnet on 14 cores": (resnet(), Machine(targets.load("aic100-std"), cores=14)),
    "mobilenet on a small processor": (mobilenet(), Machine(targets.load("max32690-cm4"))),
    "dense on the sample profile": (big_dense(), Machine(targets.load("cfs-sample"))),
    "dense on a machine by hand": (big_dense(), machine(engine(**PRICES))),
}
every_case = pytest.mark.parametrize(("graph", "chosen"), CASES.values(), ids=CASES.keys())


def from_estimate(result: Estimate) -> Footprint:
    """The long way: read off the layers and totals of a whole estimate."""
    latency, energy = result.totals.latency_s, result.totals.energy_j
    return Footprint(
        latency_s=None if latency is None else latency.value,
        peak_bytes=result.plan.arena_bytes + result.plan.scratch_bytes,
        parameter_bytes=parameter_bytes(result.graph),
        energy_j=None if energy is None else energy.value,
    )


def metrics(prediction: Footprint) -> dict[str, float | None]:
    return {
        "latency": prediction.latency_s,
        "peak": prediction.peak_bytes,
        "parameters": prediction.parameter_bytes,
        "energy": prediction.energy_j,
    }


def gain(idea: Suggestion) -> float:
    old, new = metrics(idea.before), metrics(idea.after)
    return sum(log(old[key] / new[key]) for key in old if old[key] and new[key])


def kinds(graph: Graph, chosen: Machine) -> set[str]:
    return {idea.kind for idea in suggestions(estimate(graph, chosen))}


@every_case
def test_suggestions_are_sorted_best_first_and_harm_nothing(graph: Graph, chosen: Machine) -> None:
    found = suggestions(estimate(graph, chosen))
    assert found
    gains = [gain(idea) for idea in found]
    assert gains == sorted(gains, reverse=True)
    assert gains[-1] > 0.01
    for idea in found:
        old, new = metrics(idea.before), metrics(idea.after)
        for key, before in old.items():
            if before is not None:
                assert new[key] <= before * 1.01, (idea.kind, key)


@every_case
def test_each_prediction_is_reproduced_from_scratch(graph: Graph, chosen: Machine) -> None:
    base = estimate(graph, chosen)
    changes = {
        "quantize": lambda g, _: quantise(g, chosen.target),
        "quantize-weights": lambda g, _: graph_changes.quantise_weights(g),
        "prune": lambda g, _: graph_changes.prune_channels(g, keep=PRUNED_TO),
        "smaller-input": lambda g, _: graph_changes.shrink_input(g, scale=INPUT_SCALE),
        "fuse": lambda g, _: graph_changes.fuse_more(g, chosen.target),
        "depthwise-separable": graph_changes.split_into_depthwise_separable,
        "low-rank": graph_changes.factorise_low_rank,
        "move-to-accelerator": graph_changes.dense_to_convolution,
    }
    for idea in suggestions(base):
        changed = changes[idea.kind](base.graph, idea.layers)
        assert changed is not None
        assert idea.before == from_estimate(base)
        assert idea.after == from_estimate(estimate(changed, chosen))


@every_case
def test_suggestions_about_layers_name_only_layers_they_change(graph: Graph, chosen: Machine) -> None:
    base = estimate(graph, chosen)
    wanted = {"depthwise-separable": {"conv"}, "low-rank": {"matmul", "conv"}, "move-to-accelerator": {"matmul"}}
    for idea in suggestions(base):
        assert all(base.graph.ops[layer].kind in wanted[idea.kind] for layer in idea.layers)
        for layer in idea.layers[:6]:
            assert str(layer) in idea.text


def test_a_graph_without_weights_is_not_told_to_quantise_them() -> None:
    draw = Sketch()
    graph = draw.graph(draw.same("softmax", draw.input(1, 1000)))
    assert kinds(graph, machine()) == {"quantize"}  # a quarter of the RAM, and nothing about weights


def test_an_int8_graph_is_not_told_to_quantise() -> None:
    assert not {"quantize", "quantize-weights"} & kinds(mobilenet(), Machine(targets.load("max32690-cm4")))


def test_a_change_that_the_target_cannot_run_is_not_suggested() -> None:
    for chosen in (machine(support=Support(dtypes=("f32",))), machine(engine(macs={"f32": 1}, elements={"f32": 1}))):
        assert "quantize" not in kinds(big_dense(), chosen)


def test_a_slower_change_is_not_suggested() -> None:
    chosen = machine(engine(macs={"f32": 10, "i8": 1}))
    assert "quantize" not in kinds(big_dense(), chosen)
    assert "quantize" in kinds(big_dense(), machine(engine(macs={"f32": 10, "i8": 10})))


def test_separating_is_not_suggested_where_starting_an_op_costs_more_than_it_saves() -> None:
    draw = Sketch()
    graph = draw.graph(draw.conv(draw.input(1, 4, 4, 16), 16))
    assert "depthwise-separable" in kinds(graph, machine(engine()))
    assert "depthwise-separable" not in kinds(graph, machine(engine(launch_cycles=figure(1e6))))


def test_dense_layers_move_only_to_an_accelerator_that_takes_convolutions() -> None:
    npu = engine("npu", ops=("conv",), accelerator=True, macs={"*": 100})
    assert "move-to-accelerator" in kinds(big_dense(), machine(npu, engine()))
    assert "move-to-accelerator" not in kinds(big_dense(), machine(engine()))


def test_the_heaviest_layers_come_with_a_change_that_helps_them() -> None:
    base = estimate(resnet(), Machine(targets.load("cfs-sample")))
    assert [item.layer for item in heavy_memory(base)] == [34, 37, 38, 41, 42]
    assert [item.layer for item in heavy_macs(base)] == [2, 5, 6, 9, 10]
    assert heavy_macs(base)[0].suggestion == (
        "depthwise-separable convolution: 21,233,664 → 2,801,664 MACs, 87% fewer cycles"
    )
    assert heavy_memory(base)[0].suggestion.startswith("depthwise-separable convolution: 576.50 KB → 69.00 KB")


def test_layers_that_cannot_shrink_say_so() -> None:
    draw = Sketch(dtype=DType.I8)
    base = estimate(draw.graph(draw.conv(draw.input(1, 4, 4, 48), 48, kernel=1)), machine())
    (item,) = heavy_memory(base)
    assert item.suggestion == "nothing tried here makes it smaller on this target"


def test_layers_below_a_kilobyte_or_without_macs_are_not_listed() -> None:
    draw = Sketch()
    base = estimate(draw.graph(draw.same("add", draw.input(8), draw.constant(8))), machine())
    assert heavy_memory(base) == heavy_macs(base) == ()


def test_memory_bound_layers_gain_from_smaller_weights() -> None:
    flash = memory("flash", Holds.CONSTANTS, size=1 << 24, bytes_per_cycle=figure(0.1))
    chosen = machine(memories=(memory("RAM", Holds.ACTIVATIONS), flash))
    idea = next(i for i in suggestions(estimate(big_dense(), chosen)) if i.kind == "quantize-weights")
    assert idea.after.latency_s < 0.3 * idea.before.latency_s
