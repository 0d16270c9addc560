"""ETDump and ETRecord: a recorded run of two delegates and an operator, and files made by hand."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

import pytest
from flatbuffers import Builder

from opscope.core.errors import ImportFileError
from opscope.importers.formats import read_profile, read_profiles
from opscope.plugins.executorch.dump import read_dump
from opscope.plugins.executorch.record import read_record
from opscope.recording.recording import Recording
from support.plugins.importer_samples import SAMPLES, all_hold, op

DUMP, RECORD = SAMPLES / "executorch.etdp", SAMPLES / "executorch.etrecord"
Event = tuple[str, int, str, int, int]  # name, instruction, who in a delegate, start, end


def told() -> Recording:
    (recording,) = read_profiles([DUMP, RECORD])
    return recording


def made(blocks: Sequence[Sequence[Event]], *, prefixed: bool = False) -> bytes:
    """A dump of the public schema: fields by their number in it."""
    builder = Builder(1024)
    runs = []
    for events in blocks:
        tables = [_event(builder, event) for event in events]
        builder.StartVector(4, len(tables), 4)
        for table in reversed(tables):
            builder.PrependUOffsetTRelative(table)
        vector, name = builder.EndVector(), builder.CreateString("Execute")
        builder.StartObject(4)
        builder.PrependUOffsetTRelativeSlot(0, name, 0)
        builder.PrependUOffsetTRelativeSlot(3, vector, 0)
        runs.append(builder.EndObject())
    builder.StartVector(4, len(runs), 4)
    for run in reversed(runs):
        builder.PrependUOffsetTRelative(run)
    vector = builder.EndVector()
    builder.StartObject(2)
    builder.PrependUOffsetTRelativeSlot(1, vector, 0)
    root = builder.EndObject()
    finish = builder.FinishSizePrefixed if prefixed else builder.Finish
    finish(root, b"ED00")
    return bytes(builder.Output())


def _event(builder: Builder, event: Event) -> int:
    name, instruction, inside, start, end = event
    words = builder.CreateString(name), builder.CreateString(inside) if inside else 0
    builder.StartObject(8)
    builder.PrependUOffsetTRelativeSlot(0, words[0], 0)
    builder.PrependInt32Slot(2, instruction, -1)
    builder.PrependUOffsetTRelativeSlot(4, words[1], 0)
    builder.PrependUint64Slot(6, start, 0)
    builder.PrependUint64Slot(7, end, 0)
    profile = builder.EndObject()
    builder.StartObject(3)
    builder.PrependUOffsetTRelativeSlot(0, profile, 0)
    return builder.EndObject()


def imported(tmp_path: Path, *blocks: Sequence[Event]) -> Recording:
    (tmp_path / "a.etdp").write_bytes(made(blocks))
    return read_profile(tmp_path / "a.etdp")


def test_a_recorded_run_has_every_instruction_and_what_delegates_tell() -> None:
    recording = told()
    assert all_hold(recording)
    assert recording.inferences == 2
    blocks = [block for block in read_dump(DUMP.read_bytes(), source="d") if block.name == "Execute"]
    whole = [e.end - e.start for block in blocks for e in block.events if e.name == "Method::execute"]
    assert recording.samples_ns == tuple(whole)
    calls = [e.end - e.start for block in blocks for e in block.events if e.name.endswith("_CALL")]
    assert sum(o.time_ns or 0 for o in recording.ops) == pytest.approx(sum(calls) / 2, abs=len(recording.ops))
    names = {o.name for o in recording.ops}
    assert {"XnnpackBackend#0", "Convolution (NHWC, F32) IGEMM #1", "aten_mean_dim"} <= names


def test_the_record_brings_names_modules_and_lines_of_the_model() -> None:
    mean, call = op(told(), "aten_mean_dim"), op(told(), "XnnpackBackend#0")
    assert (mean.type, mean.line, mean.kernel) == ("aten.mean.dim", "model.py:10", "mean.out")
    assert call.covers == ("aten_convolution_default", "aten_relu_default")
    assert (call.module, call.line) == ("conv", "model.py:9")
    inside = op(told(), "Softmax (NC, F32) #1")
    assert inside.engines == ("XnnpackBackend",)


def test_without_the_record_ops_have_the_names_of_the_runtime() -> None:
    alone = read_profile(DUMP)
    assert {o.name for o in alone.ops} >= {"delegate#0", "mean#1", "delegate#2"}
    assert [o.time_ns for o in alone.ops] == [o.time_ns for o in told().ops]
    assert any("no ETRecord was given" in note for note in alone.notes)


def test_a_record_alone_lists_the_ops_of_the_program_without_times() -> None:
    record = read_profile(RECORD)
    assert [o.type for o in record.ops][:2] == ["aten.convolution.default", "aten.relu.default"]
    assert op(record, "aten_convolution_default").engines == ("XnnpackBackend",)
    assert all(o.time_ns is None for o in record.ops)


@pytest.mark.parametrize("prefixed", [False, True])
def test_times_of_a_delegate_are_counted_once(prefixed: bool, tmp_path: Path) -> None:
    run = [
        ("", 0, "part", 110, 150),
        ("DELEGATE_CALL", 0, "", 100, 160),
        ("native_call_add.out", 1, "", 165, 180),
        ("OPERATOR_CALL", 1, "", 160, 190),
        ("Method::execute", 0, "", 90, 200),
    ]
    (tmp_path / "a.etdp").write_bytes(made([run], prefixed=prefixed))
    recording = read_profile(tmp_path / "a.etdp")
    assert {o.name: o.time_ns for o in recording.ops} == {"delegate#0": 20, "part": 40, "add#1": 30}
    assert recording.latency_ns == 110


def test_means_are_over_runs_and_an_op_that_runs_twice_counts_twice(tmp_path: Path) -> None:
    runs = [
        [("OPERATOR_CALL", 0, "", 0, 10), ("OPERATOR_CALL", 0, "", 10, 30), ("Method::execute", 0, "", 0, 40)],
        [("OPERATOR_CALL", 0, "", 100, 120), ("OPERATOR_CALL", 0, "", 120, 160), ("Method::execute", 0, "", 100, 170)],
    ]
    (only,) = imported(tmp_path, *runs).ops
    assert (only.time_ns, only.low_ns, only.high_ns, only.calls) == (fmean((30, 60)), 30, 60, 2)


def test_events_of_another_clock_are_counted_and_not_kept(tmp_path: Path) -> None:
    run = [("", 0, "part", 9_000, 9_500), ("DELEGATE_CALL", 0, "", 0, 50), ("Method::execute", 0, "", 0, 60)]
    recording = imported(tmp_path, run)
    assert [o.time_ns for o in recording.ops] == [50]
    assert any(note.startswith("1 events of delegates lie outside of any call") for note in recording.notes)


def test_an_event_that_ends_before_it_starts_is_named(tmp_path: Path) -> None:
    recording = imported(tmp_path, [("OPERATOR_CALL", 0, "", 9, 3), ("Method::execute", 0, "", 0, 60)])
    assert recording.notes[-1] == "1 events could not be read: event 0 of Execute: OPERATOR_CALL: 9 to 3"


def test_a_dump_without_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ImportFileError, match="no run of a method"):
        imported(tmp_path, [("Method::init", 0, "", 0, 60)])


def test_damage_is_named_by_its_byte(tmp_path: Path) -> None:
    raw = DUMP.read_bytes()
    (tmp_path / "cut.etdp").write_bytes(raw[: len(raw) // 2])
    with pytest.raises(ImportFileError, match=r"byte 0x[0-9a-f]+"):
        read_profile(tmp_path / "cut.etdp")


def test_a_record_is_read_within_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "bomb.etrecord"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("ETRECORD_V0", b"")
        archive.writestr("edge_dialect_exported_program/forward", b" " * 100_001)
    monkeypatch.setattr("opscope.plugins.executorch.record._MOST_BYTES", 100_000)
    with pytest.raises(ImportFileError, match="forward: 100001 bytes, packing 8"):
        read_record(path)


def test_a_damaged_archive_is_one_line(tmp_path: Path) -> None:
    raw = bytearray(RECORD.read_bytes())
    del raw[-30:]
    (tmp_path / "cut.etrecord").write_bytes(raw)
    with pytest.raises(ImportFileError, match="damaged archive"):
        read_record(tmp_path / "cut.etrecord")
