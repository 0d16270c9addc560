"""Work that is not the network's: changes of layout, launches, ops on the CPU, products computed again."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from ...core.columns import distinct
from ...core.meaning import Does
from ...core.sums import known_sum
from ...core.units import format_count, format_counted, format_ns, format_percent
from ...recording.finding import Finding
from ...recording.trace import NONE
from ..causes import LAUNCH, LAYOUT, does_of
from ..repeated_work import repeated_work
from ..run_analysis import RunAnalysis
from ..timeline.critical_path import launch_ns
from .draft import Draft, cause_cost, start_cost
from .wasted import long_movers

LAYOUT_SHARE = 0.03  # of the critical path
LAUNCH_SHARE = 0.03  # of the critical path
SMALL_SHARE = 0.02  # of the wall time, that is spent on starting ops that are shorter than their start
AGAIN_SHARE = 0.01  # of the wall time, that the critical path runs through products computed before
MOST_NAMES = 20


def layout_changes(analysis: RunAnalysis) -> Iterator[Draft]:
    """Work that changes the form of data only: layout, type, place."""
    yield from _layout_on_path(analysis) if analysis.has_timeline else _layout_of_ops(analysis)


def _layout_on_path(analysis: RunAnalysis) -> Iterator[Draft]:
    named = np.append(long_movers(analysis), False)[analysis.work.op]  # they have a finding of their own
    positions = np.flatnonzero((analysis.work.cause == LAYOUT) & ~named)
    cost, whole = cause_cost(analysis, positions), analysis.work.wall_ns
    if whole and cost >= LAYOUT_SHARE * whole:
        found = _layout_finding(
            cost,
            whole,
            "the critical path",
            analysis.costliest_ops(positions, analysis.caused_ns),
            analysis.rows(positions, analysis.caused_ns),
            starts=start_cost(analysis, positions),
            what="other conversions and copies" if named.any() else "conversions and copies",
        )
        yield Draft(found, positions)


def _layout_of_ops(analysis: RunAnalysis) -> Iterator[Draft]:
    ops = [op for op in analysis.run.summary.ops if does_of(op) is not Does.SYNC]  # waits are no ops
    totals = [op for op in ops if does_of(op) is Does.LAYOUT]
    cost, whole = (sum(op.busy_ns or 0 for op in rows) for rows in (totals, ops))
    if whole and cost >= LAYOUT_SHARE * whole:
        names = tuple(dict.fromkeys(op.name for op in totals))
        yield Draft(_layout_finding(cost, whole, "the time of all ops", names[:MOST_NAMES], ()))


def _layout_finding(
    cost: int,
    whole: int,
    of: str,
    ops: tuple[str, ...],
    rows: tuple[int, ...],
    *,
    starts: str = "",
    what: str = "conversions and copies",
) -> Finding:
    """One text for both rules: `whole` is what the cost is a share of, and `of` says so."""
    return Finding(
        "layout",
        f"{what} take {format_percent(cost / whole)} of {of}",
        f"changes of layout, of data type and of place compute nothing{starts}",
        ops,
        cost,
        cost / whole,
        action="feed inputs in the layout and type that the engines take, and keep neighbours on one engine",
        spans=rows,
    )


def launches(analysis: RunAnalysis) -> Iterator[Draft]:
    """Time on the critical path that goes into starting work."""
    path = analysis.path
    chosen = (path.cause == LAUNCH) & ~_flushes(analysis)[path.activity]
    cost, starts = int(path.ns[chosen].sum()), int(chosen.sum())
    if not analysis.work.wall_ns or cost < LAUNCH_SHARE * analysis.work.wall_ns:
        return
    work = analysis.work
    inside = launch_ns(work, np.arange(len(work)))  # commands begin with their own
    all_launch = work.cause == LAUNCH
    positions = np.flatnonzero((all_launch | (inside > 0)) & ~_flushes(analysis)[:-1])
    left = np.where(all_launch, 0, np.maximum(work.ns - inside, 0))[positions]
    gaps = path.activity[chosen & (path.is_gap == 1) & (path.activity != NONE)]
    known = chosen & (path.activity != NONE)
    started_ns = np.bincount(path.activity[known], path.ns[known], minlength=len(work)).astype(np.int64)
    started = np.flatnonzero(started_ns)
    yield Draft(
        Finding(
            "launch",
            f"starting work takes {format_percent(cost / analysis.work.wall_ns)} of the critical path",
            f"{format_counted(starts, 'start')}, {format_ns(cost / max(starts, 1))} each on average",
            analysis.costliest_ops(started, started_ns),
            cost,
            action="fuse small ops, or launch many at once: a graph, a larger batch",
            spans=analysis.rows(started, started_ns),
        ),
        positions,
        left,
        gaps=gaps,
    )


def _flushes(analysis: RunAnalysis) -> npt.NDArray[np.bool_]:
    """Per activity, whether it writes the recording itself out; one more, False, for none."""
    return np.append(analysis.run.trace.spans["does"][analysis.work.row] == Does.STATS, False)


def small_ops(analysis: RunAnalysis) -> Iterator[Draft]:
    """Work of a device that is shorter than what starting it took."""
    work, path = analysis.work, analysis.path
    starts = np.zeros(len(work), np.bool_)
    starts[path.activity[(path.cause == LAUNCH) & (path.is_gap == 1)]] = True
    small = np.flatnonzero(starts & ~analysis.on_host & (work.op != NONE) & (analysis.order.lag > work.ns))
    cost = int(analysis.gap_ns[small].sum())
    if not work.wall_ns or cost < SMALL_SHARE * work.wall_ns:
        return
    ops, one = format_counted(len(distinct(work.op[small])), "op"), len(small) == 1
    yield Draft(
        Finding(
            "small-ops",
            f"{format_counted(len(small), 'command')} of {ops} {'is' if one else 'are'} shorter than what starting "
            f"{'it' if one else 'them'} takes",
            f"{format_ns(int(work.ns[small].sum()))} of work after {format_ns(cost)} of gaps",
            analysis.costliest_ops(small, analysis.gap_ns),
            cost,
            action=f"fuse {'it with its' if one else 'them with their'} neighbours",
            spans=analysis.rows(small, analysis.gap_ns),
        ),
        gaps=small,
    )


def computed_again(analysis: RunAnalysis) -> Iterator[Draft]:
    """Products that several cores compute whole, instead of a part each."""
    found = sorted(repeated_work(analysis.run), key=lambda work: -work.again_macs)
    times = np.ones(len(analysis.run.commands.rows))
    for work in found:
        times[work.commands] = work.times
    positions = np.flatnonzero(np.isin(analysis.work.command, np.flatnonzero(times > 1)))
    left = 1 / times[analysis.work.command[positions]]
    cost = int((analysis.path_ns[positions] * (1 - left)).sum())
    if not analysis.wall_ns or not found or cost < AGAIN_SHARE * analysis.wall_ns:
        return
    whole, again = int(analysis.run.commands.rows["macs"].sum()), sum(work.again_macs for work in found)
    yield Draft(
        Finding(
            "computed-again",
            f"{format_count(again)} of {format_count(whole)} MACs were computed on another core too",
            f"{format_counted(len(found), 'product')} run whole on several cores, "
            f"{analysis.run.ops[found[0].op].name} on {found[0].times}",
            tuple(dict.fromkeys(analysis.run.ops[work.op].name for work in found))[:MOST_NAMES],
            cost,
            action="a larger batch or fewer cores: parts this small cost more to hand around than to compute again",
            spans=analysis.rows(positions, analysis.path_ns),
        ),
        positions,
        np.ceil(analysis.work.ns[positions] * left).astype(np.int64),
    )


def on_the_cpu(analysis: RunAnalysis) -> Iterator[Draft]:
    """Ops that the accelerator does not take, where others do run on it."""
    totals = analysis.run.summary.ops
    cpu = [op for op in totals if op.on_cpu]
    if not cpu or not any(op.engine and not op.on_cpu for op in totals):
        return  # nothing runs anywhere else
    reasons = "; ".join(dict.fromkeys(op.reason for op in cpu if op.reason))
    types = ", ".join(dict.fromkeys(op.type for op in cpu if op.type))
    chosen = np.zeros(len(analysis.run.ops), np.bool_)
    chosen[[op.op for op in cpu if op.op is not None]] = True
    yield Draft(
        Finding(
            "cpu-fallback",
            f"{format_counted(len(cpu), 'op')} of {len(totals)} run on the CPU",
            f"{types[:200] or 'of types that are not known'}: {reasons[:300] or 'the run does not say why'}",
            tuple(op.name for op in cpu)[:MOST_NAMES],
            known_sum(op.busy_ns for op in cpu),
            action="replace them with ops that the accelerator takes, so that the model is not cut there",
        ),
        analysis.of_ops(chosen) if analysis.has_timeline else None,
    )
