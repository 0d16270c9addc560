"""`opscope compare` and `baseline` from the command line: exit codes, files, and every number from raw spans."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

import opscope
from opscope.cli import main
from opscope.core.provenance import Provenance
from opscope.recording.build import to_run
from opscope.recording.folder_reader import read_columns, read_run
from opscope.recording.recording import Metric, OpRecord, Recording, empty_trace
from opscope.recording.run import Run
from opscope.recording.trace import COUNTER, EDGE, NONE, SPAN, Lane, SpanKind, Trace, blank_spans
from opscope.workflows import comparing
from support.recording.compare_build import op_infos, rows
from support.recording.run_build import write_run


def imported(
    found: list[tuple[SpanKind, int, int, int, int]], *, latency: int, provenance: Provenance, ops: int
) -> Recording:
    spans = blank_spans(len(found))
    for key, column in zip(("kind", "op", "inference", "start_ns", "end_ns"), zip(*found, strict=True), strict=False):
        spans[key] = column
    for key in ("command", "ucycles", "pcycles", "waits_on"):
        spans[key] = NONE
    trace = Trace((Lane(0, 0, "HVX"),), ("work",), spans, np.zeros(0, EDGE), (), np.zeros(0, COUNTER), provenance)
    named = tuple(OpRecord(op.name, type=op.type, time_ns=10 * n) for n, op in enumerate(op_infos(ops)))
    metrics = (Metric("latency", latency, "ns"),)
    return Recording("test", provenance, trace, named, source="test", metrics=metrics, target="chip")


@pytest.fixture
def folder(tmp_path: Path) -> Callable[..., Path]:
    """`folder("name", spans, latency=…)` leaves a run there."""

    def leave(
        name: str,
        found: list[tuple[SpanKind, int, int, int, int]],
        *,
        latency: int = 100,
        provenance: Provenance = Provenance.SIMULATED,
        ops: int = 3,
    ) -> Path:
        recording = imported(found, latency=latency, provenance=provenance, ops=ops)
        write_run(to_run(recording, command=(), created="", sha256=None), tmp_path / name)
        return tmp_path / name

    return leave


def spans(*lengths: int) -> list[tuple[SpanKind, int, int, int, int]]:
    """One op after the other."""
    ends = np.cumsum(lengths).tolist()
    return [(SpanKind.OP, n, 0, end - length, end) for n, (end, length) in enumerate(zip(ends, lengths, strict=True))]


def parts_by_hand(run: Run) -> dict[str, float]:
    """Op → its part of the clock, from the spans of the folder, instant by instant."""
    table = run.trace.spans.tolist()
    names = SPAN.names or ()
    found: dict[str, Fraction] = defaultdict(Fraction)
    spans = [dict(zip(names, row, strict=True)) for row in table]
    for instant in range(max((span["end_ns"] for span in spans), default=0)):
        active = [span for span in spans if span["start_ns"] <= instant < span["end_ns"]]
        lanes = [span for span in active if span["kind"] == SpanKind.OP]
        moving = [span for span in active if span["kind"] == SpanKind.TRANSFER]
        for span in lanes or moving:
            name = run.ops[span["op"]].name if span["op"] != NONE else "(no op)"
            found[name] += Fraction(1, len(lanes or moving))
    return {name: float(value) for name, value in found.items()}


def test_every_part_of_the_explanation_is_what_the_raw_spans_say(
    folder: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    @settings(max_examples=40)  # each writes, reads and compares two folders
    @given(rows(3), rows(3))
    def hold(one: list[tuple[SpanKind, int, int, int, int]], other: list[tuple[SpanKind, int, int, int, int]]) -> None:
        once = [[(kind, op, 0, start, end) for kind, op, _, start, end in found] for found in (one, other)]
        paths = [folder(name, found, latency=50) for name, found in zip(("a", "b"), once, strict=True)]
        assert main(["compare", *map(str, paths), "--json"]) == 0
        fields = json.loads(capsys.readouterr().out)
        by_hand = [parts_by_hand(read_run(path)) for path in paths]
        if not all(by_hand):
            return  # a run without a timeline: times of ops take the place of parts
        shown = {part["name"]: part["ns"] for part in fields["explanations"]["op"]["parts"]}
        for name in {*by_hand[0], *by_hand[1]}:
            expected = round(by_hand[1].get(name, 0)) - round(by_hand[0].get(name, 0))
            assert shown.get(name, 0) == pytest.approx(expected, abs=1)

    hold()


@settings(max_examples=40)
@given(rows(3))
def test_the_quick_reader_sees_what_the_whole_reader_sees(found: list[tuple[SpanKind, int, int, int, int]]) -> None:
    from tempfile import TemporaryDirectory

    recording = imported(found, latency=9, provenance=Provenance.MEASURED, ops=3)
    run = to_run(recording, command=(), created="", sha256=None)
    with TemporaryDirectory() as scratch:
        write_run(run, Path(scratch, "run"))
        info, ops, summary, columns = read_columns(Path(scratch, "run"))
        whole = read_run(Path(scratch, "run"))
        assert comparing.figures_of(Path(scratch, "run"), label="x") == comparing.figures_of(whole, label="x")
    assert (info, ops, summary) == (whole.info, whole.ops, whole.summary)
    for name, column in columns._asdict().items():
        assert column.tolist() == whole.trace.spans[name].tolist()


@pytest.mark.parametrize(
    ("limit", "code"),
    [
        ("latency>5%", 1),
        ("latency>30%", 0),
        ("latency>10ns", 1),
        ("peak_memory>0", 2),
        ("op:layer0/op0>0", 0),
        ("op:layer0/op1>0", 0),
        ("throughput<0", 2),
    ],
)
def test_the_exit_code_is_the_verdict(folder: Callable[..., Path], limit: str, code: int) -> None:
    base, new = folder("a", spans(50, 30, 20), latency=100), folder("b", spans(70, 30, 20), latency=120)
    assert main(["compare", str(base), str(new), "--fail-on", limit]) == code


def test_a_run_against_itself_passes_every_form(folder: Callable[..., Path], tmp_path: Path) -> None:
    run = str(folder("a", spans(50, 30, 20)))
    for form in ("text", "json", "md", "junit", "github"):
        output = tmp_path / f"out.{form}"
        arguments = ["compare", run, run, "--fail-on", "latency>0", "--format", form, "-o", str(output)]
        assert main(arguments) == 0
        first = output.read_bytes()
        assert first
        assert main(arguments) == 0
        assert output.read_bytes() == first


def test_what_is_not_comparable_is_said_in_one_line(
    folder: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    base, new = folder("a", spans(5, 5, 5), provenance="measured"), folder("b", spans(5, 5, 5))
    assert main(["compare", str(base), str(new)]) == 2
    assert capsys.readouterr().err == (
        "opscope: a and b: not comparable: provenance is measured and simulated; expected the same, "
        "or --allow provenance\n"
    )
    assert main(["compare", str(base), str(new), "--allow", "provenance,target"]) == 0
    assert "compared in spite of this: provenance is measured and simulated" in capsys.readouterr().out
    assert main(["compare", str(base), str(new), "--allow", "provenance", "--allow", "target"]) == 0
    capsys.readouterr()
    assert main(["compare", str(base), str(new), "--allow", "everything"]) == 2
    assert "--allow everything: not known; expected of target, provenance" in capsys.readouterr().err
    assert main(["compare", str(base), str(new), "--side-by-side"]) == 0
    assert "b [simulated]" in capsys.readouterr().out


def test_a_prediction_and_a_measurement_stand_side_by_side_without_being_asked(
    folder: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    base, new = folder("a", spans(5, 5, 5)), folder("b", spans(5, 5, 5), provenance="measured")
    assert main(["compare", str(base), str(new)]) == 0
    shown = capsys.readouterr().out
    assert "where the prediction is off, by what it costs" in shown
    assert "measured ÷ predicted" in shown
    assert main(["compare", str(base), str(new), "--fail-on", "latency>5%"]) == 2
    assert "not comparable: provenance is simulated and measured" in capsys.readouterr().err
    assert main(["compare", str(base), str(new), "--format", "junit"]) == 2


def test_a_baseline_is_saved_checked_and_updated(
    folder: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base, new = str(folder("a", spans(50, 30, 20), latency=100)), str(folder("b", spans(70, 30, 20), latency=120))
    file = str(tmp_path / "perf" / "net.json")
    assert main(["baseline", "save", base, "-o", file]) == 0
    assert main(["baseline", "save", base, "-o", file]) == 2
    assert "exists; expected a new file, or `opscope baseline update RUN" in capsys.readouterr().err
    assert main(["baseline", "check", base, file, "--fail-on", "latency>0"]) == 0
    assert main(["baseline", "check", new, file, "--fail-on", "latency>0"]) == 1
    assert main(["compare", file, new, "--fail-on", "latency>0"]) == 1
    assert main(["compare", new, file, "--fail-on", "latency>0"]) == 0
    capsys.readouterr()
    assert main(["baseline", "update", new, file]) == 0
    output = capsys.readouterr()
    assert "+20.0%" in output.out
    assert output.err.endswith("net.json\n")
    assert main(["baseline", "check", new, file, "--fail-on", "latency>0"]) == 0
    assert main(["baseline", "update", new, file]) == 0
    assert "which had the same content" in capsys.readouterr().err


def test_updating_with_something_else_replaces_and_says_so(
    folder: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(tmp_path / "net.json")
    assert main(["baseline", "save", str(folder("a", spans(5, 5, 5))), "-o", file]) == 0
    other = str(folder("b", spans(5, 5, 5), provenance="measured"))
    assert main(["baseline", "update", other, file]) == 0
    assert "note: net.json and b: not comparable: provenance is simulated and measured" in capsys.readouterr().err
    assert main(["baseline", "check", other, file]) == 0


def test_three_runs_and_more_are_put_side_by_side(
    folder: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [str(folder(name, spans(5, 5, n), latency=10 + n)) for n, name in enumerate("abc")]
    assert main(["compare", *runs, "--by", "type"]) == 0
    out = capsys.readouterr().out
    assert out.index("a [simulated]") < out.index("c [simulated]")
    assert main(["compare", *runs, "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["runs"]) == 3
    for wrong, words in ((["--fail-on", "latency>0"], "expected two runs"), (["--format", "junit"], "shows a verdict")):
        assert main(["compare", *runs, *wrong]) == 2
        assert words in capsys.readouterr().err
    assert main(["compare", runs[0]]) == 2
    assert "expected at least two runs" in capsys.readouterr().err


def test_runs_with_the_same_name_are_told_apart_by_their_paths(
    folder: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for place in ("main", "branch"):
        (tmp_path / place).mkdir()
        folder(f"{place}/net.run", spans(5, 5, 5))
    assert main(["compare", str(tmp_path / "main/net.run"), str(tmp_path / "branch/net.run")]) == 0
    assert "main/net.run: " in capsys.readouterr().out


@pytest.mark.parametrize("name", ["run.json", "summary.json", "ops.parquet", "spans.parquet"])
def test_a_damaged_run_is_an_error_of_one_line(
    folder: Callable[..., Path], name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run = folder("a", spans(5, 5, 5))
    whole = (run / name).read_bytes()
    for damaged in (b"", whole[: len(whole) // 2], b"{}", b"PAR1" + whole[4:-4][::-1] + b"PAR1", None):
        if damaged is None:
            (run / name).unlink()
        else:
            (run / name).write_bytes(damaged)
        assert main(["compare", str(run), str(run)]) == 2
        error = capsys.readouterr().err
        assert error.startswith("opscope: ")
        assert error.count("\n") == 1


def test_a_number_out_of_range_is_refused(folder: Callable[..., Path], capsys: pytest.CaptureFixture[str]) -> None:
    run = folder("a", spans(5, 5, 5))
    text = (run / "summary.json").read_text()
    (run / "summary.json").write_text(text.replace('"value_ns": 100', '"value_ns": 1' + "0" * 400))
    assert main(["compare", str(run), str(run)]) == 2
    assert "a: 'latency': a value is out of range; expected the folder of a run" in capsys.readouterr().err


def test_a_span_of_an_op_that_is_not_there_is_refused(
    folder: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    run, other = folder("a", spans(5, 5, 5)), folder("b", spans(5), ops=1)
    (run / "ops.parquet").write_bytes((other / "ops.parquet").read_bytes())
    assert main(["compare", str(run), str(run)]) == 2
    assert "a span is of op 2; expected one of the 1 in ops.parquet" in capsys.readouterr().err
    (run / "spans.parquet").write_bytes((other / "spans.parquet").read_bytes())
    assert main(["compare", str(run), str(run)]) == 2
    assert "summary.json: a total is of op 2; expected one of the 1 in ops.parquet" in capsys.readouterr().err
    assert main(["analyze", str(run)]) == 2
    assert "summary.json: a total is of op 2; expected one of the 1 in ops.parquet" in capsys.readouterr().err


def test_the_library_has_the_same_verbs(folder: Callable[..., Path], tmp_path: Path) -> None:
    base, new = folder("a", spans(50, 30, 20), latency=100), folder("b", spans(70, 30, 20), latency=120)
    found = opscope.compare(base, read_run(new), fail_on=["latency>5%"])
    assert found.word == "fail"
    assert opscope.save_baseline(base, tmp_path / "b.json").latency_ns == 100
    assert opscope.compare(tmp_path / "b.json", base, fail_on=["latency>0"]).word == "pass"
    updated = opscope.update_baseline(new, tmp_path / "b.json")
    assert updated.comparison is not None
    assert updated.comparison.metrics[0].change == 20
    assert opscope.side_by_side([base, new, base], by="layer").rows[0].values == (20, 20, 20)


def test_what_never_ends_is_not_read(folder: Callable[..., Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", str(folder("a", spans(10, 10, 10))), "/dev/zero"]) == 2
    assert "/dev/zero: is no regular file; expected a run, a profile file or a baseline file" in capsys.readouterr().err


def test_a_run_without_one_of_its_tables_is_named(
    folder: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    base, new = (folder(name, spans(10, 10, 10)) for name in ("a", "b"))
    (new / "ops.parquet").unlink()
    for command in (["compare", str(base), str(new)], ["analyze", str(new)]):
        assert main(command) == 2
        expected = "ops.parquet: cannot be read as Parquet (No such file or directory); expected the table of a run\n"
        assert capsys.readouterr().err.endswith(expected)


def test_a_network_in_two_formats_stands_side_by_side(tmp_path: Path) -> None:
    """Types are spelled as the formats do: the vocabulary of graphs tells that they are the same."""
    times = {"Conv": 30, "MaxPool": 10, "Gemm": 20}
    tflite = ("CONV_2D", "MAX_POOL_2D", "FULLY_CONNECTED")
    for name, types in (("onnx", tuple(times)), ("tflite", tflite)):
        ops = tuple(
            OpRecord(f"{name}{n}", type=kind, time_ns=ns)
            for n, (kind, ns) in enumerate(zip(types, times.values(), strict=True))
        )
        found = Recording("test", Provenance.MEASURED, empty_trace(Provenance.MEASURED), ops)
        write_run(to_run(found, command=(), created="", sha256=None), tmp_path / name)
    found_rows = opscope.side_by_side([tmp_path / "onnx", tmp_path / "tflite"]).rows
    assert [(row.name, row.values) for row in found_rows] == [
        ("onnx0", (30, 30)),
        ("onnx2", (20, 20)),
        ("onnx1", (10, 10)),
    ]


def test_profile_files_are_compared_as_the_runs_that_they_would_make(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    samples = Path(__file__).parents[2] / "samples"
    file, other = samples / "torq_compile_a.csv", samples / "torq_compile_b.csv"
    opscope.api.import_profile([file], tmp_path / file.name)
    found = []
    for base in (file, tmp_path / file.name):
        assert main(["compare", str(base), str(other), "--format", "json"]) == 0
        found.append(json.loads(capsys.readouterr().out))
    assert found[0] == found[1]


def test_a_file_that_is_no_profile_is_taken_for_a_baseline(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.json").write_text("{}")
    assert main(["compare", str(tmp_path / "x.json"), str(tmp_path / "x.json")]) == 2
    assert "expected opscope.baseline/1" in capsys.readouterr().err


def test_a_page_of_both_runs_is_written_beside_the_verdict(
    folder: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base, new = folder("base", spans(10, 20, 30)), folder("new", spans(10, 20, 40))
    page = tmp_path / "apart.html"
    assert main(["compare", str(base), str(new), "--page", str(page)]) == 0
    said = capsys.readouterr()
    assert "what explains the change" in said.out
    assert said.err == f"wrote {page}\n"
    assert page.read_text().startswith("<!DOCTYPE html>")
    (tmp_path / "base.json").write_text("{}")
    assert main(["compare", str(tmp_path / "base.json"), str(new), "--page", str(page)]) == 2
    assert "is no folder of a run; expected what `profile -o` leaves" in capsys.readouterr().err
