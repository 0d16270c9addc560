"""Laws of physics: each holds for a run that obeys it, and is broken by one that does not, with both numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from opscope.analysis.laws import PHYSICS
from opscope.analysis.run_analysis import RunAnalysis
from opscope.program.bounds import Bounds, Holding, MemoryPeak, Rate, RoutePeak, UnitPeak
from opscope.program.program import OpInfo
from opscope.recording.finding import LawCheck
from opscope.recording.run import Run
from opscope.recording.summary import LaneTotal, Latency, MemoryTotal, RouteTotal, Summary
from opscope.recording.trace import COUNTER, NONE, CounterTrack, Lane, SpanKind
from support.recording.analyse_build import DMA, HVX, Command, Span, check_laws, run_of, total

WRITES, EXECUTION = Lane(0, 0, "HVX DMA DDR write"), Lane(0, 0, "Execution")
OPS = (OpInfo("a", "MatMul", "", ""),)
COMMANDS = (
    Command(0, 0, 1000, tensor="w"),
    Command(0, 1, 500, tensor="y"),
    Command(0, macs=4000, tensor="x", dtype="f16"),
)
BOUNDS = Bounds(
    memories=(MemoryPeak("DDR", per_core=False, capacity_bytes=10_000, rate=Rate(16e9)),),
    routes=(RoutePeak("DDR read", Rate(12e9)), RoutePeak("DDR write", Rate(12e9))),
    units=(UnitPeak("HVX", {"f16": 8.0, "i8": 16.0}),),
    macs=4000,
    streamed_bytes=1000,
)
SUMMARY = Summary(
    Latency(1000, None, None, "simulated"),
    None,
    1,
    lanes=(LaneTotal(0, 0, "HVX", 900, 0, 100, 0),),
    memory=(MemoryTotal("DDR", 0, None, 9_000, None, 10_000, 1000, 500),),
    ops=(total("a", 900, macs=4000),),
    routes=(RouteTotal(0, None, "DDR read", 1, 1000, 100, 1),),
)


def lawful(*, commands: Sequence[Command] = COMMANDS, cycles: int = 1000, devices: int = 1, **changes: object) -> Run:
    """1000 ns at 1 GHz, and a timer of 1 GHz. Within the first 100 ns 1000 bytes are read and 500 written, which is
    14.9 bytes/ns; then 4000 MACs take 900 ns, 500 of which they need."""
    spans = [
        Span(3, 0, 1000, SpanKind.PHASE, name="Core-0-Execution"),
        Span(1, 0, 100, SpanKind.TRANSFER, op=0, command=0, name="copy"),
        Span(2, 50, 100, SpanKind.TRANSFER, op=0, command=1, name="copy"),
        Span(0, 100, 1000, op=0, command=2),
    ]
    known = {name: value for name, value in changes.items() if name != "bounds"}
    summary = replace(SUMMARY, **known)  # type: ignore[arg-type]
    run = run_of(spans, lanes=(HVX, DMA, WRITES, EXECUTION), ops=OPS, commands=commands, summary=summary)
    run.trace.spans["pcycles"][0] = cycles
    run.trace.spans["route"] = [NONE, 0, 1, NONE]
    info = replace(run.info, clocks_hz={"core": 1e9, "stats": 1e9}, devices=devices)
    bounds = changes.get("bounds", BOUNDS)
    assert bounds is None or isinstance(bounds, Bounds)
    return replace(run, info=info, bounds=bounds)


def physical(run: Run) -> dict[str, LawCheck]:
    analysis = RunAnalysis(run)
    return {check.name: check for law in PHYSICS for check in law(analysis)}


def broken(run: Run) -> dict[str, str]:
    return {name: check.detail for name, check in physical(run).items() if check.holds is False}


def test_a_run_within_every_bound_breaks_nothing_and_all_of_them_are_known() -> None:
    assert {name: (check.holds, check.detail) for name, check in physical(lawful()).items()} == {
        "DDR bytes per second ≤ peak": (True, "14.9 and 16.0 GB/s"),
        "latency ≥ bytes of DDR ÷ peak": (True, "1,000 and 94 ns"),
        "DDR read bytes per second ≤ peak": (True, "9.9 and 12.0 GB/s"),
        "DDR write bytes per second ≤ peak": (True, "9.8 and 12.0 GB/s"),
        "HVX MACs per second ≤ peak": (True, "4.0 and 8.0 GMAC/s"),
        "latency ≥ MACs ÷ peak": (True, "1,000 and 499 ns"),
        "busy ≤ wall of every unit": (True, "900 and 1,000 ns, HVX"),
        "DDR peak ≤ capacity": (True, "9,000 and 10,000 bytes"),
        "outer memory reads ≥ constants that do not stay resident": (True, "1,000 and 1,000 bytes"),
        "MACs of ops = MACs of the graph": (True, "4,000 and 4,000"),
    }


def memory_of(rate: float, *, per_core: bool = False) -> Bounds:
    return replace(BOUNDS, memories=(MemoryPeak("DDR", per_core, 10_000, Rate(rate)),))


@pytest.mark.parametrize(
    ("changes", "laws"),
    [
        ({"bounds": memory_of(14e9)}, {"DDR bytes per second ≤ peak": "14.9 and 14.0 GB/s"}),
        (
            {"bounds": replace(BOUNDS, routes=(RoutePeak("DDR read", Rate(9e9)),))},
            {"DDR read bytes per second ≤ peak": "9.9 and 9.0 GB/s"},
        ),
        (
            {"bounds": replace(BOUNDS, routes=(RoutePeak("DDR write", Rate(9e9)),))},
            {"DDR write bytes per second ≤ peak": "9.8 and 9.0 GB/s"},
        ),
        (
            {"bounds": replace(BOUNDS, units=(UnitPeak("HVX", {"f16": 3.0, "i8": 16.0}),))},
            {
                "HVX MACs per second ≤ peak": "4.0 and 3.0 GMAC/s",
                "latency ≥ MACs ÷ peak": "1,000 and 1,332 ns",
            },
        ),
        (
            {"latency": Latency(400, None, None, "simulated")},
            {"latency ≥ MACs ÷ peak": "400 and 499 ns"},
        ),
        (
            {"latency": Latency(90, None, None, "simulated")},
            {"latency ≥ MACs ÷ peak": "90 and 499 ns", "latency ≥ bytes of DDR ÷ peak": "90 and 94 ns"},
        ),
        (
            {"lanes": (LaneTotal(0, 0, "HVX", 1200, 0, 0, 0),)},
            {"busy ≤ wall of every unit": "1,200 and 1,000 ns, HVX"},
        ),
        (
            {"routes": (RouteTotal(0, None, "DDR read", 1, 1000, 1100, 1),)},
            {"busy ≤ wall of every unit": "1,100 and 1,000 ns, DDR read"},
        ),
        (
            {"memory": (MemoryTotal("DDR", 0, None, 10_001, None, 10_000, None, None),)},
            {"DDR peak ≤ capacity": "10,001 and 10,000 bytes"},
        ),
        (
            {"bounds": replace(BOUNDS, holdings=(Holding("DDR", 0, 9_000, 900, 101, 10_000),))},
            {"DDR peak ≤ capacity": "10,001 and 10,000 bytes"},
        ),
        (
            {"bounds": replace(BOUNDS, streamed_bytes=1001)},
            {"outer memory reads ≥ constants that do not stay resident": "1,000 and 1,001 bytes"},
        ),
        (
            {"bounds": replace(BOUNDS, macs=4002)},
            {"MACs of ops = MACs of the graph": "4,000 and 4,002"},
        ),
    ],
)
def test_a_run_beyond_a_bound_breaks_its_law_alone(changes: dict[str, object], laws: dict[str, str]) -> None:
    assert broken(lawful(**changes)) == laws


def test_a_burst_is_found_where_the_mean_of_the_window_is_far_below_the_peak() -> None:
    run = lawful(bounds=memory_of(14e9))
    assert 1500 / 1000 < 14  # bytes/ns over the window
    assert "DDR bytes per second ≤ peak" in broken(run)


def test_reads_and_writes_that_each_keep_to_their_peak_share_that_of_the_memory() -> None:
    found = physical(lawful(bounds=memory_of(12e9)))
    assert found["DDR read bytes per second ≤ peak"].holds
    assert found["DDR write bytes per second ≤ peak"].holds
    assert found["DDR bytes per second ≤ peak"].holds is False


def test_every_device_has_a_memory_of_its_own() -> None:
    apart = (COMMANDS[0], replace(COMMANDS[1], device=1), COMMANDS[2])
    run = lawful(commands=apart, devices=2, bounds=memory_of(9.85e9))
    assert broken(run) == {"DDR bytes per second ≤ peak": "9.9 and 9.8 GB/s on device 0"}
    assert broken(lawful(commands=apart, devices=2, bounds=memory_of(10e9))) == {}


def test_memories_of_cores_are_held_to_their_peak_core_by_core() -> None:
    run = lawful(bounds=memory_of(14e9, per_core=True))
    assert broken(run) == {"DDR bytes per second ≤ peak": "14.9 and 14.0 GB/s on core 0"}


def test_a_peak_in_bytes_per_cycle_is_that_of_the_clock_that_the_run_had() -> None:
    bounds = replace(BOUNDS, memories=(MemoryPeak("DDR", False, 10_000, Rate(8.0, per_cycle=True)),))
    assert broken(lawful(bounds=bounds, cycles=2000)) == {}
    assert broken(lawful(bounds=bounds)) == {"DDR bytes per second ≤ peak": "14.9 and 8.0 GB/s"}


def test_the_peak_of_a_unit_is_that_of_the_data_type_its_commands_read() -> None:
    bounds = replace(BOUNDS, units=(UnitPeak("HVX", {"f16": 3.0, "i8": 16.0, "*": 1.0}),))
    for dtype, holds in (("f16", False), ("i8", True), ("f32", False)):
        commands = (*COMMANDS[:2], replace(COMMANDS[2], dtype=dtype))
        assert physical(lawful(bounds=bounds, commands=commands))["HVX MACs per second ≤ peak"].holds is holds


def test_macs_of_a_clock_that_ran_faster_are_counted_in_cycles() -> None:
    bounds = replace(BOUNDS, units=(UnitPeak("HVX", {"f16": 3.9}),))
    assert "HVX MACs per second ≤ peak" in broken(lawful(bounds=bounds))
    assert broken(lawful(bounds=bounds, cycles=1030)) == {}


def test_macs_that_cores_do_again_are_no_surplus() -> None:
    assert broken(lawful(bounds=replace(BOUNDS, macs=1000, repeated_macs=3000))) == {}
    found = physical(lawful(bounds=replace(BOUNDS, macs=1000, repeated_macs=2000)))
    check = found["MACs of ops = MACs of the graph"]
    assert (check.holds, check.detail) == (
        False,
        "4,000 and 3,000, 2,000 of them done again by further cores or slices of rows",
    )


def test_what_the_graph_asks_for_is_not_held_against_a_run_that_was_recorded_in_part() -> None:
    run = lawful(commands=(*COMMANDS, Command(0, 0, 1000)), bounds=replace(BOUNDS, streamed_bytes=2000, macs=5000))
    for name in ("outer memory reads ≥ constants that do not stay resident", "MACs of ops = MACs of the graph"):
        check = physical(run)[name]
        assert (check.holds, check.detail) == (None, "1 of 4 commands were not recorded")


def test_a_run_that_does_not_tell_its_bounds_is_held_to_none_and_says_so() -> None:
    found = physical(lawful(bounds=None))
    assert not broken(lawful(bounds=None))
    assert [name for name, check in found.items() if check.holds is None] == [
        "bytes per second ≤ peak",
        "latency ≥ bytes ÷ peak",
        "MACs per second ≤ peak",
        "latency ≥ MACs ÷ peak",
        "outer memory reads ≥ constants that do not stay resident",
        "MACs of ops = MACs of the graph",
    ]
    assert found["bytes per second ≤ peak"].detail == "the run does not tell the peaks of what it ran on"


def test_physical_laws_are_among_those_that_every_run_is_held_to() -> None:
    assert set(physical(lawful())) <= {check.name for check in check_laws(lawful())}


def test_bytes_of_a_memory_take_their_time_at_its_peak_where_no_route_is_known() -> None:
    """As of a compiler that tells bytes and no routes: 1.03 GB in 14.1 ms are more than 51 GB/s."""

    def found(read: int | None) -> dict[str, LawCheck]:
        memory = (MemoryTotal("DDR", 0, None, None, None, None, read, 0),)
        summary = replace(SUMMARY, latency=Latency(14_100_000, None, None, "vendor-model"), memory=memory)
        bounds = Bounds(memories=(MemoryPeak("DDR", per_core=False, capacity_bytes=None, rate=Rate(51e9)),))
        return physical(replace(run_of([Span(0, 0, 1000, op=0)], ops=OPS, summary=summary), bounds=bounds))

    law = "latency ≥ bytes of DDR ÷ peak"
    assert found(700_000_000)[law].holds
    assert found(1_030_000_000)[law].holds is False
    assert found(1_030_000_000)[law].detail == "14,100,000 and 20,196,078 ns, for 1,030,000,000 bytes at 51.0 GB/s"
    assert found(None)["latency ≥ bytes ÷ peak"].holds is None


def with_counters(run: Run, *rates: tuple[str, float]) -> Run:
    """Bytes per second of routes, in GB/s, from the beginning to the end."""
    tracks = tuple(CounterTrack(0, NONE, f"{route} bandwidth", "GB/s") for route, _ in rates)
    samples = np.zeros(2 * len(rates), COUNTER)
    samples["counter"] = np.repeat(np.arange(len(rates)), 2)
    samples["time_ns"] = [0, 1000] * len(rates)
    samples["value"] = [value for _, rate in rates for value in (rate, 0.0)]
    return replace(run, trace=replace(run.trace, counters=tracks, samples=samples))


def test_reads_and_writes_over_time_are_together_within_the_peak_of_their_memory() -> None:
    law = "DDR bandwidth over time ≤ peak"
    assert law not in physical(lawful())
    held = physical(with_counters(lawful(), ("DDR read", 10.0), ("DDR write", 6.0)))[law]
    assert (held.holds, held.detail) == (True, "16.0 and 16.0 GB/s")
    assert broken(with_counters(lawful(), ("DDR read", 10.0), ("DDR write", 6.5))) == {law: "16.5 and 16.0 GB/s"}
