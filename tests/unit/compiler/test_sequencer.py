"""Engines of several units, an engine with a memory of its own, a sequencer, and routes that move bytes in bursts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from opscope.core.errors import ProgramError, TargetError
from opscope.core.meaning import Carries
from opscope.estimate.cost import LAUNCH, Resource
from opscope.estimate.price import Machine, price
from opscope.graph.graph import DType, Graph
from opscope.machine import catalogue as targets
from opscope.machine.target import Burst, Engine, Figure, Memory, Route, Target
from opscope.program.program import Program
from opscope.program.sequence import Unit, sequence_of
from opscope.simulation import simulate
from support.build import Sketch
from support.compiler.build import build

TORQ = targets.load("torq-sl2610")


def dense(features: int = 1280, units: int = 1000) -> Graph:
    draw = Sketch("fc", dtype=DType.I8)
    return draw.graph(draw.dense(draw.input(1, features), units))


def compiled(graph: Graph, target: Target = TORQ) -> Program:
    return build(graph, target).program


def figure(value: float) -> Figure:
    return Figure(value, "by hand")


def test_the_dma_reaches_the_published_rate() -> None:
    """4.754 bytes a cycle, 3.8 GB/s at 800 MHz: what the vendor's compile-time model works with."""
    rates = {channel.carries: channel.bytes_per_cycle for channel in compiled(dense()).routes}
    assert rates["read"] == rates["write"] == pytest.approx(8 * 0.65 * 16 / 17.5)
    assert rates["read"] == pytest.approx(4.754, abs=5e-4)
    assert rates["read"] * 800e6 == pytest.approx(3.8e9, rel=2e-3)
    assert rates["bring"] == rates["fetch"] == pytest.approx(16 * 0.36)


def test_a_dense_layer_of_one_row_takes_as_long_as_its_weights_take_to_arrive() -> None:
    by_vendor = 285_397  # torq-compile 2.3.0; 269,247 are the weights alone
    assert simulate(compiled(dense())).total_cycles == pytest.approx(by_vendor, rel=0.05)


@pytest.mark.parametrize(
    ("target", "issuer"),
    [(TORQ, "NSS"), (replace(TORQ, sequencer=None), "Transfers"), (targets.load("aic100-std"), "DMAIssue")],
    ids=["by its sequencer", "by nothing", "by its thread"],
)
def test_what_starts_transfers_is_called_as_the_target_has_it(target: Target, issuer: str) -> None:
    assert compiled(dense(64, 32), target).groups[-1].name == issuer


def image() -> Graph:
    draw = Sketch("conv", dtype=DType.I8)
    return draw.graph(draw.conv(draw.input(1, 32, 32, 32), 64))


def test_units_share_convolutions_and_the_first_does_the_rest() -> None:
    for graph, units in ((image(), [0, 1]), (dense(64, 32), [0])):
        program = compiled(graph)
        starts = [step for _, step in sequence_of(program).starts() if step.unit is Unit.COMPUTE]
        assert [step.number for step in starts if program.commands["macs"][step.command]] == units
    assert [group.name for group in program.groups] == ["Slice 0", "Slice 1", "CSS", "NSS"]


@pytest.mark.parametrize("units", [1, 2, 4])
def test_more_units_do_the_same_work_sooner(units: int) -> None:
    engines = tuple(replace(e, units=units) if e.name == "Slice" else e for e in TORQ.engines)
    program = compiled(image(), replace(TORQ, engines=engines))
    slices = [n for n, group in enumerate(program.groups) if group.engine == "Slice"]
    products = program.commands[program.commands["macs"] > 0]
    busy = [int(products["cycles"][products["group"] == n].sum()) for n in slices]
    macs = 32 * 32 * 64 * 9 * 32
    assert len(busy) == units
    assert sum(busy) == pytest.approx(macs / 256, rel=0.02)
    assert max(busy) == pytest.approx(macs / 256 / units, rel=0.02)


def test_the_estimate_divides_the_work_among_the_units() -> None:
    placed = next(each for each in build(image(), TORQ).schedule.placed if each.task.work.macs)
    engine = placed.task.placement.engine
    assert engine is not None
    one = price(placed.task, engine, Machine(TORQ)).by_resource()
    four = price(placed.task, replace(engine, units=4), Machine(TORQ)).by_resource()
    slices = Resource.of_engine(engine)
    assert one[slices] == pytest.approx(2 * four[slices])
    assert four[LAUNCH] > one[LAUNCH]  # each has descriptors of its own


