"""Cloud AI command lines from end to end: partitions, specializations, types, inputs, and programs at once."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from opscope.cli import main
from opscope.device.host.stage_times import HostTraffic
from opscope.program.program_file import decode_program
from opscope.workflows.retained_state import SUFFIX
from support.models.onnx_models import graph, model, save, value


def run(*words: object) -> int:
    return main([str(word) for word in words])


@pytest.fixture
def product(tmp_path: Path) -> Path:
    """y = x · w, of f32 and with two symbols."""
    numbers = np.arange(32 * 16, dtype=np.float32).reshape(32, 16) / 100
    body = graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        [value("x", ["batch_size", "seq_len", 32])],
        [value("y", ["batch_size", "seq_len", 16])],
        [numpy_helper.from_array(numbers, "w")],
    )
    return save(tmp_path, model(body))


def program_of(folder: Path):  # type: ignore[no-untyped-def]
    return decode_program((folder / "programqpc.bin").read_bytes(), source=str(folder))


def engines_of(folder: Path, kind: str) -> set[str]:
    program = program_of(folder)
    return {program.groups[row["group"]].name for row in program.commands if program.kinds[row["kind"]] == kind}


SYMBOLS = ("-onnx-define-symbol=batch_size,1", "-onnx-define-symbol=seq_len,64")


def test_errors_and_notes_are_in_the_words_of_the_line(
    product: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("qaic-compile", f"-model={product}", f"-aic-binary-dir={tmp_path}", "-convert-to-fp16")
    file = tmp_path / "devices.json"
    file.write_text(json.dumps({"partitions": [{"devices": [{"deviceId": 0, "numCores": 99}]}]}))
    for more, told in (
        ((), "expected their sizes, for example -onnx-define-symbol=batch_size,1 -onnx-define-symbol=seq_len,"),
        ((*SYMBOLS, "-aic-num-cores=15"), "opscope: -aic-num-cores=15: aic100-std has 14; expected 1 to 14"),
        ((*SYMBOLS, f"-mdp-load-partition-config={file}"), f"opscope: {file}: numCores 99: aic100-std has 14;"),
        (("-onnx-define-symbol=batch_size,0", SYMBOLS[1]), "input 'x' is 0x64x32, a batch of nothing; expected at"),
    ):
        assert run(*words, *more) == 2
        assert told in capsys.readouterr().err
    assert run(*words, *SYMBOLS, "-mxint8-kv-cache") == 0
    assert "note: -mxint8-kv-cache: the model gives no cache of keys and values out again" in capsys.readouterr().err
    assert run("qaic-runner", "-t", tmp_path / "nothing") == 2
    assert capsys.readouterr().err.endswith("expected the folder that `opscope qaic-compile` wrote\n")


def test_floats_stay_single_without_convert_to_fp16(
    product: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("qaic-compile", f"-model={product}", "-aic-num-cores=1", *SYMBOLS)
    assert run(*words, f"-aic-binary-dir={tmp_path / 'single'}") == 0
    assert "note: f32 stays f32, which the HVX alone has: -convert-to-fp16 runs it as f16" in capsys.readouterr().err
    assert run(*words, "-convert-to-fp16", f"-aic-binary-dir={tmp_path / 'half'}") == 0
    assert "f32" not in capsys.readouterr().err
    assert engines_of(tmp_path / "single", "aicconvolutiond32") == {"HVX"}
    assert engines_of(tmp_path / "half", "aicconvolutiond32") == {"HMX"}


def test_every_specialization_is_a_program_and_the_runner_says_which_it_takes(
    product: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "specializations.json"
    rows = [{"batch_size": "1", "seq_len": "64"}, {"batch_size": "4", "seq_len": "1"}]
    config.write_text(json.dumps({"specializations": rows}), encoding="utf-8")
    built = tmp_path / "built"
    words = (f"-model={product}", f"-aic-binary-dir={built}", f"-network-specialization-config={config}")
    assert run("qaic-compile", *words) == 0
    out, err = capsys.readouterr()
    assert "specialization 1: batch_size 4, seq_len 1\n" in out
    assert f"wrote {built / 'specialization-1' / 'programqpc.bin'}\n" in err
    assert program_of(built).inputs[0][2] == (1, 64, 32)
    assert program_of(built / "specialization-1").inputs[0][2] == (4, 1, 32)
    assert run("qaic-runner", "-t", built, "-n", 2) == 0
    assert f"note: {built}: specialization 0 of 2 runs; inputs of their shape, or " in capsys.readouterr().err
    assert run("qaic-runner", "-t", built, "-n", 2, "-specialization=1") == 0
    assert "BatchSize 4" in capsys.readouterr().out
    assert run("qaic-runner", "-t", built, "-specialization=2") == 2
    assert f"-specialization=2: {built} has 2; expected 0 to 1" in capsys.readouterr().err
    assert run("qaic-runner", "-t", built, "-n", 2, "-specialization=0") == 0
    assert "specialization" not in capsys.readouterr().err
    assert run("qaic-compile", *words[:2], *SYMBOLS) == 0  # what was compiled before is no part of it
    assert sorted(path.name for path in built.iterdir()) == ["programqpc.bin"]


def specialized(product: Path, folder: Path) -> Path:
    """A prompt of 64 tokens, and one token of four users."""
    config, built = folder / "specializations.json", folder / "built"
    rows = [
        {"name": "Prefill", "symbols": {"batch_size": "1", "seq_len": "64"}},
        {"name": "Decode", "symbols": {"batch_size": "4", "seq_len": "1"}},
    ]
    config.write_text(json.dumps({"specializations": rows}), encoding="utf-8")
    words = (f"-model={product}", f"-aic-binary-dir={built}", f"-network-specialization-config={config}")
    assert run("qaic-compile", *words, "-stats-level=70", "-convert-to-fp16") == 0
    return built


def test_the_shape_of_inputs_chooses_the_specialization(
    product: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    built = specialized(product, tmp_path)
    assert "specialization 1: Decode: batch_size 4, seq_len 1\n" in capsys.readouterr().out
    weights = numpy_helper.to_array(onnx.load(product).graph.initializer[0])
    for number, shape in enumerate([(1, 64, 32), (4, 1, 32)]):
        given = np.random.default_rng(number).random(shape, np.float32)
        given.tofile(tmp_path / "x.raw")
        np.save(tmp_path / "x.npy", given)
        entry = {"path": "x.raw", "io-direction": "in", "map-to": "x", "dims": shape}
        (tmp_path / "list.json").write_text(json.dumps({"IO-files": [[entry]]}), encoding="utf-8")
        for flag in ("-i=x.raw", "-i=x.npy", "--aic-batch-json-input=list.json"):
            name, _, file = flag.partition("=")
            words = ("-t", built, "-n", 1, f"{name}={tmp_path / file}", f"--write-output-dir={tmp_path}")
            assert run("qaic-runner", *words) == 0
            out, err = capsys.readouterr()
            assert f"BatchSize {shape[0]} " in out
            assert f"note: {built}: specialization {number} of 2 runs: the inputs have its shapes\n" in err
            assert np.load(tmp_path / "output-y.npy") == pytest.approx(given @ weights, rel=1e-5)
        assert run("run", built, "--num-iter", 1, "-o", tmp_path, "--input", f"x={tmp_path / 'x.npy'}") == 0
        assert f"BatchSize {shape[0]} " in capsys.readouterr().out


def test_of_several_lists_of_inputs_the_first_that_fits_is_taken(
    product: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exporters write a list for the prompt and one for a token."""
    built, lists = specialized(product, tmp_path), []
    for number, shape in enumerate([(1, 64, 32), (4, 1, 32)]):
        np.zeros(shape, np.float32).tofile(tmp_path / f"{number}.raw")
        lists.append([{"path": f"{number}.raw", "io-direction": "in", "elem-size": 4, "map-to": "x", "dims": shape}])
    (tmp_path / "list.json").write_text(json.dumps({"IO-files": lists}), encoding="utf-8")
    words = ("-t", built, "-n", 1, f"--aic-batch-json-input={tmp_path / 'list.json'}", f"--write-output-dir={tmp_path}")
    for more, batch in (((), 1), (("-specialization=1",), 4)):
        assert run("qaic-runner", *words, *more) == 0
        assert f"BatchSize {batch} " in capsys.readouterr().out


