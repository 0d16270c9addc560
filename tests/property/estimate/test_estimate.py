"""Laws that hold for every network on every machine: parts add up, more hardware is never slower."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from opscope.estimate.build_report import build_report
from opscope.estimate.canonical import canonicalise
from opscope.estimate.cost import labels
from opscope.estimate.estimator import Estimate, estimate
from opscope.estimate.precision import in_precision, precisions, with_precision
from opscope.estimate.price import Machine
from opscope.estimate.quantiser import add_pairs
from opscope.estimate.traffic.stores import parameter_bytes
from opscope.estimate.work import work_of
from opscope.graph.graph import DType, Graph, Role
from opscope.machine import catalogue as targets
from opscope.machine.corners import Corner, at_corner
from opscope.machine.target import Engine, Figure, Holds, Scope, Target
from support.build import Sketch, engine, figure, memory, target


def types_of(chosen: Target) -> set[str]:
    """What its engines compute in; `*`: anything."""
    return {key for engine in chosen.engines for key in (*engine.macs_per_cycle, *engine.element_ops_per_cycle)}


def for_floats(chosen: Target) -> Target:
    """A target that has no f32 runs it as bf16 here, so that every network of floats has a cost on every target."""
    known = {"f32", "*"} & {*types_of(chosen), *chosen.precision}
    return chosen if known else replace(chosen, precision={"f32": "bf16"})


LOADED = [targets.load(name) for name in targets.catalogue()]
SHIPPED = [for_floats(target) for target in LOADED if not target.support.dtypes]  # others refuse some networks
few = settings(max_examples=60, deadline=None)


def convolutional(draw: st.DrawFn, *, batch: int, choices: list[tuple[str, int]], side: int) -> Graph:
    """A chain of convolutions with residual additions, activations, QDQ pairs and shared biases."""
    sketch = Sketch()
    data = sketch.input(batch, side, side, choices[0][1])
    biases: dict[int, int] = {}
    for kind, channels in choices:
        depth = (sketch.tensors[data].shape or ())[-1]
        if kind == "conv":
            shared = biases.setdefault(channels, sketch.constant(channels))
            data = sketch.conv(data, channels, bias=shared)
        elif kind == "depthwise":
            data = sketch.depthwise(data)
        elif kind == "residual":
            data = sketch.same("add", sketch.conv(data, depth, kernel=1, bias=False), data)
        elif kind == "norm":
            data = sketch.same("batch_norm", data, *(sketch.constant(depth) for _ in range(4)))
        elif kind == "pair":
            quantized = sketch.op("quantize", (data, sketch.constant(1)), sketch.tensors[data].shape, dtype=DType.I8)
            data = sketch.op("dequantize", (quantized, sketch.constant(1)), sketch.tensors[data].shape)
        else:
            data = sketch.same(kind, data)
    return sketch.graph(data, annotated=True)


@st.composite
def networks(draw: st.DrawFn, *, batch: int = 1) -> Graph:
    kinds = st.sampled_from(["conv", "conv", "depthwise", "residual", "relu", "clip", "norm", "softmax", "pair"])
    choices = draw(st.lists(st.tuples(kinds, st.integers(1, 6)), min_size=1, max_size=8))
    return convolutional(draw, batch=batch, choices=choices, side=draw(st.integers(2, 6)))


@st.composite
def pairs_of_networks(draw: st.DrawFn) -> tuple[Graph, Graph]:
    """The same network for one sample and for two."""
    kinds = st.sampled_from(["conv", "depthwise", "residual", "relu"])
    choices = draw(st.lists(st.tuples(kinds, st.integers(1, 6)), min_size=1, max_size=6))
    side = draw(st.integers(2, 6))
    once, twice = (convolutional(draw, batch=batch, choices=choices, side=side) for batch in (1, 2))
    return once, twice


rates = st.floats(0.1, 100)


@st.composite
def ranged(draw: st.DrawFn, values: st.SearchStrategy[float] = rates) -> Figure:
    low, value, high = sorted(draw(st.tuples(values, values, values)))
    return figure(value, low, high)


@st.composite
def machines(draw: st.DrawFn) -> Machine:
    npu = replace(
        engine("npu", ops=("contraction",), accelerator=True),
        macs_per_cycle={"i8": draw(ranged()), "f32": draw(ranged())},
        efficiency=draw(ranged(st.floats(0.1, 1))),
        launch_cycles=draw(ranged()),
        picojoules_per_mac={"*": draw(ranged())},
    )
    cpu = replace(
        engine(), element_ops_per_cycle={"*": draw(ranged())}, picojoules_per_element_op={"*": draw(ranged())}
    )
    outer = memory(
        "DRAM",
        Holds.ACTIVATIONS,
        Holds.CONSTANTS,
        size=1 << 30,
        bytes_per_second=draw(ranged(st.floats(1e5, 1e8))),
        picojoules_per_byte=draw(ranged()),
    )
    local = memory(
        "SRAM",
        Holds.TILES,
        scope=Scope.CORE,
        size=draw(st.sampled_from([64, 1024, 1 << 16])),
        bytes_per_cycle=draw(ranged()),
    )
    cores = draw(st.integers(1, 4))
    chosen = target(
        npu,
        cpu,
        memories=(outer, *([local] if draw(st.booleans()) else [])),
        cores=cores,
        fuses=draw(st.sampled_from([(), ("relu",), ("relu", "clip", "batch_norm")])),
        clock=draw(ranged(st.floats(1e5, 1e7))),
        idle_watts=draw(st.none() | ranged()),
    )
    return Machine(chosen, cores=cores)


any_machine = machines() | st.sampled_from([Machine(t, cores=round(t.topology.cores.value)) for t in SHIPPED])


@given(networks(), any_machine)
@few
def test_layers_add_up_to_the_totals(graph: Graph, machine: Machine) -> None:
    result = estimate(graph, machine)
    layers, totals = result.layers, result.totals
    assert totals.cycles == pytest.approx(sum(layer.cycles for layer in layers) + result.call.total)
    assert totals.latency_s.value == pytest.approx(totals.cycles / machine.clock_hz)
    assert totals.macs == sum(layer.macs for layer in layers)
    assert totals.accelerated_layers + totals.cpu_layers == len(layers)
    if totals.energy_j is not None:
        assert totals.energy_j.value == pytest.approx(sum(layer.energy_j or 0 for layer in layers))


@given(networks(), any_machine)
@few
def test_parts_of_a_layer_give_its_total_and_its_bound(graph: Graph, machine: Machine) -> None:
    for layer in estimate(graph, machine).layers:
        found = layer.cost.by_resource()
        hidden = [found[name] for name in {part.resource for part in layer.cost.parts if part.overlaps}]
        shown = [part.cycles for part in layer.cost.parts if not part.overlaps]
        assert layer.cycles == pytest.approx(max(hidden, default=0) + sum(shown))
        bound = {labels(machine.target)[resource]: cycles for resource, cycles in found.items()}
        assert bound.get(layer.bound, 0) == max(found.values(), default=0)


@given(networks(), any_machine)
@few
def test_parameters_of_layers_less_what_they_share_are_those_of_the_graph(graph: Graph, machine: Machine) -> None:
    result = estimate(graph, machine)
    column = sum(layer.parameter_bytes - layer.shared_bytes for layer in result.layers)
    assert column == parameter_bytes(result.graph)
    assert result.totals.parameter_bytes == parameter_bytes(graph)


@given(networks(), any_machine)
@few
def test_canonicalising_is_idempotent_and_keeps_the_macs(graph: Graph, machine: Machine) -> None:
    once = canonicalise(graph, machine.target)
    assert canonicalise(once, machine.target) == once
    assert sum(work_of(op, once).macs for op in once.ops) == sum(work_of(op, graph).macs for op in graph.ops)
    names = [name for op in once.ops for name in (op.sources or (op.name,))]
    assert set(names) <= {op.name for op in graph.ops}


@given(networks(), machines())
@few
def test_the_range_holds_the_value_and_the_corners_are_in_order(graph: Graph, machine: Machine) -> None:
    totals = estimate(graph, machine).totals
    for found in (totals.latency_s, totals.energy_j):
        assert found.low <= found.value <= found.high
    fast, slow = (
        estimate(graph, replace(machine, target=at_corner(machine.target, corner))).totals
        for corner in (Corner.FAST, Corner.SLOW)
    )
    near = 1 + 1e-9
    assert fast.latency_s.value <= totals.latency_s.value * near <= slow.latency_s.value * near**2
    assert fast.latency_s.value == pytest.approx(totals.latency_s.low)
    assert slow.latency_s.value == pytest.approx(totals.latency_s.high)
    assert fast.energy_j.value == pytest.approx(totals.energy_j.low)
    assert slow.energy_j.value == pytest.approx(totals.energy_j.high)


@given(pairs_of_networks(), st.sampled_from(SHIPPED))
@few
def test_two_samples_are_twice_the_macs(graphs: tuple[Graph, Graph], chosen: Target) -> None:
    once, twice = (estimate(graph, Machine(chosen)).totals for graph in graphs)
    assert twice.macs == 2 * once.macs
    assert twice.latency_s.value >= once.latency_s.value


def seconds(result: Estimate) -> float:
    return result.totals.latency_s.value


@given(networks(), machines())
@few
def test_more_cores_are_never_slower(graph: Graph, machine: Machine) -> None:
    times = [seconds(estimate(graph, replace(machine, cores=cores))) for cores in (1, 2, 4, 8)]
    assert all(later <= earlier * (1 + 1e-9) for earlier, later in pairwise(times))


def doubled(found: Figure | None) -> Figure | None:
    return None if found is None else figure(2 * found.value)


def with_double_bandwidth(chosen: Target) -> Target:
    memories = tuple(
        replace(m, bytes_per_second=doubled(m.bytes_per_second), bytes_per_cycle=doubled(m.bytes_per_cycle))
        for m in chosen.memories
    )
    return replace(chosen, memories=memories)


def with_double_macs(chosen: Target) -> Target:
    def faster(unit: Engine) -> Engine:
        return replace(unit, macs_per_cycle={key: doubled(found) for key, found in unit.macs_per_cycle.items()})

    return replace(chosen, engines=tuple(faster(unit) for unit in chosen.engines))


@given(networks(), any_machine)
@few
def test_faster_parts_are_never_slower(graph: Graph, machine: Machine) -> None:
    base = seconds(estimate(graph, machine))
    for change in (with_double_bandwidth, with_double_macs):
        changed = seconds(estimate(graph, replace(machine, target=change(machine.target))))
        assert base / 2 * (1 - 1e-9) <= changed <= base * (1 + 1e-9)


@given(networks(), any_machine)
@settings(max_examples=30, deadline=None)
def test_every_report_is_made_twice_the_same(graph: Graph, machine: Machine) -> None:
    assert build_report(graph, machine, sha256=None) == build_report(graph, machine, sha256=None)


@given(networks())
@few
def test_quantising_keeps_the_work_and_balances_its_pairs(graph: Graph) -> None:
    quantised = add_pairs(graph)
    assert add_pairs(quantised) is quantised
    assert sum(work_of(op, quantised).macs for op in quantised.ops) == sum(work_of(op, graph).macs for op in graph.ops)
    made = {op.outputs[0] for op in quantised.ops if op.kind == "quantize"}
    read = [op.inputs[0] for op in quantised.ops if op.kind == "dequantize"]
    assert len(set(read)) == len(read)
    assert made == {t for t in read if quantised.tensors[t].role is not Role.CONSTANT}


FITTED = [target for target in SHIPPED if target.calibration is not None]  # alike but for their figures


@pytest.mark.parametrize(
    "chosen", [target for target in SHIPPED if target not in FITTED[1:]], ids=lambda target: target.name
)
@given(networks())
@settings(max_examples=5, deadline=None)
def test_a_network_of_every_precision_that_a_target_takes_has_a_cost(chosen: Target, graph: Graph) -> None:
    assume({"i8", "*"} & types_of(chosen) or all(op.kind != "quantize" for op in graph.ops))
    for precision in precisions(chosen):
        machine = Machine(with_precision(chosen, precision))
        totals = estimate(in_precision(graph, machine.target, precision), machine).totals
        assert totals.macs == estimate(graph, Machine(chosen)).totals.macs
        assert totals.latency_s is not None, precision
