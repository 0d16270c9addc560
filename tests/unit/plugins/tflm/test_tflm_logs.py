"""Logs of boards, with what consoles put around the runtime's lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from opscope.core.errors import ImportFileError
from opscope.importers.formats import find_format
from opscope.plugins.tflm.logs import MicroLog
from opscope.recording.recording import Recording
from support.plugins.importer_samples import all_hold, sample

TOOK = ("CONV_2D took 120000 ticks (1 ms).", "SOFTMAX took 800 ticks (0 ms).")


def read(folder: Path, *lines: str) -> Recording:
    path = folder / "board.log"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert find_format(path).name == "tflm-log"
    return MicroLog().read(path)


@pytest.mark.parametrize(
    "around",
    [
        "{}",
        "[00:00:01.250,000] <inf> main: {}",  # Zephyr
        "\x1b[0;32mI (1234) tflm: {}\x1b[0m",  # ESP-IDF, in colour
        "[mbed] {}\r",
    ],
)
def test_events_are_found_in_the_noise_of_a_console(tmp_path: Path, around: str) -> None:
    found = read(tmp_path, "*** Booting ***", *(around.format(line) for line in TOOK))
    assert [(op.type, op.cycles, op.time_ns) for op in found.ops] == [("CONV_2D", 120000, None), ("SOFTMAX", 800, None)]
    assert "its rate is not in the log" in found.notes[0]


def test_inferences_that_repeat_are_averaged(tmp_path: Path) -> None:
    again = ("CONV_2D took 120010 ticks (1 ms).", "SOFTMAX took 802 ticks (0 ms).")
    found = read(tmp_path, *TOOK, *again)
    assert (found.inferences, [op.cycles for op in found.ops]) == (2, [120005, 801])


def test_a_long_event_tells_the_rate_of_the_timer(tmp_path: Path) -> None:
    """120,000 ticks a millisecond: 500 ms, cut off at most one below."""
    found = read(tmp_path, "CONV_2D took 60000000 ticks (500 ms).", "SOFTMAX took 1200000 ticks (10 ms).")
    assert found.ops[0].time_ns == pytest.approx(500e6, rel=0.01)
    latency = next(metric for metric in found.metrics if metric.name == "latency")
    assert latency.low is not None
    assert latency.low <= 510e6 <= (latency.high or 0)


def test_a_table_of_events(tmp_path: Path) -> None:
    found = read(tmp_path, '"Event","Tag","Ticks"', "0,CONV_2D,500", "1,FULLY_CONNECTED,70", "done")
    assert [(op.type, op.cycles) for op in found.ops] == [("CONV_2D", 500), ("FULLY_CONNECTED", 70)]


def test_a_table_per_tag_adds_up(tmp_path: Path) -> None:
    head = '"Unique Tag","Total ticks across all events with that tag."'
    found = read(tmp_path, head, "CONV_2D, 500", "SOFTMAX, 20", '"total number of ticks", 520')
    assert [op.cycles for op in found.ops] == [500, 20]
    assert [check.holds for check in found.checks] == [True]
    wrong = read(tmp_path, head, "CONV_2D, 500", '"total number of ticks", 520')
    assert [check.holds for check in wrong.checks] == [False]


def test_events_of_setting_up_are_no_operators(tmp_path: Path) -> None:
    found = read(tmp_path, "tflite::GetModel took 4 ticks (0 ms).", "InitializeTarget took 9 ticks (0 ms).", *TOOK)
    assert [op.type for op in found.ops] == ["CONV_2D", "SOFTMAX"]


def test_allocations_are_figures_of_the_recording(tmp_path: Path) -> None:
    said = "[RecordingMicroAllocator] Arena allocation {} {} bytes"
    part = "[RecordingMicroAllocator] 'TfLiteEvalTensor data' used 96 bytes with alignment overhead (requested 96)"
    found = read(tmp_path, said.format("total", 300), said.format("head", 200), said.format("tail", 100), part)
    sizes = {metric.name: metric.value for metric in found.metrics}
    assert sizes == {"arena total": 300, "arena head": 200, "arena tail": 100, "TfLiteEvalTensor data": 96}
    assert found.checks[0].holds


def test_a_log_with_headings_alone_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "empty.log"
    path.write_text('"Event","Tag","Ticks"\n', encoding="utf-8")
    with pytest.raises(ImportFileError, match=r"no events and no allocations; expected what MicroProfiler prints$"):
        MicroLog().read(path)


def test_the_benchmark_has_setting_up_operators_and_the_arena() -> None:
    found = sample("tflm_benchmark.txt")
    assert all_hold(found)
    assert [check.name for check in found.checks] == ["head and tail are the arena", "ticks of operators add up"]
    assert [(op.type, op.kind, op.cycles) for op in found.ops] == [
        ("CONV_2D", "conv", 224_622),
        ("ethos-u", "", 5000),
        ("CONV_2D", "conv", 78),
        ("SOFTMAX", "softmax", 300),
    ]
    assert (found.target, found.model, found.provenance) == ("cortex-m4", "models/small.tflite", "measured")
    assert found.value("ticks of tflite::MicroInterpreter instantiation") == 59
    assert (found.value("arena configured"), found.value("arena head")) == (30_720, 7_000)
    assert (found.value("TfLiteEvalTensor data"), found.value("TfLiteTensor variable buffer data")) == (108, 0)
    assert found.details == {"input CRC32": "0x14F6A510", "output CRC32": "0xA4A6A6BE"}


def test_ticks_of_an_emulator_are_no_times_and_a_counter_that_ran_over_is_counted() -> None:
    found = sample("tflm_benchmark.csv")
    assert (found.provenance, found.latency_ns, [op.cycles for op in found.ops]) == ("emulated", None, [500])
    assert found.notes == (
        "cortex_m_corstone_300 is an emulator: its ticks are no time of a board, and none is shown",
        "1 rows could not be read: line 9: 1,SOFTMAX,-3",
    )
    assert found.value("arena tail") == 3000


def test_the_time_of_all_inferences_tells_the_rate(tmp_path: Path) -> None:
    found = read(tmp_path, "KeywordRunNIterations(10) took 12000000 ticks (100 ms).", *TOOK)
    assert [op.type for op in found.ops] == ["CONV_2D", "SOFTMAX"]
    assert found.ops[0].time_ns == pytest.approx(1e6, rel=0.01)
    assert found.value("ticks of KeywordRunNIterations(10)") == 12_000_000


def test_unpacking_of_weights_is_part_of_operators(tmp_path: Path) -> None:
    found = read(tmp_path, *TOOK, "DecompressToBuffer took 900 ticks (0 ms).")
    assert [op.type for op in found.ops] == ["CONV_2D", "SOFTMAX"]
    assert found.value("ticks of unpacking weights") == 900
