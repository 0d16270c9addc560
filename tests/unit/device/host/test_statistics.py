"""What a run comes to."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from opscope.device.host.statistics import counted, latency_metrics, metric, run_statistics
from opscope.program.capture import Capture
from opscope.program.program import Program, StatsOptions
from opscope.program.wire import DDR_RECORD, PMU_RECORD, THREAD_RECORD, StatsFlag, StatsSection
from opscope.recording.host_times import HostTimes
from support.recording.run_build import STATS_HZ, program_of, rows_of


def capture_of(*, busy: int, pcycles: int = 1000, ticks: int = 19_200, read: int = 0) -> Capture:
    threads = np.array([(0, 0, 0, 100, 100 + ticks, pcycles)], THREAD_RECORD)
    return Capture(
        0,
        0,
        1,
        1,
        40,
        StatsFlag(0),
        0,
        0,
        1,
        STATS_HZ,
        {
            (StatsSection.THREADS, 0): threads,
            (StatsSection.PMU, 0): np.array([(0, 0x200, 0, busy)], PMU_RECORD),
            (StatsSection.DDR, 0): np.array([(read, 0, ticks)], DDR_RECORD),
        },
    )


def counting(program: Program) -> Program:
    stats = StatsOptions(
        40, True, "KernelUtil", (2, 0x200), ("THREAD_CYCLES", "HMX_ACTIVE"), ("cycles", "busy_cycles:HMX")
    )
    return replace(program, stats=stats)


def test_counts_batches_and_seconds_give_the_throughput() -> None:
    statistics = run_statistics(program_of(), HostTimes(rows_of(0, 989_000), STATS_HZ, 1), [])
    assert (statistics.count, statistics.batch, statistics.duration_ns) == (2, 4, 1_000_000)
    assert statistics.inferences_per_s == pytest.approx(8000)


def test_device_times_are_microseconds_of_ticks() -> None:
    named = {m.name: m for m in run_statistics(program_of(), HostTimes(rows_of(0, 1), STATS_HZ, 1), []).metrics}
    assert named["ExecTimeUs"].average == pytest.approx(10.0)
    assert named["InputWaitTimeUs"].most == pytest.approx(19 / 19.2)
    assert named["OutputWaitTimeUs"].least == 0.0


@pytest.mark.parametrize(("level", "known"), [(0, 0), (40, 1), (50, 3), (70, 3)])
def test_what_the_stats_level_does_not_record_is_unknown(level: int, known: int) -> None:
    metrics = run_statistics(program_of(level=level), HostTimes(rows_of(0), STATS_HZ, 1), []).metrics
    assert [m.average is not None for m in metrics] == [True] * known + [False] * (3 - known)


def test_devices_share_one_figure_mean_of_shares_and_sum_of_bytes() -> None:
    program, times = counting(program_of()), HostTimes(rows_of(0), STATS_HZ, 1)
    captures = (capture_of(busy=500, read=10**6), capture_of(busy=300, read=3 * 10**6, ticks=38_400))
    named = {m.name: m.average for m in run_statistics(program, times, [counted(program, captures)]).metrics}
    assert named["HMXActivePct"] == pytest.approx(40.0)
    assert named["DDRTrafficMB"] == pytest.approx(4.0)
    assert named["DDRBandwidthGBPerSec"] == pytest.approx(4e6 / 2e-3 / 1e9)  # the slower device is the time of both


def test_traffic_bears_the_name_of_the_memory_that_it_is_of() -> None:
    program = counting(program_of())
    program = replace(program, memories=(replace(program.memories[0], name="XRAM"), *program.memories[1:]))
    assert {"XRAMTrafficMB", "XRAMBandwidthGBPerSec"} <= set(counted(program, [capture_of(busy=500, read=10**6)]))


@pytest.mark.parametrize(
    ("name", "block", "shown"),
    [("HMX_ACTIVE", "", "HMX"), ("cycles at work", "", "HMX"), ("DMA_ACTIVE", "matrix", "matrix")],
)
def test_a_share_is_called_after_the_block_that_its_event_says_and_not_after_the_event(
    name: str, block: str, shown: str
) -> None:
    program = counting(program_of())
    stats = replace(program.stats, event_names=("THREAD_CYCLES", name), event_blocks=("", block))
    assert f"{shown}ActivePct" in counted(replace(program, stats=stats), [capture_of(busy=500)])


def test_a_metric_is_mean_extremes_and_deviation() -> None:
    found = metric("x", np.array([1.0, 3.0]))
    assert (found.average, found.least, found.most, found.deviation) == (2.0, 1.0, 3.0, 1.0)


def test_latency_metrics_have_the_vendors_keys_in_seconds() -> None:
    found = latency_metrics(np.arange(1, 101) * 1_000_000)
    assert list(found) == [
        "num_of_inferences",
        "min_latency",
        "max_latency",
        "P25",
        "P50",
        "P75",
        "P90",
        "P99",
        "P999",
        "total_inference_time",
        "avg_latency",
    ]
    assert (found["num_of_inferences"], found["min_latency"], found["max_latency"]) == (100, 0.001, 0.1)
    assert found["P50"] == pytest.approx(0.0505)
    assert found["total_inference_time"] == pytest.approx(5.05)


def test_no_inferences_have_no_latency() -> None:
    assert latency_metrics(np.zeros(0, np.int64)) == {"num_of_inferences": 0}
