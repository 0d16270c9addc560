"""Models as Synaptics' own are written, through torq-compile and torq-run-module: every type, every dialect."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from opscope.backends import registry
from opscope.cli import main
from opscope.compiler.codegen.operands import Chain, OperandPlacement, OperandPlacer

pytest.importorskip("iree.compiler.ir", reason="the extra [mlir] is not installed")

BF16 = """\
func.func @main(%a: tensor<2x3xbf16>) -> tensor<2x3xbf16> {
  %0 = tosa.add %a, %a : (tensor<2x3xbf16>, tensor<2x3xbf16>) -> tensor<2x3xbf16>
  return %0 : tensor<2x3xbf16>
}
"""


@pytest.fixture(autouse=True)
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPSCOPE_TORQ", raising=False)  # no tool of the vendor's but those that a test makes
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    registry.state.cache_clear()  # an earlier test of this process may have found the tool
    yield tmp_path
    registry.state.cache_clear()


def run(line: str) -> int:
    return main(shlex.split(line))


# -- types


def test_a_bf16_model_takes_values_and_prints_them_as_iree_does(capsys: pytest.CaptureFixture[str]) -> None:
    """What iree-run-module 3.10 printed for the same module and the same input."""
    Path("m.mlir").write_text(BF16)
    assert run("torq-compile m.mlir -o m.vmfb") == 0
    assert run('iree-run-module --module=m.vmfb --input="2x3xbf16=1 2.5 -3 1e30 0.1 1000000"') == 0
    shown = "2x3xbf16=[2 5 -6][2.00051E+30 0.200195 1.99885E+06]"
    assert capsys.readouterr().out.splitlines() == ["EXEC @main", "result[0]: hal.buffer_view", shown]
    assert run("iree-run-module --module=m.vmfb") == 0  # zeros
    assert "2x3xbf16=[0 0 0][0 0 0]" in capsys.readouterr().out
    assert run("iree-run-module --module=m.vmfb --input=2x3xf16=1") == 2
    assert "found float16 of 2x3; expected arg0 (bfloat16 of 2x3)" in capsys.readouterr().err


def test_files_of_bf16_go_in_and_come_out(capsys: pytest.CaptureFixture[str]) -> None:
    Path("m.mlir").write_text(BF16)
    assert run("torq-compile m.mlir -o m.vmfb") == 0
    values = np.arange(6, dtype=ml_dtypes.bfloat16).reshape(2, 3)
    np.save("in.npy", values)  # NumPy names the type V2
    assert run("torq-run-module --module=m.vmfb --input=@in.npy --output=@out.npy") == 0
    assert np.array_equal(np.load("out.npy").view(ml_dtypes.bfloat16), 2 * values)
    assert run("torq-run-module --module=m.vmfb --input=2x3xbf16=@out.npy --output=@out.bin") == 0
    assert Path("out.bin").read_bytes() == (4 * values).tobytes()
    capsys.readouterr()
    assert run("torq-run-module --module=m.vmfb --input=2x3xbf16=@out.bin") == 0
    assert "2x3xbf16=[0 8 16][24 32 40]" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("kind", "shown"),
    [
        ("bf16", "1 2 3 4"),
        ("f16", "1 2 3 4"),
        ("f64", "1 2 3 4"),
        ("f8E4M3FN", "1 2 3 4"),
        ("f8E5M2", "1 2 3 4"),
        ("f8E8M0FNU", "1 2 4 4"),  # powers of two; IREE's own tool rounds 3 up
        ("ui8", "1 2 3 4"),
        ("i64", "1 2 3 4"),
    ],
)
def test_every_type_that_has_arrays_passes_through(kind: str, shown: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("m.mlir").write_text(
        f"func.func @main(%a: tensor<4x{kind}>) -> tensor<4x{kind}> {{ return %a : tensor<4x{kind}> }}"
    )
    assert run("torq-compile m.mlir -o m.vmfb") == 0
    assert run(f'torq-run-module --module=m.vmfb --input="4x{kind}=1 2 3 4"') == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"4x{kind}={shown}"


def test_complex_numbers_are_printed_as_iree_does(capsys: pytest.CaptureFixture[str]) -> None:
    kind = "tensor<2xcomplex<f32>>"
    constant = f"%0 = arith.constant dense<[(1.5,-2.0),(0.0,3.25)]> : {kind}"
    Path("m.mlir").write_text(f"func.func @main() -> {kind} {{ {constant}\n return %0 : {kind} }}")
    assert run("torq-compile m.mlir -o m.vmfb") == 0
    assert run("torq-run-module --module=m.vmfb") == 0
    assert capsys.readouterr().out.splitlines()[-1] == "2xcf64=0000C03F000000C0 0000000000005040"


# -- products without a matrix


def test_products_of_vectors_compile_and_are_costed(capsys: pytest.CaptureFixture[str]) -> None:
    Path("m.mlir").write_text("""\
