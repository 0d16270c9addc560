"""The critical path: from the end of the run back to its start, always to what held the present one back.

Every activity starts when the last thing that it needs is done, plus a lag that nothing recorded explains. The path
is the longest one through activities and lags, and is as long as the run: its stretches lie end to end.

    lane 1 |  b: 0–6   |                     c ends last; its blocker is b, which nothing held back:
    lane 0 | a: 0–4 |     | c: 7–9 |         b 0–6, gap before c 6–7, c 7–9. `a` is not on the path.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ...core.columns import Numbers
from ...core.meaning import LaneRole
from ...recording.finding import PathStep
from ...recording.trace import NONE, SpanKind
from ..causes import CAUSES, HOST, LAUNCH, OTHER, WAIT
from .activities import Activities
from .dependencies import ASSUMED, DATA, ISSUE, LANE, ORDER, STAGE, Dependencies
from .intervals import largest, union

LAUNCH_GAP_NS = 5_000  # a shorter gap between two activities is what starting one takes
MOST_STEPS = 2_000  # that a result lists
_WORDS = {
    DATA: "data of {}",
    ORDER: "its turn after {}",  # memory is used again, or layers run one behind the other
    ISSUE: "issue of {}",
    LANE: "lane {} was busy",
    STAGE: "the end of {}",
    ASSUMED: "the end of {}, which nothing says it needed",
}


@dataclass(frozen=True, slots=True)
class Path:
    """Stretches of the window, end to end. A stretch is an activity, or the gap before it."""

    start: Numbers
    end: Numbers
    activity: Numbers  # NONE: after the last one
    is_gap: Numbers  # 1: the gap before the activity
    cause: Numbers

    @property
    def ns(self) -> Numbers:
        return self.end - self.start

    def of_activities(self, count: int) -> Numbers:
        """Per activity, how much of the path it is."""
        at_work = (self.is_gap == 0) & (self.activity != NONE)
        return np.bincount(self.activity[at_work], self.ns[at_work], minlength=count).astype(np.int64)

    def of_causes(self, causes: Numbers) -> Numbers:
        """Per activity, how much of the path counts as its cause: all that it is but its start, which is a launch.

        Args:
            causes: of every activity.
        """
        kept = np.flatnonzero((self.is_gap == 0) & (self.activity != NONE))
        kept = kept[self.cause[kept] == causes[self.activity[kept]]]
        return np.bincount(self.activity[kept], self.ns[kept], minlength=len(causes)).astype(np.int64)


def critical_path(order: Dependencies) -> Path:
    """For every activity of the chain three stretches: the gap before it, its launch, and itself; those of no length
    are left out.

    An activity counts up to the start of the next one, which it may have released before its own end.
    """
    work = order.activities
    chain = _chain(order)
    ends = np.append(np.minimum(work.end[chain[:-1]], work.start[chain[1:]]), work.end[chain[-1:]])
    gaps, begun = order.ready[chain], np.minimum(work.start[chain] + launch_ns(work, chain), ends)
    start = np.stack((gaps, work.start[chain], begun), axis=1).reshape(-1)
    end = np.stack((work.start[chain], begun, ends), axis=1).reshape(-1)
    launches = np.full(len(chain), LAUNCH)
    cause = np.stack((_gap_causes(order, chain), launches, work.cause[chain]), axis=1).reshape(-1)
    activity, is_gap = np.repeat(chain, 3), np.tile([1, 0, 0], len(chain))
    last = work.end[chain[-1]] if len(chain) else work.start_ns
    start, end = np.append(start, last), np.append(end, work.end_ns)
    cause, activity, is_gap = np.append(cause, OTHER), np.append(activity, NONE), np.append(is_gap, 1)
    some = end > start
    return Path(start[some], end[some], activity[some], is_gap[some], cause[some])


def _chain(order: Dependencies) -> Numbers:
    """Positions from first to last, found backwards: from what ended last, always to its blocker."""
    work = order.activities
    if not len(work):
        return np.zeros(0, np.int64)
    blocker = order.blocker.tolist()
    position, chain = int(work.end.argmax()), []
    while position != NONE:
        chain.append(position)
        position = blocker[position]
    return np.array(chain[::-1], np.int64)


def launch_ns(work: Activities, chain: Numbers) -> Numbers:
    """What each of these takes before its work starts, where the run tells it of the unit."""
    run, table = work.run, work.run.commands
    clock = run.info.clocks_hz.get("core")
    cycles = {} if run.bounds is None else {unit.name: unit.launch_cycles for unit in run.bounds.units}
    command = work.command[chain]
    if not clock or not any(cycles.values()) or not len(table.rows):
        return np.zeros(len(chain), np.int64)
    per_group = np.array([round(cycles.get(name, 0.0) / clock * 1e9) for name in table.groups], np.int64)
    works = (run.trace.spans["kind"][work.row[chain]] == SpanKind.OP) & (command != NONE)
    return np.where(works, per_group[table.rows["group"][np.maximum(command, 0)]], 0)


def _gap_causes(order: Dependencies, chain: Numbers) -> Numbers:
    """What the time before each of these counts as, when everything that it is known to need was done."""
    work = order.activities
    kind = work.run.trace.spans["kind"][work.row[chain]]
    blocker = order.blocker[chain]
    host = kind == SpanKind.HOST
    after_host = np.where(blocker == NONE, host, np.roll(host, 1))
    crosses = (host != after_host) & (blocker != NONE)
    length = order.lag[chain]
    others = _busy_elsewhere(order, chain)
    between = np.where(host & after_host, HOST, np.where(2 * others >= length, WAIT, OTHER))
    first = np.where(_marks_host_start(work), HOST, OTHER)
    short = (length <= LAUNCH_GAP_NS) & (blocker != NONE) & ~host
    return np.select([crosses | short, blocker == NONE], [LAUNCH, first], between)


def _busy_elsewhere(order: Dependencies, chain: Numbers) -> Numbers:
    """Of the gap before each, how long anything at all was at work.

    By the busy time up to a moment: with work at 0–4 and 6–9 it is 4 until 5, and 5 until 7, so that of a gap from
    5 to 7 one nanosecond was busy.
    """
    work = order.activities
    some = union(np.zeros(len(work), np.int64), work.start, work.end)
    reached = np.concatenate(([0], np.cumsum(some.end - some.start)))

    def until(moment: Numbers) -> Numbers:
        place = np.searchsorted(some.start, moment, "right")
        over = np.where(place > 0, np.maximum(some.end[place - 1] - moment, 0), 0)
        return np.asarray(reached[place] - over, np.int64)

    return until(work.start[chain]) - until(order.ready[chain])


def _marks_host_start(work: Activities) -> bool:
    """The trace marks how long the device waited for the host at the start."""
    trace = work.run.trace
    marks = np.array([lane.role is LaneRole.MARKER for lane in trace.lanes] or [False])
    return bool((marks[trace.spans["lane"]] & (trace.spans["end_ns"] > trace.spans["start_ns"])).any())


def path_steps(order: Dependencies, path: Path) -> tuple[PathStep, ...]:
    """Stretches of one op and cause that lie end to end become one; of very many, the longest are listed."""
    if not len(path.start) or not len(order.activities):  # nothing but the inference itself may be known
        return ()
    op = np.where(path.activity == NONE, NONE, order.activities.op[path.activity])
    code = (op * 2 + path.is_gap) * len(CAUSES) + path.cause
    alone = (op == NONE) | (path.is_gap == 1)
    begins = np.flatnonzero((np.diff(code, prepend=np.iinfo(np.int64).min) != 0) | alone)
    until = np.append(begins[1:], len(code)) - 1
    if len(begins) > MOST_STEPS:
        length = path.end[until] - path.start[begins]
        longest = np.sort(largest(length, MOST_STEPS))
        begins, until = begins[longest], until[longest]
    return tuple(_steps(order, path, begins, until))


def _steps(order: Dependencies, path: Path, begins: Numbers, until: Numbers) -> Iterator[PathStep]:
    """One step from each of `begins` to the end of the one of `until` beside it."""
    work, position = order.activities, path.activity[begins]
    causes, op, row = path.cause[begins].tolist(), work.op[position].tolist(), work.row[position].tolist()
    bounds = zip(path.start[begins].tolist(), path.end[until].tolist(), strict=True)
    followed = afters(order, position)
    about = zip(position.tolist(), path.is_gap[begins].tolist(), causes, op, row, followed, strict=True)
    for (start, end), (activity, gap, cause, number, span, after) in zip(bounds, about, strict=True):
        if activity == NONE:
            yield PathStep(start, end, None, None, CAUSES[cause], "the last activity")
            continue
        name = None if number == NONE else work.run.ops[number].name
        yield PathStep(start, end, None if gap else span, name, CAUSES[cause], after)


def after(order: Dependencies, position: int) -> str:
    """What an activity followed."""
    return afters(order, np.array([position]))[0]


def afters(order: Dependencies, positions: Numbers) -> list[str]:
    """What each of these activities followed."""
    work, run = order.activities, order.activities.run
    blocker, why = order.blocker[positions], order.blocked_why[positions].tolist()
    lane, op, name = (column[blocker].tolist() for column in (work.own_lane, work.op, work.row))
    found = []
    for held, reason, on, number, row in zip(blocker.tolist(), why, lane, op, name, strict=True):
        if held == NONE:
            found.append("start")
        elif reason == LANE:
            found.append(_WORDS[LANE].format(run.trace.lanes[on].name))
        else:
            text = run.ops[number].name if number != NONE else run.trace.names[run.trace.spans["name"][row]]
            found.append(_WORDS[reason].format(text))
    return found
