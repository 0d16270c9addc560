"""Laws of the simulated device, on random programs, and against a slow and obvious simulator."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opscope.core.errors import ProgramError
from opscope.core.meaning import Carries
from opscope.device import Inference, collect
from opscope.program.capture import Capture, encode_capture
from opscope.program.program import COMMAND, NO_ROUTE, PMU_COUNTS, Channel, Group, Program, StatsOptions
from opscope.program.wire import STATS_HEADER, STATS_RECORDS, STATS_SECTION, StatsSection
from opscope.simulation import Timeline, event_loop, simulate
from opscope.simulation.tables import checked_tables
from support.device.build import DDR, KINDS, Step, program_of
from support.device.reference import Reference

CLOSE = 1e-6
RATES = st.sampled_from([0.3, 1.0, 2.5, 7.0, 64.0])
THREADS = (3, 1, 1)
# Made once: to make a strategy takes longer than to draw from it, and a program has hundreds of draws.
LATENCIES = st.sampled_from([0.0, 3.0, 40.5])
MEMORY_RATES = st.sampled_from([None, 0.4, 3.0, 64.0])
SIZES = st.tuples(st.integers(1, 2), st.integers(1, 3), st.integers(1, 3), st.integers(0, 40))
PLACES = {count: st.integers(0, count - 1) for count in (1, 2, 3, 4, 6, 8, 9, 12, 18)}  # products of the first three
CYCLES, EXACT_CYCLES = st.sampled_from([0, 1, 2, 17, 50]), st.sampled_from([1, 2, 30])  # often at the same time
EARLIER = [st.just([]), *(st.lists(st.integers(0, count - 1), max_size=3) for count in range(1, 41))]
MOVES = st.sampled_from([NO_ROUTE, NO_ROUTE, 0, 1])
MOVED_BYTES, MACS, KIND = st.integers(0, 300), st.integers(0, 100), st.integers(0, len(KINDS) - 1)
LEVELS = st.sampled_from([40, 50, 70, 100])
COLUMNS = ("lane_ready", "start", "issue_end", "transfer_start", "done", "blocker")


@st.composite
def programs(
    draw: st.DrawFn, *, any_group_moves: bool = True, exact: bool = False, one_memory: bool = False
) -> Program:
    """Up to 40 commands anywhere; each depends on some that were drawn before it, so it can always run.

    Where only one group issues transfers, nothing depends on who comes first at the same time. Where everything is
    exact, rates are powers of two that never have to be divided, and "the same time" means the same in any arithmetic.
    Routes of one memory share its bandwidth and have a latency.
    """
    devices, cores, groups, count = draw(SIZES)
    if exact:
        routes = (Channel("read", Carries.READ, 64.0, 4.0), Channel("write", Carries.WRITE, 64.0, 0.5))
    else:
        routes = tuple(Channel(kind, kind, draw(RATES), draw(RATES)) for kind in (Carries.READ, Carries.WRITE))
    if one_memory:
        routes = tuple(replace(r, memory=DDR, latency_cycles=draw(LATENCIES)) for r in routes)
    places, cycles = PLACES[devices * cores * groups], EXACT_CYCLES if exact else CYCLES
    steps: list[Step] = []
    for number in range(count):
        place, route = draw(places), draw(MOVES)
        lane, group = divmod(place, groups)
        moves = route != NO_ROUTE and (any_group_moves or group == groups - 1)
        steps.append(
            Step(
                group=group,
                cycles=draw(cycles),
                needs=tuple(draw(EARLIER[number])),
                core=lane % cores,
                device=lane // cores,
                route=route if moves else NO_ROUTE,
                moved_bytes=draw(MOVED_BYTES) if moves else 0,
                macs=draw(MACS),
                kind=draw(KIND),
            )
        )
    table = tuple(Group(f"g{i}", "", threads) for i, threads in enumerate(THREADS[:groups]))
    counts = (*PMU_COUNTS, "busy_cycles:g0")
    stats = StatsOptions(
        level=draw(LEVELS),
        ddr=draw(st.booleans()),
        events=tuple(range(len(counts))),
        event_counts=counts,
        request_bytes=64,
    )
    simulation = {"thread_spread": 0.3, "clock_spread": 0.005}
    made = program_of(steps, groups=table, routes=routes, stats=stats, simulation=simulation, stats_hz=2.1e8)
    rate = draw(MEMORY_RATES) if one_memory else None
    return replace(made, memories=(replace(made.memories[DDR], bytes_per_cycle=rate), *made.memories[1:]))


def intervals(program: Program, timeline: Timeline) -> dict[tuple[int, int], list[tuple[int, float, float, int]]]:
    """Per (device, route): core, start, end and bytes of every transfer."""
    found: dict[tuple[int, int], list[tuple[int, float, float, int]]] = {}
    for row, begin, end in zip(program.commands, timeline.transfer_start, timeline.done, strict=True):
        if row["route"] != NO_ROUTE and row["moved_bytes"]:
            key = (int(row["device"]), int(row["route"]))
            found.setdefault(key, []).append((int(row["core"]), float(begin), float(end), int(row["moved_bytes"])))
    return found


def captured(program: Program, *, seed: int = 0, capacity: int | None = None) -> Capture:
    ran = Inference(program_id=1, activation=0, number=0, start_tick=10**6)
    return collect(program, simulate(program, seed=seed), ran, device=0, capacity_records=capacity)


def assert_same_as_reference(program: Program) -> None:
    timeline, outcomes = simulate(program), Reference(program).run()
    for name in ("lane_ready", "start", "issue_end", "done"):
        expected = [getattr(outcome, name) for outcome in outcomes]
        assert getattr(timeline, name).tolist() == pytest.approx(expected, rel=CLOSE, abs=CLOSE), name


@given(st.booleans().flatmap(lambda one: programs(any_group_moves=False, one_memory=one)))
def test_times_are_those_of_the_obvious_simulator(program: Program) -> None:
    assert_same_as_reference(program)


@given(programs(exact=True))
def test_times_are_those_of_the_obvious_simulator_where_groups_share_a_queue(program: Program) -> None:
    assert_same_as_reference(program)


@given(st.booleans().flatmap(lambda one: programs(one_memory=one)))
def test_the_loop_in_python_gives_the_same_bits(program: Program) -> None:
    timeline, built, count = simulate(program), checked_tables(program), len(program.commands)
    results = [np.empty(count) for _ in range(5)] + [np.empty(count, np.int64)]
    assert event_loop.run(*(getattr(built, name) for name in built.__slots__), *results) == count
    for name, result in zip(COLUMNS, results, strict=True):
        assert getattr(timeline, name).tobytes() == result.tobytes(), name


@given(programs())
def test_a_command_starts_when_its_lane_is_free_and_all_it_needs_is_done(program: Program) -> None:
    timeline = simulate(program)
    for command in range(len(program.commands)):
        needs = [float(timeline.done[need]) for need in program.dependencies(command)]
        ready, blocker = timeline.lane_ready[command], int(timeline.blocker[command])
        assert timeline.start[command] == max([ready, *needs])
        if max([ready, *needs]) > ready:
            assert blocker in program.dependencies(command)
            assert timeline.done[blocker] == timeline.start[command]
        else:
            assert blocker == -1


@given(programs())
def test_a_lane_is_busy_or_waits_or_is_through(program: Program) -> None:
    timeline, lane = simulate(program), program.lane_of_commands()
    busy, wait = timeline.issue_end - timeline.start, timeline.start - timeline.lane_ready
    assert busy.tolist() == pytest.approx(program.commands["cycles"].tolist(), abs=CLOSE)
    assert (wait >= 0).all()
    assert (timeline.done >= timeline.issue_end).all()
    for number in np.unique(lane):
        own = np.flatnonzero(lane == number)
        assert timeline.lane_ready[own].tolist() == [0, *timeline.issue_end[own][:-1].tolist()]
        idle = timeline.total_cycles - timeline.issue_end[own[-1]]
        assert idle >= 0
        assert busy[own].sum() + wait[own].sum() + idle == pytest.approx(timeline.total_cycles, abs=CLOSE)


@given(programs())
def test_a_queue_moves_one_transfer_at_a_time_and_no_faster_than_it_can(program: Program) -> None:
    for (_device, route), transfers in intervals(program, simulate(program)).items():
        limit = program.routes[route].core_bytes_per_cycle
        for core in {core for core, *_ in transfers}:
            own = sorted((begin, end, size) for at, begin, end, size in transfers if at == core)
            assert all(end <= begin for (_, end, _), (begin, _, _) in pairwise(own))
            assert all(size <= limit * (end - begin) * (1 + CLOSE) for begin, end, size in own)


@given(programs())
def test_no_window_sees_more_bytes_than_the_channel_can_move(program: Program) -> None:
    for (_device, route), transfers in intervals(program, simulate(program)).items():
        limit = program.routes[route].bytes_per_cycle
        for begin in {begin for _, begin, _, _ in transfers}:
            for end in {end for _, _, end, _ in transfers if end > begin}:
                inside = sum(size for _, first, last, size in transfers if first >= begin and last <= end)
                assert inside <= limit * (end - begin) * (1 + CLOSE)


@given(programs(one_memory=True))
def test_no_window_sees_more_bytes_than_the_memory_can_move(program: Program) -> None:
    both: dict[int, list[tuple[float, float, int]]] = {}
    for (device, route), transfers in intervals(program, simulate(program)).items():
        late = program.routes[route].latency_cycles
        both.setdefault(device, []).extend((begin, end - late, size) for _, begin, end, size in transfers)
    limit = program.pool_rate(0)
    for rows in both.values():
        for begin in {begin for begin, _, _ in rows}:
            for end in {end for _, end, _ in rows if end > begin}:
                inside = sum(size for first, last, size in rows if first >= begin and last <= end)
                assert inside <= limit * (end - begin) * (1 + CLOSE)


@given(programs())
def test_every_byte_is_moved_and_the_channel_is_never_slower_than_it_must_be(program: Program) -> None:
    for (_device, route), transfers in intervals(program, simulate(program)).items():
        channel, moved = program.routes[route], 0.0
        points = sorted({time for _, begin, end, _ in transfers for time in (begin, end)})
        for begin, end in pairwise(points):
            active = sum(1 for _, first, last, _ in transfers if first <= begin and end <= last)
            moved += min(channel.bytes_per_cycle, active * channel.core_bytes_per_cycle) * (end - begin)
        assert moved == pytest.approx(sum(size for *_, size in transfers), rel=CLOSE)


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 500)), min_size=1, max_size=20), RATES, RATES)
def test_twice_the_bandwidth_never_slows_a_chain(links: list[tuple[int, int]], shared: float, own: float) -> None:
    steps = [
        Step(cycles=cycles, route=0, moved_bytes=size, core=i % 3, needs=(i - 1,) if i else ())
        for i, (cycles, size) in enumerate(links)
    ]

    def total(factor: float) -> float:
        return simulate(
            program_of(steps, routes=(Channel("read", Carries.READ, shared * factor, own * factor),))
        ).total_cycles

    assert total(2.0) <= total(1.0)
    assert total(1.0) == pytest.approx(sum(c + size / min(shared, own) for c, size in links), rel=CLOSE, abs=CLOSE)


@given(programs(), st.one_of(st.none(), st.integers(0, 30)))
def test_the_bytes_of_a_capture_are_its_sections(program: Program, capacity: int | None) -> None:
    capture = captured(program, capacity=capacity)
    raw = encode_capture(capture)
    count = STATS_HEADER.unpack_from(raw)[3]
    assert count == len(capture.sections)
    for i in range(count):
        at = STATS_HEADER.size + i * STATS_SECTION.size
        kind, core, size, records, _, offset = STATS_SECTION.unpack_from(raw, at)
        layout = STATS_RECORDS[StatsSection(kind)]
        assert size == layout.itemsize
        found = np.frombuffer(raw, layout, records, offset)
        assert found.tobytes() == capture.sections[StatsSection(kind), core].tobytes()


@given(programs(), st.integers(0, 2**64))
def test_the_same_program_and_seed_leave_the_same_bytes(program: Program, seed: int) -> None:
    assert encode_capture(captured(program, seed=seed)) == encode_capture(captured(program, seed=seed))


@given(programs())
def test_spans_of_a_thread_never_overlap_and_never_add_up_to_more_than_it_ran(program: Program) -> None:
    program = replace(program, stats=replace(program.stats, level=70))
    capture = captured(program)
    for core in range(program.cores):
        threads = capture.sections[StatsSection.THREADS, core]
        ops = capture.sections.get((StatsSection.OPS, core), np.zeros(0, STATS_RECORDS[StatsSection.OPS]))
        for thread in threads:
            own = ops[ops["thread"] == thread["thread"]].astype([(name, np.int64) for name in ops.dtype.names or ()])
            lane = program.commands[
                (program.commands["device"] == 0)
                & (program.commands["core"] == core)
                & (program.commands["group"] == thread["group"])
            ]
            computes = lane["route"] == NO_ROUTE
            begin, end = own["start"] - own["wait"], own["start"] + own["ucycles"] + own["barrier"]
            assert (begin[1:][computes[:-1]] == end[:-1][computes[:-1]]).all()  # each follows where the last one ends
            assert (end <= thread["end"]).all()
            assert own["pcycles"].sum() <= thread["pcycles"]
            assert (own["ucycles"] + own["wait"] + own["barrier"])[computes].sum() <= thread["end"] - thread["start"]


@given(programs(), st.data())
def test_a_damaged_program_is_refused_or_runs_and_never_crashes(program: Program, data: st.DataObject) -> None:
    raw = {
        "commands": bytearray(program.commands.tobytes()),
        "dependency_offsets": bytearray(program.dependency_offsets.tobytes()),
        "dependency_sources": bytearray(program.dependency_sources.tobytes()),
    }
    for _ in range(data.draw(st.integers(1, 4))):
        body = raw[data.draw(st.sampled_from([name for name, body in raw.items() if body]))]
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    layouts = {"commands": COMMAND, "dependency_offsets": np.uint32, "dependency_sources": np.uint32}
    damaged = replace(program, **{name: np.frombuffer(bytes(body), layouts[name]) for name, body in raw.items()})
    with suppress(ProgramError):
        assert simulate(damaged).total_cycles >= 0
        captured(damaged)
