"""`opscope opstats` in a temporary folder: exit codes, words on stderr, files written."""

from __future__ import annotations

import json
import re
import shutil
from io import StringIO
from pathlib import Path

import pytest

from opscope import api, cli
from opscope.plugins.qaic.summary_text import read_opstats_text
from opscope.program.program_file import decode_program
from opscope.recording.folder_reader import read_run
from opscope.recording.run import routes_of
from opscope.zoo import Recipe
from support.decode.opstats_folder import START_TICK, bert, compiled, keyword_spotter, run
from support.decode.opstats_identities import check_identities

STEM = "aic-profiling-program-0-activation-0-inf-{}-QAicGraph"
SUMMARY, TRACE = STEM + ".qaic-opstats.summary.txt", STEM + ".qaic-opstats.trace.json"
BUFFER = STEM + "-aiccyclecounts.bin"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return keyword_spotter(tmp_path_factory.mktemp("kws"))


@pytest.fixture
def kws(made: Path, tmp_path: Path) -> Path:
    """A copy that a test may damage."""
    shutil.copytree(made, tmp_path / "kws")
    return tmp_path / "kws"


def opstats(folder: Path, *arguments: str, verb: str = "opstats") -> int:
    return cli.main([verb, "-q", str(folder / "programqpc.bin"), "-i", str(folder / "stats"), *arguments])


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("verb", ["opstats", "qaic-opstats"])
def test_summary_and_trace_of_every_sample_under_the_documented_names(
    kws: Path, tmp_path: Path, verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert opstats(kws, "-o", str(out), "--summary", "--trace", verb=verb) == 0
    assert names(out) == sorted(name.format(i) for name in (SUMMARY, TRACE) for i in (0, 1))
    said = capsys.readouterr()
    assert said.out == ""
    assert f"wrote {out / SUMMARY.format(0)}" in said.err
    text = (out / SUMMARY.format(0)).read_text(encoding="utf-8")
    summary = read_opstats_text(StringIO(text), source="ours")
    check_identities(summary, text)
    assert (summary.network, summary.batch_size, summary.cores) == ("QAicGraph", 4, (0, 1))
    assert summary.window[0] == START_TICK
    assert json.loads((out / TRACE.format(1)).read_bytes())["traceEvents"]


def test_files_about_a_target_of_another_vendor_have_no_word_of_this_one(tmp_path: Path) -> None:
    run(tmp_path, compiled(tmp_path, Recipe("kws-cnn"), cores=1, target="torq-sl2610"), inferences=1)
    assert opstats(tmp_path, "-o", str(tmp_path / "out"), "--summary", "--trace") == 0
    stem = STEM.format(0)
    assert names(tmp_path / "out") == [f"{stem}.opstats.summary.txt", f"{stem}.opstats.trace.json"]
    summary, trace = ((tmp_path / "out" / name).read_text(encoding="utf-8") for name in names(tmp_path / "out"))
    assert "no XRAM traffic counters; compile with --ddr-stats" in summary
    spans = [event for event in json.loads(trace)["traceEvents"] if event["ph"] == "X"]
    assert {event["cat"] for event in spans} == {"op"}
    for word in (" DDR", "DMAIssue", " TCM"):
        assert word not in summary + trace


def test_the_flush_of_the_statistics_is_in_the_table_and_nowhere_behind_it(kws: Path, tmp_path: Path) -> None:
    opstats(kws, "-o", str(tmp_path), "--summary")
    table, _, behind = (tmp_path / SUMMARY.format(0)).read_text(encoding="utf-8").partition("Beyond the op table")
    assert "aicendcyclestats DMAIssue DDR (i8)" in table
    assert "aicendcyclestats" not in behind


def test_every_section_that_users_miss_is_there(kws: Path, tmp_path: Path) -> None:
    opstats(kws, "-o", str(tmp_path), "--summary")
    text = (tmp_path / SUMMARY.format(0)).read_text(encoding="utf-8")
    titles = (
        "Wall time",
        "Engines:",
        "By graph op",
        "By layer",
        "By block",
        "Transfers:",
        "Waiting, by whom",
        "Memory:",
        "Waited for longest",
        "Balance of cores",
        "Where operands live",
        "Operations by duration",
    )
    for words in titles:
        assert re.search(rf"^{words}", text, re.M), words
    assert "/blocks.*/pointwise/Conv" in text


def test_without_an_output_flag_nothing_is_done(kws: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert opstats(kws) == 2
    assert capsys.readouterr().err == "opscope: opstats: nothing to write; expected --summary, --trace or --run RUN\n"


def test_a_folder_without_buffers_is_wrong_usage(kws: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").mkdir()
    code = cli.main(["opstats", "-q", str(kws / "programqpc.bin"), "-i", str(tmp_path / "empty"), "--summary"])
    assert code == 2
    assert "holds no stats buffers; expected files such as aic-profiling-program-<P>-" in capsys.readouterr().err


def test_a_damaged_sample_is_one_line_and_the_others_are_decoded(
    kws: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = kws / "stats" / BUFFER.format(0)
    bad.write_bytes(bad.read_bytes()[:-100])
    assert opstats(kws, "-o", str(tmp_path / "out"), "--summary") == 1
    assert names(tmp_path / "out") == [SUMMARY.format(1)]
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("opscope: ")]
    assert len(lines) == 1
    assert re.search(rf"^opscope: .*{BUFFER.format(0)}: byte 0x[0-9a-f]+: cut short; the header says", lines[0])


def test_a_buffer_of_another_program_is_refused(kws: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = keyword_spotter(tmp_path / "other", cores=1)
    code = cli.main(["opstats", "-q", str(other / "programqpc.bin"), "-i", str(kws / "stats"), "--summary"])
    assert code == 2
    assert "byte 0x10: program_id is 0x" in capsys.readouterr().err


def test_a_name_that_lies_is_not_believed(kws: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (kws / "stats" / BUFFER.format(1)).rename(kws / "stats" / BUFFER.format(9))
    (kws / "stats" / BUFFER.format(0)).rename(kws / "stats" / BUFFER.format(0).replace("QAicGraph", "Else"))
    assert opstats(kws, "-o", str(tmp_path / "out"), "--summary") == 2
    said = capsys.readouterr().err
    assert "the name says inference 9, the buffer 1; expected the same" in said
    assert "network 'Else' is not in" in said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--trace", "--select-cores", "0,2"], "--select-cores 2: the program has 2; expected 0 to 1"),
        (["--trace", "-d", "1"], "--select-devices 1: the program has 1; expected 0 to 0"),
        (["--trace", "--host-trace", "/nowhere.json"], "/nowhere.json: cannot be read (No such file or directory)"),
    ],
)
def test_what_cannot_be_is_said(
    kws: Path, tmp_path: Path, arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert opstats(kws, "-o", str(tmp_path), *arguments) == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["-c", "x"], ["--merge-mq-traces", "maybe"], ["--flow-events", "some"]])
def test_arguments_that_are_not_understood_are_wrong_usage(kws: Path, arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        opstats(kws, "--trace", *arguments)
    assert stopped.value.code == 2


def test_a_damaged_program_is_named_by_its_byte(kws: Path, capsys: pytest.CaptureFixture[str]) -> None:
    raw = (kws / "programqpc.bin").read_bytes()
    (kws / "programqpc.bin").write_bytes(raw[:-1])
    assert opstats(kws, "--summary") == 2
    assert "byte 0x18: the checksum does not match; the file is damaged or cut short" in capsys.readouterr().err


def test_a_low_level_says_what_it_lacks_and_how_to_get_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = keyword_spotter(tmp_path / "low", level=40)
    assert opstats(folder, "-o", str(tmp_path / "out"), "--summary", "--trace", "-v") == 0
    said = capsys.readouterr().err
    assert said.count("note: stats level 40 has no operator cycle counts") == 1  # once, not once per sample
    assert "compile with --stats-level 70" in said
    assert "note: no DDR traffic counters; compile with --ddr-stats" in said
    assert "c00t0 activate ucycles:" in (tmp_path / "out" / SUMMARY.format(0)).read_text(encoding="utf-8")


def test_a_run_of_a_low_level_has_the_inference_and_says_that_nothing_explains_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = keyword_spotter(tmp_path / "build", level=40)
    assert opstats(folder, "--run", str(tmp_path / "kws.run")) == 0
    assert "nothing that was recorded explains 100.0% of the time" in capsys.readouterr().out


def test_several_devices_have_a_summary_each_and_one_merged_trace(tmp_path: Path) -> None:
    folder = bert(tmp_path / "two", devices=2, cores=2)
    assert opstats(folder, "-o", str(tmp_path / "a"), "--summary", "--trace") == 0
    stem = STEM.format(0)
    assert names(tmp_path / "a") == [
        f"{stem}-merged.qaic-opstats.trace.json",
        f"{stem}_slice00.qaic-opstats.summary.txt",
        f"{stem}_slice01.qaic-opstats.summary.txt",
    ]
    assert opstats(folder, "-o", str(tmp_path / "b"), "--trace", "--merge-mq-traces", "false") == 0
    assert names(tmp_path / "b") == [f"{stem}_slice0{i}.qaic-opstats.trace.json" for i in (0, 1)]
    words = ("--trace", "--merge-mq-traces", "false", "--select-devices", "1")
    assert opstats(folder, "-o", str(tmp_path / "c"), *words) == 0
    assert names(tmp_path / "c") == [f"{stem}_slice01.qaic-opstats.trace.json"]
    text = (tmp_path / "a" / f"{stem}_slice01.qaic-opstats.summary.txt").read_text(encoding="utf-8")
    assert "[QAicGraph_slice01] Device instance batch/s" in text


def test_a_missing_slice_is_one_line_and_the_other_is_decoded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = bert(tmp_path / "two", devices=2, cores=2)
    next((folder / "stats").glob("*_slice01-*")).unlink()
    assert opstats(folder, "-o", str(tmp_path / "out"), "--summary", "--trace") == 1
    assert len(names(tmp_path / "out")) == 2
    assert "slice01 missing; expected one buffer for each of 2 devices" in capsys.readouterr().err


def test_many_samples_are_decoded_in_several_processes_to_the_same_bytes(
    kws: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from opscope.workflows import decoding as wiring

    monkeypatch.setattr(wiring, "_WORTH_A_PROCESS", 0)
    seen: list[tuple[int, int]] = []
    for workers, name in ((1, "a"), (2, "b")):
        api.opstats(
            kws / "programqpc.bin",
            kws / "stats",
            tmp_path / name,
            summary=True,
            trace=True,
            workers=workers,
            progress=lambda done, total: seen.append((done, total)),
        )
    assert seen == [(1, 2), (2, 2)] * 2
    assert names(tmp_path / "a") == names(tmp_path / "b")
    for name in names(tmp_path / "a"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_host_events_stand_above_the_device_on_the_same_clock(kws: Path, tmp_path: Path) -> None:
    begin = START_TICK / 19.2  # µs
    events = [
        {"ph": "M", "name": "thread_name", "pid": 7, "tid": 0, "args": {"name": "Runtime"}},
        {"ph": "X", "name": "submit", "pid": 7, "tid": 0, "ts": begin - 40, "dur": 3.5},
        {"ph": "X", "name": "long before", "pid": 7, "tid": 0, "ts": begin - 1e6, "dur": 1},
    ]
    host = tmp_path / "host.json"
    host.write_text(json.dumps({"traceEvents": events}), encoding="utf-8")
    assert opstats(kws, "-o", str(tmp_path), "--trace", "--host-trace", str(host)) == 0
    found = json.loads((tmp_path / TRACE.format(0)).read_bytes())["traceEvents"]
    spans = {e["name"]: e for e in found if e["ph"] == "X"}
    assert spans["Device-0-Execution"]["ts"] - spans["submit"]["ts"] == pytest.approx(40, abs=0.06)
    assert spans["submit"]["dur"] == 3.5
    assert "long before" not in spans
    processes = {e["args"]["name"]: e["args"] for e in found if e["name"] == "process_name"}
    order = {e["pid"]: e["args"]["sort_index"] for e in found if e["name"] == "process_sort_index"}
    assert "Host" in processes
    assert order[18] == min(order.values())
    assert min(e["ts"] for e in found if e["ph"] in "XC") >= 0


def test_a_host_trace_of_another_program_is_left_out_with_a_word(
    kws: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    host = tmp_path / "aic-profiling-program-3-trace.json"
    host.write_text('{"traceEvents": [{"ph": "X", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 1}]}')
    assert opstats(kws, "-o", str(tmp_path), "--trace", "--host-trace", str(host)) == 0
    told = f"{host}: of program 3; expected the host trace of program 0; it is left out"
    assert told in capsys.readouterr().err


def test_a_host_trace_of_another_clock_is_left_out_with_a_word(
    kws: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    host = tmp_path / "host.json"
    host.write_text('[{"ph":"X","name":"x","pid":1,"tid":1,"ts":5,"dur":1}]', encoding="utf-8")
    assert opstats(kws, "-o", str(tmp_path), "--trace", "--host-trace", str(host)) == 0
    assert "no event at the time of the samples; expected times in microseconds of the" in capsys.readouterr().err
    host.write_text('{"traceEvents": 3}', encoding="utf-8")
    assert opstats(kws, "-o", str(tmp_path), "--trace", "--host-trace", str(host)) == 2
    assert "is no Chrome trace" in capsys.readouterr().err


def test_the_run_folder_reads_back_whole(kws: Path, tmp_path: Path) -> None:
    run = tmp_path / "profile.run"
    for _ in range(2):  # a second time it takes the place of the first
        assert opstats(kws, "--run", str(run)) == 0
    assert names(run) == [
        "bounds.json",
        "commands.parquet",
        "counters.parquet",
        "edges.parquet",
        "findings.json",
        "lanes.parquet",
        "operands.parquet",
        "ops.parquet",
        "programqpc.bin",
        "recording.json",
        "report.html",
        "routes.parquet",
        "run.json",
        "spans.parquet",
        "summary.json",
        "trace.json",
    ]
    found = read_run(run)
    program = decode_program((kws / "programqpc.bin").read_bytes(), source="q")
    assert found.info.inferences == (0, 1)
    assert (found.info.target, found.info.provenance) == ("aic100-std", "simulated")
    assert found.ops == program.ops
    assert found.routes == routes_of(program)
    assert found.info.classified == ()
    texts = [
        [o.text(program.memory_name(o.memory)) for o in program.details[d].operands] for d in program.commands["detail"]
    ]
    rows = [found.commands.operands[detail] for detail in found.commands.rows["detail"]]
    assert [[o.text(found.commands.place(o)) for o in row] for row in rows] == texts
    for column in ("cycles", "out_bytes", "ordinal", "op", "route", "does"):
        assert found.commands.rows[column].tolist() == program.commands[column].tolist()
    kinds = [found.commands.kinds[k] for k in found.commands.rows["kind"]]
    assert kinds == [program.kinds[k] for k in program.commands["kind"]]
    details = [found.commands.operands[d] for d in found.commands.rows["detail"]]
    assert details == [program.details[d].operands for d in program.commands["detail"]]
    assert set(found.trace.spans["inference"].tolist()) == {0, 1}
    first = found.trace.spans[found.trace.spans["inference"] == 0]
    second = found.trace.spans[found.trace.spans["inference"] == 1]
    assert second["start_ns"].min() - first["start_ns"].min() == pytest.approx(1e6 / 19.2e6 * 1e9, abs=1)
    latency = found.summary.latency
    assert latency.low_ns is not None
    assert latency.high_ns is not None
    assert latency.low_ns <= latency.value_ns <= latency.high_ns
    stored = json.loads((run / "summary.json").read_bytes())
    assert stored["schema"] == "opscope.summary/2"
    assert {"device", "core", "name", "busy_ns", "wait_ns", "idle_ns", "utilization"} <= set(stored["lanes"][0])


def test_a_run_of_samples_of_several_activations_holds_the_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = compiled(tmp_path, Recipe("kws-cnn"), cores=4)
    assert program.device_cores == 14  # three run at once, on cores of their own: one set of lanes cannot hold them
    (tmp_path / "stats").mkdir()
    api.run(tmp_path, activations=4, num_samples=2, profile=("raw_device_stats",), out_dir=tmp_path / "stats")
    assert opstats(tmp_path, "--run", str(tmp_path / "a.run")) == 0
    said = capsys.readouterr()
    assert "the run holds activation 0 of 4: a run is of one; --summary and --trace show all" in said.err
    assert re.search(r"note: inference \d: of 2 that were recorded, the one of median latency", said.out)
    found = read_run(tmp_path / "a.run")
    assert len(found.info.inferences) == 2
    assert "unknown" not in {part.cause for part in found.summary.breakdown}
    assert cli.main(["check", str(tmp_path / "a.run")]) == 0


def test_a_run_never_takes_the_place_of_something_else(
    kws: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").write_text("mine", encoding="utf-8")
    assert opstats(kws, "--run", str(tmp_path / "precious")) == 2
    assert "exists and is not a run; expected a new folder or an earlier run" in capsys.readouterr().err
    assert names(tmp_path / "precious") == ["file"]
    assert not [name for name in names(tmp_path) if name.startswith(".precious")]


def test_nothing_half_written_is_left_behind(kws: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from opscope.views.timeline.chrome_trace import ChromeTrace

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(ChromeTrace, "render", fail)
    assert opstats(kws, "-o", str(tmp_path / "out"), "--trace", "--run", str(tmp_path / "r.run")) == 2
    assert names(tmp_path / "out") == []
    assert sorted(names(tmp_path)) == ["kws", "out"]


def test_a_run_is_shown_as_every_profile_is(kws: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = str(tmp_path / "r.run")
    assert opstats(kws, "--run", run, "--top", "3") == 0
    shown = capsys.readouterr()
    assert "  verdict   " in shown.out
    assert f"opscope view {run}" in shown.out
    assert shown.err.endswith(f"wrote {run}\n")
    assert opstats(kws, "--run", run, "--json") == 0
    assert json.loads(capsys.readouterr().out)["schema"] == "opscope.recorded/2"
    assert opstats(kws, "-o", str(tmp_path), "--summary", "--json") == 2
    assert "--json prints a run; expected --run RUN too" in capsys.readouterr().err


def test_the_function_is_still_one_after_its_first_call(kws: Path, tmp_path: Path) -> None:
    """A module of the same name in the package would take its place."""
    for _ in range(2):
        assert api.opstats(kws / "programqpc.bin", kws / "stats", tmp_path, summary=True).written


@pytest.mark.parametrize("depth", [1, 2])
def test_files_about_a_target_that_extends_one_of_a_vendor_are_called_as_the_vendor_calls_them(
    tmp_path: Path, depth: int
) -> None:
    base = "aic100-std"
    for number in range(depth):
        file = tmp_path / f"mine{number}.toml"
        file.write_text(f'schema = "opscope.target/1"\nname = "mine{number}"\ntitle = "Mine"\nextends = "{base}"\n')
        base = file.name
    program = compiled(tmp_path, Recipe("kws-cnn"), target=str(file))
    stats = run(tmp_path, program, inferences=1)
    outcome = api.opstats(tmp_path / "programqpc.bin", stats, tmp_path, summary=True, trace=True, run=tmp_path / "run")
    names = [path.name.partition(".")[2] for path in outcome.written]
    assert {"qaic-opstats.summary.txt", "qaic-opstats.trace.json"} <= set(names)
    trace = next(path for path in outcome.written if path.name.endswith(".trace.json"))
    assert {event["cat"] for event in json.loads(trace.read_text())["traceEvents"] if event["ph"] == "X"} == {"aic"}
    assert read_run(tmp_path / "run").info.words.memory("VTCM") == "TCM"
