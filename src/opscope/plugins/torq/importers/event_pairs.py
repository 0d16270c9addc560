"""Begin and end events, some at a time and in file order → what began, with its end.

An event ends what began last under the same dispatch, invocation, action and type. Pairs are found as the events come,
so that of a long log only its pairs, and what has not ended yet, are held.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from ....core.columns import Numbers, places, rising
from ....importers.line_columns import Marks


@dataclass(frozen=True, slots=True)
class Events:
    """Rows that begin or end something, in file order."""

    dispatch: Numbers
    invocation: Numbers
    action: Numbers
    type: Numbers
    location: Numbers
    line: Numbers
    time: Numbers
    begins: Marks

    def __len__(self) -> int:
        return len(self.line)

    def at(self, chosen: Numbers | Marks) -> Events:
        """Some of the rows."""
        return Events(*(getattr(self, field.name)[chosen] for field in fields(self)))

    def key(self) -> Numbers:
        """The same number where a begin and an end can belong together."""
        return ranked(ranked(ranked(self.dispatch, self.invocation), self.action), self.type)

    def by_line(self) -> Events:
        return self if (np.diff(self.line) >= 0).all() else self.at(rising(self.line))


def _joined(parts: Sequence[Events]) -> Events:
    if len(parts) == 1:
        return parts[0]
    return Events(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(Events)))


_NONE = np.zeros(0, np.int64)
_NO_EVENTS = Events(_NONE, _NONE, _NONE, _NONE, _NONE, _NONE, _NONE, np.zeros(0, np.bool_))


@dataclass(frozen=True, slots=True)
class Paired:
    """What began, in file order, and when it ended; begins without an end; ends without a begin."""

    begin: Events
    end: Numbers
    lone: Events
    stray: Events

    def rows(self) -> tuple[Events, Numbers, Marks]:
        """All that began, in file order; its end, or that of what it is part of; whether the log has its end."""
        ended = np.ones(len(self.begin), np.bool_)
        if not len(self.lone):
            return self.begin, self.end, ended
        rows = _joined([self.begin, self.lone])
        order = rising(rows.line)
        ends = np.concatenate((self.end, self._last_of_lone()))
        return rows.at(order), ends[order], np.append(ended, np.zeros(len(self.lone), np.bool_))[order]

    def _last_of_lone(self) -> Numbers:
        """Of every begin without an end, the last time in what it is part of."""
        rows = (self.lone, self.begin, self.begin, self.stray)
        dispatch, invocation = (np.concatenate([getattr(r, name) for r in rows]) for name in ("dispatch", "invocation"))
        time = np.concatenate((self.lone.time, self.begin.time, self.end, self.stray.time))
        _, place = places(ranked(dispatch, invocation))
        last = np.full(int(place.max()) + 1, np.iinfo(np.int64).min)
        np.maximum.at(last, place, time)
        found: Numbers = last[place[: len(self.lone)]]
        return found


class Pairing:
    """Events so far."""

    def __init__(self) -> None:
        self._open, self._waiting = _NO_EVENTS, [_NO_EVENTS]
        self._begin: list[Events] = [_NO_EVENTS]
        self._end: list[Numbers] = [_NONE]
        self._lone: list[Events] = [_NO_EVENTS]
        self._stray: list[Events] = [_NO_EVENTS]

    def add(self, events: Events) -> None:
        self._waiting.append(events)
        if sum(map(len, self._waiting)) >= len(self._open):  # many that never end are not looked at with every block
            self._pair()

    def finish(self) -> Paired:
        self._pair()
        lone = _joined([*self._lone, self._open]).by_line()
        begin, end = _joined(self._begin), np.concatenate(self._end)
        if (np.diff(begin.line) < 0).any():
            order = rising(begin.line)
            begin, end = begin.at(order), end[order]
        return Paired(begin, end, lone, _joined(self._stray).by_line())

    def _pair(self) -> None:
        """Pair the events that wait: in order of their keys, a begin and the end right behind it belong together."""
        rows = _joined([self._open, *self._waiting])
        self._waiting = []
        key = rows.key()
        order = rising(key)
        ordered, starts = key[order], rows.begins[order]
        last = np.ones(len(rows), np.bool_)  # of its key, as yet
        last[:-1] = ordered[1:] != ordered[:-1]
        paired = np.zeros(len(rows), np.bool_)
        paired[:-1] = ~last[:-1] & starts[:-1] & ~starts[1:]
        taken = paired.copy()
        taken[1:] |= paired[:-1]
        at = np.flatnonzero(paired)
        partner = np.full(len(rows), -1)
        partner[order[at]] = order[at + 1]
        begin = np.flatnonzero(partner >= 0)
        self._begin.append(rows.at(begin))
        self._end.append(rows.time[partner[begin]])
        self._open = _NO_EVENTS
        if len(left := np.flatnonzero(~taken)):
            self._open = rows.at(np.sort(order[left[starts[left] & last[left]]]))
            self._lone.append(rows.at(order[left[starts[left] & ~last[left]]]))
            self._stray.append(rows.at(order[left[~starts[left]]]))


def ranked(first: Numbers, second: Numbers) -> Numbers:
    """One number for two, the same where both are the same. Small, so that it can be combined again."""
    if not len(first):
        return first
    low, width = int(second.min()), int(second.max()) - int(second.min()) + 1
    if (int(first.max()) + 1) * width < 1 << 40:
        return first * width + (second - low)
    (_, outer), (_, inner) = places(first), places(second)
    return places(outer * (int(inner.max()) + 1) + inner)[1]
