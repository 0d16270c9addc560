"""Small programs whose times can be worked out on paper."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from opscope.core.errors import ProgramError
from opscope.core.meaning import Carries
from opscope.device.variation import steady_state_ns, vary
from opscope.program.program import NO_MEMORY, Channel
from opscope.simulation import simulate
from support.device.build import DMA, HMX, HVX, READ, ROUTES, WRITE, Step, program_of


def copy(moved_bytes: int, *, cycles: int = 10, core: int = 0, device: int = 0, route: int = READ) -> Step:
    return Step(DMA, cycles, core=core, device=device, route=route, moved_bytes=moved_bytes)


def test_a_lane_runs_its_commands_one_after_the_other() -> None:
    timeline = simulate(program_of([Step(cycles=5), Step(cycles=7)]))
    assert timeline.start.tolist() == [0, 5]
    assert timeline.done.tolist() == [5, 12]
    assert timeline.total_cycles == 12


def test_an_empty_program_takes_no_time() -> None:
    assert simulate(program_of([])).total_cycles == 0


def test_a_command_waits_for_the_last_of_its_dependencies_and_remembers_it() -> None:
    timeline = simulate(program_of([Step(HVX, 30), Step(HMX, 4), Step(HMX, 1, needs=(0, 1))]))
    assert timeline.lane_ready.tolist() == [0, 0, 4]
    assert timeline.start.tolist() == [0, 0, 30]
    assert timeline.blocker.tolist() == [-1, -1, 0]


def test_a_dependency_that_is_done_in_time_blocks_nobody() -> None:
    timeline = simulate(program_of([Step(HVX, 4), Step(HMX, 4), Step(HMX, 1, needs=(0,))]))
    assert timeline.start[2] == 4
    assert timeline.blocker.tolist() == [-1, -1, -1]


def test_of_dependencies_that_are_done_together_the_first_listed_is_the_blocker() -> None:
    steps = [Step(HVX, 9), Step(HVX, 9, core=1), Step(HMX, 1, needs=(1, 0))]
    program = program_of(steps)
    timeline = simulate(program)
    waiting = int(np.flatnonzero(program.commands["group"] == HMX)[0])
    assert timeline.blocker[waiting] == program.dependencies(waiting)[0]


def test_the_lane_goes_on_while_the_bytes_of_a_transfer_are_on_their_way() -> None:
    timeline = simulate(program_of([copy(400), Step(DMA, 3)]))
    assert timeline.issue_end.tolist() == [10, 13]
    assert timeline.done.tolist() == [10 + 400 / 4, 13]


def test_transfers_of_one_queue_move_one_at_a_time_in_the_order_of_issue() -> None:
    timeline = simulate(program_of([copy(400), copy(40)]))
    assert timeline.transfer_start.tolist() == [10, 110]
    assert timeline.done.tolist() == [110, 120]


def test_groups_that_issue_at_the_same_time_queue_in_their_order() -> None:
    steps = [Step(group, 10, route=READ, moved_bytes=40) for group in (DMA, HMX, HVX)]
    assert simulate(program_of(steps)).done.tolist() == [20, 30, 40]


def test_queues_of_a_device_share_its_channel_equally() -> None:
    timeline = simulate(program_of([copy(800, core=core) for core in range(4)]))
    assert timeline.done.tolist() == [10 + 800 / 2] * 4  # 8 bytes per cycle among four


def test_a_short_transfer_leaves_its_share_to_the_others() -> None:
    routes = (Channel("DDR read", Carries.READ, 8.0, 8.0),)
    timeline = simulate(program_of([copy(400), copy(800, core=1)], routes=routes))
    assert timeline.done.tolist() == [10 + 100, 10 + 100 + 400 / 8]


def test_devices_and_memories_do_not_share() -> None:
    steps = [copy(400), copy(400, route=WRITE, core=1), copy(400, device=1)]
    routes = (replace(ROUTES[0], bytes_per_cycle=4.0, memory=NO_MEMORY), ROUTES[1])
    assert simulate(program_of(steps, routes=routes)).done.tolist() == [110] * 3


def test_reads_and_writes_share_the_bandwidth_of_their_memory() -> None:
    steps = [copy(800, route=route, core=core) for core, route in enumerate((READ, WRITE, READ, WRITE))]
    assert simulate(program_of(steps)).done.tolist() == [10 + 800 / 2] * 4  # 8 bytes per cycle among four


def test_what_a_slow_route_cannot_use_is_left_to_the_other_one() -> None:
    routes = (replace(ROUTES[0], core_bytes_per_cycle=1.0), replace(ROUTES[1], core_bytes_per_cycle=8.0))
    timeline = simulate(program_of([copy(100), copy(700, route=WRITE, core=1)], routes=routes))
    assert timeline.done.tolist() == [110, 110]  # 1 and 7 of the 8 bytes per cycle that the memory has


def test_a_transfer_is_done_a_latency_after_its_last_byte_and_its_queue_goes_on() -> None:
    routes = (replace(ROUTES[0], latency_cycles=30.0), ROUTES[1])
    steps = [copy(400), copy(400), Step(HMX, 5, needs=(0,))]
    timeline = simulate(program_of(steps, routes=routes))
    compute, first, second = timeline.done.tolist()
    assert (first, second) == (10 + 100 + 30, 10 + 200 + 30)
    assert compute == first + 5


def test_a_transfer_of_nothing_is_done_when_it_is_issued_even_behind_a_full_queue() -> None:
    assert simulate(program_of([copy(400), copy(0)])).done.tolist() == [110, 20]


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        (
            [Step(HVX, 1, needs=(1,)), Step(HMX, 1, needs=(0,))],
            r"^net: command 0 \(device 0, core 0, HVX, ordinal 0\) waits for command 1 "
            r"\(device 0, core 0, HMX, ordinal 0\), which is never done; expected dependencies that neither",
        ),
        (
            [Step(cycles=1), Step(cycles=1, needs=(2,)), Step(cycles=1)],
            r"ordinal 1\) waits for command 2 .*ordinal 2\)",
        ),
        ([Step(needs=(0,))], r"^net: command 0 .* waits for command 0 "),
    ],
)
def test_commands_that_wait_for_each_other_are_named(steps: list[Step], words: str) -> None:
    with pytest.raises(ProgramError, match=words):
        simulate(program_of(steps))


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("device", 1, "command 1: device is 1; expected 0 to 0"),
        ("core", 9, "command 1: core is 9; expected 0 to 0"),
        ("group", 3, "command 1: group is 3; expected 0 to 2"),
        ("route", 2, "command 1: route is 2; expected -1 to 1"),
        ("route", -2, "command 1: route is -2; expected -1 to 1"),
        ("kind", 4, "command 1: kind is 4; expected 0 to 3"),
        ("ordinal", 7, "command 1: out of order; expected commands sorted"),
    ],
)
def test_an_impossible_column_is_refused_before_anything_runs(column: str, value: int, words: str) -> None:
    program = program_of([Step(), Step()])
    program.commands[column][1] = value
    with pytest.raises(ProgramError, match=words):
        simulate(program)


def test_commands_out_of_lane_order_are_refused() -> None:
    program = program_of([Step(HVX), Step(HMX)])
    with pytest.raises(ProgramError, match=r"command 1: out of order; expected commands sorted"):
        simulate(replace(program, commands=program.commands[::-1].copy()))


@pytest.mark.parametrize(
    ("offsets", "sources", "words"),
    [
        ([0, 0, 1], [2], r"command 1: depends on command 2; expected below 2"),
        ([0, 0, 1], [2**32 - 1], r"command 1: depends on command 4294967295"),
        ([0, 0, 2], [0], r"dependency_offsets run from 0 to 2; expected 0 to 1"),
        ([1, 1, 1], [0], r"dependency_offsets run from 1 to 1; expected 0 to 1"),
        ([0, 5, 1], [0], r"command 1: its dependencies end before they begin"),
    ],
)
def test_dependencies_that_lead_nowhere_are_refused(offsets: list[int], sources: list[int], words: str) -> None:
    program = replace(
        program_of([Step(), Step()]),
        dependency_offsets=np.array(offsets, np.uint32),
        dependency_sources=np.array(sources, np.uint32),
        dependency_kinds=np.ones(len(sources), np.uint8),
    )
    with pytest.raises(ProgramError, match=words):
        simulate(program)


@pytest.mark.parametrize("rate", [0.0, -1.0, float("nan"), float("inf")])
def test_a_route_without_a_rate_is_refused(rate: float) -> None:
    with pytest.raises(ProgramError, match=r"route 'DDR read' moves .* expected positive numbers"):
        simulate(program_of([copy(1)], routes=(Channel("DDR read", Carries.READ, rate, 4.0),)))


def test_a_program_that_would_run_for_ages_is_refused() -> None:
    with pytest.raises(ProgramError, match=r"may take .* cycles; expected less than"):
        simulate(program_of([copy(2**63)], routes=(Channel("DDR read", Carries.READ, 1e-300, 4.0),)))


@pytest.mark.parametrize("change", [{"devices": 0}, {"cores": 2**20}, {"clock_hz": 0.0}, {"stats_hz": float("nan")}])
def test_an_impossible_machine_is_refused(change: dict[str, float]) -> None:
    with pytest.raises(ProgramError, match=f"^net: {next(iter(change))} is "):
        simulate(replace(program_of([Step()]), **change))  # type: ignore[arg-type]


def test_steady_state_is_the_time_at_the_nominal_clock() -> None:
    program = program_of([Step(cycles=3000)], clock_hz=1.5e9)
    assert steady_state_ns(program, simulate(program)) == 2000


def test_inferences_vary_with_the_spread_of_the_target_and_never_by_more_than_three_of_it() -> None:
    program = program_of([], simulation={"inference_spread": 0.02})
    factors = np.array([vary(program, seed=1, inference=i) for i in range(2000)])
    assert factors.mean() == pytest.approx(1.0, abs=0.002)
    assert factors.std() == pytest.approx(0.02, rel=0.05)
    assert np.abs(factors - 1).max() <= 0.06
    assert vary(program, seed=1, inference=7) == factors[7] != vary(program, seed=2, inference=7)


def test_a_program_without_a_spread_never_varies() -> None:
    assert vary(program_of([]), seed=3, inference=4) == 1.0


@pytest.mark.parametrize("spread", [-0.1, 0.5, float("nan")])
def test_an_impossible_spread_is_refused(spread: float) -> None:
    with pytest.raises(ProgramError, match=r"simulation: inference_spread is .*; expected 0 to less than 0.333"):
        vary(program_of([], simulation={"inference_spread": spread}), seed=0, inference=0)
