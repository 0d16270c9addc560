"""Programs and activations beside each other: one link, one memory, and no more of either than there is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import floor
from statistics import fmean

import numpy as np
import pytest

from opscope.device.host.card import Card
from opscope.options import RunOptions
from opscope.program.program import NO_ROUTE, Program
from opscope.recording.host_times import HostTimes
from opscope.simulation import simulate
from opscope.simulation.together import NOTHING_BEFORE, Begun, Together
from support.device.build import COPY, DMA, HMX, READ, Step, program_of

READS = Step(group=DMA, route=READ, moved_bytes=40_000, kind=COPY)  # 4 of the 8 bytes a cycle that there are
LINK = {"link": 16e9, "memory": 1e15}


def on_card(
    steps: Sequence[Step], *, cores: int = 14, ports: int = 0, simulation: dict[str, float] | None = None
) -> Program:
    program = program_of(steps, simulation={"host_spread": 0.0} | (simulation or {}))
    port = (("x", "u8", (ports,)),) if ports else ()
    return replace(program, device_cores=cores, inputs=port, outputs=port, host_bytes_per_second=LINK)


def cycles(programs: Sequence[Program], activations: int) -> list[float]:
    return [pace.cycles for pace in Card(programs, RunOptions(num_iter=40, activations=activations)).paces]


@pytest.mark.parametrize(("at_once", "expected"), [(1, 10_000), (2, 10_000), (4, 20_000), (10, 50_000)])
def test_activations_that_want_more_than_there_is_together_take_as_long_as_all_their_bytes(
    at_once: int, expected: float
) -> None:
    assert cycles([on_card([READS])], at_once) == pytest.approx([expected], rel=0.01)


def test_activations_that_wait_for_the_link_first_take_as_long_as_all_their_bytes() -> None:
    """24 KB take 1.5 us on the link: ten activations are 15 us apart as long as they take 10, and that is too often."""
    assert cycles([on_card([READS], ports=24_000)], 10) == pytest.approx([50_000], rel=0.02)


READ_AND_COMPUTE = [READS, Step(HMX, cycles=10_000, needs=(0,))]  # 20,000 cycles alone


def test_a_program_that_computes_in_between_waits_for_no_more_than_the_bytes_of_all() -> None:
    """Four of them want 8 of 8 bytes a cycle on average; with a quarter of it at all times each would take 30,000."""
    (beside,) = cycles([on_card(READ_AND_COMPUTE, simulation={"inference_spread": 0.02})], 4)
    assert 20_000 <= beside < 28_000


def test_inferences_that_begin_together_and_are_all_alike_stay_together() -> None:
    """All four read at once, in every inference: a quarter of what there is for each."""
    assert cycles([on_card(READ_AND_COMPUTE)], 4) == pytest.approx([30_000], rel=0.001)


# Reads that take twice as long beside the others, behind a start that does not read: who is ahead is held up there.
CATCHES_UP = [Step(HMX, 9_000), replace(READS, moved_bytes=60_000, needs=(0,)), Step(HMX, 2_000, (1,))]


@pytest.mark.parametrize(("steps", "activations"), [(READ_AND_COMPUTE, 4), (CATCHES_UP, 5), ([READS] * 2, 3)])
@pytest.mark.parametrize("set_size", [1, 3])
def test_the_steady_time_is_that_of_a_long_run_however_its_activations_begin(
    steps: list[Step], activations: int, set_size: int
) -> None:
    """Where activations lie to each other wanders: means of some hundred inferences differ by some percent."""
    program = on_card(steps, simulation={"inference_spread": 0.02, "host_spread": 0.14})
    program = replace(program, host_microseconds={"preprocess": 3.0})
    options = RunOptions(activations=activations, set_size=set_size)
    found = Card([program], options).paces[0].steady_s
    ends = [_long_run_s(program, activations, set_size, spread) for spread in (0.0, 20e-6)]
    assert ends[0] == pytest.approx(ends[1], rel=0.06)
    assert found == pytest.approx(fmean(ends), rel=0.12)


def _long_run_s(program: Program, activations: int, set_size: int, within_s: float) -> float:
    """Mean of the later of 400 inferences of every activation, all in one event loop: slow, and plain to see.

    The host takes 3 us for a request, more or less, and an activation makes its first within some time.
    """
    rounds, draws = 400, np.random.Generator(np.random.PCG64(5))
    begun: list[Begun] = []
    for turn in range(rounds):
        for activation in range(activations):
            before = len(begun) - activations if turn else NOTHING_BEFORE
            asks = len(begun) - set_size * activations if turn >= set_size else NOTHING_BEFORE
            waits_s = draws.lognormal(0, 0.14) * 3e-6 if turn >= set_size else activation / activations * within_s
            begun.append(Begun(0, 0, waits_s, max(draws.normal(1, 0.02), 0.9), before, asks))
    ran = Together([program], seed=0).simulate(begun)
    return fmean(each.seconds for each in ran[len(ran) // 4 : -10 * activations])


def test_the_inference_that_a_profile_shows_is_of_the_time_that_the_others_take() -> None:
    program = on_card(CATCHES_UP, simulation={"inference_spread": 0.02})
    card = Card([program], RunOptions(num_iter=128, activations=5))
    (row,) = card.typical(0)
    clocked, timeline = card.timeline(0, int(row["activation"]), int(row["inference"]))
    assert timeline.total_cycles / clocked.clock_hz == pytest.approx(card.paces[0].steady_s, rel=0.02)
    later = card.times()[0].rows["inference"] >= 64
    middle = np.mean(card.times()[0].rows["exec_ticks"][later]) / program.stats_hz
    assert middle == pytest.approx(card.paces[0].steady_s, rel=0.05)


def test_activations_that_never_meet_take_what_they_take_alone() -> None:
    """67 MB each way take 4.2 ms on the link, and 10 us on the device: no two are ever there at once."""
    program = on_card([READS], ports=67_000_000)
    for programs, activations in (([program], 3), ([program] * 3, 1)):
        assert cycles(programs, activations) == pytest.approx([10_000] * len(programs))


def test_every_transfer_has_an_equal_part_beside_those_of_other_programs() -> None:
    """One reads all the time, the other 1,000 bytes of every 10,000 cycles: it gets its half of them at once."""
    greedy = on_card([replace(READS, moved_bytes=400_000)], cores=2)
    modest = on_card([replace(READS, moved_bytes=1_000), Step(HMX, cycles=10_000, needs=(0,))], cores=2)
    narrow = [replace(p, routes=tuple(replace(r, bytes_per_cycle=4.0) for r in p.routes)) for p in (greedy, modest)]
    alone = simulate(narrow[1]).total_cycles
    _, beside = cycles(narrow, 1)
    assert alone < beside <= alone + 1_000 / 2.0


def test_a_route_that_others_do_not_use_is_all_there() -> None:
    wide = [replace(READS, moved_bytes=400_000)]
    own = program_of([Step(DMA, route=READ, moved_bytes=40_000)])
    routes = (own.routes[0], replace(own.routes[1], memory=-1))
    across = replace(on_card([replace(READS, route=1)]), routes=routes)
    reading = replace(on_card(wide), routes=routes)
    assert cycles([across, reading, reading, reading], 1)[0] == pytest.approx(10_000)


def test_several_programs_share_the_link() -> None:
    """Three programs with 67 MB each way: together no more than one of them sends with three activations."""
    program, options = on_card([READS], ports=67_000_000), RunOptions(num_iter=20)
    apart = Card([program] * 3, options).times()
    (together,) = Card([program], replace(options, activations=3)).times()
    link_s = 3 * 20 * 67_000_000 / 16e9
    assert link_s <= max(_end_s(times) for times in apart) == pytest.approx(_end_s(together), rel=0.01)


def _end_s(times: HostTimes) -> float:
    return float(times.rows["dequeued_ns"].max()) / 1e9


@pytest.mark.parametrize("activations", [3, 7])
def test_transfers_of_profiled_activations_never_move_more_than_the_memory_does(activations: int) -> None:
    """Bursts of several activations coincide: all bytes of any stretch of time fit into it."""
    burst = [replace(READS, moved_bytes=8_000), Step(HMX, cycles=9_000, needs=(0,))] * 3
    steps = [replace(s, needs=tuple(2 * i for _ in s.needs)) for i, pair in enumerate(_pairs(burst)) for s in pair]
    program = on_card(steps, simulation={"inference_spread": 0.02})
    card = Card([program], RunOptions(num_iter=4, num_samples=2, activations=activations))
    card.times()
    starts, ends, sizes = [], [], []
    for rows in card.samplings[0].rows:
        for row in rows:
            clocked, timeline = card.timeline(0, int(row["activation"]), int(row["inference"]))
            assert floor(timeline.total_cycles * clocked.stats_hz / clocked.clock_hz) == row["exec_ticks"]
            moves = program.commands["route"] != NO_ROUTE
            at = row["started_ns"] * 1e-9
            starts.append(at + timeline.transfer_start[moves] / clocked.clock_hz)
            ends.append(at + timeline.done[moves] / clocked.clock_hz)
            sizes.append(program.commands["moved_bytes"][moves])
    first, last, moved = (np.concatenate(each) for each in (starts, ends, sizes))
    tick = 1 / program.stats_hz
    for begin in first:
        for end in last[last > begin]:
            inside = (first >= begin) & (last <= end)
            assert moved[inside].sum() <= 8e9 * (end - begin + 2 * tick)


def _pairs(steps: Sequence[Step]) -> list[Sequence[Step]]:
    return [steps[place : place + 2] for place in range(0, len(steps), 2)]


def test_the_same_seed_gives_the_same_times() -> None:
    program = on_card([READS, Step(HMX, cycles=10_000, needs=(0,))], simulation={"inference_spread": 0.02})
    first, again = (Card([program], RunOptions(num_iter=9, activations=4)).times()[0].rows.tobytes() for _ in range(2))
    assert first == again
