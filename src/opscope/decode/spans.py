"""Buffers of one inference → Trace: spans of lanes, waits, transfers in flight, barriers and whole cores."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum

import numpy as np
import numpy.typing as npt

from ..program import NO_ROUTE, TRUE, Program
from ..trace import COUNTER, EDGE, NONE, SPAN, Lane, SpanKind, Trace
from ..wire import INPUT_PORT, StatsSection
from .buffer import Buffer
from .lanes import LaneIndex, LaneRecords, read_lanes
from .sublanes import sublanes

Numbers = npt.NDArray[np.int64]
Spans = npt.NDArray[np.void]


class Threads(Enum):
    """How the threads of a group become lanes."""

    MERGED = "merged"  # one lane per group: a command lasts until its last thread is done
    APART = "apart"  # one lane per thread


def origin_tick(buffers: Iterable[Buffer]) -> int:
    """The first tick that any of the buffers knows of: the zero of their common axis."""
    ticks = []
    for buffer in buffers:
        for core in range(buffer.capture.cores):
            threads = buffer.records(StatsSection.THREADS, core)
            waits = buffer.records(StatsSection.PORTS, core)
            waited = waits["wait"][waits["port"] == INPUT_PORT].max(initial=0)
            ticks += [int(threads["start"].min()) - int(waited)] if len(threads) else []
    return min(ticks, default=0)


def decode_trace(
    program: Program,
    buffer: Buffer,
    index: LaneIndex,
    *,
    origin: int,
    provenance: str,
    threads: Threads = Threads.MERGED,
    barriers: bool = False,
) -> Trace:
    """What one device did in one inference.

    Args:
        program: what ran.
        buffer: checked with `check_buffer`.
        index: `LaneIndex.of(program)`; made once for all buffers.
        origin: tick at 0 ns.
        provenance: how the numbers were obtained.
        threads: one lane per thread group, or one per thread.
        barriers: add a lane per thread with the time it waited for the others of its group.
    """
    build = _Build(program, buffer, origin, _names(program))
    for lane in read_lanes(buffer, program, index):
        build.lane(lane, index, threads=threads, barriers=barriers)
    for core in range(buffer.capture.cores):
        build.core(core)
    build.device()
    return Trace(
        lanes=tuple(build.lanes),
        names=build.names,
        spans=np.concatenate([np.zeros(0, SPAN), *build.blocks]),
        edges=program_edges(program),
        counters=(),
        samples=np.zeros(0, COUNTER),
        provenance=provenance,
    )


def program_edges(program: Program) -> npt.NDArray[np.void]:
    """The dependencies of a program as edges of a trace."""
    edges = np.zeros(len(program.dependency_sources), EDGE)
    edges["source"] = program.dependency_sources
    edges["target"] = np.repeat(np.arange(len(program.commands)), np.diff(program.dependency_offsets))
    edges["data"] = program.dependency_kinds == TRUE
    return edges


def merge_traces(traces: Sequence[Trace]) -> Trace:
    """Traces of several devices or inferences of one program, on the axis they share. Lanes of one name become one."""
    lanes: dict[Lane, int] = {}
    counters: dict[object, int] = {}
    spans, samples = [], []
    for trace in traces:
        block, values = trace.spans.copy(), trace.samples.copy()
        place = np.array([lanes.setdefault(lane, len(lanes)) for lane in trace.lanes], np.int32)
        block["lane"] = place[block["lane"]]
        track = np.array([counters.setdefault(counter, len(counters)) for counter in trace.counters], np.int32)
        values["counter"] = track[values["counter"]] if len(track) else values["counter"]
        spans.append(block)
        samples.append(values)
    first = traces[0]
    tracks = tuple(dict.fromkeys(counter for trace in traces for counter in trace.counters))
    return Trace(tuple(lanes), first.names, np.concatenate(spans), first.edges, tracks, np.concatenate(samples),
                 first.provenance)  # fmt: skip


def _names(program: Program) -> tuple[str, ...]:
    groups = [group.name for group in program.groups]
    syncs = [f"sync {name}" for name in groups] + [f"barrier {name}" for name in groups]
    cores = [f"Core-{core}-Execution" for core in range(program.cores)]
    devices = [f"Device-{device}-Execution" for device in range(program.devices)]
    return (*program.kinds, *syncs, *cores, *devices, "Host_IO_Port input wait", "Host_IO_Port output wait")


@dataclass(slots=True)
class _Build:
    """The growing trace of one buffer."""

    program: Program
    buffer: Buffer
    origin: int
    names: tuple[str, ...]
    lanes: dict[Lane, int] = field(default_factory=dict)
    blocks: list[Spans] = field(default_factory=list)

    def ns(self, ticks: Numbers) -> Numbers:
        """Ticks on the axis of the trace. The same tick is the same nanosecond wherever it occurs."""
        return np.rint((ticks - self.origin) * (1e9 / self.program.stats_hz)).astype(np.int64)

    def number(self, lane: Lane) -> int:
        return self.lanes.setdefault(lane, len(self.lanes))

    def add(self, lane: Lane | Numbers, kind: SpanKind, commands: Numbers, start: Numbers, end: Numbers) -> Spans:
        """A block of spans of commands; the caller fills in what is left."""
        block = np.zeros(len(start), SPAN)
        block["lane"] = self.number(lane) if isinstance(lane, Lane) else lane
        block["kind"] = kind
        block["inference"] = self.buffer.capture.inference
        block["op"] = self.program.commands["op"][commands]
        block["command"] = commands
        block["start_ns"], block["end_ns"] = self.ns(start), self.ns(end)
        block["ucycles"] = end - start
        block["pcycles"], block["waits_on"] = NONE, NONE
        self.blocks.append(block)
        return block

    def lane(self, own: LaneRecords, index: LaneIndex, *, threads: Threads, barriers: bool) -> None:
        device, group = self.buffer.capture.device, self.program.groups[own.group]
        moves = index.moves[own.commands]
        issued = self._issue_end(own)
        for thread in range(group.threads) if threads is Threads.APART else (NONE,):
            number = own.first_thread + max(thread, 0)
            merged = thread == NONE and group.threads > 1
            lane = Lane(device, own.core, group.name, NONE if merged else number)
            if thread == NONE:  # the op lasts until its last thread is done
                end, pcycles = own.start + own.ucycles.max(axis=1), own.pcycles.max(axis=1)
            else:
                end, pcycles = own.start + own.ucycles[:, thread], own.pcycles[:, thread]
            self._ops(lane, own, np.where(moves, issued, end), pcycles)
        if barriers:
            for thread in range(group.threads):
                self._barriers(Lane(device, own.core, f"{group.name} Barrier", own.first_thread + thread), own, thread)
        if moves.any():
            self._transfers(own, np.flatnonzero(moves))

    def _issue_end(self, own: LaneRecords) -> Numbers:
        """Tick at which the lane goes on after the issue of a transfer: where the next command finds it free."""
        ticks_per_cycle = self.program.stats_hz / self.program.clock_hz
        worked = own.start + np.ceil(own.pcycles.max(axis=1) * ticks_per_cycle).astype(np.int64)
        ready = np.append((own.start - own.wait)[1:], np.iinfo(np.int64).max)
        follows = np.append(np.diff(own.commands) == 1, False)
        return np.minimum(own.end, np.where(follows, ready, np.minimum(worked, ready)))

    def _ops(self, lane: Lane, own: LaneRecords, end: Numbers, pcycles: Numbers) -> None:
        block = self.add(lane, SpanKind.OP, own.commands, own.start, end)
        block["pcycles"] = pcycles
        block["name"] = self.program.commands["kind"][own.commands]
        waited = np.flatnonzero(own.wait)
        block = self.add(lane, SpanKind.WAIT, own.commands[waited], (own.start - own.wait)[waited], own.start[waited])
        block["waits_on"] = own.blocker[waited]
        block["name"] = len(self.program.kinds) + own.group

    def _barriers(self, lane: Lane, own: LaneRecords, thread: int) -> None:
        stood = np.flatnonzero(own.barrier[:, thread])
        end = own.end[stood]
        block = self.add(lane, SpanKind.BARRIER, own.commands[stood], end - own.barrier[stood, thread], end)
        block["name"] = len(self.program.kinds) + len(self.program.groups) + own.group

    def _transfers(self, own: LaneRecords, rows: Numbers) -> None:
        """Bytes in flight, on as many lanes per route as are in flight at once."""
        device, group = self.buffer.capture.device, self.program.groups[own.group]
        routes = self.program.commands["route"][own.commands[rows]]
        for route in np.unique(routes[routes != NO_ROUTE]).tolist():
            chosen = rows[routes == route]
            start, end = own.start[chosen], own.end[chosen]
            level = sublanes(self.ns(start), self.ns(end))
            name = f"{group.name} DMA {self.program.routes[route].name}"
            numbers = np.array([
                self.number(Lane(device, own.core, f"{name} {i + 1}" if i else name))
                for i in range(int(level.max()) + 1)
            ])  # fmt: skip
            block = self.add(numbers[level], SpanKind.TRANSFER, own.commands[chosen], start, end)
            block["pcycles"] = own.pcycles[chosen].max(axis=1)
            block["name"] = self.program.commands["kind"][own.commands[chosen]]

    def core(self, core: int) -> None:
        """The whole inference on a core, and how long it stood at the host's doorbells."""
        threads = self.buffer.records(StatsSection.THREADS, core)
        if not len(threads):
            return
        device, base = self.buffer.capture.device, len(self.program.kinds) + 2 * len(self.program.groups)
        start, end = int(threads["start"].min()), int(threads["end"].max())
        block = self._phase(Lane(device, core, "Execution"), start, end, base + core)
        block["pcycles"] = threads["pcycles"].max()
        for port in self.buffer.records(StatsSection.PORTS, core):
            wait, is_input = int(port["wait"]), port["port"] == INPUT_PORT
            lane = Lane(device, core, f"Host_IO_Port p{port['port']}", int(port["thread"]))
            if wait:
                begin = start - wait if is_input else end
                self._phase(lane, begin, begin + wait, len(self.names) - (2 if is_input else 1))

    def device(self) -> None:
        windows = [self.buffer.records(StatsSection.THREADS, core) for core in range(self.buffer.capture.cores)]
        threads = np.concatenate(windows)
        if len(threads):
            device = self.buffer.capture.device
            number = len(self.names) - 2 - self.program.devices + device
            self._phase(Lane(device, NONE, "Execution"), int(threads["start"].min()), int(threads["end"].max()), number)

    def _phase(self, lane: Lane, start: int, end: int, name: int) -> Spans:
        block = np.zeros(1, SPAN)
        block["lane"], block["kind"] = self.number(lane), SpanKind.PHASE
        block["inference"] = self.buffer.capture.inference
        block["op"], block["command"], block["pcycles"], block["waits_on"] = NONE, NONE, NONE, NONE
        block["start_ns"], block["end_ns"] = self.ns(np.array([start])), self.ns(np.array([end]))
        block["ucycles"], block["name"] = end - start, name
        self.blocks.append(block)
        return block
