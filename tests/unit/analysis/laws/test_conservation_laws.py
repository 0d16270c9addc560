"""Conservation laws: each is violated by a run that breaks it, and by no other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from opscope.analysis.laws.conservation import CONSERVATION
from opscope.analysis.run_analysis import RunAnalysis
from opscope.program.program import OpInfo
from opscope.recording.run import Run
from opscope.recording.summary import LaneTotal, Latency, RouteTotal, Share, Summary
from opscope.recording.trace import Lane, SpanKind
from support.recording.analyse_build import DMA, HVX, Command, Span, check_laws, run_of, total

EXECUTION = Lane(0, 0, "Execution")
OPS = (OpInfo("a", "MatMul", "", ""),)


def sound() -> Run:
    """One command that computes, one that moves bytes; every total is right."""
    spans = [
        Span(2, 0, 100, SpanKind.PHASE, name="Core-0-Execution"),
        Span(0, 0, 5, op=0, command=0),
        Span(1, 5, 40, SpanKind.TRANSFER, op=0, command=0),
        Span(0, 5, 40, SpanKind.WAIT, op=0, command=1, waits_on=0),
        Span(0, 40, 100, op=0, command=1),
    ]
    row = total("a", 100, macs=7, moved_bytes=64, out_bytes=64, commands=2, share=1.0)
    summary = Summary(
        Latency(100, 90, 110, "simulated"),
        None,
        1,
        lanes=(LaneTotal(0, 0, "HVX", 65, 35, 0, 0),),
        breakdown=(Share("compute", 60.0, 0.6), Share("memory", 35.0, 0.35), Share("launch", 5.0, 0.05)),
        occupancy=(Share("compute", 60.0, 0.6), Share("transfer only", 40.0, 0.4)),
        op_types=(row,),
        ops=(row,),
        layers=(row,),
        blocks=(row,),
        routes=(RouteTotal(0, None, "DDR read", 1, 64, 35, 1), RouteTotal(0, 0, "DDR read", 1, 64, 35, 1)),
    )
    commands = [Command(0, 0, 64), Command(0, macs=7)]
    return run_of(spans, lanes=(HVX, DMA, EXECUTION), ops=OPS, edges=[(0, 1)], commands=commands, summary=summary)


def violated(run: Run) -> list[str]:
    return [check.name for check in check_laws(run) if check.holds is False]


def test_a_sound_run_violates_nothing_and_only_energy_is_not_knowable() -> None:
    assert violated(sound()) == []
    checks = [check for law in CONSERVATION for check in law(RunAnalysis(sound()))]
    assert [check.name for check in checks if check.holds is None] == ["energy of ops = energy of the run"]


def test_waits_that_are_not_told_are_said_and_lie_in_idle() -> None:
    untold = replace(sound().summary, lanes=(LaneTotal(0, 0, "HVX", 65, None, 35),))
    (law,) = (c for c in check_laws(replace(sound(), summary=untold)) if c.name.startswith("busy + wait + idle"))
    assert law.holds
    assert law.detail == "1 lanes, wall 100 ns; waits of 1 are not known, and in idle"
    assert violated(replace(sound(), summary=untold)) == ["busy and wait of every lane = its spans"]  # they tell them


def with_summary(**changes: object) -> Run:
    run = sound()
    return replace(run, summary=replace(run.summary, **changes))  # type: ignore[arg-type]


ROW = sound().summary.ops[0]


@pytest.mark.parametrize(
    ("change", "law"),
    [
        ({"lanes": (LaneTotal(0, 0, "HVX", 95, 35, -30, 0),)}, "busy + wait + idle = wall on every lane"),
        ({"lanes": (LaneTotal(0, 0, "HVX", 35, 65, 0, 0),)}, "busy and wait of every lane = its spans"),
        ({"latency": Latency(150, 90, 160, "simulated")}, "timeline = latency"),
        ({"latency": Latency(100, 110, 120, "simulated")}, "low ≤ latency ≤ high"),
        ({"layers": (replace(ROW, macs=8),)}, "ops = layers: time, MACs, bytes"),
        ({"op_types": (replace(ROW, busy_ns=99),)}, "ops = types: time, MACs, bytes"),
        ({"blocks": (replace(ROW, moved_bytes=63),)}, "ops = blocks: time, MACs, bytes"),
        ({"breakdown": (Share("compute", 90.0, 0.9),)}, "shares of the breakdown add up to 1"),
        ({"breakdown": (Share("compute", 100.0, 1.0),)}, "breakdown of the summary = that of the verdict"),
        ({"occupancy": (Share("compute", 90.0, 0.9),)}, "shares of the occupancy add up to 1"),
        (
            {"routes": (RouteTotal(0, None, "DDR read", 1, 65, 35, 1), RouteTotal(0, 0, "DDR read", 1, 65, 35, 1))},
            "bytes of routes = bytes of transfers",
        ),
        (
            {"routes": (RouteTotal(0, None, "DDR read", 1, 64, 35, 1), RouteTotal(0, 0, "DDR read", 1, 60, 35, 1))},
            "bytes of routes = bytes of their cores",
        ),
    ],
)
def test_a_total_that_is_wrong_violates_its_law_alone(change: dict[str, object], law: str) -> None:
    wrong = violated(with_summary(**change))
    assert law in wrong
    assert len(wrong) <= 2  # negative idle time also disagrees with the spans


def test_ops_that_differ_from_their_commands_are_named_by_what_differs() -> None:
    row = replace(ROW, macs=8, moved_bytes=65, busy_ns=50)
    run = with_summary(op_types=(row,), ops=(row,), layers=(row,), blocks=(row,))
    assert violated(run) == [
        "time of ops = time of their commands",
        "MACs of ops = MACs of commands",
        "bytes moved by ops = bytes moved by commands",
    ]


def test_what_runs_for_an_op_of_unknown_cost_is_held_against_no_total() -> None:
    known = sound()
    moved = Command(1, 0, 32)  # for the other op, which has no cost, and whose operand is brought all the same
    spans = [
        Span(2, 0, 100, SpanKind.PHASE, name="Core-0-Execution"),
        Span(0, 0, 5, op=0, command=0),
        Span(1, 5, 30, SpanKind.TRANSFER, op=0, command=0),
        Span(1, 30, 40, SpanKind.TRANSFER, op=1, command=2),
        Span(0, 5, 40, SpanKind.WAIT, op=0, command=1, waits_on=0),
        Span(0, 40, 100, op=0, command=1),
    ]
    routes = (RouteTotal(0, None, "DDR read", 2, 96, 35, 1), RouteTotal(0, 0, "DDR read", 2, 96, 35, 1))
    run = run_of(
        spans,
        lanes=(HVX, DMA, EXECUTION),
        ops=(*OPS, OpInfo("b", "MatMul", "", "", unknown="no rate")),
        edges=[(0, 1)],
        commands=[Command(0, 0, 64), Command(0, macs=7), moved],
        summary=replace(known.summary, breakdown=(), ops=(ROW, total("b", None)), routes=routes),
    )
    assert violated(run) == []
    checks = {check.name: check for check in check_laws(run)}
    assert checks["bytes moved by ops = bytes moved by commands"].holds
    assert checks["ops = types: time, MACs, bytes"].detail == "1 of 2 ops have no known cost"
    off = replace(run, summary=replace(run.summary, ops=(replace(ROW, moved_bytes=65), total("b", None))))
    assert violated(off) == ["bytes moved by ops = bytes moved by commands"]


def test_spans_that_overlap_on_a_lane_are_counted() -> None:
    run = run_of([Span(0, 0, 10, op=0), Span(0, 9, 20, op=0), Span(0, 20, 30, op=0)], ops=OPS)
    check = next(check for check in check_laws(run) if check.name == "spans of a lane do not overlap")
    assert (check.holds, check.detail) == (False, "1 of 3 start before the last one has ended")


def test_a_run_of_totals_alone_violates_nothing_and_says_what_it_lacks() -> None:
    checks = {check.name: check for check in check_laws(run_of(ops=OPS, totals=[total("a", 5, share=1.0)]))}
    assert not [check for check in checks.values() if check.holds is False]
    assert checks["spans of a lane do not overlap"].detail == "the run has no spans"
    assert checks["MACs of ops = MACs of commands"].holds is None


def test_shares_of_times_in_whole_nanoseconds_may_be_off_by_the_rounding() -> None:
    ops = tuple(OpInfo(name, "", "", "") for name in "abc")
    totals = [replace(total(op.name, 1), share=1 / 3 + 0.4 / 3_000_000) for op in ops]
    run = run_of(ops=ops, totals=totals, latency=3_000_000)
    law = next(check for check in check_laws(run) if check.name.startswith("shares of ops"))
    assert law.holds
    wrong = run_of(ops=ops, totals=[replace(row, share=0.34) for row in totals], latency=3_000_000)
    assert next(check for check in check_laws(wrong) if check.name.startswith("shares of ops")).holds is False
