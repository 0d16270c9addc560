"""Session in the vendor's words: names of options, host profile, and what a profile can write."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from onnx import helper

import opscope
from onnx_models import graph, model, save, value
from opscope.core.errors import UsageError
from opscope.plugins.qaic.session_options import our_names, read_options


@pytest.fixture
def relu(tmp_path: Path) -> Path:
    body = graph([helper.make_node("Relu", ["x"], ["y"])], [value("x", [4, 64])], [value("y", [4, 64])])
    return save(tmp_path, model(body))


def test_the_vendors_names_are_ours(relu: Path) -> None:
    session = opscope.Session(
        relu,
        "aic100-std",
        aic_num_cores=2,
        num_activations=3,
        set_size=2,
        dev_id=0,
        aic_pmu_recipe="KernelUtil",
        ddr_stats=True,
        stats_batchsize=4,
        num_iter=5,
    )
    stats = session.program.stats
    assert (session.program.cores, stats.recipe, stats.ddr, stats.batch_size) == (2, "KernelUtil", True, 4)
    completed, _, _, batch = session.run_benchmark()
    assert (completed, batch) == (15, 4)
    percentiles = {"P25", "P50", "P75", "P90", "P99", "P999"}
    totals = {"num_of_inferences", "min_latency", "max_latency", "total_inference_time", "avg_latency"}
    assert set(session.get_metrics()) == percentiles | totals


def test_an_option_under_two_names_is_an_error() -> None:
    assert our_names({"aic_num_cores": 2, "aic_pmu_events": [0x3F, "70"], "dev_id": 1}) == {
        "cores": 2,
        "pmu_events": "3F,70",
    }
    with pytest.raises(UsageError, match=r"^option aic_num_cores: cores is given twice; expected one of the names$"):
        our_names({"cores": 1, "aic_num_cores": 2})


def test_options_may_stand_in_a_file_and_keywords_come_first(relu: Path, tmp_path: Path) -> None:
    path = tmp_path / "options.yaml"
    path.write_text("# how to compile\naic_num_cores: 4\nddr_stats: true  # bytes\naic-pmu-recipe: 'AxiRd'\n")
    assert read_options(path) == {"aic_num_cores": 4, "ddr_stats": True, "aic_pmu_recipe": "AxiRd"}
    session = opscope.Session(relu, "aic100-std", options_path=path, cores=2)
    assert (session.program.cores, session.program.stats.ddr, session.program.stats.recipe) == (2, True, "AxiRd")
    path.write_text("a:\n  b: 1\n")
    with pytest.raises(UsageError, match=r"options\.yaml: line 1: 'a:'; expected `name: value`$"):
        read_options(path)


def test_a_session_has_a_model_or_a_program(relu: Path, tmp_path: Path) -> None:
    opscope.compile_model(relu, "aic100-std", tmp_path / "built", cores=1)
    assert opscope.Session(qpc=tmp_path / "built").program.cores == 1
    for given in ({}, {"model": relu, "qpc": tmp_path / "built"}):
        with pytest.raises(UsageError, match=r"^model and qpc: expected one of them$"):
            opscope.Session(**given)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"^enable_profiling and enable_metrics exclude each other"):
        opscope.Session(relu, "aic100-std", enable_profiling=True, enable_metrics=True)


def test_calls_of_the_host_are_printed_where_they_were_watched(relu: Path, capsys: pytest.CaptureFixture[str]) -> None:
    session = opscope.Session(relu, "aic100-std", enable_profiling=True)
    for _ in range(3):
        session.run({"x": np.zeros((4, 64), np.float32)})
    session.print_profile_data(5)
    header, *rows = capsys.readouterr().out.splitlines()
    assert [cell.strip() for cell in header.split("|")] == ["File-Line-Function", "num calls", "func time", "tot time"]
    assert 1 <= len(rows) <= 5
    assert any(row.split("|")[1].strip() == "3" for row in rows)
    with pytest.raises(UsageError, match=r"^no calls were watched; expected a session with enable_profiling=True$"):
        opscope.Session(relu, "aic100-std").print_profile_data(5)


def test_a_profile_can_be_written_as_summary_and_timeline(relu: Path, tmp_path: Path) -> None:
    profile = opscope.Session(relu, "aic100-std", cores=2).profile()
    assert len(profile.spans) > 4
    events = json.loads(profile.write_trace(tmp_path / "t.json").read_bytes())["traceEvents"]
    assert any(event["name"] == "inference-Inf-0" for event in events)
    assert profile.write_trace(tmp_path / "t.pftrace").stat().st_size > 100
    assert "[QAicGraph] Device instance inf/s" in profile.write_summary(tmp_path / "s.txt").read_text()


def test_profile_takes_options_by_name(relu: Path) -> None:
    assert opscope.profile(relu, "aic100-std", cores=2).run.info.cores == 2
    assert opscope.profile(relu, "aic100-std", options=opscope.ProfileOptions(cores=2), num_iter=3).run.info.cores == 2
    with pytest.raises(UsageError, match="coers"):
        opscope.profile(relu, "aic100-std", coers=2)
