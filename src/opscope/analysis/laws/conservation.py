"""Do the numbers of a Run add up: are parts the whole, and is the same thing told twice told alike?

Times are whole nanoseconds: where a run's times were rounded one by one, a sum of n of them may be off by n. A lane
with spans of 1.4, 1.4 and 1.4 ns has three spans of 1 ns and a total of 4 ns: off by 1, which is not more than 3.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from ...core.columns import Numbers, distinct, rising
from ...core.meaning import Does
from ...core.sums import known_sum
from ...core.units import format_ns
from ...program.program import NO_OP, NO_ROUTE
from ...recording.finding import LawCheck
from ...recording.run import Run
from ...recording.summary import OpTotal, Share
from ...recording.trace import NONE, SpanKind
from ..run_analysis import RunAnalysis
from ..timeline.activities import execution_marks
from ..timeline.intervals import union

NEAR = 1e-9  # of a sum of shares
IMPORTED = "imported_as"  # option of a run that another tool's file was made into
_AMOUNTS = ("busy_ns", "macs", "moved_bytes", "out_bytes", "commands")


def lanes_add_up(analysis: RunAnalysis) -> Iterator[LawCheck]:
    """busy + wait + idle = wall on every lane, and busy and wait are what the spans say."""
    name = "busy + wait + idle = wall on every lane"
    lanes = analysis.run.summary.lanes
    if not lanes:
        yield LawCheck(name, None, "the run has no totals of lanes")
        return
    odd = [lane.name for lane in lanes if lane.idle_ns < 0 or lane.busy_ns < 0 or (lane.wait_ns or 0) < 0]
    walls = {lane.wall_ns for lane in lanes}
    words = f"{len(lanes)} lanes, wall {' and '.join(format_ns(ns) for ns in sorted(walls)[-2:])}"
    unknown = sum(lane.wait_ns is None for lane in lanes)
    words += f"; waits of {unknown} are not known, and in idle" if unknown else ""
    yield LawCheck(name, not odd, f"{odd[0]} is at work for longer than the wall time" if odd else words)
    yield _lanes_of_spans(analysis)


def _lanes_of_spans(analysis: RunAnalysis) -> LawCheck:
    name = "busy and wait of every lane = its spans"
    spans, count = _spans_of_summary(analysis), len(analysis.run.trace.lanes)
    cell = spans["lane"] * np.int64(8) + spans["kind"]
    sums = np.bincount(cell, spans["end_ns"] - spans["start_ns"], minlength=8 * count).reshape(count, 8)
    rows = np.bincount(cell, minlength=8 * count).reshape(count, 8)
    if not rows[:, [SpanKind.OP, SpanKind.HOST, SpanKind.WAIT]].any():
        return LawCheck(name, None, "the run has no spans of work")
    wait = sums[:, SpanKind.WAIT]
    busy, number = sums.sum(axis=1) - wait - sums[:, SpanKind.BARRIER], rows.sum(axis=1)
    off, checked = _furthest_off(analysis, busy, wait, number)
    detail = f"{checked} lanes" if off <= 0 else f"one differs by {format_ns(off)} more than rounding"
    return LawCheck(name, off <= 0 if checked else None, detail)


def _furthest_off(analysis: RunAnalysis, *columns: npt.NDArray[np.generic]) -> tuple[float, int]:
    """By how much more than a nanosecond a span the totals of a lane differ from its spans, and how many were seen.

    Args:
        columns: busy, wait and number of spans, per lane.
    """
    sums: dict[tuple[int, int, str], list[float]] = {}
    for lane, *values in zip(analysis.run.trace.lanes, *(column.tolist() for column in columns), strict=True):
        found = sums.setdefault((lane.device, lane.core, lane.name), [0.0, 0.0, 0.0])
        sums[lane.device, lane.core, lane.name] = [one + more for one, more in zip(found, values, strict=True)]
    off, checked = 0.0, 0
    for key, at_work, waited in _joined(analysis):
        if key in sums:
            busy, wait, number = sums[key]
            checked += 1
            off = max(off, abs(busy - at_work) - number, abs(wait - waited) - number)
    return off, checked


def _joined(analysis: RunAnalysis) -> Iterator[tuple[tuple[int, int, str], int, int]]:
    """Totals of lanes; threads of one name together, as spans have them."""
    sums: dict[tuple[int, int, str], tuple[int, int]] = {}
    for lane in analysis.run.summary.lanes:
        key = (lane.device, lane.core, lane.name)
        busy, wait = sums.get(key, (0, 0))
        sums[key] = (busy + lane.busy_ns, wait + (lane.wait_ns or 0))
    yield from ((key, busy, wait) for key, (busy, wait) in sums.items())


def _spans_of_summary(analysis: RunAnalysis) -> npt.NDArray[np.void]:
    """Those that the totals are about: of an imported run all, else of one inference."""
    spans, inference = analysis.run.trace.spans, analysis.work.inference
    if IMPORTED in analysis.run.info.options or inference == NONE:
        return spans
    return np.asarray(spans[spans["inference"] == inference])


def lanes_keep_order(analysis: RunAnalysis) -> Iterator[LawCheck]:
    """Spans of one lane do not overlap."""
    name = "spans of a lane do not overlap"
    spans = analysis.run.trace.spans
    if not len(spans):
        yield LawCheck(name, None, "the run has no spans")
        return
    kept = np.flatnonzero(spans["kind"] != SpanKind.PHASE)
    lane, start, end = (spans[key][kept] for key in ("lane", "start_ns", "end_ns"))
    low, width = int(start.min(initial=0)), int(end.max(initial=0)) - int(start.min(initial=0)) + 1
    base = lane * np.int64(width) - low  # lanes lie one behind the other on one axis
    start, end = base + start, base + end
    order = rising(lane)
    if (start[order[1:]] < end[order[:-1]]).any():  # else every lane stands in order in the table, as most do
        order = rising(start * 2 + (end > start))
    broken = int((start[order[1:]] < end[order[:-1]]).sum())
    yield LawCheck(
        name,
        not broken,
        f"{broken:,} of {len(kept):,} start before the last one has ended"
        if broken
        else f"{len(kept):,} spans on {len(analysis.run.trace.lanes)} lanes",
    )


def window_is_latency(analysis: RunAnalysis) -> Iterator[LawCheck]:
    """The timeline is as long as the latency says, and the critical path as long as the timeline."""
    latency, name = analysis.run.summary.latency.value_ns, "timeline = latency"
    if not analysis.has_timeline or latency is None or IMPORTED in analysis.run.info.options:
        reason = "the run has no timeline" if not analysis.has_timeline else "the latency is not of this timeline alone"
        yield LawCheck(name, None, "the latency is not known" if latency is None else reason)
    else:
        length = device_window_ns(analysis)
        yield LawCheck(name, abs(length - latency) <= len(analysis.path.ns), f"{length:,} and {latency:,} ns")
    if analysis.has_timeline:
        length = int(analysis.path.ns.sum())
        yield LawCheck(
            "critical path = timeline",
            length == analysis.work.wall_ns,
            f"{length:,} ns in {len(analysis.path.ns):,} stretches",
        )


def device_window_ns(analysis: RunAnalysis) -> int:
    """The part of the timeline that is the device's."""
    trace = analysis.run.trace
    marks = trace.spans[execution_marks(trace, analysis.work.inference)]
    return int(marks["end_ns"].max() - marks["start_ns"].min()) if len(marks) else analysis.work.wall_ns


