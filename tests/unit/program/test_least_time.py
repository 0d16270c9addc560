"""What no execution of a program can beat, by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from opscope.machine import catalogue as targets
from opscope.options import ProfileOptions
from opscope.program.bounds import Bounds, MemoryPeak, Rate, UnitPeak
from opscope.program.least_time import least_seconds
from opscope.workflows.execution import loaded_from
from opscope.workflows.model_compiler import ModelCompiler
from opscope.workflows.simulated_run import compile_options, execution_of, range_ns
from support.build import Sketch
from support.device.build import COPY, DMA, HMX, READ, WRITE, Step, program_of

DDR = MemoryPeak("DDR", per_core=False, capacity_bytes=None, rate=Rate(100e9))
UNIT = UnitPeak("HMX", {"f16": 4096.0, "i8": 8192.0})


def test_reads_and_writes_of_all_cores_share_a_memory() -> None:
    moves = [
        Step(DMA, core=core, route=route, moved_bytes=1000, kind=COPY) for core in (0, 1) for route in (READ, WRITE)
    ]
    assert least_seconds(replace(program_of(moves), bounds=Bounds(memories=(DDR,)))) == pytest.approx(4000 / 100e9)


def test_macs_take_their_time_on_the_core_that_has_most_in_the_types_that_are_used() -> None:
    works = program_of(
        [Step(HMX, macs=8192, core=0), Step(HMX, macs=4096, core=1)], simulation={"macs_per_cycle": 4096.0}
    )
    assert least_seconds(replace(works, bounds=Bounds(units=(UNIT,)))) == pytest.approx(2e-9)


def test_without_peaks_nothing_is_known() -> None:
    assert least_seconds(program_of([Step(HMX, macs=8192)])) == 0.0


def test_the_low_end_of_a_range_is_not_below_the_peak_of_the_memory() -> None:
    draw = Sketch()
    graph = draw.graph(draw.same("relu", draw.input(64, 1024, 1024)))
    compiler, target, options = ModelCompiler(graph), targets.load("aic100-std"), ProfileOptions()
    program, _ = compiler.compile(target, compile_options(options))
    typical = execution_of(loaded_from(program, Path()), options)
    low, _ = range_ns(compiler, target, options, typical=typical)
    assert low >= 2 * 64 * 1024 * 1024 * 2 / 137  # bytes in f16, read and written, at 137 bytes in a ns
