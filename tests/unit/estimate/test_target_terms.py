"""What a target can say of taps, lookups, bursts, writes, constants and joins, by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from opscope.estimate.canonical import canonicalise
from opscope.estimate.estimator import estimate
from opscope.estimate.kernels import Extents, padding
from opscope.estimate.price import Machine
from opscope.graph.graph import DType, Graph
from opscope.machine.target import Holds, Memory, Runtime
from support.build import Sketch, engine, figure, memory, target

TAPS = replace(engine(), tile_extent=figure(8), tap_extent=figure(4))


@pytest.mark.parametrize(
    ("extents", "computed"),
    [
        (Extents(64, 3, 8, 49), 8 * 52 * 8),  # 3 channels are a tile of 8, 49 taps thirteen steps of 4
        (Extents(64, 64, 8, 9), 64 * 9 * 8),  # two times 32 channels of one tap: nothing is lost
        (Extents(64, 1, 1, 9, apart=32), 8 * 12),  # depthwise: 8 channels wide for one, 9 taps as 12
    ],
)
def test_a_step_takes_channels_of_several_taps_or_more_channels_of_one(extents: Extents, computed: int) -> None:
    whole = extents.reduced * extents.taps * extents.produced
    assert padding(extents, TAPS) == computed / whole


def conv(*, activation: str = "", taps: int = 1) -> Graph:
    draw = Sketch(dtype=DType.I8)
    attributes = {"kernel": (taps, taps), "strides": (1, 1), "groups": 1, "channel_axis": 3}
    data, weights = draw.input(1, 16, 16, 4), draw.constant(8, taps, taps, 4)
    data = draw.op("conv", (data, weights), (1, 16, 16, 8), **attributes)
    return draw.graph(draw.same(activation, data) if activation else data)


def cycles(
    graph: Graph, *, fuses: tuple[str, ...] = (), ram: Memory | None = None, **fields: object
) -> dict[str, float]:
    unit = replace(engine(macs={"*": 1e6}, elements={"*": 1}), **fields)  # type: ignore[arg-type]
    chip = target(unit, fuses=fuses)
    if ram is not None:
        chip = replace(chip, memories=(ram,))
    (layer,) = estimate(graph, Machine(chip)).layers
    assert layer.cost is not None
    return {resource.name: cycles for resource, cycles in layer.cost.by_resource().items()}


def test_the_output_stage_applies_activations_and_a_table_is_slower() -> None:
    stage = {"output_elements_per_cycle": {"*": figure(4)}, "lookup_elements_per_cycle": figure(1)}
    assert cycles(conv(activation="relu"), fuses=("relu",), **stage)["cpu"] == 2048 / 4
    assert cycles(conv(activation="sigmoid"), fuses=("sigmoid",), **stage)["cpu"] == 2048


def ram(**fields: object) -> Memory:
    both = memory("RAM", Holds.ACTIVATIONS, Holds.CONSTANTS, bytes_per_cycle=figure(1))
    return replace(both, **fields)  # type: ignore[arg-type]


def test_a_pixel_of_few_channels_wastes_the_rest_of_a_burst() -> None:
    plain, bursts = (cycles(conv(), ram=each)["RAM"] for each in (ram(), ram(burst_bytes=figure(32))))
    assert bursts - plain == 16 * 16 * (32 - 4)


def test_writes_can_be_slower_than_reads() -> None:
    plain, slow = (cycles(conv(), ram=each)["RAM"] for each in (ram(), ram(write_efficiency=figure(0.25))))
    assert slow - plain == 2048 * 3


def test_a_constant_operand_has_a_kernel_of_its_own() -> None:
    draw = Sketch(dtype=DType.I8)
    data = draw.input(1, 16, 16, 4)
    graph = draw.graph(draw.op("mul", (data, draw.constant(4)), (1, 16, 16, 4)))
    found = cycles(graph, kernels={"mul": figure(1), "constant_mul": figure(5)})
    assert found["cpu"] == 5


def test_a_pool_to_one_pixel_fills_one_row_of_the_engine() -> None:
    draw = Sketch(dtype=DType.I8)
    pool = {"kernel": (16, 16), "strides": (1, 1), "channel_axis": 3}
    graph = draw.graph(draw.op("average_pool", (draw.input(1, 16, 16, 4),), (1, 1, 1, 4), **pool))
    assert cycles(graph, row_extent=figure(4))["cpu"] == 4 * cycles(graph)["cpu"]


def test_producers_write_the_operands_of_a_join_unless_another_op_reads_them() -> None:
    draw = Sketch()
    data = draw.input(1, 4)
    alone, other = draw.same("relu", data), draw.same("abs", data)
    joined = draw.op("concat", (alone, other), (1, 8), axis=1)
    read_twice = draw.op("concat", (joined, data), (1, 12), axis=1)
    chip = replace(target(), runtime=Runtime(joins_in_place=True))
    kinds = [op.kind for op in canonicalise(draw.graph(read_twice), chip).ops]
    assert kinds == ["relu", "abs", "identity", "concat"]


def test_results_that_leave_apart_add_to_the_multiplications() -> None:
    stage = {"macs_per_cycle": {"*": figure(1)}, "output_elements_per_cycle": {"*": figure(4)}}
    beside, apart = (cycles(conv(), results_apart=each, **stage)["cpu"] for each in (False, True))
    assert apart == beside + 2048 / 4
