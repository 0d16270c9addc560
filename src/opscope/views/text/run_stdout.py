"""End-of-run statistics, as the reference runner prints them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TextIO

from ...recording.host_times import Metric, RunStatistics

_NAME_WIDTH, _CELL_WIDTH = 17, 15
_HEADER = ("Metric", "Avg", "Min", "Max", "Std")


class RunStdout:
    """Count, duration, throughput and a table of device metrics."""

    suffix = ".txt"

    def render(self, statistics: RunStatistics, out: TextIO) -> None:
        out.write(" ---- Stats ----\n")
        out.write(
            f"InferenceCnt {statistics.count} TotalDuration {statistics.duration_ns / 1e3:.0f}us "
            f"BatchSize {statistics.batch} Inf/Sec {statistics.inferences_per_s:.3f}\n"
        )
        out.write("Device Performance: \n")
        out.write(_line(_HEADER))
        for metric in statistics.metrics:
            out.write(_line((metric.name, *_cells(metric))))
        out.write(f"\nAll figures are simulated on {statistics.target}.\n")


def _cells(metric: Metric) -> list[str]:
    values = (metric.average, metric.least, metric.most, metric.deviation)
    return ["N/A" if value is None else f"{value:.3f}" for value in values]


def _line(cells: Sequence[str]) -> str:
    name, *values, last = cells
    padded = [f"{value},".ljust(_CELL_WIDTH) for value in values]
    return f"{name},".ljust(_NAME_WIDTH) + "".join(padded) + last.ljust(_CELL_WIDTH) + "\n"
