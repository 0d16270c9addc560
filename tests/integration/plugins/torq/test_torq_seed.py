"""Every command line that Torq's profiling page prints, word for word, with `opscope` in front of the tool's name."""

from __future__ import annotations

import csv
import re
import shlex
import tomllib
from pathlib import Path

import numpy as np
import pytest

from opscope.cli import main
from opscope.zoo import Recipe, make

pytest.importorskip("iree.compiler.ir", reason="the extra [mlir] is not installed")

PAGE = tomllib.loads((Path(__file__).parents[3] / "published" / "torq_commands.toml").read_text(encoding="utf-8"))


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of someone who follows the page: the sample model that it names."""
    (tmp_path / "samples" / "tosa").mkdir(parents=True)
    make(Recipe("fc", precision=None, format="tosa"), tmp_path / "samples" / "tosa" / "fc.mlir")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(line: str) -> int:
    return main(shlex.split(line))


def test_the_page_works_from_the_first_line_to_the_last(workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(PAGE["compile"]) == 0
    check_trace(workplace / "trace.csv")
    assert (workplace / "compilation_phases" / "fc.9.executable-targets.mlir").stat().st_size > 1000
    capsys.readouterr()
    assert run(PAGE["run"]) == 0
    check_outputs(capsys.readouterr().out)
    check_runtime(workplace / "runtime.csv")
    assert run(PAGE["annotate"]) == 0
    text = (workplace / "annotated_runtime.csv").read_text(encoding="utf-8")
    assert "slice_start" in text
    assert "fully_connected" in text


def check_trace(path: Path) -> None:
    """The columns of the page's table, without a header."""
    rows = list(csv.reader(path.read_text(encoding="utf-8").splitlines()))
    assert {len(row) for row in rows} == {len(PAGE["trace_columns"])}
    assert {re.sub(r"\d+$", "", row[0]) for row in rows} == set(PAGE["trace_ids"])
    assert {row[4] for row in rows} == {"DMA_IN", "DMA_OUT", "fully_connected"}
    assert all(0 <= int(row[1]) <= int(row[2]) for row in rows)
    assert all(row[3].startswith("loc(") and "samples/tosa/fc.mlir" in row[3] for row in rows)


def check_outputs(text: str) -> None:
    lines = text.splitlines()
    assert lines[:2] == ["EXEC @main", "result[0]: hal.buffer_view"]
    found = re.fullmatch(r"1x1000xi8=\[(.*)\]", lines[2])
    assert found is not None
    assert len(found[1].split()) == 1000
    assert np.ptp([int(word) for word in found[1].split()]) > 0  # a bias, since the input is zero


def check_runtime(path: Path) -> None:
    """id, time_since_open, time_since_start, Location; 1.28 MB at 3.8 GB/s are 337 us; torq-compile has 357."""
    rows = list(csv.DictReader(path.read_text(encoding="utf-8").splitlines(), delimiter=";", quoting=csv.QUOTE_NONE))
    assert list(rows[0]) == PAGE["runtime_columns"]
    assert [row["id"] for row in rows] == [str(number) for number in range(len(rows))]
    assert 337 <= int(rows[-1]["time_since_open"]) <= 375


def test_profiling_without_a_file_name_writes_the_default_one(workplace: Path) -> None:
    assert run("torq-compile samples/tosa/fc.mlir -o model.vmfb --torq-enable-profiling") == 0
    check_trace(workplace / PAGE["default_trace"])


def test_without_the_flag_nothing_but_the_program_is_written(workplace: Path) -> None:
    assert run("torq-compile samples/tosa/fc.mlir -o model.vmfb") == 0
    assert sorted(path.name for path in workplace.iterdir()) == ["model.vmfb", "samples"]


def test_phases_say_cycles_engines_and_memory(workplace: Path) -> None:
    assert run("torq-compile samples/tosa/fc.mlir -o model.vmfb --dump-compilation-phases-to=phases") == 0
    names = sorted(path.name for path in (workplace / "phases").iterdir())
    assert names == [
        "fc.1.canonicalise.txt",
        "fc.2.place.txt",
        "fc.3.split.txt",
        "fc.4.tile.txt",
        "fc.9.executable-targets.mlir",
    ]
    operands = [1280, 1280 * 1000, 8 * 1000, 1000]  # input, weights, bias with scale, output
    placed = (workplace / "phases" / "fc.2.place.txt").read_text(encoding="utf-8")
    assert re.search(rf"engine=Slice cycles=\d+ memory_bytes={sum(operands)}\b", placed)
    dump = (workplace / "phases" / "fc.9.executable-targets.mlir").read_text(encoding="utf-8")
    listed = "+".join(map(str, operands))
    assert f'slice_mem = {sum(operands)} : i64, slice_meminfo = "{listed}", out_bytes = ' in dump
    assert re.search(r"lram_peak_bytes = \d+ : i64, lram_capacity_bytes = 524288 : i64", dump)


