"""Which engines are idle, for how long, and what ends it?

An example, where `c` reads what `b` wrote:

    lane 1 |  b: 0–6   |                     Lane 0 is free from 4 to 7. It waits 2 ns for b, its blocker, which is
    lane 0 | a: 0–4 |     | c: 7–9 |         over at 6; the last nanosecond (`rest`) nothing recorded explains.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ...core.columns import Numbers, distinct, rising
from ...program.program import NO_ROUTE
from ...recording.finding import EngineUse, Gap, WaitFor
from ...recording.trace import NONE, Lane, SpanKind
from .activities import NO_LANE, Activities
from .critical_path import afters
from .dependencies import ASSUMED
from .intervals import largest, union

if TYPE_CHECKING:
    from ..run_analysis import RunAnalysis

MOST_GAPS = 20
NOTHING = "nothing that was recorded"
THE_HOST = "the host"
_DISTANCES = ("", " of another core", " of another device")


@dataclass(frozen=True, slots=True)
class Idle:
    """Before every activity that keeps a lane's order: since when its lane was free."""

    position: Numbers
    free: Numbers  # ns; the start of the window for the first of a lane

    @classmethod
    def of(cls, work: Activities) -> Idle:
        kept = np.flatnonzero(work.lane != NO_LANE)
        order = kept[rising(work.lane[kept])]
        lane, end = work.lane[order], work.end[order]
        free = np.full(len(order), work.start_ns)
        same = np.flatnonzero(lane[1:] == lane[:-1]) + 1
        free[same] = end[same - 1]
        return cls(order, np.minimum(free, work.start[order]))


def engine_uses(analysis: RunAnalysis) -> tuple[EngineUse, ...]:
    """Lanes of one name together, and the routes of transfers; busiest first."""
    work, lanes = analysis.work, analysis.run.trace.lanes
    kept = np.flatnonzero(work.lane != NO_LANE)
    busy = np.bincount(work.lane[kept], work.ns[kept], minlength=len(lanes))
    waits, recorded = _lane_waits(analysis), bool((analysis.run.trace.spans["kind"] == SpanKind.WAIT).any())
    by_name: dict[str, list[int]] = defaultdict(list)
    for number in distinct(work.lane[kept]).tolist():
        by_name[lanes[number].name].append(number)
    rows = []
    for name, numbers in by_name.items():
        at_work, waited = (round(float(column[numbers].sum()) / len(numbers)) for column in (busy, waits))
        known = recorded and all(lanes[number].device != NONE for number in numbers)  # the host's are not recorded
        rows.append(EngineUse(name, len(numbers), at_work, waited if known else None, work.wall_ns - at_work - waited))
    return tuple(sorted([*rows, *_routes(analysis)], key=lambda row: (-row.busy_ns, row.engine)))


def _lane_waits(analysis: RunAnalysis) -> Numbers:
    """Per lane, the waits that were recorded."""
    waits = analysis.run.trace.spans.take(analysis.work.waits)
    waits = waits[waits["kind"] == SpanKind.WAIT]
    length = waits["end_ns"] - waits["start_ns"]
    found: Numbers = np.bincount(waits["lane"], length, minlength=len(analysis.run.trace.lanes)).astype(np.int64)
    return found


