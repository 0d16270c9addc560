"""Console output of Rockchip's RKNN toolkit and runtime.

Rows in the samples are typed from public output, put together from several tables of one form and numbered anew;
totals, rankings and the sizes of the build are worked out for them. The CSV alone is a piece of one file as it
is. Sources:
* 2.x on a board: github.com/channyHuang/channyHuang.github.io, _posts/linuxAndWin/2024-07-18-…rk3588_(4).md, and
  RKNN SDK User Guide 2.3.2, 3.2.3 and 3.2.4 (clocks, memory)
* 2.x, verbose build: github.com/rockchip-linux/rknn-toolkit2/issues/333
* 1.5 on a board: github.com/rockchip-linux/rknn-toolkit2, examples/functions/board_test/README.md; its last two rows
  are from a public log of YOLOv5 with one column more, which is left out
* eval_perf.csv: github.com/InJuly7/Fusion_rknn
* the first toolkit: github.com/rockchip-linux/rknn-toolkit/issues/388
"""

from __future__ import annotations

from pathlib import Path

import pytest

from opscope import api
from opscope.core.errors import ImportFileError
from opscope.core.provenance import Provenance
from opscope.importers.combine import combine
from opscope.importers.formats import read_profile
from opscope.recording.recording import Placed, Recording, ResourceCycles
from support.plugins.importer_samples import SAMPLES, all_hold, op, sample

BOARD = (SAMPLES / "rknn_board.txt").read_text()
BUILD = (SAMPLES / "rknn_build.txt").read_text()
ROW = "1    Conv    INT8  NPU  (1,64,60,60),(64,64,1,1),(64)  (1,64,60,60)  19676/28800/28800  3  Conv:a"
HEADING = "ID   OpType  DataType Target InputShape  OutputShape  Cycles(DDR/NPU/Total)  RW(KB)  FullName"


def imported(tmp_path: Path, text: str) -> Recording:
    (tmp_path / "log.txt").write_text(text)
    return read_profile(tmp_path / "log.txt")


def told(recording: Recording, words: str) -> bool:
    return any(words in note for note in recording.notes)


def test_a_table_of_a_board_has_measured_times_and_the_estimate_of_the_vendors_model() -> None:
    board = sample("rknn_board.txt")
    assert all_hold(board)
    assert len(board.checks) == 4
    assert (board.provenance, board.target, board.cores) == (Provenance.MEASURED, "rk3588", 3)
    assert board.tool == "rknn-toolkit2 2.3.2"
    assert board.latency_ns == 22_916_000
    first = op(board, "/model.0/conv/Conv")
    assert (first.type, first.engines, first.placed) == ("ConvExSwish", ("NPU",), Placed.ACCELERATOR)
    assert (first.time_ns, first.estimated_ns) == (16_130_000, 8_294_400)
    assert first.cycles is None  # it would be read as measured
    assert first.macs == 16 * 960 * 960 * 3 * 9
    assert first.resource_cycles == (ResourceCycles("NPU", False, 8_294_400), ResourceCycles("DDR", True, 1_091_036))


def test_kilobytes_are_of_1024_bytes_and_the_shapes_say_what_they_count() -> None:
    board, before = sample("rknn_board.txt"), sample("rknn_eval_perf.csv")
    add = op(board, "/model.2/m.0/Add")
    assert add.outer_read_bytes == 2 * 16 * 480 * 480 == 7200 * 1024
    assert (add.outer_write_bytes, add.outer_bytes) == (None, None)
    assert told(board, "RW(KB) counts what a layer reads: inputs and weights")
    assert op(before, "Concat_4").outer_bytes == 4 * 16 * 160 * 640 * 2 == 12800 * 1024
    assert told(before, "RW(KB) counts what a layer reads and writes")


def test_traffic_that_its_shapes_do_not_explain_is_no_traffic_of_the_op(tmp_path: Path) -> None:
    """As in the log of YOLOv5, where figures stand one row too early."""
    assert told(sample("rknn_board_1_5.txt"), "not what its shapes say")
    rows = BOARD.replace("     10802   ", "     99999   ").replace("     14404  ", "     99999  ")
    other = imported(tmp_path, rows.replace("     7200  ", "     99999  ").replace("     229   ", "     99999   "))
    assert all(one.outer_read_bytes is None and one.outer_bytes is None for one in other.ops)
    assert told(other, "not what its shapes say")


def test_clocks_are_read_with_their_units_and_an_unknown_one_is_left_out() -> None:
    assert sample("rknn_board.txt").clocks_hz == {"CPU 0": 1.8e9, "CPU 1": 2.4e9, "CPU 2": 2.4e9, "NPU": 1e9}


def test_the_load_of_the_cores_is_told_per_op_and_in_total() -> None:
    board = sample("rknn_board.txt")
    assert (op(board, "/model.2/m.0/Add").threads, op(board, "/model.2/m.0/Add").engine_threads) == (3, 3)
    assert op(board, "/model.2/Split").threads == 1
    timed = 16_130 + 4_862 + 1_195 + 573 + 118
    assert board.value("work on core 1") == pytest.approx(573 * 0.333 / timed)


