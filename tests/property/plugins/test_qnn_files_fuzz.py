"""Files of the QNN tools, damaged in every way: a result that makes a run, or an error in one line."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opscope.core.errors import ProfilerError
from opscope.importers.combine import combine
from opscope.importers.formats import read_profile, read_profiles
from opscope.recording.recording import Recording
from opscope.workflows.record import analysed
from support.plugins.qnn.qnn_files import log_bytes
from support.plugins.qnn.qnn_samples import DEVICE_CSV, OPTRACE, QHAS, VIEWER_TEXT
from support.plugins.qnn.qnn_session import one_graph, schematic_text, timeline_json, two_graphs

GRAPH = one_graph().graphs[0]
LOG = log_bytes(one_graph().messages, {GRAPH.name: timeline_json(GRAPH)})
FILES = {
    "device.csv": DEVICE_CSV.encode(),
    "viewer.txt": VIEWER_TEXT.encode(),
    "optrace.json": OPTRACE.encode(),
    "qhas.json": QHAS.encode(),
    "g_qnn.log": LOG,
    "g_schematic.bin": schematic_text(GRAPH).encode(),
    "qnn_op_trace.json": two_graphs().op_trace_json(),
}
NUMBER = re.compile(rb"(?<![\w.])\d+(?:\.\d+)?(?![\w.])")
NUMBERS = [
    b"-1",
    b"0",
    b"1e308",
    b"-1e308",
    b"9" * 30,
    str(2**63).encode(),
    str(2**64).encode(),
    b"null",
    b'"x"',
    b"[]",
]
quick = settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])


def whole_way(*paths: Path, form: str | None = None) -> Recording | None:
    """As `opscope import` does it, findings and page too; None: an error that a user can read."""
    try:
        recording = combine(read_profiles(paths, form=form))
        analysed(recording, None, command=(), created="", sha256=None)
    except ProfilerError:
        return None
    assert all(op.time_ns is None or 0 <= op.time_ns < 2**62 for op in recording.ops)
    return recording


@pytest.mark.parametrize("name", FILES)
def test_every_file_is_fine_as_it_is(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(FILES[name])
    assert whole_way(tmp_path / name) is not None


@pytest.mark.parametrize("name", FILES)
@given(data=st.data())
@quick
def test_flipped_and_missing_bytes_end_in_an_error_or_a_result(name: str, tmp_path: Path, data: st.DataObject) -> None:
    raw = bytearray(FILES[name])
    form = read_profile_form(tmp_path, name)
    for _ in range(data.draw(st.integers(0, 6))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    if data.draw(st.booleans()):
        del raw[data.draw(st.integers(0, len(raw))) :]
    (tmp_path / "file").write_bytes(raw)
    whole_way(tmp_path / "file", form=form)


def read_profile_form(folder: Path, name: str) -> str:
    (folder / "good").write_bytes(FILES[name])
    return read_profile(folder / "good").maker


@pytest.mark.parametrize("name", FILES)
@given(data=st.data())
@quick
def test_numbers_that_cannot_be_end_in_an_error_or_a_result(name: str, tmp_path: Path, data: st.DataObject) -> None:
    raw = FILES[name]
    if name.endswith(".log"):  # numbers of its timeline: those of its tables are of a fixed size
        raw = timeline_json(GRAPH)
    places = list(NUMBER.finditer(raw))
    for match in sorted(data.draw(st.sets(st.sampled_from(places), min_size=1, max_size=3)), key=lambda m: -m.start()):
        raw = raw[: match.start()] + data.draw(st.sampled_from(NUMBERS)) + raw[match.end() :]
    (tmp_path / name).write_bytes(log_bytes(one_graph().messages, {GRAPH.name: raw}) if name.endswith(".log") else raw)
    whole_way(tmp_path / name, form=read_profile_form(tmp_path / "..", name))


@given(st.integers(0, len(DEVICE_CSV)))
@quick
def test_a_device_csv_that_is_cut_anywhere_behind_its_first_run_keeps_it(tmp_path: Path, end: int) -> None:
    first = DEVICE_CSV.index("QNN (execute) time") + len("QNN (execute) time")
    (tmp_path / "device.csv").write_text(DEVICE_CSV[:end])
    found = whole_way(tmp_path / "device.csv")
    if end >= first:
        assert found is not None
        assert (found.value("hvx_threads"), found.inferences) == (4, 2 if end >= len(DEVICE_CSV) - 1 else 1)
        assert found.host


@given(data=st.data())
@quick
def test_a_log_with_damaged_neighbours_is_read_without_them(tmp_path: Path, data: st.DataObject) -> None:
    (tmp_path / "g_qnn.log").write_bytes(LOG)
    for name in ("g_schematic.bin", "qnn_op_trace.json"):
        raw = bytearray(FILES[name])
        for _ in range(data.draw(st.integers(0, 4))):
            raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
        (tmp_path / name).write_bytes(raw[: data.draw(st.integers(0, len(raw)))])
    found = whole_way(tmp_path / "g_qnn.log")
    assert found is not None
    assert found.latency is not None


def test_a_timeline_of_many_spans_is_read_in_time(tmp_path: Path) -> None:
    whole = json.loads(timeline_json(GRAPH))
    spans = [event for event in whole["traceEvents"] if event["ph"] == "X"]
    last = max(span["ts"] + span["dur"] for span in spans)
    whole["traceEvents"] += [span | {"ts": span["ts"] + n * last} for n in range(1, 250) for span in spans]
    (tmp_path / "big_qnn.log").write_bytes(log_bytes(one_graph().messages, {GRAPH.name: json.dumps(whole).encode()}))
    found = whole_way(tmp_path / "big_qnn.log")
    assert found is not None
    assert len(found.trace.spans) > 5000


@pytest.mark.parametrize("number", ["9" * digits for digits in (9, 14, 19, 30, 5000)])
@pytest.mark.parametrize(
    "what", ["runlist_pos = 3,", "memgroup(bytes=37632,", '"dram_read": 4096 ', '"vtcm_write": 9216,']
)
def test_a_schematic_with_a_gigantic_number_takes_no_memory(what: str, number: str, tmp_path: Path) -> None:
    text = schematic_text(GRAPH)
    assert what in text
    (tmp_path / "g_schematic.bin").write_text(text.replace(what, re.sub(r"(?<![\w])\d+", number, what), 1))
    whole_way(tmp_path / "g_schematic.bin")
