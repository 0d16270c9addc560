"""Targets of Tensix chips: what data sheets print, and what must follow from it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from opscope.calibration.measurements import Measurement
from opscope.calibration.op_rows import op_graph
from opscope.calibration.priced import Models
from opscope.calibration.quantities import Quantity
from opscope.estimate.estimator import estimate
from opscope.estimate.machines import use_machine
from opscope.machine.catalogue import load

NAMES = ("wormhole", "blackhole")


def added(target: str, shapes: str, *, dtype: str = "bf16", cores: int = 64, memory: str = "outer") -> float:
    """Seconds of an addition."""
    row = Measurement("here", op_graph("add", shapes, dtype, "here", memory), 1.0, cores=cores)
    return Models().priced(row, load(target)).range(Quantity.LATENCY).value


@pytest.mark.parametrize(
    ("name", "dtype", "tflops"), [("wormhole", "bf16", 148), ("wormhole", "bfp8", 295), ("blackhole", "bfp8", 664)]
)
def test_peaks_are_those_of_the_data_sheet(name: str, dtype: str, tflops: float) -> None:
    """n150: 74 TFLOPS in FP16, which are four passes, and 148 with two; one pass is 295. p150a: 664 in block floats."""
    target = load(name)
    products = next(engine for engine in target.engines if engine.name == "products")
    macs = products.macs_per_cycle[dtype].value * target.topology.cores.value * target.clocks.core_hz.value
    assert 2 * macs / 1e12 == pytest.approx(tflops, rel=0.01)


@pytest.mark.parametrize("name", NAMES)
def test_they_are_calibrated_and_say_how_far_off_ops_left_out_were(name: str) -> None:
    target = load(name)
    assert target.calibration is not None
    assert target.validation is not None
    assert target.validation.median_error < (0.25 if name == "wormhole" else 0.35)


@pytest.mark.parametrize("name", NAMES)
def test_rows_are_padded_to_tiles(name: str) -> None:
    few, many = (added(name, f"1x1x{rows}x4096;1x1x{rows}x4096", cores=1) for rows in (19, 32))
    assert few == many


@pytest.mark.parametrize("name", NAMES)
def test_block_floats_move_fewer_bytes_and_local_operands_none(name: str) -> None:
    shapes = "1x1x4096x2048;1x1x4096x2048"
    floats, blocks = (added(name, shapes, dtype=dtype) for dtype in ("bf16", "bfp8"))
    assert blocks < floats
    assert added(name, shapes, memory="local") < floats


@pytest.mark.parametrize("name", NAMES)
def test_few_cores_do_not_fill_the_memory(name: str) -> None:
    shapes = "1x1x8192x2048;1x1x8192x2048"
    alone, all_ = (added(name, shapes, cores=cores) for cores in (1, 64))
    target = load(name)
    memory = next(memory for memory in target.memories if memory.name == "DRAM")
    assert memory.core_bytes_per_second is not None
    assert alone >= 3 * 8192 * 2048 * 2 / memory.core_bytes_per_second.value
    assert all_ < alone / 8


def test_a_chip_without_the_limit_of_a_core_is_never_slower() -> None:
    target = load("wormhole")
    free = replace(target, memories=tuple(replace(memory, core_bytes_per_second=None) for memory in target.memories))
    row = Measurement("here", op_graph("add", "1x1x2048x2048;1x1x2048x2048", "bf16", "here"), 1.0, cores=2)
    assert (
        Models().priced(row, free).range(Quantity.LATENCY).value
        <= Models().priced(row, target).range(Quantity.LATENCY).value
    )


def test_an_estimate_of_a_network_says_that_single_ops_were_measured() -> None:
    one = op_graph("relu", "1x1x32x64", "bf16", "here")
    again = replace(one.ops[0], name="again", inputs=(1,), outputs=(2,))
    two = replace(one, ops=(*one.ops, again), tensors=(*one.tensors, one.tensors[1]), outputs=(2,))
    codes = [[note.code for note in estimate(graph, use_machine("wormhole")).graph.notes] for graph in (one, two)]
    assert ["calibrated-with-ops" in each for each in codes] == [False, True]
