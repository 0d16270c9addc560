"""Reports of ST Edge AI Core: network_c_info.json and text."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from opscope.importers.formats import read_profile
from opscope.recording.recording import ResourceCycles
from support.plugins.importer_samples import SAMPLES, all_hold, changed, sample


def test_c_info_has_macs_bytes_placement_and_times() -> None:
    imported = sample("stedgeai_info.json")
    assert all_hold(imported)
    fc, relu = imported.ops
    assert (fc.time_ns, fc.cycles, fc.macs, fc.parameter_bytes, fc.in_bytes, fc.engines) == (
        100_000,
        16000,
        896,
        3584,
        52,
        ("CPU",),
    )
    assert relu.engines == ("NPU",)
    assert imported.latency_ns == 130_000
    assert imported.provenance == "measured"
    assert imported.tool == "ST Edge AI Core 2.2.0-20266"


def test_a_time_of_zero_is_no_time(tmp_path: Path) -> None:
    text = (SAMPLES / "stedgeai_info.json").read_text()
    body = json.loads(text)
    for holder in (body["graphs"][0], *body["graphs"][0]["nodes"]):
        holder["exec_time"] = {"counters": None, "cycles": 0, "duration_ms": 0.0}
    (tmp_path / "i.json").write_text(json.dumps(body))
    imported = read_profile(tmp_path / "i.json")
    assert imported.provenance == "compiler-fact"
    assert {o.time_ns for o in imported.ops} == {None}
    assert imported.notes == ("no times: they come with `stedgeai validate` on the target",)
    assert imported.target == "stm32u5"


def test_times_of_the_host_are_not_taken_for_the_target(tmp_path: Path) -> None:
    imported = changed(tmp_path, "stedgeai_info.json", "stm32u5, cortex-m33, 160MHz", "x86_64, x86_64, Linux")
    assert "times were measured on the host (x86_64, x86_64, Linux), not on the target" in imported.notes


def test_weights_that_do_not_add_up_are_a_violation(tmp_path: Path) -> None:
    imported = changed(tmp_path, "stedgeai_info.json", '"weights": 3584', '"weights": 9000')
    assert [c.name for c in imported.checks if not c.holds] == ["weights = sum of the constant buffers"]


def test_the_text_report_adds_up_to_its_totals() -> None:
    imported = sample("stedgeai_analyze.txt")
    assert all_hold(imported)
    assert [(o.name, o.macs, o.parameter_bytes) for o in imported.ops] == [
        ("conv2d", 38040, 1632),
        ("dense", 9516, 38064),
    ]
    assert imported.value("ram") == 10144
    assert imported.notes == ("no times: they come with `stedgeai validate` on the target",)


def test_a_report_without_c_layers_gives_the_model_table() -> None:
    imported = sample("stedgeai_n6.txt")
    assert all_hold(imported)
    assert [o.macs for o in imported.ops] == [None, 6400, 460816, 51200]
    assert (imported.target, imported.model) == ("stm32n6", "rps")


def test_a_validation_report_has_times_per_node() -> None:
    imported = sample("stedgeai_validate.txt")
    assert [(o.name, o.time_ns, o.cycles) for o in imported.ops] == [("fc", 100_000, 16000), ("relu", 30_000, 4800)]
    assert (imported.latency_ns, imported.provenance) == (130_000, "measured")


@pytest.mark.parametrize(
    ("name", "tool", "target", "macs"),
    [
        ("stedgeai_v5.txt", "STM32Cube.AI 5.2.0", None, [3856, 8632, 64]),
        ("stedgeai_v6.txt", "STM32Cube.AI 6.0.0-RC6", "stm32f4", [None, None, 50240, 2080]),
        ("stedgeai_v8.txt", "STM32Cube.AI 8.1.0-19520", "stm32f7", [34564, 3840, 448, 448]),
    ],
)
def test_reports_of_earlier_releases_are_read(name: str, tool: str, target: str | None, macs: list[int | None]) -> None:
    imported = sample(name)
    assert all_hold(imported)
    assert len(imported.checks) == 2
    assert (imported.tool, imported.target, [row.macs for row in imported.ops]) == (tool, target, macs)
    assert imported.notes == ("no times: they come with `stedgeai validate` on the target",)


def test_a_validation_on_the_host_is_no_time_of_the_target() -> None:
    imported = sample("stedgeai_host.txt")
    assert (imported.provenance, imported.latency_ns, imported.target) == ("measured", 18_000, "x86_64, x86_64, Linux")
    assert imported.notes == ("times were measured on the host (x86_64, x86_64, Linux), not on the target",)
    assert [(row.name, row.macs, row.time_ns) for row in imported.ops] == [("fc", 896, None), ("relu", 64, None)]


def test_cycles_that_the_compiler_of_an_npu_expects_are_its_model(tmp_path: Path) -> None:
    body = json.loads((SAMPLES / "stedgeai_info.json").read_text())
    del body["graphs"][0]["exec_time"]
    for node in body["graphs"][0]["nodes"]:
        del node["exec_time"]
    body["power_estimates"] = [
        {"node_id": 7, "compute_cycles": 0, "max_cycles": 0, "ops": 0},
        {"node_id": 8, "compute_cycles": 256, "max_cycles": 768, "ops": 4352},
    ]
    (tmp_path / "i.json").write_text(json.dumps(body))
    imported = read_profile(tmp_path / "i.json")
    assert imported.provenance == "vendor-model"
    assert [(row.cycles, row.resource_cycles) for row in imported.ops] == [
        (None, ()),
        (768, (ResourceCycles("computing", False, 256),)),
    ]
    assert any(note.startswith("cycles of 1 of 2 nodes are the compiler's estimate") for note in imported.notes)


def test_a_node_of_another_form_is_counted_and_the_others_stay(tmp_path: Path) -> None:
    imported = changed(tmp_path, "stedgeai_info.json", '"macc": 896', '"macc": "many"')
    assert [row.name for row in imported.ops] == ["relu"]
    assert imported.notes[-1].startswith("1 entries could not be read: node 0: Expected `int | null`, got `str`")
