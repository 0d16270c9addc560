"""What a rule yields: a finding, and which work would take less time without its cause."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from ...core.columns import Numbers
from ...core.units import format_ns
from ...recording.finding import UPPER_BOUND, Finding, Prediction
from ..run_analysis import RunAnalysis

REPLAY_ACTIVITIES = 50_000  # beyond that a draft is bounded by its part of the path alone, which is quick


@dataclass(frozen=True, slots=True)
class Draft:
    """A finding whose gain is not predicted yet."""

    finding: Finding
    positions: Numbers | None = None  # of the activities that would take less time
    durations: Numbers | None = None  # what each of them would take; None: no time at all
    gaps: Numbers | None = None  # positions of activities that would start without a gap before them


Rule = Callable[[RunAnalysis], Iterator[Draft]]


def path_cost(analysis: RunAnalysis, positions: Numbers) -> int:
    """How much of the critical path these activities are."""
    return int(analysis.path_ns[positions].sum())


def cause_cost(analysis: RunAnalysis, positions: Numbers) -> int:
    """How much of the critical path is the cause that these activities have in common, as the breakdown counts it.

    An op of 40 ns that begins with a launch of 30 is 10 ns of layout, and 30 ns of launch.
    """
    return int(analysis.caused_ns[positions].sum())


def start_cost(analysis: RunAnalysis, positions: Numbers) -> str:
    """What starting these takes beside that, where it is anything: without them it goes as well."""
    starts = path_cost(analysis, positions) - cause_cost(analysis, positions)
    return f"; starting them takes another {format_ns(starts)}" if starts else ""


def finding_of(analysis: RunAnalysis, draft: Draft) -> Finding:
    """The finding with its share of the wall time, and what can be gained at most."""
    finding, wall = draft.finding, analysis.wall_ns
    share = finding.share
    if share is None and finding.cost_ns is not None and wall:
        share = finding.cost_ns / wall
    return replace(finding, share=share, predicted=_prediction(analysis, draft))


def _prediction(analysis: RunAnalysis, draft: Draft) -> Prediction | None:
    wall = analysis.wall_ns
    if not analysis.has_timeline or wall is None or (draft.positions is None and draft.gaps is None):
        return None
    positions = np.zeros(0, np.int64) if draft.positions is None else draft.positions
    if len(analysis.work) <= REPLAY_ACTIVITIES:
        gain = wall - _replayed(analysis, draft, positions)
        return Prediction(gain, wall - gain, UPPER_BOUND, "the same run, timed again without it")
    gain = min(wall, _path_gain(analysis, draft, positions))
    return Prediction(gain, wall - gain, UPPER_BOUND, "all that the critical path has of it")


def _replayed(analysis: RunAnalysis, draft: Draft, positions: Numbers) -> int:
    ns, lags = analysis.work.ns.copy(), analysis.order.lag
    ns[positions] = 0 if draft.durations is None else draft.durations
    if draft.gaps is not None:
        lags[draft.gaps] = 0
    return analysis.replay.wall_ns(ns, lags)


def _path_gain(analysis: RunAnalysis, draft: Draft, positions: Numbers) -> int:
    """How much shorter the old critical path becomes: no replay gains more, as another path may be the longest then."""
    left = np.zeros(len(positions), np.int64) if draft.durations is None else draft.durations
    off = np.maximum(analysis.path_ns[positions] - left, 0)
    return int(off.sum()) + (0 if draft.gaps is None else int(analysis.gap_ns[draft.gaps].sum()))
