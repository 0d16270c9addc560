"""Run → Findings: every question asked once, the costliest cause first."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..core.units import format_counted
from ..recording.finding import OTHER_BOUND, OUTLIER, Finding, Findings, OpSlack, in_order
from ..recording.run import Run
from ..recording.trace import NONE
from .laws import laws_of
from .rollups import rollups
from .roofline import roofline
from .rules import RULES, finding_of
from .run_analysis import RunAnalysis
from .timeline.coverage import coverage
from .timeline.critical_path import path_steps
from .timeline.gaps import longest_gaps
from .timeline.replay import slack_of_ops


def analyse(analysis: RunAnalysis) -> Findings:
    """What the run is bound by, what to do about it, and what cannot be known."""
    parts, covered, unknown = analysis.breakdown, coverage(analysis), analysis.run.unknown_ops
    return Findings(
        bound=parts[0].cause if parts else OTHER_BOUND,
        breakdown=parts,
        wall_ns=None if unknown else analysis.wall_ns,
        provenance=analysis.run.info.provenance,
        findings=tuple(replace(found, predicted=None) for found in causes(analysis)) if unknown else causes(analysis),
        path=path_steps(analysis.order, analysis.path),
        slack=op_slack(analysis),
        roofline=roofline(analysis),
        coverage=covered,
        engines=analysis.engines,
        gaps=longest_gaps(analysis),
        waits=analysis.waits,
        rollups=rollups(analysis),
        checks=laws_of(analysis),
        notes=(*covered.notes, *_classified(analysis.run)),
        unknown_ops=unknown,
    )


def _classified(run: Run) -> tuple[str, ...]:
    """Where the source of a run does not say what something does, words had to."""
    if not run.info.classified:
        return ()
    rows = run.info.classified_rows
    counted = {name: f"{name} ({format_counted(count, 'row')})" for name, count in rows.items()}
    tables = (counted.get(name, name) for name in run.info.classified)
    return (f"what things do is told from their names, in {', '.join(tables)}",)


def causes(analysis: RunAnalysis) -> tuple[Finding, ...]:
    """What every rule finds, costliest first; without what would save nothing, as other work is as long as it.

    A time that is in doubt is told all the same: not what it takes is the news.
    """
    found = [finding_of(analysis, draft) for rule in RULES for draft in rule(analysis)]
    kept = (each for each in found if each.id == OUTLIER or each.predicted is None or each.predicted.gain_ns > 0)
    return in_order(kept)


def op_slack(analysis: RunAnalysis) -> tuple[OpSlack, ...]:
    """Every op that has a span: least slack first, then most of the critical path."""
    least = slack_of_ops(analysis.order, analysis.slack)
    rows = [
        OpSlack(analysis.run.ops[place].name, place, int(least[place]), int(analysis.op_path_ns[place]))
        for place in np.flatnonzero(least != NONE).tolist()
    ]
    return tuple(sorted(rows, key=lambda row: (row.slack_ns, -row.path_ns, row.op, row.row)))
