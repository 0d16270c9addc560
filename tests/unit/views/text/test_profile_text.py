"""The screen after `opscope profile`: it fits, it names everything, and it says no number that is none."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO
from unicodedata import east_asian_width

import pytest

from opscope.core.provenance import Provenance
from opscope.recording.finding import Findings, LawCheck, Trial
from opscope.recording.recording import Metric, OpRecord, Placed, Recording
from opscope.recording.run import Run
from opscope.recording.summary import HostStage, Latency
from opscope.views.text.profile_text import ProfileText
from opscope.workflows.analysing import findings_for
from opscope.workflows.record import analysis_of
from support.recording.page_build import OPS, small_findings, small_run

LONG = (
    "/features/features.2/conv/conv.0/conv.0.2/a_rather_long_block_name/Clip_output_0",
    "/features/features.3/conv/conv.0/conv.0.2/a_rather_long_block_name/Clip_output_0",
    "\x1b[31mred\u202e" + "層" * 60,
    "n" * 100_000,
)
TRIALS = (Trial("precision=i8", 70_000, 2.0), Trial("cores=4", 280_000, 0.5))
PLACES = (("page", "a.run/report.html"), ("timeline", "a.run/trace.json"))


def screen(run: Run, view: ProfileText | None = None, findings: Findings | None = None) -> list[str]:
    out = StringIO()
    own = Recording("sim", run.info.provenance, run.trace, totals=run.summary)
    (view or ProfileText()).render(run, findings or small_findings(run), own, out)
    return out.getvalue().splitlines()


def width(line: str) -> int:
    return sum(2 if east_asian_width(c) in "WF" else 1 for c in line)


@pytest.mark.parametrize("columns", [60, 80, 100])
@pytest.mark.parametrize("names", [OPS, LONG])
def test_no_line_is_wider_than_the_screen(names: tuple[str, ...], columns: int) -> None:
    run = small_run(names)
    found = small_findings(run)
    cause = replace(found.findings[0], title="transfers to and from other cores, devices or the host " * 3)
    lines = screen(run, ProfileText(width=columns), replace(found, findings=(cause,), trials=TRIALS))
    assert max(width(line) for line in lines) <= columns
    assert not any("\x1b" in line or "\u202e" in line for line in lines)


def test_a_change_that_was_tried_shows_what_time_is_left() -> None:
    run = small_run()
    lines = screen(run, findings=replace(small_findings(run), trials=TRIALS))
    place = lines.index("CHANGES TRIED – simulated again with one thing changed")
    assert lines[place + 3 : place + 5] == [
        f"precision=i8    70 us  2.00 × as fast  {'█' * 6}",
        f"cores=4        280 us  0.50 × as fast  {'█' * 12}",
    ]


def test_a_share_that_the_title_says_is_not_said_again() -> None:
    run = small_run()
    cause = replace(small_findings(run).findings[0], title="a takes 12.5% of it", share=0.125)
    lines = screen(run, findings=replace(small_findings(run), findings=(cause,)))
    assert "1. a takes 12.5% of it" in lines


def test_a_wide_screen_tells_long_names_apart() -> None:
    run = small_run(LONG)
    lines = [line for line in screen(run, ProfileText(width=100)) if "Clip_output_0" in line]
    assert len({line.split()[-1] for line in lines[:2]}) == 2


def test_less_than_one_in_a_second_is_not_none() -> None:
    run = small_run()
    slow = replace(run, summary=replace(run.summary, throughput_per_s=0.3194))
    assert "  throughput  0.319 inferences/s" in screen(slow)
    hosted = replace(slow, summary=replace(slow.summary, host=(HostStage("submit", 5),)))
    assert "  throughput  0.319 inferences/s of the device alone" in screen(hosted)
    unknown = replace(run, summary=replace(run.summary, throughput_per_s=None))
    assert not any("inferences/s" in line for line in screen(unknown))


def test_a_range_of_one_value_is_no_range() -> None:
    run = small_run()
    latency = replace(run.summary.latency, low_ns=139_999, high_ns=140_001)
    narrow = replace(run, summary=replace(run.summary, latency=latency))
    assert "  latency     140 us" in screen(narrow)
    assert any(line.startswith("  latency     140 us (135 us – 145 us)") for line in screen(run))


def test_colour_is_written_only_where_it_is_asked_for() -> None:
    plain, coloured = screen(small_run()), screen(small_run(), ProfileText(colour=True))
    assert not any("\x1b" in line for line in plain)
    assert any("\x1b[1m" in line for line in coloured)


def test_the_screen_ends_with_where_to_look() -> None:
    lines = screen(small_run(), ProfileText(places=PLACES))
    assert lines[-3:] == ["WHERE TO LOOK", "  page      a.run/report.html", "  timeline  a.run/trace.json"]


def test_a_broken_law_stands_under_the_headline_with_both_numbers_and_others_do_not() -> None:
    run = small_run(OPS)
    checks = (
        LawCheck("DDR bytes per second ≤ peak", False, "213.0 and 137.0 GB/s"),
        LawCheck("DDR peak ≤ capacity", True, "1 and 2 bytes"),
        LawCheck("MACs per second ≤ peak", None, "the run does not tell"),
    )
    lines = screen(run, findings=replace(small_findings(run), checks=checks))
    head = lines[: lines.index("")]
    assert head[-1] == "law broken: DDR bytes per second ≤ peak: 213.0 and 137.0 GB/s"
    assert sum("law broken" in line for line in lines) == 1
    sound = screen(run, findings=replace(small_findings(run), checks=checks[1:]))
    assert not any("law broken" in line for line in sound)


def measured() -> Recording:
    """Two ops that a runtime was watched at, one of which it ran as another kernel."""
    ops = (
        OpRecord("slow", "Conv", time_ns=6000, low_ns=5000, high_ns=7000, placed=Placed.CPU, reason="ran as Fast:Conv"),
        OpRecord("quick", "Relu", time_ns=2000, low_ns=1000, high_ns=3000, placed=Placed.CPU),
    )
    metrics = (
        Metric("latency", 10.0, "us", Provenance.MEASURED, "with the profiler", 9.0, 11.0),
        Metric("nodes_ran", 2, "count", Provenance.MEASURED),
    )
    latency = Latency(10_000, 9000, 11_000, Provenance.MEASURED)
    return Recording("ort", Provenance.MEASURED, ops=ops, metrics=metrics, latency=latency, inferences=3)


def measured_screen() -> list[str]:
    recording, out = measured(), StringIO()
    analysis = analysis_of(recording, command=(), created="", sha256=None)
    ProfileText().render(analysis.run, findings_for(analysis, recording), recording, out)
    return out.getvalue().splitlines()


def test_a_measured_op_stands_in_one_table_with_its_percentiles() -> None:
    lines = measured_screen()
    (slow,) = [line for line in lines if line.endswith("  slow")]
    assert slow.split()[2:] == ["6", "us", "5", "us", "7", "us", "Conv", "—", "slow"]
    assert not [line for line in lines if line.startswith("nodes (")]
    assert "ran as Fast:Conv: 1: slow" in lines


def test_a_measured_latency_is_said_once_with_what_its_source_says_of_it() -> None:
    lines = measured_screen()
    assert [line for line in lines if "latency" in line] == ["  latency  10 us (9 us – 11 us)"]
    assert lines[2].strip() == "with the profiler"
    assert "  nodes ran  2  [measured]" in lines
