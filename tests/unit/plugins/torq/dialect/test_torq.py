"""Torq's command lines, tables and dump: against the vendor's formats as published, and MLIR's own parser."""

from __future__ import annotations

import csv
import io
import itertools
from dataclasses import replace
from math import ceil
from pathlib import Path

import numpy as np
import pytest

from opscope import api
from opscope.compiler import compile_graph
from opscope.core.errors import UsageError
from opscope.estimate.precision import with_precision
from opscope.estimate.price import Machine
from opscope.graph.graph import DType, Graph
from opscope.options import CompileOptions
from opscope.plugins.torq.dialect import flags as torq
from opscope.plugins.torq.dialect import sequenced as slices
from opscope.plugins.torq.dialect.dump_writer import ExecutableTargets
from opscope.plugins.torq.dialect.hardware import hardware
from opscope.plugins.torq.dialect.tables import compile_table, host_table, quoted, runtime_table
from opscope.program.program import Program
from opscope.program.sequence import sequence_of
from opscope.simulation import simulate
from support.build import Sketch


def network() -> Graph:
    """A dense layer on a slice and a normalisation on the CSS."""
    draw = Sketch("net", dtype=DType.I8)
    data = draw.dense(draw.input(1, 64), 32, name="fc")
    return draw.graph(draw.same("layer_norm", data, name="nor, malise", axes=(1,)))


def program_of(graph: Graph) -> Program:
    program = compile_graph(graph, Machine(hardware(None)), CompileOptions(network="main"))
    located = tuple(replace(op, location=place) for op, place in zip(program.ops, PLACES, strict=True))
    return replace(program, ops=located)


PLACES = ('loc("net.mlir":3:10)', 'loc(fused["net.mlir":5:10, "net.mlir":6:10])')


@pytest.fixture(scope="module")
def scheduled() -> slices.Scheduled:
    program = program_of(network())
    return slices.Scheduled(program, sequence_of(program), simulate(program), ())


@pytest.fixture(scope="module")
def ran(scheduled: slices.Scheduled) -> slices.Ran:
    timeline = simulate(scheduled.program)
    bounds = scheduled.sequence.bounds(timeline.lane_ready, timeline.start, timeline.issue_end, timeline.done)
    return slices.Ran(scheduled.program, scheduled.sequence, bounds, None)


# -- tables


def test_version_a_has_the_columns_of_the_manual(scheduled: slices.Scheduled) -> None:
    """ID, Start, End, Location, Op Type; worked out by hand from 4.754 bytes a cycle."""
    rows = list(csv.reader(io.StringIO(compile_table(scheduled, "A"))))
    assert rows[0] == ["DI0", "1", "15", 'loc("net.mlir":3:10)', "DMA_IN"]  # 64 bytes: 1 to start, 13.5 to move
    transfers = ["DI0", "DI1", "DI2", "DI3", "DI4", "CDMA_L2D5", "DI6", "DI7", "CDMA_D2L8", "DI9", "DO10"]
    assert [row[0] for row in rows] == [*transfers, "S0", "CSS0"]
    dense = next(row for row in rows if row[0] == "S0")
    assert dense[4] == "fully_connected"
    assert int(dense[2]) - int(dense[1]) == 64  # 64 channels a cycle: one for each of 64 features
    css = rows[-1]
    assert (int(css[2]) - int(css[1]), css[3], css[4]) == (8000, PLACES[1], "CSS")


def test_version_b_adds_bytes_and_the_slice(scheduled: slices.Scheduled) -> None:
    lines = compile_table(scheduled, "B").splitlines()
    assert lines[0] == 'DI0,1,15,"loc(""net.mlir"":3:10)",DMA_IN,64'
    assert [line.partition(",")[0] for line in lines if line.startswith("S")] == ["S0_0"]
    assert lines[-1].endswith(",CSS")


def test_version_c_is_by_task_with_a_header_and_an_empty_field_of_bytes(scheduled: slices.Scheduled) -> None:
    lines = compile_table(scheduled, "C").splitlines()
    assert lines[0] == "taskId, elapsed_time(us), timestamp(us), event, location, bytes"
    assert lines[1] == '0,14,1,DMA In,"loc(""net.mlir"":3:10)",64'
    assert next(line for line in lines if ",Slice 0," in line).endswith(",")
    assert lines[-1].split(",")[1] == "8000"


def test_a_location_with_commas_or_quotes_is_quoted_as_csv_has_it(scheduled: slices.Scheduled) -> None:
    assert quoted(PLACES[0]) == '"loc(""net.mlir"":3:10)"'
    assert quoted(PLACES[1]) == '"loc(fused[""net.mlir"":5:10, ""net.mlir"":6:10])"'
    assert quoted("loc(unknown)") == "loc(unknown)"
    for version, fields in (("A", {5}), ("B", {5, 6}), ("C", {6})):
        rows = list(csv.reader(io.StringIO(compile_table(scheduled, version))))
        assert {len(row) for row in rows} == fields


