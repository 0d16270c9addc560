"""Chrome JSON of the host's events → Trace, to stand above the device on the same clock.

Times are microseconds of the statistics timer: tick ÷ frequency. A file may say otherwise with
`"otherData": {"ticks_at_zero": N}`: then its 0 µs is tick N.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from ..core.errors import UsageError, printable
from ..core.files import read_whole
from ..core.meaning import Does, LaneRole
from ..core.provenance import Provenance
from ..recording.trace import COUNTER, EDGE, NONE, Lane, LaneNumbers, SpanKind, Trace, blank_spans

_LONGEST_NS = 2**62
_OWNER = re.compile(r"Activation (\d{1,9}) ")
_DEVICE = re.compile(r"_Core_\d+\]?$| Device \d+$")  # how processes of cores and devices are called


class ActivationError(UsageError):
    """The host trace is of other activations than the sample."""


class _Event(msgspec.Struct):
    ph: str = ""
    name: str = ""
    pid: int | str = 0
    tid: int | str = 0
    ts: float = 0.0
    dur: float = 0.0
    args: dict[str, object] = {}


class _File(msgspec.Struct):
    traceEvents: list[_Event] = []  # noqa: N815 - the name is the format's
    otherData: dict[str, object] = {}  # noqa: N815


def read_host_trace(path: Path, *, stats_hz: float, origin_tick: int, activation: int) -> Trace:
    """Complete events and begin/end pairs as spans of host lanes; `origin_tick` is the 0 ns of the result.

    Of threads that name an activation, as in traces of our own runs, those of another one are left out.
    """
    file = _decode(path)
    zero = file.otherData.get("ticks_at_zero", 0)
    if not isinstance(zero, int | float):
        raise UsageError(f"{path}: otherData.ticks_at_zero is {zero!r}; expected a number of ticks")
    shift_ns = (zero - origin_tick) * 1e9 / stats_hz
    names: dict[str, int] = {}
    lanes = LaneNumbers()
    rows = []
    threads = _threads(file.traceEvents)
    if file.traceEvents and not threads:
        raise UsageError(f"{path}: no event of a host; expected the trace that the run wrote, with its stages")
    owners = {thread: int(found[1]) for thread in threads if (found := _OWNER.match(thread))}
    if owners and activation not in owners.values():
        known = ", ".join(map(str, sorted(set(owners.values()))))
        raise ActivationError(f"{path}: of activation {known}; expected the host trace of activation {activation}")
    for thread, events in threads.items():
        if owners.get(thread, activation) != activation:
            continue
        owner = lanes.number(Lane(NONE, NONE, thread, role=LaneRole.HOST))
        for level, name, start, end in _levels(_calls(events)):
            deeper = Lane(NONE, NONE, f"{thread} {level + 1}", role=LaneRole.NESTED, owner=owner)
            times = (round(start + shift_ns), round(end + shift_ns))
            if max(map(abs, times)) > _LONGEST_NS:
                raise UsageError(f"{path}: event {printable(name)!r} at {start} ns; expected times below 2^62 ns")
            number = names.setdefault(printable(name, 200), len(names))
            rows.append((lanes.number(deeper) if level else owner, *times, number))
    spans = blank_spans(len(rows))
    spans["kind"], spans["does"], spans["inference"] = SpanKind.HOST, Does.HOST, NONE
    for column, values in zip(("lane", "start_ns", "end_ns", "name"), zip(*rows, strict=True), strict=False):
        spans[column] = values
    return Trace(lanes.lanes, tuple(names), spans, np.zeros(0, EDGE), (), np.zeros(0, COUNTER), Provenance.MEASURED)


def _decode(path: Path) -> _File:
    raw = read_whole(path, "a Chrome trace in JSON")
    try:
        if raw.lstrip()[:1] == b"[":
            return _File(msgspec.json.decode(raw, type=list[_Event]))
        return msgspec.json.decode(raw, type=_File)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise UsageError(f'{path}: is no Chrome trace ({error}); expected {{"traceEvents": […]}}') from error


def _threads(events: list[_Event]) -> dict[str, list[_Event]]:
    """Events by the name of their thread; of a trace that also has the device in it, those of the host alone."""
    processes = {e.pid: str(e.args.get("name", "")) for e in events if e.ph == "M" and e.name == "process_name"}
    host = {pid for pid, name in processes.items() if name.upper().startswith("HOST")}
    device = {pid for pid, name in processes.items() if _DEVICE.search(name)}
    names = {(e.pid, e.tid): str(e.args.get("name", "")) for e in events if e.ph == "M" and e.name == "thread_name"}
    found: dict[str, list[_Event]] = {}
    for event in events:
        if event.ph in ("X", "B", "E") and (event.pid in host if host else event.pid not in device):
            name = names.get((event.pid, event.tid)) or f"host {event.pid}/{event.tid}"
            found.setdefault(printable(name, 200), []).append(event)
    return found


def _calls(events: list[_Event]) -> Iterator[tuple[str, int, int]]:
    """Name, start and end in whole ns, so that spans which touch do not overlap by a rounding of their sum.

    An end belongs to the last begin that is open.
    """
    open_events: list[_Event] = []
    for event in sorted(events, key=lambda e: e.ts):
        if event.ph == "X":
            yield event.name, _ns(event.ts), _ns(event.ts + max(event.dur, 0.0))
        elif event.ph == "B":
            open_events.append(event)
        elif open_events:
            begin = open_events.pop()
            yield begin.name, _ns(begin.ts), _ns(event.ts)


def _ns(microseconds: float) -> int:
    return round(microseconds * 1000)


def _levels(calls: Iterator[tuple[str, int, int]]) -> Iterator[tuple[int, str, int, int]]:
    """Spans may stand inside each other on one lane; one that only overlaps gets another lane."""
    stacks: list[list[int]] = []
    for name, start, end in sorted(calls, key=lambda s: (s[1], -s[2])):
        level = 0
        while True:
            if level == len(stacks):
                stacks.append([])
            stack = stacks[level]
            while stack and stack[-1] <= start:
                stack.pop()
            if not stack or end <= stack[-1]:
                stack.append(end)
                break
            level += 1
        yield level, name, start, end


def near(host: Trace, end: int) -> npt.NDArray[np.bool_]:
    """Host spans that touch the sample, or as much time before and after it, or a span that does: its whole way."""
    starts, ends = host.spans["start_ns"], host.spans["end_ns"]
    touches = (ends >= -end) & (starts <= 2 * end)
    if not touches.any():
        return touches
    found: npt.NDArray[np.bool_] = (ends >= starts[touches].min()) & (starts <= ends[touches].max())
    return found
