"""`opscope import` in a folder of its own: exit code, stdout, stderr, and the run that it leaves."""

from __future__ import annotations

import gzip
import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from opscope import api
from opscope.cli import main
from opscope.program.file_names import PROGRAM_FILE
from opscope.recording.folder_reader import read_run
from opscope.recording.recording_file import RECORDING_FILE, decode_recording
from opscope.recording.trace import NONE, Lane, Trace
from support.models.small_models import convnet
from support.plugins.kineto_build import events_of, launch_bound
from support.plugins.qnn.qnn_samples import DEVICE_CSV

SAMPLES = Path(__file__).parents[2] / "samples"
VELA = [str(SAMPLES / "vela_per-layer.csv"), str(SAMPLES / "vela_summary.csv")]


def test_files_of_one_run_become_one_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", *VELA, "-o", str(tmp_path / "run")]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("kws on Ethos_U55_128 Ethos_U55_High_End_Embedded Shared_Sram (vendor-model)\n")
    assert "latency  67.3 us" in out
    assert "ok  total cycles of both files agree (33641 in vela-layers, 33641 in vela-summary)" in out
    assert err.splitlines()[-1] == f"wrote {tmp_path / 'run'}"
    run = read_run(tmp_path / "run")
    assert (run.info.provenance, run.info.model, run.info.clocks_hz) == ("vendor-model", "kws", {"core": 5e8})
    assert [op.name for op in run.ops] == ["relu;conv/BiasAdd", "relu;conv/BiasAdd", "pool", "logits"]
    assert run.summary.latency.value_ns == 67_282
    assert {"findings.json", "report.html", RECORDING_FILE} <= {path.name for path in (tmp_path / "run").iterdir()}
    kept = decode_recording((tmp_path / "run" / RECORDING_FILE).read_bytes(), run, source=RECORDING_FILE)
    assert kept.ops[3].cycles == 2040
    assert kept.ops[3].out_bytes is None