def test_host_events_and_outputs_go_where_they_are_asked_to(
    workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("torq-compile samples/tosa/fc.mlir -o model.vmfb") == 0
    np.save(workplace / "x.npy", np.ones((1, 1280), np.int8))
    line = "torq-run-module --device=torq --module=model.vmfb --input=@x.npy --output=@y.npy --torq_profile_host=h.csv"
    assert run(line) == 0
    assert np.load(workplace / "y.npy").shape == (1, 1000)
    head = (workplace / "h.csv").read_text(encoding="utf-8").splitlines()
    assert head[0] == "dispatch_name,invocation_id,action_id,timestamp_us,event"
    assert all(line.startswith(("main_dispatch_0,", "__HAL_")) for line in head[1:])
    assert "(simulated)" in capsys.readouterr().err


def test_a_model_without_fixed_shapes_takes_at_least_what_is_known(
    workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kind = "tensor<?x4xi8>"
    (workplace / "open.mlir").write_text(
        f"func.func @f(%a: {kind}) -> {kind} {{\n%r = tosa.maximum %a, %a : ({kind}, {kind}) -> {kind}\n"
        f"return %r : {kind}\n}}\n"
    )
    assert run("torq-compile open.mlir -o model.vmfb") == 0
    told = capsys.readouterr().err
    assert "1 op is not costed and takes no time here:\n" in told
    assert "  tosa.maximum (maximum_0): the model does not give the shape" in told
    assert "at least 2 cycles" in told


def test_more_outputs_than_there_are_and_a_program_that_is_not_there_are_said(
    workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("torq-compile samples/tosa/fc.mlir -o model.vmfb") == 0
    assert run("torq-run-module --module=model.vmfb --output=@a.npy --output=@b.npy --torq_profile=r.csv") == 2
    assert "--output: given 2 times; expected at most 1, one per output" in capsys.readouterr().err
    assert not (workplace / "r.csv").exists()
    assert run("torq-run-module --module=nope.vmfb") == 2
    assert "nope.vmfb: there is no such file; expected a compiled program" in capsys.readouterr().err


def test_other_formats_compile_too_and_what_has_no_cost_is_said(
    workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make(Recipe("kws-cnn", precision="int8", format="tflite"), workplace / "kws.tflite")
    make(Recipe("kws-cnn"), workplace / "kws.onnx")
    assert run("torq-compile kws.tflite -o a.vmfb --torq-enable-profiling --csv-version=C") == 0
    assert run("torq-run-module --module=a.vmfb --torq_profile=r.csv") == 0
    assert "1x12xi8=[" in capsys.readouterr().out
    assert run("torq-compile kws.onnx -o b.vmfb") == 0
    said = capsys.readouterr().err
    assert "10 ops are not costed and take no time here:\n" in said
    assert "  Conv (9 ops, first /conv/Conv): Slice has no rate for f32" in said
    assert "at least" in said
    assert run("torq-compile kws.onnx -o b.vmfb --precision=bf16") == 0
    assert "at least" not in capsys.readouterr().err


def test_outputs_that_cannot_be_computed_are_said_and_not_made_up(
    workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("torq-compile samples/tosa/fc.mlir -o model.vmfb") == 0
    (workplace / "samples" / "tosa" / "fc.mlir").unlink()
    assert run("torq-run-module --module=model.vmfb --torq_profile=r.csv") == 0
    output = capsys.readouterr()
    assert output.out == "EXEC @main\n"
    assert "outputs are not computed: samples/tosa/fc.mlir: the model is not there" in output.err
    assert (workplace / "r.csv").exists()


def test_a_module_of_another_tool_is_refused(workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (workplace / "real.vmfb").write_bytes(b"PK\x03\x04" + bytes(100))
    assert run("torq-run-module --module=real.vmfb") == 2
    assert "real.vmfb: byte 0x0: not a program" in capsys.readouterr().err
