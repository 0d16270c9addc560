"""Layers, totals and their ranges, on machines small enough to reckon by hand."""

from __future__ import annotations

import pytest

from opscope.estimate.build_report import build_report
from opscope.estimate.estimator import Estimate, estimate
from opscope.estimate.price import Machine
from opscope.estimate.report import Layer
from opscope.estimate.traffic.stores import parameter_bytes
from opscope.graph.graph import DType, Graph
from opscope.machine.target import Holds, Scope
from support.build import Sketch, engine, figure, machine, memory, resnet

NANOJOULE = {"picojoules_per_mac": {"*": figure(1000)}, "picojoules_per_element_op": {"*": figure(1000)}}


def dense(units: int = 8) -> Graph:
    draw = Sketch()
    return draw.graph(draw.dense(draw.input(1, 16), units, bias=False))


def only(result: Estimate) -> Layer:
    (layer,) = result.layers
    return layer


def with_custom_op() -> Graph:
    draw = Sketch()
    return draw.graph(draw.dense(draw.op("custom", (draw.input(1, 16),), (1, 16), type="MyOp"), 8))


def test_a_layer_costs_its_macs_at_the_rate_of_its_engine() -> None:
    layer = only(estimate(dense(), machine(engine(macs={"*": 2}), clock=figure(1e6))))
    assert (layer.macs, layer.cycles, layer.latency_s, layer.bound) == (128, 64, 64e-6, "cpu")


def test_the_slowest_resource_binds() -> None:
    flash = memory("flash", Holds.CONSTANTS, bytes_per_cycle=figure(0.5))
    layer = only(estimate(dense(), machine(memories=(memory("RAM", Holds.ACTIVATIONS), flash))))
    assert (layer.cycles, layer.bound) == (16 * 8 * 4 / 0.5, "flash")


def test_a_custom_op_withholds_the_totals_and_says_why() -> None:
    totals = estimate(with_custom_op(), machine(engine(**NANOJOULE), idle_watts=figure(1))).totals
    assert (totals.cycles, totals.latency_s, totals.energy_j, totals.power_w) == (None, None, None, None)
    assert totals.unknown_layers == (0,)
    assert totals.withheld == (
        "latency is withheld: layer 0 (MyOp) has no known cost; MyOp is a custom operator: its work is not in the file"
    )
    assert totals.energy_note == "withheld: a layer has no known cost"


def test_a_custom_layer_is_unknown_and_the_others_are_not() -> None:
    custom, known = estimate(with_custom_op(), machine(engine(**NANOJOULE))).layers
    assert (custom.cycles, custom.latency_s, custom.energy_j, custom.power_w, custom.cost) == (None,) * 5
    assert not custom.work_known
    assert known.work_known
    assert known.cycles == 128


def test_a_shape_that_the_model_does_not_give_withholds_the_totals() -> None:
    draw = Sketch()
    totals = estimate(draw.graph(draw.op("relu", (draw.input(8),), None)), machine()).totals
    assert totals.latency_s is None
    assert "the model does not give the shape of" in totals.withheld


def test_several_unknown_layers_are_counted_in_the_reason() -> None:
    draw = Sketch()
    data = draw.same("custom", draw.same("custom", draw.input(8)))
    assert "layer 0 (CUSTOM) and 1 more has no known cost" in estimate(draw.graph(data), machine()).totals.withheld


def test_power_is_not_shown_where_only_arithmetic_is_priced() -> None:
    result = estimate(dense(), machine(engine(**NANOJOULE)))
    assert result.totals.energy_j is not None
    assert result.totals.power_w is None
    assert "would only repeat the energy per operation" in result.totals.power_note
    assert only(result).power_w is None


def test_power_is_shown_where_bytes_or_idling_are_priced() -> None:
    ram = memory("RAM", Holds.ACTIVATIONS, Holds.CONSTANTS, picojoules_per_byte=figure(5))
    for chosen in (
        machine(engine(**NANOJOULE), memories=(ram,)),
        machine(engine(**NANOJOULE), idle_watts=figure(0.1)),
    ):
        totals = estimate(dense(), chosen).totals
        assert totals.power_w == pytest.approx(totals.energy_j.value / totals.latency_s.value)
        assert totals.power_note == ""


def test_energy_without_any_figure_is_unknown() -> None:
    totals = estimate(dense(), machine()).totals
    assert (totals.energy_j, totals.energy_note) == (None, "the target file has no energy figures")


def test_energy_of_half_the_layers_is_called_a_lower_bound() -> None:
    npu = engine("npu", ops=("matmul",), accelerator=True, **NANOJOULE)
    draw = Sketch()
    graph = draw.graph(draw.same("softmax", draw.dense(draw.input(1, 16), 8)))
    assert (
        "a lower bound: 1 layers run on engines without an energy"
        in estimate(graph, machine(npu, engine())).totals.energy_note
    )


