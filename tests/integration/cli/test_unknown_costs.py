"""An op whose cost is not known is named in every verb, and no total is shown as if it took nothing."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from onnx import GraphProto, helper

import opscope
from opscope import api
from opscope.cli import main
from opscope.options import ProfileOptions
from opscope.recording.folder_reader import read_columns, read_run
from support.models.onnx_models import FLOAT, graph, model, save, value, weights, whole
from support.models.unknown_models import NAMES, UNKNOWN, network

TARGET = ("--target", "aic100-std", "--cores", "2")
RATE = re.compile(r"throughput|inferences/s|Inf/Sec \d")
LATENCY = re.compile(r"latency +[\d.]+ [num]?s|aic100-std  [\d.]+ [num]?s")

Runs = dict[str, Path]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """The network as it is (""), and with an op of each kind of unknown cost."""
    folder = tmp_path_factory.mktemp("models")
    return {kind: network(folder / f"{kind or 'known'}.onnx", kind) for kind in ("", *UNKNOWN)}


@pytest.fixture(scope="module")
def runs(models: Runs) -> Runs:
    found = {kind: path.with_suffix(".run") for kind, path in models.items()}
    for kind, run in found.items():
        assert main(["profile", str(models[kind]), *TARGET, "-o", str(run)]) == (1 if kind else 0)
    return found


@pytest.fixture(scope="module")
def programs(models: Runs) -> Runs:
    found = {kind: path.with_suffix(".program") for kind, path in models.items()}
    for kind, folder in found.items():
        assert main(["compile", str(models[kind]), *TARGET, "--stats-level", "70", "-o", str(folder)]) == 0
    return found


def named(text: str, kind: str) -> bool:
    """Whether a text says which op it is."""
    return "no known cost" in text and NAMES[kind] in text


def headlines(text: str) -> list[str]:
    return [line for line in text.splitlines() if RATE.search(line) or LATENCY.search(line)]


@pytest.mark.parametrize("backend", ["sim", "estimate"])
@pytest.mark.parametrize("kind", UNKNOWN)
def test_profile_names_the_op_and_exits_with_1(
    kind: str, backend: str, models: Runs, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["profile", str(models[kind]), *TARGET, "--backend", backend, "-o", str(tmp_path / "run")]
    assert main(command) == 1
    text = capsys.readouterr().out
    assert named(text, kind)
    assert "latency  at least " in text
    assert headlines(text) == []
    assert "CHANGES TRIED" not in text
    assert main([*command, "--allow-unknown"]) == 0


@pytest.mark.parametrize("backend", ["sim", "estimate"])
def test_without_the_op_profile_has_a_latency_and_exits_with_0(
    backend: str, models: Runs, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["profile", str(models[""]), *TARGET, "--backend", backend, "-o", str(tmp_path / "run")]) == 0
    text = capsys.readouterr().out
    assert len(headlines(text)) == 2
    assert "no known cost" not in text


@pytest.mark.parametrize("kind", UNKNOWN)
def test_the_run_is_open_above_and_its_folder_keeps_the_reason(kind: str, runs: Runs) -> None:
    run, whole = read_run(runs[kind]), read_run(runs[""])
    latency, known = run.summary.latency, whole.summary.latency
    assert (latency.value_ns, latency.high_ns) == (None, None)
    assert latency.low_ns is not None
    assert latency.low_ns > 0
    assert (run.summary.throughput_per_s, run.summary.energy, run.summary.samples_ns) == (None, None, ())
    assert known.value_ns is not None
    assert whole.summary.throughput_per_s is not None
    assert run.unknown_ops
    assert whole.unknown_ops == ()
    rows = {total.op: total for total in run.summary.ops}
    for number, op in enumerate(run.ops):
        if op.unknown:
            assert (rows[number].wall_ns, rows[number].busy_ns, rows[number].share) == (None, None, None)
            assert rows[number].reason == op.unknown
    assert read_columns(runs[kind])[1] == run.ops


@pytest.mark.parametrize("kind", ["nonzero", "custom"])
def test_what_the_known_ops_take_is_not_more_than_without_the_other(kind: str, runs: Runs) -> None:
    """How an op of unknown cost would read its operands is not known: nothing is moved or done twice for it."""
    low, whole = read_run(runs[kind]).summary.latency.low_ns, read_run(runs[""]).summary.latency
    assert low is not None
    assert whole.value_ns is not None
    assert low <= whole.value_ns
    macs = [sum(op.macs or 0 for op in read_run(runs[name]).summary.ops) for name in (kind, "")]
    assert macs[0] == macs[1]


@pytest.mark.parametrize("kind", UNKNOWN)
def test_analyze_and_check_name_the_op(kind: str, runs: Runs, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["analyze", str(runs[kind])]) == 0
    text = capsys.readouterr().out
    assert named(text, kind)
    assert "aic100-std  at least " in text
    assert headlines(text) == []
    assert main(["analyze", str(runs[kind]), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["unknown_ops"]
    assert found["verdict"]["wall_ns"] is None
    assert all(finding["predicted"] is None for finding in found["findings"])
    assert main(["check", str(runs[kind])]) == 0
    line = next(row for row in capsys.readouterr().out.splitlines() if "no op is of unknown cost" in row)
    assert line.startswith("—")
    assert named(line, kind)


@pytest.mark.parametrize("kind", UNKNOWN)
def test_json_lists_every_such_op_with_its_reason(
    kind: str, models: Runs, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["profile", str(models[kind]), *TARGET, "-o", str(tmp_path / "run"), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert [set(op) for op in found["unknown_ops"]] == [{"name", "type", "reason"}] * len(found["unknown_ops"])
    assert any(NAMES[kind] in op["name"] for op in found["unknown_ops"])
    assert found["summary"]["latency"]["value_ns"] is None
    assert found["summary"]["throughput_per_s"] is None
    assert main(["report", str(models[kind]), *TARGET, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["unknown_ops"] == found["unknown_ops"]
    assert report["hardware"]["latency_ms"] is None
    assert report["hardware"]["latency_at_least_ms"] > 0
    assert report["opportunities"]["is_lower_bound"]


@pytest.mark.parametrize("kind", UNKNOWN)
@pytest.mark.parametrize("form", ["text", "md"])
def test_report_says_at_least(kind: str, form: str, models: Runs, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(models[kind]), *TARGET, "--format", form]) == 0
    text = capsys.readouterr().out
    assert named(text, kind)
    assert re.search(r"(latency|Latency \|) +at least \d", text)
    assert re.search(r"MACs( +| \| )at least \d", text)
    assert headlines(text) == []


def test_a_report_by_the_rules_of_a_vendor_says_it_too(
    models: Runs, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = str(models["nonzero"])
    assert main(["report", model, "--target", "max32690-cm4", "--compat", "cfs", "--budget", "ram=1MB"]) == 1
    text = capsys.readouterr().out
    assert named(text, "nonzero")
    assert re.search(r"Total MACs +\| at least ", text)
    assert re.search(r"Estimated Latency +\| - ", text)
    file = tmp_path / "profile.json"
    assert main(["cfsai", "profile", "--model", model, "--target", "MAX32690.CM4", "--json-file", str(file)]) == 0
    found = json.loads(file.read_text(encoding="utf-8"))
    assert [error.partition(" (")[0] for error in found["errors"]] == ["where", "turned"]
    assert found["hardware_metrics"]["estimated_latency_ms"] is None


@pytest.mark.parametrize("kind", UNKNOWN)
def test_the_page_has_the_reason(kind: str, runs: Runs) -> None:
    reasons = {op.unknown for op in read_run(runs[kind]).ops if op.unknown}
    page = (runs[kind] / "report.html").read_text(encoding="utf-8")
    assert all(json.dumps(reason)[1:-1] in page for reason in reasons)


@pytest.mark.parametrize("kind", UNKNOWN)
def test_compile_names_the_op(kind: str, models: Runs, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    more = ("--perf-warnings", "--perf-metrics")
    assert main(["compile", str(models[kind]), *TARGET, "-o", str(tmp_path / "program"), *more]) == 0
    text = capsys.readouterr().out
    assert "MAC estimate: at least " in text
    assert named(text, kind)
    assert "cost unknown" in text
    assert "; 0 cycles" not in text


@pytest.mark.parametrize("kind", ["", *UNKNOWN])
def test_run_has_a_rate_only_where_every_cost_is_known(
    kind: str, programs: Runs, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", str(programs[kind]), "--num-iter", "3", "--out-dir", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    row = next(line for line in text.splitlines() if line.startswith("ExecTimeUs"))
    average, least, most, _ = (cell.strip() for cell in row.split(",")[1:])
    assert float(least) > 0
    if kind:
        assert named(text, kind)
        assert "TotalDuration N/A" in text
        assert "Inf/Sec N/A" in text
        assert (average, most) == ("N/A", "N/A")
    else:
        assert RATE.search(text)
        assert float(average) > 0


@pytest.mark.parametrize("kind", UNKNOWN)
def test_decoded_stats_buffers_say_it_too(
    kind: str, programs: Runs, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stats, run = tmp_path / "stats", tmp_path / "run"
    stats.mkdir()
    assert main(["run", str(programs[kind]), "--profile", "raw_device_stats", "--out-dir", str(stats)]) == 0
    assert "note: times in the files are of the ops whose cost is known" in capsys.readouterr().err
    qpc = programs[kind] / "programqpc.bin"
    assert main(["opstats", "-q", str(qpc), "-i", str(stats), "-o", str(stats), "--summary", "--run", str(run)]) == 0
    (text,) = (path.read_text(encoding="utf-8") for path in stats.glob("*summary.txt"))
    assert named(text, kind)
    assert read_run(run).summary.latency.value_ns is None


@pytest.mark.parametrize("kind", UNKNOWN)
@pytest.mark.parametrize("swapped", [False, True])
def test_a_limit_on_a_part_of_a_total_fails_with_the_reason(
    kind: str, runs: Runs, capsys: pytest.CaptureFixture[str], *, swapped: bool
) -> None:
    pair = [str(runs[kind]), str(runs[""])] if swapped else [str(runs[""]), str(runs[kind])]
    for limit in ("latency>5%", "throughput<-5%", "macs>0", "peak_memory>0", "host_latency>5%"):
        assert main(["compare", *pair, "--fail-on", limit]) == 1
        text = capsys.readouterr().out
        side = "the base" if swapped else "the new run"
        assert re.search(
            rf"^\?\?    {re.split('[<>]', limit)[0]} is not known in {side}: .*no known cost.*{NAMES[kind]}", text, re.M
        )
        assert re.search(rf"^note  {runs[kind].name}: .*no known cost", text, re.M)
    assert main(["compare", *pair]) == 0


def test_a_limit_passes_again_without_the_op(runs: Runs) -> None:
    assert main(["compare", str(runs[""]), str(runs[""]), "--fail-on", "latency>5%", "--fail-on", "macs>0"]) == 0


def test_a_baseline_keeps_the_reason(runs: Runs, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "baseline.json"
    assert main(["baseline", "save", str(runs["custom"]), "-o", str(file)]) == 0
    capsys.readouterr()
    assert main(["compare", str(file), str(runs[""]), "--fail-on", "latency>5%"]) == 1
    assert "Mystery is a custom operator" in capsys.readouterr().out
    model, run = runs["custom"].with_suffix(".onnx"), tmp_path / "run"
    against = ("--baseline", str(runs[""]), "--max-regression", "5%", "--allow-unknown")
    assert main(["profile", str(model), *TARGET, "-o", str(run), *against]) == 1


def test_a_budget_on_a_lower_bound_fails(models: Runs, capsys: pytest.CaptureFixture[str]) -> None:
    """Also where the part that is known is within it; a part that is not is reason enough."""
    command = ["report", str(models["nonzero"]), *TARGET, "--budget"]
    assert main([*command, "ram=1GB"]) == 1
    why = "2 tensors have no size in the model"
    assert f"FAIL  budget ram: not known, at least 2.00 KB; {why}" in capsys.readouterr().err
    assert main([*command, "ram=1KB"]) == 1
    assert "FAIL  budget ram: at least 2.00 KB of 1.00 KB" in capsys.readouterr().err
    assert main([*command, "latency=1s"]) == 1
    assert "budget latency: not known, at least " in capsys.readouterr().err
    assert main([*command, "flash=1MB"]) == 0
    assert main(["report", str(models[""]), *TARGET, "--budget", "ram=1GB,latency=1s"]) == 0


@pytest.mark.parametrize("kind", ["nonzero", "custom"])
def test_a_program_without_commands_is_an_error(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = network(tmp_path / "only.onnx", kind, with_known=False)
    for command in (["compile", "-o", str(tmp_path / "program")], ["profile", "-o", str(tmp_path / "run")]):
        assert main([command[0], str(model), *TARGET, *command[1:]]) == 2
        error = capsys.readouterr().err
        assert re.search(r"only\.onnx: none of its \d ops gives a command for aic100-std .*; expected one that", error)
    assert not (tmp_path / "program").exists()
    assert not (tmp_path / "run").exists()


def test_the_library_says_it_and_does_not_raise(models: Runs) -> None:
    recorded = opscope.profile(models["custom"], "aic100-std", options={"cores": 2})
    assert [op.name for op in recorded.run.unknown_ops] == ["mystery"]
    assert recorded.run.summary.latency.value_ns is None
    assert recorded.findings.unknown_ops == recorded.run.unknown_ops
    assert recorded.findings.trials == ()
    card = recorded._repr_html_()
    assert "latency <strong>at least " in card
    assert "mystery (own.domain:Mystery)" in card


def test_a_what_if_of_such_a_run_has_no_latency_either(runs: Runs) -> None:
    for run in api.what_if_run(runs["custom"], ["bandwidth*2"]):
        assert run.summary.latency.value_ns is None
        assert run.unknown_ops


@pytest.mark.parametrize("kind", ["", "custom"])
def test_a_session_has_a_rate_and_latencies_only_where_every_cost_is_known(kind: str, programs: Runs) -> None:
    with opscope.Session(programs[kind], num_iter=3) as session:
        completed, per_second, _, _ = session.run_benchmark()
        assert completed == 3
        assert (per_second is None) is bool(kind)
        assert ("avg_latency" in session.get_metrics()) is not bool(kind)
        assert session.get_metrics()["num_of_inferences"] == 3


def test_shapes_from_a_run_make_a_cost_known_and_follow_their_inputs(tmp_path: Path) -> None:
    """The same run folder with other inputs in the same file is made again."""
    pytest.importorskip("onnxruntime")
    path = save(tmp_path, model(positive_rows()))
    inputs = tmp_path / "inputs.npz"
    macs = []
    for rows in (2, 5):
        np.savez(inputs, x=np.array([1.0] * rows + [-1.0] * (8 - rows), np.float32))
        options = ProfileOptions(cores=1, shapes_from_run=str(inputs))
        found = api.profile(path, "aic100-std", options=options, run=tmp_path / "run")
        assert not found.run.unknown_ops
        assert found.run.summary.latency.value_ns is not None
        assert any("those of one run in ONNX Runtime" in note for note in found.findings.notes)
        macs.append(sum(op.macs or 0 for op in found.run.summary.ops))
    assert macs == [2 * 16 * 16, 5 * 16 * 16]
    assert api.profile(path, "aic100-std", options=ProfileOptions(cores=1)).run.unknown_ops


def positive_rows() -> GraphProto:
    """Rows of a table where x is positive, times weights."""
    nodes = [
        helper.make_node("Greater", ["x", "zero"], ["is_positive"]),
        helper.make_node("NonZero", ["is_positive"], ["places"]),
        helper.make_node("Squeeze", ["places", "first"], ["rows"]),
        helper.make_node("Gather", ["table", "rows"], ["kept"]),
        helper.make_node("MatMul", ["kept", "w"], ["y"]),
    ]
    constants = [helper.make_tensor("zero", FLOAT, [], [0.0]), whole("first", [0]), weights("table", 8, 16)]
    return graph(nodes, [value("x", [8])], [value("y")], [*constants, weights("w", 16, 16)])
