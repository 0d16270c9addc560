"""Host log of the Torq runtime (`--torq_profile_host`) → what the host did, with start and end.

H1  actionIndex, elapsed_time(us), timestamp(us), event, location     location bare
H2  the same                                                         location in quotes, those inside not doubled
H3  dispatch_name,invocation_id,action_id,timestamp_us,event

Rows are begin and end events. They are paired by dispatch, invocation, action and type, in file order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..annotated import ActionTimes
from ..errors import ImportFileError, printable
from ..trace import NONE
from .line_columns import Block, Lines, Marks, Numbers, Words, distinct, joined, read_lines, rising, unwrapped
from .mlir_location import plain_location
from .reading import LONGEST_NS, Unread

_H12 = re.compile(rb"actionIndex,\s*elapsed_time\(us\),\s*timestamp\(us\),\s*event,\s*location\s*")
_H3 = re.compile(rb"dispatch_name,\s*invocation_id,\s*action_id,\s*timestamp_us,\s*event\s*")
_MARK = b"\xef\xbb\xbf"
_US = 1000
_MOST_US = LONGEST_NS // _US // 4
_MOST_NUMBER = 1 << 31  # of invocations and actions, which are counted from 0; -1: of none
_SHOWN = 5
PARTS = (  # prefix of a type → part of the host; the first that fits
    ("HAL", "HAL"), ("NSS", "NSS Programs"), ("HOST_COPY", "Host Copy"), ("HOST", "Host Programs"),
    ("ALLOC", "Memory"), ("DEALLOC", "Memory"), ("INIT", "Init"), ("DISPATCH", "Dispatch"), ("", "Other"),
)  # fmt: skip
EXPECTED = {
    "H1": "actionIndex, elapsed_time(us), timestamp(us), event, location",
    "H2": "actionIndex, elapsed_time(us), timestamp(us), event, location",
    "H3": "dispatch_name,invocation_id,action_id,timestamp_us,event",
}


def form_of(head: bytes) -> str | None:
    """H1, H2, H3, or None: no such file."""
    first, _, rest = head.removeprefix(_MARK).partition(b"\n")
    if _H3.fullmatch(first):
        return "H3"
    if not _H12.fullmatch(first):
        return None
    row = rest.partition(b"\n")[0].split(b",", 4)
    return "H2" if len(row) == 5 and row[4].lstrip().startswith(b'"loc(') else "H1"


def read_actions(path: Path, form: str) -> ActionTimes:
    """What a log tells. Rows that cannot be read, and events without their other end, are counted in the notes."""
    unread, words = Unread("rows"), (Words(), Words(), Words())
    parts: list[tuple[Numbers, ...]] = []
    begun = False
    for block in read_lines(path, b","):
        kept = block
        if not begun:
            _check_header(path, block.first_line(), form)
            kept, begun = block.without_first(), True
        parts.append(_h3_rows(kept, words, unread) if form == "H3" else _h12_rows(kept.lines(), words, unread))
    columns = [joined([part[i] for part in parts]) for i in range(7)]
    if not len(columns[0]) and unread.count:
        raise ImportFileError(str(path), "", f"no row that can be read; {unread.notes()[0]}")
    events = _events(columns, words[1].texts, form, unread)
    notes = [*unread.notes(), *([] if len(events.time) else ["the file has no rows: nothing was run"])]
    return _paired(path, events, words[0].texts if form == "H3" else ("",), words[2].texts, notes)


def _check_header(path: Path, first: bytes, form: str) -> None:
    if not (_H3 if form == "H3" else _H12).fullmatch(first):
        raise ImportFileError(str(path), "line 1", f"no header of form {form}; expected {EXPECTED[form]}")


def _h3_rows(block: Block, words: tuple[Words, Words, Words], unread: Unread) -> tuple[Numbers, ...]:
    found = block.quick("wnnnw")
    if found is not None:
        dispatch, invocation, action, time, event = found
        whole = block.raw.count(b"\n") == len(time)  # no empty lines: rows are lines
        if whole and _possible(invocation, action, time).all():
            line = np.arange(block.number, block.number + len(time))
            names, events = words[0].merged(dispatch), words[1].merged(event)
            return names, invocation, action, time, events, np.full(len(time), NONE), line
    return _slow_h3_rows(block.lines(), words, unread)


def _possible(invocation: Numbers, action: Numbers, time: Numbers) -> Marks:
    numbered = (invocation > -_MOST_NUMBER) & (invocation < _MOST_NUMBER) & (action >= -1) & (action < _MOST_NUMBER)
    return numbered & (time > -_MOST_US) & (time < _MOST_US)


def _slow_h3_rows(lines: Lines, words: tuple[Words, Words, Words], unread: Unread) -> tuple[Numbers, ...]:
    """The same, of lines of which some cannot be read."""
    invocation, good = lines.right(3).stripped().whole()
    action, good_action = lines.right(2).stripped().whole()
    time, good_time = lines.right(1).stripped().whole()
    good &= good_action & good_time & (lines.separators >= 4) & _possible(invocation, action, time)
    lines.refuse(~good, unread)
    kept = lines.chosen(good)
    dispatch, event = words[0].number(kept.rest(0, 4)), words[1].number(kept.right(0).stripped())
    return dispatch, invocation[good], action[good], time[good], event, np.full(len(kept), NONE), kept.number


def _h12_rows(lines: Lines, words: tuple[Words, Words, Words], unread: Unread) -> tuple[Numbers, ...]:
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


@dataclass(frozen=True, slots=True)
class _Events:
    """Rows that begin or end something, in file order."""

    dispatch: Numbers
    invocation: Numbers
    action: Numbers
    time: Numbers
    type: Numbers  # position in `types`
    location: Numbers
    line: Numbers
    begins: Marks
    types: tuple[str, ...]

    def named(self, words: str, rows: Numbers) -> Iterator[str]:
        """A note on some rows, with the first of them by line."""
        if len(rows):
            shown = [
                f"line {self.line[row]}: {printable(self.types[self.type[row]], 60)}" for row in rows[:_SHOWN].tolist()
            ]
            more = f" and {len(rows) - _SHOWN} more" if len(rows) > _SHOWN else ""
            yield f"{len(rows)} events {words}: {'; '.join(shown)}{more}"


def _events(columns: list[Numbers], texts: tuple[str, ...], form: str, unread: Unread) -> _Events:
    """Rows with the type of their event; those that neither begin nor end anything are counted."""
    dispatch, invocation, action, time, event, location, line = columns
    types: dict[str, int] = {}
    of_event = [_type_of(text, form) for text in texts]
    codes = [NONE if found is None else types.setdefault(found[0], len(types)) for found in of_event]
    code = np.array(codes or [NONE], np.int64)[event]
    begins = np.array([bool(found and found[1]) for found in of_event] or [False])[event]
    known = code >= 0
    if not known.all():
        odd = sorted({texts[number] for number in np.unique(event[~known]).tolist()})
        unread.add(f"line {line[np.argmin(known)]}", f"neither begin nor end: {', '.join(odd[:_SHOWN])}")
        unread.count += int((~known).sum()) - 1
        dispatch, invocation, action, time, code, location, line, begins = (
            column[known] for column in (dispatch, invocation, action, time, code, location, line, begins)
        )
    return _Events(dispatch, invocation, action, unwrapped(time), code, location, line, begins, tuple(types))


def _paired(
    path: Path, events: _Events, names: tuple[str, ...], places: tuple[str, ...], notes: list[str]
) -> ActionTimes:
    time, scope = events.time, ranked(events.dispatch, events.invocation)
    begin, end, lone, stray = _pairs(ranked(ranked(scope, events.action), events.type), events.begins)
    notes += events.named("without an end, drawn to the end of what they are part of", lone)
    notes += events.named("without a begin, left out", stray)
    rows = np.concatenate((begin, lone))
    ends = np.concatenate((time[end], _last_of(scope, time)[lone] if len(lone) else time[lone]))
    ended = np.arange(len(rows)) < len(begin)
    backwards = ends < time[rows]
    notes += events.named("that end before they begin, left out", rows[backwards])
    order = rising(np.where(backwards, len(time), rows))[: len(rows) - int(backwards.sum())]
    rows, ends, ended = rows[order], ends[order], ended[order]
    locations, place = _places(places, events.location[rows])
    return ActionTimes(
        source=str(path), dispatch=events.dispatch[rows], dispatches=names, invocation=events.invocation[rows],
        action=events.action[rows], type=events.type[rows], types=events.types,
        parts=tuple(next(part for prefix, part in PARTS if kind.startswith(prefix)) for kind in events.types),
        start_ns=time[rows] * _US, end_ns=ends * _US, ended=ended, location=place, locations=locations,
        notes=tuple(notes),
    )  # fmt: skip


def _last_of(scope: Numbers, time: Numbers) -> Numbers:
    """Of every row, the last time in what it is part of."""
    _, place = distinct(scope)
    last = np.full(int(place.max()) + 1, np.iinfo(np.int64).min)
    np.maximum.at(last, place, time)
    return last[place]


def _places(texts: tuple[str, ...], number: Numbers) -> tuple[tuple[str, ...], Numbers]:
    """Each location once, and that of every row; NONE where there is none."""
    plain = [plain_location(text) for text in texts]
    known = {text: at for at, text in enumerate(dict.fromkeys(text for text in plain if text))}
    return tuple(known), np.array([*(known.get(text, NONE) for text in plain), NONE], np.int64)[number]


def ranked(first: Numbers, second: Numbers) -> Numbers:
    """One number for two, the same where both are the same. Small, so that it can be combined again."""
    if not len(first):
        return first
    low, width = int(second.min()), int(second.max()) - int(second.min()) + 1
    if (int(first.max()) + 1) * width < 1 << 40:
        return first * width + (second - low)
    (_, outer), (_, inner) = distinct(first), distinct(second)
    return distinct(outer * (int(inner.max()) + 1) + inner)[1]


def _pairs(key: Numbers, begins: Marks) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    """Rows that begin something and those that end it; begins without an end; ends without a begin."""
    order = rising(key)
    same = key[order][1:] == key[order][:-1]
    starts = begins[order]
    paired = np.zeros(len(key), np.bool_)
    if len(key):
        paired[:-1] = same & starts[:-1] & ~starts[1:]
    at = np.flatnonzero(paired)
    taken = np.zeros(len(key), np.bool_)
    taken[at], taken[at + 1] = True, True
    return order[at], order[at + 1], np.sort(order[~taken & starts]), np.sort(order[~taken & ~starts])