def test_blank_cells_do_not_shift_the_others() -> None:
    board = sample("rknn_board.txt")
    assert op(board, "Conv #6").time_ns == 118_000  # without a name
    assert op(board, "/model.2/Split").outer_read_bytes == 7200 * 1024  # without MacUsage
    layers = board.details["layers"]
    assert isinstance(layers, list)
    assert layers[2]["mac_usage_percent"] == [21.32, 0, 0]


def test_what_the_runtime_put_in_is_marked() -> None:
    assert op(sample("rknn_board.txt"), "OutputOperator:362").placed is Placed.INSERTED


def test_sizes_of_eval_memory_and_the_ranking_are_kept() -> None:
    board = sample("rknn_board.txt")
    assert board.value("total memory") == round(19.12 * 2**20)
    assert board.value("model file") == round(11.86 * 2**20)
    assert board.memory[0].peak_bytes == round(19.12 * 2**20)
    assert [(kernel.name, kernel.count) for kernel in board.kernels][:2] == [("ConvExSwish", 2), ("Split", 1)]


def test_a_verbose_build_is_the_vendors_model_in_cycles(tmp_path: Path) -> None:
    build = sample("rknn_build.txt")
    assert all_hold(build)
    assert (build.provenance, build.latency_ns) == (Provenance.VENDOR_MODEL, None)
    assert op(build, "Gemm_1#2").cycles == 1536
    assert op(build, "flatten_1_tp_rs").cycles is None  # 0/0/0 is not known, not free
    assert build.value("npu_cycles") == 4096 + 1536
    assert build.value("internal memory") == 7.5 * 1024
    clock = "NPU Current Frequency List:\n    - 500000000\n"
    timed = combine([imported(tmp_path, clock + BUILD)])
    assert op(timed, "Gemm_1#2").time_ns == 3072


def test_of_several_tables_the_last_measured_one_is_taken_and_the_others_are_named(tmp_path: Path) -> None:
    both = imported(tmp_path, BOARD + BUILD)
    assert both.ops == sample("rknn_board.txt").ops
    assert told(both, "2 tables in the log: that of line 19 is taken (measured); not line 63: the compiler's model, 5")
    later = imported(tmp_path, BUILD + BOARD + BOARD.replace("  16130  ", "  16131  "))
    assert op(later, "/model.0/conv/Conv").time_ns == 16_131_000


def test_noise_of_a_console_changes_nothing(tmp_path: Path) -> None:
    def noisy(number: int, line: str) -> str:
        prefix = "\x1b[33m07-21 10:00:00.123  1234  1234 D RKNN    : [05:07:06.566] \x1b[0m"
        return f"{prefix}{line}\r\n" + ("--> 正在推理 42%\r\n" if number % 3 == 0 else "")

    plain = sample("rknn_board.txt")
    table = "".join(noisy(*line) for line in enumerate(BOARD.split("\n")))
    assert imported(tmp_path, table).ops == plain.ops
    quoted = "".join(f" |  {line}\n" for line in BOARD.split("\n"))
    assert imported(tmp_path, quoted).ops == plain.ops
    (tmp_path / "wide.txt").write_bytes(BOARD.encode("utf-16"))
    assert read_profile(tmp_path / "wide.txt").ops == plain.ops


def test_columns_of_release_1_5_and_a_row_that_a_terminal_broke_are_read() -> None:
    board = sample("rknn_board_1_5.txt")
    assert all_hold(board)
    assert [(one.name, one.time_ns) for one in board.ops] == [
        ("InputOperator:data", 7_000),
        ("conv1", 428_000),
        ("Concat_94", 277_000),
        ("Conv_41", 330_000),
    ]
    assert board.cores is None  # three are named for every part
    assert board.target is None


def test_a_csv_of_eval_perf_has_the_same_rows_without_a_heading() -> None:
    table = sample("rknn_eval_perf.csv")
    assert table.maker == "rknn-csv"
    assert [one.time_ns for one in table.ops] == [18_000, 6_000, 1_435_000, 1_526_000, 2_837_000]
    assert op(table, "Conv_2").outer_bytes == round(6404.56 * 1024)
    assert table.latency_ns == 5_822_000


def test_names_of_the_first_toolkit_are_put_together() -> None:
    old = sample("rknn_first_toolkit.txt")
    assert all_hold(old)
    assert [one.name for one in old.ops][0::2] == [
        "MobilenetV1/MobilenetV1/Conv2d_0/Relu6_1_RKNN_mark_perm_60_0",
        "MobilenetV1/MobilenetV1/Conv2d_1_depthwise/Relu6_3_2",
    ]
    assert [one.type for one in old.ops] == ["TENSOR_TRANS", "CONVOLUTION", "DEPTH_WISE_CONV"]
    assert old.latency_ns == 2_177_000


def test_times_that_a_simulator_worked_out_for_a_clock_are_a_model(tmp_path: Path) -> None:
    text = (SAMPLES / "rknn_first_toolkit.txt").read_text().replace("FPS: 459.35", "FPS(600MHz): 344\nFPS(800MHz): 459")
    old = imported(tmp_path, text)
    assert old.provenance is Provenance.VENDOR_MODEL
    assert old.value("throughput at 600 MHz") == 344


