"""Op table of tt-metal's profiler."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from opscope.core.errors import ImportFileError
from opscope.importers.formats import read_profile
from opscope.recording.recording import Recording
from opscope.recording.run import MACS_PER_S
from support.plugins.importer_samples import SAMPLES, op, sample

NAME = "tenstorrent_ops.csv"
MATMUL = 500 * 2048 * 1024  # rows of the model, not of whole tiles
CONV = 4096 * 32 * 144


def rewritten(tmp_path: Path, *rows: dict[str, str]) -> Recording:
    """The file with values of some rows changed; a row names its place with `row`."""
    with (SAMPLES / NAME).open(newline="") as file:
        table = list(csv.DictReader(file))
    for change in rows:
        table[int(change.pop("row"))] |= change
    with (tmp_path / NAME).open("w", newline="") as out:
        writer = csv.DictWriter(out, list(table[0]))
        writer.writeheader()
        writer.writerows(table)
    return read_profile(tmp_path / NAME)


def test_devices_that_run_the_same_ops_share_them_and_the_slowest_tells() -> None:
    imported = sample(NAME)
    assert [o.name for o in imported.ops] == ["Matmul#0", "Conv2dDeviceOperation#1", "ReshapeDeviceOperation#2"]
    matmul = imported.ops[0]
    assert (matmul.time_ns, matmul.low_ns, matmul.high_ns, matmul.calls) == (40_030, 40_000, 40_030, 1)
    assert (matmul.threads, matmul.engine_threads, matmul.cores) == (64, 64, 64)
    assert (matmul.estimated_ns, matmul.kernel) == (16_384, "bmm_large_block_zm.cpp")
    assert imported.ops[1].wait_ns == 11_500
    assert imported.ops[2].estimated_ns is None  # 1 ns: the vendor's model knows nothing of it
    assert imported.devices == 2


def test_work_is_that_of_all_devices_in_the_rows_of_the_model() -> None:
    imported = sample(NAME)
    assert [o.macs for o in imported.ops] == [2 * MATMUL, 2 * CONV, None]
    # bf16 of whole tiles, and a block format in which 16 elements share an exponent
    assert imported.ops[0].in_bytes == 2 * (512 * 1024 * 2 + 1024 * 2048 * 17 // 16)
    assert imported.ops[0].shape == "1x1x500x1024;1x1x1024x2048->1x1x500x2048"
    assert imported.commands is not None
    assert imported.commands.rows["macs"].sum() == 2 * (MATMUL + CONV)


def test_operands_say_where_they_lie() -> None:
    table = sample(NAME).commands
    assert table is not None
    first = {operand.role: (table.place(operand), operand.dtype) for operand in table.operands[0]}
    assert first == {"Dest0": ("L1", "bf16"), "Src0": ("DRAM", "bf16"), "Src1": ("DRAM", "bfp8")}
    assert "Dest0=DEV_0_L1_BLOCK_SHARDED" in table.attributes[0]


def test_the_clock_is_cycles_over_nanoseconds_and_bounds_what_is_multiplied() -> None:
    imported = sample(NAME)
    assert imported.clocks_hz == {"core": 1e9}
    assert imported.limits == {MACS_PER_S: 64 * 2048 * 1e9 * 2}
    # 2 passes on 64 cores, 1 on 32, over the time of both kernels
    needed = 2 * (2 * MATMUL / (2048 * 64) + CONV / (2048 * 32))
    taken = 40_000 + 40_030 + 2 * 20_400
    assert imported.value("matrix engine utilization") == pytest.approx(needed / taken)


def test_each_device_starts_with_its_first_op() -> None:
    trace = sample(NAME).trace
    starts = {}
    for span in trace.spans:
        starts.setdefault(trace.lanes[span["lane"]].device, []).append(int(span["start_ns"]))
    assert starts == {0: [0, 52_000, 80_000], 1: [0, 52_000, 80_000]}
    assert any("clocks of their own" in note for note in sample(NAME).notes)


def test_signposts_and_ops_of_the_host_are_counted() -> None:
    notes = sample(NAME).notes
    assert "1 signposts are not kept: encoder started" in notes
    assert "1 ops of the host are not kept: they have no time on a device" in notes


def test_replays_of_a_trace_are_inferences(tmp_path: Path) -> None:
    """The second device's rows made a second replay on the first."""
    changes = [{"row": str(row), "METAL TRACE REPLAY SESSION ID": "1"} for row in (1, 2, 3)]
    changes += [{"row": str(row), "METAL TRACE REPLAY SESSION ID": "2", "DEVICE ID": "0"} for row in (4, 5, 6)]
    imported = rewritten(tmp_path, *changes)
    assert (imported.inferences, len(imported.ops)) == (2, 3)
    assert imported.latency_ns == 88_600  # from the first kernel to the end of the last
    assert imported.ops[0].time_ns == 40_015  # the mean of both
    assert imported.ops[0].macs == MATMUL


def test_a_device_with_other_ops_keeps_every_row_apart(tmp_path: Path) -> None:
    imported = rewritten(tmp_path, {"row": "5", "OP CODE": "Move"})
    assert len(imported.ops) == 6
    assert "devices run different ops: every row is an op of its own" in imported.notes


def test_groups_of_a_convolution_are_not_guessed(tmp_path: Path) -> None:
    imported = rewritten(
        tmp_path, {"row": "2", "ATTRIBUTES": "{'groups': '32'}"}, {"row": "5", "ATTRIBUTES": "{'groups': '32'}"}
    )
    assert op(imported, "Conv2dDeviceOperation#1").macs is None


def test_a_row_without_its_time_is_named(tmp_path: Path) -> None:
    imported = rewritten(tmp_path, {"row": "3", "DEVICE KERNEL DURATION [ns]": "soon"})
    assert imported.notes[-1].startswith("1 rows could not be read: line 5: ReshapeDeviceOperation")


def test_rows_without_cycles_have_times_and_no_timeline(tmp_path: Path) -> None:
    imported = rewritten(tmp_path, {"row": "1", "DEVICE FW START CYCLE": ""})
    assert not len(imported.trace.spans)
    assert imported.ops[0].time_ns == 40_030
    assert "no cycle counters in some rows: there is no timeline" in imported.notes


def test_another_table_is_refused(tmp_path: Path) -> None:
    (tmp_path / NAME).write_text("OP CODE,OP TYPE,GLOBAL CALL COUNT,DEVICE ID\nMatmul,tt_dnn_device,1,0\n")
    with pytest.raises(ImportFileError, match=r"line 1: no column DEVICE KERNEL DURATION \[ns\]"):
        read_profile(tmp_path / NAME)
