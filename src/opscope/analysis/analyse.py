"""Run → Findings: every question asked once, the costliest cause first."""

from __future__ import annotations

import numpy as np

from ..recording.finding import OTHER_BOUND, Finding, Findings, OpSlack
from ..recording.run import Run
from ..recording.trace import NONE
from .facts import Facts
from .laws import laws_of
from .rollups import rollups
from .roofline import roofline
from .rules import RULES, settled
from .timeline.breakdown import breakdown
from .timeline.coverage import coverage
from .timeline.critical_path import path_steps
from .timeline.gaps import longest_gaps, waits_for
from .timeline.replay import slack_of_ops


def analyse(run: Run) -> Findings:
    """What the run is bound by, what to do about it, and what cannot be known."""
    return findings_of(Facts(run))


def findings_of(facts: Facts) -> Findings:
    """The same, of a run that is being looked at already."""
    parts, caught = breakdown(facts), coverage(facts)
    return Findings(
        bound=parts[0].cause if parts else OTHER_BOUND,
        breakdown=parts,
        wall_ns=facts.wall_ns,
        provenance=facts.run.info.provenance,
        findings=causes(facts),
        path=path_steps(facts.order, facts.path),
        slack=op_slack(facts),
        roofline=roofline(facts),
        coverage=caught,
        engines=facts.engines,
        gaps=longest_gaps(facts),
        waits=waits_for(facts),
        rollups=rollups(facts),
        checks=laws_of(facts),
        notes=(*caught.notes, *_classified(facts.run)),
    )


def _classified(run: Run) -> tuple[str, ...]:
    """Where the source of a run does not say what something does, words had to."""
    if not run.info.classified:
        return ()
    return (f"what things do is told from their names, in {', '.join(run.info.classified)}",)


def causes(facts: Facts) -> tuple[Finding, ...]:
    """Costliest first; those whose cost is unknown come last."""
    claims = [claim for rule in RULES for claim in rule(facts)]
    found = [settled(facts, claim) for claim in claims]
    return tuple(sorted(found, key=lambda finding: -(finding.cost_ns or 0)))


def op_slack(facts: Facts) -> tuple[OpSlack, ...]:
    """Every op that has a span: least slack first, then most of the critical path."""
    least = slack_of_ops(facts.order, facts.slack)
    rows = [
        OpSlack(facts.run.ops[place].name, place, int(least[place]), int(facts.op_path_ns[place]))
        for place in np.flatnonzero(least != NONE).tolist()
    ]
    return tuple(sorted(rows, key=lambda row: (row.slack_ns, -row.path_ns, row.op, row.row)))
