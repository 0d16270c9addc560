"""A buffer typed by hand from the format page: a writer and a reader wrong in the same way would be caught."""

from __future__ import annotations

from collections.abc import Callable
from io import StringIO
from pathlib import Path

import numpy as np

from opscope.analysis.totals.summarise import summarise_device
from opscope.analysis.totals.work import InferenceWork, ProgramIndex
from opscope.core.meaning import Carries, Does
from opscope.decode import LaneIndex, check_buffer, decode_buffer, decode_trace, origin_tick
from opscope.program.capture import encode_capture
from opscope.program.program import (
    COMMAND,
    NO_ROUTE,
    Channel,
    Detail,
    Group,
    MemoryInfo,
    MemoryMetrics,
    OpInfo,
    Program,
    StatsOptions,
)
from opscope.program.wire import StatsSection
from opscope.recording.trace import SpanKind
from opscope.views.text.opstats_text import OpstatsText

INPUT = Path(__file__).parents[2] / "golden" / "stats_buffer" / "input.hex"
PROGRAM_ID = 0x1122334455667788


def typed() -> bytes:
    lines = INPUT.read_text(encoding="utf-8").splitlines()
    return bytes.fromhex("".join(line.split("#")[0] for line in lines))


def program() -> Program:
    commands = np.zeros(2, COMMAND)
    commands["group"], commands["route"], commands["kind"] = [0, 1], [NO_ROUTE, 0], [0, 1]
    commands["detail"], commands["op"] = [0, 1], [0, 0]
    commands["does"] = [Does.COMPUTE, Does.MOVE]
    commands["out_bytes"], commands["moved_bytes"] = [2048, 1024], [0, 1024]
    return Program(
        name="network",
        target="by-hand",
        devices=1,
        cores=1,
        batch=8,
        clock_hz=1.233e9,
        stats_hz=19.2e6,
        groups=(Group("HVX", "HVX", 2), Group("DMAIssue", "", 1)),
        routes=(Channel("DDR read", Carries.READ, 10.0, 10.0, 0),),
        kinds=("elementadd", "aiccopytovtcm"),
        ops=(OpInfo("/layers.0/Add", "Add", "add", "node 0"),),
        details=(
            Detail("/layers.0/Add", "VTCM", "float16", "", (), ""),
            Detail("/layers.0/Add/__0", "DDR", "", "", (), ""),
        ),
        commands=commands,
        dependency_offsets=np.array([0, 1, 1], np.uint32),
        dependency_sources=np.array([1], np.uint32),
        dependency_kinds=np.array([1], np.uint8),
        stats=StatsOptions(level=70, batch_size=8),
        metrics=MemoryMetrics(0, (), 0, (), 0, 0, 0, {}),
        inputs=(),
        outputs=(),
        memories=(MemoryInfo("DDR", is_outer=True), MemoryInfo("VTCM", is_outer=False)),
    )


def test_every_field_is_where_the_page_says() -> None:
    capture = decode_buffer(typed(), source="typed").capture
    assert (capture.program_id, capture.device, capture.cores, capture.threads) == (PROGRAM_ID, 0, 1, 3)
    assert (capture.level, capture.activation, capture.inference, capture.batch_size) == (70, 2, 5, 8)
    assert capture.stats_hz == 19.2e6
    assert capture.sections[StatsSection.THREADS, 0].tolist() == [
        (0, 0, 4386, 1000, 1100, 6422),
        (1, 0, 4386, 1000, 1100, 6422),
        (2, 1, 4386, 1000, 1060, 3853),
    ]
    assert capture.sections[StatsSection.PORTS, 0].tolist() == [(0, 100, 30)]
    assert capture.sections[StatsSection.OPS, 0].tolist() == [
        (0, 0, 0, 1060, 40, 2569, 60, 0, 2, 0),
        (0, 1, 0, 1060, 38, 2440, 60, 2, 2, 0),
        (0, 2, 1, 1000, 60, 235, 0, 0, 0, 0),
    ]


def test_the_encoder_writes_the_same_bytes() -> None:
    assert encode_capture(decode_buffer(typed(), source="typed").capture) == typed()


def test_the_timeline_is_what_the_records_say() -> None:
    buffer = decode_buffer(typed(), source="typed")
    check_buffer(buffer, program(), program_id=PROGRAM_ID)
    origin = origin_tick([buffer])
    assert origin == 970  # the input was waited for from there on
    trace = decode_trace(program(), buffer, LaneIndex.of(program()), origin=origin, provenance="simulated")
    found = [
        (
            trace.lanes[s["lane"]].name,
            SpanKind(s["kind"]).name,
            trace.names[s["name"]],
            int(s["start_ns"]),
            int(s["ucycles"]),
        )
        for s in trace.spans
    ]
    tick = 1e9 / 19.2e6
    assert found == [
        ("HVX", "OP", "elementadd", round(90 * tick), 40),
        ("HVX", "WAIT", "sync HVX", round(30 * tick), 60),
        ("DMAIssue", "OP", "aiccopytovtcm", round(30 * tick), 4),  # 235 cycles of issue
        ("DMAIssue DMA DDR read", "TRANSFER", "aiccopytovtcm", round(30 * tick), 60),
        ("Execution", "PHASE", "Core-0-Execution", round(30 * tick), 100),
        ("Host_IO_Port p100", "PHASE", "Host_IO_Port input wait", 0, 30),
        ("Execution", "PHASE", "Device-0-Execution", round(30 * tick), 100),
    ]
    assert trace.spans["waits_on"].tolist() == [-1, 1, -1, -1, -1, -1, -1]


def test_the_summary_is_the_reviewed_one(golden: Callable[[str, str], None]) -> None:
    buffer = decode_buffer(typed(), source="typed")
    trace = decode_trace(program(), buffer, LaneIndex.of(program()), origin=970, provenance="simulated")
    text = StringIO()
    work = InferenceWork.of(trace, ProgramIndex.of(program()))
    OpstatsText().render(summarise_device(work, buffer.capture, network="network"), text)
    golden("stats_buffer/expected.txt", text.getvalue())