def test_our_own_table_is_told_from_the_vendors_even_without_commas(
    scheduled: slices.Scheduled, tmp_path: Path
) -> None:
    path = tmp_path / "t.csv"
    for version in "ABC":
        lines = [line for line in compile_table(scheduled, version).splitlines() if "fused" not in line]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        assert api.import_profile([path]).run.info.provenance == "estimated"


def test_a_transfer_takes_its_bytes_at_the_rate_rounded_up(scheduled: slices.Scheduled) -> None:
    """8 x 0.65 x 16/17.5 bytes a cycle in and out, 16 x 0.36 to the CSS: the vendor's formulas, to the cycle."""
    rows = [line.split(",") for line in compile_table(scheduled, "C").splitlines()[1:]]
    rates = {
        "DMA In": 8 * 0.65 * 16 / 17.5,
        "DMA Out": 8 * 0.65 * 16 / 17.5,
        "CDMA LRAM to DTCM": 16 * 0.36,
        "CDMA DTCM to LRAM": 16 * 0.36,
    }
    moved = [(row[3], int(row[1]), int(row[-1])) for row in rows if row[3] in rates]
    assert {event for event, _, _ in moved} == set(rates)
    assert all(cycles == max(1, ceil(size / rates[event])) for event, cycles, size in moved)
    spans = sorted((int(row[2]), int(row[2]) + int(row[1])) for row in rows if row[3] == "DMA In")
    assert all(before[1] <= after[0] for before, after in itertools.pairwise(spans))


def test_the_tables_tell_of_every_start(scheduled: slices.Scheduled) -> None:
    starts = sum(1 for _ in scheduled.sequence.starts())
    assert len(compile_table(scheduled, "A").splitlines()) == starts
    assert len(compile_table(scheduled, "C").splitlines()) == starts + 1


def test_the_runtime_table_has_one_row_per_program_and_adds_up(ran: slices.Ran) -> None:
    header, *lines = runtime_table(ran).splitlines()
    assert header == "id;time_since_open;time_since_start;location"
    rows = [line.split(";") for line in lines]
    assert [row[0] for row in rows] == [str(job.number) for job in ran.sequence.jobs]
    assert [row[3] for row in rows] == list(PLACES)
    total = int(ran.bounds[-1][1] / 800)
    assert int(rows[-1][1]) == total == sum(int(row[2]) for row in rows)


def test_the_host_table_is_ordered_and_every_begin_has_its_end(ran: slices.Ran) -> None:
    header, *lines = host_table(ran).splitlines()
    assert header == "dispatch_name,invocation_id,action_id,timestamp_us,event"
    rows = [line.split(",") for line in lines]
    times = [int(row[3]) for row in rows]
    assert times == sorted(times)
    open_: list[tuple[str, ...]] = []
    for name, invocation, action, _, event in rows:
        stage, _, word = event.rpartition("_")
        if word == "BEGIN":
            open_.append((name, invocation, action, stage))
        else:
            assert open_.pop() == (name, invocation, action, stage)
    assert not open_
    waits = [row for row in rows if row[4].startswith("NSS_WAIT")]
    assert int(waits[-1][3]) == int(ran.bounds[-1][1] / 800)


# -- the dump


def test_stock_iree_parses_the_dump_and_finds_what_was_scheduled(scheduled: slices.Scheduled) -> None:
    ir = pytest.importorskip("iree.compiler.ir", reason="the extra [mlir] is not installed")
    context = ir.Context()
    context.allow_unregistered_dialects = True
    module = ir.Module.parse(ExecutableTargets(scheduled).render(), context)
    found: list[str] = []
    cycles: list[int] = []

    def visit(op: ir.Operation) -> object:
        found.append(op.name)
        if "torq-async-duration-cycles" in op.attributes:
            cycles.append(op.attributes["torq-async-duration-cycles"].value)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    starts = [step for _, step in scheduled.sequence.starts()]
    assert len(cycles) == len(starts)
    assert sum(name.startswith("torq_hw.") and name.endswith("_start") for name in found) == len(starts)
    assert sum(name.startswith("torq_hw.") and name.endswith("_wait") for name in found) == len(starts)
    assert found.count("torq_hw.nss_task") == sum(len(job.tasks) for job in scheduled.sequence.jobs)
    assert found.count("torq_hl.start_program") == found.count("torq_hl.wait_program") == len(scheduled.sequence.jobs)
    assert module.operation.attributes["opscope.producer"].value.startswith("opscope ")
    assert {"hal.executable", "hal.executable.variant", "func.func", "torq_hw.dispatch_profiling"} <= set(found)
    assert cycles.count(8000) == 1


