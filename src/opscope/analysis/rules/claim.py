"""A finding in the making: what it says, and which work would take less time without its cause."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from ...core.units import format_seconds
from ...recording.finding import UPPER_BOUND, Finding, Prediction
from ..facts import Facts
from ..timeline.activities import Numbers

REPLAY_ACTIVITIES = 50_000  # beyond that a claim is bounded by its part of the path alone, which is quick


@dataclass(frozen=True, slots=True)
class Claim:
    """`durations` and `lags` are what activities at `positions`, and the gaps before `gaps`, would come to."""

    finding: Finding
    positions: Numbers | None = None
    durations: Numbers | None = None  # None: no time at all
    gaps: Numbers | None = None  # activities that would start without a gap before them


Rule = Callable[[Facts], Iterator[Claim]]


def count(number: int, word: str) -> str:
    return f"{number:,} {word}" + ("" if number == 1 else "s")


def time(ns: float) -> str:
    return format_seconds(ns * 1e-9)


def path_cost(facts: Facts, positions: Numbers, gaps: Numbers | None = None) -> int:
    """How much of the critical path these activities, and the gaps before those, are."""
    return int(facts.path_ns[positions].sum()) + (0 if gaps is None else int(facts.gap_ns[gaps].sum()))


def settled(facts: Facts, claim: Claim) -> Finding:
    """With its share of the wall time, and what it would gain at most."""
    finding, wall = claim.finding, facts.wall_ns
    share = finding.share
    if share is None and finding.cost_ns is not None and wall:
        share = finding.cost_ns / wall
    return replace(finding, share=share, predicted=_prediction(facts, claim))


def _prediction(facts: Facts, claim: Claim) -> Prediction | None:
    wall = facts.wall_ns
    if not facts.has_timeline or wall is None or (claim.positions is None and claim.gaps is None):
        return None
    positions = np.zeros(0, np.int64) if claim.positions is None else claim.positions
    if len(facts.work) <= REPLAY_ACTIVITIES:
        gain = wall - _replayed(facts, claim, positions)
        return Prediction(gain, wall - gain, UPPER_BOUND, "the longest path again, without it")
    gain = min(wall, _path_gain(facts, claim, positions))
    return Prediction(gain, wall - gain, UPPER_BOUND, "its part of the critical path")


def _replayed(facts: Facts, claim: Claim, positions: Numbers) -> int:
    ns, lags = facts.work.ns.copy(), facts.order.lag
    ns[positions] = 0 if claim.durations is None else claim.durations
    if claim.gaps is not None:
        lags[claim.gaps] = 0
    return facts.replay.wall_ns(ns, lags)


def _path_gain(facts: Facts, claim: Claim, positions: Numbers) -> int:
    """What leaves the old path: no replay gains more."""
    left = np.zeros(len(positions), np.int64) if claim.durations is None else claim.durations
    off = np.maximum(facts.path_ns[positions] - left, 0)
    return int(off.sum()) + (0 if claim.gaps is None else int(facts.gap_ns[claim.gaps].sum()))
