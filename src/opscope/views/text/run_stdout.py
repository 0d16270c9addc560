"""What a run on the device prints: statistics at its end, as the reference runner has them, and host stages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TextIO

from ...recording.host_times import STAGES, HostMetric, HostTimes, Rows, RunStatistics, between

_NAME_WIDTH, _CELL_WIDTH = 17, 15
_HEADER = ("Metric", "Avg", "Min", "Max", "Std")


class RunStdout:
    """Count, duration, throughput and a table of device metrics."""

    suffix = ".txt"

    def render(self, statistics: RunStatistics, out: TextIO) -> None:
        rate = statistics.inferences_per_s
        duration = "N/A" if statistics.unknown else f"{statistics.duration_ns / 1e3:.0f}us"
        out.write(" ---- Stats ----\n")
        out.write(
            f"InferenceCnt {statistics.count} TotalDuration {duration} "
            f"BatchSize {statistics.batch} Inf/Sec {'N/A' if rate is None else f'{rate:.3f}'}\n"
        )
        out.write("Device Performance: \n")
        out.write(_line(_HEADER))
        for metric in statistics.metrics:
            out.write(_line((metric.name, *_cells(metric))))
        out.write(f"\nAll figures are simulated on {statistics.target}.\n")


def _cells(metric: HostMetric) -> list[str]:
    values = (metric.average, metric.least, metric.most, metric.deviation)
    return ["N/A" if value is None else f"{value:.3f}" for value in values]


def _line(cells: Sequence[str]) -> str:
    name, *values, last = cells
    padded = [f"{value},".ljust(_CELL_WIDTH) for value in values]
    return f"{name},".ljust(_NAME_WIDTH) + "".join(padded) + last.ljust(_CELL_WIDTH) + "\n"


class HostStages:
    """The host's side of one inference: every stage with its time and its share of what the application saw."""

    suffix = ".txt"

    def render(self, times: HostTimes, row: Rows, out: TextIO) -> None:
        """`row` is the one inference, out of `times`."""
        inference, activation = int(row["inference"][0]), int(row["activation"][0])
        out.write(f"Host stages of inference {inference}, activation {activation} (simulated)\n")
        total = int(between(row, "enqueued_ns", "dequeued_ns")[0])
        for stage, (start, end) in STAGES.items():
            ns = int(between(row, start, end)[0])
            out.write(f"  {stage:<16}{ns / 1e3:>14.3f} us {100 * ns / max(total, 1):>6.2f}%\n")
        out.write(f"  {'total':<16}{total / 1e3:>14.3f} us\n")
        out.write(f"  queue depth at submit: {int(row['queue_depth'][0])}; activations at once: {times.slots}\n")
