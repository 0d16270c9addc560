"""What a finding says is so, and what it advises can be done on what the run was made on; each cause is told once."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opscope.program.program import NO_ROUTE, OpCycles, OpInfo
from opscope.recording.classify import with_meaning
from opscope.recording.host_times import stage_of
from opscope.recording.run import Run
from opscope.recording.summary import MemoryTotal, Placement
from opscope.recording.trace import NONE, Lane, SpanKind
from support.recording.analyse_build import HMX, HVX, A, C, Command, Span, analyse, copy, finding, ids, run_of, total


def _with_types(run: Run, *types: str) -> Run:
    rows = run.commands.rows.copy()
    rows["macs"] = 1
    return with_meaning(replace(run, commands=replace(run.commands, rows=rows, types=types)))


@pytest.mark.parametrize(
    ("types", "cores", "action"),
    [
        ("float16", 1, "a cheaper form of the op, or a smaller data type"),
        ("i8, index32", 1, "a cheaper form of the op"),
        ("", 1, "a cheaper form of the op"),
        ("i8", 4, "a cheaper form of the op, or more cores for it: it runs on 1 of 4"),
    ],
)
def test_advice_on_a_slow_op_names_what_the_run_leaves_open(types: str, cores: int, action: str) -> None:
    run = _with_types(run_of([Span(0, 0, 100, op=0, command=0)], ops=(A,), commands=[Command(0)]), types)
    run = replace(run, info=replace(run.info, cores=cores))
    assert finding(run, "slow-op").action == action
    assert ("commands" in run.info.classified) is (types == "float16")
    shown = replace(run, commands=replace(run.commands, types=("float32",)))  # from here on the word is for people
    assert finding(shown, "slow-op").action == action


def test_a_block_on_two_engines_names_both() -> None:
    ops = tuple(OpInfo(f"/layer.{n}/MatMul", "MatMul", "matmul", "") for n in range(2))
    spans = [Span(0, 0, 60, op=0), Span(1, 60, 100, op=1)]
    totals = [total(ops[0].name, 60, engine="HVX"), total(ops[1].name, 40, engine="HMX")]
    assert finding(run_of(spans, ops=ops, totals=totals), "slow-op").detail == (
        "2 MatMul ops on HVX and HMX: 100 ns, mostly compute"
    )


def test_rows_of_several_cores_are_one_finding() -> None:
    ops = tuple(OpInfo(f"c{core} softmax HVX", "softmax", "", "") for core in range(2))
    found = analyse(run_of(ops=ops, totals=[total(op.name, 50) for op in ops])).findings
    assert [(cause.title, cause.cost_ns) for cause in found] == [
        ("c* softmax HVX takes 100.0% of the time of all ops", 100)
    ]


def test_transfers_that_saturate_the_memory_are_not_serial() -> None:
    commands = [Command(0, 0, 64) for _ in range(8)]
    serial = [span for n in range(8) for span in copy(10 * n, 10 * n + 10, n)]
    run = run_of(serial, commands=commands, ops=(A,), limits={"outer_bytes_per_s": 7e9})
    assert "serial-transfers" not in ids(run)
    assert "serial-transfers" in ids(replace(run, info=replace(run.info, limits={"outer_bytes_per_s": 70e9})))


def test_an_op_that_is_nothing_but_a_transfer_is_told_of_once() -> None:
    lanes = (HVX, HMX, Lane(0, 0, "DMA In"))
    run = run_of([Span(2, 0, 50, op=0), Span(0, 50, 100, op=1)], lanes=lanes, ops=(A, C))
    assert [found.ops for found in analyse(run).findings if found.id == "slow-op"] == [("c",)]
    assert finding(run, "memory-transfers").ops == ("a",)


def test_work_that_waits_for_bytes_is_not_called_a_transfer() -> None:
    run = run_of([Span(0, 0, 100, op=0, command=0)], ops=(A,), commands=[Command(0)])
    table = replace(run.commands, routes=(), op_cycles=(OpCycles(0, "NPU", False, 10), OpCycles(0, "flash", True, 90)))
    rows = run.commands.rows.copy()
    rows["route"] = NO_ROUTE
    found = finding(replace(run, commands=replace(table, rows=rows)), "memory-transfers")
    assert found.title == "ops limited by transfers to and from outer memory take 100.0% of the critical path"
    assert found.detail == "1 op whose bytes take longer than its MACs"


def test_writing_the_recording_out_is_no_launch_that_could_be_saved() -> None:
    spans = [Span(0, 0, 50, op=0), Span(0, 50, 100, name="aicendcyclestats")]
    run = run_of(spans, ops=(A,))
    assert analyse(run).breakdown[1].cause == "launch"
    assert "launch" not in ids(run)


def test_a_long_gap_is_not_what_starting_a_short_op_takes() -> None:
    spans = [Span(0, 0, 50_000, op=0), Span(0, 90_000, 100_000, op=1)]
    assert "small-ops" not in ids(run_of(spans, ops=(A, C)))


def test_before_the_device_has_started_its_engines_wait_for_the_host() -> None:
    lanes = (HVX, HMX, Lane(NONE, NONE, "Runtime"), Lane(0, 0, "Execution"))
    spans = [
        Span(2, 0, 500, SpanKind.HOST, name="submit-Inf-0"),
        Span(3, 500, 1000, SpanKind.PHASE, name="inference"),
        Span(0, 500, 600, op=0, command=0),
        Span(1, 600, 1000, op=1, command=1),
    ]
    found = analyse(run_of(spans, lanes=lanes, ops=(A, C), edges=[(0, 1)]))
    waits = {(row.engine, row.cause): (row.wait_ns, row.count) for row in found.waits}
    assert waits == {("HVX", "the host"): (500, 1), ("HMX", "the host"): (500, 1), ("HMX", "HVX"): (100, 1)}


def test_waits_that_are_not_recorded_are_unknown() -> None:
    spans = [Span(0, 0, 50, op=0), Span(1, 50, 100, op=1)]
    assert [use.wait_ns for use in analyse(run_of(spans, ops=(A, C))).engines] == [None, None]
    stood = Span(1, 0, 50, SpanKind.WAIT, name="wait")
    uses = analyse(run_of([*spans, stood, *copy(0, 30, 0)], ops=(A, C), commands=[Command(0, 0, 64)])).engines
    assert {use.engine: use.wait_ns for use in uses} == {"HVX": 0, "HMX": 50, "DMA DDR read": None}


def test_ops_that_share_a_name_have_a_slack_each() -> None:
    spans = [Span(0, 0, 100, op=0), Span(1, 0, 30, op=1)]
    found = analyse(run_of(spans, ops=(A, A)))
    assert [(row.op, row.row, row.slack_ns, row.path_ns) for row in found.slack] == [("a", 0, 0, 100), ("a", 1, 70, 0)]


@pytest.mark.parametrize(
    ("engine", "kind", "bound"),
    [("DMAIssue", "fetch", "memory"), ("DMAIssue", "multicast", "link"), ("HVX", "fetch", "unknown")],
)
def test_without_a_timeline_what_a_dma_engine_does_is_moving_bytes(engine: str, kind: str, bound: str) -> None:
    found = analyse(run_of(ops=(A,), totals=[total("a", 100, type=kind, engine=engine)]))
    assert found.bound == bound
    assert found.findings[0].detail.endswith(f"100 ns, mostly {bound}")


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=5), st.integers(1, 3000))
def test_parts_of_a_run_without_a_timeline_are_its_latency_and_none_is_below_zero(times: list[int], wall: int) -> None:
    kinds = ("MatMul", "Transpose", "sync", "semaphore", "Softmax")
    totals = [total(kind, ns, type=kind) for kind, ns in zip(kinds, times, strict=False)]
    parts = analyse(run_of(totals=totals, latency=wall)).breakdown
    assert sum(part.ns for part in parts) == wall
    assert all(part.ns > 0 for part in parts)
    unknown = sum(part.ns for part in parts if part.cause == "unknown")
    assert unknown == max(wall - sum(times), 0)


def test_a_few_bytes_that_are_read_again_are_noise() -> None:
    commands = [Command(0, 0, 1000, tensor="input", shape=(1000,), dtype="i8") for _ in range(4)]
    spans = [span for n in range(4) for span in copy(0, 10, n, lane=2 + n)] + [Span(0, 10, 10_000, op=0)]
    lanes = (HVX, HMX, *(Lane(0, 0, f"DMA {n}") for n in range(4)))
    run = run_of(spans, lanes=lanes, ops=(A,), commands=commands, limits={"outer_bytes_per_s": 1e12})
    assert "read-again" not in ids(run)
    assert "read-again" in ids(replace(run, info=replace(run.info, limits={"outer_bytes_per_s": 1e10})))


def _outside(run: Run, *kinds: str) -> Run:
    placed = tuple(Placement(kind, "HMX", 0, 0, 9, 90, "DDR") for kind in kinds)
    local = (MemoryTotal("SRAM", 0, 0, 100, 50.0, 2000, None, None),)
    return replace(run, summary=replace(run.summary, memory=local, placement=placed))


def test_weights_are_to_stay_resident_only_where_they_have_room() -> None:
    for size, action in (
        (1000, "larger tiles, or weights that stay resident between inferences"),
        (9000, "larger tiles"),
    ):
        moved = Command(0, 0, size, tensor="weights", shape=(size,), dtype="i8")
        run = run_of(copy(0, 100, 0), ops=(A,), commands=[moved])
        assert finding(_outside(run, "conv"), "residency").action == action


def test_a_transfer_from_outer_memory_is_no_work_with_an_operand_there() -> None:
    run = run_of(copy(0, 100, 0), ops=(A,), commands=[Command(0, 0, 64)])
    assert "residency" not in ids(_outside(run, "work"))  # the kind of the command that moves the bytes
    assert "residency" in ids(_outside(run, "work", "conv"))


def test_an_engine_at_work_whenever_the_host_lets_it_is_used_well() -> None:
    lanes = (HVX, Lane(NONE, NONE, "Runtime"), Lane(0, 0, "Execution"))
    for busy, low in ((80, False), (20, True)):
        spans = [
            Span(1, 0, 900, SpanKind.HOST, name="submit-Inf-0"),
            Span(2, 900, 1000, SpanKind.PHASE, name="inference"),
            Span(0, 900, 900 + busy // 2, op=0),
            Span(0, 1000 - busy // 2, 1000, op=0),
        ]
        run = run_of(spans, lanes=lanes, ops=(A,))
        assert ("low-utilization" in ids(run)) == low
    assert finding(run, "low-utilization").title == "HVX works 20.0% of the device's time, and no engine more"


def test_an_op_that_waits_for_a_memory_at_its_limit_is_not_told_to_fetch_earlier() -> None:
    commands = [Command(0, 0, 4096), Command(0)]
    spans = [*copy(0, 90, 0), Span(0, 90, 100, op=0, command=1)]
    spans = [replace(span, op=0) for span in spans]
    run = run_of(spans, ops=(A,), edges=[(0, 1)], commands=commands, limits={"outer_bytes_per_s": 50e9})
    assert finding(run, "slow-op").action == "keep its operands in local memory"
    assert finding(replace(run, info=replace(run.info, limits={})), "slow-op").action.startswith("fetch its operands")


def test_the_queue_of_a_busy_device_is_named_and_the_host_is_not_what_it_stands_still_for() -> None:
    host = [stage_of("preprocess", 20), stage_of("device queue", 60), stage_of("device", 20)]
    run = run_of([Span(0, 0, 20)], host=host)
    queue, stages = finding(run, "device-queue"), finding(run, "host-stages")
    assert queue.title == "60.0% of what the application waits is the queue of the device"
    assert (queue.cost_ns, queue.detail) == (60, "60 ns behind inferences that came before, 20 ns on the device")
    assert stages.detail == "runtime 20 ns, queue 60 ns, device 20 ns"
    assert "the device has work meanwhile" in stages.action
    idle = run_of([Span(0, 0, 20)], host=[host[0], host[2]])
    assert "device-queue" not in ids(idle)
    assert "with more inferences on their way at once" in finding(idle, "host-stages").action


def test_cores_are_held_against_those_of_their_own_device() -> None:
    lanes = tuple(Lane(device, core, "HVX") for device in range(2) for core in range(2))
    alike = [Span(0, 0, 90, op=0), Span(1, 0, 90, op=0), Span(2, 90, 100, op=0), Span(3, 90, 100, op=0)]
    assert ids(run_of(alike, lanes=lanes, ops=(A,))) >= {"uneven-devices"}
    assert "uneven-cores" not in ids(run_of(alike, lanes=lanes, ops=(A,)))
    uneven = [Span(0, 0, 90, op=0), Span(1, 0, 90, op=0), Span(2, 0, 60, op=0), Span(3, 0, 120, op=0)]
    assert finding(run_of(uneven, lanes=lanes, ops=(A,)), "uneven-cores").title == (
        "core 1 has 1.33 × the work of the mean core"
    )