def test_the_same_command_replaces_its_run_and_nothing_else(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = tmp_path / "run"
    assert main(["import", *VELA, "-o", str(run)]) == 0
    assert main(["import", str(SAMPLES / "latency.txt"), "-o", str(run)]) == 0
    assert json.loads((run / RECORDING_FILE).read_bytes())["maker"] == "qaic-latency"
    (tmp_path / "mine").mkdir()
    assert main(["import", *VELA, "-o", str(tmp_path / "mine")]) == 2
    assert "exists and is not a run" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine", "run"]


def owned_lanes(trace: Trace) -> set[tuple[Lane, str]]:
    """Every lane with the name of its owner, whose position depends on the order of lanes."""
    return {
        (replace(lane, owner=NONE), "" if lane.owner == NONE else trace.lanes[lane.owner].name) for lane in trace.lanes
    }


def test_a_timeline_keeps_every_span_and_edge_in_the_run(tmp_path: Path) -> None:
    path = launch_bound(tmp_path / "trace.json.gz")
    assert main(["import", str(path), "-o", str(tmp_path / "run")]) == 0
    run = read_run(tmp_path / "run")
    imported = api.import_profile([path]).run
    events = events_of(path)
    assert len(run.trace.spans) == len(imported.trace.spans) == sum(event["ph"] == "X" for event in events)
    assert len(run.trace.edges) == sum(event["ph"] == "s" for event in events)
    for column in ("start_ns", "end_ns", "op", "command"):
        assert np.array_equal(np.sort(run.trace.spans[column]), np.sort(imported.trace.spans[column]))
    assert owned_lanes(run.trace) == owned_lanes(imported.trace)
    assert all(lane.busy_ns + lane.idle_ns == lane.wall_ns for lane in run.summary.lanes)
    launched = run.trace.spans[run.trace.spans["command"] == run.trace.edges["target"][0]]
    assert run.ops[int(launched["op"][0])].type == "aten::copy_"


def test_an_unknown_latency_is_no_number(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", str(SAMPLES / "stedgeai_analyze.txt"), "-o", str(tmp_path / "run")]) == 0
    out = capsys.readouterr().out
    assert "latency  —" in out
    assert "note: no times: they come with `stedgeai validate` on the target" in out
    assert read_run(tmp_path / "run").summary.latency.value_ns is None


def test_json_holds_everything_and_unknown_is_null(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", str(SAMPLES / "tensorrt_layers.json"), "--json"]) == 0
    body = json.loads(capsys.readouterr().out)
    assert body["schema"] == "opscope.recorded/2"
    assert body["recording"]["provenance"] == "compiler-fact"
    assert body["recording"]["ops"][2]["time_ns"] is None
    assert body["ops"][2]["time_ns"] is None


def test_violations_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "l.csv"
    path.write_text((SAMPLES / "vela_per-layer.csv").read_text().replace(",5400,16.1,5400", ",5401,16.1,5400"))
    assert main(["import", str(path)]) == 0
    assert (
        "VIOLATED  op cycles = the most of its resources (3 of 4 rows; line 4: 5401 is not 5400)"
        in capsys.readouterr().out
    )


def test_unknown_and_damaged_files_are_one_line_and_exit_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = {"a.txt": b"hello\n", "b.json": b'{"traceEvents": [{"ph": "X"', "c.gz": gzip.compress(b"[" * 100_000)[:50]}
    for name, content in bad.items():
        (tmp_path / name).write_bytes(content)
        assert main(["import", str(tmp_path / name), "-o", str(tmp_path / "run")]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert len(err.splitlines()) == 1
        assert err.startswith(f"opscope: {tmp_path / name}: ")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", ["m.onnx", "m.mlir"])
def test_a_model_that_is_given_for_a_profile_is_said_to_be_one(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if name == "m.onnx":
        convnet(tmp_path / name)
    else:
        (tmp_path / name).write_text("module { func.func @main(%a: tensor<4xf32>) { return } }\n")
    assert main(["import", str(tmp_path / name)]) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"opscope: {tmp_path / name}: a model ({Path(name).suffix}), not a profile; expected")
    assert "`opscope profile`" in err


def test_a_run_of_a_device_says_what_it_consists_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "dev.csv").write_text(DEVICE_CSV)
    assert main(["import", str(tmp_path / "dev.csv"), "-o", str(tmp_path / "d.run")]) == 0
    assert "latency  700 us; the application sees 850 us" in capsys.readouterr().out
    assert main(["analyze", str(tmp_path / "d.run")]) == 0
    out = capsys.readouterr().out
    assert "Verdict: compute bound, 82.4% of 850 us" in out
    assert "host       11.8%" in out
    assert "runtime 50 us, RPC 50 us, VTCM acquisition 20 us, power-up 30 us, accelerator 700 us" in out
    assert "do more in one call" in out
    assert main(["compare", str(tmp_path / "d.run"), str(tmp_path / "dev.csv"), "--side-by-side"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"latency +700 us +700 us", out)
    assert re.search(r"host_latency +850 us +850 us", out)
    assert main(["check", str(tmp_path / "d.run")]) == 0


def test_formats_are_listed_and_no_file_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", "--list"]) == 0
    assert "onnxruntime               ONNX Runtime session profile" in capsys.readouterr().out
    assert main(["import"]) == 2
    assert "no file given" in capsys.readouterr().err


def test_names_with_control_characters_do_not_reach_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "t.json"
    path.write_text(json.dumps([{"ph": "X", "name": "a\x1b]0;x\x07", "ts": 0, "dur": 1, "pid": "\x1b[2J", "tid": 1}]))
    assert main(["import", str(path), "-o", str(tmp_path / "run")]) == 0
    out, err = capsys.readouterr()
    assert "\x1b" not in out + err


def test_captures_of_our_own_are_decoded_with_their_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["zoo", "kws-cnn", "-o", str(tmp_path / "kws.onnx")]) == 0
    api.compile_model(tmp_path / "kws.onnx", "aic100-std", tmp_path / "build", cores=2, stats_level=70)
    api.run(tmp_path / "build", num_iter=2, profile=["raw_device_stats"], out_dir=tmp_path, num_samples=2)
    captures = sorted(map(str, tmp_path.glob("*aiccyclecounts.bin")))
    program = str(tmp_path / "build" / PROGRAM_FILE)
    assert main(["import", program, *captures, "-o", str(tmp_path / "run")]) == 0
    assert "(simulated)" in capsys.readouterr().out
    run = read_run(tmp_path / "run")
    assert run.info.inferences == (0, 1)
    assert len(run.trace.spans)
    assert {"findings.json", "report.html", "trace.json"} <= {path.name for path in (tmp_path / "run").iterdir()}
    assert main(["import", *captures]) == 2
    assert "0 programs, 2 stats buffers, 2 files in all; expected one programqpc.bin" in capsys.readouterr().err


def test_importing_loads_no_heavy_package() -> None:
    import subprocess

    code = "import sys, opscope.importers; print([m for m in ('onnx', 'pyarrow', 'onnxruntime') if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert result.stdout.strip() == "[]"


def test_the_user_may_say_how_times_were_obtained_where_the_file_cannot(tmp_path: Path) -> None:
    latency = tmp_path / "latency.txt"
    latency.write_text((Path(__file__).parents[2] / "samples/latency.txt").read_text())
    assert api.import_profile([latency], None).run.info.provenance == "measured"
    assert main(["import", str(latency), "-o", str(tmp_path / "run"), "--provenance", "simulated"]) == 0
    run = read_run(tmp_path / "run")
    assert run.info.provenance == run.trace.provenance == run.summary.latency.provenance == "simulated"


def test_a_clock_turns_ticks_of_a_board_into_times_that_stand_beside_an_estimate(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log, model = tmp_path / "board.log", tmp_path / "m.tflite"
    assert main(["zoo", "kws-cnn", "--precision", "int8", "-o", str(model)]) == 0
    estimate = ["profile", str(model), "--target", "cortex-m4", "--backend", "estimate", "-o", str(tmp_path / "e.run")]
    assert main(estimate) == 0
    types = [
        "CONV_2D",
        *["DEPTHWISE_CONV_2D", "CONV_2D"] * 4,
        "AVERAGE_POOL_2D",
        "RESHAPE",
        "FULLY_CONNECTED",
        "SOFTMAX",
    ]
    log.write_text("".join(f"{kind} took {120_000 * (1 + n)} ticks ({1 + n} ms).\n" for n, kind in enumerate(types)))
    assert main(["import", str(log), "--clock", "120MHz", "-o", str(tmp_path / "b.run")]) == 0
    capsys.readouterr()
    assert main(["compare", str(tmp_path / "e.run"), str(tmp_path / "b.run"), "--side-by-side"]) == 0
    said = capsys.readouterr().out
    assert "latency" in said
    assert "91 ms" in said
    assert "b.run: 13 ops are matched by surroundings, not by name" in said
    assert "measured over calibrated, by type" in said


@pytest.mark.parametrize(
    ("name", "clock", "problem"),
    [
        ("stm32_console.txt", "80MHz", "the files tell times themselves; expected files with cycles alone"),
        (
            "tflm_benchmark.csv",
            "25MHz",
            "cycles of an emulator are no time at any clock; expected a profile of a board",
        ),
        ("tflm_benchmark.txt", "0Hz", "0 Hz; expected more than 0"),
        ("stedgeai_analyze.txt", "80MHz", "the files have no cycles of ops; expected files with cycles"),
        ("tflm_benchmark.txt", "fast", "'fast': not understood; expected a clock such as 120MHz"),
    ],
)
def test_a_clock_that_cannot_be_used_is_refused(
    name: str, clock: str, problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["import", str(SAMPLES / name), "--clock", clock]) == 2
    assert problem in capsys.readouterr().err
