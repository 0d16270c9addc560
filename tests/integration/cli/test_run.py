"""opscope run: files, numbers, outputs, errors; and Session."""

from __future__ import annotations

import itertools
import json
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

import opscope
from opscope import api
from opscope.cli import main
from opscope.core.errors import UsageError
from opscope.core.meaning import Does
from opscope.device.host.inputs import random_inputs
from opscope.program.wire import STATS_MAGIC
from opscope.workflows import execution
from opscope.zoo import Recipe, make
from support.plugins.qaic_published import figures

STEM = "aic-profiling-program-0-activation"
TRACE = "aic-profiling-program-0-trace.json"


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """kws.onnx, kws.tflite and a two-layer bert.onnx, compiled at several levels."""
    folder = tmp_path_factory.mktemp("models")
    make(Recipe("kws-cnn"), folder / "kws.onnx")
    make(Recipe("kws-cnn", format="tflite", precision="int8"), folder / "kws.tflite")
    make(Recipe("bert-base", batch=2, sequence=16, precision="f16", options={"layers": 2}), folder / "bert.onnx")
    for level in (0, 40, 70):
        api.compile_model(folder / "kws.onnx", "aic100-std", folder / f"kws{level}", cores=4, stats_level=level)
    api.compile_model(folder / "kws.tflite", "aic100-std", folder / "tflite", cores=1, stats_level=70)
    api.compile_model(
        folder / "bert.onnx",
        "aic100-std",
        folder / "bert",
        cores=2,
        stats_level=70,
        ddr_stats=True,
        pmu_recipe="KernelUtil",
    )
    api.compile_model(folder / "bert.onnx", "aic100-ultra", folder / "ultra", cores=2, devices=2, stats_level=70)
    return folder


def run(*words: object) -> int:
    return main([str(word) for word in words])


def latency_rows(path: Path) -> list[dict[str, str]]:
    header, *rows = path.read_text().splitlines()[4:]
    names = [cell.strip() for cell in header.split(",")]
    return [dict(zip(names, (cell.strip() for cell in row.split(",")), strict=True)) for row in rows]


def test_a_plain_run_prints_statistics_and_writes_nothing(
    models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("run", models / "kws70") == 0
    out, err = capsys.readouterr()
    assert out.startswith(" ---- Stats ----\nInferenceCnt 40 TotalDuration ")
    assert "\nExecTimeUs, " in out
    assert out.endswith("All figures are simulated on aic100-std.\n")
    assert "note: simulated 1 of 40 inferences in full; the others take the steady time" in err
    assert list(tmp_path.iterdir()) == []


def test_one_set_of_files_per_activation_and_inference(models: Path, tmp_path: Path) -> None:
    profiles = [word for kind in ("stats", "trace", "latency", "raw_device_stats") for word in ("--profile", kind)]
    words = ("--activations", 2, "--num-samples", 2, "--start-iter", 3, "--num-iter", 9, "--out-dir", tmp_path)
    assert run("run", models / "kws70", *words, *profiles) == 0
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != TRACE) == sorted(
        name
        for a in (0, 1)
        for name in (
            f"{STEM}-{a}-latency.txt",
            *(f"{STEM}-{a}-inf-{i}{end}" for i in (3, 4) for end in (".txt", "-QAicGraph-aiccyclecounts.bin")),
        )
    )
    assert (tmp_path / f"{STEM}-1-inf-4-QAicGraph-aiccyclecounts.bin").read_bytes().startswith(STATS_MAGIC)


def test_one_timeline_has_all_activations_each_on_its_own_cores(models: Path, tmp_path: Path) -> None:
    api.run(models / "kws70", profile=("trace",), activations=5, num_samples=2, num_iter=4, out_dir=tmp_path)
    events = json.loads((tmp_path / TRACE).read_bytes())["traceEvents"]
    names = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert {f"Activation {a} Application" for a in range(5)} <= set(names.values())
    cores = {e["args"]["name"] for e in events if e["name"] == "process_name"} - {"Host", "QAicGraph Device 0"}
    assert cores == {f"QAicGraph_Core_{core}" for core in range(12)}  # three at once, on four cores each
    rows = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    runs = {(rows[e["pid"]], e["name"]) for e in events if e["ph"] == "X" and e["name"].startswith("Core-")}
    assert runs == {(f"QAicGraph_Core_{core}", f"Core-{core}-Execution") for core in range(12)}
    spans: dict[int, list[tuple[float, float]]] = {}
    for event in events:
        if event["ph"] == "X":
            spans.setdefault(event["tid"], []).append((event["ts"], event["ts"] + event["dur"]))
    assert sum(len(own) for tid, own in spans.items() if "_HMX" in names[tid]) >= 10 * 4
    for own in spans.values():
        own.sort()
        assert all(end <= start + 0.001 for (_, end), (start, _) in itertools.pairwise(own))


