"""Each rule on the least run that sets it off, and on one that does not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from opscope.program.bounds import Bounds, UnitPeak
from opscope.program.program import OpCycles, OpInfo
from opscope.recording.finding import UPPER_BOUND
from opscope.recording.host_times import stage_of
from opscope.recording.summary import Latency, MemoryTotal, Placement, Summary
from opscope.recording.trace import NONE, Lane, SpanKind
from support.recording.analyse_build import (
    DMA,
    HMX,
    HOST,
    HVX,
    A,
    B,
    C,
    Command,
    Span,
    analyse,
    copy,
    finding,
    ids,
    run_of,
    total,
)

TRANSFER, OP, WAIT, PHASE = SpanKind.TRANSFER, SpanKind.OP, SpanKind.WAIT, SpanKind.PHASE


def test_the_slowest_op_is_named_with_what_it_would_gain() -> None:
    run = run_of([Span(0, 0, 80, op=0), Span(0, 80, 100, op=1)], ops=(A, C))
    first = analyse(run).findings[0]
    assert (first.id, first.ops, first.cost_ns, first.share) == ("slow-op", ("a",), 80, 0.8)
    assert first.title == "a takes 80.0% of the critical path"
    assert first.predicted is not None
    assert (first.predicted.gain_ns, first.predicted.latency_ns, first.predicted.basis) == (80, 20, UPPER_BOUND)
    assert first.spans == (0,)


def test_the_same_op_of_every_layer_is_one_finding() -> None:
    ops = [OpInfo(f"/layer.{n}/MatMul", "MatMul", "", "") for n in range(4)]
    run = run_of([Span(0, 10 * n, 10 * n + 10, op=n) for n in range(4)], ops=ops)
    first = analyse(run).findings[0]
    assert first.title == "/layer.*/MatMul takes 100.0% of the critical path"
    assert len(first.ops) == 4


def test_removing_an_op_gains_less_than_it_takes_where_other_work_is_nearly_as_long() -> None:
    spans = [Span(0, 0, 90, op=0, command=0), Span(1, 0, 80, op=1, command=1), Span(0, 90, 100, op=2, command=2)]
    run = run_of(spans, ops=(A, C, C), edges=[(0, 2), (1, 2)])
    found = next(f for f in analyse(run).findings if f.ops == ("a",))
    assert found.cost_ns == 90
    assert found.predicted is not None
    assert found.predicted.gain_ns == 10


def test_work_that_others_are_as_long_as_is_no_finding() -> None:
    run = run_of([Span(0, 0, 100, op=0), Span(1, 0, 100, op=2)], ops=(A, B, C))
    assert "slow-op" not in ids(run)  # without it the run would take as long
    assert "slow-op" in ids(run_of([Span(0, 0, 100, op=0), Span(1, 0, 60, op=2)], ops=(A, B, C)))


def test_layout_changes_are_found_by_the_type_of_the_op_and_by_the_name_of_the_command() -> None:
    spans = [Span(0, 0, 50, op=0), Span(0, 50, 70, op=1), Span(0, 70, 100, op=0, name="converttod32")]
    found = finding(run_of(spans, ops=(A, B)), "layout")
    assert (found.cost_ns, found.share) == (50, 0.5)
    assert "layout" not in ids(run_of(spans[:1], ops=(A,)))


def test_the_launch_of_a_conversion_is_no_part_of_what_conversions_take() -> None:
    spans = [Span(0, 0, 50, op=0, command=0), Span(0, 50, 90, op=1, command=1)]
    run = run_of(spans, ops=(A, B), commands=[Command(0), Command(1)])
    bounds = Bounds(units=(UnitPeak("HVX", {"*": 1.0}, launch_cycles=30),))
    run = replace(run, info=replace(run.info, clocks_hz={"core": 1e9}), bounds=bounds)
    layout, launch = finding(run, "layout"), finding(run, "launch")
    assert (layout.cost_ns, launch.cost_ns) == (10, 60)
    assert layout.title == "conversions and copies take 11.1% of the critical path"
    assert layout.detail.endswith("compute nothing; starting them takes another 30 ns")
    assert layout.predicted is not None
    assert layout.predicted.gain_ns == 40  # without the op its launch goes as well


def test_layout_of_a_run_without_a_timeline_is_of_the_time_of_ops() -> None:
    run = run_of(ops=(A, B), totals=[total("a", 60, type="MatMul"), total("b", 40, type="Transpose")])
    found = finding(run, "layout")
    assert (found.cost_ns, found.share, found.predicted) == (40, 0.4, None)


def test_a_transfer_that_nothing_hides_costs_its_time_on_the_path() -> None:
    commands = [Command(0, 0, 4096), Command(0)]
    spans = [*copy(0, 60, 0), Span(0, 60, 100, op=0, command=1)]
    found = finding(run_of(spans, ops=(A,), edges=[(0, 1)], commands=commands), "memory-transfers")
    assert (found.cost_ns, found.bytes) == (59, 4096)
    assert found.predicted is not None
    assert found.predicted.gain_ns == 59
    hidden = [*copy(0, 60, 0), Span(0, 0, 100, op=0, command=1)]
    assert "memory-transfers" not in ids(run_of(hidden, ops=(A,), commands=commands))


def test_a_tensor_that_every_core_reads_for_itself_is_read_again() -> None:
    commands = [Command(0, 0, 128, tensor="weight", shape=(8, 8)) for _ in range(4)]
    spans = [span for n in range(4) for span in copy(10 * n, 10 * n + 10, n)]
    found = finding(run_of(spans, ops=(A,), commands=commands), "read-again")
    assert found.bytes == 3 * 128
    assert "weight (128 B) is read 4.0 times" in found.detail
    parts = [replace(command, moved=32) for command in commands]
    assert "read-again" not in ids(run_of(spans, ops=(A,), commands=parts))


def test_a_tensor_whose_shape_makes_no_sense_has_no_size_and_is_not_read_again() -> None:
    commands = [Command(0, 0, 128, tensor="weight", shape=(10**18,) * 30) for _ in range(4)]
    spans = [span for n in range(4) for span in copy(10 * n, 10 * n + 10, n)]
    assert "read-again" not in ids(run_of(spans, ops=(A,), commands=commands))


def test_devices_have_a_memory_each_and_read_a_tensor_once_each() -> None:
    commands = [Command(0, 0, 128, tensor="weight", shape=(8, 8), device=n) for n in range(2)]
    spans = [span for n in range(2) for span in copy(10 * n, 10 * n + 10, n)]
    run = run_of(spans, ops=(A,), commands=commands)
    assert "read-again" not in ids(replace(run, info=replace(run.info, devices=2)))


def test_a_product_that_every_core_computes_whole_is_computed_again() -> None:
    product = OpInfo("a", "MatMul", "matmul", "")
    spans = [Span(0, 0, 80, command=0), Span(1, 0, 80, command=1), Span(0, 80, 100, command=2)]
    commands = [Command(0, moved=128, macs=500, tensor="y", shape=(8, 8)) for _ in range(2)] + [Command(0, macs=1000)]
    found = finding(run_of(spans, ops=(product,), edges=[(0, 2), (1, 2)], commands=commands), "computed-again")
    assert found.title == "500 of 2,000 MACs were computed on another core too"
    assert found.detail == "1 product run whole on several cores, a on 2"
    assert found.cost_ns == 40
    assert found.predicted is not None
    assert found.predicted.gain_ns == 40
    parts = [replace(command, moved=64) for command in commands]
    assert "computed-again" not in ids(run_of(spans, ops=(product,), commands=parts))


def test_what_is_written_out_and_read_back_is_a_spill() -> None:
    commands = [Command(0, way, 64, tensor="act", shape=(4, 8)) for way in (1, 0)]
    found = finding(run_of([*copy(0, 20, 0), *copy(20, 40, 1)], ops=(A,), commands=commands), "spill")
    assert found.bytes == 128
    assert found.title == "64 B moved out of local memory and 64 B read back"


def test_local_memory_that_stays_empty_beside_outer_operands_is_named() -> None:
    summary = Summary(
        Latency(100, None, None, "simulated"),
        None,
        1,
        memory=(MemoryTotal("SRAM", 0, 0, 100, 50.0, 1000, None, None),),
        placement=(Placement("conv", "HMX", 1, 10, 9, 90, "DDR"),),
    )
    run = run_of([Span(0, 0, 100)], summary=summary)
    assert finding(run, "residency").title.startswith("SRAM is at most 10.0% full, and 90.0% of the work reads")
    full = replace(summary, memory=(replace(summary.memory[0], peak_bytes=900),))
    assert "residency" not in ids(replace(run, summary=full))


def test_transfers_that_never_overlap_are_serial_and_two_at_once_are_not() -> None:
    commands = [Command(0, 0, 64) for _ in range(8)]
    serial = [span for n in range(8) for span in copy(10 * n, 10 * n + 10, n)]
    assert finding(run_of(serial, commands=commands, ops=(A,)), "serial-transfers").title == (
        "8 transfers over DDR read come one after the other"
    )
    lanes = (HVX, HMX, DMA, Lane(0, 0, "HVX DMA DDR read 2"))
    at_once = [span for n in range(8) for span in copy(5 * n, 5 * n + 10, n, lane=2 + n % 2)]
    assert "serial-transfers" not in ids(run_of(at_once, commands=commands, ops=(A,), lanes=lanes))


def test_an_engine_that_waits_names_whom_it_waits_for() -> None:
    spans = [Span(0, 0, 40, op=0, command=0), Span(1, 40, 100, op=1, command=1)]
    found = finding(run_of(spans, ops=(A, C), edges=[(0, 1)]), "wait")
    assert found.title == "HMX waits 40.0% of the time for HVX"
    assert (found.ops, found.cost_ns) == (("a",), 40)


def test_an_engine_that_waits_for_a_busier_one_is_no_finding() -> None:
    spans = [Span(0, 0, 60, op=0, command=0), Span(1, 60, 100, op=1, command=1)]
    run = run_of(spans, ops=(A, C), edges=[(0, 1)])
    assert "wait" not in ids(run)
    assert next((row.engine, row.cause) for row in analyse(run).waits) == ("HMX", "HVX")


def test_time_that_nothing_explains_is_a_gap_with_what_follows_it() -> None:
    spans = [Span(0, 0, 10_000, op=0), Span(0, 90_000, 100_000, op=1)]
    found = finding(run_of(spans, ops=(A, C)), "gap")
    assert (found.cost_ns, found.ops) == (80_000, ("c",))
    assert "the longest, 80 us, lies before c, after lane HVX was busy" in found.detail


def test_a_short_gap_is_what_starting_work_takes() -> None:
    spans = [Span(0, 1000 * n, 1000 * n + 200, op=0) for n in range(10)]
    run = run_of(spans, ops=(A,))
    assert finding(run, "launch").cost_ns == 9 * 800
    assert finding(run, "small-ops").cost_ns == 9 * 800


def test_an_engine_with_little_to_do_says_what_its_longest_rest_ends_with() -> None:
    spans = [Span(0, 0, 10_000, op=0), Span(0, 90_000, 100_000, op=1)]
    found = finding(run_of(spans, ops=(A, C)), "low-utilization")
    assert found.title == "HVX works 20.0% of the time, and no engine more"
    assert "80 us before c" in found.detail


def test_uneven_work_is_found_by_work_and_not_by_wall_clock() -> None:
    lanes = (HVX, Lane(0, 1, "HVX"))
    spans = [Span(0, 0, 100, op=0), Span(1, 0, 30, op=0), Span(1, 85, 95, op=0)]
    found = finding(run_of(spans, lanes=lanes, ops=(A,)), "uneven-cores")
    assert found.title == "core 0 has 1.43 × the work of the mean core"
    assert found.cost_ns == 30


def test_stages_of_the_host_count_by_whose_they_are() -> None:
    host = [stage_of("enqueue", 10), stage_of("preprocess", 20), stage_of("driver", 5), stage_of("device", 65)]
    found = finding(run_of([Span(0, 0, 65)], host=host), "host-stages")
    assert found.title == "35.0% of what the application waits is not the device"
    assert found.detail == "application 10 ns, runtime 20 ns, driver 5 ns, device 65 ns"


def test_a_device_that_waits_for_launches_is_host_bound() -> None:
    lanes = (HVX, HOST)
    spans = [
        span
        for n in range(4)
        for span in (
            Span(1, 100 * n, 100 * n + 90, SpanKind.HOST, command=2 * n, name="launch", inference=NONE),
            Span(0, 100 * n + 90, 100 * n + 95, op=0, command=2 * n + 1, inference=NONE),
        )
    ]
    run = run_of(spans, lanes=lanes, ops=(A,), edges=[(2 * n, 2 * n + 1) for n in range(4)])
    found = analyse(run)
    assert found.bound == "host"
    assert finding(run, "host-bound").detail == (
        "4 calls on the host; the device works 20 ns of 395 ns; 30 ns lie between calls that were recorded"
    )
    assert "wait" not in ids(run)  # the same time, and the finding about the host says it better


def test_a_call_that_waits_for_the_device_is_the_devices_time() -> None:
    lanes = (HVX, HOST)
    spans = [
        Span(1, 0, 10, SpanKind.HOST, command=0, name="launch", inference=NONE),
        Span(0, 10, 80, op=0, command=1, inference=NONE),
        Span(1, 10, 90, SpanKind.HOST, command=2, name="deviceSynchronize", inference=NONE),
    ]
    shares = {
        share.cause: share.ns for share in analyse(run_of(spans, lanes=lanes, ops=(A,), edges=[(0, 1)])).breakdown
    }
    assert shares == {"compute": 70, "host": 10, "wait": 10}


def test_nested_calls_count_for_the_innermost() -> None:
    lanes = (HOST, replace(HOST, name="thread 2"))
    ops = (OpInfo("outer", "", "", ""), OpInfo("inner", "", "", ""))
    spans = [Span(0, 0, 100, SpanKind.HOST, op=0, name="o"), Span(1, 20, 90, SpanKind.HOST, op=1, name="i")]
    slack = {row.op: row.path_ns for row in analyse(run_of(spans, lanes=lanes, ops=ops)).slack}
    assert slack == {"outer": 30, "inner": 70}


def test_stages_of_the_host_stand_before_and_after_the_device_on_the_path() -> None:
    lanes = (HVX, Lane(0, 0, "Execution"), Lane(NONE, NONE, "Application"), Lane(NONE, NONE, "Runtime"))
    spans = [
        Span(2, 0, 100, SpanKind.HOST, name="inference-Inf-0"),
        Span(3, 0, 20, SpanKind.HOST, name="preprocess-Inf-0"),
        Span(3, 20, 25, SpanKind.HOST, name="input transfer-Inf-0"),
        Span(3, 25, 80, SpanKind.HOST, name="device-Inf-0"),
        Span(1, 25, 80, PHASE, name="Core-0-Execution"),
        Span(0, 25, 80, op=0, command=0),
        Span(3, 80, 100, SpanKind.HOST, name="postprocess-Inf-0"),
    ]
    found = analyse(run_of(spans, lanes=lanes, ops=(A,)))
    assert {share.cause: share.ns for share in found.breakdown} == {"compute": 55, "host": 40, "host-link": 5}
    assert found.wall_ns == 100


def staged(*device: Span, begin: int, end: int) -> list[Span]:
    """A device from `begin` to `end` under a host that takes 20 ns before it, 5 for inputs, and 20 after it."""
    return [
        Span(2, begin - 25, end + 20, SpanKind.HOST, name="inference-Inf-0"),
        Span(3, begin - 25, begin - 5, SpanKind.HOST, name="preprocess-Inf-0"),
        Span(3, begin - 5, begin, SpanKind.HOST, name="input transfer-Inf-0"),
        Span(3, begin, end, SpanKind.HOST, name="device-Inf-0"),
        Span(1, begin, end, PHASE, name="Core-0-Execution"),
        *device,
        Span(3, end, end + 20, SpanKind.HOST, name="postprocess-Inf-0"),
    ]


STAGED_LANES = (HVX, Lane(0, 0, "Execution"), Lane(NONE, NONE, "Application"), Lane(NONE, NONE, "Runtime"))


def test_a_mark_without_length_at_the_start_of_the_device_follows_the_stage_before_it() -> None:
    device = (Span(0, 25, 25, command=0, name="aicinputsemaphoreinc"), Span(0, 25, 80, op=0, command=1))
    run = run_of(staged(*device, begin=25, end=80), lanes=STAGED_LANES, ops=(A,), edges=[(0, 1)])
    found = analyse(run)
    assert {share.cause: share.ns for share in found.breakdown} == {"compute": 55, "host": 40, "host-link": 5}
    assert "gap" not in {cause.id for cause in found.findings}
    assert found.gaps[0].ended_by == "the end of input transfer-Inf-0"


def test_stages_cost_what_they_take_in_the_inference_that_is_looked_at() -> None:
    medians = [stage_of("preprocess", 10), stage_of("device", 55), stage_of("postprocess", 10)]
    run = run_of(staged(Span(0, 25, 80, op=0), begin=25, end=80), lanes=STAGED_LANES, ops=(A,), host=medians)
    found = finding(run, "host-stages")
    assert (found.cost_ns, found.share) == (45, 0.45)
    assert found.detail == "runtime 40 ns, driver 5 ns, device 55 ns"
    assert found.predicted is not None
    assert (found.predicted.gain_ns, found.predicted.latency_ns) == (45, 55)
    assert "link-transfers" not in ids(run)  # the way from the host is in the stages already


def test_shares_of_conversions_and_of_slow_ops_are_of_the_same_whole() -> None:
    totals = [total("a", 60, type="MatMul"), total("b", 40, type="Transpose"), total("w", 900, type="sync")]
    run = run_of(ops=(A, B, OpInfo("w", "sync", "", "")), totals=totals)
    assert finding(run, "layout").share == 0.4
    assert finding(run, "slow-op").share == 0.6


def test_local_memory_is_no_matter_where_transfers_are_hidden() -> None:
    commands = [Command(0, 0, 4096), Command(0)]
    spans = [*copy(0, 60, 0), Span(0, 0, 100, op=0, command=1)]
    run = run_of(spans, ops=(A,), commands=commands)
    summary = replace(
        run.summary,
        memory=(MemoryTotal("SRAM", 0, 0, 100, 50.0, 1000, None, None),),
        placement=(Placement("conv", "HMX", 1, 10, 9, 90, "DDR"),),
    )
    assert "residency" not in ids(replace(run, summary=summary))


@pytest.mark.parametrize(
    ("limit", "until", "rate", "action"),
    [
        (50e9, 90, "45.5 of 50 GB/s, busy 90.0% of the device's time", "the memory gives nearly all it can"),
        (500e9, 90, "45.5 of 500 GB/s, busy 90.0% of the device's time", "fetch earlier"),
        (80e9, 60, "68.3 of 80 GB/s, busy 60.0% of the device's time", "fetch earlier"),  # it has time left
        (45e9, 90, "45.5 GB/s, all it can, busy 90.0% of the device's time", "the memory gives nearly all it can"),
    ],
)
def test_transfers_are_held_against_the_bandwidth_of_the_memory(
    limit: float, until: int, rate: str, action: str
) -> None:
    commands = [Command(0, 0, 4096), Command(0)]
    spans = [
        Span(0, 0, 0, op=0, command=0),
        Span(2, 0, until, SpanKind.TRANSFER, 0, 0, name="DDR read"),
        Span(0, until, 100, op=0, command=1),
    ]
    run = run_of(spans, ops=(A,), edges=[(0, 1)], commands=commands, limits={"outer_bytes_per_s": limit})
    found = finding(run, "memory-transfers")
    assert found.detail.endswith(f"brings 4.00 KB at {rate}")
    assert found.action.startswith(action)


def test_ops_on_the_cpu_say_why() -> None:
    totals = [
        total("a", 10, type="MatMul", engine="NPU"),
        total("b", 30, type="NonMaxSuppression", engine="CPU", reason="not supported"),
    ]
    run = run_of(ops=(A, B), totals=totals)
    found = finding(run, "cpu-fallback")
    assert (found.title, found.cost_ns, found.detail) == (
        "1 op of 2 run on the CPU",
        30,
        "NonMaxSuppression: not supported",
    )
    assert analyse(run).bound == "host"
    fused = [total("a", 10, type="MatMul", engine="CPU"), total("b")]  # what was fused runs nowhere of its own
    assert "cpu-fallback" not in ids(run_of(ops=(A, B), totals=fused))
    assert analyse(run_of(ops=(A, B), totals=fused)).bound == "compute"


def test_what_ops_far_above_their_bound_take_longer_for_is_said() -> None:
    run = run_of(
        [Span(0, 0, 1000, op=0, command=0)],
        ops=(A,),
        commands=[Command(0, macs=100)],
        limits={"macs_per_s": 1e9, "outer_bytes_per_s": 1e9},
        totals=[total("a", 1000, macs=100, moved_bytes=0)],
    )
    bounds = Bounds(units=(UnitPeak("HVX", {"*": 1.0}, launch_cycles=600),))
    found = finding(replace(run, info=replace(run.info, clocks_hz={"core": 1e9}), bounds=bounds), "far-from-bound")
    assert found.detail.endswith("; all of them on the critical path: launch 600 ns, compute 400 ns")
    assert found.action is not None
    assert found.action.startswith("fuse them with their neighbours")


def test_ops_whose_bytes_come_slowly_are_not_told_to_use_their_engine_better() -> None:
    run = run_of(
        [Span(2, 0, 1000, TRANSFER, 0, 0, name="DDR read")],
        ops=(A,),
        commands=[Command(0, route=0, moved=100), Command(0, macs=1)],
        limits={"macs_per_s": 1e9, "outer_bytes_per_s": 1e9},
        totals=[total("a", 1000, macs=1, moved_bytes=100)],
    )
    found = finding(run, "far-from-bound")
    assert found.action is not None
    assert found.action.startswith("their bytes come more slowly than the memory could send them")


def test_an_op_far_above_its_lower_bound_is_named_with_the_bound() -> None:
    limits = {"macs_per_s": 1e9, "outer_bytes_per_s": 1e9}
    run = run_of(
        [Span(0, 0, 1000, op=0, command=0)],
        ops=(A,),
        commands=[Command(0, macs=100)],
        limits=limits,
        totals=[total("a", 1000, macs=100, moved_bytes=0)],
    )
    found = finding(run, "far-from-bound")
    assert found.detail == "a takes 1 us, its MACs and bytes alone 100 ns"
    assert found.action is not None
    assert found.action.startswith("engines work below their peak: larger tiles")
    assert found.cost_ns == 900
    assert found.predicted is not None
    assert found.predicted.gain_ns == 900
    row = analyse(run).roofline[0]
    assert (row.bound_ns, row.macs_per_s, row.attainable_macs_per_s) == (100, 1e8, 1e9)


def test_the_roofline_is_lower_where_bytes_take_longer() -> None:
    limits = {"macs_per_s": 1e9, "outer_bytes_per_s": 1e6}
    commands = [Command(0, macs=100), Command(0, route=0, moved=10)]
    run = run_of(
        [Span(0, 0, 50_000, op=0, command=0)],
        ops=(A,),
        commands=commands,
        limits=limits,
        totals=[total("a", 50_000, macs=100, moved_bytes=10)],
    )
    row = analyse(run).roofline[0]
    assert (row.outer_bytes, row.intensity, row.attainable_macs_per_s, row.bound_ns) == (10, 10.0, 1e7, 10_000)


def test_without_times_the_verdict_is_unknown_and_says_so() -> None:
    found = analyse(run_of(ops=(A,), totals=[total("a")]))
    assert (found.bound, found.breakdown, found.wall_ns) == ("unknown", (), None)
    assert found.coverage is not None
    assert (found.coverage.share, found.coverage.ops_without_time) == (None, ("a",))
    assert "no latency: shares are of what is known" in found.notes


@pytest.mark.parametrize(
    ("latency", "shares"), [(None, {"compute": 60, "wait": 40}), (50, {"compute": 30, "wait": 20})]
)
def test_a_run_without_a_timeline_divides_its_latency_as_its_ops_do(
    latency: int | None, shares: dict[str, int]
) -> None:
    totals = [total("a", 60, type="MatMul"), total("s", 40, type="sync")]
    found = analyse(run_of(ops=(A, C), totals=totals, latency=latency))
    assert {share.cause: share.ns for share in found.breakdown} == shares


def test_commands_without_a_span_are_lost_records() -> None:
    run = run_of([Span(0, 0, 10, op=0, command=0)], ops=(A,), commands=[Command(), Command(), Command()])
    assert analyse(run).coverage is not None
    assert analyse(run).coverage.lost_records == 2  # type: ignore[union-attr]


def test_the_inference_of_median_latency_is_the_one_that_is_looked_at() -> None:
    spans = [Span(0, 100 * n, 100 * n + length, op=0, inference=n) for n, length in enumerate((10, 50, 30))]
    assert analyse(run_of(spans, ops=(A,))).wall_ns == 30


def test_an_op_whose_bytes_take_longer_is_memory_bound_where_transfers_are_not_shown() -> None:
    limits = {"macs_per_s": 1e9, "outer_bytes_per_s": 1e9}
    totals = [total("a", 60, macs=10, moved_bytes=50), total("c", 40, macs=40, moved_bytes=10)]
    spans = [Span(0, 0, 60, op=0), Span(0, 60, 100, op=1)]
    run = run_of(spans, ops=(A, C), totals=totals, limits=limits)
    assert {share.cause: share.ns for share in analyse(run).breakdown} == {"memory": 60, "compute": 40}
    shown = [*spans, Span(2, 0, 5, TRANSFER, command=9)]
    assert {share.cause for share in analyse(run_of(shown, ops=(A, C), totals=totals, limits=limits)).breakdown} == {
        "compute"
    }


def test_an_op_without_a_type_counts_as_its_name_says() -> None:
    ops = (OpInfo("conv1 + relu1", "", "", ""), OpInfo("Reformatting CopyNode for conv1", "", "", ""))
    run = run_of(ops=ops, totals=[total(ops[0].name, 80, type=""), total(ops[1].name, 20, type="")])
    assert {share.cause: share.share for share in analyse(run).breakdown} == {"compute": 0.8, "layout": 0.2}
    assert [found.id for found in analyse(run).findings] == ["slow-op", "layout"]  # the copy is told once
    assert finding(run, "slow-op").detail == "1 op: 80 ns, mostly compute"


@pytest.mark.parametrize("timeline", [True, False])
def test_work_that_lists_more_cycles_of_a_memory_than_of_its_engine_is_memory_bound(timeline: bool) -> None:
    spans = [Span(0, 0, 60, op=0, command=0), Span(0, 60, 100, op=1, command=1)] if timeline else []
    totals = [total("a", 60, type="MatMul"), total("c", 40, type="Softmax")]
    run = run_of(spans, ops=(A, C), totals=totals, commands=[Command(0), Command(1)], latency=100)
    cycles = (OpCycles(0, "NPU", False, 238), OpCycles(0, "flash", True, 1040), OpCycles(1, "NPU", False, 900))
    run = replace(run, commands=replace(run.commands, op_cycles=cycles))
    assert {share.cause: share.ns for share in analyse(run).breakdown} == {"memory": 60, "compute": 40}
    assert finding(run, "slow-op").detail.endswith("60 ns, mostly memory")


STAGES = [stage_of("enqueue", 10), stage_of("input transfer", 30), stage_of("device", 60)]


def test_where_only_stages_are_known_the_device_stays_unknown_and_parts_add_up_to_what_the_application_sees() -> None:
    found = analyse(run_of(latency=50, host=STAGES))
    assert {share.cause: share.ns for share in found.breakdown} == {"unknown": 60, "host-link": 30, "host": 10}
    assert found.wall_ns == 100


def test_where_ops_have_times_too_the_stage_of_the_device_is_divided_among_them() -> None:
    found = analyse(run_of(latency=60, host=STAGES, totals=[total("conv", 30), total("transpose", 10)]))
    parts = {share.cause: share.ns for share in found.breakdown}
    assert parts == {"compute": 30, "host-link": 30, "unknown": 20, "layout": 10, "host": 10}
