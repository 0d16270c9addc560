"""Trace as Perfetto's own protocol buffers: track events with interned names and arguments.

Field numbers are those of perfetto_trace.proto. Readers sort packets by time and keep the order of those at one time,
so ends are written before empty spans, and these before starts: then spans that touch never overlap.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import BinaryIO

import numpy as np

from ...analysis.timeline.path_marks import PathMarks
from ...core.columns import Numbers
from ...core.protobuf import bytes_field, number_field, text_field
from ...recording.run import Run
from ...recording.trace import Trace
from .perfetto_spans import SEQUENCE_ID, STATE_CLEARED, Interned, SpanPackets
from .protobuf import MessageRows, width_of
from .trace_args import ArgumentWords
from .trace_flows import apart, find_flows
from .trace_path import with_path
from .trace_rows import Rows, lay_out, stats_hz

_PACKET, _TIMESTAMP, _SEQUENCE, _TRACK_EVENT, _INTERNED, _FLAGS, _DESCRIPTOR = 1, 8, 10, 11, 12, 13, 60
_TYPE, _COUNTER_EVENT, _TRACK_UUID, _DOUBLE_VALUE = 9, 4, 11, 44
_COUNTER_UUIDS = 1 << 40  # above every process and thread id


class PerfettoTrace:
    """The same events as ChromeTrace, several times smaller; `render` takes any trace of the run's commands."""

    suffix = ".trace.pftrace"

    def __init__(
        self,
        run: Run,
        *,
        cores: Collection[int] | None = None,
        devices: Collection[int] | None = None,
        flows: bool = False,
        path: PathMarks | None = None,
    ) -> None:
        """`path` is that of the trace of `run`, where all of it is rendered."""
        self.info = run.info
        self.cores, self.devices = cores, devices
        self.flows, self.path = flows, path
        words = ArgumentWords.of(run.info)
        self._interned = Interned()
        self._interned.number(Interned.CATEGORIES, words.category)  # the first of its table: CATEGORY_IID
        self._packets = SpanPackets(run, words, self._interned, stats_hz=stats_hz(run.info))

    def render(self, trace: Trace, out: BinaryIO) -> None:
        trace, path_ns = with_path(trace, self.path)
        self.render_rows(trace, lay_out(trace, self.info, cores=self.cores, devices=self.devices), out, path_ns)

    def render_rows(self, trace: Trace, rows: Rows, out: BinaryIO, path_ns: Numbers | None = None) -> None:
        """The trace with every lane where it is told to be; `path_ns` has what each span is of the critical path."""
        names = np.array([self._interned.number(Interned.NAMES, name) for name in trace.names], np.int64)
        trace = apart(trace) if self.flows else trace
        flows = find_flows(trace, rows.shown) if self.flows else None
        self._packets.know(trace.op_counts.names)
        state = number_field(_SEQUENCE, SEQUENCE_ID) + number_field(_FLAGS, STATE_CLEARED)
        out.write(bytes_field(_PACKET, state + bytes_field(_INTERNED, self._interned.encoded())))
        for descriptor in _descriptors(trace, rows):
            out.write(bytes_field(_PACKET, number_field(_SEQUENCE, SEQUENCE_ID) + bytes_field(_DESCRIPTOR, descriptor)))
        for block in _counters(trace, rows):
            out.write(block)
        for block in self._packets.blocks(trace, rows, names, flows, path_ns):
            out.write(block)


def _descriptors(trace: Trace, rows: Rows) -> Iterator[bytes]:
    """Processes, threads and counters. A track has the number of its process or thread."""
    for process in rows.processes:
        body = number_field(1, process.pid) + text_field(6, process.name) + number_field(3, process.order)
        yield number_field(1, process.pid) + bytes_field(3, body)
    for row in rows.of_lane:
        if row is not None:
            body = number_field(1, row.pid) + number_field(2, row.tid) + text_field(5, row.name)
            yield (
                number_field(1, row.tid) + number_field(5, row.pid) + bytes_field(4, body + number_field(3, row.order))
            )
    for number, (pid, counter) in enumerate(zip(rows.of_counter, trace.counters, strict=True)):
        if pid is not None:
            name = f"{counter.name} ({counter.unit})"
            own = number_field(1, _COUNTER_UUIDS + number) + number_field(5, pid) + text_field(2, name)
            yield own + bytes_field(8, text_field(6, counter.unit))


def _counters(trace: Trace, rows: Rows) -> Iterator[bytes]:
    shown = np.array([pid is not None for pid in rows.of_counter] or [False])
    samples = trace.samples[shown[trace.samples["counter"]]] if len(trace.samples) else trace.samples
    uuids = _COUNTER_UUIDS + samples["counter"].astype(np.int64)
    event = MessageRows(len(samples)).constant(number_field(_TYPE, _COUNTER_EVENT))
    event.number(_TRACK_UUID, uuids, width=width_of(_COUNTER_UUIDS)).double(_DOUBLE_VALUE, samples["value"])
    width = width_of(int(samples["time_ns"].max(initial=0)))
    inner = MessageRows(len(samples)).number(_TIMESTAMP, samples["time_ns"], width=width)
    inner.constant(number_field(_SEQUENCE, SEQUENCE_ID)).nested(_TRACK_EVENT, event)
    yield MessageRows(len(samples)).nested(_PACKET, inner).rows().tobytes()