def rollups_add_up(analysis: RunAnalysis) -> Iterator[LawCheck]:
    """Types, layers and blocks hold what ops hold."""
    summary, untold = analysis.run.summary, without_totals(analysis.run)
    for word, rows in (("types", summary.op_types), ("layers", summary.layers), ("blocks", summary.blocks)):
        name = f"ops = {word}: time, MACs, bytes"
        if not rows:
            yield LawCheck(name, None, f"the run has no totals of {word}")
            continue
        if untold:
            yield LawCheck(name, None, untold)
            continue
        wrong = [key for key in _AMOUNTS if _total(summary.ops, key) != _total(rows, key)]
        yield LawCheck(
            name,
            not wrong,
            _different(summary.ops, rows, wrong[0]) if wrong else f"{len(summary.ops)} ops, {len(rows)} {word}",
        )


def _total(rows: Iterable[OpTotal], key: str) -> int | None:
    return known_sum(getattr(row, key) for row in rows)


def _different(one: Iterable[OpTotal], other: Iterable[OpTotal], key: str) -> str:
    return f"{key}: {_total(one, key):,} and {_total(other, key):,}"


def commands_add_up(analysis: RunAnalysis) -> Iterator[LawCheck]:
    """MACs and bytes of ops are those of the commands that ran; an op of unknown cost has no totals to hold to its."""
    run, rows = analysis.run, analysis.run.commands.rows
    names = {
        "macs": "MACs of ops = MACs of commands",
        "moved_bytes": "bytes moved by ops = bytes moved by commands",
        "out_bytes": "bytes written by ops = bytes written by commands",
    }
    ran = _of_known_ops(run, commands_that_ran(analysis))
    for key, name in names.items():
        if not has_transfers(run) or not len(ran):
            yield LawCheck(name, None, "the run does not hold the commands of a program")
            continue
        of_commands, of_ops = int(rows[key][ran].astype(np.int64).sum()), _total(run.summary.ops, key)
        if of_ops is None and not of_commands:
            yield LawCheck(name, None, "neither ops nor commands tell")
            continue
        yield LawCheck(name, of_commands == of_ops, f"{of_ops or 0:,} and {of_commands:,}")


