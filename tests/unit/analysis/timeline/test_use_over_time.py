"""Use over time of runs whose source counts nothing: by the roles of lanes, at least one of them at work."""

from __future__ import annotations

from dataclasses import replace

from opscope.analysis.timeline.over_time import with_use
from opscope.core.meaning import LaneRole
from opscope.recording.run import Run
from opscope.recording.trace import NONE, CounterTrack, SpanKind
from support.recording.analyse_build import DMA, HMX, HVX, Span, run_of

SPANS = (
    Span(0, 0, 600),
    Span(1, 300, 800),
    Span(0, 800, 1000, SpanKind.WAIT),
    Span(2, 500, 600, SpanKind.TRANSFER),
    Span(2, 900, 1000, SpanKind.TRANSFER),
)
LANES = (replace(HVX, role=LaneRole.ENGINE), replace(HMX, role=LaneRole.ENGINE), replace(DMA, role=LaneRole.TRANSFER))


def areas(run: Run) -> dict[str, float]:
    """Name of every counter → ns at work."""
    found = {}
    for number, track in enumerate(run.trace.counters):
        own = run.trace.samples[run.trace.samples["counter"] == number]
        steps = own["value"][:-1] * (own["time_ns"][1:] - own["time_ns"][:-1])
        found[track.name] = round(float(steps.sum()) / 100, 6)
    return found


def test_what_overlaps_counts_once_and_waits_do_not_count() -> None:
    run = with_use(run_of(SPANS, lanes=LANES))
    assert areas(run) == {"engines at work, mean of 1 ns": 800, "transfers under way, mean of 1 ns": 200}
    assert {(track.device, track.core, track.unit) for track in run.trace.counters} == {(0, NONE, "%")}


def test_counters_of_the_source_stay_alone() -> None:
    run = run_of(SPANS, lanes=LANES)
    counted = replace(run, trace=replace(run.trace, counters=(CounterTrack(0, 0, "Freq", "MHz"),)))
    assert with_use(counted) is counted


def test_one_row_tells_by_itself_and_lanes_of_the_host_are_no_engines() -> None:
    for lanes, spans in (
        (LANES, SPANS[:1]),
        ([replace(lane, device=NONE, role=LaneRole.HOST) for lane in LANES], SPANS),
        ((), ()),
    ):
        run = run_of(spans, lanes=lanes)
        assert with_use(run) is run
