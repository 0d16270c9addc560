"""Several inferences in one event loop: alone as they are alone, together no faster than what they share."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from opscope.program.clock import at_clock
from opscope.program.program import Program
from opscope.simulation import simulate
from opscope.simulation.together import Begun, Together, stage_share
from support.device.build import COPY, DMA, HMX, HVX, OUTPUT, READ, WRITE, Step, program_of

READS = Step(DMA, 100, route=READ, moved_bytes=40_000, kind=COPY)
STEPS = [READS, Step(HMX, 5_000, (0,)), Step(HVX, 700, (1,)), Step(DMA, 100, (2,), route=WRITE, moved_bytes=8_000)]


def ends(program: Program, inferences: list[Begun]) -> list[float]:
    ran = Together([program], seed=0).simulate(inferences)
    return [each.start_s * program.clock_hz + each.timeline.total_cycles for each in ran]


def test_an_inference_that_is_alone_has_the_timeline_that_it_has_alone() -> None:
    program = program_of(STEPS)
    (ran,) = Together([program], seed=0).simulate([Begun(0, 0, 0.0)])
    alone = simulate(program)
    for column in ("lane_ready", "start", "issue_end", "transfer_start", "done"):
        assert getattr(ran.timeline, column) == pytest.approx(getattr(alone, column)), column
    assert (ran.timeline.blocker == alone.blocker).all()


def test_inferences_on_other_devices_of_a_card_share_nothing() -> None:
    program = program_of([replace(READS, core=core) for core in range(3)])
    total = simulate(program).total_cycles
    assert ends(program, [Begun(0, device, 0.0) for device in range(3)]) == pytest.approx([total] * 3)


def test_inferences_on_one_device_share_its_memory_while_they_overlap() -> None:
    """Three of 4 bytes a cycle each, of 8: two are beside each other at full speed, the third takes from both."""
    program = program_of([replace(READS, cycles=0)])
    together = [Begun(0, 0, 0.0), Begun(0, 0, 0.0), Begun(0, 0, 5e-6)]
    # 5,000 cycles at 4, then 20,000 bytes left each at 8/3; the third then goes on alone with the rest of its 40,000
    assert ends(program, together) == pytest.approx([12_500, 12_500, 17_500])


def test_one_that_takes_over_cores_begins_when_they_are_free() -> None:
    program = program_of(STEPS)
    total = simulate(program).total_cycles
    chain = [Begun(0, 0, 0.0), Begun(0, 0, 1e-6, after=0), Begun(0, 0, 1e-3, after=1)]
    assert ends(program, chain) == pytest.approx([total, 2 * total, 1_000_000 + total])


def test_one_that_follows_another_begins_some_time_after_its_end_on_all_devices() -> None:
    """The host asks for it when it has those results; its cores were free before."""
    stages = program_of([Step(HMX, 3_000), Step(HMX, 5_000, (0,), device=1)])
    follower = Begun(0, 0, 2e-6, after=0, follows=0)
    assert ends(stages, [Begun(0, 0, 0.0), follower]) == pytest.approx([8_000, 8_000 + 2_000 + 8_000])
    early = Begun(0, 0, 2e-6, after=1, follows=0)  # its cores are busy with the one before it
    assert ends(stages, [Begun(0, 0, 0.0), Begun(0, 0, 0.0, after=0), early])[2] == pytest.approx(18_000)


def test_one_that_is_slower_is_slower_in_everything_and_a_faster_one_on_the_core_clock() -> None:
    program = program_of(STEPS)
    for factor, clocked in (
        (1.1, replace(program, clock_hz=program.clock_hz / 1.1)),
        (0.9, at_clock(program, 1 / 0.9)),
    ):
        (ran,) = Together([program], seed=0).simulate([Begun(0, 0, 0.0, factor)])
        assert ran.timeline.total_cycles == pytest.approx(simulate(clocked).total_cycles)


def test_programs_of_different_clocks_meet_on_one_axis() -> None:
    """40,000 bytes at 4 GB/s take 10 us, whatever the core clock."""
    slow = program_of([replace(READS, cycles=0)])
    programs = [slow, at_clock(slow, 1.25)]
    ran = Together(programs, seed=0).simulate([Begun(0, 0, 0.0), Begun(1, 0, 0.0)])
    assert [each.timeline.total_cycles for each in ran] == pytest.approx([10_000, 12_500])


def test_stages_of_a_pipeline_work_on_several_inferences_and_others_do_not() -> None:
    stages = [Step(HMX, 3_000), Step(HMX, 5_000, (0,), device=1), Step(HVX, 10, (1,), kind=OUTPUT)]
    assert stage_share(program_of(stages), seed=0) == pytest.approx(5_000 / 8_010, rel=0.01)
    recorded = [*stages, Step(HVX, 20)]  # behind what tells the host of the end, in its lane
    assert stage_share(program_of(recorded), seed=0) == pytest.approx(5_000 / 8_030, rel=0.01)
    shared = [Step(HMX, 5_000), Step(HMX, 5_000, device=1), Step(HVX, 10, (0, 1), kind=OUTPUT)]
    assert stage_share(program_of(shared), seed=0) == 1.0
    assert stage_share(program_of(STEPS), seed=0) == 1.0


def test_no_window_moves_more_than_the_memory_whatever_the_offsets() -> None:
    program = program_of([replace(READS, cycles=0), Step(HMX, 9_000, (0,))])
    draws = np.random.PCG64(7).random_raw(6) % 10_000
    ran = Together([program], seed=0).simulate([Begun(0, 0, int(draw) / 1e9) for draw in draws])
    first = np.array([each.start_s * 1e9 + each.timeline.transfer_start[1] for each in ran])
    last = np.array([each.start_s * 1e9 + each.timeline.done[1] for each in ran])
    for begin in first:
        for end in last[last > begin]:
            assert 40_000 * ((first >= begin) & (last <= end)).sum() <= 8 * (end - begin) * (1 + 1e-9)
