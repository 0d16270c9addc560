"""The report for the terminal."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO

import pytest

from opscope.estimate.build_report import build_report
from opscope.estimate.price import Machine
from opscope.estimate.report import Report
from opscope.graph.graph import Graph, Note
from opscope.machine import catalogue as targets
from opscope.machine.target import Holds
from opscope.views.text.report_text import ReportText
from support.build import Sketch, engine, figure, machine, memory, resnet

SAMPLE = Machine(targets.load("cfs-sample"))


def shown(report: Report, *, top: int | None = 15) -> str:
    out = StringIO()
    ReportText(top=top).render(report, out)
    return out.getvalue()


def reported(graph: Graph, chosen: Machine = SAMPLE) -> Report:
    return build_report(graph, chosen, sha256=None)


def custom() -> Graph:
    draw = Sketch("custom")
    return draw.graph(draw.op("custom", (draw.input(1, 16),), (1, 16), type="MyOp"))


def test_the_answer_comes_first() -> None:
    lines = shown(reported(resnet())).splitlines()
    assert lines[0].startswith("resnet on Sample profile behind")
    assert lines[0].endswith("(estimated)")
    assert lines[2] == "  memory    DOES NOT FIT: RAM 640.00 KB of 1.00 MB, flash 5.65 MB of 1.00 MB"
    assert lines[3].startswith("  latency   1.8")
    assert lines[4] == "  bound by  accelerator 100%, cpu 0%"


def test_the_five_parts_follow_in_order() -> None:
    text = shown(reported(resnet()))
    headings = (
        "MODEL SUMMARY",
        "MEMORY ANALYSIS",
        "HARDWARE PERFORMANCE",
        "PER-LAYER PERFORMANCE",
        "OPTIMISATION OPPORTUNITIES",
        "LAYERS WITH MOST PARAMETERS",
        "LAYERS WITH MOST MACS",
    )
    places = [text.index(heading) for heading in headings]
    assert places == sorted(places)


def test_long_tables_are_folded_to_the_slowest_and_the_rest_is_summed() -> None:
    report = reported(resnet())
    text = shown(report, top=3)
    assert "the 3 slowest of 54 layers; --all shows every one" in text
    rows = text[text.index("PER-LAYER") :].split("\n\n")[0].splitlines()[3:]
    assert [row.split()[0] for row in rows[:4]] == ["2", "5", "6", "others"]
    rest = report.totals.cycles - 3 * 21_233_664
    assert f"{rest:,.0f}" in rows[3]


def test_all_layers_stand_in_order_and_share_is_marked() -> None:
    text = shown(reported(resnet()), top=None)
    assert "PER-LAYER PERFORMANCE\n" in text
    assert "others" not in text
    assert "9.19 KB*" in text
    assert "* shares constants with an earlier layer; totals count them once" in text


def test_unknown_is_a_dash_with_its_reason_never_zero() -> None:
    text = shown(reported(custom(), machine(engine(picojoules_per_mac={"*": figure(1)}), idle_watts=figure(1))))
    assert "  latency   —  latency is withheld: layer 0 (MyOp) has no known cost" in text
    assert "  cycles              —" in text
    assert "  energy              —" in text
    assert "  power               —" in text
    assert "  bound by  —" in text
    row = next(line for line in text.splitlines() if line.split()[:2] == ["0", "MyOp"])
    assert row.count("—") == 6  # engine, cycles, time, share, MACs, bound
    assert "\n1 of 1 ops has no known cost; times, MACs and bytes are of the others:\n" in text
    assert "\n  custom0 (MyOp): MyOp is a custom operator" in text
    assert "  MACs                at least 0  " in text


def test_power_that_would_repeat_the_target_file_is_not_shown() -> None:
    assert "  power               —  would only repeat the energy per operation" in shown(reported(resnet()))


def test_a_range_is_shown_where_there_is_one() -> None:
    draw = Sketch()
    graph = draw.graph(draw.dense(draw.input(1, 100), 100))
    chosen = machine(engine(), clock=figure(1e6, 0.5e6, 2e6))
    assert "10 ms  (range 5 ms – 20 ms)" in shown(reported(graph, chosen))


def test_what_a_suggestion_changes_is_shown_with_its_percentage_or_the_same() -> None:
    draw = Sketch()
    report = reported(draw.graph(draw.dense(draw.input(1, 1000), 1000)), machine(engine()))
    text = shown(report)
    line = next(line for line in text.splitlines() if line.startswith("Quantise weights and activations"))
    assert "same" in line
    assert "(-75%)" in line
    assert line.rstrip().endswith("—")  # no energy figure


def test_names_from_the_file_cannot_break_lines_or_move_the_cursor() -> None:
    draw = Sketch("evil\x1b[2J\nnet")
    data = draw.input(1, 8, name="in\x07put\n")
    report = reported(draw.graph(draw.dense(data, 8, name="la\nyer\x1b[0m")))
    report = replace(report, notes=(Note("x", "note\x1b\nline"),))
    text = shown(report)
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "la\\nyer\\x1b[0m" in text


def test_trips_are_shown_beside_the_name() -> None:
    draw = Sketch()
    draw.op("relu", (draw.input(8),), (8,), name="body", trips=7)
    draw.op("relu", (draw.inputs[0],), (8,), name="open", trips=None)
    text = shown(reported(draw.graph()))
    assert "body (×7)" in text
    assert "open (×?)" in text


def test_many_notes_are_cut_and_counted() -> None:
    notes = tuple(Note("n", f"note {number}") for number in range(25))
    text = shown(replace(reported(resnet()), notes=notes))
    assert "note 19" in text
    assert "note 20" not in text
    assert "and 5 more; --format json has them all" in text


def test_a_report_without_layers_or_advice_is_still_a_report() -> None:
    draw = Sketch()
    text = shown(build_report(draw.graph(draw.input(4)), machine(), sha256=None, advise=False))
    assert "PER-LAYER PERFORMANCE" in text
    assert "OPTIMISATION" not in text


@pytest.mark.parametrize("runtime", [None, 2048])
def test_runtime_memory_is_a_number_or_a_dash(runtime: int | None) -> None:
    chosen = machine()
    if runtime:
        target = replace(chosen.target, runtime=replace(chosen.target.runtime, bytes=figure(runtime)))
        chosen = replace(chosen, target=target)
    draw = Sketch()
    text = shown(reported(draw.graph(draw.same("relu", draw.input(256))), chosen))
    assert ("runtime         2.00 KB" if runtime else "runtime         —  not published for this target") in text
    assert ("peak            4.00 KB  OK" if runtime else "peak            2.00 KB  OK") in text


def test_several_cores_are_named_in_the_headline() -> None:
    ram = memory("RAM", Holds.ACTIVATIONS, Holds.CONSTANTS)
    draw = Sketch()
    report = reported(draw.graph(draw.same("relu", draw.input(8))), machine(memories=(ram,), cores=4, devices=2))
    assert shown(report).startswith("net on A target by hand, 2 × 4 cores (estimated)\n")