def test_idle_power_is_paid_for_the_whole_time() -> None:
    totals = estimate(dense(), machine(engine(**NANOJOULE), idle_watts=figure(2, 1, 4))).totals
    assert totals.energy_j.value == pytest.approx(128e-9 + 2 * 128e-6)
    assert totals.energy_j.low == pytest.approx(128e-9 + 1 * 128e-6)
    assert totals.energy_j.high == pytest.approx(128e-9 + 4 * 128e-6)


def test_the_range_comes_from_both_ends_of_every_figure() -> None:
    unit = engine(efficiency=figure(0.5, 0.25, 1.0), launch_cycles=figure(10, 0, 20))
    latency = estimate(dense(), machine(unit, clock=figure(1e6, 0.5e6, 2e6))).totals.latency_s
    assert latency.value == pytest.approx((128 / 0.5 + 10) / 1e6)
    assert latency.low == pytest.approx(128 / 1.0 / 2e6)
    assert latency.high == pytest.approx((128 / 0.25 + 20) / 0.5e6)


def test_figures_without_a_range_give_none() -> None:
    latency = estimate(resnet(), machine()).totals.latency_s
    assert latency.low == latency.value == latency.high


def test_a_loop_body_costs_its_trips() -> None:
    draw = Sketch()
    weights = draw.constant(8, 16)
    attributes = {"k": 16, "n": 8}
    draw.op("matmul", (draw.input(1, 16), weights), (1, 8), trips=5, **attributes)
    ram = memory("RAM", Holds.ACTIVATIONS, Holds.CONSTANTS)
    layer = only(estimate(draw.graph(), machine(memories=(ram,))))
    assert (layer.macs, layer.cycles) == (5 * 128, 5 * 128)
    assert layer.read_bytes == 5 * 64
    assert layer.traffic == {"RAM": 5 * (64 + 32 + 512)}


def test_a_constant_read_twice_by_one_op_is_counted_once() -> None:
    draw = Sketch()
    data, zeros = draw.input(1, 4, 4, 8), draw.constant(8)
    graph = draw.graph(draw.same("batch_norm", data, draw.constant(8), zeros, zeros, draw.constant(8)))
    result = estimate(graph, machine())
    assert only(result).parameter_bytes == result.totals.parameter_bytes == 3 * 32


def test_a_shared_constant_is_shown_by_each_layer_and_counted_once() -> None:
    result = estimate(resnet(), machine())
    column = sum(layer.parameter_bytes for layer in result.layers)
    shared = sum(layer.shared_bytes for layer in result.layers)
    assert shared == 4 * (7 * 48 + 3 * 128)
    assert column - shared == result.totals.parameter_bytes == parameter_bytes(result.graph)


class TestTraffic:
    """Which memory the bytes of an op travel through."""

    def layers(self, *memories: object) -> tuple[Layer, ...]:
        draw = Sketch()
        graph = draw.graph(draw.dense(draw.dense(draw.input(1, 16), 16, bias=False), 16, bias=False))
        return estimate(graph, machine(memories=memories)).layers

    def test_goes_straight_to_where_things_live_without_local_memory(self) -> None:
        first, _ = self.layers(memory("RAM", Holds.ACTIVATIONS), memory("flash", Holds.CONSTANTS))
        assert first.traffic == {"RAM": 128, "flash": 1024}

    def test_crosses_the_outer_memory_only_at_the_ends_where_everything_fits(self) -> None:
        outer = memory("DRAM", Holds.ACTIVATIONS, Holds.CONSTANTS)
        first, last = self.layers(outer, memory("SRAM", Holds.TILES, scope=Scope.CORE, size=1 << 16))
        assert first.traffic == {"SRAM": 64 + 1024 + 64, "DRAM": 64}
        assert last.traffic == {"SRAM": 64 + 1024 + 64, "DRAM": 64}

    def test_streams_weights_that_do_not_fit(self) -> None:
        outer = memory("DRAM", Holds.ACTIVATIONS, Holds.CONSTANTS)
        first, _ = self.layers(outer, memory("SRAM", Holds.TILES, scope=Scope.CORE, size=512))
        assert first.traffic == {"SRAM": 1152, "DRAM": 64 + 1024}

    def test_spills_activations_that_do_not_fit(self) -> None:
        outer = memory("DRAM", Holds.ACTIVATIONS, Holds.CONSTANTS)
        first, _ = self.layers(outer, memory("SRAM", Holds.TILES, scope=Scope.CORE, size=64))
        assert first.traffic == {"SRAM": 1152, "DRAM": 64 + 32 + 1024}  # the input, and half of what is live

    def test_reads_rows_of_a_table_where_it_lies_even_if_all_other_constants_stay(self) -> None:
        draw = Sketch()
        rows = draw.op("gather", (draw.constant(1000, 16), draw.input(3, dtype=DType.I64)), (3, 16))
        graph = draw.graph(draw.dense(rows, 16, bias=False))
        outer = memory("DRAM", Holds.ACTIVATIONS, Holds.CONSTANTS)
        lookup, dense = estimate(
            graph, machine(memories=(outer, memory("SRAM", Holds.TILES, scope=Scope.CORE, size=4096)))
        ).layers
        assert lookup.traffic["DRAM"] == 3 * 16 * 4
        assert dense.traffic["DRAM"] == 3 * 16 * 4  # what is given out, and no weights

    @pytest.mark.parametrize(("size", "crossing"), [(96, 64 + 16), (127, 64), (126, 65), (128, 64)])
    def test_spills_as_much_as_does_not_fit(self, size: int, crossing: int) -> None:
        outer = memory("DRAM", Holds.ACTIVATIONS, Holds.CONSTANTS)
        first, _ = self.layers(outer, memory("SRAM", Holds.TILES, scope=Scope.CORE, size=size))
        assert first.traffic["DRAM"] == crossing + 1024

    @pytest.mark.parametrize(("size", "streamed"), [(2048 + 127, 1024), (2048 + 128, 0)])
    def test_keeps_weights_only_where_they_fit_beside_the_activations(self, size: int, streamed: int) -> None:
        outer = memory("DRAM", Holds.ACTIVATIONS, Holds.CONSTANTS)
        first, _ = self.layers(outer, memory("SRAM", Holds.TILES, scope=Scope.CORE, size=size))
        assert first.traffic["DRAM"] == 64 + streamed

    def test_brings_of_a_table_the_rows_that_are_looked_up(self) -> None:
        draw = Sketch()
        rows = draw.op("gather", (draw.input(1000, 16), draw.constant(3)), (3, 16))
        memories = memory("DRAM", Holds.ACTIVATIONS, Holds.CONSTANTS), memory("SRAM", Holds.TILES, scope=Scope.CORE)
        (layer,) = estimate(draw.graph(rows), machine(memories=memories)).layers
        assert layer.traffic["DRAM"] == 2 * 3 * 16 * 4

    def test_is_counted_once_where_one_memory_is_both_home_and_working_memory(self) -> None:
        shared = memory("SRAM", Holds.ACTIVATIONS, Holds.TILES)
        first, _ = self.layers(shared, memory("flash", Holds.CONSTANTS, size=1 << 30))
        assert first.traffic["SRAM"] == 64 + 1024 + 64


