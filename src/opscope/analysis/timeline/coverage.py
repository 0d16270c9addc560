"""How much of the run did the recording catch?"""

from __future__ import annotations

import numpy as np

from ...core.columns import distinct
from ...recording.finding import Coverage
from ...recording.summary import OpTotal
from ...recording.trace import SpanKind
from ..run_analysis import RunAnalysis
from .intervals import union

MOST_NAMES = 100


def coverage(analysis: RunAnalysis) -> Coverage:
    """Share of the wall time in which anything is known to have been at work, and what has no time at all."""
    return Coverage(_share(analysis), lost_records(analysis), _without_time(analysis), tuple(_notes(analysis)))


def lost_records(analysis: RunAnalysis) -> int | None:
    """Commands of the program that the recording has no span of; None: the program is not known, or no command has."""
    commands, seen = len(analysis.run.commands.rows), distinct(analysis.work.command)
    seen = seen[(seen >= 0) & (seen < commands)]
    if not analysis.run.commands.routes or not len(seen):
        return None
    return commands - len(seen)


def _share(analysis: RunAnalysis) -> float | None:
    work = analysis.work
    if not len(work) or not work.wall_ns:
        return None
    some = union(np.zeros(len(work), np.int64), work.start, work.end)
    return int((some.end - some.start).sum()) / work.wall_ns


def _without_time(analysis: RunAnalysis) -> tuple[str, ...]:
    """Ops that neither the summary nor a span gives a time."""
    return tuple(
        op.name
        for op, total, busy in zip(analysis.run.ops, analysis.ops, analysis.op_busy_ns.tolist(), strict=True)
        if not busy and not _timed(total)
    )[:MOST_NAMES]


def _timed(total: OpTotal) -> bool:
    return bool(total.busy_ns or total.wall_ns)


def _notes(analysis: RunAnalysis) -> list[str]:
    run, notes = analysis.run, []
    if not analysis.has_timeline:
        of_ops = "; shares are of the time of ops" if any(_timed(total) for total in run.summary.ops) else ""
        notes.append(f"no timeline: there is no critical path, no slack and no gaps{of_ops}")
    elif not len(run.trace.edges):
        notes.append("no dependencies: the critical path follows lanes, and what ended last")
    if analysis.wall_ns is None:
        notes.append("no latency: shares are of what is known")
    if not run.info.limits:
        notes.append("no limits of the machine: no roofline")
    if analysis.work.staged and bool((run.trace.spans["kind"][analysis.work.row] == SpanKind.HOST).any()):
        notes.append("the wall time is what the application sees: the device, and the host around it")
    if run.trace.spans.size and len(run.info.inferences) > 1:
        count = len(run.info.inferences)
        notes.append(f"inference {analysis.work.inference}: of {count} that were recorded, the one of median latency")
    return notes
