"""Host log of the Torq runtime (`--torq_profile_host`) → what the host did, with start and end.

H1  actionIndex, elapsed_time(us), timestamp(us), event, location     location bare
H2  the same                                                         location in quotes, those inside not doubled
H3  dispatch_name,invocation_id,action_id,timestamp_us,event

Rows are begin and end events. They are paired by dispatch, invocation, action and type, in file order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from ....core.columns import Numbers
from ....core.errors import ImportFileError, printable
from ....importers.line_columns import (
    Counter,
    Lines,
    Marks,
    Parsed,
    Texts,
    read_lines,
    read_parsed,
)
from ....importers.mlir_location import plain_location
from ....importers.reading import LONGEST_NS, Unread
from ....recording.trace import NONE
from ..annotate.annotated import ActionTimes
from .event_pairs import Events, Paired, Pairing

_H12 = re.compile(rb"actionIndex,\s*elapsed_time\(us\),\s*timestamp\(us\),\s*event,\s*location\s*")
_H3 = re.compile(rb"dispatch_name,\s*invocation_id,\s*action_id,\s*timestamp_us,\s*event\s*")
_US = 1000
_MOST_US = LONGEST_NS // _US // 4
_MOST_NUMBER = 1 << 31  # of invocations and actions, which are counted from 0; -1: of none
_SHOWN = 5
PARTS = (  # prefix of a type → part of the host; the first that fits
    ("HAL", "HAL"),
    ("NSS", "NSS Programs"),
    ("HOST_COPY", "Host Copy"),
    ("HOST", "Host Programs"),
    ("ALLOC", "Memory"),
    ("DEALLOC", "Memory"),
    ("INIT", "Init"),
    ("DISPATCH", "Dispatch"),
    ("", "Other"),
)
EXPECTED = {
    "H1": "actionIndex, elapsed_time(us), timestamp(us), event, location",
    "H2": "actionIndex, elapsed_time(us), timestamp(us), event, location",
    "H3": "dispatch_name,invocation_id,action_id,timestamp_us,event",
}


def read_actions(path: Path, form: str) -> ActionTimes:
    """What a log tells. Rows that cannot be read, and events without their other end, are counted in the notes."""
    unread, words = Unread("rows"), (Texts(), Texts(), Texts())
    kinds, counter, pairing = _EventKinds(words[1], form), Counter(), Pairing()
    for columns in _h3_blocks(path, words, unread) if form == "H3" else _h12_blocks(path, form, words, unread):
        events = kinds.events(columns)
        pairing.add(replace(events, time=counter.unwrapped(events.time)))
    kinds.tell(unread)
    paired = pairing.finish()
    told = len(paired.begin) + len(paired.lone) + len(paired.stray)
    if not told and unread.count:
        raise ImportFileError(str(path), "", f"no row that can be read; {unread.notes()[0]}")
    notes = [*unread.notes(), *([] if told else ["the file has no rows: nothing was run"])]
    found = _action_times(path, paired, kinds.types, words[2].texts, notes)
    return replace(found, dispatches=words[0].texts) if form == "H3" else found


def _checked(path: Path, first: bytes, form: str) -> str:
    """Kinds of the fields of a form, once its header was seen."""
    if not (_H3 if form == "H3" else _H12).fullmatch(first):
        raise ImportFileError(str(path), "line 1", f"no header of form {form}; expected {EXPECTED[form]}")
    return "wnnnw"


def _h3_blocks(path: Path, words: tuple[Texts, Texts, Texts], unread: Unread) -> Iterator[tuple[Numbers, ...]]:
    for part in read_parsed(path, b",", lambda first: _checked(path, first, "H3")):
        yield _h3_rows(part, words, unread)


def _h12_blocks(
    path: Path, form: str, words: tuple[Texts, Texts, Texts], unread: Unread
) -> Iterator[tuple[Numbers, ...]]:
    for block in read_lines(path, b","):
        if block.number == 1:
            _checked(path, block.first_line(), form)
        yield _h12_rows((block.without_first() if block.number == 1 else block).lines(), words, unread)


def _h3_rows(part: Parsed, words: tuple[Texts, Texts, Texts], unread: Unread) -> tuple[Numbers, ...]:
    block = part.block
    if part.columns is not None:
        dispatch, invocation, action, time, event = part.columns
        if block.count == len(time) and _possible(invocation, action, time).all():  # no empty lines: rows are lines
            line = np.arange(block.number, block.number + len(time))
            names, events = words[0].merged(dispatch), words[1].merged(event)
            return names, invocation, action, time, events, np.full(len(time), NONE), line
    return _slow_h3_rows(block.lines(), words, unread)


def _possible(invocation: Numbers, action: Numbers, time: Numbers) -> Marks:
    numbered = (invocation > -_MOST_NUMBER) & (invocation < _MOST_NUMBER) & (action >= -1) & (action < _MOST_NUMBER)
    return numbered & (time > -_MOST_US) & (time < _MOST_US)


def _slow_h3_rows(lines: Lines, words: tuple[Texts, Texts, Texts], unread: Unread) -> tuple[Numbers, ...]:
    """The same, of lines of which some cannot be read."""
    invocation, good = lines.right(3).stripped().whole()
    action, good_action = lines.right(2).stripped().whole()
    time, good_time = lines.right(1).stripped().whole()
    good &= good_action & good_time & (lines.separators >= 4) & _possible(invocation, action, time)
    lines.refuse(~good, unread)
    kept = lines.chosen(good)
    dispatch, event = words[0].number(kept.rest(0, 4)), words[1].number(kept.right(0).stripped())
    return dispatch, invocation[good], action[good], time[good], event, np.full(len(kept), NONE), kept.number


def _h12_rows(lines: Lines, words: tuple[Texts, Texts, Texts], unread: Unread) -> tuple[Numbers, ...]:
    action, good = lines.left(0).whole()
    _, good_elapsed = lines.left(1).stripped().whole()
    time, good_time = lines.left(2).stripped().whole()
    good &= good_elapsed & good_time & (lines.separators >= 4) & _possible(action, action, time)
    lines.refuse(~good, unread)
    kept = lines.chosen(good)
    event, location = words[1].number(kept.left(3).stripped()), words[2].number(kept.rest(4).stripped())
    zero = np.zeros(len(kept), np.int64)
    return zero, zero, action[good], time[good], event, location, kept.number


def _type_of(event: str, form: str) -> tuple[str, bool] | None:
    """Type of an event, and whether it begins; None: neither a begin nor an end."""
    if event.endswith("_END"):
        return event[:-4], False
    if form == "H3":
        return (event[:-6], True) if event.endswith("_BEGIN") else None
    if event == "NSS_START":  # its end is NSS_START_END
        return event, True
    return (event[:-6], True) if event.endswith("_START") else None


class _EventKinds:
    """Names of events, as they come up: of which type each is, and whether it begins or ends something."""

    def __init__(self, names: Texts, form: str) -> None:
        self._names, self._form = names, form
        self._type, self._begins = np.zeros(0, np.int64), np.zeros(0, np.bool_)  # per name
        self._types: dict[str, int] = {}
        self._odd: set[int] = set()
        self._odd_rows, self._first_odd = 0, 0

    @property
    def types(self) -> tuple[str, ...]:
        return tuple(self._types)

    def events(self, columns: tuple[Numbers, ...]) -> Events:
        """Rows with the type of their event; those that neither begin nor end anything are counted."""
        if len(self._type) < len(self._names):
            found = [_type_of(text, self._form) for text in self._names.after(len(self._type))]
            codes = [NONE if kind is None else self._types.setdefault(kind[0], len(self._types)) for kind in found]
            self._type = np.append(self._type, codes)
            self._begins = np.append(self._begins, [bool(kind and kind[1]) for kind in found])
        dispatch, invocation, action, time, event, location, line = columns
        code = self._type[event] if len(event) else event
        begins = self._begins[event] if len(event) else np.zeros(0, np.bool_)
        told = Events(dispatch, invocation, action, code, location, line, time, begins)
        known = code >= 0
        if known.all():
            return told
        self._first_odd = self._first_odd or int(line[np.argmin(known)])
        self._odd_rows += int((~known).sum())
        self._odd |= set(np.unique(event[~known]).tolist())
        return told.at(known)

    def tell(self, unread: Unread) -> None:
        """Count the odd ones."""
        if self._odd:
            texts = self._names.texts
            odd = sorted({texts[number] for number in self._odd})
            unread.add(f"line {self._first_odd}", f"neither begin nor end: {', '.join(odd[:_SHOWN])}")
            unread.count += self._odd_rows - 1


def _named(words: str, events: Events, types: tuple[str, ...]) -> Iterator[str]:
    """A note on some rows, with the first of them by line."""
    if len(events):
        first = zip(events.line[:_SHOWN].tolist(), events.type[:_SHOWN].tolist(), strict=True)
        shown = [f"line {line}: {printable(types[kind], 60)}" for line, kind in first]
        more = f" and {len(events) - _SHOWN} more" if len(events) > _SHOWN else ""
        yield f"{len(events)} events {words}: {'; '.join(shown)}{more}"


def _action_times(
    path: Path, paired: Paired, types: tuple[str, ...], places: tuple[str, ...], notes: list[str]
) -> ActionTimes:
    """What has an end and what has none, in file order; of dispatches without a name."""
    notes += _named("without an end, drawn to the end of what they are part of", paired.lone, types)
    notes += _named("without a begin, left out", paired.stray, types)
    rows, ends, ended = paired.rows()
    backwards = ends < rows.time
    if backwards.any():
        notes += _named("that end before they begin, left out", rows.at(backwards), types)
        rows, ends, ended = rows.at(~backwards), ends[~backwards], ended[~backwards]
    locations, place = _places(places, rows.location)
    return ActionTimes(
        source=str(path),
        dispatch=rows.dispatch,
        dispatches=("",),
        invocation=rows.invocation,
        action=rows.action,
        type=rows.type,
        types=types,
        parts=tuple(next(part for prefix, part in PARTS if kind.startswith(prefix)) for kind in types),
        start_ns=rows.time * _US,
        end_ns=ends * _US,
        ended=ended,
        location=place,
        locations=locations,
        notes=tuple(notes),
    )


def _places(texts: tuple[str, ...], number: Numbers) -> tuple[tuple[str, ...], Numbers]:
    """Each location once, and that of every row; NONE where there is none."""
    plain = [plain_location(text) for text in texts]
    known = {text: at for at, text in enumerate(dict.fromkeys(text for text in plain if text))}
    return tuple(known), np.array([*(known.get(text, NONE) for text in plain), NONE], np.int64)[number]
