"""Annotated as a Perfetto trace: a process per group of lanes, a thread per lane."""

from __future__ import annotations

from typing import BinaryIO

from ....recording.build import to_run
from ....recording.recording import Recording
from ....recording.trace import Trace
from ....views.timeline.perfetto_trace import PerfettoTrace
from ....views.timeline.trace_rows import Process, Rows, ViewerRow

_FIRST_PROCESS, _FIRST_THREAD = 1, 10_001


class AnnotatedTrace:
    """The device of a lane is the number of its group."""

    suffix = ".pftrace"

    def __init__(self, groups: tuple[str, ...]) -> None:
        self.groups = groups

    def render(self, trace: Trace, out: BinaryIO) -> None:
        processes = tuple(Process(_FIRST_PROCESS + n, name, n + 1) for n, name in enumerate(self.groups))
        threads = tuple(
            ViewerRow(_FIRST_PROCESS + lane.device, _FIRST_THREAD + n, lane.name, n + 1)
            for n, lane in enumerate(trace.lanes)
        )
        bare = to_run(Recording("", trace.provenance, trace), command=(), created="", sha256=None)
        PerfettoTrace(bare).render_rows(trace, Rows(processes, threads, ()), out)
