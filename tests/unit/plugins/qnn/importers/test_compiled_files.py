"""Files that a compilation left, imported: what the backend says of the same compilation."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from opscope.core.errors import ImportFileError, UsageError
from opscope.importers.combine import combine
from opscope.importers.formats import read_profile, read_profiles
from opscope.plugins.qnn.importers.events import EXECUTE
from opscope.recording.recording import Placed, Recording
from support.plugins.qnn.htp_samples import TWO_NODES, compilation_of, profiled
from support.plugins.qnn.qnn_session import one_graph, two_graphs

LOG, OP_TRACE = "prof_qnn.log", "qnn_op_trace.json"


@pytest.fixture
def left(tmp_path: Path) -> Path:
    """What a compilation of two graphs leaves."""
    return two_graphs().write(tmp_path / "left")


def alone(folder: Path, name: str) -> Path:
    """A file of a folder, in one of its own."""
    place = folder.parent / "alone"
    place.mkdir(exist_ok=True)
    (place / name).write_bytes((folder / name).read_bytes())
    return place / name


def schematics(folder: Path) -> list[Path]:
    return sorted(folder.glob("*_schematic.bin"))


def lanes_and_times(recording: Recording) -> list[tuple[str, int, int]]:
    trace = recording.trace
    rows = trace.spans[["lane", "start_ns", "end_ns"]].tolist()
    return [(trace.lanes[lane].name, start, end) for lane, start, end in rows]


def test_a_log_with_its_neighbours_tells_what_a_profile_of_the_same_compilation_does(left: Path) -> None:
    found, mine = read_profile(left / LOG), profiled(compilation_of(two_graphs(), TWO_NODES))
    assert (found.provenance, found.target, found.latency) == ("vendor-model", mine.target, mine.latency)
    assert lanes_and_times(found) == lanes_and_times(mine)
    assert [(op.name, op.time_ns, op.placed) for op in found.ops] == [
        (op.name, op.time_ns, op.placed) for op in mine.ops
    ]
    assert len(found.trace.edges) == len(mine.trace.edges) > 0
    assert (found.memory, found.stages, found.lanes) == (mine.memory, mine.stages, mine.lanes)
    assert found.model == "model.onnx"
    assert any(note.startswith("the file is of an emulated run") for note in found.notes)


def test_files_that_are_given_take_the_place_of_neighbours(left: Path) -> None:
    beside = read_profile(left / LOG)
    (given,) = read_profiles([alone(left, LOG), *schematics(left), left / OP_TRACE])
    assert (given.ops, given.latency, given.metrics) == (beside.ops, beside.latency, beside.metrics)


def test_a_log_alone_has_the_whole_timeline_and_names_of_its_runs(left: Path) -> None:
    found, whole = read_profile(alone(left, LOG)), read_profile(left / LOG)
    assert lanes_and_times(found) == lanes_and_times(whole)
    assert {"conv0", "conv1", "relu1"} <= {op.name for op in found.ops}
    times = {op.name: op.time_ns for op in whole.ops}
    assert all(op.time_ns == times[op.name] for op in found.ops if op.name in ("conv0", "conv1", "relu1"))
    assert [row.peak_bytes for row in found.memory if row.name == "VTCM"] == [max(g.peak for g in two_graphs().graphs)]
    assert found.value("ddr_read") == whole.value("ddr_read")
    assert len(found.trace.samples)


def test_a_log_without_runs_and_neighbours_names_ops_by_kernel_and_number(tmp_path: Path) -> None:
    session = one_graph()
    session = replace(session, messages=tuple(m for m in session.messages if m.method != EXECUTE))
    found = read_profile(alone(session.write(tmp_path / "left"), LOG))
    kernels = {(kernel.op, kernel.operation) for graph in session.graphs for kernel in graph.kernels}
    named = {op.name for op in found.ops if "OpId_" in op.name}
    assert named
    assert named <= {f"{operation} OpId_{op}" for op, operation in kernels}
    assert "ConvLayer.quant.s1.tcm OpId_24" in named  # what computes, not what brings its weights
    assert any("names are in the schematic" in note for note in found.notes)


def test_a_wait_of_the_foreground_thread_follows_the_work_that_it_names(left: Path) -> None:
    found, whole = read_profile(alone(left, LOG)), read_profile(left / LOG)
    waits = [part.trace.spans["waits_on"] for part in (found, whole)]
    assert np.array_equal(waits[0] >= 0, waits[1] >= 0)


def test_a_file_of_another_compilation_is_refused_when_given_and_passed_over_when_it_lies_there(tmp_path: Path) -> None:
    one, two = one_graph().write(tmp_path / "one"), two_graphs().write(tmp_path / "two")
    for file in (one / OP_TRACE, *schematics(one)):
        file.write_bytes(file.read_bytes().replace(b"_4711_", b"_4712_"))
    with pytest.raises(UsageError, match=r"qnn_op_trace\.json: of another compilation than .*prof_qnn\.log; expected"):
        read_profiles([alone(two, LOG), one / OP_TRACE])
    for file in schematics(two):
        file.unlink()
    for file in schematics(one):
        (two / file.name).write_bytes(file.read_bytes())
    assert not any("schematic" in note for note in read_profile(two / LOG).notes)


def test_a_damaged_neighbour_is_a_note_and_a_damaged_file_that_is_given_an_error(left: Path) -> None:
    (left / OP_TRACE).write_text("{")
    (left / "x_schematic.bin").write_text("nothing")
    notes = read_profile(left / LOG).notes
    assert sum(note.startswith("left out, though it lies beside the file: ") for note in notes) == 2
    broken = left / "x.json"
    broken.write_text('{"subgraph_traces": [3]}')
    with pytest.raises(ImportFileError, match="not an op trace of the runtime"):
        read_profiles([alone(left, LOG), broken])


def test_a_schematic_alone_has_facts_and_no_times(left: Path) -> None:
    found = read_profile(alone(left, schematics(left)[0].name))
    assert (found.provenance, found.latency, len(found.trace.spans)) == ("compiler-fact", None, 0)
    assert "conv0" in {op.name for op in found.ops}
    assert found.value("ddr_read") == two_graphs().graphs[0].total("dram_read")
    assert found.value("vtcm_capacity") is None
    assert "import both" in found.notes[0]


def test_an_op_trace_alone_tells_where_nodes_run_and_why(left: Path) -> None:
    found = read_profile(left / OP_TRACE)
    assert (found.provenance, found.target, found.model) == ("compiler-fact", "SA8255", "model.onnx")
    assert [op.name for op in found.placed(Placed.CPU)] == ["acosh_mid"]
    assert "not supported" in found.placed(Placed.CPU)[0].reason
    assert {"conv0", "conv1", "relu1"} <= {op.name for op in found.placed(Placed.ACCELERATOR)}
    assert (found.value("graphs"), found.value("nodes_on_cpu")) == (2, 1)
    assert [cause.id for cause in found.causes] == ["cpu-fallback"]
    assert "cut into 2 graphs" in found.causes[0].detail


def test_facts_without_a_log_go_into_one_run(left: Path) -> None:
    both = combine(read_profiles([*schematics(left)[:1], left / OP_TRACE]))
    assert both.provenance == "compiler-fact"
    assert "acosh_mid" in {op.name for op in both.ops}


def test_a_log_that_is_cut_short_keeps_what_is_whole(left: Path) -> None:
    path = alone(left, LOG)
    path.write_bytes(path.read_bytes()[:-5])
    found = read_profile(path)
    assert found.provenance == "vendor-model"
    assert found.notes[0].startswith("1 messages could not be read: byte 0x")