def test_a_total_without_a_table_is_the_latency(tmp_path: Path) -> None:
    total = imported(tmp_path, "=====\n      Performance\n=====\nTotal Time(us): 7140\nFPS: 140.06\n=====\n")
    assert (total.latency_ns, total.value("throughput"), total.ops) == (7_140_000, 140.06, ())
    assert all_hold(total)
    wrong = imported(tmp_path, "Total Time(us): 7140\nFPS: 150\n")
    assert not all_hold(wrong)


def test_a_log_with_both_forms_of_eval_perf_has_two_latencies(tmp_path: Path) -> None:
    both = imported(tmp_path, "Total Time(us): 17219\nFPS: 58.08\n" + BOARD)
    assert (both.latency_ns, both.value("latency_without_profiler")) == (22_916_000, 17_219_000)
    assert all_hold(both)


def test_a_benchmark_has_its_samples_and_their_mean(tmp_path: Path) -> None:
    lines = "Begin perf ...\n   0: Elapse Time = 2.85ms, FPS = 351.12\n   1: Elapse Time = 2.65ms, FPS = 377.36\n"
    run = imported(tmp_path, lines + "\nAvg Time 2.75ms, Avg FPS = 363.636\n")
    assert (run.samples_ns, run.latency_ns) == ((2_850_000, 2_650_000), 2_750_000)
    assert imported(tmp_path, lines).latency_ns == 2_750_000


def test_rows_that_cannot_be_read_are_counted_and_the_total_says_so(tmp_path: Path) -> None:
    broken = imported(tmp_path, BOARD.replace("935287/2073600/2073600", "935287/2073600"))
    assert told(broken, "1 rows could not be read: line 23: 3    ConvExSwish")
    assert told(broken, "rows are left out of the table: 3")
    assert not all_hold(broken)
    assert broken.latency_ns == 22_916_000  # the log's own
    without = BOARD.replace("Total Operator Elapsed", "Total Elapsed")
    assert imported(tmp_path, without).latency_ns == 22_916_000
    cut = imported(tmp_path, without.replace("935287/2073600/2073600", "935287/2073600"))
    assert cut.latency_ns is None


def test_rows_that_somebody_left_out_are_noted(tmp_path: Path) -> None:
    rows = [line for line in BOARD.split("\n") if not line.startswith(("4  ", "5  "))]
    short = imported(tmp_path, "\n".join(rows))
    assert told(short, "rows are left out of the table: 4 to 5")
    assert imported(tmp_path, f"{HEADING}\n{ROW}\n......\n").notes[0] == "rows are left out of the table: ..."


def test_a_column_that_nobody_knows_is_passed_over(tmp_path: Path) -> None:
    text = f"{HEADING.replace('RW(KB)', 'Novel(x)  RW(KB)')}\n{ROW.replace('  3  ', '  a/b  3  ')}\n"
    assert [(one.name, one.cycles) for one in imported(tmp_path, text).ops] == [("a", 28_800)]


def test_the_cores_of_a_table_name_the_part_where_the_log_does_not(tmp_path: Path) -> None:
    anonymous = imported(tmp_path, BOARD.replace("I target set by user is: rk3588\n", ""))
    assert anonymous.target == "rk3588"
    assert told(anonymous, "target: rk3588, the part whose tables tell the load of 3 cores")
    line = "I RKNN: [05:29:16.501] RKNN Model Information, version: 6, target: RKNPU v2, target platform: rk3576, x\n"
    named = imported(tmp_path, line + BOARD)
    assert named.target == "rk3576"
    assert told(named, "the log also names rk3588")


@pytest.mark.parametrize("text", ["D RKNN: [15:13:15.945] >>>>>> start: x\n", f"{HEADING}\n"])
def test_a_log_without_a_table_is_one_line_of_error(text: str, tmp_path: Path) -> None:
    with pytest.raises(ImportFileError, match=r"log\.txt: no table of layers, no totals and no sizes; expected"):
        imported(tmp_path, text)


def test_a_compiled_model_is_told_what_it_is(tmp_path: Path) -> None:
    (tmp_path / "m.rknn").write_bytes(b"RKNN\0\0\0\0\6\0\0\0")
    with pytest.raises(ImportFileError, match=r"a model compiled for Rockchip's NPU \(\.rknn\); expected what"):
        read_profile(tmp_path / "m.rknn")


def test_memory_alone_is_a_fact_that_goes_with_a_table(tmp_path: Path) -> None:
    table, _, memory = BOARD.partition("=====")
    (tmp_path / "table.txt").write_text(table)
    (tmp_path / "memory.txt").write_text("=====" + memory)
    assert read_profile(tmp_path / "memory.txt").provenance is Provenance.COMPILER_FACT
    run = api.import_profile([tmp_path / "table.txt", tmp_path / "memory.txt"], tmp_path / "run")
    assert run.recording.value("total memory") == round(19.12 * 2**20)
    assert run.recording.latency_ns == 22_916_000
    assert run.run.info.target == "rk3588"
