"""Findings of random runs against slow, obvious answers: longest path by trying every path, sums by adding up."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opscope.analysis.causes import CAUSES
from opscope.analysis.rules import RULES, finding_of
from opscope.analysis.run_analysis import RunAnalysis
from opscope.analysis.run_totals import with_breakdown
from opscope.program.bounds import Bounds, UnitPeak
from opscope.program.program import COMMAND, OpInfo
from opscope.recording.folder_reader import read_run
from opscope.recording.run import CommandTable, Run
from opscope.recording.trace import NONE, SPAN, Lane, SpanKind
from support.recording.analyse_build import CAUSE_OF_RULE, HMX, HVX, Reference, Span, analyse, run_of, total
from support.recording.run_build import write_run

LANES = (HVX, HMX, Lane(0, 1, "HVX"), *(Lane(0, 0, f"HVX DMA read t{number}") for number in range(8)))
WORKING = (0, 1, 2)  # the rest are transfers beside the lanes, a lane for each
NAMES = ("matmul", "transpose", "softmax")
OPS = tuple(OpInfo(f"/layer.{number}/{kind}", kind, "", "") for number in range(2) for kind in NAMES)
Drawn = tuple[list[Span], list[tuple[int, int]]]


@st.composite
def scheduled(draw: st.DrawFn) -> Drawn:
    """A run as a device makes it: lanes in order, dependencies kept, now and then a lag that nothing explains."""
    spans: list[Span] = []
    edges: list[tuple[int, int]] = []
    free, done = dict.fromkeys(range(len(LANES)), 0), {}
    for command in range(draw(st.integers(1, 8))):
        lane = draw(st.sampled_from(WORKING))
        needs = draw(st.sets(st.integers(0, command - 1), max_size=2)) if command else set()
        edges += [(source, command) for source in sorted(needs)]
        ready = max([free[lane], *(done[source] for source in needs)])
        start = ready + draw(st.sampled_from((0, 0, 0, 3)))
        end = start + draw(st.integers(0, 9))
        op = draw(st.integers(NONE, len(OPS) - 1))
        spans.append(Span(lane, start, end, op=op, command=command, name=draw(st.sampled_from(NAMES))))
        free[lane] = done[command] = end
        if draw(st.booleans()) and draw(st.booleans()):
            done[command] = end + draw(st.integers(0, 9))
            spans.append(Span(len(WORKING) + command, end, done[command], SpanKind.TRANSFER, op, command, name="read"))
    return spans, edges


@st.composite
def arbitrary(draw: st.DrawFn) -> Drawn:
    """Spans that follow no rule but the order of their lane, and edges that may contradict time."""
    spans: list[Span] = []
    for lane in WORKING:
        time = draw(st.integers(0, 5))
        for _ in range(draw(st.integers(0, 3))):
            start = time + draw(st.integers(0, 6))
            time = start + draw(st.integers(0, 6))
            spans.append(Span(lane, start, time, op=draw(st.integers(NONE, len(OPS) - 1)), command=len(spans)))
    if not spans:
        spans.append(Span(0, 1, 2, command=0))
    numbers = st.integers(0, len(spans) - 1)
    return spans, draw(st.lists(st.tuples(numbers, numbers), max_size=5))


def analysis_of(drawn: Drawn) -> RunAnalysis:
    return RunAnalysis(_run(drawn))


def _run(drawn: Drawn) -> Run:
    spans, edges = drawn
    busy = [sum(s.end - s.start for s in spans if s.op == number) for number in range(len(OPS))]
    totals = [
        total(op.name, ns, type=op.type, engine="HVX", macs=7, moved_bytes=3) for op, ns in zip(OPS, busy, strict=True)
    ]
    return run_of(spans, lanes=LANES, ops=OPS, edges=edges, totals=sorted(totals, key=lambda t: -(t.busy_ns or 0)))


RUNS = st.one_of(scheduled(), arbitrary())


@given(RUNS)
def test_the_critical_path_is_the_longest_of_all_paths(drawn: Drawn) -> None:
    reference = Reference(*drawn)
    analysis = analysis_of(drawn)
    assert int(analysis.path.ns.sum()) == analysis.work.wall_ns == reference.end - reference.begin == reference.wall()


@given(RUNS)
def test_stretches_of_the_path_lie_end_to_end_over_the_whole_run(drawn: Drawn) -> None:
    analysis = analysis_of(drawn)
    path = analysis.path
    bounds = list(zip(path.start.tolist(), path.end.tolist(), strict=True))
    assert all(one[1] == other[0] for one, other in pairwise(bounds))
    if bounds:
        assert (bounds[0][0], bounds[-1][1]) == (analysis.work.start_ns, analysis.work.end_ns)
    steps = analyse(analysis.run).path
    assert sum(step.end_ns - step.start_ns for step in steps) == analysis.work.wall_ns


@given(RUNS)
def test_who_holds_whom_back_is_what_the_slow_search_finds(drawn: Drawn) -> None:
    reference, order = Reference(*drawn), analysis_of(drawn).order
    assert order.activities.row.tolist() == [act.row for act in reference.acts]
    assert set(zip(order.first.tolist(), order.second.tolist(), strict=True)) == reference.pairs
    assert order.lag.tolist() == reference.lags


@given(RUNS, st.data())
def test_taking_work_away_leaves_the_longest_path_of_the_rest(drawn: Drawn, data: st.DataObject) -> None:
    reference, analysis = Reference(*drawn), analysis_of(drawn)
    positions = st.sets(st.integers(0, len(analysis.work) - 1))
    gone, ungapped = sorted(data.draw(positions)), sorted(data.draw(positions))
    durations = [0 if place in gone else ns for place, ns in enumerate(reference.durations)]
    lags = [0 if place in ungapped else ns for place, ns in enumerate(reference.lags)]
    left = analysis.replay.without(np.array(gone, np.int64), np.array(ungapped, np.int64))
    assert left == reference.wall(durations, lags)
    assert left <= analysis.work.wall_ns


@given(RUNS)
def test_slack_is_how_far_an_activity_can_move_before_the_run_gets_longer(drawn: Drawn) -> None:
    reference, analysis = Reference(*drawn), analysis_of(drawn)
    wall = reference.wall()
    for place, slack in enumerate(analysis.slack.tolist()):
        assert slack >= 0
        for more, longer in ((slack, 0), (slack + 1, 1)):
            lags = [ns + more if other == place else ns for other, ns in enumerate(reference.lags)]
            assert reference.wall(None, lags) == wall + longer
    on_path = analysis.path.activity[(analysis.path.is_gap == 0) & (analysis.path.activity != NONE)]
    assert not analysis.slack[on_path].any()


@given(RUNS)
def test_shares_of_the_verdict_are_the_causes_of_the_steps_and_add_up_to_one(drawn: Drawn) -> None:
    analysis = analysis_of(drawn)
    found = analyse(analysis.run)
    if not analysis.work.wall_ns:
        assert found.breakdown == ()
        return
    for share in found.breakdown:
        steps = sum(step.end_ns - step.start_ns for step in found.path if step.cause == share.cause)
        assert share.ns == steps
        assert share.share == pytest.approx(steps / analysis.work.wall_ns)
    assert sum(share.ns for share in found.breakdown) == analysis.work.wall_ns
    assert sum(share.share for share in found.breakdown) == pytest.approx(1)
    assert found.bound == max(found.breakdown, key=lambda share: share.ns).cause


@given(RUNS)
def test_the_totals_of_a_run_have_the_breakdown_and_the_waits_of_its_findings(drawn: Drawn) -> None:
    run = with_breakdown(_run(drawn)).run
    found = analyse(run)
    assert run.summary.breakdown == found.breakdown
    assert [(row.group, row.cause, row.wait_ns, row.count) for row in run.summary.waits] == [
        (row.engine, row.cause, row.wait_ns, row.count) for row in found.waits
    ]


@given(RUNS)
def test_rollups_hold_every_op_once_and_the_whole_path(drawn: Drawn) -> None:
    run = _run(drawn)
    found = analyse(run)
    busy = sum(op.busy_ns or 0 for op in run.summary.ops)
    for rollup in found.rollups:
        assert sum(row.ops for row in rollup.rows) == len(OPS)
        assert sum(row.busy_ns or 0 for row in rollup.rows) == busy
        assert sum(row.path_ns or 0 for row in rollup.rows) == found.wall_ns
        assert sum(row.macs or 0 for row in rollup.rows) == 7 * len(OPS)
    for row in next(rollup for rollup in found.rollups if rollup.by == "op").rows:
        steps = sum(step.end_ns - step.start_ns for step in found.path if step.op == row.name and step.span is not None)
        if row.ops:
            assert row.path_ns == steps


@given(RUNS)
def test_engines_waits_and_gaps_are_the_idle_time_of_lanes(drawn: Drawn) -> None:
    spans, _ = drawn
    found, analysis = analyse(_run(drawn)), analysis_of(drawn)
    idle = 0
    gaps = []
    for lane in range(len(LANES)):
        own = sorted((a.span.start, a.span.end) for a in Reference(*drawn).acts if a.lane == lane)
        time = analysis.work.start_ns
        for start, end in sorted(own, key=lambda bounds: (bounds[0], bounds[1] > bounds[0])):
            if start > time:
                gaps.append((lane, time, start))
            idle += max(start - time, 0)
            time = end
    assert sum(row.wait_ns for row in found.waits) == idle
    assert sum(row.count for row in found.waits) >= len(gaps)
    shown = [(LANES.index(Lane(gap.device, gap.core, gap.lane)), gap.start_ns, gap.end_ns) for gap in found.gaps]
    assert set(shown) <= set(gaps)
    assert len(shown) == min(len(gaps), 20)
    for use in found.engines:
        if not use.engine.startswith("DMA"):
            lanes = [n for n, lane in enumerate(LANES) if lane.name == use.engine]
            busy = [sum(s.end - s.start for s in spans if s.lane == n and s.kind == SpanKind.OP) for n in lanes]
            assert use.busy_ns == round(sum(busy) / use.lanes)
        assert use.busy_ns + (use.wait_ns or 0) + use.idle_ns == found.wall_ns


@given(RUNS)
def test_a_finding_gains_no_more_than_it_costs(drawn: Drawn) -> None:
    analysis = analysis_of(drawn)
    for rule in RULES:
        for draft in rule(analysis):
            finding = finding_of(analysis, draft)
            if finding.predicted is not None and finding.cost_ns is not None:
                assert 0 <= finding.predicted.gain_ns <= finding.cost_ns + len(analysis.work)
                assert finding.predicted.latency_ns == analysis.work.wall_ns - finding.predicted.gain_ns


@given(RUNS, st.sampled_from((0, 2, 6)))
def test_no_finding_about_a_cause_costs_more_than_the_breakdown_has_of_it(drawn: Drawn, launch_ns: int) -> None:
    """Commands begin with a launch, which is a cause of its own."""
    run = _run(drawn)
    rows = np.zeros(len(drawn[0]), COMMAND)
    rows["route"] = -1
    commands = replace(CommandTable.from_details(rows, ()), groups=("HVX",))
    units = (UnitPeak("HVX", {"*": 1.0}, launch_cycles=launch_ns),)
    info = replace(run.info, clocks_hz={"core": 1e9})
    analysis = RunAnalysis(replace(run, commands=commands, bounds=Bounds(units=units), info=info))
    found = analyse(analysis.run)
    parts = {part.cause: part.ns for part in found.breakdown}
    for finding in found.findings:
        if finding.id in CAUSE_OF_RULE:
            assert (finding.cost_ns or 0) <= parts[CAUSE_OF_RULE[finding.id]]


@given(scheduled())
def test_the_cost_of_layout_is_what_the_path_spends_on_it_and_no_finding_names_alone(drawn: Drawn) -> None:
    analysis = analysis_of(drawn)
    findings = analyse(analysis.run).findings
    alone = {name for finding in findings if finding.id == "no-compute" for name in finding.ops}
    names = [*(op.name for op in analysis.run.ops), ""]
    cost = sum(
        int(ns)
        for place, gap, ns in zip(analysis.path.activity, analysis.path.is_gap, analysis.path.ns, strict=True)
        if not gap
        and place != NONE
        and CAUSES[int(analysis.work.cause[place])] == "layout"
        and names[int(analysis.work.op[place])] not in alone
    )
    found = [finding for finding in findings if finding.id == "layout"]
    assert [finding.cost_ns for finding in found] == (
        [cost] if analysis.work.wall_ns and cost >= 0.03 * analysis.work.wall_ns else []
    )


@given(RUNS)
def test_no_law_is_violated_by_a_run_without_totals_of_lanes(drawn: Drawn) -> None:
    assert [check.name for check in analyse(_run(drawn)).checks if check.holds is False] == []


@settings(max_examples=30)
@given(RUNS)
def test_a_run_is_read_as_it_was_written(drawn: Drawn) -> None:
    spans, edges = drawn
    run = _run(drawn)
    commands = np.zeros(len(spans), COMMAND)
    commands["route"] = -1
    run = replace(run, commands=CommandTable.from_details(commands, ()))
    with TemporaryDirectory() as folder:
        write_run(run, Path(folder, "run"))
        again = read_run(Path(folder, "run"))
    assert again.ops == run.ops
    assert again.info == run.info
    assert again.summary == run.summary
    for one, other in zip(again.trace.spans, run.trace.spans, strict=True):
        assert again.trace.lanes[one["lane"]] == run.trace.lanes[other["lane"]]
        assert again.trace.names[one["name"]] == run.trace.names[other["name"]]
        for key in set(SPAN.names or ()) - {"lane", "name"}:
            assert one[key] == other[key]
    assert sorted(again.trace.edges["target"].tolist()) == sorted(target for _, target in edges)
    assert [finding.title for finding in analyse(again).findings] == [f.title for f in analyse(run).findings]
