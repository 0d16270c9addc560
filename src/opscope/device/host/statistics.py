"""Statistics of a run: counts, device metrics, percentiles of latency."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from ...core.columns import Floats
from ...program.capture import Capture
from ...program.program import ACTIVE_COUNTS, PORT_LEVEL, THREAD_LEVEL, Program
from ...program.wire import StatsSection
from ...recording.host_times import HostMetric, HostTimes, RunStatistics
from ...recording.unknown import in_a_line, unknown_of

_TIME = "ExecTimeUs"
_MEGA, _GIGA = 1e6, 1e9


def run_statistics(program: Program, times: HostTimes, samples: Sequence[Mapping[str, float]]) -> RunStatistics:
    """Return the totals of a run; `samples` holds the metrics of each inference simulated in full.

    With an op of unknown cost in the program, the least time of an inference is all that is known of its times.
    """
    level, rows, us = program.stats.level, times.rows, 1e6 / times.stats_hz
    waits = level >= PORT_LEVEL
    metrics = [
        metric(_TIME, rows["exec_ticks"] * us if level >= THREAD_LEVEL else None),
        metric("InputWaitTimeUs", rows["input_wait_ticks"] * us if waits else None),
        metric("OutputWaitTimeUs", rows["output_wait_ticks"] * us if waits else None),
    ]
    names = samples[0] if samples else {}
    metrics += [metric(name, np.array([sample[name] for sample in samples])) for name in names]
    unknown = unknown_of(program.ops)
    if unknown:
        metrics = [HostMetric(m.name, None, m.least if m.name == _TIME else None, None, None) for m in metrics]
    return RunStatistics(
        program.target,
        len(rows),
        times.duration_ns,
        program.stats.batch_size,
        tuple(metrics),
        in_a_line(unknown, len(program.ops)),
    )


def metric(name: str, values: Floats | None) -> HostMetric:
    if values is None or not len(values):
        return HostMetric(name, None, None, None, None)
    return HostMetric(name, float(values.mean()), float(values.min()), float(values.max()), float(values.std()))


def counted(program: Program, captures: Sequence[Capture]) -> dict[str, float]:
    """Return busy shares from PMU events and the outer-memory traffic of one inference on all its devices.

    Shares are the mean over devices; bytes are their sum; the slowest device determines the time.
    """
    found: dict[str, float] = {}
    stats = program.stats
    blocks = stats.blocks()
    for number, name, counts in zip(stats.events, stats.event_names, stats.event_counts, strict=True):
        if counts.partition(":")[0] in ACTIVE_COUNTS:
            share = float(np.mean([_active_share(capture, number) for capture in captures]))
            found[f"{blocks[number] or name}ActivePct"] = 100 * share
    if stats.ddr:
        moved = sum(map(_ddr_bytes, captures))
        seconds = max(1, *map(exec_ticks, captures)) / captures[0].stats_hz
        memory = program.outer_memory
        found[f"{memory}TrafficMB"] = moved / _MEGA
        found[f"{memory}BandwidthGBPerSec"] = moved / _GIGA / seconds
    return found


def exec_ticks(capture: Capture) -> int:
    """Return the ticks from the first thread's start to the last thread's end."""
    threads = [records for (kind, _), records in capture.sections.items() if kind is StatsSection.THREADS]
    if not threads:
        return 0
    return max(int(t["end"].max()) for t in threads) - min(int(t["start"].min()) for t in threads)


def _active_share(capture: Capture, event: int) -> float:
    busy = total = 0
    for core in range(capture.cores):
        threads = capture.sections.get((StatsSection.THREADS, core))
        counters = capture.sections.get((StatsSection.PMU, core))
        if threads is None or counters is None:
            continue
        own = counters[counters["event"] == event]
        busy += int(own["value"].sum())
        total += int(threads["pcycles"][np.isin(threads["thread"], own["thread"])].sum())
    return busy / total if total else 0.0


def _ddr_bytes(capture: Capture) -> int:
    parts = [records for (kind, _), records in capture.sections.items() if kind is StatsSection.DDR]
    return sum(int(part["read_bytes"].sum()) + int(part["write_bytes"].sum()) for part in parts)


def latency_metrics(latencies_ns: npt.NDArray[np.int64]) -> dict[str, float]:
    """Return the count and, in seconds, extremes, percentiles, sum and mean of the latencies."""
    seconds = np.sort(latencies_ns) / 1e9
    if not len(seconds):
        return {"num_of_inferences": 0}
    shares = {"P25": 25.0, "P50": 50.0, "P75": 75.0, "P90": 90.0, "P99": 99.0, "P999": 99.9}
    return {
        "num_of_inferences": len(seconds),
        "min_latency": float(seconds[0]),
        "max_latency": float(seconds[-1]),
        **{name: float(np.percentile(seconds, share)) for name, share in shares.items()},
        "total_inference_time": float(seconds.sum()),
        "avg_latency": float(seconds.mean()),
    }
