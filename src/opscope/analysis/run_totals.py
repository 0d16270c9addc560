"""What the totals of a Run have from its timeline: what its wall time is spent on, and what its lanes wait for."""

from __future__ import annotations

from dataclasses import replace

from ..recording.run import Run
from ..recording.summary import WaitTotal
from .run_analysis import RunAnalysis
from .timeline.breakdown import breakdown
from .timeline.gaps import waits_for


def with_breakdown(run: Run) -> Run:
    """The Run with the breakdown and the waits that its findings have; everyone who makes a Run ends with this."""
    analysis = RunAnalysis(run)
    waits = tuple(WaitTotal(row.engine, row.cause, row.wait_ns, row.count) for row in waits_for(analysis))
    return replace(run, summary=replace(run.summary, breakdown=breakdown(analysis), waits=waits))


def with_known_breakdown(run: Run) -> Run:
    """The same of a Run that was read: one that an earlier version wrote has no breakdown yet."""
    return run if run.summary.breakdown else with_breakdown(run)