def test_what_decoding_takes_of_the_run_is_told(models: Path, tmp_path: Path) -> None:
    def told(*profile: str, set_size: int) -> list[str]:
        outcome = api.run(models / "kws70", profile=profile, out_dir=tmp_path, num_iter=20, set_size=set_size)
        return [note for note in outcome.notes if "the decoder" in note]

    (note,) = told("stats", set_size=1)
    assert re.match(r"opening the decoder and decoding on the host hold the application up for [\d.]+ ms, which", note)
    (note,) = told("trace", set_size=10)  # the other nine are done long before it
    assert re.search(r"hold one of 10 requests in flight until the run is over: for [\d.]+ ms, which more", note)
    assert told("raw_device_stats", "latency", set_size=1) == []
    assert told("stats", set_size=20) == []  # nothing is asked for behind them


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(models: Path, tmp_path: Path) -> None:
    contents = []
    for name, seed in (("a", 7), ("b", 7), ("c", 8)):
        folder = tmp_path / name
        folder.mkdir()
        kinds = ("stats", "trace", "latency", "raw_device_stats")
        api.run(models / "kws70", profile=kinds, out_dir=folder, num_samples=2, seed=seed, save_outputs=True)
        contents.append({path.name: path.read_bytes() for path in folder.iterdir()})
    assert contents[0] == contents[1]
    assert all(contents[0][name] != contents[2][name] for name in contents[0])


def test_stats_and_traces_show_the_host_above_the_device(models: Path, tmp_path: Path) -> None:
    api.run(models / "kws70", profile=("stats", "trace"), out_dir=tmp_path)
    text = (tmp_path / f"{STEM}-0-inf-0.txt").read_text()
    assert text.startswith("Host stages of inference 0, activation 0 (simulated)\n")
    assert "ucycles(%)" in text
    assert "Device instance inf/s" in text
    events = json.loads((tmp_path / TRACE).read_bytes())["traceEvents"]
    processes = {event["args"]["name"] for event in events if event["name"] == "process_name"}
    assert {"Host", "QAicGraph_Core_0", "QAicGraph_Core_3"} <= processes
    named = {event["name"]: event for event in events if event["ph"] == "X"}
    device, core = named["device-Inf-0"], named["Core-0-Execution"]
    assert device["ts"] <= core["ts"] + 0.001
    assert core["ts"] + core["dur"] <= device["ts"] + device["dur"] + 0.06  # within a tick of the statistics timer


def test_captures_say_the_same_times_as_the_latency_file(models: Path, tmp_path: Path) -> None:
    outcome = api.run(models / "bert", profile=("latency", "raw_device_stats"), out_dir=tmp_path, num_samples=3)
    loaded = execution.load_program(models / "bert")
    from opscope.decode import decode_buffer
    from opscope.device.host.statistics import exec_ticks

    rows = latency_rows(tmp_path / f"{STEM}-0-latency.txt")
    assert len(rows) == outcome.sampling.count == 3
    for row in rows:
        raw = (tmp_path / f"{STEM}-0-inf-{row['Sample']}-QAicGraph-aiccyclecounts.bin").read_bytes()
        capture = decode_buffer(raw, source="raw").capture
        assert capture.program_id == loaded.identity
        assert float(row["devExecUs"]) == pytest.approx(exec_ticks(capture) * 1e6 / capture.stats_hz, abs=0.001)


