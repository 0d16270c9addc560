"""What a program is held to: what each device holds, which constants are read, how many MACs its graph has."""

from __future__ import annotations

from dataclasses import replace

import pytest

from opscope.compiler import PASSES
from opscope.compiler.plan import Plan
from opscope.compiler.program_bounds import graph_macs, least_bounds, surely_fits
from opscope.core.errors import UsageError
from opscope.estimate.price import Machine
from opscope.graph.graph import DType, Graph
from opscope.machine.target import Figure, Target
from opscope.options import CompileOptions
from opscope.program.bounds import Bounds, Holding, check_capacity
from support.build import Sketch
from support.compiler.build import KB, Built, build, small_target, whole_batch


def layers(*, rows: int = 1, width: int = 512, count: int = 2) -> Graph:
    """Fully connected layers without bias: 512 KB of f16 weights each at a width of 512."""
    draw = Sketch(dtype=DType.F16)
    data = draw.input(rows, width)
    for _ in range(count):
        data = draw.dense(data, width, bias=False)
    return draw.graph(data)


def bounds_of(built: Built) -> Bounds:
    assert built.program.bounds is not None
    return built.program.bounds


def test_a_device_holds_constants_once_and_inputs_and_outputs() -> None:
    found = bounds_of(build(layers(), small_target(local_bytes=256 * KB), cores=4))
    assert found.holdings == (Holding("DDR", 0, 1024 * KB, 1 * KB, 0, 16 << 30),)


def test_an_input_is_held_until_its_last_reader_and_an_output_from_its_op_on() -> None:
    draw = Sketch(dtype=DType.F16)
    first, second = draw.input(1, 512), draw.input(1, 512)
    one, other = draw.dense(first, 512, bias=False), draw.dense(second, 512, bias=False)
    apart = draw.graph(one, other)  # two inputs and the first output; then one input and both outputs
    assert bounds_of(build(apart, small_target())).holdings[0].ports_bytes == 3 * KB
    view = draw.op("reshape", (first,), (512, 1))  # read again at the end, under another name
    late = draw.graph(one, other, draw.same("relu", view))
    assert bounds_of(build(late, small_target())).holdings[0].ports_bytes == 4 * KB


def test_devices_hold_the_part_of_the_weights_that_their_cores_work_with() -> None:
    split = bounds_of(build(layers(), small_target(local_bytes=256 * KB), cores=2, devices=2))
    assert [held.constants_bytes for held in split.holdings] == [512 * KB, 512 * KB]
    piped = bounds_of(build(layers(), small_target(local_bytes=256 * KB), cores=2, devices=2, parallel="pipeline"))
    assert [held.constants_bytes for held in piped.holdings] == [512 * KB, 512 * KB]


def skip(*, rows: int) -> Graph:
    """x is read again at the end, so that it has to be kept, or spilled, while two layers run."""
    draw = Sketch(dtype=DType.F16)
    first = draw.dense(draw.input(rows, 256), 256, bias=False)
    second = draw.dense(draw.dense(first, 256, bias=False), 256, bias=False)
    return draw.graph(draw.same("add", first, second))


def test_what_local_memory_has_no_room_for_is_counted_while_it_is_needed() -> None:
    roomy = build(skip(rows=256), small_target(local_bytes=1 << 20), parts=whole_batch)
    assert [held.spilled_bytes for held in bounds_of(roomy).holdings] == [0]
    tight = build(skip(rows=256), small_target(local_bytes=300 * KB), parts=whole_batch)
    (held,) = bounds_of(tight).holdings
    size = 256 * 256 * 2
    assert size <= held.spilled_bytes <= 3 * size  # no more than the activations that are alive at once
    assert held.ports_bytes == size


def test_constants_that_stay_are_not_asked_to_be_read() -> None:
    assert bounds_of(build(layers(), small_target(local_bytes=2 << 20))).streamed_bytes == 0
    streamed = build(layers(), small_target(local_bytes=256 * KB), cores=2)
    read = sum(row.read_constant for row in streamed.program.metrics.traffic)
    assert 1024 * KB - 4 <= (bounds_of(streamed).streamed_bytes or 0) <= read


def test_rows_of_a_table_are_no_constant_that_is_read_whole() -> None:
    draw = Sketch(dtype=DType.F16)
    rows = draw.op("gather", (draw.constant(50_000, 64), draw.input(4, dtype=DType.I32)), (4, 64), axis=0)
    built = build(draw.graph(rows), small_target(local_bytes=256 * KB))
    assert bounds_of(built).streamed_bytes == 0
    assert bounds_of(built).holdings[0].constants_bytes == 50_000 * 64 * 2


def test_macs_are_those_of_the_model_and_are_not_known_where_one_op_is_not() -> None:
    built = build(layers(rows=8), small_target(), cores=4)
    assert bounds_of(built).macs == 2 * 8 * 512 * 512
    assert int(built.program.commands["macs"].sum()) == 2 * 8 * 512 * 512 + bounds_of(built).repeated_macs
    draw = Sketch(dtype=DType.F16)
    open_shape = draw.op("conv", (draw.input(1, 8, 8, 4), draw.constant(8, 3, 3, 4)), None, kernel=(3, 3))
    assert graph_macs(draw.graph(open_shape)) is None