@pytest.mark.parametrize("flag", ["-i=x.raw", "-i=x.npy", "--aic-batch-json-input=list.json"])
def test_inputs_that_no_specialization_is_for_are_told_with_those_there_are(
    product: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], flag: str
) -> None:
    built = specialized(product, tmp_path)
    given = np.zeros((2, 3, 32), np.float32)
    given.tofile(tmp_path / "x.raw")
    np.save(tmp_path / "x.npy", given)
    entry = {"path": "x.raw", "map-to": "x", "dims": [2, 3, 32]}
    (tmp_path / "list.json").write_text(json.dumps({"IO-files": [[entry]]}), encoding="utf-8")
    name, _, file = flag.partition("=")
    assert run("qaic-runner", "-t", built, f"{name}={tmp_path / file}", f"--write-output-dir={tmp_path}") == 2
    assert "fit none of 2 specializations; expected x 1x64x32; or x 4x1x32\n" in capsys.readouterr().err


@pytest.mark.parametrize("flag", ["-i=x.raw", "-i=x.npy", "--aic-batch-json-input=list.json"])
def test_a_file_of_inputs_that_is_not_there_is_named(
    product: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], flag: str
) -> None:
    built, (name, _, file) = specialized(product, tmp_path), flag.partition("=")
    entry = {"path": "x.raw", "map-to": "x", "dims": [1, 64, 32]}
    (tmp_path / "list.json").write_text(json.dumps({"IO-files": [[entry]]}), encoding="utf-8")
    assert run("qaic-runner", "-t", built, f"{name}={tmp_path / file}", f"--write-output-dir={tmp_path}") == 2
    missing = tmp_path / (file if file != "list.json" else "x.raw")
    assert f"opscope: {missing}: cannot be read (No such file or directory)" in capsys.readouterr().err


