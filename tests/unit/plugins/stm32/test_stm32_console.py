"""What ST's performance application prints, and epochs of an NPU in a validation report."""

from __future__ import annotations

from pathlib import Path

import pytest

from opscope.core.errors import ImportFileError
from opscope.importers.formats import find_format, read_profile
from opscope.plugins.stm32.console import PerformanceLog
from opscope.recording.recording import Recording
from support.plugins.importer_samples import SAMPLES, all_hold, sample


def changed(folder: Path, old: str, new: str, name: str = "stm32_console.txt") -> Recording:
    text = (SAMPLES / name).read_text()
    assert old in text
    (folder / name).write_text(text.replace(old, new))
    return read_profile(folder / name)


def test_nodes_latency_cycles_and_memory_of_a_test() -> None:
    found = sample("stm32_console.txt")
    assert all_hold(found)
    assert [(op.name, op.type, op.location, op.time_ns) for op in found.ops] == [
        ("CONV2D_0", "CONV2D", "layer 2", 250_100_000),
        ("TD-NL_1", "TD-NL", "layer 2", 10_200_000),
        ("DENSE_2", "DENSE", "layer 6", 64_500_000),
        ("NL_3", "NL", "layer 7", 100_000),
    ]
    assert (found.latency_ns, found.value("clock"), found.value("MACs")) == (325_142_000, 80e6, 2_980_798)
    assert (found.value("activations"), found.value("weights"), found.value("stack")) == (23_684, 33_036, 276)
    assert (found.model, found.inferences, found.provenance) == ("kws", 16, "measured")
    assert found.notes == ("0.242 ms of 325.142 ms are between nodes",)


def test_the_spread_of_cycles_is_the_range_of_the_latency() -> None:
    latency = sample("stm32_console.txt").metric("latency")
    assert latency is not None
    assert (latency.low, latency.high) == (325_140_388, 325_143_462)


def test_the_later_application_has_the_id_before_the_type() -> None:
    found = sample("stm32_stai_console.txt")
    assert [(op.type, op.location, op.time_ns) for op in found.ops] == [
        ("Dense (0x104)", "layer 1", 1_500_000),
        ("NL (0x107)", "layer 2", 125_000),
    ]


def test_cycles_that_lost_their_zeros_are_left_out() -> None:
    """260,000 printed as 2 and 60000 without zeros between; here 2600 for 1.625 ms at 160 MHz."""
    found = sample("stm32_stai_console.txt")
    assert found.value("cycles of one inference") is None
    assert [check.name for check in found.checks if not check.holds] == ["cycles = duration × clock"]
    assert any("some releases lose zeros" in note for note in found.notes)


def test_the_application_for_another_runtime_names_operators() -> None:
    found = sample("stm32_tflm_console.txt")
    assert all_hold(found)
    assert [(op.type, op.time_ns) for op in found.ops] == [("CONV_2D", 3_000_000), ("SOFTMAX", 10_000)]
    assert (found.producer, found.value("clock")) == ({"TensorFlow Lite Micro": "2.10.0"}, 480e6)


def test_a_comma_for_the_point_is_read(tmp_path: Path) -> None:
    found = changed(tmp_path, "kernel  : 324.900ms", "kernel  : 324,900ms")
    assert all_hold(found)


def test_a_row_that_cannot_be_read_is_counted_and_the_sum_fails(tmp_path: Path) -> None:
    found = changed(tmp_path, " 64.500  19.85 %", " 64.5!")
    assert len(found.ops) == 3
    assert found.notes[-1].startswith("1 rows could not be read: line 34")
    assert [check.holds for check in found.checks] == [True, False]


def test_of_several_tests_the_last_and_of_several_networks_the_first(tmp_path: Path) -> None:
    text = (SAMPLES / "stm32_console.txt").read_text()
    other = (SAMPLES / "stm32_stai_console.txt").read_text()
    (tmp_path / "log").write_text(text + text.replace("325.142", "325.143") + other)
    found = read_profile(tmp_path / "log")
    assert found.latency_ns == 325_143_000
    assert found.notes[:2] == (
        "2 tests of the network; the last is shown",
        "1 other networks are left out, a run is of one: network",
    )


def test_a_log_without_nodes_says_why(tmp_path: Path) -> None:
    text = (SAMPLES / "stm32_console.txt").read_text().partition(" Inference time by")[0]
    (tmp_path / "log").write_text(text)
    assert find_format(tmp_path / "log").name == "stm32-console"
    found = read_profile(tmp_path / "log")
    assert found.ops == ()
    assert found.notes[0].startswith("no times of nodes")


def test_a_log_with_nothing_in_it_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("Running PerfTest\n")
    with pytest.raises(ImportFileError, match=r"no results and no nodes; expected what aiSystemPerformance prints$"):
        PerformanceLog().read(tmp_path / "log")


def test_epochs_of_an_npu_have_the_cycles_of_their_three_parts() -> None:
    found = sample("stedgeai_epochs.txt")
    assert [(op.name, op.time_ns, op.cycles, op.engines) for op in found.ops] == [
        ("EpochBlock_1", 100_000, 80_000, ("NPU",)),
        ("EpochBlock_2", 30_000, 24_000, ("CPU",)),
    ]
    assert found.latency_ns == 130_000