def test_the_dump_says_where_everything_comes_from_and_what_it_takes(scheduled: slices.Scheduled) -> None:
    text = ExecutableTargets(scheduled).render()
    peak = scheduled.program.metrics.local_bytes[0]
    assert f"lram_peak_bytes = {peak} : i64" in text
    assert f"total_cycle = {round(scheduled.timeline.total_cycles)} : i64" in text
    assert all(place in text for place in PLACES)
    assert 'name = "slice_program_torq_hl.fully_connected_0"' in text
    assert '"torq_hw.cdma_start"(%b_dtcm, %b_lram)' in text  # the destination comes first
    assert text == ExecutableTargets(scheduled).render()


def test_times_of_tasks_follow_each_other(scheduled: slices.Scheduled) -> None:
    ir = pytest.importorskip("iree.compiler.ir", reason="the extra [mlir] is not installed")
    context = ir.Context()
    context.allow_unregistered_dialects = True
    module = ir.Module.parse(ExecutableTargets(scheduled).render(), context)
    spans: list[tuple[int, int]] = []

    def visit(op: ir.Operation) -> object:
        if op.name == "torq_hw.nss_task":
            spans.append(tuple(op.attributes[f"torq-{end}-time-cycles"].value for end in ("start", "end")))
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    assert spans[0][0] == 0
    assert spans[-1][1] == round(scheduled.timeline.total_cycles)
    assert all(before[1] == after[0] for before, after in itertools.pairwise(spans))


# -- hardware


def test_the_built_in_hardware_is_the_target_of_the_catalogue() -> None:
    assert hardware(None) == hardware("SL2610")
    assert hardware(None).name == "torq-sl2610"


def test_hardware_of_ones_own_changes_what_its_fields_say() -> None:
    target = hardware("7:1024:4:coral_v1:nss_v1:16:0.5")
    assert target.name == "torq-hw-7"
    assert target.local is not None
    assert target.local.bytes.value == 1024 * 1024
    assert [engine.units for engine in target.engines] == [4, 1]
    routes = {route.carries: route for route in target.routes}
    assert routes["read"].peak(target.clocks.core_hz.value) == 16
    assert routes["read"].reached == pytest.approx(0.5 * 16 / 17.5)
    assert routes["bring"].reached == pytest.approx(0.36)


