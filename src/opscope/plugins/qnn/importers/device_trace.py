"""Op trace of a device as Chrome JSON (made by the SDK's viewer) → spans of its threads, in cycles."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from ....core.errors import ImportFileError

_THREAD = re.compile(r"(?:Core:\s*(\d+)\s+)?Type:\s*(\w+)(?:\s+Tid:\s*(\d+))?")
_AGAIN = "QNN::"  # processes that show the same spans again, by node
_IDLE = ("Non Executed",)


class _Args(msgspec.Struct):
    name: str = ""
    node: str = msgspec.field(default="", name="QNN Op Name")
    type: str = msgspec.field(default="", name="QNN Op Type")
    kernel: str = msgspec.field(default="", name="HTP Op Type")
    cycles: float | None = msgspec.field(default=None, name="Duration (cycles)")


class _Entry(msgspec.Struct):
    name: str = ""
    ph: str = ""
    pid: int | str = 0
    tid: int | str = 0
    ts: float = 0
    dur: float = 0
    args: _Args = msgspec.field(default_factory=_Args)


class _File(msgspec.Struct):
    entries: list[_Entry] = msgspec.field(name="traceEvents")


@dataclass(frozen=True, slots=True)
class DeviceSpan:
    """One kernel on one thread of a device."""

    lane: str
    engine: str  # HVX, HMX, DMA or another word of the file
    node: str
    type: str
    kernel: str
    start: int  # cycles
    cycles: int


def read_optrace(raw: bytes, *, source: str) -> tuple[DeviceSpan, ...]:
    """Every span once, by time."""
    try:
        file = msgspec.json.decode(raw, type=_File, strict=False)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ImportFileError(source, "", f"not an op trace of a device: {error}") from error
    processes = {entry.pid: entry.args.name for entry in file.entries if entry.name == "process_name"}
    threads = {(e.pid, e.tid): e.args.name for e in file.entries if e.ph == "M" and e.name == "thread_name"}
    again = {pid for pid, name in processes.items() if name.startswith(_AGAIN)}
    shown = [entry for entry in file.entries if entry.ph == "X" and entry.dur >= 0]
    overview = [entry for entry in shown if entry.pid not in again] or shown
    spans = {(span.lane, span.start, span.cycles, span.kernel, span.node): span for span in _spans(overview, threads)}
    if not spans:
        raise ImportFileError(
            source, "", "no span of a kernel in it; expected events with `HTP Op Type` or `QNN Op Name`"
        )
    return tuple(sorted(spans.values(), key=lambda span: (span.start, span.lane)))


def _spans(entries: list[_Entry], threads: dict[tuple[int | str, int | str], str]) -> Iterator[DeviceSpan]:
    """Spans of work; threads that mark idle time are left out."""
    for entry in entries:
        lane = threads.get((entry.pid, entry.tid), f"thread {entry.tid}")
        if lane.startswith(_IDLE):
            continue
        match = _THREAD.search(lane)
        args = entry.args
        cycles = entry.dur if args.cycles is None else args.cycles
        kernel = (args.kernel or entry.name).removeprefix("q::")
        yield DeviceSpan(
            lane=lane,
            engine=match[2] if match else lane.split()[0],
            node=args.node,
            type=args.type,
            kernel=kernel,
            start=round(entry.ts),
            cycles=round(cycles),
        )
