"""Readers of the vendor's files, on real files; none of them needs the package."""

from __future__ import annotations

import pytest

from opscope.core.errors import ImportFileError
from opscope.plugins.qnn.importers.events import EXECUTE, FINALIZE, Message, node_times, plain_name
from opscope.plugins.qnn.importers.log import read_log
from opscope.plugins.qnn.importers.op_trace import read_op_trace
from opscope.plugins.qnn.importers.profile_csv import read_csv
from opscope.plugins.qnn.importers.schematic import read_schematic
from opscope.plugins.qnn.importers.timeline import read_timeline
from qnn_samples import FIXTURES, HEADER, empty_log_message, needs_fixtures

FOLDERS = ["detailed", "fwtrace", "hx52", "two_partitions"]


def flat(message: Message) -> list[tuple[str, int | None, str]]:
    return [(event.name, event.value, event.unit) for root in message.events for event in root.walk()]


@needs_fixtures
@pytest.mark.parametrize("folder", FOLDERS)
def test_the_log_and_the_csv_of_a_session_say_the_same(folder: str) -> None:
    log = read_log((FIXTURES / folder / "prof_qnn.log").read_bytes(), source="log").messages
    rows = read_csv((FIXTURES / folder / "prof.csv").read_bytes(), source="csv")
    assert [m.method for m in log] == [m.method for m in rows]
    assert [flat(m) for m in log] == [flat(m) for m in rows]


@needs_fixtures
def test_a_graphs_preparation_that_is_written_again_counts_once() -> None:
    raw = (FIXTURES / "two_partitions" / "prof.csv").read_bytes()
    assert raw.count(b"QNN (finalize) time") == 3
    assert [m.method for m in read_csv(raw, source="csv")].count(FINALIZE) == 2
    log = read_log((FIXTURES / "two_partitions" / "prof_qnn.log").read_bytes(), source="log")
    assert [m.graph[-4:] for m in log.messages if m.method == FINALIZE] == ["_2_0", "_3_1"]
    assert [name[-4:] for name in log.timelines] == ["_2_0", "_3_1"]
    assert [m.graph[-4:] for m in log.messages if m.method == EXECUTE] == ["_2_0", "_3_1", "_2_0", "_3_1"]


@needs_fixtures
def test_the_eighth_column_names_the_onnx_nodes() -> None:
    run = read_csv((FIXTURES / "fwtrace" / "prof.csv").read_bytes(), source="csv")[1]
    node = next(node for node in node_times(run) if node.name == "conv0")
    assert (node.op_id, node.value, node.unit) == (24, 794799, "CYCLES")
    assert [plain_name(name) for name in node.sources][-2:] == ["conv0", "r0_QuantizeLinear"]


@needs_fixtures
def test_the_timeline_ends_with_the_estimate_and_counts_bytes_once() -> None:
    log = read_log((FIXTURES / "hx52" / "prof_qnn.log").read_bytes(), source="log")
    (raw,) = log.timelines.values()
    line = read_timeline(raw, source="timeline")
    assert line.end == 35086 - 6
    assert line.clock_hz == pytest.approx(1497.6e6)
    assert (line.work["dram_read"].sum(), line.usage[:, 1].max()) == (81920, 331776)
    assert not line.work["dram_read"][line.work["bookkeeping"]].any()


@needs_fixtures
def test_the_schematic_has_names_bytes_order_and_the_vtcm_peak() -> None:
    (file,) = (FIXTURES / "hx52").glob("*_schematic.bin")
    schematic = read_schematic(file.read_bytes(), source=file.name)
    assert schematic.graph in file.name
    assert schematic.names[0x18] == "conv0_token_1"
    assert sum(row.dram_read for row in schematic.moved) == 81920
    assert schematic.peak_vtcm_bytes == 331776
    assert schematic.before[0x2].operation == "q::Input"
    assert schematic.before[0x2].dims == (1, 3, 56, 56)
    assert schematic.flags[0x402700000010] == ("uses_hvx",)
    first = next(step for step in schematic.steps if step.position == 0)
    assert (first.id, first.operation) == (0x422300000002, "q::*InputSlice")


@needs_fixtures
def test_the_op_trace_has_the_part_the_nodes_and_the_reasons() -> None:
    trace = read_op_trace((FIXTURES / "two_partitions" / "qnn_op_trace.json").read_bytes(), source="op trace")
    assert trace.soc_model == 52
    assert [op.nodes for ops in trace.graphs.values() for op in ops][1] == ("conv0",)
    assert [(node.name, node.type) for node in trace.refused] == [("acosh_mid", "Acosh")]


@needs_fixtures
@pytest.mark.parametrize("cut", [1, 3, 5, 40, 500, 900, 4000])
def test_a_log_cut_short_is_reported_with_its_byte(cut: int) -> None:
    raw = (FIXTURES / "detailed" / "prof_qnn.log").read_bytes()[:cut]
    with pytest.raises(ImportFileError, match=r"^a\.log: byte 0x[0-9a-f]+: (length|message)"):
        read_log(raw, source="a.log")


@needs_fixtures
def test_no_flipped_byte_of_a_log_gets_past_the_checks() -> None:
    raw = bytearray((FIXTURES / "detailed" / "prof_qnn.log").read_bytes())
    for place in range(0, len(raw), 7):
        for flip in (0xFF, 0x80, 0x01):
            damaged = raw.copy()
            damaged[place] ^= flip
            try:
                read_log(bytes(damaged), source="a.log")
            except ImportFileError:
                continue


def test_a_message_without_calls_is_fine_and_an_empty_log_too() -> None:
    assert read_log(empty_log_message(), source="a.log").messages == ()
    assert read_log(b"", source="a.log").messages == ()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", r"^a\.csv: header is an empty file; expected Msg Timestamp,"),
        ("a,b\n", r"^a\.csv: header is a,b; expected Msg Timestamp,"),
        (f"{HEADER}\n0,NODE\n", r"^a\.csv: line 2: 2 columns; expected 7: is the file cut short"),
        (f"{HEADER}\n0,NODE,1,US,BACKEND,LEAF,x\n", r"^a\.csv: line 2: level 'LEAF'; expected ROOT or SUB-EVENT"),
    ],
)
def test_a_damaged_csv_is_reported_by_line(text: str, words: str) -> None:
    with pytest.raises(ImportFileError, match=words):
        read_csv(text.encode(), source="a.csv")


@pytest.mark.parametrize("raw", [b"", b"{}", b"[", b'{"traceEvents": 3}', b"\xff" * 40])
def test_files_of_another_kind_are_refused(raw: bytes) -> None:
    for read in (read_timeline, read_schematic, read_op_trace):
        with pytest.raises(ImportFileError, match=r"^a: "):
            read(raw, source="a")


def test_a_timeline_without_a_clock_is_refused() -> None:
    with pytest.raises(ImportFileError, match="sim_core_freq is None; expected the core clock in MHz"):
        read_timeline(b'{"traceEvents": [], "Hextimate Configuration": {}}', source="a")
