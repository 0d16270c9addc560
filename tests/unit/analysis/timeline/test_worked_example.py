"""The example in the docstrings of analysis/timeline: `c` reads what `b` wrote, and starts 1 ns after that was there.

lane 1 |  b: 0–6   |
lane 0 | a: 0–4 |     | c: 7–9 |
"""

from __future__ import annotations

import numpy as np
import pytest

from opscope.analysis.run_analysis import RunAnalysis
from opscope.analysis.timeline.activities import activities_of
from opscope.analysis.timeline.dependencies import DATA, LANE
from opscope.analysis.timeline.gaps import waits_for
from opscope.core.meaning import LaneRole
from opscope.recording.trace import NONE, Lane, SpanKind
from support.recording.analyse_build import HMX, HOST, HVX, Span, run_of

A, B, C = range(3)


@pytest.fixture
def analysis() -> RunAnalysis:
    spans = [
        Span(0, 0, 4, command=0, name="a"),
        Span(1, 0, 6, command=1, name="b"),
        Span(0, 7, 9, command=2, name="c"),
    ]
    return RunAnalysis(run_of(spans, lanes=(HVX, HMX), edges=[(1, 2)]))


def test_what_released_an_activity_last_is_its_blocker(analysis: RunAnalysis) -> None:
    order = analysis.order
    pairs = zip(order.first.tolist(), order.second.tolist(), order.why.tolist(), order.reach.tolist(), strict=True)
    assert set(pairs) == {(A, C, LANE, 4), (B, C, DATA, 6)}
    assert order.ready[C] == 6
    assert order.blocker.tolist() == [NONE, NONE, B]
    assert order.lag[C] == 1


def test_the_path_goes_from_the_last_end_to_blockers(analysis: RunAnalysis) -> None:
    path = analysis.path
    steps = zip(path.activity.tolist(), path.is_gap.tolist(), path.start.tolist(), path.end.tolist(), strict=True)
    assert list(steps) == [(B, 0, 0, 6), (C, 1, 6, 7), (C, 0, 7, 9)]


def test_without_its_blocker_an_activity_starts_when_its_lane_is_free(analysis: RunAnalysis) -> None:
    assert analysis.replay.wall_ns() == 9
    assert analysis.replay.without(np.array([B])) == 7


def test_slack_is_what_lies_before_the_followers_were_ready(analysis: RunAnalysis) -> None:
    assert analysis.slack.tolist() == [2, 0, 0]


def test_idle_time_is_divided_into_the_wait_for_the_blocker_and_the_rest(analysis: RunAnalysis) -> None:
    stalls = analysis.stalls
    assert (stalls.position.tolist(), stalls.blocker.tolist()) == ([C], [B])
    assert (stalls.wait.tolist(), stalls.rest.tolist()) == ([2], [1])
    assert {(row.engine, row.cause, row.wait_ns) for row in waits_for(analysis)} == {
        ("HVX", "HMX", 2),
        ("HVX", "nothing that was recorded", 1),
    }


def test_every_moment_belongs_to_the_deepest_call() -> None:
    deeper = Lane(NONE, NONE, f"{HOST.name} 2", role=LaneRole.NESTED, owner=0)
    spans = [
        Span(0, 0, 10, SpanKind.HOST, name="a"),
        Span(1, 3, 5, SpanKind.HOST, name="b"),
        Span(0, 10, 12, SpanKind.HOST, name="c"),
    ]
    work = activities_of(run_of(spans, lanes=(HOST, deeper)))
    found = [(work.name(n), int(work.start[n]), int(work.end[n])) for n in range(len(work))]
    assert found == [("a", 0, 3), ("b", 3, 5), ("a", 5, 10), ("c", 10, 12)]