def apart() -> Program:
    draw = Sketch("norm", dtype=DType.I8)
    return compiled(draw.graph(draw.same("layer_norm", draw.input(4, 20_000), axes=(1,))))


def test_an_engine_with_a_memory_of_its_own_gets_its_operands_brought_and_its_results_fetched() -> None:
    program = apart()
    units = [step.unit for _, step in sequence_of(program).starts()]
    pieces = units.count(Unit.APART)
    assert units.count(Unit.BRING) == units.count(Unit.FETCH) == pieces
    moved = dict.fromkeys((Unit.BRING, Unit.FETCH), 0)
    for _, step in sequence_of(program).starts():
        if step.unit in moved:
            moved[step.unit] += int(program.commands["moved_bytes"][step.command])
    assert moved == {Unit.BRING: 80_000, Unit.FETCH: 80_000}
    assert pieces >= 2 * 80_000 / 32_768  # what is brought and what is made lie there together


def test_a_command_of_fixed_cost_takes_it_however_much_it_does() -> None:
    program = apart()
    css = program.commands[program.commands["group"] == 2]
    assert len(css) > 1
    assert set(css["cycles"].tolist()) == {8000}


def test_an_engine_of_fixed_cost_gets_only_what_no_other_takes() -> None:
    """A large addition would look cheap there: the fixed cost is of a start, whatever it does."""
    draw = Sketch("sum", dtype=DType.I8)
    data = draw.input(1, 200, 200, 16)
    placed = build(draw.graph(draw.same("layer_norm", draw.same("add", data, data), axes=(3,))), TORQ).schedule.placed
    assert list(dict.fromkeys(p.engine for p in placed if p.engine)) == ["Slice", "CSS"]


def test_constants_are_read_in_every_inference_where_local_memory_does_not_keep_them() -> None:
    kept = replace(TORQ, tiling=replace(TORQ.tiling, keeps_constants=True)) if TORQ.tiling else TORQ
    small = dense(64, 32)
    assert compiled(small).metrics.traffic[0].read_constant == 64 * 32 + 32 * (1 + 4)  # a bias and its scale
    assert compiled(small, kept).metrics.traffic[0].read_constant == 0


def test_a_program_without_a_sequencer_has_no_sequence() -> None:
    program = build(dense(), targets.load("aic100-std")).program
    with pytest.raises(ProgramError, match="has no sequencer; expected a program for one core"):
        sequence_of(program)


def test_a_burst_with_no_overhead_loses_nothing() -> None:
    assert Burst(figure(16), figure(0)).share == 1
    assert Burst(figure(16), figure(16)).share == 0.5


@pytest.mark.parametrize(
    ("rates", "found"),
    [({}, "neither"), ({"bytes_per_second": figure(1e9), "bytes_per_cycle": figure(8)}, "both")],
)
def test_a_route_has_one_rate(rates: dict[str, Figure], found: str) -> None:
    with pytest.raises(ValueError, match=f"route 'DMA' has {found} of bytes_per_second and bytes_per_cycle"):
        Route("DMA", Carries.READ, **rates)


@pytest.mark.parametrize("units", [0, 65])
def test_an_engine_has_a_possible_number_of_units(units: int) -> None:
    with pytest.raises(ValueError, match=f"has {units} units; expected 1 to 64"):
        Engine("npu", ("*",), True, units=units)


def test_an_engine_works_in_a_memory_that_is_there() -> None:
    raw = targets.catalogue()["torq-sl2610"].read_bytes()
    with pytest.raises(TargetError, match="engine 'CSS' works in 'TCM'; expected one of"):
        targets.parse(raw.replace(b'memory = "DTCM"', b'memory = "TCM"'), source="mine.toml")


def test_a_memory_reaches_its_efficiency_times_its_bursts() -> None:
    xram = next(memory for memory in TORQ.memories if memory.name == "XRAM")
    assert isinstance(xram, Memory)
    assert xram.reached == pytest.approx(0.65 * 16 / 17.5)
