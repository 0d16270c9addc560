"""What the summary says about one small inference, question by question."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from opscope.analysis.structure import block_of, layer_of
from opscope.analysis.totals.memory import residency
from opscope.analysis.totals.summarise import summarise, summarise_device, typical
from opscope.analysis.totals.work import InferenceWork, ProgramIndex
from opscope.core.meaning import Does
from opscope.program.program import Program, StatsOptions
from opscope.recording.summary import MemoryTotal, Summary, WaitTotal
from support.decode.build import Profiled, furnished, profiled, small
from support.device.build import COPY, DMA, HMX, HVX, READ, WRITE, Step, program_of


def totals(profile: Profiled) -> Summary:
    captures = {capture.device: capture for capture in profile.captures}
    return summarise(InferenceWork.of(profile.trace(), profile.index), captures)


def waits(profile: Profiled, device: int = 0) -> tuple[WaitTotal, ...]:
    work = InferenceWork.of(profile.trace(device), profile.index)
    tables = summarise_device(work, profile.captures[device], network="network")
    assert tables.totals is not None
    return tables.totals.waits


@pytest.mark.parametrize(
    ("name", "layer", "block"),
    [
        ("/model/layers.3/mlp/down_proj/MatMul", "/model/layers.3", "/model/layers.*/mlp/down_proj/MatMul"),
        ("/encoder/layer.11/output/Add", "/encoder/layer.11", "/encoder/layer.*/output/Add"),
        ("/blocks_2/Conv", "/blocks_2", "/blocks_*/Conv"),
        ("/pool/GlobalAveragePool", "/pool", "/pool/GlobalAveragePool"),
        ("Conv_17", "/Conv_17", "Conv_*"),
        ("conv2d", "/conv2d", "conv2d"),
        ("", "", ""),
    ],
)
def test_layers_are_paths_up_to_a_number_and_blocks_leave_it_open(name: str, layer: str, block: str) -> None:
    assert layer_of(name) == layer
    assert block_of(name) == block


def test_a_wait_is_put_down_to_the_copy_the_engine_and_the_other_core() -> None:
    causes = {(row.group, row.cause) for row in waits(small())}
    assert ("HMX", "DMA DDR read") in causes
    assert ("HVX", "HMX") in causes
    assert ("HVX", "HVX of another core") in causes


def test_a_wait_for_another_device_says_so() -> None:
    profile = small(steps=(Step(HVX, 9000), Step(HVX, 10, needs=(0,), device=1)))
    row = waits(profile, 1)[0]
    assert (row.group, row.cause, row.count) == ("HVX", "HVX of another device", 1)


def test_the_longest_awaited_producer_comes_first_with_its_place() -> None:
    first = totals(small()).producers[0]
    assert first.wait_ns == max(row.wait_ns for row in totals(small()).producers)
    assert (first.device, first.core) == (0, 0)


def test_a_thread_that_starts_transfers_waits_for_nobody_s_op() -> None:
    profile = small(steps=(Step(HMX, 9000), Step(DMA, 10, route=WRITE, moved_bytes=90_000, needs=(0,))))
    found = totals(profile)
    assert [(row.group, row.cause) for row in waits(profile)] == [("DMAIssue", "HMX")]
    assert found.producers == ()
    assert {row.wait_ns for row in found.ops} == {0}
    behind = totals(small(steps=(Step(HMX, 9000), Step(HVX, 10, needs=(0,)))))
    assert behind.producers[0].wait_ns == max(row.wait_ns or 0 for row in behind.ops) > 0


def test_operands_that_are_read_ahead_together_are_read_in_turn() -> None:
    """Four copies of one queue in flight at once take the time of that queue, not four times it."""
    profile = small(steps=(Step(DMA, 10, route=READ, moved_bytes=90_000, kind=COPY),) * 4)
    work = InferenceWork.of(profile.trace(), profile.index)
    flights, turns = work.network, work.in_turn
    assert (np.diff(np.sort(flights.start)) < 1000).all()  # they are issued one behind the other, and last longer
    assert flights.ns.sum() > 2 * (flights.end.max() - flights.start.min())
    assert turns.ns.sum() == flights.end.max() - flights.start.min()
    assert (turns.start >= flights.start).all()
    assert (turns.end == flights.end).all()
    assert (turns.ns >= 0).all()


def flushing(program: Program) -> Program:
    commands = program.commands.copy()
    commands["does"][commands["kind"] == COPY] = Does.STATS
    return replace(program, commands=commands)


def test_the_flush_of_the_statistics_is_no_work_and_no_imbalance() -> None:
    steps = (Step(HVX, 5000), Step(HVX, 5000, core=1), Step(HVX, 4000, route=WRITE, moved_bytes=90_000, kind=1))
    program = program_of(steps, stats=StatsOptions(level=70), clock_hz=1.2e9, stats_hz=19.2e6)
    found = totals(profiled(flushing(furnished(program))))
    assert [row.ratio for row in found.balance] == [pytest.approx(1.0, rel=1e-3)] * 2
    assert found.routes == ()
    assert sum(row.commands for row in found.ops) == 2
    parts = {part.cause: part.ns for part in found.occupancy}
    assert parts["statistics only"] > 0
    assert parts["transfer only"] == 0


def test_gigabytes_per_second_are_bytes_over_the_time_something_is_in_flight() -> None:
    steps = (Step(DMA, 100, route=READ, moved_bytes=60_000), Step(DMA, 100, route=READ, moved_bytes=60_000))
    row = totals(small(steps=steps)).routes[0]
    assert (row.transfers, row.bytes, row.most_in_flight) == (2, 120_000, 2)
    assert row.gigabytes_per_s == pytest.approx(120_000 / row.busy_ns)
    assert row.gigabytes_per_s == pytest.approx(4.8, rel=0.05)  # 4 bytes a cycle at 1.2 GHz


def test_local_memory_is_held_until_the_last_reader_is_done() -> None:
    profile = small(steps=(Step(HMX, 5000, core=1), Step(HVX, 7000, needs=(0,), core=1)))
    work = InferenceWork.of(profile.trace(), profile.index)
    ((core, (times, held)),) = residency(work).items()
    size = profile.program.commands["local_bytes"].astype(int).tolist()
    spans = {
        int(c): (int(s), int(e))
        for c, s, e in zip(work.commands.command, work.commands.start, work.commands.end, strict=True)
    }
    writer = int(np.flatnonzero(profile.program.commands["group"] == HMX)[0])
    reader = 1 - writer
    assert core == 1
    assert (int(times[0]), int(times[-1])) == (spans[writer][0], spans[reader][1])
    assert int(held.max()) == size[writer] + size[reader]
    assert int(held[-1]) == 0


def test_memory_in_use_is_with_weights_that_stay_and_its_peak_is_what_was_placed() -> None:
    profile = small(steps=(Step(HMX, 5000, core=1), Step(HVX, 7000, needs=(0,), core=1)))
    metrics = replace(profile.program.metrics, local_capacity=1 << 20, staying_bytes=100_000)
    program = replace(profile.program, metrics=metrics)
    captures = {capture.device: capture for capture in profile.captures}

    def local(program: Program) -> MemoryTotal:
        return summarise(InferenceWork.of(profile.trace(), ProgramIndex.of(program)), captures).memory[1]

    bare, staying = local(profile.program), local(program)
    assert bare.peak_bytes is not None
    assert bare.mean_bytes is not None
    assert staying.peak_bytes == bare.peak_bytes + 100_000
    assert staying.mean_bytes == pytest.approx(bare.mean_bytes + 100_000)
    assert local(replace(program, metrics=replace(metrics, local_bytes=(0, 900_000)))).peak_bytes == 900_000


@pytest.mark.parametrize("waits", ["transfer", "barrier"])
def test_who_waits_for_data_without_reading_it_there_does_not_hold_local_memory(waits: str) -> None:
    later = (
        Step(DMA, 100, route=READ, moved_bytes=60_000, needs=(0,))
        if waits == "transfer"
        else Step(HVX, 9000, needs=(0,))
    )
    profile = small(steps=(Step(HMX, 5000), later))
    program = profile.program
    commands = program.commands.copy()
    writer = int(np.flatnonzero(commands["group"] == HMX)[0])
    commands["does"][1 - writer] = Does.MOVE if waits == "transfer" else Does.SYNC
    commands["local_bytes"][[writer, 1 - writer]] = 4096, 0
    work = InferenceWork.of(profile.trace(), ProgramIndex.of(replace(program, commands=commands)))
    ((_, (times, _)),) = residency(work).items()
    done = work.commands.end[work.commands.command == writer]
    assert int(times[-1]) == int(done[0])


def test_operands_in_outer_memory_are_told_from_local_ones() -> None:
    found = {(row.kind, row.group): row for row in totals(small()).placement}
    assert found["aiccopytovtcm", "DMAIssue"].outer_memory == "DDR"
    assert found["aiccopytovtcm", "DMAIssue"].local_count == 0
    assert found["elementadd", "HMX"].outer_count == 0


def test_buckets_of_the_histogram_double() -> None:
    found = totals(small()).histogram
    assert [(b.low_ns, b.high_ns) for b in found[:3]] == [(0, 1000), (1000, 2000), (2000, 4000)]


def test_of_several_inferences_the_one_of_median_latency_speaks() -> None:
    summaries = [totals(small(inference=number)) for number in range(4)]
    chosen = typical(summaries)
    times = sorted(summary.latency.value_ns for summary in summaries)
    assert (chosen.latency.low_ns, chosen.latency.value_ns, chosen.latency.high_ns) == (times[0], times[1], times[3])
    assert typical(summaries[:1]).latency.low_ns is None


def test_a_program_without_commands_is_summed_up_to_nothing() -> None:
    profile = small(steps=())
    assert ProgramIndex.of(profile.program).row_keys == ()
    found = totals(profile)
    assert found.ops == waits(profile) == found.occupancy == found.histogram == ()