def _routes(analysis: RunAnalysis) -> list[EngineUse]:
    """Transfers beside the lanes: at least one in flight, per device and route."""
    work, lanes = analysis.work, analysis.run.trace.lanes
    flights = np.flatnonzero(work.lane == NO_LANE)
    if not len(flights):
        return []
    devices = max(lane.device for lane in lanes) + 2  # one more: a device that is not known
    device = np.array([lane.device + 1 for lane in lanes])[work.own_lane[flights]]
    key = (routes_of(analysis, flights) + 1) * devices + device
    busy = union(key, work.start[flights], work.end[flights]).total((len(analysis.run.routes) + 1) * devices)
    rows = []
    for route in distinct(key // devices).tolist():
        own = [int(busy[k]) for k in distinct(key[key // devices == route]).tolist()]
        name = route_name(analysis.run.routes[route - 1].name) if route else "DMA of a route that is not known"
        mean = round(sum(own) / len(own))
        rows.append(EngineUse(name, len(own), mean, None, work.wall_ns - mean))
    return rows


def route_name(route: str) -> str:
    """What transfers of a route are called among engines."""
    return f"DMA {route.removeprefix('DMA ')}"


def routes_of(analysis: RunAnalysis, positions: Numbers) -> Numbers:
    """The route of every one of these; NONE: not known."""
    return analysis.run.trace.spans["route"][analysis.work.row[positions]].astype(np.int64)


def longest_gaps(analysis: RunAnalysis, *, most: int = MOST_GAPS) -> tuple[Gap, ...]:
    """The longest idle stretches of lanes of a device, with what ended each."""
    work, stalls = analysis.work, analysis.stalls
    length = stalls.wait + stalls.rest
    longest = largest(length, most)
    ended = afters(analysis.order, stalls.position[longest])
    rows = []
    for place, ended_by in zip(longest.tolist(), ended, strict=True):
        position = int(stalls.position[place])
        lane, start = analysis.run.trace.lanes[int(work.lane[position])], int(work.start[position])
        rows.append(
            Gap(lane.device, lane.core, lane.name, start - int(length[place]), start, work.name(position), ended_by)
        )
    return tuple(rows)


@dataclass(frozen=True, slots=True)
class Stalls:
    """Idle time of lanes of a device before their activities, divided into what its blocker explains and the rest."""

    position: Numbers  # of the activity that waited
    blocker: Numbers  # of the activity that was waited for; NONE: none that was recorded
    wait: Numbers  # until the blocker was done
    early: Numbers  # of that, before anything of the device had started: that is the host's
    rest: Numbers  # from then on
    group: Numbers  # position in groups, of those with a blocker; NONE
    groups: tuple[tuple[str, str], ...]  # who waited, for whom

    @classmethod
    def of(cls, analysis: RunAnalysis) -> Stalls:
        order, work, idle = analysis.order, analysis.work, Idle.of(analysis.work)
        on_device = np.array([lane.device != NONE for lane in analysis.run.trace.lanes] or [False])
        chosen = on_device[work.lane[idle.position]] & (work.start[idle.position] > idle.free)
        position, free = idle.position[chosen], idle.free[chosen]
        recorded = (order.ready[position] > free) & (order.blocked_why[position] != ASSUMED)
        blocker = np.where(recorded, order.blocker[position], NONE)
        ready = np.where(blocker != NONE, order.ready[position], free)
        group, groups = _groups(analysis, position, blocker)
        early = np.where(blocker == NONE, 0, np.clip(_begin(analysis, blocker) - free, 0, ready - free))
        return cls(position, blocker, ready - free, early, work.start[position] - ready, group, groups)


def _begin(analysis: RunAnalysis, blocker: Numbers) -> Numbers:
    """For every blocker, when the device started; the start of the window where the host did not start it."""
    work, device = analysis.work, np.flatnonzero(~analysis.on_host)
    if (
        not len(device)
        or analysis.order.blocker[device[0]] == NONE
        or not analysis.on_host[analysis.order.blocker[device[0]]]
    ):
        return np.full(len(blocker), work.start_ns)
    return np.where(analysis.on_host[blocker], work.start_ns, work.start[device[0]])


def _groups(analysis: RunAnalysis, position: Numbers, blocker: Numbers) -> tuple[Numbers, tuple[tuple[str, str], ...]]:
    """Number of the pair of names, who waited and for whom, of every stall; and the pairs.

    Every pair of lanes, and the route where the blocker is a transfer, is one whole number, so that each combination
    is named once: (own lane × lanes + lane of the blocker) × (routes + 1) + route + 1.
    """
    work, lanes = analysis.work, analysis.run.trace.lanes
    known = np.flatnonzero(blocker != NONE)
    ways = len(analysis.run.routes) + 1
    here, there = work.own_lane[position[known]], work.own_lane[blocker[known]]
    route = np.where(work.lane[blocker[known]] == NO_LANE, routes_of(analysis, blocker[known]), NONE)
    codes, place = np.unique((here * len(lanes) + there) * ways + route + 1, return_inverse=True)
    numbers: dict[tuple[str, str], int] = {}
    of_code = []
    for code in codes.tolist():
        pair, way = divmod(code, ways)
        mine, other = (lanes[number] for number in divmod(pair, len(lanes)))
        name = other.name if way == 0 else route_name(analysis.run.routes[way - 1].name)
        of_code.append(numbers.setdefault((mine.name, _seen_from(mine, other, name)), len(numbers)))
    group = np.full(len(position), NONE)
    group[known] = np.array(of_code or [NONE], np.int64)[place.reshape(-1)] if len(known) else NONE
    return group, tuple(numbers)


def _seen_from(mine: Lane, other: Lane, name: str) -> str:
    """Who was waited for, as the one who waited sees it: an engine, a transfer, another core or device, the host."""
    if other.device == NONE:
        return THE_HOST
    return name + _DISTANCES[2 if mine.device != other.device else 1 if mine.core != other.core else 0]


def waits_for(analysis: RunAnalysis) -> tuple[WaitFor, ...]:
    """Per waiting engine and cause, longest first."""
    stalls = analysis.stalls
    known = np.flatnonzero(stalls.group != NONE)
    count = len(stalls.groups)
    ns = np.bincount(stalls.group[known], (stalls.wait - stalls.early)[known], minlength=count)
    number = np.bincount(stalls.group[known], minlength=count)
    longest = _longest_producers(analysis, stalls, known)
    rows = [
        WaitFor(who, cause, longest.get(place), round(float(ns[place])), int(number[place]))
        for place, (who, cause) in enumerate(stalls.groups)
    ]
    rows = _with_early(analysis, rows)
    rows += _without_blocker(analysis)
    return tuple(sorted(rows, key=lambda row: (-row.wait_ns, row.engine, row.cause)))


def _without_blocker(analysis: RunAnalysis) -> list[WaitFor]:
    """Idle time that no activity of the trace explains: for a command that was recorded elsewhere, or for nothing.

    Lane and command are one whole number, so that sums are made once for each combination. Of 100 commands the width is
    101: lane 2 waiting for command 7 is 2 × 101 + 7 + 1 = 210, and for no command, which is -1, 2 × 101 = 202.
    """
    stalls, lanes = analysis.stalls, analysis.run.trace.lanes
    late = np.flatnonzero(stalls.rest > 0)
    position = stalls.position[late]
    producer = _absent_producers(analysis, position)
    lane = analysis.work.lane[position]
    width = len(analysis.run.commands.rows) + 1
    codes, place = np.unique(lane * width + producer + 1, return_inverse=True)
    ns, times = np.bincount(place.reshape(-1), stalls.rest[late]), np.bincount(place.reshape(-1))
    sums: dict[tuple[str, str], tuple[float, int]] = {}
    for number, code in enumerate(codes.tolist()):
        mine, command = lanes[code // width], code % width - 1
        key = mine.name, NOTHING if command == NONE else _producer_name(analysis, mine, command)
        before = sums.get(key, (0.0, 0))
        sums[key] = before[0] + float(ns[number]), before[1] + int(times[number])
    return [WaitFor(who, cause, None, round(total), count) for (who, cause), (total, count) in sums.items()]


def _absent_producers(analysis: RunAnalysis, position: Numbers) -> Numbers:
    """Per activity, the command that it is known to have waited for, where another trace has that; NONE: no such."""
    work, rows = analysis.work, analysis.run.commands.rows
    waits = analysis.run.trace.spans.take(work.waits)
    named = (waits["kind"] == SpanKind.WAIT) & (waits["waits_on"] != NONE) & (waits["command"] != NONE)
    named &= (
        (waits["waits_on"] < len(rows)) & (waits["command"] < len(rows)) & ~np.isin(waits["waits_on"], work.command)
    )
    producer = np.full(len(rows) + 1, NONE)
    producer[waits["command"][named]] = waits["waits_on"][named]
    command = work.command[position]
    found: Numbers = producer[np.where((command >= 0) & (command < len(rows)), command, len(rows))]
    return found


def _producer_name(analysis: RunAnalysis, mine: Lane, command: int) -> str:
    """By what the table of commands says of it."""
    commands, row = analysis.run.commands, analysis.run.commands.rows[command]
    moves = row["route"] != NO_ROUTE
    name = route_name(commands.routes[row["route"]].name) if moves else commands.groups[row["group"]]
    return _seen_from(mine, Lane(int(row["device"]), int(row["core"]), name, NONE), name)


def _with_early(analysis: RunAnalysis, rows: list[WaitFor]) -> list[WaitFor]:
    """With the waits before the device had started, which are for the host whatever a lane went on with."""
    stalls, lanes = analysis.stalls, analysis.run.trace.lanes
    found = {(row.engine, row.cause): row for row in rows}
    for place in np.flatnonzero(stalls.early > 0).tolist():
        who = lanes[int(analysis.work.lane[stalls.position[place]])].name
        row = found.get((who, THE_HOST), WaitFor(who, THE_HOST, None, 0, 0))
        found[who, THE_HOST] = replace(row, wait_ns=row.wait_ns + int(stalls.early[place]), count=row.count + 1)
    return list(found.values())


def _longest_producers(analysis: RunAnalysis, stalls: Stalls, known: Numbers) -> dict[int, str]:
    """Group → the op, or the name of the span, that was waited for longest.

    Group and what was waited for are one whole number; names of spans are numbered behind the ops. Of 3 ops and 4 names
    the width is 8: group 2 waiting for op 1 is 17, for a span of name 0 it is 2 × 8 + 3 + 0 = 19. Sums are looked
    through from the largest, and the first one of each group is kept.
    """
    work, ops = analysis.work, len(analysis.run.ops)
    blocker = stalls.blocker[known]
    what = np.where(
        work.op[blocker] != NONE, work.op[blocker], ops + analysis.run.trace.spans["name"][work.row[blocker]]
    )
    width = ops + len(analysis.run.trace.names) + 1
    codes, place = np.unique(stalls.group[known] * width + what, return_inverse=True)
    sums = np.bincount(place.reshape(-1), (stalls.wait - stalls.early)[known], minlength=len(codes))
    found: dict[int, str] = {}
    for best in np.argsort(-sums, kind="stable").tolist():
        group, number = divmod(int(codes[best]), width)
        name = analysis.run.ops[number].name if number < ops else analysis.run.trace.names[number - ops]
        found.setdefault(group, name)
    return found
