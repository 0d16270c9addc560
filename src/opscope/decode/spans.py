"""Buffers of one inference → Trace: spans of lanes, waits, transfers in flight, barriers and whole cores.

One command with wait 10, start 100 and end 140 (ticks) becomes a WAIT span 90–100 and an OP span 100–140 on its lane. A
transfer becomes an OP span for its issue, on the lane, and a TRANSFER span until its bytes have arrived, on a DMA lane.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from ..core.columns import Numbers
from ..core.meaning import Does, LaneRole
from ..core.provenance import Provenance
from ..core.sublanes import sublanes
from ..program.program import NO_ROUTE, Program
from ..program.wire import INPUT_PORT, StatsSection
from ..recording.trace import (
    COUNTER,
    EDGE,
    NONE,
    SPAN,
    CounterTrack,
    Lane,
    LaneNumbers,
    OpCounts,
    SpanKind,
    Trace,
    blank_spans,
)
from .buffer import Buffer
from .lanes import LaneIndex, LaneRecords, longest, read_lanes

Spans = npt.NDArray[np.void]
_PORT_NAMES = ("Host_IO_Port doorbell", "Host_IO_Port input wait", "Host_IO_Port output wait")
_MOST_COUNTED = np.uint64(1 << 48)  # so that no sum of a damaged buffer overflows
EXECUTION = "Execution"  # what lanes that say when an inference started and ended are called


class Threads(Enum):
    """Whether the threads of a group share one lane or have one each."""

    MERGED = "merged"  # one lane per group: a command lasts until its last thread is done
    APART = "apart"  # one lane per thread


class Barriers(Enum):
    """Which meetings of the threads of a group are shown."""

    NONE = "none"
    LASTING = "lasting"  # at which a thread waited
    ALL = "all"  # one for every command and thread, as the vendor's decoder counts them


def origin_tick(buffers: Iterable[Buffer]) -> int:
    """Return the first tick that any of the buffers contains: zero of their common axis."""
    ticks = []
    for buffer in buffers:
        for core in range(buffer.capture.cores):
            threads = buffer.records(StatsSection.THREADS, core)
            waits = buffer.records(StatsSection.PORTS, core)
            waited = waits["wait"][waits["port"] == INPUT_PORT].max(initial=0)
            rung = buffer.records(StatsSection.DOORBELLS, core)["time"].tolist()
            ticks += [int(threads["start"].min()) - int(waited), *rung] if len(threads) else []
    return min(ticks, default=0)


def decode_trace(
    program: Program,
    buffer: Buffer,
    index: LaneIndex,
    *,
    origin: int,
    provenance: Provenance,
    threads: Threads = Threads.MERGED,
    barriers: Barriers = Barriers.NONE,
) -> Trace:
    """Return the trace of one device in one inference.

    Args:
        program: the program that ran.
        buffer: checked with `check_buffer`.
        index: `LaneIndex.of(program)`; built once for all buffers.
        origin: the tick at 0 ns.
        provenance: how the numbers were obtained.
        threads: one lane per thread group, or one per thread.
        barriers: a lane per thread with the time it waited for the others of its group.
    """
    lanes = list(read_lanes(buffer, program, index))
    build = _Build(program, buffer, index, origin, _names(program), np.empty(_max_spans(buffer, lanes), SPAN))
    for lane in lanes:
        build.lane(lane, threads=threads, barriers=barriers)
    for core in range(buffer.capture.cores):
        build.core(core)
    build.device()
    return Trace(
        lanes=build.lanes.lanes,
        names=build.names,
        spans=build.spans[: build.used],
        edges=index.edges,
        counters=(),
        samples=np.zeros(0, COUNTER),
        provenance=provenance,
        op_counts=build.op_counts(),
    )


def joined(blocks: Sequence[Spans]) -> Spans:
    """Concatenate blocks of spans; as bytes, which is much faster than field by field."""
    size = sum(len(block) for block in blocks)
    spans = np.empty(size, SPAN)
    if size:
        np.concatenate([block.view(np.uint8) for block in blocks if len(block)], out=spans.view(np.uint8))
    return spans


def merge_traces(traces: Sequence[Trace]) -> Trace:
    """Merge traces of several devices, inferences or of the host on their common axis; equal lanes become one."""
    lanes = LaneNumbers()
    names: dict[str, int] = {}
    counters: dict[CounterTrack, int] = {}
    spans, samples, counted = [], [], 0
    for trace in traces:
        block, values = trace.spans.copy(), trace.samples.copy()
        block["counts"] += np.where(block["counts"] != NONE, counted, 0).astype(np.int32)
        counted += len(trace.op_counts.rows)
        block["lane"] = lanes.numbers(trace.lanes)[block["lane"]]
        block["name"] = _merged_numbers(trace.names, names)[block["name"]]
        values["counter"] = _merged_numbers(trace.counters, counters)[values["counter"]]
        spans.append(block)
        samples.append(values)
    edges = next((trace.edges for trace in traces if len(trace.edges)), np.zeros(0, EDGE))
    return Trace(
        lanes.lanes,
        tuple(names),
        joined(spans),
        edges,
        tuple(counters),
        np.concatenate(samples),
        traces[0].provenance,
        joined_counts([trace.op_counts for trace in traces]),
    )


def joined_counts(parts: Sequence[OpCounts]) -> OpCounts:
    """Counters of single commands of several traces, one below the other; all are of one program, or there are none."""
    known = [part for part in parts if len(part.rows)]
    return OpCounts(known[0].names, np.concatenate([part.rows for part in known])) if known else OpCounts()


_Key = TypeVar("_Key")


def _merged_numbers(items: Sequence[_Key], known: dict[_Key, int]) -> npt.NDArray[np.int32]:
    """Return the merged number of each item; a new item gets the next number."""
    return np.array([known.setdefault(item, len(known)) for item in items] or [0], np.int32)


def _max_spans(buffer: Buffer, lanes: list[LaneRecords]) -> int:
    """Return an upper bound on the spans: four per op record, plus ports, doorbells, cores and the device."""
    capture = buffer.capture
    kinds = StatsSection.PORTS, StatsSection.DOORBELLS
    ports = sum(len(buffer.records(kind, core)) for kind in kinds for core in range(capture.cores))
    # Work, wait, barrier and transfer of each record.
    return 4 * sum(own.ucycles.size for own in lanes) + ports + capture.cores + 1


def core_execution(core: int) -> str:
    """What the span is called in which a core runs an inference."""
    return f"Core-{core}-Execution"


def _names(program: Program) -> tuple[str, ...]:
    """Return all span names; `_Build` finds its names by position in this tuple."""
    groups = [group.name for group in program.groups]
    syncs = [f"sync {name}" for name in groups] + [f"barrier {name}" for name in groups]
    cores = map(core_execution, range(program.cores))
    devices = [f"Device-{device}-Execution" for device in range(program.devices)]
    return (*program.kinds, *syncs, *cores, *devices, *_PORT_NAMES)


def _port_lane(device: int, core: int, port: int, thread: int) -> Lane:
    return Lane(device, core, f"Host_IO_Port p{port}", thread, role=LaneRole.MARKER)


@dataclass(slots=True)
class _Build:
    """The trace of one buffer under construction."""

    program: Program
    buffer: Buffer
    index: LaneIndex
    origin: int
    names: tuple[str, ...]
    spans: Spans  # allocated for the maximum; pages that are never written cost nothing
    used: int = 0
    lanes: LaneNumbers = field(default_factory=LaneNumbers)
    counted: list[Numbers] = field(default_factory=list)  # counters of single commands, lane after lane

    def ns(self, ticks: Numbers) -> Numbers:
        """Convert ticks to nanoseconds of the trace; equal ticks always give equal nanoseconds."""
        nanoseconds: Numbers = np.rint((ticks - self.origin) * (1e9 / self.program.stats_hz)).astype(np.int64)
        return nanoseconds

    def room(self, count: int) -> Spans:
        """Return the next `count` unused spans."""
        self.used += count
        return self.spans[self.used - count : self.used]

    def number(self, lane: Lane) -> int:
        return self.lanes.number(lane)

    def add(self, lane: Lane | Numbers, kind: SpanKind, commands: Numbers, start: Numbers, end: Numbers) -> Spans:
        """Add a block of spans of commands; the caller fills in name and counters."""
        # Fill the constant fields once and copy them to every row as bytes.
        same = blank_spans(1)
        same["kind"], same["inference"] = kind, self.buffer.capture.inference
        same["lane"] = self.number(lane) if isinstance(lane, Lane) else NONE
        block = self.room(len(start))
        block.view(np.uint8).reshape(len(start), SPAN.itemsize)[:] = same.view(np.uint8)  # quicker than by field
        if not isinstance(lane, Lane):
            block["lane"] = lane
        block["op"] = self.index.op[commands]
        block["command"] = commands
        block["start_ns"], block["end_ns"] = self.ns(start), self.ns(end)
        block["ucycles"] = end - start
        return block

    def lane(self, own: LaneRecords, *, threads: Threads, barriers: Barriers) -> None:
        """Add the spans of one lane: work, waits, and optionally barriers; and its transfers in flight."""
        device, group = self.buffer.capture.device, self.program.groups[own.group]
        moves = self.index.moves[own.commands]
        issued = self._issue_end(own)
        for thread in range(group.threads) if threads is Threads.APART else (NONE,):
            number = own.first_thread + max(thread, 0)
            merged = thread == NONE and group.threads > 1
            role = LaneRole.THREAD if thread != NONE and group.threads > 1 else LaneRole.ENGINE
            lane = Lane(device, own.core, group.name, NONE if merged else number, role=role)
            if thread == NONE:  # the op lasts until its last thread is done
                end, pcycles = own.start + longest(own.ucycles), longest(own.pcycles)
            else:
                end, pcycles = own.start + own.ucycles[:, thread], own.pcycles[:, thread]
            self._ops(lane, own, np.where(moves, issued, end), pcycles)["counts"] = self._counts(own, thread)
        if barriers is not Barriers.NONE:
            owner = self.number(lane)
            for thread in range(group.threads):
                number, name = own.first_thread + thread, f"{group.name} Barrier"
                own_lane = Lane(device, own.core, name, number, role=LaneRole.THREAD, owner=owner)
                self._barriers(own_lane, own, thread, barriers)
        if moves.any():
            self._transfers(own, np.flatnonzero(moves), self.number(lane))

    def _issue_end(self, own: LaneRecords) -> Numbers:
        """Return the tick at which the lane is free again after issuing a transfer.

        The record holds only when the bytes arrived. If the next command of the lane is recorded, its wait began when
        the lane became free; otherwise the cycles that the thread worked give the time.
        """
        ticks_per_cycle = self.program.stats_hz / self.program.clock_hz
        worked = own.start + np.ceil(longest(own.pcycles) * ticks_per_cycle).astype(np.int64)
        ready = np.append((own.start - own.wait)[1:], np.iinfo(np.int64).max)
        follows = np.append(np.diff(own.commands) == 1, False)
        return np.minimum(own.end, np.where(follows, ready, np.minimum(worked, ready)))

    def _ops(self, lane: Lane, own: LaneRecords, end: Numbers, pcycles: npt.NDArray[np.uint32]) -> Spans:
        """Add work and waits of a lane; return the work."""
        work = block = self.add(lane, SpanKind.OP, own.commands, own.start, end)
        block["pcycles"] = pcycles
        block["name"] = self.index.kind[own.commands]
        block["does"] = self.index.at_work[own.commands]
        waited = np.flatnonzero(own.wait)
        block = self.add(lane, SpanKind.WAIT, own.commands[waited], (own.start - own.wait)[waited], own.start[waited])
        block["waits_on"], block["does"] = own.blocker[waited], Does.SYNC
        block["name"] = len(self.program.kinds) + own.group
        return work

    def _counts(self, own: LaneRecords, thread: int) -> Numbers | int:
        """Rows with the counters of the commands of a lane, summed over the threads that the lane stands for.

        A record is what one thread counted of one event in one command, which is named by its place in the lane's part
        of the program. Sums are a table of command × event. Example: a lane of two threads, its commands 10 to 12, of
        which 10 and 12 were recorded, and events 3F and 70:

            records     thread 0, ordinal 0, 3F: 5     thread 1, ordinal 0, 3F: 6     thread 0, ordinal 2, 70: 1
            table       command 10:  11  NONE          command 12:  NONE  1

        What comes back is the numbers of these rows in `op_counts`, behind those of lanes before; NONE: no records.
        """
        records = self.buffer.records(StatsSection.OP_PMU, own.core)
        first, threads = own.first_thread + max(thread, 0), self.program.groups[own.group].threads
        records = records[
            (records["thread"] - first < (threads if thread == NONE else 1)) & (records["thread"] >= first)
        ]
        if not len(records):
            return NONE
        lane = (self.buffer.capture.device * self.program.cores + own.core) * len(self.program.groups) + own.group
        command = self.index.first[lane] + records["ordinal"]
        row = np.minimum(np.searchsorted(own.commands, command), len(own.commands) - 1)
        known = own.commands[row] == command
        order = np.argsort(self.program.stats.events)
        # Columns are events as they were asked for, in any order: found among the sorted ones, `order` says the column.
        event = order[np.searchsorted(np.array(self.program.stats.events)[order], records["event"])]
        shape = len(own.commands), len(order)
        sums, times = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        place = row[known], event[known]
        np.add.at(sums, place, np.minimum(records["value"][known], _MOST_COUNTED).astype(np.int64))
        np.add.at(times, place, 1)
        before = sum(map(len, self.counted))
        self.counted.append(np.where(times > 0, sums, NONE))
        return before + np.arange(len(own.commands))

    def op_counts(self) -> OpCounts:
        return OpCounts(self.program.stats.event_names, np.concatenate(self.counted)) if self.counted else OpCounts()

    def _barriers(self, lane: Lane, own: LaneRecords, thread: int, barriers: Barriers) -> None:
        """Add what a thread waited for the others; a group of one thread meets nobody, and waits no tick."""
        wait = own.barrier[:, thread]
        rows = np.flatnonzero(wait) if barriers is Barriers.LASTING else np.arange(len(wait))
        if not len(rows):
            return
        end = own.end[rows]
        block = self.add(lane, SpanKind.BARRIER, own.commands[rows], end - wait[rows], end)
        block["name"] = len(self.program.kinds) + len(self.program.groups) + own.group
        block["does"] = Does.SYNC

    def _transfers(self, own: LaneRecords, rows: Numbers, issuer: int) -> None:
        """Add spans of bytes in flight, on as many lanes per route as there are concurrent transfers."""
        device, group = self.buffer.capture.device, self.program.groups[own.group]
        routes = self.index.route[own.commands[rows]]
        for route in np.unique(routes[routes != NO_ROUTE]).tolist():
            chosen = rows[routes == route]
            start, end = own.start[chosen], own.end[chosen]
            level = sublanes(self.ns(start), self.ns(end))
            name = f"{group.name} DMA {self.program.routes[route].name}"
            names = [f"{name} {i + 1}" if i else name for i in range(int(level.max()) + 1)]
            numbers = np.array(
                [self.number(Lane(device, own.core, word, role=LaneRole.TRANSFER, owner=issuer)) for word in names]
            )
            block = self.add(numbers[level], SpanKind.TRANSFER, own.commands[chosen], start, end)
            block["pcycles"] = longest(own.pcycles[chosen])
            block["name"] = self.index.kind[own.commands[chosen]]
            block["does"], block["route"] = self.index.does[own.commands[chosen]], route

    def core(self, core: int) -> None:
        """Add the whole inference on a core, its waits for the host's doorbells, and when these rang."""
        threads = self.buffer.records(StatsSection.THREADS, core)
        if not len(threads):
            return
        device, base = self.buffer.capture.device, len(self.program.kinds) + 2 * len(self.program.groups)
        start, end = int(threads["start"].min()), int(threads["end"].max())
        block = self._phase(Lane(device, core, EXECUTION, role=LaneRole.EXECUTION), start, end, base + core)
        block["pcycles"] = threads["pcycles"].max()
        waits = self.buffer.records(StatsSection.PORTS, core)
        for port in waits:
            wait, is_input = int(port["wait"]), port["port"] == INPUT_PORT
            lane = _port_lane(device, core, int(port["port"]), int(port["thread"]))
            if wait:
                begin = start - wait if is_input else end
                self._phase(lane, begin, begin + wait, len(self.names) - (2 if is_input else 1))
        first = {int(port["port"]): int(port["thread"]) for port in waits[::-1]}  # that stands at a port
        for bell in self.buffer.records(StatsSection.DOORBELLS, core):
            number, time = int(bell["port"]), int(bell["time"])
            self._phase(_port_lane(device, core, number, first.get(number, 0)), time, time, len(self.names) - 3)

    def device(self) -> None:
        windows = [self.buffer.records(StatsSection.THREADS, core) for core in range(self.buffer.capture.cores)]
        threads = np.concatenate(windows)
        if len(threads):
            device = self.buffer.capture.device
            number = len(self.names) - len(_PORT_NAMES) - self.program.devices + device
            lane = Lane(device, NONE, EXECUTION, role=LaneRole.EXECUTION)
            self._phase(lane, int(threads["start"].min()), int(threads["end"].max()), number)

    def _phase(self, lane: Lane, start: int, end: int, name: int) -> Spans:
        block = self.room(1)
        block[:] = blank_spans(1)
        block["lane"], block["kind"] = self.number(lane), SpanKind.PHASE
        block["inference"] = self.buffer.capture.inference
        block["start_ns"], block["end_ns"] = self.ns(np.array([start])), self.ns(np.array([end]))
        block["ucycles"], block["name"] = end - start, name
        return block
