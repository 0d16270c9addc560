"""Where the time of each profiled inference went, application to device and back, one line each."""

from __future__ import annotations

from collections.abc import Callable
from typing import TextIO

import numpy as np

from ...program.program import PORT_LEVEL, THREAD_LEVEL, Program
from ...recording.host_times import HostTimes, Rows, between

_LEAST_WIDTH, _GAP = 14, 2
_ABSENT = "N/A"

Column = Callable[["LatencyCsv", Rows, HostTimes], list[str]]


class LatencyCsv:
    """Four lines of header, then padded columns; microseconds, exact to the nanosecond."""

    suffix = ".txt"

    def __init__(self, program: Program, *, requested: int, program_number: int = 0) -> None:
        self.program = program
        self.requested = requested
        self.program_number = program_number

    def render(self, times: HostTimes, rows: Rows, out: TextIO) -> None:
        """`rows` are the profiled inferences among `times`."""
        out.write(
            f"Profiling Data\nProgramId:{self.program_number}\nProgramName: Program:{self.program.name}\n"
            f"NumSamples collected: {len(rows)} Num Requested: {self.requested}\n"
        )
        columns = [(name, column(self, rows, times)) for name, column in COLUMNS]
        widths = [max(_LEAST_WIDTH, len(name) + _GAP) for name, _ in columns]
        lines = [[name for name, _ in columns], *zip(*(cells for _, cells in columns), strict=True)]
        for line in lines:
            padded = [cell.ljust(width) for cell, width in zip(line, widths, strict=True)]
            out.write(",".join(padded).rstrip() + "\n")

    def ticks(self, rows: Rows, name: str, level: int) -> list[str]:
        """Microseconds of what the device counted; what its stats level does not record is absent."""
        if self.program.stats.level < level:
            return [_ABSENT] * len(rows)
        return [f"{value:.3f}" for value in (rows[name] * (1e6 / self.program.stats_hz)).tolist()]

    def rate(self, rows: Rows) -> list[str]:
        if self.program.stats.level < THREAD_LEVEL:
            return [_ABSENT] * len(rows)
        ticks = np.maximum(rows["exec_ticks"], 1)
        return [f"{v:.3f}" for v in (self.program.stats.batch_size * self.program.stats_hz / ticks).tolist()]


def _stage(start: str, end: str) -> Column:
    def column(view: LatencyCsv, rows: Rows, times: HostTimes) -> list[str]:
        del view, times
        return [f"{ns // 1000}.{ns % 1000:03d}" for ns in between(rows, start, end).tolist()]

    return column


def _number(name: str) -> Column:
    return lambda view, rows, times: [str(value) for value in rows[name].tolist()]


COLUMNS: tuple[tuple[str, Column], ...] = (
    ("Sample", _number("inference")),
    ("devInfPerSec", lambda view, rows, times: view.rate(rows)),
    ("devExecUs", lambda view, rows, times: view.ticks(rows, "exec_ticks", THREAD_LEVEL)),
    ("devInWaitTimeUs", lambda view, rows, times: view.ticks(rows, "input_wait_ticks", PORT_LEVEL)),
    ("devOutWaitTimeUs", lambda view, rows, times: view.ticks(rows, "output_wait_ticks", PORT_LEVEL)),
    ("hostRoundTripUs", _stage("submitted_ns", "completed_ns")),
    ("enqTimeUs", _stage("enqueued_ns", "taken_ns")),
    ("preProcTimeUs", _stage("taken_ns", "prepared_ns")),
    ("submitTimeUs", _stage("prepared_ns", "submitted_ns")),
    ("execTotalUs", _stage("submitted_ns", "returned_ns")),
    ("exectoVcUs", _stage("submitted_ns", "channel_ns")),
    ("execToCompleteUs", _stage("channel_ns", "completed_ns")),
    ("postProcUs", _stage("returned_ns", "processed_ns")),
    ("totalRoundtripTimeUs", _stage("enqueued_ns", "dequeued_ns")),
    ("queueDepth", _number("queue_depth")),
    ("numInfInQueue", _number("in_queue")),
)
