from __future__ import annotations

from pathlib import Path

import pytest

from opscope.core.errors import ImportFileError
from opscope.importers.combine import combine
from opscope.importers.formats import read_profile
from opscope.recording.recording import ResourceCycles
from support.plugins.importer_samples import SAMPLES, all_hold, op, sample


def test_an_op_takes_as_long_as_its_busiest_resource() -> None:
    imported = sample("vela_per-layer.csv")
    assert all_hold(imported)
    logits = op(imported, "logits")
    assert (logits.cycles, logits.resource_cycles[-1]) == (2040, ResourceCycles("off-chip flash", True, 2040))
    assert (logits.type, logits.engines, logits.macs) == ("FullyConnected", ("NPU",), 768)
    assert imported.provenance == "vendor-model"
    assert imported.value("cycles") == 33641


def test_units_of_the_summary_are_not_what_they_are_printed_as() -> None:
    imported = sample("vela_summary.csv")
    assert imported.latency_ns == 67_282
    assert imported.value("sram memory used") == 21.5625 * 1024
    assert imported.value("sram bandwidth") == pytest.approx(4e9)
    assert imported.target == "Ethos_U55_128 Ethos_U55_High_End_Embedded Shared_Sram"
    assert all_hold(imported)


def test_together_they_give_times_and_agree_on_the_total() -> None:
    both = combine([sample("vela_per-layer.csv"), sample("vela_summary.csv")])
    assert all_hold(both)
    assert [check.name for check in both.checks][-2:] == [
        "total MACs of both files agree",
        "total cycles of both files agree",
    ]
    assert op(both, "logits").time_ns == 4080
    assert sum(o.time_ns or 0 for o in both.ops) == both.latency_ns


def edited(tmp_path: Path, name: str, old: str, new: str) -> Path:
    path = tmp_path / name
    text = (SAMPLES / name).read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    return path


def test_a_row_that_breaks_the_rule_is_named_by_its_line(tmp_path: Path) -> None:
    (check,) = read_profile(edited(tmp_path, "vela_per-layer.csv", ",5400,16.1,5400", ",5401,16.1,5400")).checks
    assert not check.holds
    assert "line 4: 5401 is not 5400" in check.detail


def test_a_total_that_is_not_the_sum_is_a_violation(tmp_path: Path) -> None:
    other = read_profile(edited(tmp_path, "vela_summary.csv", "31839,33641", "31839,33642"))
    both = combine([sample("vela_per-layer.csv"), other])
    assert [check.name for check in both.checks if not check.holds] == [
        "time = cycles ÷ clock",
        "total cycles of both files agree",
    ]


def test_ops_on_the_cpu_are_unknown_and_not_free(tmp_path: Path) -> None:
    layers = read_profile(
        edited(
            tmp_path,
            "vela_per-layer.csv",
            "AvgPool,AvgPool,NPU,8064,36.52,5400,16.1,5400,1288",
            "AvgPool,AvgPool,CPU,8064,36.52,0,16.1,0,0",
        )
    )
    assert op(layers, "pool").cycles is None
    assert layers.metric("cycles") is None
    assert layers.notes == ("1 ops on the CPU have no cycles in the file: totals leave them out",)
    both = combine([layers, sample("vela_summary.csv")])
    assert both.latency_ns is None
    assert "latency is withheld: it leaves out ops without cycles" in both.notes


def test_not_a_number_is_no_number(tmp_path: Path) -> None:
    imported = read_profile(edited(tmp_path, "vela_summary.csv", "14861.05", "nan"))
    assert imported.value("inferences per second") is None
    assert imported.notes == ("inferences_per_second: not a number in the file",)


def test_a_row_of_another_length_is_counted(tmp_path: Path) -> None:
    imported = read_profile(edited(tmp_path, "vela_per-layer.csv", ",0.58,logits", ""))
    assert len(imported.ops) == 3
    assert imported.notes[0].startswith("1 rows could not be read: line 5: 14 cells, not 16: FullyConnected")


def test_a_summary_without_a_row_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    path.write_text((SAMPLES / "vela_summary.csv").read_text().split("\n")[0] + "\n")
    with pytest.raises(ImportFileError, match=r"s\.csv: line 2: no row"):
        read_profile(path)


def test_a_file_of_an_earlier_release_has_other_columns_and_a_heading_per_subgraph(tmp_path: Path) -> None:
    head = (
        "TFLite_operator,NNG Operator,SRAM Usage,Peak%,Op Cycles,Network%,NPU,SRAM AC,DRAM AC,OnFlash AC,OffFlash AC,"
        "MAC Count,Network%,Util%,Name\n"
    )
    path = tmp_path / "old_per-layer.csv"
    first = "CONV_2D,Conv2DBias,11936,54.65,7312.0,70.96,7312.0,2000.0,0.0,0.0,0.0,73008,91.3,3.9,a;b\n"
    path.write_text(
        f"{head}{first}{head}MAX_POOL_2D,MaxPool,10944,50.1,2992.0,29.04,1330.0,2992.0,0,0,0,6912,8.7,0.9,p\n"
    )
    imported = read_profile(path)
    assert all_hold(imported)
    assert [(row.type, row.cycles, row.memory_bytes) for row in imported.ops] == [
        ("CONV_2D", 7312, 11936),
        ("MAX_POOL_2D", 2992, 10944),
    ]
    assert imported.notes == ()
    assert imported.value("cycles") == 7312 + 2992
