"""A profile reads its model and its target once, and takes a graph as well as a file."""

from __future__ import annotations

from pathlib import Path

import pytest

import opscope
from opscope import ProfileOptions, readers
from opscope.changes import simulate_model as simulating
from opscope.core.errors import UsageError
from opscope.graph.graph import Graph
from opscope.machine import catalogue
from opscope.zoo import Recipe, make


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "kws.onnx"
    make(Recipe("kws-cnn"), path)
    return path


def test_ranges_and_trials_start_from_the_graph_in_memory(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Path] = []
    whole = readers.read_model

    def counted(path: Path, **choices: object) -> Graph:
        read.append(path)
        return whole(path, **choices)  # type: ignore[arg-type]

    monkeypatch.setattr(readers, "read_model", counted)
    found = opscope.profile(model, "aic100-std", options=ProfileOptions(cores=2))
    assert found.findings.trials
    assert read == [model]


def test_a_target_is_parsed_once() -> None:
    assert catalogue.load("aic100-std") is catalogue.load("aic100-std")


@pytest.mark.parametrize("backend", ["sim", "estimate"])
def test_a_graph_is_profiled_as_its_file_is(model: Path, backend: str) -> None:
    of_file, of_graph = (
        opscope.profile(each, "aic100-std", backend=backend, options={"cores": 2}, created="2026-01-01T00:00:00")
        for each in (model, opscope.read(model))
    )
    assert of_graph.run.summary == of_file.run.summary
    assert of_graph.findings == of_file.findings
    assert of_graph.run.info.sha256 is None


def test_a_graph_has_its_shapes_already(model: Path) -> None:
    with pytest.raises(UsageError, match="is read already; expected shapes and batch where it is read"):
        opscope.compile_model(opscope.read(model), "aic100-std", batch=4)


def test_a_runtime_wants_a_file(model: Path) -> None:
    with pytest.raises(UsageError, match=r"^backend ort: expected a model file"):
        opscope.profile(opscope.read(model), backend="ort")


def test_reports_and_programs_are_made_of_graphs_too(model: Path) -> None:
    graph = opscope.read(model)
    assert opscope.report(graph, "max32690-cm4").layers == opscope.report(model, "max32690-cm4").layers
    made = [opscope.compile_model(each, "aic100-std", cores=2).program for each in (model, graph)]
    assert (made[0].commands == made[1].commands).all()


def test_a_program_that_is_too_long_to_be_run_again_has_no_range_and_a_note(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simulating, "MOST_COMPILED", 3)
    recorded = opscope.profile(model, "aic100-std", backend="sim", options={"cores": 2})
    assert recorded.run.summary.latency.low_ns is None
    assert any("no range: a program of " in note and "at most 3 are" in note for note in recorded.findings.notes)