def test_the_defaults_of_the_option_are_the_vendors() -> None:
    """8 bytes a cycle at a factor of 1; any other pair than coral_v1 with nss_v1 has a CDMA at 0.8."""
    routes = {route.carries: route for route in hardware("0:512:2:coral_v2:nss_v1").routes}
    assert routes["write"].reached == pytest.approx(16 / 17.5)
    assert routes["fetch"].reached == pytest.approx(0.8)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SL9999", r"--torq-hw=SL9999: not known; expected SL2610 or SR200 or ID:LRAM_KB:"),
        ("1:512:2", r"--torq-hw=1:512:2: 3 fields; expected ID:LRAM_KB:SLICES:CSS:NSS"),
        ("1:512:0:coral_v1:nss_v1", r"--torq-hw: SLICES is '0'; expected a whole number from 1 to 64"),
        ("-1:512:2:coral_v1:nss_v1", r"--torq-hw: ID is '-1'; expected a whole number from 0 to 1,000,000"),
        ("1:512:2.5:coral_v1:nss_v1", r"--torq-hw: SLICES is '2\.5'"),
        ("1:nan:2:coral_v1:nss_v1", r"--torq-hw: LRAM_KB is 'nan'"),
        ("1:512:2:coral_v9:nss_v1", r"--torq-hw: CSS is 'coral_v9'; expected one of coral_v1, coral_v2"),
        ("1:512:2:coral_v1:nss_v1:8:2", r"--torq-hw: FACTOR is '2'; expected a number above 0, at most 1"),
    ],
)
def test_hardware_that_cannot_be_is_refused(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        hardware(text)


# -- command lines


def test_every_flag_that_does_something_is_explained_by_the_help() -> None:
    from opscope.plugins.torq.dialect.commands import COMPILE_FLAGS, RUN_FLAGS

    for table, meanings in ((torq.COMPILE, COMPILE_FLAGS), (torq.RUN, RUN_FLAGS)):
        assert {flag.parameter for flag in table if flag.parameter} == set(meanings)


def test_a_compile_line_becomes_a_call() -> None:
    words = ["fc.mlir", "-o", "m.vmfb", "--torq-enable-profiling", "--torq-hw=SL2610", "--csv-version", "b"]
    call = torq.compile_call(words)
    assert call == torq.CompileCall(
        Path("fc.mlir"), Path("m.vmfb"), Path("timeline.csv"), None, None, "SL2610", None, "B", ()
    )
    assert torq.compile_call(["--help"]) is None


def test_no_table_is_written_unless_profiling_is_on() -> None:
    call = torq.compile_call(["fc.mlir", "-o", "m.vmfb", "--torq-dump-profiling=t.csv"])
    assert call is not None
    assert call.timeline is None
    assert call.notes == ("--torq-dump-profiling: no file without --torq-enable-profiling",)


def test_a_run_line_becomes_a_call() -> None:
    words = ["--device=torq", "--module=m.vmfb", "--input=1xi8=0", "--input=2xf32=1", "--torq_profile=r.csv"]
    call = torq.run_call(words)
    assert call is not None
    assert (call.inputs, call.profile, call.host) == (("1xi8=0", "2xf32=1"), Path("r.csv"), None)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-o", "m.vmfb"], "torq-compile: no model file; expected `torq-compile MODEL"),
        (["a.mlir", "b.mlir", "-o", "m"], "torq-compile: 2 model files"),
        (["a.mlir"], "torq-compile: no -o; expected -o FILE"),
        (["a.mlir", "-o", "m", "--csv-version=D"], "--csv-version=D: not known; expected one of A, B, C"),
        (["a.mlir", "-o", "m", "--torq-dump-profile=x"], "no such flag; expected --torq-dump-profiling"),
    ],
)
def test_a_compile_line_that_makes_no_sense_is_refused(words: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        torq.compile_call(words)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--device=torq"], "torq-run-module: no --module; expected --module=FILE.vmfb"),
        (["--device=vulkan", "--module=m"], "--device=vulkan: not simulated here; expected torq"),
        (["m.vmfb"], "'m.vmfb' is not a flag"),
    ],
)
def test_a_run_line_that_makes_no_sense_is_refused(words: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        torq.run_call(words)


@pytest.mark.parametrize(
    "flags",
    [
        ["-o", "net.mlir"],
        ["-o", "linked.vmfb"],
        ["-o", "m.vmfb", "--torq-enable-profiling", "--torq-dump-profiling=net.mlir"],
    ],
)
def test_the_model_is_never_written_over(flags: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("net.mlir").write_text("module {}")
    Path("linked.vmfb").symlink_to("net.mlir")
    call = torq.compile_call(["net.mlir", *flags])
    assert call is not None
    with pytest.raises(UsageError, match="is one of the files that are read; expected another file to write to"):
        torq.compile_program(call)
    assert Path("net.mlir").read_text() == "module {}"


def test_two_outputs_do_not_share_a_file() -> None:
    call = torq.compile_call(["net.mlir", "-o", "m", "--torq-enable-profiling", "--torq-dump-profiling=./m"])
    assert call is not None
    with pytest.raises(UsageError, match="m: is to be written twice; expected a file for each output"):
        torq.compile_program(call)


@pytest.mark.parametrize(
    "flags",
    [["--torq_profile=m.vmfb"], ["--torq_profile_host=./m.vmfb"], ["--input=@a.npy", "--output=@a.npy"]],
)
def test_what_a_run_reads_is_never_written_over(
    flags: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    call = torq.run_call(["--module=m.vmfb", *flags])
    assert call is not None
    with pytest.raises(UsageError, match="is one of the files that are read"):
        torq.run_program(call)


def test_locations_of_fused_ops_are_told_together_and_others_by_name() -> None:
    assert slices.fused_location(['loc("a":1:2)', 'loc("a":1:2)']) == 'loc("a":1:2)'
    assert slices.fused_location(['loc("a":1:2)', 'loc("b")']) == 'loc(fused["a":1:2, "b"])'
    assert slices.fused_location([]) == "loc(unknown)"
    assert slices._location("node 3", 'x "y"\n') == 'loc("x \\"y\\"?")'


def test_a_target_without_a_sequencer_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        UsageError, match=r"aic100-std: has no sequencer; expected a target whose file has \[sequencer\]"
    ):
        slices.schedule_model(tmp_path / "x.mlir", with_precision("aic100-std", None))


def test_outputs_are_in_the_order_of_the_function(scheduled: slices.Scheduled) -> None:
    outputs = (np.zeros((1, 2), np.int8), np.ones((2,), np.float32))
    found = slices.Ran(scheduled.program, scheduled.sequence, [], outputs)
    assert slices.printed_outputs(found) == [
        "result[0]: hal.buffer_view",
        "1x2xi8=[0 0]",
        "result[1]: hal.buffer_view",
        "2xf32=1 1",
    ]
