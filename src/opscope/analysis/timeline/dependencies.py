"""What had to be done before what: dependencies between commands, the order of every lane, issue before flight.

An example with two lanes, where `c` reads what `b` wrote:

    lane 1 |  b: 0–6   |                     pairs       why    released at
    lane 0 | a: 0–4 |     | c: 7–9 |         a → c       LANE   4
                                             b → c       DATA   6

`c` was ready at 6, when the last of its pairs released it; `b` is its blocker, and its lag is 1: nothing that was
recorded explains why it did not start at 6.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...core.columns import Numbers, distinct, rising
from ...recording.trace import NONE, SpanKind
from ..causes import WAIT
from .activities import NO_LANE, Activities

START, ASSUMED, STAGE, LANE, ISSUE, ORDER, DATA = range(7)  # why one activity follows another; the later one wins a tie


@dataclass(frozen=True, slots=True)
class Dependencies:
    """Pairs of activities, by position, of which the first comes before the second in order of time.

    Work of a device, or a stage of an inference, about which the trace says nothing and which did not start when its
    lane was free, is assumed to have waited for whatever of these ended last before it.

    Where the first ends after the second has started – a call that launches work and then goes on – only the part up
    to then counts.
    """

    activities: Activities
    first: Numbers
    second: Numbers  # rising
    why: Numbers
    reach: Numbers  # when the first released the second: at its end, or at the start of the second if that is earlier
    ready: Numbers  # per activity: the latest reach of its pairs; the start of the window where it has none
    blocker: Numbers  # per activity: the first of that pair, which held it back longest; NONE: nothing did
    blocked_why: Numbers

    @property
    def lag(self) -> Numbers:
        """Per activity, how long after it could have started it did."""
        return self.activities.start - self.ready

    @property
    def part(self) -> Numbers:
        """Of every pair, how much of the first had to be over."""
        return self.reach - self.activities.start[self.first]


def dependencies_of(work: Activities) -> Dependencies:
    """Pairs that contradict the order of time are left out."""
    pairs = [_lane_pairs(work), _issue_pairs(work), _call_pairs(work), *_edge_pairs(work)]
    first, second, why = _valid(pairs)
    assumed = _assumed_pairs(work, first, second, why)
    if len(assumed[0]):
        first, second, why = _valid([(first, second, why), assumed])
    reach = np.minimum(work.end[first], work.start[second])
    ready = _latest(work, second, reach)
    blocker, blocked_why = np.full(len(work), NONE), np.full(len(work), START)
    binding = np.flatnonzero(reach == ready[second])
    binding = binding[rising(why[binding])]  # of several at once, what is written last stays: the best known reason
    blocker[second[binding]], blocked_why[second[binding]] = first[binding], why[binding]
    return Dependencies(work, first, second, why, reach, ready, blocker, blocked_why)


def _latest(work: Activities, second: Numbers, moments: Numbers) -> Numbers:
    """Per activity, the latest of the moments of its pairs; the start of the window where it has none."""
    found = np.full(len(work), work.start_ns)
    begins = np.flatnonzero(np.diff(second, prepend=NONE))
    found[second[begins]] = np.maximum(np.maximum.reduceat(moments, begins), work.start_ns)
    return found


Pairs = tuple[Numbers, Numbers, Numbers]


def _valid(pairs: list[Pairs]) -> Pairs:
    """All that go forward in time, in order of what they hold back."""
    first, second, why = (np.concatenate(columns) for columns in zip(*pairs, strict=True))
    forward = np.flatnonzero(first < second)
    order = forward[rising(second[forward])]
    return first[order], second[order], why[order]


def _pairs(first: Numbers, second: Numbers, why: int) -> Pairs:
    return first, second, np.full(len(first), why)


def _lane_pairs(work: Activities) -> Pairs:
    """A lane does one thing after the other."""
    order = rising(work.lane - NO_LANE)
    lane = work.lane[order]
    follows = np.flatnonzero((lane[1:] == lane[:-1]) & (lane[1:] != NO_LANE))
    return _pairs(order[follows], order[follows + 1], LANE)


def _issue_pairs(work: Activities) -> Pairs:
    """Bytes fly after a lane has sent them off."""
    flights = np.flatnonzero((work.lane == NO_LANE) & (work.command != NONE))
    if not len(flights):
        return _pairs(flights, flights, ISSUE)
    issues = np.flatnonzero(work.lane != NO_LANE)
    codes = distinct(work.command[flights])
    of_command = _last(_code(codes, work.command[issues]), issues, len(codes))
    issue = of_command[_code(codes, work.command[flights])]
    return _pairs(issue[issue != NONE], flights[issue != NONE], ISSUE)


def _call_pairs(work: Activities) -> Pairs:
    """A host call that waits for the device goes on when the device is done."""
    host = work.run.trace.spans["kind"][work.row] == SpanKind.HOST
    calls, device = np.flatnonzero(host & (work.cause == WAIT)), np.flatnonzero(~host)
    if not len(calls) or not len(device):
        return _pairs(calls[:0], calls[:0], DATA)
    device = device[np.argsort(work.end[device], kind="stable")]
    last = device[np.maximum(np.searchsorted(work.end[device], work.start[calls], "right") - 1, 0)]
    held = work.end[last] == work.start[calls]
    return _pairs(last[held], calls[held], DATA)


def _assumed_pairs(work: Activities, first: Numbers, second: Numbers, why: Numbers) -> Pairs:
    """For work that nothing but its lane is known to hold back, and that its lane did not; calls of a host are free."""
    device = (work.run.trace.spans["kind"][work.row] != SpanKind.HOST) | work.staged
    explained = np.zeros(len(work), np.bool_)
    explained[second[why != LANE]] = True
    late = np.flatnonzero(device & ~explained & (work.start > _latest(work, second, work.end[first])))
    done = np.flatnonzero(device & (work.end > work.start))  # a mark takes no time: nothing waits for it
    if not len(late) or not len(done):
        return _pairs(late[:0], late[:0], ASSUMED)
    done = done[rising(work.end[done] - work.start_ns)]
    place = np.searchsorted(work.end[done], work.start[late], "right") - 1
    first, second = done[place[place >= 0]], late[place >= 0]
    host = work.run.trace.spans["kind"][work.row] == SpanKind.HOST
    return first, second, np.where(host[first] | host[second], STAGE, ASSUMED)


def _edge_pairs(work: Activities) -> tuple[Pairs, Pairs]:
    """What the trace says depends on what, and what waits say they waited for.

    Edges join commands, and a command may be several activities: the lane that starts a transfer, and its flight. A
    pair leads from the activity of the source that ends last to that of the target that begins first.

        0: start of command 5, 0–2     1: its flight, 2–6     2: command 7, 6–8          edge 5 → 7: pair 1 → 2

    Where the last one comes after the target in the order of time, it is the first one that released the target.
    """
    edges = work.run.trace.edges
    waits = work.run.trace.spans.take(work.waits)
    waits = waits[(waits["kind"] == SpanKind.WAIT) & (waits["waits_on"] != NONE) & (waits["command"] != NONE)]
    source = np.concatenate((edges["source"], waits["waits_on"]))
    target = np.concatenate((edges["target"], waits["command"]))
    data = np.concatenate((edges["data"], np.ones(len(waits), np.bool_)))
    known = (source > NONE) & (target > NONE)
    source, target, data = source[known], target[known], data[known]
    codes = distinct(np.concatenate((source, target)))  # commands that matter here, as rows of two small tables
    place = _code(codes, work.command)
    named = np.flatnonzero(place != NONE)
    begins = _last(place[named][::-1], named[::-1], len(codes))  # positions are in order of start: last of all is first
    by_end = named[np.argsort(work.end[named], kind="stable")]
    ends = _last(place[by_end], by_end, len(codes))
    starts, stops = _code(codes, target), _code(codes, source)
    known = (begins[starts] != NONE) & (begins[stops] != NONE)
    second = begins[starts[known]]
    first = ends[stops[known]]
    first = np.where(first < second, first, begins[stops[known]])  # the command goes on after it has released the other
    data = data[known]
    return _pairs(first[~data], second[~data], ORDER), _pairs(first[data], second[data], DATA)


def _code(codes: Numbers, commands: Numbers) -> Numbers:
    """Place of every command in the sorted codes; NONE where it is not among them."""
    if not len(codes):
        return np.full(len(commands), NONE)
    if int(codes[-1]) < 8 * len(codes) + 1024:  # commands are numbered without great holes: a table serves
        table = np.full(int(codes[-1]) + 2, NONE)
        table[codes] = np.arange(len(codes))
        return table[np.where((commands >= 0) & (commands <= codes[-1]), commands, len(table) - 1)]
    place = np.minimum(np.searchsorted(codes, commands), len(codes) - 1)
    return np.where(codes[place] == commands, place, NONE)


def _last(keys: Numbers, values: Numbers, count: int) -> Numbers:
    """Per key, the last of its values; NONE: it has none."""
    found = np.full(count, NONE)
    known = keys != NONE
    found[keys[known]] = values[known]
    return found