def test_memory_that_is_short_is_named_with_what_is_missing_and_what_mends_it() -> None:
    draw = Sketch()
    graph = draw.graph(draw.conv(draw.conv(draw.input(1, 16, 16, 8), 8), 8))
    chosen = machine(memories=(memory("RAM", Holds.ACTIVATIONS, size=12_000), memory("flash", Holds.CONSTANTS)))
    report = build_report(graph, chosen, sha256=None)
    assert report.memory.status == "DOES NOT FIT"
    assert report.memory.issues == ("16.00 KB of RAM for activations exceeds the 11.72 KB available",)
    assert report.memory.recommendations[:3] == (
        "RAM: free 4.28 KB (37%)",
        "RAM: the peak is at layer 0 (CONV_2D conv0)",
        "RAM: fits after “Quantise weights and activations to int8” (4.00 KB)",
    )


@pytest.mark.parametrize(
    ("size", "status"), [(10_000, "CRITICAL"), (12_000, "WARNING"), (20_000, "OK"), (9_000, "DOES NOT FIT")]
)
def test_status_follows_the_share_of_the_memory(size: int, status: str) -> None:
    draw = Sketch()
    graph = draw.graph(draw.same("relu", draw.input(1225)))  # 9800 bytes in all
    chosen = machine(memories=(memory("RAM", Holds.ACTIVATIONS, size=size), memory("flash", Holds.CONSTANTS)))
    assert build_report(graph, chosen, sha256=None, advise=False).memory.status == status


def test_one_memory_for_both_holds_both() -> None:
    ram = memory("RAM", Holds.ACTIVATIONS, Holds.CONSTANTS)
    (use,) = build_report(dense(), machine(memories=(ram,)), sha256=None).memory.uses
    assert (use.holds, use.required_bytes) == ("activations and constants", 64 + 32 + 512)


def test_a_graph_without_ops_is_reported() -> None:
    draw = Sketch()
    report = build_report(draw.graph(draw.input(4)), machine(), sha256=None)
    assert (report.layers, report.memory.peak_layer, report.totals.cycles) == ((), None, 0)


def test_more_lanes_share_the_work() -> None:
    one = machine(engine(), cores=4)
    cycles = [estimate(dense(), Machine(one.target, cores=cores)).totals.cycles for cores in (1, 2, 4)]
    assert cycles == [128, 64, 32]


def test_power_while_an_engine_works_is_paid_for_its_time_alone() -> None:
    unit = engine(busy_watts=figure(2, 1, 4))
    totals = estimate(dense(), machine(unit, idle_watts=figure(3))).totals
    assert totals.energy_j.value == pytest.approx((2 + 3) * 128e-6)
    assert totals.energy_j.low == pytest.approx((1 + 3) * 128e-6)
    assert not totals.energy_note  # nothing is left out
