"""Flat counting against the figures that vendors' tools and the fact sheet print."""

from __future__ import annotations

from dataclasses import replace

import pytest

from opscope.estimate.price import Machine
from opscope.estimate.report import Report
from opscope.graph.graph import ABSENT, DType, Graph
from opscope.machine import catalogue as targets
from opscope.machine.target import Holds
from opscope.plugins.cfs.flat import flat_macs, flat_report
from support.build import (
    Sketch,
    autoencoder,
    engine,
    figure,
    keyword_spotter,
    machine,
    memory,
    mobilenet,
    resnet,
    resnet8,
)

SAMPLE = Machine(targets.load("cfs-sample"))


def flat(graph: Graph, chosen: Machine = SAMPLE) -> Report:
    return flat_report(graph, chosen, sha256=None)


@pytest.mark.parametrize(
    ("graph", "macs"),
    [(keyword_spotter(), 2_656_908), (mobilenet(), 7_490_178), (resnet8(), 12_530_442), (autoencoder(), 264_192)],
    ids=lambda value: value.name if isinstance(value, Graph) else "",
)
def test_networks_count_what_the_rule_is_published_to_count(graph: Graph, macs: int) -> None:
    assert flat(graph).totals.macs == macs


def test_the_sample_network_gives_the_sample_totals() -> None:
    report = flat(resnet())
    totals = report.totals
    assert (totals.macs, totals.cycles) == (180_261_962, 180_261_962)
    assert totals.latency_s.value == pytest.approx(1.80261962)
    assert totals.power_w == pytest.approx(0.025)
    assert round(totals.parameter_bytes / 1024, 2) == 5787.48
    assert (totals.accelerated_layers, totals.cpu_layers) == (37, 17)
    assert (report.memory.peak_bytes, report.memory.uses[0].share, report.memory.status) == (589_824, 0.5625, "OK")


def test_the_batch_is_ignored_by_convolutions_and_by_nothing_else() -> None:
    draw = Sketch()
    out = draw.same("relu", draw.conv(draw.input(4, 8, 8, 3), 8))
    graph = draw.graph(out)
    assert [flat_macs(op, graph) for op in graph.ops] == [64 * 8 * 27, 4 * 64 * 8]


def test_an_op_that_counts_nothing_is_priced_as_one_mac() -> None:
    draw = Sketch()
    (layer,) = flat(draw.graph(draw.op("custom", (draw.input(8),), (0,)))).layers
    assert (layer.macs, layer.cycles) == (0, 1)


def test_an_op_whose_output_has_no_shape_is_not_priced_at_all() -> None:
    draw = Sketch()
    found = flat(draw.graph(draw.op("custom", (draw.input(8),), None), draw.op("relu", (draw.input(8),), (8,))))
    assert (found.layers[0].cycles, found.layers[0].work_known) == (None, False)
    assert found.totals.latency_s is None
    assert found.totals.known_latency_s == found.layers[1].latency_s
    assert found.totals.is_lower_bound
    assert found.memory.unknown_tensors == 1


def test_a_scalar_is_one_element() -> None:
    draw = Sketch()
    graph = draw.graph(draw.op("reduce", (draw.input(8),), ()))
    assert flat_macs(graph.ops[0], graph) == 1


def test_graph_inputs_are_not_in_the_peak_and_every_element_is_as_wide_as_the_input() -> None:
    draw = Sketch(dtype=DType.I8)
    out = draw.op("dequantize", (draw.input(100),), (100,), dtype=DType.F32)
    assert flat(draw.graph(out)).memory.peak_bytes == 100


def test_an_absent_output_takes_no_memory() -> None:
    draw = Sketch()
    out = draw.same("relu", draw.input(10))
    draw.tensor((1000,))
    draw.ops[0] = replace(draw.ops[0], outputs=(out, ABSENT))
    assert flat(draw.graph(out)).memory.peak_bytes == 40


@pytest.mark.parametrize(
    ("kilobytes", "words"),
    [
        (64, "URGENT: Model requires 192 KB (300%) more RAM than available"),
        (128, "Model exceeds available RAM: 128 KB (100%) more RAM than available"),
        (200, "Model slightly exceeds available RAM: 56 KB (28%) more RAM than available"),
    ],
)
def test_missing_ram_is_graded(kilobytes: int, words: str) -> None:
    draw = Sketch()
    graph = draw.graph(draw.same("relu", draw.same("relu", draw.input(32 * 1024))))
    ram = memory("RAM", Holds.ACTIVATIONS, size=kilobytes * 1024)
    found = flat(graph, machine(memories=(ram, memory("flash", Holds.CONSTANTS)))).memory
    assert found.status == "CRITICAL"
    assert found.issues == (f"Peak RAM usage (256.0 KB) exceeds available RAM ({kilobytes}.0 KB)",)
    assert found.recommendations == (words, "Evaluate quantization potential with representative dataset")


def test_the_missing_ram_of_the_sample_is_printed_as_in_the_sample() -> None:
    draw = Sketch()
    graph = draw.graph(draw.same("relu", draw.input(5880 * 256)))
    found = flat(graph).memory
    assert found.issues == ("Peak RAM usage (5880.0 KB) exceeds available RAM (1024.0 KB)",)
    assert found.recommendations[0] == "URGENT: Model requires 4856 KB (474%) more RAM than available"


def test_what_the_target_does_not_price_is_unknown_not_zero() -> None:
    totals = flat(resnet(), Machine(targets.load("aic100-std"))).totals
    assert totals.cycles
    assert (totals.energy_j, totals.power_w) == (None, None)
    assert totals.energy_note == "the target file has no energy per MAC"
    unpriced = machine(engine(macs={"i4": 1}))
    totals = flat(resnet(), unpriced).totals
    assert (totals.cycles, totals.latency_s) == (None, None)
    assert totals.withheld == "latency is withheld: the target file has no MAC rate"


def test_an_op_that_no_engine_lists_is_left_to_the_last_one() -> None:
    report = flat(resnet(), machine(engine("npu", ops=("conv",), accelerator=False)))
    assert {layer.engine for layer in report.layers} == {"npu"}


def test_suggestions_are_for_float_networks_only() -> None:
    assert [idea.kind for idea in flat(resnet()).suggestions] == ["quantize", "prune"]
    assert flat(mobilenet()).suggestions == ()


def test_five_layers_are_listed_by_size_not_by_a_threshold() -> None:
    report = flat(resnet())
    assert [item.layer for item in report.heavy_memory] == [34, 37, 38, 41, 42]
    assert [item.layer for item in report.heavy_macs] == [2, 5, 6, 9, 10]


def test_acceleration_changes_no_cycle() -> None:
    fast = machine(engine("npu", ops=("conv",), accelerator=True, macs={"*": 1000}), engine())
    assert flat(resnet(), fast).totals.cycles == flat(resnet()).totals.cycles


def test_half_a_mac_a_cycle_doubles_the_cycles() -> None:
    chosen = machine(engine(macs={"*": 0.5}, picojoules_per_mac={"*": figure(170)}), clock=figure(120e6))
    totals = flat(resnet(), chosen).totals
    assert totals.cycles == 2 * 180_261_962
    assert totals.energy_j.value == pytest.approx(180_261_962 * 170e-12)
