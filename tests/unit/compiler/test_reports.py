"""What the compiler says about a program: warnings, memory metrics, timeline."""

from __future__ import annotations

import csv
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest

from opscope.compiler.performance_warnings import PerformanceWarning, performance_warnings
from opscope.graph.graph import DType, Graph
from opscope.importers.formats import read_profile
from opscope.machine import catalogue as targets
from opscope.program.program import NO_ROUTE
from opscope.simulation import simulate
from opscope.views.text.memory_metrics import MemoryMetricsText
from opscope.views.text.timeline_csv import TimelineCsv
from support.build import Sketch
from support.compiler.build import KB, Built, build, small_target, whole_batch

AIC100 = targets.load("aic100-std")


def warnings(built: Built) -> dict[str, list[PerformanceWarning]]:
    found: dict[str, list[PerformanceWarning]] = {}
    for warning in performance_warnings(built.passed, built.program):
        found.setdefault(warning.kind, []).append(warning)
    return found


def spilling() -> Graph:
    """A long tensor that waits while others pass."""
    draw = Sketch(dtype=DType.F16)
    data = draw.input(128, 256)
    kept = draw.same("erf", data, name="kept")
    passing = draw.same("softmax", draw.same("softmax", kept, axes=(0,)), axes=(0,))
    return draw.graph(draw.same("add", passing, kept))


# ---- warnings -------------------------------------------------------------------------------------------------------


def test_a_product_that_the_faster_engine_does_not_take_in_its_type_is_warned_of() -> None:
    draw = Sketch(dtype=DType.F32)
    single = replace(AIC100, precision={})
    built = build(draw.graph(draw.dense(draw.input(64, 64), 64, name="product")), single)
    (warning,) = warnings(built)["slow-engine"]
    assert warning.op == "product"
    assert warning.text == "runs on HVX, since HMX has no rate for f32: another type would be faster"
    assert warning.cycles == built.schedule.placed[0].cycles


def test_an_op_on_the_fastest_engine_is_not_warned_of() -> None:
    draw = Sketch(dtype=DType.F16)
    built = build(draw.graph(draw.depthwise(draw.input(1, 56, 56, 64))), AIC100)
    assert built.schedule.placed[0].engine == "HVX"  # HMX would take longer
    assert "slow-engine" not in warnings(built)


def test_tiles_that_stay_empty_are_warned_of() -> None:
    draw = Sketch(dtype=DType.F16)
    built = build(draw.graph(draw.dense(draw.input(4096, 1024), 8, name="thin")), AIC100)
    (warning,) = warnings(built)["poor-tiling"]
    assert (warning.op, warning.text) == ("thin", "fills 25 % of its 32-wide tiles")


@pytest.mark.parametrize(("kind", "dtype"), [("poor-tiling", DType.F16), ("slow-engine", DType.F32)])
def test_the_cost_of_a_product_is_that_of_the_core_that_does_most_of_it(kind: str, dtype: DType) -> None:
    draw = Sketch(dtype=dtype)
    graph = draw.graph(draw.dense(draw.input(4096, 1024), 8, name="thin"))
    target = replace(AIC100, precision={})
    costs = [warnings(build(graph, target, cores=cores))[kind][0].cycles for cores in (1, 4)]
    assert costs[0] is not None
    assert costs[1] == pytest.approx(costs[0] / 4)


def test_spills_are_warned_of_with_their_bytes() -> None:
    built = build(spilling(), small_target(local_bytes=160 * KB, weight_bytes=KB), parts=whole_batch)
    found = {warning.op: warning.text for warning in warnings(built)["spill"]}
    assert found == {"kept": "spills 64 KB to outer memory and reads them again"}


def test_an_output_that_is_streamed_out_is_no_spill() -> None:
    draw = Sketch(dtype=DType.F16)
    graph = draw.graph(draw.same("softmax", draw.input(128, 256), axes=(1,)))
    built = build(graph, small_target(local_bytes=64 * KB, weight_bytes=KB), parts=whole_batch)
    assert "spill" not in warnings(built)


def test_cores_that_wait_for_one_are_warned_of() -> None:
    draw = Sketch(dtype=DType.F16)
    graph = draw.graph(draw.same("softmax", draw.input(5, 65536), axes=(1,), name="uneven"))
    built = build(graph, AIC100, cores=4, parts=whole_batch)
    (warning,) = warnings(built)["imbalance"]
    assert (warning.op, warning.text) == ("uneven", "busiest core works 1.6× the mean")


def test_layouts_that_change_to_and_fro_are_warned_of() -> None:
    draw = Sketch(dtype=DType.F16)
    data = draw.input(512, 512)
    for _ in range(3):
        data = draw.op("transpose", (draw.dense(data, 512, bias=False),), (512, 512), permutation=(1, 0))
    built = build(draw.graph(data), AIC100)
    (warning,) = warnings(built)["layout-churn"]
    assert "% of vector work" in warning.text
    assert warning.cycles > 0


def test_what_commands_are_called_changes_no_warning() -> None:
    draw = Sketch(dtype=DType.F16)
    scores = draw.same("softmax", draw.dense(draw.input(512, 512), 512, bias=False), axes=(1,))
    graph = draw.graph(draw.same("gelu", draw.op("add", (scores, scores), (512, 512))))
    same = dict.fromkeys((*AIC100.commands, "to_tiled", "from_tiled", "weights_to_tiled"), "work")
    assert warnings(build(graph, replace(AIC100, commands=same))) == warnings(build(graph, AIC100))


