"""`opscope profile` in one step: what it prints, what it leaves, and what it does not do twice."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from opscope import api
from opscope.cli import main
from opscope.device.variation import without_spread
from opscope.machine import catalogue as targets
from opscope.program.program_file import decode_program, encode_program
from opscope.recording.folder_reader import read_run
from opscope.recording.trace import SpanKind
from opscope.simulation import simulate
from opscope.zoo import Recipe, make

FILES = {
    "bounds.json",
    "commands.parquet",
    "counters.parquet",
    "edges.parquet",
    "lanes.parquet",
    "routes.parquet",
    "operands.parquet",
    "findings.json",
    "graph.parquet",
    "ops.parquet",
    "programqpc.bin",
    "recording.json",
    "report.html",
    "run.json",
    "spans.parquet",
    "summary.json",
    "trace.json",
}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("profile") / "kws.onnx"
    make(Recipe("kws-cnn"), path)
    return path


@pytest.fixture(scope="module")
def run(model: Path) -> Path:
    folder = model.parent / "run"
    assert main(["profile", str(model), "--target", "aic100-std", "--cores", "2", "-o", str(folder)]) == 0
    return folder


def profile(model: Path, folder: Path, *more: str) -> int:
    return main(["profile", str(model), "--target", "aic100-std", "--cores", "2", "-o", str(folder), *more])


def test_one_step_leaves_everything(run: Path) -> None:
    assert {path.name for path in run.iterdir()} == FILES
    assert "<title>kws on aic100-std" in (run / "report.html").read_text(encoding="utf-8")


def test_the_screen_has_verdict_ops_findings_and_the_path(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert profile(model, tmp_path / "r") == 0
    out, err = capsys.readouterr()
    assert out.startswith("kws on aic100-std, 2 cores (simulated)\n")
    for words in (
        "latency",
        "bound: ",
        "COSTLIEST OPS",
        "WHAT TO CHANGE",
        "inferences/s",
        "report.html",
        "opscope view",
    ):
        assert words in out
    assert "\033" not in out
    assert f"wrote {tmp_path / 'r'}" in err


def test_the_parts_of_the_time_add_up_on_the_screen(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert profile(model, tmp_path / "r", "--json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert sum(part["share"] for part in shown["findings"]["verdict"]["breakdown"]) == pytest.approx(1)
    assert shown["summary"] == json.loads((tmp_path / "r" / "summary.json").read_text())
    kept = json.loads((tmp_path / "r" / "findings.json").read_text())
    assert kept.pop("key")  # of the tables that it was made of
    assert shown["findings"] == kept


def test_barriers_of_threads_are_in_the_timeline_and_in_no_total(run: Path) -> None:
    found = read_run(run)
    spans, lanes = found.trace.spans, found.trace.lanes
    barriers = spans[spans["kind"] == SpanKind.BARRIER]
    assert {lanes[number].name for number in barriers["lane"].tolist()} == {"HVX Barrier"}  # no other has threads
    assert not any("Barrier" in lane.name for lane in found.summary.lanes)


def test_it_is_the_same_inference_that_compile_run_and_opstats_show(run: Path, model: Path, tmp_path: Path) -> None:
    build, stats = tmp_path / "build", tmp_path / "stats"
    stats.mkdir()
    api.compile_model(model, "aic100-std", build, cores=2, stats_level=70, ddr_stats=True)
    file = build / "programqpc.bin"  # of `run`, every inference draws its time; what `profile` shows is the steady one
    file.write_bytes(encode_program(without_spread(decode_program(file.read_bytes(), source="build"))))
    api.run(build, num_iter=10, set_size=1, profile=["raw_device_stats"], out_dir=stats)
    api.opstats(build / "programqpc.bin", stats, run=tmp_path / "long")
    assert api.what_if_run(tmp_path / "long", ["precision=i8"])[1].info.cores == 2  # it keeps the cores it had
    one, long = read_run(run).summary, read_run(tmp_path / "long").summary
    # The same ticks; start and end are rounded to nanoseconds, counted from different points in time.
    assert one.latency.value_ns == pytest.approx(long.latency.value_ns, abs=1)
    assert {(op.name, op.commands, op.out_bytes, op.macs) for op in one.ops} == {
        (op.name, op.commands, op.out_bytes, op.macs) for op in long.ops
    }
    times = {op.name: op.busy_ns or 0 for op in long.ops}
    for op in one.ops:  # the axes start elsewhere: ticks of the timer are rounded to other nanoseconds
        assert op.busy_ns == pytest.approx(times[op.name], abs=op.commands or 0)


def test_the_latency_lies_in_its_range(run: Path) -> None:
    latency = read_run(run).summary.latency
    assert latency.low_ns is not None
    assert latency.high_ns is not None
    assert latency.low_ns < latency.known_ns <= latency.high_ns


def test_the_stages_of_the_host_are_what_the_application_sees(run: Path) -> None:
    stages = {stage.name: stage.ns for stage in read_run(run).summary.host}
    assert {"preprocess", "submit", "driver", "device", "postprocess"} <= set(stages)
    assert stages["device"] > 0


def test_a_second_time_nothing_is_done_again(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "r"
    assert profile(model, folder) == 0
    first = (folder / "run.json").stat().st_mtime_ns
    printed = capsys.readouterr().out
    assert profile(model, folder) == 0
    again = capsys.readouterr()
    assert again.out == printed
    assert "nothing that the run depends on has changed: it was re-used" in again.err
    assert (folder / "run.json").stat().st_mtime_ns == first


def test_another_seed_needs_no_other_program(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "r"
    assert profile(model, folder) == 0
    assert profile(model, folder, "--seed", "7") == 0
    assert "nothing that the program depends on has changed: it was re-used" in capsys.readouterr().err
    assert profile(model, folder, "--seed", "7", "--batch", "2") == 0
    assert "re-used" not in capsys.readouterr().err
    assert profile(model, folder, "--seed", "7", "--batch", "2", "--fresh") == 0
    assert "re-used" not in capsys.readouterr().err


def test_the_graph_of_a_run_joins_ops_without_commands_too(model: Path, run: Path, tmp_path: Path) -> None:
    found = read_run(run)
    assert found.graph is not None
    pairs = {(found.ops[a].name, found.ops[b].name) for a, b in found.graph.tolist()}
    view = next(op.name for op in found.ops if op.kind == "reshape")
    assert view in {a for a, _ in pairs} & {b for _, b in pairs}
    assert profile(model, tmp_path / "r", "--seed", "2") == 0
    assert profile(model, tmp_path / "r", "--seed", "3") == 0  # the program of the run before
    assert read_run(tmp_path / "r").graph.tolist() == found.graph.tolist()  # type: ignore[union-attr]


def test_an_estimate_has_its_graph_and_what_lies_in_memory(tmp_path: Path, model: Path) -> None:
    recorded = api.profile(model, "max32690-cm4", run=tmp_path / "r")
    run = recorded.run
    assert run.graph is not None
    ops = run.commands.rows["op"].tolist()
    assert set(run.graph.tolist()) <= {(ops[a], ops[b]) for a, b, _ in run.trace.edges.tolist()}
    found = {(track.name, track.unit) for track in run.trace.counters}
    assert found == {("RAM: arena in use", "bytes"), ("RAM: arena reach", "bytes")}
    peak = next(memory.peak_bytes for memory in run.summary.memory if memory.name == "RAM")
    assert run.trace.samples["value"].max() == peak
    assert run.trace.samples["value"][-1] == 0
    again = read_run(tmp_path / "r")
    assert again.commands.rows["local_address"].tolist() == run.commands.rows["local_address"].tolist()
    assert again.trace.edges.tolist() == run.trace.edges.tolist()


def test_a_target_that_cannot_be_simulated_is_estimated(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "r"
    assert main(["profile", str(model), "--target", "max32690-cm4", "-o", str(folder)]) == 0
    assert capsys.readouterr().out.startswith("kws on max32690-cm4 (estimated)\n")
    assert read_run(folder).info.provenance == "estimated"


def test_the_run_goes_beside_when_no_place_is_given(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["profile", str(model), "--target", "max32690-cm4"]) == 0
    assert (tmp_path / "kws.run" / "report.html").is_file()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "profile: no target; expected --target NAME"),
        (("--target", "aic100-std", "--backend", "nobody"), "backend 'nobody': not known"),
        (
            ("--target", "aic100-std", "--backend", "ort"),
            "--backend ort: does not know aic100-std; expected of sim, estimate",
        ),
        (("--target", "max32690-cm4", "--seed", "3"), "--seed: not an option of backend estimate"),
        (("--target", "aic100-std", "--stats-level", "40"), "stats level 40: has no operators"),
    ],
)
def test_what_cannot_be_is_said_in_one_line(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], words: str
) -> None:
    assert main(["profile", str(model), "-o", str(tmp_path / "r"), *arguments]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1
    assert not (tmp_path / "r").exists()


def test_a_folder_that_is_no_run_is_left_alone(model: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    assert profile(model, tmp_path / "mine") == 2
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.txt"]


def test_twice_the_bandwidth_is_never_slower(run: Path) -> None:
    base, faster = api.what_if_run(run, ["bandwidth*2"])
    assert faster.summary.latency.known_ns <= base.summary.latency.known_ns
    assert base.summary.latency.known_ns == read_run(run).summary.latency.known_ns


def test_changes_that_were_tried_are_what_if_says_of_them(run: Path) -> None:
    trials = json.loads((run / "findings.json").read_text())["trials"]
    assert [trial["change"] for trial in trials if trial["change"].startswith("cores=")] != []
    assert [trial["latency_ns"] for trial in trials] == sorted(trial["latency_ns"] for trial in trials)
    for trial in trials:
        base, new = (each.summary.latency.known_ns for each in api.what_if_run(run, [trial["change"]]))
        assert trial["speedup"] == pytest.approx(base / new, rel=0.02)  # inferences vary a little
        assert trial["latency_ns"] == pytest.approx(base / trial["speedup"], abs=1)


def test_an_analysis_keeps_the_changes_that_were_tried(run: Path) -> None:
    before = json.loads((run / "findings.json").read_text())
    assert api.analyze(run)[1].trials
    assert json.loads((run / "findings.json").read_text()) == before


def test_a_change_of_cores_compiles_again(run: Path) -> None:
    _, one = api.what_if_run(run, ["cores=1"])
    assert one.info.cores == 1
    assert {lane.core for lane in one.summary.lanes} == {0}


def test_analyze_prints_what_a_change_would_do(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = (run / "findings.json").read_bytes()
    assert main(["analyze", str(run), "--what-if", "bandwidth*2", "--what-if", "clock*2"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("base  as it was: kws on aic100-std, 2 cores")
    assert "new   bandwidth*2, clock*2: " in out
    assert main(["analyze", str(run), "--json", "--what-if", "op:/conv/Conv=0"]) == 0
    metrics = {metric["name"]: metric for metric in json.loads(capsys.readouterr().out)["metrics"]}
    assert metrics["latency"]["new"] < metrics["latency"]["base"]
    assert (run / "findings.json").read_bytes() == before


def test_a_run_without_a_program_cannot_be_timed_again(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "r"
    assert main(["profile", str(model), "--target", "max32690-cm4", "-o", str(folder)]) == 0
    capsys.readouterr()
    assert main(["analyze", str(folder), "--what-if", "clock*2"]) == 2
    assert "has no program, so it cannot be timed again; expected a run of `--backend sim`" in capsys.readouterr().err


def test_a_slower_run_than_the_baseline_allows_is_told_by_the_exit_code(run: Path, model: Path, tmp_path: Path) -> None:
    slower = tmp_path / "slower.toml"
    slower.write_text(targets.catalogue()["aic100-std"].read_text().replace("value = 1233.12e6", "value = 1030e6"))
    arguments = ["profile", str(model), "--cores", "2", "-o", str(tmp_path / "r"), "--baseline", str(run)]
    assert main([*arguments, "--target", "aic100-std", "--max-regression", "0%"]) == 0
    assert main([*arguments, "--target", str(slower), "--max-regression", "5%"]) == 1


@pytest.mark.parametrize(("activations", "at_once"), [(3, 3), (9, 7)])  # 14 cores, two for each
def test_throughput_of_several_activations_is_that_of_the_card(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], activations: int, at_once: int
) -> None:
    assert profile(model, tmp_path / "r", "--activations", str(activations)) == 0
    summary = read_run(tmp_path / "r").summary
    assert summary.latency.value_ns is not None
    assert summary.throughput_per_s == pytest.approx(at_once * (summary.batch or 0) * 1e9 / summary.latency.value_ns)
    assert f", {at_once} activations at once with " in capsys.readouterr().out
    assert read_run(tmp_path / "r").trace.spans["start_ns"].min() == 0  # however late in the run it was


def test_range_of_several_activations_is_of_the_memory_they_share(tmp_path: Path) -> None:
    """Seven activations that read all of their weights anew: both ends of the range are of a shared memory, too."""
    model = tmp_path / "fc.onnx"
    assert main(["zoo", "fc", "--features", "4096", "--units", "8192", "-o", str(model)]) == 0
    lows, highs = [], []
    for activations in ("1", "7"):
        assert profile(model, tmp_path / activations, "--activations", activations) == 0
        latency = read_run(tmp_path / activations).summary.latency
        assert None not in (latency.low_ns, latency.value_ns, latency.high_ns)
        assert (latency.low_ns or 0) < (latency.value_ns or 0) < (latency.high_ns or 0)
        lows.append(latency.low_ns or 0)
        highs.append(latency.high_ns or 0)
    assert lows[0] < lows[1]
    assert highs[0] < highs[1]


@pytest.mark.parametrize(("name", "cores", "at_once"), [("my-card", 14, 2), ("aic100-std", 2, 1)])
def test_activations_at_once_follow_the_cores_of_the_device_and_not_its_name(
    model: Path, tmp_path: Path, name: str, cores: int, at_once: int
) -> None:
    card = targets.catalogue()["aic100-std"].read_text()
    card = card.replace('name = "aic100-std"', f'name = "{name}"')
    card = card.replace("cores = { value = 14,", f"cores = {{ value = {cores},")
    (tmp_path / "card.toml").write_text(card)
    words = ["--target", str(tmp_path / "card.toml"), "--cores", "2", "--activations", "2", "-o", str(tmp_path / "r")]
    assert main(["profile", str(model), *words]) == 0
    run = read_run(tmp_path / "r")
    assert run.info.target == name
    assert run.summary.latency.value_ns is not None
    latency, batch = run.summary.latency.value_ns, run.summary.batch or 0
    assert run.summary.throughput_per_s == pytest.approx(at_once * batch * 1e9 / latency)


def loaded_by(*words: str | Path) -> set[str]:
    """Parts of opscope that a command loads."""
    code = "import sys; from opscope.cli import main\nmain(sys.argv[1:])\n"
    code += "print(*{name.split('.')[1] for name in sys.modules if name.startswith('opscope.')}, file=sys.stderr)"
    command = [sys.executable, "-c", code, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return set(done.stderr.splitlines()[-1].split())


def test_only_a_simulated_profile_loads_compiler_and_device(model: Path, tmp_path: Path) -> None:
    simulator = {"compiler", "device", "simulation", "decode"}
    words = ["profile", model, "--target", "aic100-std", "-o", tmp_path / "r"]
    assert simulator <= loaded_by(*words)
    assert not simulator & loaded_by(*words, "--backend", "estimate", "--fresh")


def test_two_runs_are_compared_without_readers_of_models(run: Path) -> None:
    assert "readers" not in loaded_by("compare", run, run)


def test_one_profiled_inference_takes_the_steady_time_and_throughput_is_of_it(run: Path, model: Path) -> None:
    summary = read_run(run).summary
    program = api.compile_model(model, "aic100-std", cores=2, stats_level=70, ddr_stats=True).program
    assert program.simulation["inference_spread"] > 0
    steady_ns = simulate(program).total_cycles / program.clock_hz * 1e9
    assert summary.latency.value_ns == pytest.approx(steady_ns, abs=1e9 / program.stats_hz)  # a whole number of ticks
    assert summary.latency.value_ns is not None
    assert summary.throughput_per_s == pytest.approx((summary.batch or 0) * 1e9 / summary.latency.value_ns)
