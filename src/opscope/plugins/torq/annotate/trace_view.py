"""Annotated as a Perfetto trace: a process per group of lanes, a thread per lane."""

from __future__ import annotations

from typing import BinaryIO

import numpy as np

from ....program.program import COMMAND, Detail, Group, MemoryMetrics, Program, StatsOptions
from ....recording.trace import Trace
from ....views.timeline.perfetto_trace import PerfettoTrace
from ....views.timeline.trace_rows import Process, Row, Rows

_FIRST_PROCESS, _FIRST_THREAD = 1, 10_001


class AnnotatedTrace:
    """The device of a lane is the number of its group."""

    suffix = ".pftrace"

    def __init__(self, groups: tuple[str, ...]) -> None:
        self.groups = groups

    def render(self, trace: Trace, out: BinaryIO) -> None:
        processes = tuple(Process(_FIRST_PROCESS + n, name, n + 1) for n, name in enumerate(self.groups))
        threads = tuple(
            Row(_FIRST_PROCESS + lane.device, _FIRST_THREAD + n, lane.name, n + 1) for n, lane in enumerate(trace.lanes)
        )
        PerfettoTrace(_no_program()).render_rows(trace, Rows(processes, threads, ()), out)


def _no_program() -> Program:
    """Spans here belong to no command."""
    none = np.zeros(0, np.uint32)
    return Program(
        name="",
        target="",
        devices=1,
        cores=1,
        batch=1,
        clock_hz=0.0,
        stats_hz=1e9,
        groups=(Group("", "", 1),),
        routes=(),
        kinds=("",),
        ops=(),
        details=(Detail("", "", "", "", (), ""),),
        commands=np.zeros(0, COMMAND),
        dependency_offsets=np.zeros(1, np.uint32),
        dependency_sources=none,
        dependency_kinds=np.zeros(0, np.uint8),
        stats=StatsOptions(level=0),
        metrics=MemoryMetrics(0, (), 0, (), 0, 0, 0, {}),
        inputs=(),
        outputs=(),
    )