def has_transfers(run: Run) -> bool:
    """The run holds the commands of a program: those of foreign files have no routes."""
    return bool((run.commands.rows["route"] != NO_ROUTE).any())


def commands_that_ran(analysis: RunAnalysis) -> Numbers:
    """Commands of the network that have a span; the flush of the statistics belongs to nobody."""
    commands, work = analysis.run.commands, analysis.work
    seen = distinct(work.command[(work.command >= 0) & (work.command < len(commands.rows))])
    return seen[commands.rows["does"][seen] != Does.STATS] if len(seen) else seen


def _of_known_ops(run: Run, commands: Numbers) -> Numbers:
    unknown = np.array([*(bool(op.unknown) for op in run.ops), False])  # the last: of commands of no op
    known: Numbers = commands[~unknown[run.commands.rows["op"][commands]]]
    return known


def without_totals(run: Run) -> str:
    """Why totals of ops are not of all commands: what passes between an op of unknown cost and others has run."""
    unknown = run.unknown_ops
    return f"{len(unknown):,} of {len(run.ops):,} ops have no known cost" if unknown else ""


def routes_add_up(analysis: RunAnalysis) -> Iterator[LawCheck]:
    """Bytes per route are those of its transfers; and so are reads and writes of the outer memory."""
    run, rows, name = analysis.run, analysis.run.commands.rows, "bytes of routes = bytes of transfers"
    whole = [route for route in run.summary.routes if route.core is None]
    if not whole:
        yield LawCheck(name, None, "the run has no totals of routes")
        return
    ran = commands_that_ran(analysis)
    moved = rows[ran][rows["route"][ran] != NO_ROUTE]
    sums = np.bincount(moved["route"], moved["moved_bytes"].astype(np.float64), minlength=len(run.routes))
    summed = {route.name: sum(r.bytes for r in whole if r.route == route.name) for route in run.routes}
    wrong = [
        f"{word}: {summed[word]:,} and {round(sums[place]):,}"
        for place, word in enumerate(summed)
        if summed[word] != round(sums[place])
    ]
    yield LawCheck(name, not wrong, wrong[0] if wrong else f"{sum(summed.values()):,} bytes on {len(summed)} routes")
    yield _cores_of_routes(analysis)


def _cores_of_routes(analysis: RunAnalysis) -> LawCheck:
    routes = analysis.run.summary.routes
    whole, parts = (sum(r.bytes for r in routes if (r.core is None) is wanted) for wanted in (True, False))
    return LawCheck("bytes of routes = bytes of their cores", whole == parts, f"{whole:,} and {parts:,}")


def op_times_add_up(analysis: RunAnalysis) -> Iterator[LawCheck]:
    """The time of every op is that of its commands: computing, or bytes on their way.

    Transfers of one queue are on their way together, and time is of one of them; in runs of earlier versions, of all.
    """
    name, run = "time of ops = time of their commands", analysis.run
    ran = commands_that_ran(analysis)
    if not has_transfers(run) or not len(ran):
        yield LawCheck(name, None, "the run does not hold the commands of a program")
        return
    if untold := without_totals(run):
        yield LawCheck(name, None, untold)
        return
    work, count = analysis.work, len(run.commands.rows)
    known = np.flatnonzero((work.command >= 0) & (work.command < count))
    first, last = np.full(count, np.iinfo(np.int64).max), np.zeros(count, np.int64)
    np.minimum.at(first, work.command[known], work.start[known])
    np.maximum.at(last, work.command[known], work.end[known])
    rows = run.commands.rows[ran]
    flies = rows["route"] != NO_ROUTE
    each = last[ran] - first[ran]
    core = rows["device"].astype(np.int64) * (int(rows["core"].max()) + 1) + rows["core"]
    queue = (core * len(run.routes) + rows["route"])[flies]
    moving = union(queue, first[ran][flies], last[ran][flies])
    in_turn = int(each[~flies].sum() + (moving.end - moving.start).sum())
    of_ops = _total(run.summary.ops, "busy_ns") or 0
    holds = min(abs(in_turn - of_ops), abs(int(each.sum()) - of_ops)) <= len(ran)
    yield LawCheck(name, holds, f"{of_ops:,} and {in_turn:,} ns, {int(flies.sum()):,} of them transfers")


