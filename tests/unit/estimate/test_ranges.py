"""Ranges of calibrated targets: wide where figures are, wider for networks unlike any that was measured."""

from __future__ import annotations

import json
from dataclasses import replace
from math import exp, log, sqrt
from pathlib import Path

import pytest

from opscope import api
from opscope.cli import main
from opscope.core.provenance import Provenance
from opscope.estimate.estimator import Estimate, estimate
from opscope.estimate.price import Machine
from opscope.estimate.ranges import RANGE_SIGMAS, calibrated_range, shares, strange
from opscope.graph.graph import Graph
from opscope.machine.calibration import Calibration
from opscope.machine.target import Figure, Target
from opscope.recording.resources import Range
from opscope.views.json.report_json import document
from support.build import Sketch, engine, figure, target
from support.estimate.measured_rows import make_networks

SEEN = {"engines[0].macs_per_cycle.*": 1.0, "engines[0].launch_cycles": 1.0}


def chip(macs: Figure, *, seen: dict[str, float] | None = None, calibrated: bool = True) -> Target:
    unit = replace(engine(launch_cycles=figure(64)), macs_per_cycle={"*": macs})
    told = Calibration(9, 9, 0.1, 2.0, 0.9, SEEN if seen is None else seen)
    return replace(target(unit), calibration=told if calibrated else None)


def dense() -> Graph:
    draw = Sketch()
    return draw.graph(draw.dense(draw.input(4, 16), 1, bias=False))  # 64 MACs, beside a launch of 64 cycles


def found_on(target_: Target) -> Estimate:
    return estimate(dense(), Machine(target_))


def latency_on(target_: Target) -> Range:
    latency = found_on(target_).totals.latency_s
    assert latency is not None
    return latency


def test_a_range_is_so_many_widths_of_the_spread_and_of_what_is_open() -> None:
    latency = latency_on(chip(figure(1, 0.5, 2)))
    opened = 0.5 * log(4) / RANGE_SIGMAS  # half of the time rests on that figure
    reach = exp(2.0 * sqrt(0.1**2 + opened**2))
    assert (latency.low, latency.high) == pytest.approx((latency.value / reach, latency.value * reach))


def test_wider_figures_make_wider_ranges_and_no_other_value() -> None:
    ranges = [latency_on(chip(figure(1, 1 / factor, factor))) for factor in (1, 1.5, 3, 9)]
    assert len({found.value for found in ranges}) == 1
    widths = [found.high / found.low for found in ranges]
    assert widths == sorted(set(widths))
    assert widths[0] == pytest.approx(exp(2 * 2.0 * 0.1))


def test_figures_that_take_no_time_widen_nothing() -> None:
    wide = figure(1e6, 1, 1e9)
    assert latency_on(chip(wide)).high == pytest.approx(latency_on(chip(figure(1e6))).high, rel=1e-3)


def test_shares_are_of_the_time_and_by_key() -> None:
    machine = chip(figure(1))
    found = shares(found_on(machine).costs, machine)
    assert found == {"engines[0].macs_per_cycle.*": 0.5, "engines[0].launch_cycles": 0.5}
    assert shares([], machine) == {}


def test_a_network_that_rests_on_what_nobody_measured_is_told_so_and_gets_a_wider_range() -> None:
    known, unknown = (found_on(chip(figure(1), seen=seen)) for seen in (SEEN, {"engines[0].launch_cycles": 1.0}))
    assert not [note for note in known.graph.notes if note.code == "unlike-measured"]
    (note,) = [note for note in unknown.graph.notes if note.code == "unlike-measured"]
    assert "engines[0].macs_per_cycle.* takes 50% of the time, and at most 0%" in note.text
    assert known.totals.latency_s is not None
    assert unknown.totals.latency_s is not None
    assert unknown.totals.latency_s.value == known.totals.latency_s.value
    assert unknown.totals.latency_s.low < known.totals.latency_s.low
    assert unknown.totals.latency_s.high > known.totals.latency_s.high


@pytest.mark.parametrize(
    ("share", "seen", "odd"), [(0.09, 0.0, False), (0.2, 0.0, True), (0.5, 0.4, False), (0.7, 0.4, True)]
)
def test_what_is_unlike_is_half_as_much_again_and_no_trifle(share: float, seen: float, odd: bool) -> None:
    told = Calibration(9, 9, 0.1, 2.0, 0.9, {"a": seen})
    assert bool(strange({"a": share}, told)) is odd


def test_a_target_that_is_not_calibrated_has_no_such_range() -> None:
    machine = chip(figure(1), calibrated=False)
    with pytest.raises(ValueError, match="is not calibrated"):
        calibrated_range(1.0, [], machine)
    latency = latency_on(machine)
    assert latency.low == latency.value == latency.high


def test_reports_and_runs_say_that_their_numbers_are_calibrated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = make_networks(tmp_path, ["kws"])["kws"]
    for name, word in (("snapdragon-8gen3", Provenance.CALIBRATED), ("hexagon", Provenance.ESTIMATED)):
        report = api.report(model, name, advise=False)
        assert report.provenance is word
        assert main(["report", str(model), "--target", name]) == 0
        assert capsys.readouterr().out.splitlines()[0].endswith(f"({word})")
        assert json.loads(json.dumps(document(report)))["provenance"] == word
        assert api.report_run(report).run.summary.latency.provenance is word