def test_buffers_of_any_specialization_are_decoded_with_the_first_program(
    product: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    built, stats = specialized(product, tmp_path), tmp_path / "stats"
    stats.mkdir()
    raw = ("--aic-profiling-type=raw_device_stats", f"--aic-profiling-out-dir={stats}")
    decode = ("qaic-opstats", "-q", built / "programqpc.bin", "-i", stats)
    for number, batch in enumerate((1, 4)):
        start = f"--aic-profiling-start-iter={number}"  # so that both leave a buffer
        assert run("qaic-runner", "-t", built, "-n", 2, f"-specialization={number}", *raw, start) == 0
        out = tmp_path / f"out{number}"
        assert run(*decode, "-o", out, "--summary") == 0
        (summary,) = out.glob(f"*-inf-{number}-*summary.txt")
        assert f"[QAicGraph] Device instance inf/s: ({batch}/" in summary.read_text(encoding="utf-8")
    capsys.readouterr()
    assert run(*decode, "-o", tmp_path / "r", "--run", tmp_path / "mixed.run") == 2
    assert "samples of several specializations; expected those of one to make a run of" in capsys.readouterr().err


def test_a_partition_file_compiles_for_its_devices(product: Path, tmp_path: Path) -> None:
    config = tmp_path / "mdp.json"
    devices = [{"deviceId": n, "numCores": 2} for n in range(2)]
    config.write_text(json.dumps({"partitions": [{"name": "P", "devices": devices}]}), encoding="utf-8")
    built, stats, out = (tmp_path / name for name in ("built", "stats", "out"))
    words = (f"-model={product}", f"-aic-binary-dir={built}", f"-mdp-load-partition-config={config}", *SYMBOLS)
    assert run("qaic-compile", *words, "-stats-level=70") == 0
    program = program_of(built)
    assert (program.devices, program.cores, program.target) == (2, 2, "aic100-ultra")
    stats.mkdir()
    raw = ("--aic-profiling-type=raw_device_stats", f"--aic-profiling-out-dir={stats}")
    assert run("qaic-runner", "-t", built, "-n", 1, *raw) == 0
    assert len(list(stats.glob("*_slice0?-aiccyclecounts.bin"))) == 2
    assert run("qaic-opstats", "-q", built / "programqpc.bin", "-i", stats, "-o", out, "--trace") == 0
    assert len(list(out.glob("*-merged.qaic-opstats.trace.json"))) == 1


def test_state_that_an_output_gives_back_stays_on_the_device(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    body = graph(
        [helper.make_node("Add", ["x", "state"], ["y"]), helper.make_node("Mul", ["x", "state"], [f"state{SUFFIX}"])],
        [value("x", [4, 256]), value("state", [4, 256])],
        [value("y", [4, 256]), value(f"state{SUFFIX}", [4, 256])],
    )
    path = save(tmp_path, model(body))
    words = (f"-model={path}", f"-aic-binary-dir={tmp_path / 'b'}", "-retained-state")
    assert run("qaic-compile", *words) == 0
    err = capsys.readouterr().err
    assert "retained state: 1 inputs (4.00 KB) and 1 outputs (4.00 KB) stay on the device" in err
    program = program_of(tmp_path / "b")
    assert program.retained == ("state", f"state{SUFFIX}")
    assert [[port[0] for port in ports] for ports in program.host_ports] == [["x"], ["y"]]
    crossing, all_ports = HostTraffic.of(program), HostTraffic.of(replace(program, retained=()))
    assert all_ports.bytes_in - crossing.bytes_in == all_ports.bytes_out - crossing.bytes_out == 4 * 256 * 4
    np.full((4, 256), 2, np.float32).tofile(tmp_path / "x.raw")  # the state begins with zeros
    assert run("qaic-runner", "-t", tmp_path / "b", "-i", tmp_path / "x.raw", f"--write-output-dir={tmp_path}") == 0
    assert (np.load(tmp_path / "output-y.npy") == 2).all()


def test_notes_on_a_program_name_the_compilers_flags_in_the_runner_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    body = graph([helper.make_node("Relu", ["x"], ["y"])], [value("x", ["n", 256])], [value("y", ["n", 256])])
    built = tmp_path / "b"
    assert run("qaic-compile", f"-model={save(tmp_path, model(body))}", f"-aic-binary-dir={built}") == 0
    assert run("qaic-runner", "-t", built, "-n", 1) == 0
    note = "note: batch is open in the file; read at batch 1, -batchsize=N for another\n"
    assert capsys.readouterr().err.count(note) == 2


def test_outputs_are_those_of_the_given_input(
    product: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    built = tmp_path / "built"
    run("qaic-compile", f"-model={product}", f"-aic-binary-dir={built}", "-convert-to-fp16", *SYMBOLS)
    given = np.random.default_rng(1).random((1, 64, 32), np.float32)
    given.tofile(tmp_path / "x.raw")
    np.save(tmp_path / "x.npy", given)
    listed = {"IO-files": [[{"path": "x.raw", "io-direction": "in", "map-to": "x", "dims": [1, 64, 32]}]]}
    (tmp_path / "list.json").write_text(json.dumps(listed), encoding="utf-8")
    weights = numpy_helper.to_array(onnx.load(product).graph.initializer[0])
    for number, flag in enumerate(("-i=x.raw", "-i=x.npy", "--aic-batch-json-input=list.json")):
        name, _, file = flag.partition("=")
        out = tmp_path / f"out{number}"
        out.mkdir()
        assert run("qaic-runner", "-t", built, "-n", 1, f"{name}={tmp_path / file}", f"--write-output-dir={out}") == 0
        assert np.load(out / "output-y.npy") == pytest.approx(given @ weights, rel=1e-5)
        raw = np.fromfile(out / "y-activation-0-inf-0.bin", np.float32)
        assert raw.tobytes() == np.load(out / "output-y.npy").tobytes()
    stats = tmp_path / "stats"
    stats.mkdir()
    latency = ("--aic-profiling-type=latency", f"--aic-profiling-out-dir={stats}")
    assert run("qaic-runner", "-t", built, "-n", 1, *latency, f"--write-output-dir={out}") == 0
    assert [file.suffix for file in stats.iterdir()] == [".txt"]
    capsys.readouterr()
    (tmp_path / "none.json").write_text('{"IO-files": [[{"path": "y.raw", "io-direction": "out", "map-to": "y"}]]}')
    assert run("qaic-runner", "-t", built, f"--aic-batch-json-input={tmp_path / 'none.json'}") == 2
    assert "none.json: gives no input; expected one for each of x" in capsys.readouterr().err
    (tmp_path / "none.json").write_bytes(b'{"IO-files": [[{"path": "\xbc"}]]}')
    assert run("qaic-runner", "-t", built, f"--aic-batch-json-input={tmp_path / 'none.json'}") == 2
    assert "none.json: 'utf-8' codec can't decode byte 0xbc" in capsys.readouterr().err
    (tmp_path / "short.raw").write_bytes(b"abcd")
    assert run("qaic-runner", "-t", built, "-i", tmp_path / "short.raw", f"--write-output-dir={tmp_path}") == 2
    assert "short.raw: 4 bytes; expected 8192 for input 'x', f32 of 1x64x32" in capsys.readouterr().err
    assert run("qaic-runner", "-t", built, "-i", "a", "-i", "b", f"--write-output-dir={tmp_path}") == 2
    assert "-i: 2 files; expected one for each of 1 inputs: x" in capsys.readouterr().err


@pytest.mark.parametrize("flag", ["--aic-profiling-out-dir", "--write-output-dir"])
def test_the_runner_makes_no_folder(
    product: Path, tmp_path: Path, flag: str, capsys: pytest.CaptureFixture[str]
) -> None:
    built, place = specialized(product, tmp_path), tmp_path / "absent"
    assert run("qaic-runner", "-t", built, "-n", 1, "--aic-profiling-type=latency", f"{flag}={place}") == 2
    assert f"{place}: no such folder; expected one that is there" in capsys.readouterr().err
    assert not place.exists()


def test_several_programs_run_at_once_and_share_the_device(
    product: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for cores in (2, 4, 14):
        words = (f"-model={product}", f"-aic-binary-dir={tmp_path / f'b{cores}'}", f"-aic-num-cores={cores}")
        run("qaic-compile", *words, "-stats-level=70", "-convert-to-fp16", *SYMBOLS)
    stats = tmp_path / "stats"
    stats.mkdir()
    capsys.readouterr()
    words = ("-n", 4, "-a", 2, "--aic-profiling-type=trace,raw_device_stats", f"--aic-profiling-out-dir={stats}")
    assert run("qaic-runner", "-t", tmp_path / "b2", "-t", tmp_path / "b4", *words) == 0
    out, err = capsys.readouterr()
    assert out.count("InferenceCnt 8 ") == 2
    assert f"Program 1: {tmp_path / 'b4'}\n" in out
    assert "program 1 of 2: 2 activations at once on 4 cores each, from core 4 on" in err
    assert {path.name for path in stats.iterdir()} == {
        name
        for p in (0, 1)
        for name in (
            f"aic-profiling-program-{p}-trace.json",
            *(f"aic-profiling-program-{p}-activation-{a}-inf-0-QAicGraph-aiccyclecounts.bin" for a in (0, 1)),
        )
    }
    opstats = ("-q", tmp_path / "b4" / "programqpc.bin", "-i", stats, "-o", tmp_path / "out", "--summary")
    assert run("qaic-opstats", *opstats, "-v") == 0
    assert "program 0: 2 buffers of another program are left out" in capsys.readouterr().err
    assert len(list((tmp_path / "out").iterdir())) == 2
    assert run("qaic-runner", "-t", tmp_path / "b2", "-t", tmp_path / "b14") == 2
    assert "programs of 2 and 14 cores: the device has 14; expected no more together" in capsys.readouterr().err


def test_a_program_is_slower_beside_others_that_read_memory(tmp_path: Path) -> None:
    from opscope import api
    from opscope.options import RunOptions
    from opscope.workflows.execution import run_program
    from opscope.workflows.programs_together import run_programs

    path = tmp_path / "fc.onnx"
    assert run("zoo", "fc", "--features", 4096, "--units", 16384, "-o", path) == 0  # its weights are read every time
    api.compile_model(path, "aic100-std", tmp_path / "a", cores=7)
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    options = RunOptions(num_iter=4, out_dir=tmp_path)
    alone = run_program(tmp_path / "a", options)
    together = run_programs([tmp_path / "a", tmp_path / "b"], options)
    before = alone.statistics.metrics[0].average
    for outcome in together:
        executed = outcome.statistics.metrics[0]
        assert executed.name == "ExecTimeUs"
        assert executed.average is not None
        assert before is not None
        assert executed.average > 1.3 * before


def test_programs_that_do_not_fit_the_memory_together_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from opscope.core.errors import UsageError
    from opscope.options import RunOptions
    from opscope.program.bounds import Bounds, Holding
    from opscope.program.program_file import decode_program, encode_program
    from opscope.workflows.programs_together import run_programs

    path = tmp_path / "kws.onnx"
    assert run("zoo", "kws-cnn", "-o", path) == 0
    assert run("compile", path, "--target", "aic100-std", "--cores", 2, "-o", tmp_path / "a") == 0
    file = tmp_path / "a" / "programqpc.bin"
    program = decode_program(file.read_bytes(), source="a")
    large = Bounds(holdings=(Holding("DDR", 0, 7 * 2**30, 2**30, 0, 16 * 2**30),))
    file.write_bytes(encode_program(replace(program, bounds=large)))
    options = RunOptions(num_iter=2, out_dir=tmp_path)
    assert len(run_programs([tmp_path / "a"] * 2, options)) == 2
    with pytest.raises(UsageError) as error:
        run_programs([tmp_path / "a"] * 3, options)
    assert str(error.value).startswith(
        f"{program.target}: 3 programs need 24.00 GB of DDR (21.00 GB of constants, 3.00 GB of inputs and outputs) "
        "together; it has 16.00 GB; expected programs that fit it together"
    )
