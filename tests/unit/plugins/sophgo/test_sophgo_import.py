"""Files of tpu-mlir → Run: laws, names of ops, cores, and gains that the graph of commands makes exact."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from opscope.analysis.laws import LAWS
from opscope.analysis.run_analysis import RunAnalysis
from opscope.analysis.timeline.replay import Replay
from opscope.core.errors import ImportFileError, UsageError
from opscope.core.meaning import Carries, Does, LaneRole
from opscope.core.provenance import Provenance
from opscope.importers.combine import combine
from opscope.importers.formats import find_format, read_profiles
from opscope.plugins.sophgo.compiled_files import read_mlir, read_placements
from opscope.recording.recording import Recording
from opscope.recording.run import Run
from opscope.recording.trace import NONE, SpanKind
from opscope.workflows.record import analysis_of
from support.plugins.sophgo_build import SAMPLES, SCHEDULES, schedule_text


def read(*names: str) -> Recording:
    return combine(read_profiles([SAMPLES / name for name in names]))


def run(*names: str) -> Run:
    return analysis_of(read(*names), command=(), created="", sha256=None).run


def test_files_are_known_by_their_content(tmp_path: Path) -> None:
    found = {name: find_format(SAMPLES / name).name for name in ("f16.txt.gz", "f16.mlir.gz", "f16.json.gz")}
    assert found == {
        "f16.txt.gz": "sophgo-profile",
        "f16.mlir.gz": "sophgo-mlir",
        "f16.json.gz": "sophgo-placements",
    }
    shutil.copy(SAMPLES / "i8.txt.gz", tmp_path / "any.name")
    assert find_format(tmp_path / "any.name").name == "sophgo-profile"


@pytest.mark.parametrize("path", SCHEDULES, ids=lambda path: path.name)
def test_every_law_of_runs_holds(path: Path) -> None:
    analysis = RunAnalysis(run(path.name))
    found = [check for law in LAWS for check in law(analysis)]
    assert [f"{check.law}: {check.detail}" for check in found if check.holds is False] == []
    assert sum(check.holds is True for check in found) >= 10


def test_commands_are_spans_on_the_lane_of_their_engine() -> None:
    found = run("f16.txt.gz", "f16.mlir.gz")
    trace = found.trace
    assert [(lane.name, lane.role) for lane in trace.lanes] == [
        ("BD", LaneRole.ENGINE),
        ("GDMA", LaneRole.TRANSFER),
    ]
    assert found.info.provenance is Provenance.VENDOR_MODEL
    assert found.summary.latency.value_ns == 1166
    assert found.info.clocks_hz == {"core": 1e9}
    moves = trace.spans[trace.spans["kind"] == SpanKind.TRANSFER]
    assert {found.routes[route].carries for route in moves["route"]} == {Carries.READ, Carries.WRITE}
    assert set(moves["does"]) == {int(Does.MOVE)}
    kinds = dict(zip((trace.names[name] for name in trace.spans["name"]), trace.spans["does"].tolist(), strict=True))
    assert kinds["Conv2D CONV"] == Does.COMPUTE
    assert kinds["Conv2D LANE_BC"] == Does.LAYOUT
    assert kinds["Cast AR"] == Does.LAYOUT
    assert kinds["Add AR"] == Does.COMPUTE


def test_bytes_and_bandwidth_are_those_of_the_chips_clock() -> None:
    found = run("i8.txt.gz", "i8.mlir.gz")
    said = [text for text in found.commands.attributes if "GB/s" in text]
    row = next(text for text in said if "command=GDMA 1\n" in text)
    size, rate = (float(re.search(rf"{name}=([\d.]+)", row)[1]) for name in ("bytes", "GB/s"))  # type: ignore[index]
    cycles = int(found.commands.rows["cycles"][found.commands.attributes.index(row)])
    assert rate == pytest.approx(size / cycles * 0.9, abs=0.005)


def test_loads_and_stores_belong_to_the_op_that_they_are_for() -> None:
    found = read("f16.txt.gz", "f16.mlir.gz")
    ops = {op.name: op for op in found.ops}
    assert not any(op.type in ("Load", "Store") for op in found.ops)
    assert ops["b_Relu"].type == "Conv2D"
    assert ops["b_Relu"].outer_read_bytes == 512 + 32
    assert set(ops["b_Relu"].busy_cycles) == {"BD", "GDMA"}
    assert found.target == "bm1684x"


def test_both_tables_of_ops_tell_the_same() -> None:
    mlir, table = read_mlir(SAMPLES / "f16.mlir.gz"), read_placements(SAMPLES / "f16.json.gz")
    assert {line: (op.opcode, op.results) for line, op in mlir.ops.items()} == {
        line: (op.opcode, op.results) for line, op in table.ops.items()
    }
    assert mlir.owners() == table.owners()
    assert mlir.chip == "bm1684x"


def test_without_them_ops_are_called_by_their_line() -> None:
    found = read("f16.txt.gz")
    assert {"Conv2D_21", "Load_16"} <= {op.name for op in found.ops}
    assert any("give final.mlir" in note for note in found.notes)


def test_memory_is_placed_in_ddr_and_in_lanes() -> None:
    found = read("f16.txt.gz", "f16.mlir.gz")
    assert found.totals is not None
    memory = {row.name: row for row in found.totals.memory}
    mlir = read_mlir(SAMPLES / "f16.mlir.gz")
    assert memory["DDR"].peak_bytes == (mlir.weight_bytes or 0) + (mlir.neuron_bytes or 0)
    assert memory["local memory"].capacity_bytes == 64 * 256 * 1024
    assert memory["local memory"].peak_bytes == 64 * (mlir.lane_bytes or 0)


def test_gains_are_exact_as_nothing_of_the_schedule_is_unexplained() -> None:
    found = run("f16.txt.gz", "f16.mlir.gz")
    order = RunAnalysis(found).order
    assert int(np.abs(order.lag).max()) == 0
    replay = Replay(order)
    assert replay.wall_ns() == 1166
    # The first load in no time: everything behind it moves up by its 227 cycles but what other loads hold back.
    first = np.flatnonzero(order.activities.start == 0)
    assert replay.without(first) == 1166 - 227


def test_several_cores_are_not_drawn_in_step() -> None:
    found = read("core_0.txt.gz", "core_1.txt.gz")
    assert found.cores == 2
    assert found.latency is not None
    assert (found.latency.value_ns, found.latency.low_ns) == (None, 3034)
    assert {lane.core for lane in found.trace.lanes} == {0}
    assert any("not on one clock" in note for note in found.notes)
    messages = found.trace.spans[found.trace.spans["does"] == Does.SYNC]
    assert len(messages)
    assert (messages["end_ns"] == messages["start_ns"]).all()


def test_one_core_of_several_says_so() -> None:
    found = read("core_1.txt.gz")
    assert found.latency is not None
    assert found.latency.value_ns is None
    assert any(note.startswith("one core of several") for note in found.notes)


def test_files_of_two_compilations_do_not_go_together() -> None:
    with pytest.raises(UsageError, match="totals of 1166 and 3354 cycles; expected the files of one compilation"):
        read("f16.txt.gz", "i8.txt.gz")


def test_kinds_that_nobody_knows_do_something_unknown(tmp_path: Path) -> None:
    path = tmp_path / "compiler_profile_0.txt"
    load = "Load_1|GDMA_TENSOR|s:0|b:0|g:1|e:9|t:10|dr:0|sz:64|bw:5.96"
    path.write_text(schedule_text(("", load), ("Conv2D_2|BRAND_NEW|s:10|b:1|g:1|e:19|t:10", "")))
    (found,) = read_profiles([path])
    assert found.trace.spans["does"].tolist() == [Does.UNKNOWN, Does.MOVE]
    assert found.trace.spans["route"].tolist() == [NONE, 0]


def test_facts_of_the_compiler_alone_have_no_times() -> None:
    found = read("f16.mlir.gz")
    assert found.provenance is Provenance.COMPILER_FACT
    assert found.latency_ns is None
    assert found.value("weights") == read_mlir(SAMPLES / "f16.mlir.gz").weight_bytes


@pytest.mark.parametrize(
    ("text", "form"), [("{}", "sophgo-placements"), ("module {}", "sophgo-mlir"), ("[{}]", "sophgo-placements")]
)
def test_damaged_tables_are_one_line(tmp_path: Path, text: str, form: str) -> None:
    path = tmp_path / "file"
    path.write_text(text)
    with pytest.raises(ImportFileError, match=r"^[^\n]*expected [^\n]*$"):
        read_profiles([path], form=form)
