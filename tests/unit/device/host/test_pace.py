"""Times of inferences: varied, but nothing shared is ever faster than its bytes per second."""

from __future__ import annotations

from dataclasses import replace
from math import floor

import pytest

from opscope.device.host.pace import Pace
from opscope.device.variation import least_factor, vary
from opscope.program.clock import at_clock
from opscope.program.program import Program
from opscope.simulation import simulate
from support.device.build import DMA, HMX, READ, ROUTES, Step, program_of

SPREAD = {"inference_spread": 0.02}
COMPUTE = [Step(HMX, 1_000_000)]
STREAM = [Step(DMA, 0, route=READ, moved_bytes=4_000_000)]  # 4 bytes per cycle: 1,000,000 cycles
NUMBERS = range(60)


def pace_of(program: Program) -> Pace:
    fastest = at_clock(program, 1 / least_factor(program))
    return Pace(program, simulate(program).total_cycles, simulate(fastest).total_cycles / fastest.clock_hz, seed=3)


def test_a_program_that_computes_varies_by_the_whole_spread() -> None:
    program = program_of(COMPUTE, simulation=SPREAD)
    pace = pace_of(program)
    for number in NUMBERS:
        assert pace.ticks(number) == pytest.approx(100_000 * vary(program, seed=3, inference=number), abs=1)
    assert min(pace.ticks(number) for number in NUMBERS) < 98_000


def test_a_program_that_streams_is_never_faster_than_its_memory() -> None:
    pace = pace_of(program_of(STREAM, simulation=SPREAD))
    found = [pace.ticks(number) for number in NUMBERS]
    assert min(found) == 100_000
    assert max(found) > 102_000


def test_a_memory_on_the_core_clock_is_faster_with_it() -> None:
    routes = tuple(replace(route, on_core_clock=True) for route in ROUTES)
    pace = pace_of(program_of(STREAM, routes=routes, simulation=SPREAD))
    assert min(pace.ticks(number) for number in NUMBERS) < 98_000


def test_an_inference_in_full_takes_the_ticks_that_were_told() -> None:
    mixed = [Step(DMA, 100, route=READ, moved_bytes=2_000_000), Step(HMX, 400_000), Step(HMX, 300_000, needs=(0,))]
    pace = pace_of(program_of(mixed, simulation=SPREAD))
    for number in NUMBERS:
        program, timeline = pace.timeline(number)
        assert floor(timeline.total_cycles * (program.stats_hz / program.clock_hz)) == pace.ticks(number)
        seconds = (timeline.done[2] - timeline.transfer_start[2]) / program.clock_hz
        assert 2_000_000 / seconds <= 4e9 * (1 + 1e-9)  # 4 bytes per cycle at 1 GHz


def test_a_clock_at_which_transfers_meet_worse_moves_nothing_faster() -> None:
    """With this order of transfers a clock that is 4 % faster takes 0.7 % longer than told: it is not sped up."""
    sizes = {0: (2, 2.4), 3: (3, 4.0), 4: (0, 2.8), 5: (1, 2.4), 6: (1, 4.0), 7: (3, 1.2), 8: (2, 1.6)}  # core, MB
    waits = {3: (0,), 4: (2,)}
    work = {1: Step(HMX, 200_000, (0,), core=2), 2: Step(HMX, 500_000, (1,), core=1)}
    steps = [
        work[number]
        if number in work
        else Step(
            DMA,
            100,
            waits.get(number, ()),
            core=sizes[number][0],
            route=READ,
            moved_bytes=round(sizes[number][1] * 1e6),
        )
        for number in range(9)
    ]
    program = program_of(steps, simulation=SPREAD)
    pace = pace_of(program)
    worse = 0
    for number in range(200):
        factor = vary(program, seed=3, inference=number)
        if factor < 1.0:
            exact = at_clock(program, 1.0 / factor)
            worse += simulate(exact).total_cycles / exact.clock_hz > 1.001 * pace.ticks(number) / program.stats_hz
        clocked, timeline = pace.timeline(number)
        assert floor(timeline.total_cycles * (clocked.stats_hz / clocked.clock_hz)) == pace.ticks(number)
        assert clocked.routes[READ].bytes_per_cycle * clocked.clock_hz <= 8e9 * (1 + 1e-6)
    assert worse > 3