def test_an_op_that_every_core_does_whole_is_counted_for_each_of_them() -> None:
    draw = Sketch(dtype=DType.F16)
    graph = draw.graph(draw.dense(draw.input(1, 64), 1, bias=False))
    built = build(graph, small_target(), cores=4, parts=whole_batch, splits=lambda *_: 0)
    found = bounds_of(built)
    assert (found.macs, found.repeated_macs) == (64, 3 * 64)
    assert int(built.program.commands["macs"].sum()) == 4 * 64


def test_peaks_are_those_of_the_file_before_losses() -> None:
    found = bounds_of(build(layers(), small_target()))
    memory = next(memory for memory in found.memories if memory.name == "DDR")
    assert memory.rate is not None
    assert (memory.rate.value, memory.capacity_bytes, memory.per_core) == (137e9, 16 << 30, False)
    assert {route.name: route.rate.value for route in found.routes}["DDR write"] == 137e9
    assert {unit.name: unit.macs_per_cycle["f16"] for unit in found.units if "f16" in unit.macs_per_cycle} == {
        "HMX": 4096
    }


def with_outer(target: Target, size: int) -> Target:
    memories = (
        replace(memory, bytes=Figure(size, "by hand")) if memory.is_outer else memory for memory in target.memories
    )
    return replace(target, memories=tuple(memories))


def test_a_program_that_fits_to_the_byte_is_accepted_and_one_more_is_refused() -> None:
    needed = (1024 + 1) * KB
    target = small_target(local_bytes=256 * KB)
    check_capacity(build(layers(), with_outer(target, needed)).program.bounds, target="chip")
    with pytest.raises(UsageError) as caught:
        check_capacity(build(layers(), with_outer(target, needed - 1)).program.bounds, target="chip")
    assert str(caught.value) == (
        "chip: the program needs 1.00 MB of DDR (1.00 MB of constants, 1.00 KB of inputs and outputs); it has 1.00 MB; "
        "expected a model that fits, more devices (--devices N) or a smaller data type (--precision)"
    )


def test_what_cannot_fit_is_known_before_code_is_generated() -> None:
    """One tensor of 10^12 bytes would be millions of commands."""
    draw = Sketch(dtype=DType.F16)
    data = draw.op("relu", (draw.input(1, 1000, 1000, 500_000),), (1, 1000, 1000, 500_000))
    plan = split_plan(draw.graph(data), small_target())
    assert not surely_fits(plan)
    with pytest.raises(UsageError, match=r"^chip: the program needs .* GB of DDR \(.* GB of inputs and outputs"):
        check_capacity(least_bounds(plan), target="chip")


@pytest.mark.parametrize(("kilobytes", "fits"), [(4095, False), (6143, False), (6144, True), (1 << 20, True)])
def test_what_surely_fits_is_not_refused(kilobytes: int, fits: bool) -> None:
    """One tensor in, one out, of 2 MB each: 6 MB hold both, and one of them twice."""
    draw = Sketch(dtype=DType.F16)
    graph = draw.graph(draw.op("relu", (draw.input(1, 1024, 1024),), (1, 1024, 1024)))
    plan = split_plan(graph, with_outer(small_target(local_bytes=256 * KB), kilobytes * KB))
    assert surely_fits(plan) == fits
    if fits:
        check_capacity(least_bounds(plan), target="chip")


def split_plan(graph: Graph, target: Target) -> Plan:
    plan = Plan(graph, Machine(target), CompileOptions())
    for name, run in PASSES:
        plan = run(plan)
        if name == "split":
            break
    return plan


def test_an_output_is_not_held_twice_at_the_least() -> None:
    """One tensor in, one out, that together just fit."""
    draw = Sketch(dtype=DType.F16)
    graph = draw.graph(draw.op("relu", (draw.input(1, 1024, 1024),), (1, 1024, 1024)))
    made = build(graph, with_outer(small_target(local_bytes=256 * KB), 2 * 2048 * KB))
    (least,), held = least_bounds(made.passed).holdings, made.program.bounds
    assert least.spilled_bytes == 0
    assert held is not None
    assert least.bytes <= held.holdings[0].bytes
    check_capacity(least_bounds(made.passed), target="chip")


@pytest.mark.parametrize("rows", [1, 8])
def test_the_least_is_no_more_than_what_a_program_holds(rows: int) -> None:
    made = build(layers(rows=rows), small_target(local_bytes=256 * KB))
    least, held = least_bounds(made.passed).holdings, made.program.bounds.holdings if made.program.bounds else ()
    assert [one.memory for one in least] == [other.memory for other in held]
    assert all(one.bytes <= other.bytes for one, other in zip(least, held, strict=True))


def test_of_several_devices_the_one_that_is_too_small_is_named() -> None:
    fits, too_large = (Holding("DDR", device, size, 0, 0, 100) for device, size in ((0, 100), (1, 101)))
    with pytest.raises(UsageError, match=r"^chip: the program needs 101 B of DDR on device 1 \(101 B of constants\)"):
        check_capacity(Bounds(holdings=(fits, too_large)), target="chip")
    check_capacity(None, target="chip")