def test_kernel_utilisation_and_ddr_traffic_are_printed_when_they_are_counted(
    models: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("run", models / "bert", "--num-iter", 4) == 0
    out = capsys.readouterr().out
    rows = {line.partition(",")[0]: line.split(",") for line in out.splitlines() if "," in line}
    for name in ("HMXActivePct", "HVXActivePct", "DMAActivePct"):
        assert 0 < float(rows[name][1]) < 100
    seconds = float(rows["DDRTrafficMB"][1]) / 1e3 / float(rows["DDRBandwidthGBPerSec"][1])
    assert seconds * 1e6 == pytest.approx(float(rows["ExecTimeUs"][1]), rel=0.1)


def test_a_program_on_several_devices_leaves_a_buffer_for_each(models: Path, tmp_path: Path) -> None:
    api.run(models / "ultra", profile=("raw_device_stats", "stats", "trace"), out_dir=tmp_path)
    names = sorted(path.name for path in tmp_path.glob("*.bin"))
    assert names == [f"{STEM}-0-inf-0-QAicGraph_slice0{device}-aiccyclecounts.bin" for device in (0, 1)]
    text = (tmp_path / f"{STEM}-0-inf-0.txt").read_text()
    assert "QAicGraph_slice00\n" in text
    assert "QAicGraph_slice01\n" in text


def test_system_profiling_needs_no_statistics_and_says_what_device_columns_need(
    models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    profiles = [word for kind in ("stats", "trace", "latency") for word in ("--profile", kind)]
    assert run("run", models / "kws0", *profiles, "--out-dir", tmp_path) == 0
    assert "no device times at stats level 0: compile with --stats-level 40 or more" in capsys.readouterr().err
    (row,) = latency_rows(tmp_path / f"{STEM}-0-latency.txt")
    assert [row[name] for name in ("devInfPerSec", "devExecUs", "devInWaitTimeUs", "devOutWaitTimeUs")] == ["N/A"] * 4
    assert float(row["totalRoundtripTimeUs"]) > 0
    assert "No device statistics: compile with --stats-level 40" in (tmp_path / f"{STEM}-0-inf-0.txt").read_text()


def test_activations_share_the_cores_and_the_memory_of_the_target(models: Path) -> None:
    one, seven, fourteen = (api.run(models / "bert", num_iter=100, activations=count) for count in (1, 7, 14))
    rates = [outcome.statistics.inferences_per_s for outcome in (one, seven, fourteen)]
    assert rates[0] < rates[1] < 7.1 * rates[0]  # 2 of 14 cores each: all at once
    assert rates[2] == pytest.approx(rates[1], rel=0.2)  # twice as many take turns
    program = seven.program
    read = sum(row.read for row in program.metrics.traffic) * rates[1] / seven.statistics.batch
    rate = program.routes[0].bytes_per_cycle * program.clock_hz
    assert 0.9 * rate <= read <= rate  # together they want more than there is


def test_seven_activations_come_close_to_the_published_run_on_hardware(tmp_path: Path) -> None:
    make(Recipe("bert-base", batch=8, sequence=128, precision="f16", weights=False), tmp_path / "bert.onnx")
    api.compile_model(tmp_path / "bert.onnx", "aic100-std", tmp_path, cores=2, stats_level=70)
    # One inference at a time: in the latencies of the Profiler tutorial of quic/cloud-ai-sdk, which
    # tests/published/cloud_ai_bert.toml has, nothing waits for the device.
    found = api.run(tmp_path, time=20.0, activations=7, set_size=1).statistics
    published = figures()["runs"]["plain"]
    assert found.inferences_per_s == pytest.approx(published["per_second"], rel=0.15)
    assert found.metrics[0].average == pytest.approx(published["metrics"]["ExecTimeUs"][0], rel=0.15)


def test_outputs_are_those_of_onnx_runtime_on_the_given_input(models: Path, tmp_path: Path) -> None:
    value = np.random.default_rng(0).normal(size=(1, 1, 49, 10)).astype(np.float32)
    np.save(tmp_path / "x.npy", value)
    words = ("--input", f"input={tmp_path / 'x.npy'}", "--save-outputs", "--out-dir", tmp_path)
    assert run("run", models / "kws70", *words) == 0
    session = onnxruntime.InferenceSession(str(models / "kws.onnx"), providers=["CPUExecutionProvider"])
    (expected,) = session.run(None, {"input": value})
    np.testing.assert_allclose(np.load(tmp_path / "output-output.npy"), expected, rtol=1e-5)


def test_outputs_of_random_inputs_are_real_too_and_of_tensorflow_lite(models: Path, tmp_path: Path) -> None:
    pytest.importorskip("ai_edge_litert")
    outcome = api.run(models / "tflite", save_outputs=True, out_dir=tmp_path, seed=3)
    (output,) = (outcome.outputs or {}).values()
    (_, _, shape), *_ = outcome.program.outputs
    assert output.shape == shape
    assert len({int(v) for v in output.reshape(-1)}) > 1


def test_a_model_of_batch_one_compiled_for_a_larger_batch_runs_batch_by_batch(models: Path, tmp_path: Path) -> None:
    api.compile_model(models / "kws.onnx", "aic100-std", tmp_path / "b3", cores=1, batch=3)
    outcome = api.run(tmp_path / "b3", save_outputs=True, out_dir=tmp_path)
    inputs = random_inputs(outcome.program, seed=0)
    session = onnxruntime.InferenceSession(str(models / "kws.onnx"), providers=["CPUExecutionProvider"])
    expected = np.concatenate([session.run(None, {"input": inputs["input"][i : i + 1]})[0] for i in range(3)])
    np.testing.assert_allclose((outcome.outputs or {})["output"], expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("--out-dir", "/dev/null/x"),
            "/dev/null/x: cannot be made (Not a directory); expected a place for a folder",
        ),
        (
            ("--input", "input=absent.npy"),
            "absent.npy: cannot be read (No such file or directory); expected a .npy file",
        ),
    ],
)
def test_wrong_usage_is_one_line_before_anything_runs(  # noqa: PLR0917
    models: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("run", models / "kws70", "--profile", "latency", *words) == 2
    out, err = capsys.readouterr()
    assert (out, err) == ("", f"opscope: {message}\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("level", "recipe"), [(70, None), (100, "KernelUtil")])
def test_the_bytes_of_the_stats_buffer_are_those_that_the_device_writes(
    models: Path, tmp_path: Path, level: int, recipe: str | None
) -> None:
    """But for headers, totals of threads, and what the write says of itself."""
    options = {"cores": 2, "stats_level": level, "pmu_recipe": recipe}
    program = api.compile_model(models / "bert.onnx", "aic100-std", tmp_path, **options).program
    api.run(tmp_path, profile=("raw_device_stats",), num_iter=1, out_dir=tmp_path)
    (buffer,) = tmp_path.glob("*aiccyclecounts.bin")
    flush = program.commands[program.commands["does"] == Does.STATS]
    assert int(flush["moved_bytes"].sum()) == pytest.approx(buffer.stat().st_size, rel=0.05)


def test_the_folder_of_a_run_is_made(models: Path, tmp_path: Path) -> None:
    place = tmp_path / "new" / "run"
    assert run("run", models / "kws70", "--num-iter", 2, "--profile", "latency", "-o", place) == 0
    assert [file.name for file in place.iterdir()] == ["aic-profiling-program-0-activation-0-latency.txt"]


def test_a_wrong_input_lists_what_is_expected(models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(tmp_path / "x.npy", np.zeros((1, 2), np.float32))
    assert run("run", models / "kws70", "--input", f"input={tmp_path / 'x.npy'}") == 2
    assert capsys.readouterr().err == (
        "opscope: input 'input': found float32 of 1x2; expected input (float32 of 1x1x49x10)\n"
    )


def test_a_missing_model_matters_only_for_outputs(
    models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "programqpc.bin"
    program.write_bytes((models / "kws70" / "programqpc.bin").read_bytes())
    assert run("run", tmp_path, "--num-iter", 2) == 0
    capsys.readouterr()
    assert run("run", tmp_path, "--save-outputs", "--out-dir", tmp_path) == 2
    assert "the model is not there, and outputs are computed from it" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == [program]


def test_raw_statistics_of_an_uninstrumented_program_are_refused(
    models: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("run", models / "kws0", "--profile", "raw_device_stats") == 2
    assert "compiled with stats level 0 and leaves no stats buffer; expected 40 or more" in capsys.readouterr().err


def test_damaged_and_absent_programs_are_one_line(
    models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = (models / "kws70" / "programqpc.bin").read_bytes()
    flipped = bytearray(good)
    flipped[len(good) // 2] ^= 1
    for raw in (b"", good[:100], bytes(flipped), good + b"x", b"not a program at all, but long enough to be one"):
        (tmp_path / "programqpc.bin").write_bytes(raw)
        assert run("run", tmp_path) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith(f"opscope: {tmp_path / 'programqpc.bin'}: byte 0x")
        assert err.count("\n") == 1
    assert run("run", tmp_path / "absent") == 2
    assert "expected the folder that `opscope compile` wrote" in capsys.readouterr().err


def test_a_file_that_cannot_be_finished_is_one_line_and_leaves_nothing_half_written(
    models: Path, tmp_path: Path
) -> None:
    limited = (
        "import resource, sys; sys.dont_write_bytecode = True; "  # or what it imports later is cut off and kept
        "from opscope.cli import main; resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192)); "
        "sys.exit(main())"
    )
    words = ("run", models / "bert", "--profile", "latency", "--profile", "raw_device_stats", "--out-dir", tmp_path)
    done = subprocess.run([sys.executable, "-c", limited, *words], capture_output=True, text=True, check=False)
    name = f"{STEM}-0-inf-0-QAicGraph-aiccyclecounts.bin"
    assert done.returncode == 2
    assert done.stderr == (
        f"opscope: {tmp_path / name}: cannot be written (File too large); expected a writable place\n"
    )
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_keeps_what_is_finished(
    models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = execution.Execution.capture

    def interrupted(self: execution.Execution, row: execution.Rows) -> execution.Sample:
        if row["inference"][0] == 2:
            raise KeyboardInterrupt
        return real(self, row)

    monkeypatch.setattr(execution.Execution, "capture", interrupted)
    profiles = [word for kind in ("latency", "trace", "raw_device_stats") for word in ("--profile", kind)]
    assert run("run", models / "kws70", *profiles, "--num-samples", 5, "--out-dir", tmp_path) == 130
    out, err = capsys.readouterr()
    assert "InferenceCnt 40" in out
    assert "opscope: interrupted; what was finished is kept" in err
    assert len(list(tmp_path.glob("*.bin"))) == 2
    assert "NumSamples collected: 2 Num Requested: 5" in (tmp_path / f"{STEM}-0-latency.txt").read_text()
    json.loads((tmp_path / TRACE).read_bytes())


def test_ctrl_c_ends_a_real_process_with_130(models: Path, tmp_path: Path) -> None:
    words = ["run", models / "bert", "--profile", "stats", "--num-samples", "20000", "--num-iter", "20000"]
    with subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys; from opscope.cli import main; sys.exit(main())",
            *words,
            "--out-dir",
            tmp_path,
        ],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        deadline = time.monotonic() + 40
        while not list(tmp_path.glob("*.txt")) and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=20)
    assert process.returncode == 130, err
    assert b"interrupted" in err
    assert list(tmp_path.glob("*.txt"))
    assert not list(tmp_path.glob(".*"))


def test_session_runs_times_and_profiles(models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with opscope.Session(models / "kws.onnx", "aic100-std", cores=2, num_iter=30) as session:
        inputs = random_inputs(session.program, seed=1)
        outputs = session.run(inputs)
        expected = onnxruntime.InferenceSession(str(models / "kws.onnx")).run(None, dict(inputs))[0]
        np.testing.assert_allclose(outputs["output"], expected, rtol=1e-5)
        completed, per_second, seconds, batch = session.run_benchmark()
        assert (completed, batch) == (30, 1)
        assert per_second == pytest.approx(completed * batch / seconds)
        metrics = session.get_metrics()
        assert metrics["num_of_inferences"] == 31
        assert metrics["min_latency"] <= metrics["P50"] <= metrics["P999"] <= metrics["max_latency"]
        session.print_metrics()
        printed = capsys.readouterr().out
        assert printed.startswith(
            "Number of inferences utilized for calculation are 31\nMinimum latency observed 0.000"
        )
        assert f"\nP999 / 99.9% of inferences observed latency less than {metrics['P999']:.9f} s\n" in printed
        assert printed.endswith(" s\nAll times are simulated on aic100-std.\n")
        assert metrics["total_inference_time"] > seconds  # ten are on their way at a time
        trace = session.profile()
        assert trace.provenance == "simulated"
        assert {lane.name for lane in trace.lanes if lane.core == 1} >= {"HVX", "HMX", "DMAIssue"}
        assert any(lane.device == -1 for lane in trace.lanes)
        session.reset()
        assert session.get_metrics() == {"num_of_inferences": 0}
    with pytest.raises(UsageError, match=r"^the session is closed"):
        session.run(inputs)


def test_session_takes_a_compiled_folder(models: Path) -> None:
    session = opscope.Session(models / "kws70")
    session.setup()
    with pytest.raises(UsageError, match=r"^input 'input': missing; expected input \(float32 of 1x1x49x10\)"):
        session.run({})
    assert session.get_metrics() == {"num_of_inferences": 0}
    with pytest.raises(UsageError, match=r"^stats level 0: the device writes nothing down; expected stats_level=70"):
        opscope.Session(models / "kws0").profile()


def test_a_session_serves_several_threads(models: Path) -> None:
    session = opscope.Session(models / "kws70")
    inputs = [random_inputs(session.program, seed=seed) for seed in range(8)]
    alone = [session.run(each)["output"] for each in inputs]
    alone_metrics = session.get_metrics()
    session.reset()
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda each: session.run(each)["output"], inputs))
    assert all((a == b).all() for a, b in zip(alone, together, strict=True))
    assert session.get_metrics() == alone_metrics  # what an inference takes depends on its number alone


def test_the_package_lends_its_verbs() -> None:
    assert opscope.report is api.report
    assert opscope.run is api.run
    assert opscope.compile_model is api.compile_model
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        opscope.nothing  # noqa: B018
    assert {"Session", "run"} <= set(dir(opscope))
