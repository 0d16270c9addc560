"""What a run on a device consists of: events that hold one another, taken apart, and what follows from them.

The runtime's call holds the remote procedure call, that holds its far end, that holds the accelerator at work, with
and without its waits (QnnHtpProfile.h). Where in the call VTCM is acquired and the engines are powered up, no event
says: both are taken out of what is not work, from the inside outwards.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ....core.meaning import Does, Party
from ....core.units import format_ns, format_percent, format_seconds
from ....recording.finding import Finding
from ....recording.summary import HostStage
from .events import EXECUTE_TIME

NETRUN, RPC, FAR_END = "NetRun", "RPC (execute) time", "QNN accelerator (execute) time"
ACCELERATOR, WORKING = "Accelerator (execute) time", "Accelerator (execute excluding wait) time"
VTCM, POWER_UP = "Time for initial VTCM acquire", "Time for HVX + HMX power on and acquire"
TOTALS = (NETRUN, EXECUTE_TIME)  # the first that is there is what the application sees
EVENTS = (*TOTALS, RPC, FAR_END, ACCELERATOR, WORKING, VTCM, POWER_UP)

DEVICE = "device"
_LEVELS = (("runtime", EXECUTE_TIME), ("RPC", RPC), ("dispatch", FAR_END), ("resource wait", ACCELERATOR))
_INSIDE = ("resource wait", "dispatch", "RPC")  # what acquisitions are taken out of, the innermost first
_ACQUIRED = (("memory wait", VTCM), ("power-up", POWER_UP))
_ORDER = ("runtime", "RPC", "dispatch", "memory wait", "power-up", "resource wait", DEVICE)
_CALL = ("runtime", "RPC", "dispatch")
_WORDS = {"memory wait": "VTCM acquisition", "resource wait": "other waits", DEVICE: "accelerator"}
WORTH = 0.05  # of what the application waits: a part above it is worth a line
_ACTIONS = {
    "call": (
        "do more in one call: a larger graph, several inputs at once; share buffers with the accelerator, "
        "and let the runtime poll (rpc_polling_time, rpc_control_latency)"
    ),
    "power-up": (
        "keep the engines powered between calls: one session for all of them, performance mode burst or "
        "sustained_high_performance; leave a first call out of what is timed"
    ),
    "memory wait": "another graph holds VTCM: run one at a time, give this one priority, or compile it for less VTCM",
    "resource wait": "other work holds the engines: run one graph at a time, or give this one priority",
}
_TITLES = {
    "call": "the call of the accelerator, without its work, takes",
    "power-up": "powering up HVX and HMX takes",
    "memory wait": "waiting for VTCM takes",
    "resource wait": "waits on the accelerator take",
}
_RULES = {  # a part, or several that one change shortens → id of the finding
    "call": "host-stages",
    "power-up": "power-up",
    "memory wait": "memory-wait",
    "resource wait": "resource-wait",
}


_DOES = {"memory wait": Does.SYNC, "resource wait": Does.SYNC, "power-up": Does.LAUNCH}


@dataclass(frozen=True, slots=True)
class Parts:
    """One inference as the application sees it."""

    stages: tuple[HostStage, ...]  # add up to the whole; empty: the file does not tell the parts
    notes: tuple[str, ...] = ()

    @property
    def whole_ns(self) -> int:
        return sum(stage.ns for stage in self.stages)


def _stage(name: str, ns: int) -> HostStage:
    """The call, from runtime to accelerator, is one part of the runtime behind the other."""
    party = Party.DEVICE if name == DEVICE else Party.UNKNOWN
    return HostStage(name, ns, party, _DOES.get(name, Does.HOST).label)


def parts_of(events: Mapping[str, float | None]) -> Parts:
    """`events` has the mean time of every event, in microseconds."""
    notes: list[str] = []
    known = list(_nested(events, notes))
    if len(known) < 2 or work_us(events) is None:
        return Parts((), tuple(notes))
    gaps = {name: outer - inner for (name, outer), (_, inner) in pairwise(known)}
    gaps[DEVICE] = known[-1][1]
    for name, event in _ACQUIRED:
        time = events.get(event)
        room = sum(gaps.get(place, 0.0) for place in _INSIDE)
        if time and time <= room:
            gaps[name] = time
            _take(gaps, time)
        elif time:
            words = f"{event}, {format_seconds(time / 1e6)}, is longer than all of the call that is not work"
            notes.append(f"{words}, {format_seconds(room / 1e6)}: it lies outside of the call, and is in no part of it")
    return Parts(tuple(_stage(name, round(gaps[name] * 1e3)) for name in _ORDER if gaps.get(name)), tuple(notes))


def _nested(events: Mapping[str, float | None], notes: list[str]) -> Iterator[tuple[str, float]]:
    """Name of what an event adds around the next, and its time; the outermost first, none longer than the one before.

    Of the whole, the first that is told; the accelerator's is the work itself where its waits are not told.
    """
    total = next((value for name in TOTALS if (value := events.get(name)) is not None), None)
    levels = [(name, event, total if event == EXECUTE_TIME else events.get(event)) for name, event in _LEVELS]
    levels.append((DEVICE, WORKING, events.get(WORKING)))
    before: tuple[str, float] | None = None
    for name, event, value in levels:
        if value is None:
            continue
        if before is not None and value > before[1]:
            notes.append(f"{event} is longer than {before[0]}, which holds it: it is left out of the parts")
            continue
        before = event, value
        yield name, value


def _take(gaps: dict[str, float], time: float) -> None:
    """Out of what is not work, the innermost first."""
    for place in _INSIDE:
        part = min(gaps.get(place, 0.0), time)
        if part:
            gaps[place] -= part
            time -= part


def causes_of(parts: Parts, *, calls: int) -> Iterator[Finding]:
    """Parts around the work that take much of what the application waits; `calls` of the accelerator make one run."""
    whole = parts.whole_ns
    times = {stage.name: stage.ns for stage in parts.stages}
    times["call"] = sum(times.get(name, 0) for name in _CALL)
    detail = ", ".join(f"{_WORDS.get(stage.name, stage.name)} {format_ns(stage.ns)}" for stage in parts.stages)
    several = f"; {calls} calls, one per graph" if calls > 1 else ""
    for name, rule in _RULES.items():
        cost = times.get(name, 0)
        if whole and cost >= WORTH * whole:
            share = cost / whole
            title = f"{_TITLES[name]} {format_percent(share)} of the {format_ns(whole)} that the run takes"
            yield Finding(rule, title, detail + several, (), cost, share, _ACTIONS[name])


def work_us(events: Mapping[str, float | None]) -> float | None:
    """Time of the accelerator at work: without its waits, where they are told."""
    return next((value for name in (WORKING, ACCELERATOR) if (value := events.get(name)) is not None), None)


def shared_times(cycles: Sequence[int | None], events: Mapping[str, float | None]) -> Iterator[int | None]:
    """Time of every node, in ns: its part of the accelerator's, by its cycles, which add up over threads."""
    work, whole = work_us(events), sum(filter(None, cycles))
    for count in cycles:
        yield None if count is None or work is None or not whole else round(count * work * 1e3 / whole)