def shares_add_up(analysis: RunAnalysis) -> Iterator[LawCheck]:
    """Parts of a whole are the whole."""
    summary = analysis.run.summary
    for name, parts in (
        ("shares of the breakdown add up to 1", summary.breakdown),
        ("shares of the occupancy add up to 1", summary.occupancy),
        ("shares of the verdict add up to 1", analysis.breakdown),
    ):
        yield _share_law(name, parts)
    yield _one_breakdown(summary.breakdown, analysis.breakdown)
    known = [op.share for op in summary.ops if op.share is not None]
    if known:
        rounded = len(known) / (2 * analysis.wall_ns) if analysis.wall_ns else 0.0  # times of ops are whole ns
        most = 1 + NEAR + rounded
        yield LawCheck("shares of ops add up to at most 1", sum(known) <= most, f"{len(known)} ops, {sum(known):.6f}")


def _one_breakdown(of_summary: tuple[Share, ...], found: tuple[Share, ...]) -> LawCheck:
    name = "breakdown of the summary = that of the verdict"
    if not of_summary:
        return LawCheck(name, None, "the summary has none")
    then, now = ({part.cause: round(part.ns) for part in parts} for parts in (of_summary, found))
    wrong = [cause for cause in (*then, *now) if then.get(cause, 0) != now.get(cause, 0)]
    words = f"{wrong[0]}: {then.get(wrong[0], 0):,} and {now.get(wrong[0], 0):,} ns" if wrong else f"{len(now)} parts"
    return LawCheck(name, not wrong, words)


def _share_law(name: str, parts: tuple[Share, ...]) -> LawCheck:
    if not parts:
        return LawCheck(name, None, "the run does not tell")
    whole = sum(part.share for part in parts)
    return LawCheck(name, abs(whole - 1) <= NEAR, f"{len(parts)} parts, {whole:.9f}")


def energy_adds_up(analysis: RunAnalysis) -> Iterator[LawCheck]:
    """Energy of all ops is that of the run, where the run tells both."""
    name, summary = "energy of ops = energy of the run", analysis.run.summary
    parts = [op.energy_j for op in summary.ops]
    if summary.energy is None or None in parts:
        yield LawCheck(name, None, "the run tells no energy" if summary.energy is None else "not of every op")
        return
    whole, total = summary.energy.value_j, sum(part for part in parts if part is not None)
    yield LawCheck(name, abs(total - whole) <= NEAR * whole, f"{total:.6g} and {whole:.6g} J")


def samples_hold_latency(analysis: RunAnalysis) -> Iterator[LawCheck]:
    """The latency is one of the samples, between the least and the most."""
    latency, samples, name = analysis.run.summary.latency, analysis.run.summary.samples_ns, "low ≤ latency ≤ high"
    known = [value for value in (latency.low_ns, latency.value_ns, latency.high_ns) if value is not None]
    if len(known) < 3:
        yield LawCheck(name, None, "the run gives no range")
        return
    rising = all(one <= other for one, other in pairwise(known))
    yield LawCheck(name, rising, f"{known[0]:,} ≤ {known[1]:,} ≤ {known[2]:,} ns, {len(samples)} samples")


def ops_are_known(analysis: RunAnalysis) -> Iterator[LawCheck]:
    """Every span and command points to an op, or to none."""
    run, count = analysis.run, len(analysis.run.ops)
    wrong = int(((run.trace.spans["op"] >= count) | (run.trace.spans["op"] < NONE)).sum())
    wrong += int(((run.commands.rows["op"] >= count) | (run.commands.rows["op"] < NO_OP)).sum())
    yield LawCheck(
        "spans and commands belong to ops that there are",
        not wrong,
        f"{wrong:,} do not" if wrong else f"{len(run.trace.spans):,} spans, {count:,} ops",
    )


CONSERVATION = (
    lanes_add_up,
    lanes_keep_order,
    window_is_latency,
    ops_are_known,
    op_times_add_up,
    commands_add_up,
    routes_add_up,
    rollups_add_up,
    shares_add_up,
    samples_hold_latency,
    energy_adds_up,
)
