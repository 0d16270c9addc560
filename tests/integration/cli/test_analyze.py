"""`opscope analyze` and `opscope check` on runs of every origin: exit code, stdout, stderr, and findings.json."""

from __future__ import annotations

import json
from collections.abc import Callable
from io import BytesIO, StringIO
from pathlib import Path
from shutil import copytree

import numpy as np
import pytest

import opscope
from opscope import api
from opscope.cli import main
from opscope.core.meaning import ROLLUPS
from opscope.recording.finding import BOUNDS, OTHER_BOUND
from opscope.recording.folder_reader import read_run
from opscope.recording.trace import NONE
from opscope.views.text.findings_text import ChecksText, FindingsText
from opscope.views.timeline.chrome_trace import ChromeTrace
from opscope.views.timeline.perfetto_trace import PerfettoTrace
from opscope.views.timeline.trace_args import is_instant
from opscope.zoo import Recipe, make
from support.decode.opstats_folder import bert
from support.plugins.kineto_build import device_bound, launch_bound
from support.plugins.qaic_published import SUMMARY, written

SAMPLES = Path(__file__).parents[2] / "samples"


@pytest.fixture(scope="module")
def decoded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two layers of BERT on two cores, simulated and decoded."""
    folder = bert(tmp_path_factory.mktemp("bert"))
    api.opstats(folder / "programqpc.bin", folder / "stats", folder, run=folder / "run", created="2026-01-01T00:00:00")
    return folder / "run"


def imported(file: Path, folder: Path) -> Path:
    api.import_profile([file], folder / "run", created="2026-01-01T00:00:00")
    return folder / "run"


def read_json(folder: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads((folder / "findings.json").read_bytes())
    return found


def test_the_verdict_comes_first_and_the_parts_of_the_time_add_up(
    decoded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["analyze", str(decoded)]) == 0
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert lines[0].startswith("QAicGraph on aic100-std")
    assert lines[2].startswith("Verdict: ")
    assert "\nFindings" in out
    assert "gain at most" in out
    assert "Recorded: 100.0% of the wall time; 0 records lost" in out
    assert "Checks: 33 ok, 2 not knowable" in out
    assert err.splitlines()[-1] == f"wrote {decoded / 'findings.json'}"
    assert "\x1b" not in out
    verdict = read_json(decoded)["verdict"]
    assert isinstance(verdict, dict)
    assert sum(part["share"] for part in verdict["breakdown"]) == pytest.approx(1)
    assert sum(part["ns"] for part in verdict["breakdown"]) == verdict["wall_ns"]
    assert {part["cause"] for part in verdict["breakdown"]} <= {*BOUNDS, OTHER_BOUND}


def test_json_is_what_is_kept_in_the_run_and_comes_out_the_same_every_time(
    decoded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["analyze", str(decoded), "--json"]) == 0
    first = capsys.readouterr().out
    kept = read_json(decoded)
    assert kept.pop("key")  # of the tables that it was made of
    assert json.loads(first) == kept
    assert main(["analyze", str(decoded), "--json"]) == 0
    assert capsys.readouterr().out == first
    found = json.loads(first)
    assert found["schema"] == "opscope.findings/1"
    costs = [finding["cost_ns"] or 0 for finding in found["findings"]]
    assert costs == sorted(costs, reverse=True)
    assert {"id", "title", "detail", "ops", "cost_ns", "share", "action", "predicted"} <= set(found["findings"][0])
    steps = found["path"]
    assert sum(step["end_ns"] - step["start_ns"] for step in steps) == found["verdict"]["wall_ns"]


@pytest.mark.parametrize("by", ROLLUPS)
def test_ops_are_added_up_by_what_is_asked_for(decoded: Path, by: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["analyze", str(decoded), "--by", by, "--top", "3"]) == 0
    header = next(line for line in capsys.readouterr().out.splitlines() if "on path" in line)
    assert header.split()[0] == by


def test_the_path_is_printed_step_by_step(decoded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["analyze", str(decoded), "--path"]) == 0
    out = capsys.readouterr().out
    assert "Critical path (" in out
    assert "data of /encoder/layer.0" in out


def test_every_law_holds_for_a_decoded_run(decoded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(decoded)]) == 0
    out = capsys.readouterr().out
    assert "VIOLATED" not in out
    assert "ok        spans written = spans a viewer reads:" in out
    assert "—         energy of ops = energy of the run: the run tells no energy" in out
    checks = opscope.check(decoded)
    trace = read_run(decoded).trace
    spans = len(trace.spans) - int(is_instant(trace).sum())
    assert spans < len(trace.spans)
    assert checks[-1].detail.startswith(f"{spans:,} and {spans:,} (all)")


def test_a_run_whose_totals_were_changed_fails_the_check(
    decoded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for file in decoded.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    summary = json.loads((tmp_path / "summary.json").read_bytes())
    summary["ops"][0]["macs"] += 1
    (tmp_path / "summary.json").write_text(json.dumps(summary))
    assert main(["check", str(tmp_path)]) == 1
    assert "VIOLATED  MACs of ops = MACs of commands" in capsys.readouterr().out
    assert main(["check", str(tmp_path), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["holds"] is False


def test_gains_that_were_simulated_are_kept(decoded: Path) -> None:
    _, findings = api.analyze(decoded)
    stored = read_json(decoded)
    first = stored["findings"][0]  # type: ignore[index]
    first["predicted"] = {"gain_ns": 5, "latency_ns": 6, "basis": "what-if", "text": "tried"}
    (decoded / "findings.json").write_text(json.dumps(stored))
    again = opscope.analyze(decoded)[1].findings[0]
    assert again.title == findings.findings[0].title
    assert again.predicted is not None
    assert (again.predicted.basis, again.predicted.gain_ns) == ("what-if", 5)


def test_a_gpu_trace_that_waits_for_launches_is_host_bound(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = imported(launch_bound(tmp_path / "trace.json.gz"), tmp_path)
    assert main(["analyze", str(run)]) == 0
    out = capsys.readouterr().out
    assert "Verdict: host bound" in out
    assert "the host is what 99.9% of the time depends on" in out
    assert "note: no limits of the machine: no roofline" in out


@pytest.mark.parametrize("make", [launch_bound, device_bound])
def test_idle_time_of_a_gpu_is_what_the_importer_counted(make: Callable[[Path], Path], tmp_path: Path) -> None:
    """The importer sums gaps between kernels itself; the analysis finds them through dependencies."""
    run = imported(make(tmp_path / "trace.json.gz"), tmp_path)
    told = {metric["name"]: metric["value"] for metric in json.loads((run / "recording.json").read_bytes())["metrics"]}
    _, found = api.analyze(run)
    kernels = next(use for use in found.engines if use.engine.startswith("stream"))
    assert kernels.busy_ns == pytest.approx(told["device busy"], abs=len(found.engines))
    trace = read_run(run).trace
    on_device = np.array([lane.device != NONE for lane in trace.lanes])[trace.spans["lane"]]
    first = int(trace.spans["start_ns"][on_device].min())
    waited = sum(row.wait_ns for row in found.waits if row.engine == kernels.engine)
    assert waited == pytest.approx(told["device idle"] + first - int(found.path[0].start_ns), rel=1e-3)


def test_a_file_of_totals_has_a_verdict_and_says_what_it_lacks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = imported(SAMPLES / "tensorrt_profile.json", tmp_path)
    assert main(["analyze", str(run)]) == 0
    out = capsys.readouterr().out
    assert "Verdict: compute bound, 85.0% of 100 us" in out
    assert "Recorded: no timeline; whether records were lost is not known" in out
    assert "no critical path" in out
    assert main(["check", str(run)]) == 0


def test_a_timeline_without_commands_is_drawn_with_its_own_names(tmp_path: Path) -> None:
    events = [
        {"ph": "X", "name": name, "ts": 10 * n, "dur": 5, "pid": 1, "tid": 1}
        for n, name in enumerate(("first_kernel", "second_kernel"))
    ]
    (tmp_path / "trace.json").write_text(json.dumps({"traceEvents": events}))
    run = imported(tmp_path / "trace.json", tmp_path)
    viewed = opscope.check(run)[-1]
    assert (viewed.holds, viewed.detail) == (True, "2 and 2 (all), 10,000 and 10,000 ns")
    for view in (ChromeTrace, PerfettoTrace):
        out = BytesIO()
        view(read_run(run), flows=True).render(read_run(run).trace, out)
        assert b"first_kernel" in out.getvalue()
        assert b"second_kernel" in out.getvalue()


def test_checks_of_the_importer_are_carried(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = imported(written(tmp_path, SUMMARY), tmp_path)
    assert main(["check", str(run)]) == 0
    assert "qaic-summary: effective frequency = pcycles ÷ ucycles × timer: 2 of 2 cores" in capsys.readouterr().out


def test_a_model_is_profiled_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make(Recipe("kws-cnn"), tmp_path / "kws.onnx")
    assert main(["analyze", str(tmp_path / "kws.onnx"), "--target", "aic100-std", "--top", "2"]) == 0
    out = capsys.readouterr().out
    assert "kws on aic100-std" in out
    assert "Verdict: " in out
    assert [path.name for path in tmp_path.iterdir()] == ["kws.onnx"]


def test_several_runs_are_analysed_one_after_the_other(
    decoded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = imported(SAMPLES / "tensorrt_profile.json", tmp_path)
    assert main(["analyze", str(decoded), str(run)]) == 0
    assert capsys.readouterr().out.count("Verdict: ") == 2
    assert main(["analyze", str(decoded), str(run), "--json"]) == 0
    assert [found["provenance"] for found in json.loads(capsys.readouterr().out)] == ["simulated", "measured"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["analyze", "missing"],
            "missing: is not there; expected a run, a profile file, or a model file with --target",
        ),
        (
            ["analyze", "empty"],
            "empty/run.json: cannot be read (No such file or directory); expected the folder of a run",
        ),
        (["check", "empty"], "empty/run.json: cannot be read"),
        (["analyze", "empty", "--target", "aic100-std"], "--target: a run has its own"),
    ],
)
def test_what_is_no_run_is_named(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    assert main(arguments) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("table", ["spans", "commands", "edges", "ops", "counters"])
@pytest.mark.parametrize("damage", ["cut", "other"])
def test_a_damaged_table_gets_one_line(
    decoded: Path, tmp_path: Path, table: str, damage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for file in decoded.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    raw = (decoded / f"{table}.parquet").read_bytes()
    other = "ops" if table != "ops" else "edges"
    (tmp_path / f"{table}.parquet").write_bytes(
        raw[: len(raw) // 2] if damage == "cut" else (decoded / f"{other}.parquet").read_bytes()
    )
    assert main(["analyze", str(tmp_path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_spans_of_an_op_that_is_not_there_are_refused(
    decoded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import pyarrow.parquet as pq

    for file in decoded.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    ops = pq.read_table(decoded / "ops.parquet")
    pq.write_table(ops.slice(0, 3), tmp_path / "ops.parquet")
    assert main(["analyze", str(tmp_path)]) == 2
    assert "commands.parquet: op 66; expected -1 to 2" in capsys.readouterr().err


@pytest.mark.parametrize(
    "place",
    [
        ("spans", "command", 2**60),
        ("edges", "target", 2**40),
        ("spans", "end_ns", 2**62),
        ("spans", "device", 2**30),
        ("commands", "macs", 2**60),
    ],
)
def test_numbers_that_no_run_has_are_refused_before_they_cost_memory(
    decoded: Path, tmp_path: Path, place: tuple[str, str, int], capsys: pytest.CaptureFixture[str]
) -> None:
    table, column, value = place
    import pyarrow as pa
    import pyarrow.parquet as pq

    for file in decoded.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    rows = pq.read_table(decoded / f"{table}.parquet")
    changed = pa.array([value, *rows[column].to_pylist()[1:]], rows[column].type)
    rows = rows.set_column(rows.schema.get_field_index(column), column, changed)
    pq.write_table(rows, tmp_path / f"{table}.parquet")
    assert main(["analyze", str(tmp_path)]) == 2
    assert f"{table}.parquet: {column} {value}" in capsys.readouterr().err


def test_colour_is_for_terminals_only(decoded: Path) -> None:
    run, findings = api.analyze(decoded)
    plain, coloured, checks = StringIO(), StringIO(), StringIO()
    FindingsText().render(run, findings, plain)
    FindingsText(colour=True).render(run, findings, coloured)
    ChecksText(colour=True).render(findings.checks, checks)
    assert "\x1b[" not in plain.getvalue()
    assert "\x1b[1mVerdict" in coloured.getvalue()
    assert "\x1b[32mok" in checks.getvalue()


@pytest.mark.parametrize("name", ["vela_per-layer.csv", "tflite_log.txt", "torq_runtime.csv", "iree_perf.jsonl"])
def test_a_profile_file_is_analysed_as_the_run_that_it_would_make(name: str, tmp_path: Path) -> None:
    run = imported(SAMPLES / name, tmp_path)
    assert api.analyze(SAMPLES / name)[1] == api.analyze(run)[1]


def test_what_is_neither_run_nor_profile_nor_model_with_a_target_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "m.onnx").write_bytes(b"\x08\x07")
    assert main(["analyze", str(tmp_path / "m.onnx")]) == 2
    assert "is no run and no profile file; a model is profiled first, expected --target" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--path",), "--path: a what-if prints a difference"),
        (("--by", "location"), "--by location: a what-if has no difference by it; expected one of op, type"),
        (("--what-if", "cores=4", "--what-if", "cores=8"), "--what-if cores: is set to 4 and to 8"),
    ],
)
def test_what_a_what_if_would_pass_over_is_refused(
    decoded: Path, tmp_path: Path, options: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Path(copytree(decoded, tmp_path / "run"))
    (run / "programqpc.bin").write_bytes((decoded.parent / "programqpc.bin").read_bytes())
    assert main(["analyze", str(run), "--what-if", "bandwidth*2", *options]) == 2
    assert words in capsys.readouterr().err
