"""Values of the PMU events that a program counts, per command and per thread."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..core.errors import printable
from ..program.check import fault
from ..program.program import PMU_COUNTS, Program
from ..program.wire import OP_PMU_RECORD, PMU_RECORD
from .lane_times import LaneTimes

Counts = npt.NDArray[np.uint64]  # as wide as in the buffer, so that no figure of a file can overflow them
Records = npt.NDArray[np.void]

_ROUTE_COUNTS = {  # what a transfer must carry to be counted; whether bytes are, or requests of the bus
    "read_bytes": ("read", False),
    "write_bytes": ("write", False),
    "read_requests": ("read", True),
    "write_requests": ("write", True),
}


@dataclass(frozen=True, slots=True)
class Event:
    """One counted event: its number, the quantity it counts, and the groups it counts on."""

    number: int
    counts: str  # one of PMU_COUNTS
    groups: frozenset[int]


def counted_events(program: Program) -> tuple[Event, ...]:
    """Return the events of the program's stats options, checked."""
    stats = program.stats
    if len(stats.events) != len(stats.event_counts):
        raise fault(program, f"{len(stats.event_counts)} event_counts; expected {len(stats.events)}, as events")
    events = []
    for number, text in zip(stats.events, stats.event_counts, strict=True):
        if not text:  # an event that is not simulated
            continue
        counts, _, name = text.partition(":")
        groups = frozenset(i for i, group in enumerate(program.groups) if name in ("", group.name))
        if counts not in PMU_COUNTS or not groups or not 0 <= number <= 0xFFFF:
            known = ", ".join(PMU_COUNTS)
            raise fault(
                program,
                f"event {number:#x} counts {printable(text)!r}; expected one of {known}, alone or with a "
                f"colon and a group ({', '.join(printable(group.name, 40) for group in program.groups)}), and 16 bits",
            )
        if "requests" in counts and not 1 <= stats.request_bytes <= 2**32:
            found = f"event {number:#x} counts requests of {stats.request_bytes} bytes"
            raise fault(program, f"{found}; expected a size of 1 to {2**32}")
        events.append(Event(number, counts, groups))
    return tuple(events)


def thread_counters(program: Program, events: tuple[Event, ...], lanes: list[LaneTimes]) -> Records:
    """Return one record per thread and event of a core; an event of one group counts on its threads only."""
    rows = []
    for lane in lanes:
        for event in events:
            if lane.group in event.groups:
                values = _thread_totals(program, event.counts, lane).tolist()
                rows += [(lane.first_thread + i, event.number, 0, value) for i, value in enumerate(values)]
    return np.array(rows, PMU_RECORD)


def command_counters(
    program: Program, events: tuple[Event, ...], lane: LaneTimes, kept: npt.NDArray[np.bool_]
) -> Records:
    """Return one record per kept command, thread and event of a lane."""
    ours = [event for event in events if lane.group in event.groups]
    records = np.zeros((int(kept.sum()), lane.threads, len(ours)), OP_PMU_RECORD)
    records["ordinal"] = lane.commands["ordinal"][kept][:, None, None]
    records["thread"] = lane.first_thread + np.arange(lane.threads)[:, None]
    for column, event in enumerate(ours):
        records["event"][:, :, column] = event.number
        records["value"][:, :, column] = _per_command(program, event.counts, lane)[kept]
    return records.reshape(-1)


def route_bytes(program: Program, lanes: list[LaneTimes], carries: str) -> int:
    """Return the bytes that the lanes of a core moved on routes of this direction."""
    return sum(int(lane.commands["moved_bytes"][_on_route(program, lane, carries)].sum()) for lane in lanes)


def _thread_totals(program: Program, counts: str, lane: LaneTimes) -> Counts:
    if counts == "cycles":  # of the whole inference, waits included
        end = int(lane.clock.pcycles(np.array([lane.window]))[0])
        return np.full(lane.threads, end, np.uint64)
    if counts == "transfer_cycles":  # those in flight together count once
        return np.array([lane.moving_pcycles, *[0] * (lane.threads - 1)], np.uint64)
    totals: Counts = _per_command(program, counts, lane).sum(axis=0, dtype=np.uint64)
    return totals


def _per_command(program: Program, counts: str, lane: LaneTimes) -> Counts:
    """Return the event's values, one row per command and one column per thread."""
    shape = (len(lane.commands), lane.threads)
    if counts == "busy_cycles":
        return np.where(lane.is_of_program[:, None], lane.pcycles, 0).astype(np.uint64)
    if counts == "macs":
        return _split_evenly(lane.commands["macs"], lane.threads)
    if counts in _ROUTE_COUNTS:
        carries, is_request = _ROUTE_COUNTS[counts]
        values = np.zeros(shape, np.uint64)  # a transfer counts on the thread that issues it, the first
        moved = lane.commands["moved_bytes"]
        size = np.uint64(program.stats.request_bytes)
        amount = moved // size + (moved % size > 0) if is_request else moved
        values[:, 0] = np.where(_on_route(program, lane, carries), amount, 0)
        return values
    if counts == "transfer_cycles":
        values = np.zeros(shape, np.uint64)
        values[:, 0] = np.where(lane.is_of_program, lane.flight_pcycles, 0)
        return values
    counts_by_command = {
        "cycles": lane.held_pcycles,
        "wait_cycles": lane.wait_pcycles,
        "commands": np.ones(shape[0], np.int64),
    }[counts]
    return np.broadcast_to(counts_by_command[:, None], shape).astype(np.uint64)


def _split_evenly(whole: Counts, threads: int) -> Counts:
    """Divide into equal integers with the same sum: the first threads take one more if there is a remainder."""
    each, rest = np.divmod(whole[:, None], np.uint64(threads))
    return each + (np.arange(threads, dtype=np.uint64) < rest)


def _on_route(program: Program, lane: LaneTimes, carries: str) -> npt.NDArray[np.bool_]:
    wanted = np.array([route.carries == carries for route in program.routes] + [False], np.bool_)
    chosen: npt.NDArray[np.bool_] = wanted[lane.commands["route"]]  # no route is -1: the last entry
    return chosen
