"""Trace Event JSON → spans, counters and names in columns. What is read of it, and what is counted only:

X  B E  b e   spans (complete, begin and end on a thread, begin and end of an id)
C             counters, one track per series
M             names of processes and threads
others        counted: instants, flows, objects, samples, memory dumps, clock syncs
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import compress, count, repeat
from operator import eq
from typing import TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from ..core.columns import Floats, Numbers
from ..core.errors import ImportFileError, printable
from ..core.json_files import decode_json
from ..recording.trace import NONE
from .reading import LONGEST_NS, Unread

Key = int | str | None
Thread = tuple[Key, Key]  # process, thread
V = TypeVar("V")

_START = re.compile(rb"(?:\xef\xbb\xbf)?\s*([\[{])")
_KINDS = {
    "i": "instant",
    "I": "instant",
    "R": "instant",
    "n": "instant of an id",
    "s": "flow",
    "t": "flow",
    "f": "flow",
    "N": "object",
    "O": "object",
    "D": "object",
    "P": "sample",
    "v": "memory dump",
    "V": "memory dump",
    "c": "clock sync",
    "S": "begin of an id, old form",
    "F": "end of an id, old form",
    "T": "step of an id, old form",
}
_BEGIN_END, _BEGIN, _BY_ID, _READ = frozenset("BEbe"), frozenset("Bb"), frozenset("be"), frozenset("XBEbeCM")
_SIGN = {"B": 1, "E": -1}
NO_ARGS = msgspec.Raw(b"")  # of an event that has none: this very object


class Event(msgspec.Struct, gc=False):  # a million of these hold nothing that could form a cycle
    ph: str = ""
    name: str = ""
    cat: str = ""
    pid: int | str | None = None
    tid: int | str | None = None
    ts: float | None = None
    dur: float | None = None
    id: int | str | None = None
    args: msgspec.Raw = NO_ARGS


class Head(msgspec.Struct, kw_only=True):
    """The object form without its events."""

    deviceProperties: msgspec.Raw = NO_ARGS  # noqa: N815 - the names are the format's
    otherData: msgspec.Raw = NO_ARGS  # noqa: N815
    stackFrames: msgspec.Raw = NO_ARGS  # noqa: N815
    samples: msgspec.Raw = NO_ARGS
    systemTraceEvents: msgspec.Raw = NO_ARGS  # noqa: N815


class Document(Head, kw_only=True):
    """The object form."""

    traceEvents: list[Event]  # noqa: N815


class _Loose(Head, kw_only=True):
    """The object form, its events as they are in the file: each is decoded alone."""

    traceEvents: list[msgspec.Raw]  # noqa: N815


_EVENTS, _DOCUMENT = msgspec.json.Decoder(list[Event]), msgspec.json.Decoder(Document)
_RAW_EVENTS, _LOOSE = msgspec.json.Decoder(list[msgspec.Raw]), msgspec.json.Decoder(_Loose)


class _SeriesArgs(msgspec.Struct):
    name: str | None = None
    labels: str | None = None


@dataclass(slots=True)
class Spans:
    """Spans in columns, in file order; times are ns as in the file."""

    threads: list[Thread]
    names: list[str]
    thread: Numbers
    name: Numbers
    start: Numbers
    end: Numbers
    event: Numbers  # position of the event that tells about the span


@dataclass(slots=True)
class CounterSamples:
    """Counter values in file order."""

    tracks: list[tuple[Key, str]]  # process, series
    track: Numbers
    time: Numbers
    value: Floats


@dataclass(slots=True)
class Events:
    """A file, decoded."""

    events: Sequence[Event]
    head: Head | None  # None: the array form
    unread: Unread
    notes: list[str] = field(default_factory=list)
    complete: Sequence[Event] = ()
    others: list[int] = field(default_factory=list)  # positions of all but complete events

    kinds: Counter[str] = field(default_factory=Counter)  # phase → events

    def __post_init__(self) -> None:
        phase, letters = coded([event.ph for event in self.events])
        self.kinds = Counter(dict(zip(letters, np.bincount(phase).tolist(), strict=True)))
        self.complete = self.events
        if self.kinds["X"] < len(self.events):
            complete = phase == (letters.index("X") if self.kinds["X"] else NONE)
            self.complete = list(compress(self.events, complete.tolist()))
            self.others = np.flatnonzero(~complete).tolist()

    def of_kind(self, phase: str) -> list[tuple[int, Event]]:
        """Events of a phase, with their positions."""
        if not self.kinds[phase]:
            return []
        events = self.events
        return [(number, events[number]) for number in self.others if events[number].ph == phase]

    def spans(self) -> Spans:
        return _spans(self)

    def samples(self) -> CounterSamples:
        return _samples(self)

    def names(self) -> tuple[dict[Key, str], dict[Thread, str]]:
        """Names of processes and of threads, as metadata events give them."""
        processes: dict[Key, str] = {}
        labels: dict[Key, str] = {}
        threads: dict[Thread, str] = {}
        for _, event in self.of_kind("M"):
            if event.name in ("process_name", "process_labels", "thread_name"):
                args = _args(event)
                if event.name == "process_name" and args.name:
                    processes[event.pid] = args.name
                elif event.name == "process_labels" and args.labels:
                    labels[event.pid] = args.labels
                elif event.name == "thread_name" and args.name:
                    threads[event.pid, event.tid] = args.name
        for key, label in labels.items():
            processes[key] = f"{processes.get(key, key)} [{label}]"
        return processes, threads

    def with_args(self) -> int:
        """How many spans have arguments."""
        args = [event.args for event in self.complete]
        if _BEGIN & set(self.kinds):
            args += [self.events[number].args for number in self.others if self.events[number].ph in _BEGIN]
        return len(args) - args.count(NO_ARGS)

    def left_out(self) -> list[str]:
        """Events that are counted only, and parts of the file that are not read."""
        counted = Counter[str]()
        for letter, number in self.kinds.items():
            if letter not in _READ:
                counted[_KINDS.get(letter, f"event of unknown phase {printable(letter, 10)!r}")] += number
        notes = [f"{number} {what} events are not kept" for what, number in sorted(counted.items())]
        for name in ("stackFrames", "samples", "systemTraceEvents"):
            if self.head is not None and len(bytes(getattr(self.head, name))) > 2:
                notes.append(f"{name} is not read")
        return [*notes, *self.notes, *self.unread.notes()]


def _args(event: Event) -> _SeriesArgs:
    try:
        return msgspec.json.decode(event.args, type=_SeriesArgs)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return _SeriesArgs()


def decode_events(raw: bytes, *, source: str) -> Events:
    """Object or array form; the array need not be closed. One odd event among many is counted, not fatal."""
    match = _START.match(raw)
    if match is None:
        raise ImportFileError(source, "byte 0x0", "neither an object nor an array; expected Trace Event JSON")
    is_array = match[1] == b"["
    unread = Unread("events")
    try:
        return _typed(raw, is_array, unread)
    except msgspec.ValidationError:
        return _one_by_one(raw, is_array, unread, source)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        if not is_array:
            decode_json(raw, _DOCUMENT, source=source)  # says what is wrong, and where
    try:
        closed = _typed(raw.rstrip().rstrip(b",") + b"]", True, unread)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        decode_json(raw, _EVENTS, source=source)
        raise
    # Writers that stream leave out the closing bracket; the format allows it.
    closed.notes.append("the array is not closed: the file may be cut short")
    return closed


def _typed(raw: bytes, is_array: bool, unread: Unread) -> Events:
    if is_array:
        return Events(_EVENTS.decode(raw.removeprefix(b"\xef\xbb\xbf")), None, unread)
    document = _DOCUMENT.decode(raw.removeprefix(b"\xef\xbb\xbf"))
    return Events(document.traceEvents, document, unread)


def _one_by_one(raw: bytes, is_array: bool, unread: Unread, source: str) -> Events:
    """Each event alone, so that the odd one can be left out."""
    head = None if is_array else decode_json(raw, _LOOSE, source=source)
    parts = decode_json(raw, _RAW_EVENTS, source=source) if head is None else head.traceEvents
    decoder = msgspec.json.Decoder(Event)
    events = []
    for number, part in enumerate(parts):
        try:
            events.append(decoder.decode(part))
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            if bytes(part) not in (b"{}", b"null"):  # writers end a list with these to save a comma
                unread.add(f"event {number}", str(error))
    return Events(events, head, unread)


def to_nanoseconds(ts: Floats, dur: Floats) -> tuple[Numbers, Numbers, npt.NDArray[np.bool_]]:
    """Start and end from microseconds, and which of them are times at all.

    A duration of whole ns is kept to the ns. One with a finer fraction is not: there the end is rounded like a
    start, so that spans that touch still do.
    """
    with np.errstate(all="ignore"):
        good = np.isfinite(ts) & np.isfinite(dur) & (dur >= 0) & (np.abs(ts) + dur < LONGEST_NS / 1000)
        ts, dur = np.where(good, ts, 0.0), np.where(good, dur, 0.0)
        start, length = np.rint(ts * 1000), np.rint(dur * 1000)
        end = start + length
        if bool((np.abs(dur * 1000 - length) > 1e-3).any()):  # to ps first: the sum has errors where the start has none
            start, end = (np.rint(np.round(time * 1000, 3)) for time in (ts, ts + dur))
            end = np.maximum(start, end)
    return start.astype(np.int64), end.astype(np.int64), good


@dataclass(frozen=True, slots=True)
class _Columns:
    """What spans need of events, gathered in one go: a million small objects are slow to visit twice."""

    ts: Floats
    code: Numbers  # process × threads + thread
    pids: list[Key]
    tids: list[Key]

    @classmethod
    def of(cls, file: Events) -> _Columns:
        events = file.events
        pid, pids = coded([event.pid for event in events])
        by_id = _BY_ID & set(file.kinds)  # spans of an id may overlap those of the thread: they get a row of their own
        tid, tids = coded([_row(event) for event in events] if by_id else [event.tid for event in events])
        ts = np.array([event.ts for event in events], np.float64)
        return cls(ts, pid * len(tids) + tid, pids, tids)

    def threads(self, chosen: Numbers) -> tuple[Numbers, list[Thread]]:
        """A number for the process and thread of every chosen event, and which they are, in order of processes."""
        code = self.code[chosen]
        # Few processes and threads, as almost always: a table of all codes is faster than sorting a million of them.
        if len(self.pids) * len(self.tids) <= 4 * len(self.code):
            present = np.zeros(len(self.pids) * len(self.tids), np.bool_)
            present[code] = True
            found, thread = np.flatnonzero(present), (np.cumsum(present) - 1)[code]
        else:
            found, thread = np.unique(code, return_inverse=True)
        pairs = (divmod(number, len(self.tids)) for number in found.tolist())
        return thread.reshape(-1), [(self.pids[p], self.tids[t]) for p, t in pairs]


def _row(event: Event) -> Key:
    return f"async {event.cat}".strip() if event.ph == "b" else event.tid


def _spans(file: Events) -> Spans:
    """Complete events, then pairs of begin and end; those without a usable time are counted as unread."""
    columns, place = _Columns.of(file), _positions(file)
    dur = np.array([event.dur for event in file.complete], np.float64)
    start, end, good = to_nanoseconds(columns.ts[place], dur)
    begun, ended = _pairs(file, columns)
    if len(begun):
        added = _pair_times(columns.ts, begun, ended)
        start, end, good = (np.concatenate(both) for both in zip((start, end, good), added, strict=True))
        place = np.concatenate((place, begun))
    for number in np.flatnonzero(~good).tolist():
        event = file.events[place[number]]
        file.unread.add(f"event {place[number]}", f"{event.name} ts {event.ts} dur {event.dur}")
    thread, threads = columns.threads(place)
    chosen = file.complete if not len(begun) else [file.events[number] for number in place.tolist()]
    name, names = coded([event.name for event in chosen])
    kept = [column if good.all() else column[good] for column in (thread, name, start, end, place)]
    _note_resolution(file, columns.ts[place][np.isfinite(columns.ts[place])])
    return Spans(threads, names, *kept)


def _positions(file: Events) -> Numbers:
    """Positions of complete events among all events."""
    complete = np.ones(len(file.events), np.bool_)
    complete[file.others] = False
    return np.flatnonzero(complete)


def coded(values: list[V]) -> tuple[Numbers, list[V]]:
    """A number for every value, and the values in the order of their numbers, which is that of their first coming."""
    if values and all(map(eq, values, repeat(values[0]))):
        return np.zeros(len(values), np.int64), values[:1]
    numbers: defaultdict[V, int] = defaultdict(count().__next__)
    code = np.fromiter(map(numbers.__getitem__, values), np.int64, len(values))
    return code, list(numbers)


def _note_resolution(file: Events, ts: Floats) -> None:
    step_ns = float(np.spacing(np.abs(ts).max(initial=0.0))) * 1000
    if step_ns > 1:
        file.notes.append(f"times are exact to {step_ns:.0f} ns only: the file counts from long ago")


def _pairs(file: Events, columns: _Columns) -> tuple[Numbers, Numbers]:
    """Positions of begin events, and of the ends that belong to them: of the thread, or of the id."""
    if not _BEGIN_END & set(file.kinds):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    if file.kinds["B"] == file.kinds["E"] and not _BY_ID & set(file.kinds):
        found = _balanced(file, columns)
        if found is not None:
            return found
    return _one_by_one_pairs(file)


def _balanced(file: Events, columns: _Columns) -> tuple[Numbers, Numbers] | None:
    """Pairs of a file in which every thread ends what it begins; None where one does not.

    On one thread, begins and ends of the same depth take turns, so that sorting by depth puts partners side by side:

        event   B  B  E  B  E  E
        depth   1  2  2  2  2  1     (that of an end is the depth it closes)
        sorted  B  E | B  E | B  E   (depth 1, then depth 2 in file order)

    This is one sort of all events instead of a stack per thread.
    """
    events = file.events
    phase = np.array([_SIGN.get(events[number].ph, 0) for number in file.others], np.int8)
    number = np.array(file.others, np.int64)[phase != 0]
    step = phase[phase != 0].astype(np.int64)
    thread = columns.threads(number)[0]
    order = np.argsort(thread, kind="stable")
    opens = step[order] > 0
    depth = np.cumsum(step[order])
    last = np.append(np.flatnonzero(np.diff(thread[order])), len(order) - 1)
    if depth.min() < 0 or depth[last].any():  # depth runs on over threads: each has to leave it at 0
        return None
    depth += ~opens  # the sum behind an end is one less than the depth that it closes
    deepest = int(depth.max()) + 1
    by_depth = np.argsort(thread[order] * deepest + depth, kind="stable")
    pairs = number[order[by_depth]].reshape(-1, 2)
    pairs = pairs[np.argsort(pairs[:, 0])]
    return pairs[:, 0], pairs[:, 1]


def _one_by_one_pairs(file: Events) -> tuple[Numbers, Numbers]:
    """Pairs of any file: an end closes what was begun last on its thread, or under its id; the rest is unread."""
    opened: dict[tuple[object, ...], list[int]] = {}
    begun: list[int] = []
    ended: list[int] = []
    for number in file.others:
        event = file.events[number]
        if event.ph not in _BEGIN_END:
            continue
        by_id = event.ph in _BY_ID
        key = (event.pid, event.cat, event.id, event.name) if by_id else (event.pid, event.tid)
        if event.ph in _BEGIN:
            opened.setdefault(key, []).append(number)
        elif stack := opened.get(key):
            begun.append(stack.pop())
            ended.append(number)
        else:
            file.unread.add(f"event {number}", f"end without a begin: {event.name}")
    for number in sorted(number for stack in opened.values() for number in stack):
        file.unread.add(f"event {number}", f"begin without an end: {file.events[number].name}")
    return np.array(begun, np.int64), np.array(ended, np.int64)


def _pair_times(ts: Floats, begun: Numbers, ended: Numbers) -> tuple[Numbers, Numbers, npt.NDArray[np.bool_]]:
    """Start, end, and whether these are times at all."""
    nothing = np.zeros(len(begun))
    first, last = to_nanoseconds(ts[begun], nothing), to_nanoseconds(ts[ended], nothing)
    good = first[2] & last[2] & (last[0] >= first[0])
    return first[0], np.maximum(first[0], last[0]), good


def _ns(ts: float | None) -> int | None:
    return round(ts * 1000) if ts is not None and abs(ts) < LONGEST_NS / 1000 else None


def _samples(file: Events) -> CounterSamples:
    tracks: dict[tuple[Key, str], int] = {}
    rows: list[tuple[int, int, float]] = []
    for number, event in file.of_kind("C"):
        time, series = _ns(event.ts), _series(event)
        if time is None or not series:
            file.unread.add(f"event {number}", f"counter {event.name} without time or number")
            continue
        for label, value in series.items():
            title = event.name if label in ("", event.name) or len(series) == 1 else f"{event.name} {label}"
            rows.append((tracks.setdefault((event.pid, title), len(tracks)), time, value))
    track, time_ns, value_of = zip(*rows, strict=True) if rows else ((), (), ())
    return CounterSamples(
        list(tracks), np.array(track, np.int64), np.array(time_ns, np.int64), np.array(value_of, np.float64)
    )


def _series(event: Event) -> dict[str, float]:
    """The numbers among the arguments; some writers put them into strings."""
    try:
        args = msgspec.json.decode(event.args, type=dict[str, float], strict=False)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return {}
    return {label: value for label, value in args.items() if np.isfinite(value)}
