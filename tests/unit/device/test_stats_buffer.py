"""What a stats buffer holds at each level, and that what it holds adds up."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from opscope.core.errors import ProgramError, UsageError
from opscope.core.meaning import Does
from opscope.device import Inference, collect
from opscope.program.capture import Capture
from opscope.program.program import Group, Program, StatsOptions
from opscope.program.wire import INPUT_PORT, OUTPUT_PORT, StatsFlag, StatsSection
from opscope.simulation import simulate
from support.device.build import COPY, DMA, HMX, HVX, INPUT, OUTPUT, READ, WRITE, Step, program_of

SPREAD = {"thread_spread": 0.2, "activate_ticks": 4386.0}
STEPS = (
    Step(DMA, 10, kind=INPUT),
    Step(DMA, 235, needs=(0,), route=READ, moved_bytes=4000, kind=COPY),
    Step(HVX, 5000, needs=(1,), macs=10),
    Step(HMX, 3000, needs=(2,), macs=999),
    Step(HVX, 2000, needs=(2, 3)),
    Step(DMA, 235, needs=(4,), route=WRITE, moved_bytes=1000, kind=COPY),
    Step(DMA, 10, needs=(5,), kind=OUTPUT),
    Step(HVX, 700, core=1, needs=(1,)),
)
EVENTS = StatsOptions(
    request_bytes=256,
    events=(2, 0x3F, 0x70, 0x100, 0x101, 0x110, 0x111, 0x201, 0x210),
    event_counts=(
        "cycles",
        "commands",
        "wait_cycles",
        "read_requests",
        "read_bytes",
        "write_requests",
        "write_bytes",
        "macs",
        "busy_cycles:HVX",
    ),
)


FOURTH = Inference(program_id=7, activation=0, number=3, start_tick=10**12)


def capture_of(
    program: Program, inference: Inference = FOURTH, *, device: int = 0, capacity_records: int | None = None
) -> Capture:
    return collect(program, simulate(program), inference, device=device, capacity_records=capacity_records)


def at_level(
    level: int, inference: Inference = FOURTH, *, device: int = 0, capacity_records: int | None = None
) -> Capture:
    program = program_of(STEPS, stats=StatsOptions(level=level), simulation=SPREAD)
    return capture_of(program, inference, device=device, capacity_records=capacity_records)


def kinds_of(capture: Capture) -> set[str]:
    return {kind.name for kind, _core in capture.sections}


def test_below_level_40_nothing_is_written() -> None:
    assert at_level(0).sections == {}


def test_level_40_writes_threads_only() -> None:
    assert kinds_of(at_level(40)) == {"THREADS"}


def test_level_40_writes_counters_and_memory_traffic_where_the_program_asks_for_them() -> None:
    capture = capture_of(program_of(STEPS, stats=replace(EVENTS, ddr=True)))
    assert kinds_of(capture) == {"THREADS", "PMU", "DDR"}
    assert capture.flags == StatsFlag.DDR | StatsFlag.PMU


def test_level_50_adds_ports_doorbells_and_semaphore_ops() -> None:
    capture = at_level(50)
    assert kinds_of(capture) == {"THREADS", "PORTS", "DOORBELLS", "OPS"}
    assert capture.sections[StatsSection.OPS, 0]["ordinal"].tolist() == [0, 3]  # of DMAIssue: input, output
    assert (StatsSection.OPS, 1) not in capture.sections


def test_level_70_has_one_record_per_command_and_thread_in_lane_order() -> None:
    ops = at_level(70).sections[StatsSection.OPS, 0]
    assert list(zip(ops["group"].tolist(), ops["ordinal"].tolist(), ops["thread"].tolist(), strict=True)) == [
        *[(HVX, ordinal, thread) for ordinal in (0, 1) for thread in range(4)],
        (HMX, 0, 4),
        *[(DMA, ordinal, 5) for ordinal in range(4)],
    ]


def test_level_100_adds_counters_per_op() -> None:
    capture = capture_of(program_of(STEPS, stats=replace(EVENTS, level=100)))
    assert kinds_of(capture) == {"THREADS", "PMU", "PORTS", "DOORBELLS", "OPS", "OP_PMU"}


def test_counters_per_op_add_up_to_the_counters_of_the_thread() -> None:
    program = program_of(STEPS, stats=replace(EVENTS, level=100), simulation={**SPREAD, "clock_spread": 0.005})
    capture = capture_of(program)
    for core in (0, 1):
        ops, threads = capture.sections[StatsSection.OP_PMU, core], capture.sections[StatsSection.PMU, core]
        for record in threads:
            same = (ops["thread"] == record["thread"]) & (ops["event"] == record["event"])
            total = int(ops["value"][same].sum())
            assert total <= record["value"] if record["event"] == 2 else total == record["value"]


def test_counters_count_what_the_program_does() -> None:
    counters = capture_of(program_of(STEPS, stats=EVENTS)).sections[StatsSection.PMU, 0]
    value = {(int(row["thread"]), int(row["event"])): int(row["value"]) for row in counters}
    assert [value[5, event] for event in (0x3F, 0x100, 0x101, 0x110, 0x111)] == [
        4,
        16,
        4000,
        4,
        1000,
    ]  # requests of 256 bytes
    assert [value[thread, 0x201] for thread in range(5)] == [3, 3, 2, 2, 999]
    assert value[4, 0x70] == 10 + 235 + 1000 + 5000  # the HMX waits for input, copy and HVX
    assert {thread for thread, event in value if event == 0x210} == {0, 1, 2, 3}  # the HVX threads only


def test_memory_traffic_is_per_core() -> None:
    capture = capture_of(program_of(STEPS, stats=StatsOptions(ddr=True)))
    assert capture.sections[StatsSection.DDR, 0][["read_bytes", "write_bytes"]].tolist() == [(4000, 1000)]
    assert capture.sections[StatsSection.DDR, 1][["read_bytes", "write_bytes"]].tolist() == [(0, 0)]


def test_every_thread_of_every_core_has_its_start_end_and_activation() -> None:
    capture = at_level(40)
    assert capture.threads == 6
    for core in (0, 1):
        threads = capture.sections[StatsSection.THREADS, core]
        assert threads["thread"].tolist() == list(range(6))
        assert threads["group"].tolist() == [HVX] * 4 + [HMX, DMA]
        assert set(threads["activate"].tolist()) == {4386}
        assert set(threads["start"].tolist()) == {10**12}
        assert set(threads["end"].tolist()) == {10**12 + 1174}  # of the inference, though core 1 is done early
        assert set(threads["pcycles"].tolist()) == {11740}


def test_a_lane_of_computation_is_covered_by_its_ops_waits_and_barriers() -> None:
    program = program_of(STEPS, stats=StatsOptions(level=70), simulation=SPREAD, stats_hz=19.2e6, clock_hz=1233.12e6)
    capture = capture_of(program)
    ops, threads = capture.sections[StatsSection.OPS, 0], capture.sections[StatsSection.THREADS, 0]
    for thread in range(5):
        own = ops[ops["thread"] == thread]
        covered = int((own["ucycles"].astype(int) + own["wait"] + own["barrier"]).sum())
        last = own[-1]
        assert covered == last["start"] + last["ucycles"] + last["barrier"] - threads["start"][thread]
        assert covered <= threads["end"][thread] - threads["start"][thread]
        assert own["pcycles"].sum() <= threads["pcycles"][thread]


def test_one_thread_takes_all_the_cycles_and_the_others_wait_for_it_at_the_barrier() -> None:
    ops = at_level(70).sections[StatsSection.OPS, 0]
    first = ops[(ops["group"] == HVX) & (ops["ordinal"] == 0)]
    assert first["pcycles"].max() == 5000
    assert first["pcycles"].min() >= 4000
    assert first["barrier"].min() == 0 < first["barrier"].max()
    assert set((first["ucycles"] + first["barrier"]).tolist()) == {500}


def test_threads_that_share_equally_never_wait_at_the_barrier() -> None:
    ops = capture_of(program_of(STEPS, stats=StatsOptions(level=70))).sections[StatsSection.OPS, 0]
    assert not ops["barrier"].any()


def test_a_transfer_lasts_until_its_bytes_arrive_but_works_only_while_it_is_issued() -> None:
    ops = at_level(70).sections[StatsSection.OPS, 0]
    copy = ops[(ops["group"] == DMA) & (ops["ordinal"] == 1)][0]
    assert copy["ucycles"] == (10 + 235 + 1000) // 10 - 1
    assert copy["pcycles"] == 235


def test_a_wait_names_the_command_that_ended_it() -> None:
    program = program_of(STEPS, stats=StatsOptions(level=70))
    ops = capture_of(program).sections[StatsSection.OPS, 0]
    multiply = ops[ops["group"] == HMX][0]
    assert multiply["wait"] == (10 + 235 + 1000 + 5000) // 10
    blocker = program.commands[int(multiply["blocker"]) - 1]
    assert (blocker["group"], blocker["ordinal"]) == (HVX, 0)
    assert ops[(ops["group"] == DMA) & (ops["ordinal"] == 0)]["blocker"].tolist() == [0]


def test_thread_0_of_the_cores_with_ports_waits_for_the_host() -> None:
    capture = at_level(50, replace(FOURTH, input_wait_ticks=30711, output_wait_ticks=2))
    assert capture.sections[StatsSection.PORTS, 0].tolist() == [(0, INPUT_PORT, 30711), (0, OUTPUT_PORT, 2)]
    assert capture.sections[StatsSection.DOORBELLS, 0][["port", "time"]].tolist() == [(INPUT_PORT, 10**12)]
    assert (StatsSection.PORTS, 1) not in capture.sections


def test_a_program_without_port_commands_has_its_ports_on_core_0() -> None:
    capture = capture_of(program_of([Step(cycles=1), Step(cycles=1, core=1)], stats=StatsOptions(level=50)))
    assert (StatsSection.PORTS, 0) in capture.sections
    assert (StatsSection.PORTS, 1) not in capture.sections


def test_a_device_that_takes_no_input_has_no_port() -> None:
    program = program_of([Step(kind=INPUT), Step(kind=OUTPUT), Step(device=1)], stats=StatsOptions(level=50))
    assert kinds_of(capture_of(program, device=1)) == {"THREADS"}


def test_effective_frequency_differs_by_core_and_stays_within_the_spread() -> None:
    steps = [Step(cycles=10**7, core=core) for core in range(8)]
    program = program_of(steps, simulation={"clock_spread": 0.005}, clock_hz=1233.12e6, stats_hz=19.2e6)
    capture = capture_of(program)
    threads = [capture.sections[StatsSection.THREADS, core][0] for core in range(8)]
    megahertz = [int(t["pcycles"]) / int(t["end"] - t["start"]) * 19.2 for t in threads]
    assert len({round(value, 1) for value in megahertz}) > 4
    assert all(abs(value / 1233.12 - 1) <= 0.00501 for value in megahertz)
    assert min(megahertz) < 1233 < max(megahertz)  # to either side of the clock of the program


def test_a_full_buffer_loses_the_last_commands_of_a_lane_and_says_how_many() -> None:
    capture = at_level(70, capacity_records=5)
    assert capture.flags == StatsFlag.LOST
    ops = capture.sections[StatsSection.OPS, 0]
    assert ops[ops["group"] == HVX]["ordinal"].tolist() == [0] * 4  # one command of four threads fits in five records
    assert capture.sections[StatsSection.LOST, 0].tolist() == [(thread, HVX, 1, 1) for thread in range(4)]
    assert (StatsSection.LOST, 1) not in capture.sections


def test_a_counter_of_32_bits_stops_at_its_end() -> None:
    steps = [Step(cycles=2**32 - 1)]
    capture = capture_of(program_of(steps, stats=StatsOptions(level=70), clock_hz=1e8, stats_hz=1e9))
    assert set(capture.sections[StatsSection.OPS, 0]["ucycles"].tolist()) == {2**32 - 1}


def test_a_buffer_that_is_large_enough_loses_nothing() -> None:
    assert at_level(70, capacity_records=8).flags == StatsFlag(0)


def test_a_buffer_without_room_loses_everything() -> None:
    capture = at_level(70, capacity_records=0)
    assert "OPS" not in kinds_of(capture)
    assert (
        int(sum(r["count"].sum() for (k, _), r in capture.sections.items() if k is StatsSection.LOST)) == 8 + 1 + 4 + 4
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"device": 1}, r"^device 1: the program has 1; expected 0 to 0"),
        ({"capacity_records": -1}, r"^capacity_records -1: negative; expected 0 or more"),
    ],
)
def test_impossible_arguments_are_refused(options: dict[str, int], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        at_level(70, **options)


def test_an_inference_beyond_the_end_of_the_timer_is_refused() -> None:
    with pytest.raises(UsageError, match=r"^start_tick 9223372036854775808: the timer would overflow"):
        at_level(70, replace(FOURTH, start_tick=2**63))


@pytest.mark.parametrize("name", ["start_tick", "input_wait_ticks", "output_wait_ticks"])
def test_an_inference_has_no_negative_times(name: str) -> None:
    with pytest.raises(UsageError, match=rf"^{name} -1: negative; expected 0 or more"):
        replace(FOURTH, **{name: -1})


def test_a_timeline_of_another_program_is_refused() -> None:
    with pytest.raises(UsageError, match=r"^timeline of 1 commands; expected 8, as the program"):
        collect(program_of(STEPS), simulate(program_of([Step()])), FOURTH, device=0)


@pytest.mark.parametrize("counts", ["cats", "cycles:GPU", ":HMX"])
def test_an_event_that_counts_something_unknown_is_refused(counts: str) -> None:
    with pytest.raises(ProgramError, match=r"^net: event 0x2 counts '.*'; expected one of cycles, busy_cycles, "):
        capture_of(program_of(STEPS, stats=StatsOptions(events=(2,), event_counts=(counts,))))


def test_events_without_what_they_count_are_refused() -> None:
    with pytest.raises(ProgramError, match=r"^net: 0 event_counts; expected 1, as events"):
        capture_of(program_of(STEPS, stats=StatsOptions(events=(2,))))


@pytest.mark.parametrize("stats", [StatsOptions(level=2**16), StatsOptions(batch_size=2**32)])
def test_options_that_do_not_fit_in_the_header_are_refused(stats: StatsOptions) -> None:
    with pytest.raises(ProgramError, match=r"^net: stats (level|batch size) is \d+; expected 0 to "):
        capture_of(program_of(STEPS, stats=stats))


def test_a_buffer_beyond_all_measure_is_refused_before_it_is_made() -> None:
    program = replace(program_of(STEPS, groups=(Group("HVX", "", 20000),) * 3), cores=60000)
    with pytest.raises(
        ProgramError, match=r"^net: stats level 40 needs a buffer of .* bytes; expected at most 4294967296"
    ):
        capture_of(program)


def test_shares_differ_from_inference_to_inference_and_clocks_do_not() -> None:
    program = program_of(STEPS, stats=StatsOptions(level=70), simulation={**SPREAD, "clock_spread": 0.005})

    def barriers(seed: int, inference: int) -> tuple[list[int], list[int]]:
        timeline = simulate(program, seed=seed, inference=inference)
        capture = collect(program, timeline, replace(FOURTH, number=inference), device=0)
        threads, ops = capture.sections[StatsSection.THREADS, 0], capture.sections[StatsSection.OPS, 0]
        return threads["pcycles"].tolist(), ops["barrier"].tolist()

    assert barriers(1, 0) == barriers(1, 0)
    assert barriers(1, 0)[0] == barriers(1, 5)[0] != barriers(2, 0)[0]
    assert barriers(1, 0)[1] != barriers(1, 5)[1]


def test_numbers_of_the_header_are_those_of_the_call() -> None:
    capture = at_level(40)
    assert (capture.program_id, capture.device, capture.inference, capture.cores) == (7, 0, 3, 2)
    assert np.isclose(capture.stats_hz, 1e8)


def test_transfers_in_flight_together_count_their_cycles_once() -> None:
    steps = [
        Step(DMA, 10, route=READ, moved_bytes=400),  # 4 bytes per cycle: moves from 10 to 110
        Step(DMA, 10, route=WRITE, moved_bytes=400),  # from 20 to 120
        Step(HMX, 500, needs=(0, 1)),
        Step(DMA, 10, needs=(2,), route=READ, moved_bytes=40),
    ]
    events = StatsOptions(level=100, events=(1, 2), event_counts=("transfer_cycles:DMAIssue", "busy_cycles:DMAIssue"))
    capture = capture_of(program_of(steps, stats=events))
    value = {row["event"].item(): row["value"].item() for row in capture.sections[StatsSection.PMU, 0]}
    assert value == {1: 110 + 10, 2: 30}
    of_commands = capture.sections[StatsSection.OP_PMU, 0]
    assert of_commands["value"][of_commands["event"] == 1].tolist() == [100, 100, 10]


def test_requests_of_no_size_are_refused() -> None:
    stats = StatsOptions(events=(1,), event_counts=("read_requests",))
    with pytest.raises(ProgramError, match="counts requests of 0 bytes; expected a size of 1"):
        capture_of(program_of(STEPS, stats=stats))


def test_writing_the_stats_buffer_is_no_activity() -> None:
    program = program_of(
        [Step(HMX, 500), Step(HMX, 234, route=WRITE, moved_bytes=40), Step(DMA, 10, route=WRITE, moved_bytes=40)],
        stats=StatsOptions(level=100, events=(1, 2), event_counts=("busy_cycles:HMX", "transfer_cycles:DMAIssue")),
    )
    commands = program.commands.copy()
    commands["does"] = np.where(commands["moved_bytes"] > 0, Does.STATS, Does.COMPUTE)
    capture = capture_of(replace(program, commands=commands))
    value = {row["event"].item(): row["value"].item() for row in capture.sections[StatsSection.PMU, 0]}
    assert value == {1: 500, 2: 0}
