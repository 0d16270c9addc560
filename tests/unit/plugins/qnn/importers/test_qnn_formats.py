"""Readers of the vendor's files, on files made here; none of them needs the package."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from opscope.core.errors import ImportFileError
from opscope.importers.reading import Unread
from opscope.plugins.qnn.importers.events import EXECUTE, FINALIZE, Message, node_times, plain_name
from opscope.plugins.qnn.importers.log import read_log
from opscope.plugins.qnn.importers.op_trace import read_op_trace
from opscope.plugins.qnn.importers.profile_csv import read_csv
from opscope.plugins.qnn.importers.schematic import read_schematic
from opscope.plugins.qnn.importers.timeline import read_timeline
from support.plugins.qnn.qnn_files import HEADER, table
from support.plugins.qnn.qnn_session import MHZ, Session, emulated, one_graph, two_graphs

SESSIONS = [two_graphs, one_graph, emulated]


def flat(message: Message) -> list[tuple[str, int | None, str]]:
    return [(event.name, event.value, event.unit) for root in message.events for event in root.walk()]


@pytest.mark.parametrize("session", SESSIONS)
def test_the_log_and_the_csv_of_a_session_say_the_same(session: Callable[[], Session], tmp_path: Path) -> None:
    folder = session().write(tmp_path)
    log = read_log((folder / "prof_qnn.log").read_bytes(), source="log").messages
    rows = read_csv((folder / "prof.csv").read_bytes(), source="csv", unread=Unread("rows"))
    assert [m.method for m in log] == [m.method for m in rows] == [m.method for m in session().messages]
    assert [flat(m) for m in log] == [flat(m) for m in rows] == [flat(m) for m in session().messages]


def test_a_graphs_preparation_that_is_written_again_counts_once(tmp_path: Path) -> None:
    session = two_graphs()
    folder, (first, second) = session.write(tmp_path), (graph.name for graph in session.graphs)
    raw = (folder / "prof.csv").read_bytes()
    assert raw.count(b"QNN (finalize) time") == 3
    assert [m.method for m in read_csv(raw, source="csv", unread=Unread("rows"))].count(FINALIZE) == 2
    log = read_log((folder / "prof_qnn.log").read_bytes(), source="log")
    assert [m.graph for m in log.messages if m.method == FINALIZE] == [first, second]
    assert list(log.timelines) == [first, second]
    assert log.timelines[first] != log.timelines[second]
    assert [m.graph for m in log.messages if m.method == EXECUTE] == [first, second, first, second]


def test_the_eighth_column_names_the_onnx_nodes(tmp_path: Path) -> None:
    run = read_csv((two_graphs().write(tmp_path) / "prof.csv").read_bytes(), source="csv", unread=Unread("rows"))[2]
    node = next(node for node in node_times(run) if node.name == "conv0")
    assert (node.op_id, node.value, node.unit) == (0x16, 700_000, "CYCLES")
    assert [plain_name(name) for name in node.sources] == ["conv0"]


def test_the_timeline_ends_with_the_estimate_and_counts_bytes_once(tmp_path: Path) -> None:
    session = one_graph()
    log = read_log((session.write(tmp_path) / "prof_qnn.log").read_bytes(), source="log")
    (graph,), (raw,) = session.graphs, log.timelines.values()
    line = read_timeline(raw, source="timeline")
    assert line.end == graph.cycles
    assert line.clock_hz == pytest.approx(MHZ * 1e6)
    assert (line.work["dram_read"].sum(), line.usage[:, 1].max()) == (graph.total("dram_read"), graph.peak)
    assert not line.work["dram_read"][line.work["bookkeeping"]].any()


def test_the_schematic_has_names_bytes_order_and_the_vtcm_peak(tmp_path: Path) -> None:
    session = one_graph()
    (graph,), (file,) = session.graphs, session.write(tmp_path).glob("*_schematic.bin")
    schematic = read_schematic(file.read_bytes(), source=file.name)
    assert schematic.graph == graph.name
    assert schematic.names[0x18] == "conv0_token_1"
    assert sum(row.dram_read for row in schematic.moved) == graph.total("dram_read")
    assert schematic.occupancy().max(initial=0) == graph.peak
    assert schematic.before[0x2].operation == "q::Input"
    assert schematic.before[0x2].dims == graph.shape
    assert schematic.before[0x1B].inputs == (0x18, 0x1A)
    assert schematic.flags[0x401200000011] == ("uses_hvx",)
    first = next(step for step in schematic.steps if step.position == 0)
    assert (first.id, first.operation) == (0x401000000002, "q::*InputSlice")
    assert sum(step.position is None for step in schematic.steps) == 1


def test_the_op_trace_has_the_part_the_nodes_and_the_reasons() -> None:
    trace = read_op_trace(two_graphs().op_trace_json(), source="op trace")
    assert trace.soc_model == 52
    assert [op.nodes for ops in trace.graphs.values() for op in ops][1] == ("conv0",)
    assert [(node.name, node.type) for node in trace.refused] == [("acosh_mid", "Acosh")]


@pytest.fixture(scope="module")
def emulated_log(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return (emulated().write(tmp_path_factory.mktemp("session")) / "prof_qnn.log").read_bytes()


@pytest.mark.parametrize("share", [0.001, 0.003, 0.01, 0.1, 0.5, 0.9])
def test_a_log_cut_short_is_reported_with_its_byte(share: float, emulated_log: bytes) -> None:
    raw = emulated_log[: max(1, int(share * len(emulated_log)))]
    with pytest.raises(ImportFileError, match=r"^a\.log: byte 0x[0-9a-f]+: (length|message)"):
        read_log(raw, source="a.log")


def test_no_flipped_byte_of_a_log_gets_past_the_checks(emulated_log: bytes) -> None:
    for place in range(0, len(emulated_log), 7):
        for flip in (0xFF, 0x80, 0x01):
            damaged = bytearray(emulated_log)
            damaged[place] ^= flip
            try:
                read_log(bytes(damaged), source="a.log")
            except ImportFileError:
                continue


def test_a_message_without_calls_is_fine_and_an_empty_log_too() -> None:
    buffer = bytearray(4)
    struct.pack_into("<I", buffer, 0, table(buffer, {}))
    assert read_log(struct.pack("<I", len(buffer)) + buffer, source="a.log").messages == ()
    assert read_log(b"", source="a.log").messages == ()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", r"^a\.csv: header is an empty file; expected Msg Timestamp,"),
        ("a,b\n", r"^a\.csv: header is a,b; expected Msg Timestamp,"),
    ],
)
def test_a_csv_of_another_tool_is_refused(text: str, words: str) -> None:
    with pytest.raises(ImportFileError, match=words):
        read_csv(text.encode(), source="a.csv", unread=Unread("rows"))


@pytest.mark.parametrize("row", ["0,NODE", "0,NODE,1,US,BACKEND,LEAF,x", "0,NODE,1,US,BACKEND"])
def test_a_row_of_a_csv_that_cannot_be_read_is_counted(row: str) -> None:
    unread = Unread("rows")
    rows = f"{HEADER}\n{row}\n0,EXECUTE,5,US,BACKEND,ROOT,QNN (execute) time\n"
    (message,) = read_csv(rows.encode(), source="a.csv", unread=unread)
    assert (message.value("QNN (execute) time"), message.is_cut) == (5, False)
    assert unread.notes() == (f"1 rows could not be read: line 2: {row}",)


def test_what_is_damaged_in_a_log_is_counted_where_the_rest_is_wanted(emulated_log: bytes) -> None:
    whole, unread = read_log(emulated_log, source="a.log").messages, Unread("messages")
    assert read_log(emulated_log[:-3], source="a.log", unread=unread).messages == whole[:-1]
    assert unread.count == 1
    assert "bytes, but" in unread.notes()[0]


@pytest.mark.parametrize("raw", [b"", b"{}", b"[", b'{"traceEvents": 3}', b"\xff" * 40])
def test_files_of_another_kind_are_refused(raw: bytes) -> None:
    for read in (read_timeline, read_schematic, read_op_trace):
        with pytest.raises(ImportFileError, match=r"^a: "):
            read(raw, source="a")


def test_a_timeline_without_a_clock_is_refused() -> None:
    with pytest.raises(ImportFileError, match="sim_core_freq is None; expected the core clock in MHz"):
        read_timeline(b'{"traceEvents": [], "Hextimate Configuration": {}}', source="a")


def test_a_core_that_no_part_has_is_refused() -> None:
    far = b'{"traceEvents": [{"name": "x", "ph": "X", "pid": 999999999999999999999}], '
    with pytest.raises(ImportFileError, match=r"^a: pid is 9{21}; expected the number of a core, below 4096$"):
        read_timeline(far + b'"Hextimate Configuration": {"sim_core_freq": 1000}}', source="a")