func.func @main(%v: tensor<128xi8>, %m: tensor<64x128xi8>, %d: tensor<i32>, %o: tensor<64xi32>)
    -> (tensor<i32>, tensor<64xi32>) {
  %0 = linalg.dot ins(%v, %v : tensor<128xi8>, tensor<128xi8>) outs(%d : tensor<i32>) -> tensor<i32>
  %1 = linalg.matvec ins(%m, %v : tensor<64x128xi8>, tensor<128xi8>) outs(%o : tensor<64xi32>) -> tensor<64xi32>
  return %0, %1 : tensor<i32>, tensor<64xi32>
}
""")
    assert run("torq-compile m.mlir -o m.vmfb --torq-enable-profiling --dump-compilation-phases-to=phases") == 0
    assert "not costed" not in capsys.readouterr().err
    assert run("report m.mlir --target torq-sl2610") == 0
    assert re.search(r"MACs +8,320 ", capsys.readouterr().out)  # 128 + 64 × 128
    assert run("profile m.mlir --target torq-sl2610 -o m.run") == 0


# -- phases


def test_cycles_of_the_phases_are_those_of_the_schedule() -> None:
    """1280 features, 1000 channels, 64 channels at a time: 20,480 cycles, as torq-compile 2.3.0 has it."""
    assert run("zoo fc --format tosa -o fc.mlir") == 0
    assert run("torq-compile fc.mlir -o m.vmfb --torq-enable-profiling --dump-compilation-phases-to=phases") == 0
    rows = [line.split(",") for line in Path("timeline.csv").read_text().splitlines() if line.startswith("S")]
    scheduled = sum(int(row[2]) - int(row[1]) for row in rows)
    assert scheduled == pytest.approx(20_480, abs=4)  # tiles are rounded
    for phase, cycles in (("2.place", 20_480), ("3.split", 20_480), ("4.tile", scheduled)):
        assert f"name='conv2d_0' engine=Slice cycles={cycles} " in Path(f"phases/fc.{phase}.txt").read_text()


# -- what a runtime's log tells


def test_a_log_of_jobs_alone_does_not_say_what_they_are_bound_by(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("zoo fc --format tosa -o fc.mlir") == 0
    assert run("torq-compile fc.mlir -o m.vmfb --torq-enable-profiling --torq-dump-profiling=trace.csv") == 0
    assert run("torq-run-module --module=m.vmfb --torq_profile=runtime.csv --torq_profile_host=host.csv") == 0
    for log in ("runtime.csv", "host.csv"):
        capsys.readouterr()
        assert run(f"import {log} -o log.run") == 0
        assert "a log of jobs does not tell what a job is bound by" in " ".join(capsys.readouterr().out.split())
        assert run("analyze log.run") == 0
        assert "Verdict: unknown; nothing that was recorded explains most of the time" in capsys.readouterr().out


def test_the_compilers_timeline_beside_it_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    """A layer of 1.28 MB of weights: the compiler expects DMA nearly all of the time."""
    assert run("zoo fc --format tosa -o fc.mlir") == 0
    assert run("torq-compile fc.mlir -o m.vmfb --torq-enable-profiling --torq-dump-profiling=trace.csv") == 0
    assert run("torq-run-module --module=m.vmfb --torq_profile=runtime.csv") == 0
    capsys.readouterr()
    assert run("import trace.csv runtime.csv -o both.run") == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "what a job is bound by is the estimate's" in told
    assert "a log of jobs does not tell" not in told
    assert run("analyze both.run --json") == 0
    found = json.loads(capsys.readouterr().out)["verdict"]
    assert found["bound"] == "memory"
    assert found["breakdown"][0]["share"] > 0.9  # a tile of weights is computed with before the next arrives


# -- debug info, and the vendor's own assembly


def test_debug_info_is_a_folder_that_annotate_takes(capsys: pytest.CaptureFixture[str]) -> None:
    """The lines of the current manual."""
    assert run("zoo fc --format tosa -o fc.mlir") == 0
    assert run("torq-compile fc.mlir -o m.vmfb --torq-enable-profiling --torq-debug-info=./model_debug_info") == 0
    (file,) = Path("model_debug_info").iterdir()
    assert file.name == "main_dispatch_0.mlirb"
    assert file.read_bytes()[:4] == b"ML\xefR"  # MLIR bytecode
    assert f"wrote model_debug_info/{file.name}" in capsys.readouterr().err
    assert run("torq-run-module --module=m.vmfb --torq_profile_host=host.csv --torq_profile=runtime.csv") == 0
    assert run("annotate_profiling.py model_debug_info host.csv annotated.csv") == 0
    lines = Path("annotated.csv").read_text().splitlines()
    assert lines[0].startswith("action_id;job_id;operation;invocation_names;original_operators;total_time;")
    assert any("fully_connected_0,fully_connected_1;tosa.conv2d@L8 tosa.rescale@L12" in line for line in lines)
    assert run("annotate model_debug_info runtime.csv steps.csv") == 0
    dumped = "torq-compile fc.mlir -o m.vmfb --dump-compilation-phases-to=phases"
    assert run(dumped) == 0
    assert run("annotate phases/fc.9.executable-targets.mlir runtime.csv other.csv") == 0
    assert Path("steps.csv").read_text() == Path("other.csv").read_text()


CUSTOM = "module { func.func @f() { torq_hw.nss_task { } return } }\n"


def dumped() -> None:
    """A log, and a dump of which the compiler printed its own assembly; `generic.mlir` is the same in generic form."""
    assert run("zoo fc --format tosa -o fc.mlir") == 0
    assert run("torq-compile fc.mlir -o m.vmfb --dump-compilation-phases-to=phases") == 0
    assert run("torq-run-module --module=m.vmfb --torq_profile=runtime.csv") == 0
    Path("phases/fc.9.executable-targets.mlir").rename("generic.mlir")
    Path("fc.10.executable-targets.mlir").write_text(CUSTOM)


def tool(path: Path, body: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("found_by", ["option", "variable", "path"])
def test_the_vendors_own_tool_turns_its_assembly_into_generic_form(
    found_by: str, workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dumped()
    body = 'case "$*" in *--mlir-print-op-generic*--mlir-print-debuginfo*) cat generic.mlir;; *) exit 1;; esac'
    opt = tool(workplace / "bin" / "iree-opt", body)
    if found_by == "variable":
        monkeypatch.setenv("IREE_OPT", str(opt))
    elif found_by == "path":
        tool(workplace / "bin" / "torq-compile", "")
        monkeypatch.setenv("PATH", f"{workplace / 'bin'}:/usr/bin:/bin")
    given = f"--iree-opt {opt}" if found_by == "option" else ""
    assert run(f"annotate fc.10.executable-targets.mlir runtime.csv a.csv {given}") == 0
    assert "fully_connected" in Path("a.csv").read_text()


def test_without_that_tool_the_message_names_what_would_help(
    workplace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    dumped()
    monkeypatch.delenv("IREE_OPT", raising=False)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    assert run("annotate fc.10.executable-targets.mlir runtime.csv a.csv") == 2
    said = capsys.readouterr().err
    assert (
        "expected generic form (--mlir-print-op-generic), or the vendor's iree-opt: --iree-opt FILE, IREE_OPT" in said
    )
    assert run("annotate fc.10.executable-targets.mlir runtime.csv a.csv --iree-opt nowhere") == 2
    assert "--iree-opt nowhere: there is no such file" in capsys.readouterr().err
    stock = tool(workplace / "iree-opt", 'echo "m.mlir:1:2: error: Dialect not found" >&2; exit 1')
    assert run(f"annotate fc.10.executable-targets.mlir runtime.csv a.csv --iree-opt {stock}") == 2
    assert "does not read it either (m.mlir:1:2: error: Dialect not found)" in capsys.readouterr().err


def test_as_many_ops_have_no_cost_when_run_as_when_compiled(capsys: pytest.CaptureFixture[str]) -> None:
    x = "tensor<4xbf16>"
    calls = "\n".join(f"%{n} = stablehlo.custom_call @foo(%{n - 1}) : ({x}) -> {x}" for n in (1, 2))
    text = f"func.func @main(%a: {x}) -> {x} {{\n%0 = stablehlo.abs %a : {x}\n{calls}\nreturn %2 : {x}\n}}"
    Path("m.mlir").write_text(text)
    said = []
    for line in ("torq-compile m.mlir -o m.vmfb", "torq-run-module --module=m.vmfb"):
        assert run(line) == 0
        notes = capsys.readouterr().err.splitlines()
        at = notes.index("note: 2 ops are not costed and take no time here:")
        said.append(notes[at : at + 2])
    assert said[0] == said[1]
    assert said[0][1].startswith("note:   stablehlo.custom_call (2 ops, first custom_call_0): ")


def test_rescales_of_inputs_are_no_transfers_of_their_own() -> None:
    """add of two int8 tensors with a rescale before and behind: DMA moves input and output, and nothing else."""
    x, wide = "tensor<1x56x56x24xi8>", "tensor<1x56x56x24xi32>"
    scales = "tensor<1xi32>, tensor<1xi8>, {zero}, {out}"
    flags = (
        "{input_unsigned = false, output_unsigned = false, per_channel = false, rounding_mode = SINGLE_ROUND, "
        "scale32 = true}"
    )

    def rescale(name: str, data: str, kinds: tuple[str, str], zeros: tuple[str, str]) -> str:
        types = (
            f"({kinds[0]}, {scales.format(zero=f'tensor<1x{zeros[0]}>', out=f'tensor<1x{zeros[1]}>')}) -> {kinds[1]}"
        )
        return f"%{name} = tosa.rescale %{data}, %m, %s, %z{zeros[0]}, %z{zeros[1]} {flags} : {types}\n"

    body = "".join(
        f'%{name} = "tosa.const"() <{{values = dense<{value}> : tensor<1x{kind}>}}> : () -> tensor<1x{kind}>\n'
        for name, value, kind in (("m", 1 << 30, "i32"), ("s", 30, "i8"), ("zi8", 0, "i8"), ("zi32", 0, "i32"))
    )
    body += rescale("l", "a", (x, wide), ("i8", "i32")) + rescale("r", "a", (x, wide), ("i8", "i32"))
    body += f"%t = tosa.add %l, %r : ({wide}, {wide}) -> {wide}\n" + rescale("o", "t", (wide, x), ("i32", "i8"))
    Path("add.mlir").write_text(f"func.func @main(%a: {x}) -> {x} {{\n{body}return %o : {x}\n}}\n")
    assert run("torq-compile add.mlir -o m.vmfb --torq-enable-profiling --csv-version=C") == 0
    rows = [line.split(",") for line in Path("timeline.csv").read_text().splitlines()[1:]]
    assert sum(int(row[-1]) for row in rows if row[-1]) == 2 * 56 * 56 * 24 + 340 + 640  # and control


def test_tiles_of_one_large_op_form_no_long_chains(monkeypatch: pytest.MonkeyPatch) -> None:
    """Placing a chain takes time with the cube of its length: 1024 tiles of one comparison took minutes."""
    lengths: list[int] = []
    place = OperandPlacer.place_chain

    def placed(self: OperandPlacer, chain: Chain, lane: int, **how: int) -> list[OperandPlacement]:
        lengths.append(len(chain.ops))
        return place(self, chain, lane, **how)  # type: ignore[arg-type]

    monkeypatch.setattr(OperandPlacer, "place_chain", placed)
    x, out = "tensor<1024x1024xi32>", "tensor<1024x1024xi1>"
    body = f"%0 = tosa.equal %a, %b : ({x}, {x}) -> {out}\nreturn %0 : {out}"
    Path("m.mlir").write_text(f"func.func @main(%a: {x}, %b: {x}) -> {out} {{\n{body}\n}}\n")
    assert run("torq-compile m.mlir -o m.vmfb") == 0
    assert 1 < max(lengths) <= 32
