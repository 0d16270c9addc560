"""Waits, gaps, engines with nothing to do, and work that is shared unevenly."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...core.columns import distinct
from ...core.units import format_percent
from ...recording.finding import Finding, WaitFor
from ...recording.trace import NONE
from ..causes import COMPUTE, LAYOUT, OTHER
from ..facts import Facts
from ..timeline.activities import ASIDE, Numbers
from ..timeline.critical_path import after
from ..timeline.gaps import THE_HOST, longest_gaps, waits_for
from .claim import Claim, count, path_cost, time

WAIT_SHARE = 0.15  # of the time of the lanes that wait
WAIT_COST = 0.02  # of the wall time, that what they wait for takes of the critical path
MOST_WAITS = 3
GAP_SHARE = 0.02  # of the wall time
LOW_USE = 0.3  # of the engine that computes most
UNEVEN = 1.10  # busiest core or device, to their mean


def waits(facts: Facts) -> Iterator[Claim]:
    """Who keeps engines waiting, where it costs the run time."""
    lanes = {use.engine: use.lanes for use in facts.engines}
    stalls, told = facts.stalls, 0
    for row in waits_for(facts):
        whole = facts.work.wall_ns * lanes.get(row.engine, 1)
        if (row.engine, row.cause) not in stalls.groups or _as_it_should(facts, row):
            continue
        if not whole or row.wait_ns < WAIT_SHARE * whole or told == MOST_WAITS:
            return
        holders = distinct(stalls.holder[stalls.group == stalls.groups.index((row.engine, row.cause))])
        cost = path_cost(facts, holders)
        if cost < WAIT_COST * facts.work.wall_ns:
            continue
        told += 1
        yield Claim(
            Finding(
                "wait",
                f"{row.engine} waits {format_percent(row.wait_ns / whole)} of the time for {row.cause}",
                f"{count(row.count, 'wait')}, most of the time for {row.op}",
                facts.costliest_ops(holders, facts.work.ns),
                cost,
                action=f"shorten what {row.cause} does meanwhile, or start it earlier, so that both work at once",
                spans=facts.rows(holders, facts.path_ns),
            ),
            holders,
        )


def _as_it_should(facts: Facts, row: WaitFor) -> bool:
    """A wait that is no cause of its own: rules about slow ops, or about the host, say what is behind it."""
    if row.engine not in _computing(facts) or row.cause == THE_HOST:
        return True  # sends transfers off, and stands still most of the time; or has nothing to do yet
    busy = {use.engine: use.busy_ns for use in facts.engines}
    return busy.get(row.cause, 0) > busy.get(row.engine, 0)  # whoever has more to do is waited for


def _computing(facts: Facts) -> set[str]:
    """Lanes that do more than send transfers off."""
    computes = np.flatnonzero(np.isin(facts.work.cause, (COMPUTE, LAYOUT, OTHER)) & (facts.work.lane != ASIDE))
    return {facts.run.trace.lanes[lane].name for lane in distinct(facts.work.lane[computes]).tolist()}


def unexplained_gaps(facts: Facts) -> Iterator[Claim]:
    """Time on the critical path that nothing which was recorded explains."""
    path = facts.path
    gaps = (path.is_gap == 1) & (path.cause == OTHER)
    cost = int(path.ns[gaps].sum())
    if not facts.wall_ns or cost < GAP_SHARE * facts.wall_ns:
        return
    before = path.activity[gaps & (path.activity != NONE)]
    detail = f"{count(int(gaps.sum()), 'gap')}"
    if len(before):
        longest = int(before[facts.gap_ns[before].argmax()])
        detail += (
            f"; the longest, {time(int(facts.gap_ns[longest]))}, lies before "
            f"{facts.work.name(longest)}, after {after(facts.order, longest)}"
        )
    yield Claim(
        Finding(
            "gap",
            f"nothing that was recorded explains {format_percent(cost / facts.wall_ns)} of the time",
            detail,
            facts.costliest_ops(before, facts.gap_ns),
            cost,
            action=_recorded_more(facts),
            spans=facts.rows(before, facts.gap_ns),
        ),
        gaps=before,
    )


def _recorded_more(facts: Facts) -> str:
    finer = ["a finer stats level"] if "stats_level" in facts.run.info.options else []
    host = [] if facts.on_host.any() else ["what the host and the runtime do meanwhile"]
    return f"record more: {', or '.join([*finer, *host]) or 'what lies between'}"


def idle_engines(facts: Facts) -> Iterator[Claim]:
    """The engine that computes most has little to do."""
    work = facts.work
    computes = np.flatnonzero(np.isin(work.cause, (COMPUTE, LAYOUT)) & (work.lane != ASIDE))
    names = {facts.run.trace.lanes[lane].name for lane in distinct(work.lane[computes]).tolist()}
    busiest = max((use for use in facts.engines if use.engine in names), key=lambda use: use.busy_ns, default=None)
    whole = facts.device_ns if work.staged else work.wall_ns  # stages of the host have a rule of their own
    if busiest is None or not whole or busiest.busy_ns >= LOW_USE * whole:
        return
    each = " each" if busiest.lanes > 1 else ""
    detail = f"{count(busiest.lanes, 'lane')} busy for {time(busiest.busy_ns)}{each}"
    begin = work.start[~facts.on_host].min() if work.staged else work.start_ns
    gap = next((gap for gap in longest_gaps(facts) if gap.lane == busiest.engine and gap.start_ns >= begin), None)
    if gap is not None:
        rest = time(gap.end_ns - gap.start_ns)
        detail += f"; the longest rest, {rest} before {gap.before}, ends with {gap.ended_by}"
    use, of = format_percent(busiest.busy_ns / whole), "the device's time" if work.staged else "the time"
    yield Claim(
        Finding(
            "low-utilization",
            f"{busiest.engine} works {use} of {of}, and no engine more",
            detail,
            action="a larger batch, or several inferences at once",
        )
    )


def uneven_work(facts: Facts) -> Iterator[Claim]:
    """Devices, or cores of one device, of which one has more work than the others: by work, not by wall clock."""
    lanes = facts.run.trace.lanes
    yield from _uneven(facts, "device", np.array([lane.device for lane in lanes] or [NONE]))
    for device in sorted({lane.device for lane in lanes if lane.device != NONE}):
        cores = [lane.core if lane.device == device else NONE for lane in lanes]
        found = list(_uneven(facts, "core", np.array(cores)))
        if found:
            yield found[0]
            return  # devices mostly do alike, and one says it


def _uneven(facts: Facts, word: str, owner_of_lane: Numbers) -> Iterator[Claim]:
    work = facts.work
    computes = np.flatnonzero(np.isin(work.cause, (COMPUTE, LAYOUT)) & (work.lane != ASIDE))
    owner = owner_of_lane[work.own_lane[computes]]
    computes, owner = computes[owner >= 0], owner[owner >= 0]
    numbers, place = np.unique(owner, return_inverse=True)
    busy = np.bincount(place.reshape(-1), work.ns[computes], minlength=len(numbers))
    if len(numbers) < 2 or not busy.any() or busy.max() < UNEVEN * busy.mean():
        return
    ratio, most = float(busy.max() / busy.mean()), int(busy.argmax())
    slowest = computes[place.reshape(-1) == most]
    yield Claim(
        Finding(
            f"uneven-{word}s",
            f"{word} {int(numbers[most])} has {ratio:.2f} × the work of the mean {word}",
            f"{time(float(busy[most]))} at work against {time(float(busy.mean()))}, the mean of {len(numbers)}",
            facts.costliest_ops(slowest, work.ns),
            round(path_cost(facts, slowest) * (1 - 1 / ratio)),
            action=f"split its largest ops over the other {word}s",
            spans=facts.rows(slowest, work.ns),
        ),
        slowest,
        (work.ns[slowest] / ratio).astype(np.int64),
    )
