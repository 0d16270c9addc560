"""What the totals of a Run have from its timeline: what its wall time is spent on, and what its lanes wait for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ..recording.finding import WaitFor
from ..recording.run import Run
from ..recording.summary import WaitTotal
from .run_analysis import RunAnalysis


def with_breakdown(run: Run) -> RunAnalysis:
    """The analysis of a Run that has the breakdown and the waits of its findings; who makes a Run ends with this."""
    analysis = RunAnalysis(run)
    waits = wait_totals(analysis.waits)
    return analysis.with_totals(replace(run.summary, breakdown=analysis.breakdown, waits=waits))


def with_known_breakdown(run: Run) -> RunAnalysis:
    """The same of a Run that was read: one that an earlier version wrote has no breakdown yet."""
    return RunAnalysis(run) if run.summary.breakdown else with_breakdown(run)


def wait_totals(waits: Iterable[WaitFor]) -> tuple[WaitTotal, ...]:
    """What findings say of waits, as totals have it."""
    return tuple(WaitTotal(row.engine, row.cause, row.wait_ns, row.count) for row in waits)
