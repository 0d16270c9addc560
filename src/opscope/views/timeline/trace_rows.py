"""Lanes of a trace → processes and threads of a viewer, so that nothing is dropped and the order reads well.

A thread id of 0, or one that is also a process id, makes viewers lose spans without a word: thread ids here start
above every process id and never repeat.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...core.errors import printable
from ...core.meaning import LaneRole
from ...recording.run import RunInfo
from ...recording.trace import NONE, CounterTrack, Lane, Trace
from .trace_args import ArgumentWords

OVERVIEW = NONE - 1  # device of a row about all of them
_OVERVIEW_PID, _HOST_PID, _DEVICE_PID, _CORE_PID = 17, 18, 1000, 2000
_LONGEST_NAME = 200


@dataclass(frozen=True, slots=True)
class ViewerRow:
    """One thread of a viewer."""

    pid: int
    tid: int
    name: str
    order: int


@dataclass(frozen=True, slots=True)
class Process:
    """One process of a viewer: a core, a device, the host, or what is about all of them."""

    pid: int
    name: str
    order: int


@dataclass(frozen=True, slots=True)
class Rows:
    """Where everything in a trace is shown."""

    processes: tuple[Process, ...]
    of_lane: tuple[ViewerRow | None, ...]  # None: not selected
    of_counter: tuple[int | None, ...]  # process of every counter

    @property
    def shown(self) -> npt.NDArray[np.bool_]:
        return np.array([row is not None for row in self.of_lane] or [False])

    def overview(self, trace: Trace) -> list[int]:
        """Threads that show again what others have."""
        rows = zip(self.of_lane, trace.lanes, strict=True)
        return [row.tid for row, lane in rows if row is not None and lane.device == OVERVIEW]


def lay_out(
    trace: Trace,
    info: RunInfo,
    *,
    cores: Collection[int] | None = None,
    devices: Collection[int] | None = None,
) -> Rows:
    """A process per device and per core, a thread per lane; `cores` and `devices` choose what is shown.

    In our own words the name of a thread begins with that of its process, as viewers of that format expect.
    """

    def wanted(device: int, core: int) -> bool:
        return device in (NONE, OVERVIEW) or (
            (devices is None or device in devices) and (core == NONE or cores is None or core in cores)
        )

    places = [place for place in sorted(_places(trace)) if wanted(*place)]
    others = [place for place in places if place[0] != OVERVIEW]
    if len(others) == 1:  # what is about all of one process stands in it, on top: viewers order processes as they like
        places = others
    pids = {place: _pid(info, *place) for place in places}
    processes = [
        Process(pid, process_name(info, *place), order) for order, (place, pid) in enumerate(pids.items(), start=1)
    ]
    pids.setdefault((OVERVIEW, NONE), pids[places[0]] if places else _OVERVIEW_PID)
    next_tid = 10_000 * (1 + max(pids.values(), default=0) // 10_000) + 1
    of_lane: list[ViewerRow | None] = [None] * len(trace.lanes)
    order, threaded, alone = 0, _threaded(trace), ArgumentWords.of(info).arguments is not None
    for number in sorted(range(len(trace.lanes)), key=lambda i: _lane_order(trace.lanes[i], i)):
        lane = trace.lanes[number]
        if (lane.device, lane.core) in pids:
            order += 1
            pid = pids[lane.device, lane.core]
            name = printable(lane.name, _LONGEST_NAME) if alone else _lane_name(info, lane, threaded)
            of_lane[number] = ViewerRow(pid, next_tid, name, order)
            next_tid += 1
    return Rows(tuple(processes), tuple(of_lane), tuple(_counter_pid(pids, c) for c in trace.counters))


def _places(trace: Trace) -> set[tuple[int, int]]:
    lanes = {(lane.device, lane.core) for lane in trace.lanes}
    return lanes | {(track.device, track.core) for track in trace.counters}


def _counter_pid(pids: dict[tuple[int, int], int], counter: CounterTrack) -> int | None:
    return pids.get((counter.device, counter.core))


def _pid(info: RunInfo, device: int, core: int) -> int:
    if device in (NONE, OVERVIEW):
        return _HOST_PID if device == NONE else _OVERVIEW_PID
    if core == NONE:
        return _DEVICE_PID + device
    first = max(_CORE_PID, _DEVICE_PID + info.devices)
    return first + device * max(100, info.cores) + core


def process_name(info: RunInfo, device: int, core: int) -> str:
    """`Network_Core_3`, `Network_slice01_Core_3`, or of a whole device `Network Device 0`."""
    if device in (NONE, OVERVIEW):
        return "Host" if device == NONE else "Overview"
    name = printable(info.network, _LONGEST_NAME)
    if info.devices > 1:
        name += f"_slice{device:02d}"
    return f"{name} Device {device}" if core == NONE else f"{name}_Core_{core}"


def _lane_name(info: RunInfo, lane: Lane, threaded: Collection[str]) -> str:
    if lane.device in (NONE, OVERVIEW):
        return printable(lane.name, _LONGEST_NAME)
    core = process_name(info, lane.device, lane.core)
    name = printable(lane.name, _LONGEST_NAME)
    if lane.role is LaneRole.EXECUTION:  # behind the word: whose, where several are at work
        return " ".join((core, *name.split()[1:]))
    group, _, rest = name.partition(" ")
    thread = f"_t{lane.thread}" if lane.thread != NONE and group in threaded else ""
    return f"{core}_{group}{thread}" + (f"_{rest}" if rest else "")


_ROLE_ORDER = {LaneRole.EXECUTION: 0, LaneRole.MARKER: 1, LaneRole.TRANSFER: 3}


def _threaded(trace: Trace) -> set[str]:
    """Groups of which one core has several threads."""
    threads: dict[tuple[str, int, int], set[int]] = {}
    for lane in trace.lanes:
        if lane.thread != NONE and lane.role in (LaneRole.THREAD, LaneRole.ENGINE):
            name = lane.name if lane.owner == NONE else trace.lanes[lane.owner].name
            threads.setdefault((name, lane.device, lane.core), set()).add(lane.thread)
    return {group for (group, _, _), found in threads.items() if len(found) > 1}


def stats_hz(info: RunInfo) -> float:
    """Of the timer that spans are counted in."""
    return info.clocks_hz.get("stats", info.clocks_hz.get("core", 1e9))


def _lane_order(lane: Lane, number: int) -> tuple[int, int, int, int]:
    """The core as a whole, its ports, its engines, then what they have in flight."""
    return lane.device, lane.core, _ROLE_ORDER.get(lane.role, 2), number
