"""What a Run keeps of its resource report: the report's own numbers, and every figure of the target with its source."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from opscope.core.errors import UsageError
from opscope.estimate.recorded_resources import resources_of, target_figures
from opscope.estimate.report import Report
from opscope.recording.folder_reader import read_run
from opscope.recording.resources_file import RESOURCES_FILE
from opscope.workflows.estimating import analysed_run
from support.estimate.report_samples import chain, report_of
from support.recording.run_build import write_run


@pytest.fixture(scope="module")
def report() -> Report:
    return report_of(chain(["conv", "relu", "conv", "add", "softmax"]))


def test_facts_are_those_of_the_report(report: Report) -> None:
    found = resources_of(report)
    assert (found.model, found.memory, found.totals) == (report.model, report.memory, report.totals)
    assert (found.suggestions, found.heavy_memory, found.heavy_macs) == (
        report.suggestions,
        report.heavy_memory,
        report.heavy_macs,
    )
    assert (found.notes, found.definition, found.target_title) == (
        report.notes,
        report.definition,
        report.target.title,
    )


def test_every_layer_keeps_its_exact_values(report: Report) -> None:
    for layer, found in zip(report.layers, resources_of(report).layers, strict=True):
        assert found.op == layer.index
        for name in (
            "cycles",
            "latency_s",
            "energy_j",
            "power_w",
            "macs",
            "element_ops",
            "parameter_bytes",
            "live_bytes",
            "bound",
        ):
            assert getattr(found, name) == getattr(layer, name), name
        assert layer.cost is not None
        assert [part.cycles for part in found.costs] == list(layer.cost.by_resource().values())


def test_a_layer_of_unknown_cost_has_no_cycles_and_no_bound() -> None:
    found = resources_of(report_of(chain(["conv", "custom", "relu"]))).layers[1]
    assert (found.cycles, found.latency_s, found.bound, found.costs) == (None, None, "", ())
    assert found.reason


def test_figures_are_found_wherever_a_target_holds_them(report: Report) -> None:
    found = {(figure.part, figure.name): figure for figure in target_figures(report.target)}
    assert found["clocks", "core clock in hertz"].value == 120_000_000
    assert found["cpu", "macs per cycle, i8"].value == 0.383767
    assert found["RAM", "size in bytes"].value == 1 << 20
    assert all(figure.source for figure in found.values())
    clock = report.target.clocks.core_hz
    assert found["clocks", "core clock in hertz"].source == report.target.sources[clock.source]


def test_the_folder_of_a_run_gives_them_back(report: Report, tmp_path: Path) -> None:
    run = analysed_run(report, command=(), created="").run
    write_run(run, tmp_path / "run")
    assert read_run(tmp_path / "run").resources == run.resources == resources_of(report)


def test_a_run_without_a_report_has_no_file_for_one(report: Report, tmp_path: Path) -> None:
    run = analysed_run(report, command=(), created="").run
    write_run(replace(run, resources=None), tmp_path / "run")
    assert not (tmp_path / "run" / RESOURCES_FILE).exists()
    assert read_run(tmp_path / "run").resources is None


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('"op": 3,', '"op": 77,', "layer 77; expected 0 to 3"),
        ('"peak_layer": 0', '"peak_layer": -1', "layer -1; expected 0 to 3"),
        ("opscope.resources/1", "opscope.resources/9", "another schema"),
    ],
)
def test_a_damaged_file_is_named(report: Report, tmp_path: Path, old: str, new: str, told: str) -> None:
    run = analysed_run(report, command=(), created="").run
    write_run(run, tmp_path / "run")
    file = tmp_path / "run" / RESOURCES_FILE
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(UsageError, match=f"resources.json: .*{told}"):
        read_run(tmp_path / "run")
