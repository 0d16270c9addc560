"""`opscope export`: runs as files of other programs, read back as those programs would."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import openpyxl
import pyarrow.parquet as pq
import pytest

from opscope import api
from opscope.cli import main
from opscope.importers.formats import read_profile
from opscope.workflows.exporting import FORMS, export, tables_of
from support.plugins.importer_samples import SAMPLES

QUICK = {"csv": "summary-ops", "xlsx": "findings", "chrome": None, "perfetto": None}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "base.run"
    api.import_profile([SAMPLES / "executorch.etdp", SAMPLES / "executorch.etrecord"], folder)
    return folder


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_every_table_of_a_run_can_be_had_as_csv_with_all_its_rows(run: Path, tmp_path: Path) -> None:
    names = tables_of([run], form="csv")
    assert {"spans", "ops", "operands", "summary-ops", "summary-lanes", "findings", "recording-metrics"} <= set(names)
    for name in names:
        path = export([run], tmp_path / f"{name}.csv", form="csv", table=name)
        if (run / f"{name}.parquet").exists():
            assert len(rows_of(path)) == pq.read_metadata(run / f"{name}.parquet").num_rows
    summary = json.loads((run / "summary.json").read_text())
    found = rows_of(tmp_path / "summary-ops.csv")
    assert [row["name"] for row in found] == [op["name"] for op in summary["ops"]]
    assert [int(row["wall_ns"]) for row in found] == [op["wall_ns"] for op in summary["ops"]]
    (call,) = [row for row in found if row["name"] == "XnnpackBackend#0"]
    assert (call["module"], call["line"]) == ("conv", "model.py:9")


def test_a_workbook_has_every_table(run: Path, tmp_path: Path) -> None:
    assert main(["export", str(run), "--format", "xlsx", "-o", str(tmp_path / "run.xlsx")]) == 0
    book = openpyxl.load_workbook(tmp_path / "run.xlsx")
    assert book.sheetnames == [name[:31] for name in tables_of([run], form="xlsx")]
    assert book["spans"].max_row == 1 + pq.read_metadata(run / "spans.parquet").num_rows


def test_ops_are_coloured_by_time_and_the_name_says_how_it_was_obtained(run: Path, tmp_path: Path) -> None:
    path = export([run], tmp_path / "times.json", form="model-explorer")
    data = json.loads(path.read_text())
    summary = json.loads((run / "summary.json").read_text())
    assert data["name"] == "time, us (unknown, measured)"
    assert {name: result["value"] for name, result in data["results"].items()} == {
        op["name"]: op["wall_ns"] / 1000 for op in summary["ops"]
    }
    assert [stop["stop"] for stop in data["gradient"]] == [0, 0.5, 1]


def test_findings_and_engines_mark_the_ops_they_are_about(run: Path, tmp_path: Path) -> None:
    told = json.loads((run / "findings.json").read_text())["findings"]
    marks = json.loads(export([run], tmp_path / "f.json", form="model-explorer", table="findings").read_text())
    wanted = {op for finding in told for op in finding["ops"]}
    assert wanted
    assert wanted <= set(marks["results"])
    first = next(finding for finding in told if finding["ops"])
    assert first["id"] in marks["results"][first["ops"][0]]["value"]
    engines = json.loads(export([run], tmp_path / "e.json", form="model-explorer", table="engine").read_text())
    assert engines["results"]["Softmax (NC, F32) #1"]["value"] == "XnnpackBackend"


def test_samples_are_the_rounds_of_a_benchmark(run: Path, tmp_path: Path) -> None:
    file = json.loads(export([run], tmp_path / "b.json", form="pytest-benchmark").read_text())
    (benchmark,) = file["benchmarks"]
    samples = sorted(json.loads((run / "summary.json").read_text())["samples_ns"])
    assert benchmark["stats"]["data"] == [ns / 1e9 for ns in samples]
    assert benchmark["stats"]["rounds"] == len(samples) == 2
    assert benchmark["extra_info"]["provenance"] == "measured"
    assert {"machine_info", "commit_info", "datetime", "version"} <= set(file)
    ops = json.loads(export([run], tmp_path / "o.json", form="pytest-benchmark", table="ops").read_text())
    assert len({entry["fullname"] for entry in ops["benchmarks"]}) == len(ops["benchmarks"]) > 3


def test_a_timeline_that_was_exported_can_be_imported(run: Path, tmp_path: Path) -> None:
    path = export([run], tmp_path / "t.json", form="chrome")
    assert len(read_profile(path).trace.spans) == pq.read_metadata(run / "spans.parquet").num_rows


def test_two_runs_are_exported_as_their_comparison(run: Path, tmp_path: Path) -> None:
    new = tmp_path / "new.run"
    api.import_profile([SAMPLES / "executorch.etdp"], new)
    api.import_profile([SAMPLES / "executorch.etdp"], tmp_path / "base.run")
    pair = [tmp_path / "base.run", new]
    assert {"metrics", "ops"} <= set(tables_of(pair, form="csv"))
    metrics = rows_of(export(pair, tmp_path / "m.csv", form="csv", table="metrics"))
    assert {row["name"]: row["change"] for row in metrics}["latency"] in ("0", "0.0", "")
    assert "ops" in openpyxl.load_workbook(export(pair, tmp_path / "c.xlsx", form="xlsx")).sheetnames


@pytest.mark.parametrize("form", FORMS)
def test_the_same_run_gives_the_same_bytes(form: str, run: Path, tmp_path: Path) -> None:
    one, two = (export([run], tmp_path / name, form=form, table=QUICK.get(form)) for name in ("one", "two"))
    assert one.read_bytes() == two.read_bytes()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--format", "csv", "--table", "nothing", "-o", "x"], "--table nothing: not known; expected one of"),
        (["--format", "chrome", "--table", "ops", "-o", "x"], "--table ops: not known; chrome has timeline"),
        (["--format", "csv"], "export: no file given; expected -o FILE"),
    ],
)
def test_what_cannot_be_exported_is_one_line(
    words: list[str], message: str, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", str(run), *words]) == 2
    assert message in capsys.readouterr().err


def test_what_is_no_run_and_what_has_no_latency_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = ["-o", str(tmp_path / "x")]
    assert main(["export", str(tmp_path), "--format", "csv", *out]) == 2
    assert "is no run; expected the folder of one" in capsys.readouterr().err
    api.import_profile([SAMPLES / "tenstorrent_ops.csv"], tmp_path / "run")
    assert main(["export", str(tmp_path / "run"), "--format", "pytest-benchmark", *out]) == 2
    assert "the latency is not known; expected a run with a latency, or --table ops" in capsys.readouterr().err
    assert not (tmp_path / "x").exists()


def test_the_tables_are_listed(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", str(run), "--format", "csv", "--list"]) == 0
    assert capsys.readouterr().out.split() == list(tables_of([run], form="csv"))
