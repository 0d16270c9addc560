"""Waits, gaps, engines with nothing to do, and work that is shared unevenly."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...core.columns import Numbers, distinct
from ...core.provenance import Provenance
from ...core.units import format_counted, format_ns, format_percent
from ...recording.finding import Finding, WaitFor
from ...recording.trace import NONE
from ..causes import COMPUTE, LAYOUT, OTHER
from ..run_analysis import RunAnalysis
from ..timeline.activities import NO_LANE
from ..timeline.critical_path import after
from ..timeline.gaps import THE_HOST, longest_gaps
from .draft import Draft, path_cost

WAIT_SHARE = 0.15  # of the time of the lanes that wait
WAIT_COST = 0.02  # of the wall time, that what they wait for takes of the critical path
MOST_WAITS = 3
GAP_SHARE = 0.02  # of the wall time
LOW_USE = 0.3  # of the engine that computes most
UNEVEN = 1.10  # busiest core or device, to their mean


def waits(analysis: RunAnalysis) -> Iterator[Draft]:
    """Who keeps engines waiting, where it costs the run time; formulas lay layers end to end, and do not know."""
    if analysis.run.info.provenance in (Provenance.ESTIMATED, Provenance.CALIBRATED):
        return
    lanes = {use.engine: use.lanes for use in analysis.engines}
    stalls, found = analysis.stalls, 0
    for row in analysis.waits:
        whole = analysis.work.wall_ns * lanes.get(row.engine, 1)
        if (row.engine, row.cause) not in stalls.groups or _explained_elsewhere(analysis, row):
            continue
        if not whole or row.wait_ns < WAIT_SHARE * whole or found == MOST_WAITS:
            return
        blockers = distinct(stalls.blocker[stalls.group == stalls.groups.index((row.engine, row.cause))])
        cost = path_cost(analysis, blockers)
        if cost < WAIT_COST * analysis.work.wall_ns:
            continue
        found += 1
        yield Draft(
            Finding(
                "wait",
                f"{row.engine} waits {format_percent(row.wait_ns / whole)} of the time for {row.cause}",
                f"{format_counted(row.count, 'wait')}, most of the time for {row.op}",
                analysis.costliest_ops(blockers, analysis.work.ns),
                cost,
                action=f"shorten what {row.cause} does meanwhile, or start it earlier, so that both work at once",
                spans=analysis.rows(blockers, analysis.path_ns),
            ),
            blockers,
        )


def _explained_elsewhere(analysis: RunAnalysis, row: WaitFor) -> bool:
    """A wait that is no cause of its own: rules about slow ops, or about the host, say what is behind it."""
    if row.engine not in _computing(analysis) or row.cause == THE_HOST:
        return True  # issues transfers, and is idle most of the time; or has nothing to do yet
    busy = {use.engine: use.busy_ns for use in analysis.engines}
    return busy.get(row.cause, 0) > busy.get(row.engine, 0)  # the one that has more to do is waited for


def _computing(analysis: RunAnalysis) -> set[str]:
    """Lanes that do more than issue transfers."""
    computes = np.flatnonzero(np.isin(analysis.work.cause, (COMPUTE, LAYOUT, OTHER)) & (analysis.work.lane != NO_LANE))
    return {analysis.run.trace.lanes[lane].name for lane in distinct(analysis.work.lane[computes]).tolist()}


def unexplained_gaps(analysis: RunAnalysis) -> Iterator[Draft]:
    """Time on the critical path that nothing which was recorded explains."""
    path = analysis.path
    gaps = (path.is_gap == 1) & (path.cause == OTHER)
    cost = int(path.ns[gaps].sum())
    if not analysis.wall_ns or cost < GAP_SHARE * analysis.wall_ns:
        return
    before = path.activity[gaps & (path.activity != NONE)]
    detail = f"{format_counted(int(gaps.sum()), 'gap')}"
    if len(before):
        longest = int(before[analysis.gap_ns[before].argmax()])
        detail += (
            f"; the longest, {format_ns(int(analysis.gap_ns[longest]))}, lies before "
            f"{analysis.work.name(longest)}, after {after(analysis.order, longest)}"
        )
    yield Draft(
        Finding(
            "gap",
            f"nothing that was recorded explains {format_percent(cost / analysis.wall_ns)} of the time",
            detail,
            analysis.costliest_ops(before, analysis.gap_ns),
            cost,
            action=_recorded_more(analysis),
            spans=analysis.rows(before, analysis.gap_ns),
        ),
        gaps=before,
    )


def _recorded_more(analysis: RunAnalysis) -> str:
    finer = ["a finer stats level"] if "stats_level" in analysis.run.info.options else []
    host = [] if analysis.on_host.any() else ["what the host and the runtime do meanwhile"]
    return f"record more: {', or '.join([*finer, *host]) or 'what lies between'}"


def idle_engines(analysis: RunAnalysis) -> Iterator[Draft]:
    """The engine that computes most has little to do."""
    work = analysis.work
    computes = np.flatnonzero(np.isin(work.cause, (COMPUTE, LAYOUT)) & (work.lane != NO_LANE))
    names = {analysis.run.trace.lanes[lane].name for lane in distinct(work.lane[computes]).tolist()}
    busiest = max((use for use in analysis.engines if use.engine in names), key=lambda use: use.busy_ns, default=None)
    whole = analysis.device_ns if work.staged else work.wall_ns  # stages of the host have a rule of their own
    if busiest is None or not whole or busiest.busy_ns >= LOW_USE * whole:
        return
    each = " each" if busiest.lanes > 1 else ""
    detail = f"{format_counted(busiest.lanes, 'lane')} busy for {format_ns(busiest.busy_ns)}{each}"
    begin = work.start[~analysis.on_host].min() if work.staged else work.start_ns
    gap = next((gap for gap in longest_gaps(analysis) if gap.lane == busiest.engine and gap.start_ns >= begin), None)
    if gap is not None:
        rest = format_ns(gap.end_ns - gap.start_ns)
        detail += f"; the longest rest, {rest} before {gap.before}, ends with {gap.ended_by}"
    use, of = format_percent(busiest.busy_ns / whole), "the device's time" if work.staged else "the time"
    yield Draft(
        Finding(
            "low-utilization",
            f"{busiest.engine} works {use} of {of}, and no engine more",
            detail,
            action="a larger batch, or several inferences at once",
        )
    )


def uneven_work(analysis: RunAnalysis) -> Iterator[Draft]:
    """Devices, or cores of one device, of which one has more work than the others: by work, not by wall clock."""
    lanes = analysis.run.trace.lanes
    yield from _uneven(analysis, "device", np.array([lane.device for lane in lanes] or [NONE]))
    for device in sorted({lane.device for lane in lanes if lane.device != NONE}):
        cores = [lane.core if lane.device == device else NONE for lane in lanes]
        found = list(_uneven(analysis, "core", np.array(cores)))
        if found:
            yield found[0]
            return  # devices mostly do alike, and one says it


def _uneven(analysis: RunAnalysis, word: str, owner_of_lane: Numbers) -> Iterator[Draft]:
    """Who of these owners computes longest, where that is well above their mean.

    Work counts, and not when it ended: two cores that end together, one of them idle half of the time, are uneven.
    With 100 and 40 ns of work the mean is 70: the first has 1.43 × that, and even it would take 70, 30 less. Transfers
    are left out, as a core may read for the others too.

    Args:
        owner_of_lane: number of the device or core that a lane belongs to; NONE: of none.
    """
    work = analysis.work
    computes = np.flatnonzero(np.isin(work.cause, (COMPUTE, LAYOUT)) & (work.lane != NO_LANE))
    owner = owner_of_lane[work.own_lane[computes]]
    computes, owner = computes[owner >= 0], owner[owner >= 0]
    numbers, place = np.unique(owner, return_inverse=True)
    busy = np.bincount(place.reshape(-1), work.ns[computes], minlength=len(numbers))
    if len(numbers) < 2 or not busy.any() or busy.max() < UNEVEN * busy.mean():
        return
    ratio, most = float(busy.max() / busy.mean()), int(busy.argmax())
    slowest = computes[place.reshape(-1) == most]
    yield Draft(
        Finding(
            f"uneven-{word}s",
            f"{word} {int(numbers[most])} has {ratio:.2f} × the work of the mean {word}",
            f"{format_ns(float(busy[most]))} at work against {format_ns(float(busy.mean()))}, "
            f"the mean of {len(numbers)}",
            analysis.costliest_ops(slowest, work.ns),
            round(path_cost(analysis, slowest) * (1 - 1 / ratio)),
            action=f"split its largest ops over the other {word}s",
            spans=analysis.rows(slowest, work.ns),
        ),
        slowest,
        (work.ns[slowest] / ratio).astype(np.int64),
    )
