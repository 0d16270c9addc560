"""An estimate as a Run: the layers one behind the other, adding up to the latency of the report."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from opscope import api
from opscope.analysis.run_totals import with_breakdown
from opscope.estimate.recorded import estimated, suggested
from opscope.estimate.report import Report
from opscope.graph.kinds import what_kind_does
from opscope.recording.build import to_run
from opscope.recording.finding import Trial
from opscope.recording.resources import Footprint, Range, Suggestion
from opscope.recording.run import Run
from opscope.zoo import Recipe, make

WHEN = "2026-01-01T00:00:00+00:00"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    model = tmp_path_factory.mktemp("estimated") / "kws.tflite"
    make(Recipe("kws-cnn", format="tflite", precision="int8"), model)
    return api.report(model, "max32690-cm4", advise=False)


def run_of(report: Report) -> Run:
    return to_run(estimated(report), command=("opscope", "profile"), created=WHEN, sha256=report.model.sha256)


def test_layers_stand_one_behind_the_other_and_end_with_the_latency(report: Report) -> None:
    run = run_of(report)
    starts, ends = run.trace.spans["start_ns"], run.trace.spans["end_ns"]
    assert starts[0] == 0
    assert np.array_equal(starts[1:], ends[:-1])
    assert report.totals.latency_s is not None
    assert run.summary.latency.value_ns == ends[-1] == round(report.totals.latency_s.value * 1e9)


def test_a_target_whose_figures_have_no_ranges_gives_none(tmp_path: Path) -> None:
    make(Recipe("kws-cnn", format="tflite", precision="int8"), tmp_path / "kws.tflite")
    latency = run_of(api.report(tmp_path / "kws.tflite", "adsp-21834-fx", advise=False)).summary.latency
    assert latency.value_ns is not None
    assert (latency.low_ns, latency.high_ns) == (None, None)


def test_the_range_is_that_of_the_report(report: Report) -> None:
    found = Range(0.002, 0.001, 0.004)
    run = run_of(replace(report, totals=replace(report.totals, latency_s=found, energy_j=found)))
    assert (run.summary.latency.low_ns, run.summary.latency.high_ns) == (1_000_000, 4_000_000)
    assert run.summary.energy is not None
    assert (run.summary.energy.low_j, run.summary.energy.high_j) == (0.001, 0.004)


def test_energy_of_the_layers_is_that_of_the_run(report: Report) -> None:
    run = run_of(report)
    assert run.summary.energy is not None
    assert run.summary.energy.value_j == pytest.approx(sum(op.energy_j or 0 for op in run.summary.ops))


def test_every_layer_keeps_its_work_and_its_engine(report: Report) -> None:
    ops = {op.name: op for op in run_of(report).summary.ops}
    assert len(ops) == len(report.layers)
    for layer in report.layers:
        assert ops[layer.name].macs == layer.macs
        assert ops[layer.name].engine == layer.engine
        assert ops[layer.name].placed == "cpu"
    assert sum(op.share or 0 for op in ops.values()) == pytest.approx(1, abs=1e-6)


def test_an_edge_goes_from_the_layer_that_writes_to_the_one_that_reads(report: Report) -> None:
    run = run_of(report)
    edges, layer = run.trace.edges, run.commands.rows["op"]
    assert (edges["source"] < edges["target"]).all()
    written = {tensor: number for number, op in enumerate(report.graph.ops) for tensor in op.outputs}
    expected = {(written[t], n) for n, op in enumerate(report.graph.ops) for t in op.inputs if t in written}
    found = set(zip(layer[edges["source"]].tolist(), layer[edges["target"]].tolist(), strict=True))
    assert {pair for pair in found if -1 not in pair} == expected


def test_a_layer_of_unknown_cost_leaves_no_timeline_and_no_latency(report: Report) -> None:
    first = replace(report.layers[0], latency_s=None, cost=None)
    unknown = replace(report, layers=(first, *report.layers[1:]), totals=replace(report.totals, latency_s=None))
    run = run_of(unknown)
    assert len(run.trace.spans) == 0
    assert run.summary.latency.value_ns is None
    assert {op.name: op.wall_ns for op in run.summary.ops}[first.name] is None
    assert run.summary.breakdown == ()


def test_peak_memory_with_a_tensor_of_unknown_size_is_not_known_and_says_why(report: Report) -> None:
    assert all(row.peak_bytes is not None for row in run_of(report).summary.memory)
    run = run_of(replace(report, memory=replace(report.memory, unknown_tensors=2)))
    holds = {use.name: use.holds for use in report.memory.uses}
    assert all((row.peak_bytes is None) is ("activations" in holds[row.name]) for row in run.summary.memory)
    assert "2 tensors have no size in the model: peak memory is not known" in run.info.caveats


def test_the_breakdown_is_the_whole_time(report: Report) -> None:
    assert sum(part.share for part in with_breakdown(run_of(report)).run.summary.breakdown) == pytest.approx(1)


def test_the_run_says_that_it_is_an_estimate(report: Report) -> None:
    run = run_of(report)
    assert run.info.provenance == run.trace.provenance == run.summary.latency.provenance == "estimated"
    assert Path(run.info.model).name == "kws.tflite"


def test_what_a_report_suggests_is_a_change_that_was_tried(report: Report) -> None:
    before, after = Footprint(2.0, 0, 0, None), Footprint(0.5, 0, 0, None)
    told = (
        Suggestion("prune", "half the channels", (), before, after),
        Suggestion("store", "int8 weights", (), before, before),
        Suggestion("guess", "unknown", (), before, replace(after, latency_s=None)),
    )
    assert suggested(replace(report, suggestions=told)) == (Trial("half the channels", 500_000_000, 4.0),)


@pytest.mark.parametrize(
    ("recipe", "target"),
    [
        (Recipe("bert-base", weights=False), "aic100-std"),
        (Recipe("mobilenetv2", format="tflite", precision="int8"), "torq-sl2610"),
        (Recipe("mobilenetv2", weights=False), "qcs8550-proxy"),
        (Recipe("resnet50", weights=False), "nvidia-h200"),
        (Recipe("kws-cnn", weights=False), "stm32n6"),
        (Recipe("resnet50", weights=False), "wormhole"),
    ],
    ids=lambda each: each if isinstance(each, str) else each.name,
)
def test_the_verdict_is_the_sum_of_what_costs_are_made_of(recipe: Recipe, target: str, tmp_path: Path) -> None:
    """What the formulas say a layer waits for is what its Run says: no second opinion from MACs and bytes."""
    model = tmp_path / f"net.{recipe.format}"
    make(recipe, model)
    report = api.report(model, target, advise=False)
    run = with_breakdown(run_of(report)).run
    told: dict[str, float] = {"launch": report.call_s}
    for layer in report.layers:
        assert layer.cost is not None
        work = what_kind_does(layer.kind).label
        for part in layer.cost.binding():
            word = {"dispatch": "launch", "exchange": "link"}.get(part.resource.name, part.resource.name)
            if word not in {"launch", "link", "layout"}:
                slow = part.resource.is_outer and work == "compute"
                word = "memory" if slow else "unknown" if work == "host" else work
            told[word] = told.get(word, 0.0) + part.cycles * (layer.trips or 1) / run.info.clocks_hz["core"]
    shown = {row.cause: row.ns for row in run.summary.breakdown}
    assert {cause for cause, seconds in told.items() if seconds * 1e9 > len(report.layers)} <= set(shown)
    for cause, ns in shown.items():
        assert ns == pytest.approx(told[cause] * 1e9, abs=2 * len(report.layers))
    assert run.info.classified == ()


def test_no_finding_says_who_waits_for_whom(tmp_path: Path) -> None:
    make(Recipe("bert-base", weights=False, options={"layers": 2}), tmp_path / "net.onnx")
    recorded = api.report_run(api.report(tmp_path / "net.onnx", "aic100-std"))
    assert len(recorded.run.trace.lanes) > 1
    assert "wait" not in {finding.id for finding in recorded.findings.findings}
    assert not any("more cores" in finding.action for finding in recorded.findings.findings)