def test_warnings_come_costliest_first() -> None:
    built = build(spilling(), small_target(local_bytes=160 * KB, weight_bytes=KB), cores=3)
    costs = [warning.cycles for warning in performance_warnings(built.passed, built.program)]
    assert costs == sorted(costs, reverse=True)


# ---- metrics --------------------------------------------------------------------------------------------------------


def text_of(built: Built) -> list[str]:
    out = StringIO()
    MemoryMetricsText(local="VTCM", outer="DDR").render(built.program, out)
    return out.getvalue().splitlines()


def test_memories_are_called_as_the_target_calls_them() -> None:
    out = StringIO()
    MemoryMetricsText(local="LRAM", outer="XRAM").render(two_layers().program, out)
    text = out.getvalue()
    assert "LRAM0Size:" in text
    assert "XRAM traffic  read:" in text
    assert "XRAM and LRAM traffic by op, most XRAM first:" in text
    assert "VTCM" not in text
    assert "DDR" not in text


def kilobytes(lines: list[str], start: str) -> int:
    return int(next(line for line in lines if line.startswith(start)).split(":")[2].split()[0])


def two_layers() -> Built:
    draw = Sketch("mlp", dtype=DType.F16)
    data = draw.dense(draw.input(1024, 1024, name="tokens"), 4096, name="up")
    return build(draw.graph(draw.dense(data, 1024, name="down")), AIC100, cores=2)


def test_totals_are_the_sums_of_the_cores_and_of_the_host() -> None:
    lines = text_of(two_layers())
    host = {"MC  traffic write": kilobytes(lines, "   host: MC  traffic write")}
    for what in ("DDR traffic  read", "DDR traffic write", "MC  traffic write"):
        cores = [kilobytes(lines, f"    c0{core}: {what}") for core in (0, 1)]
        assert abs(kilobytes(lines, f"  total: {what}") - sum(cores) - host.get(what, 0)) <= 1
    assert host["MC  traffic write"] == 1024 * 1024 * 2 // KB
    assert kilobytes(lines, "  total: MC  traffic  read") == kilobytes(lines, "   host: MC  traffic  read")


def test_an_importer_reads_them_back(tmp_path: Path) -> None:
    file = tmp_path / "metrics.txt"
    file.write_text("\n".join(text_of(two_layers())))
    found = read_profile(file)
    assert (found.maker, found.tool, found.provenance) == ("qaic-compile-metrics", "opscope", "compiler-fact")
    assert found.value("total DDR read, constants") == 2 * 1024 * 4096 * 2
    assert found.value("total DDR read, constants, first inference") == 2 * 1024 * 4096 * 2 + 10 * KB
    assert len(found.checks) == 6
    assert all(check.holds for check in found.checks)


def test_what_is_read_is_weights_and_inputs() -> None:
    built = two_layers()
    rows = built.program.metrics.traffic
    assert sum(row.read_constant for row in rows) == 2 * 1024 * 4096 * 2
    assert sum(row.read - row.read_constant for row in rows) == 1024 * 1024 * 2  # the input: nothing is spilled
    assert sum(row.multicast_constant for row in rows) == sum(row.multicast for row in rows)
    assert built.program.metrics.first_read == (4096 + 1024) * 2  # biases stay


def test_what_is_read_beyond_weights_and_inputs_was_spilled() -> None:
    built = build(spilling(), small_target(local_bytes=160 * KB, weight_bytes=KB), parts=whole_batch)
    (row,) = built.program.metrics.traffic
    size = 128 * 256 * 2
    assert row.read - row.read_constant == size + size  # the input, and what was spilled
    assert row.write == size + size  # what was spilled, and the output
    assert row.read_constant == 0


def test_the_metrics_text_has_the_lines_of_the_vendors() -> None:
    lines = text_of(two_layers())
    assert lines[0] == f"MAC estimate: {2 * 1024 * 1024 * 4096}"
    assert lines[1:3] == ["Graph operation size histogram:", "output elts    op count (cumulative)"]
    assert lines[3:5] == [f"{1024 * 1024:>11} {1:>19}  50%", f"{4 * 1024 * 1024:>11} {2:>19} 100%"]
    assert any(line.startswith("VTCMMaxSize: ") and line.endswith(" of 8323072 B") for line in lines)
    assert "    c00: DDR traffic  read:" in "\n".join(lines)
    assert any("first-inf" in line for line in lines)
    assert any(line.startswith("  c00 barriers:") for line in lines)
    assert any(line.endswith("FULLY_CONNECTED up") for line in lines)


# ---- timeline -------------------------------------------------------------------------------------------------------


def test_the_timeline_has_one_row_per_command_in_order_of_start() -> None:
    built = two_layers()
    times, out = simulate(built.program), StringIO()
    TimelineCsv().render(built.program, times.start.tolist(), times.done.tolist(), out)
    rows = list(csv.DictReader(StringIO(out.getvalue())))
    assert list(rows[0]) == ["ID", "Start", "End", "Location", "Op Type"]
    assert len(rows) == len(built.program.commands)
    assert all(int(row["Start"]) <= int(row["End"]) for row in rows)
    assert [int(row["Start"]) for row in rows] == sorted(int(row["Start"]) for row in rows)
    assert len({row["ID"] for row in rows}) == len(rows)
    routes = built.program.commands["route"]
    carries = [built.program.routes[route].carries for route in routes if route != NO_ROUTE]
    assert sum(row["ID"].startswith("DI") for row in rows) == carries.count("read")
    assert sum(row["ID"].startswith("DO") for row in rows) == carries.count("write")
    assert {row["Op Type"] for row in rows if row["ID"].startswith("DI")} == {"DMA_IN"}
    assert any(row["Location"].endswith("up") and row["Op Type"] == "aicconvolutiond32" for row in rows)
