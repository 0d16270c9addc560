"""Files of devices → Recording."""

from __future__ import annotations

from pathlib import Path

import pytest

from opscope.core.errors import ImportFileError
from opscope.importers.combine import combine
from opscope.importers.formats import load_importer
from opscope.plugins.qnn.importers.events import plain_name
from opscope.plugins.qnn.manifest import MANIFEST
from opscope.plugins.qnn.qhas_files import analysis_summary
from opscope.recording.recording import Placed, Recording
from support.plugins.qnn.htp_samples import profiled, tiny
from support.plugins.qnn.qnn_samples import DEVICE_CSV, OPTRACE, QHAS, VIEWER_TEXT
from support.plugins.qnn.qnn_session import MHZ, emulated, two_graphs


def read(path: Path) -> Recording:
    head = path.read_bytes()
    (form,) = [form for form in MANIFEST.formats if form.fits(head, path.name)]
    return load_importer(form).read(path)


def written(folder: Path, text: str) -> Path:
    path = folder / "profile"
    path.write_text(text)
    return path


def test_runs_of_a_device_are_averaged(tmp_path: Path) -> None:
    found = read(written(tmp_path, DEVICE_CSV))
    assert (found.maker, found.provenance, found.inferences) == ("qnn-csv", "measured", 2)
    assert (found.latency_ns, found.value("total_inference_time")) == (700_000, 850_000)
    assert found.samples_ns == (800_000, 600_000)
    assert found.value("rpc_time") == 800_000
    assert found.value("vtcm_acquisition_time") == 20_000
    assert found.value("power_up_time") == 30_000
    assert found.value("yields") == 2
    assert [(op.name, op.cycles) for op in found.ops] == [("conv0", 650_000), ("add:with:colons", 450_000)]


def test_a_run_of_a_device_is_taken_apart_and_its_parts_add_up(tmp_path: Path) -> None:
    found = read(written(tmp_path, DEVICE_CSV))
    parts = {stage.name: stage.ns for stage in found.host}
    assert parts == {"runtime": 50_000, "RPC": 50_000, "memory wait": 20_000, "power-up": 30_000, "device": 700_000}
    assert sum(parts.values()) == found.value("total_inference_time")
    assert [(cause.id, cause.cost_ns) for cause in found.causes] == [("host-stages", 100_000)]
    assert "VTCM acquisition 20 us, power-up 30 us, accelerator 700 us" in found.causes[0].detail
    assert found.causes[0].action.startswith("do more in one call")


def test_nodes_share_the_time_of_the_accelerator_by_their_cycles(tmp_path: Path) -> None:
    found = read(written(tmp_path, DEVICE_CSV))
    assert [op.time_ns for op in found.ops] == [413_636, 286_364]  # 700 us by 650 and 450 thousand cycles
    assert found.value("accelerator_clock") == pytest.approx(1.1e6 / 700e-6)


def test_a_row_that_is_cut_off_is_counted_and_the_rest_is_read(tmp_path: Path) -> None:
    whole, cut = read(written(tmp_path, DEVICE_CSV)), read(written(tmp_path, DEVICE_CSV + "0,BACKEND,4,COU"))
    assert (cut.metrics, cut.host, cut.ops) == (whole.metrics, whole.host, whole.ops)
    assert cut.notes[0] == "1 rows could not be read: line 23: 0,BACKEND,4,COU"


@pytest.mark.parametrize("left_out", range(1, 10))
def test_a_file_that_ends_inside_run_2_keeps_run_1(tmp_path: Path, left_out: int) -> None:
    rows = DEVICE_CSV.splitlines(keepends=True)
    found = read(written(tmp_path, "".join(rows[:-left_out])))
    assert (found.inferences, found.latency_ns, found.value("rpc_time")) == (1, 800_000, 900_000)
    assert (found.value("hvx_threads"), found.value("total_inference_time")) == (4, 950_000)
    assert [op.cycles for op in found.ops] == [700_000, 500_000]
    assert "the file ends inside run 2: it is left out" in found.notes


def test_a_run_that_has_lost_the_row_of_a_node_is_of_the_same_graph(tmp_path: Path) -> None:
    add = "OpId_30 (cycles)\n"
    three = DEVICE_CSV.replace(add, f"{add}0,NODE,7,CYCLES,BACKEND,SUB-EVENT,mul:OpId_31 (cycles)\n")
    assert read(written(tmp_path, three)).inferences == 2
    found = read(written(tmp_path, three.replace("0,NODE,600000,CYCLES,", "0,NODE,60\n#")))
    assert (found.inferences, found.value("hvx_threads")) == (2, 4)
    assert [op.cycles for op in found.ops] == [700_000, 450_000, 7]  # the first: of the run that has it


def test_the_text_of_the_viewer_has_averages_and_their_range(tmp_path: Path) -> None:
    found = read(written(tmp_path, VIEWER_TEXT))
    assert (found.maker, found.provenance) == ("qnn-profile-viewer", "measured")
    total = found.metric("total_inference_time")
    assert total is not None
    assert (total.value, total.low, total.high) == (2_952_000, 2_800_000, 3_100_000)
    assert found.latency_ns == found.value("htp_execution_time") == 2_492_000
    assert [(stage.name, stage.ns // 1000) for stage in found.host] == [
        ("runtime", 32),
        ("RPC", 320),
        ("dispatch", 108),
        ("device", 2492),
    ]
    assert [(op.name, op.cycles) for op in found.ops] == [("conv0", 1234)]


def test_spans_of_an_op_trace_count_once_and_views_of_nodes_do_not(tmp_path: Path) -> None:
    found = read(written(tmp_path, OPTRACE))
    assert found.value("timeline_cycles") == 500
    assert [(op.name, op.engines, op.cycles) for op in found.ops] == [("conv0", ("HMX",), 400), ("add", ("HVX",), 100)]
    assert found.value("HMX utilization") == pytest.approx(0.8)


def test_an_analysis_summary_gives_totals_and_the_clock(tmp_path: Path) -> None:
    found = read(written(tmp_path, QHAS))
    assert (found.latency_ns, found.value("clock"), found.value("vtcm_peak")) == (500_000, 1.2e9, 30)
    assert found.value("HMX utilization") == pytest.approx(0.4)


def test_an_op_trace_and_its_summary_go_into_one_run(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    both = combine([read(written(tmp_path / "a", OPTRACE)), read(written(tmp_path / "b", QHAS))])
    assert both.latency_ns == 500_000
    assert [op.name for op in both.ops] == ["conv0", "add"]


def test_times_of_an_emulated_run_are_left_out(tmp_path: Path) -> None:
    for name in ("prof.csv", "prof_qnn.log"):
        found = read(emulated().write(tmp_path) / name)
        assert found.provenance == "compiler-fact"
        assert found.metrics == found.host == found.samples_ns == ()
        assert all(op.cycles is None for op in found.ops)
        assert found.notes[0].startswith("of an emulated run")


def test_estimates_in_a_file_are_the_vendors_model(tmp_path: Path) -> None:
    session = two_graphs()
    found = read(session.write(tmp_path) / "prof.csv")
    assert found.provenance == "vendor-model"
    assert found.latency is not None
    assert found.latency.value_ns == sum(round(graph.cycles / MHZ) for graph in session.graphs) * 1000
    assert found.latency.high_ns == sum(round(1.2 * graph.cycles / MHZ) for graph in session.graphs) * 1000
    cycles = found.metric("htp_execution_cycles")
    assert cycles is not None
    assert (cycles.value, cycles.provenance) == (sum(graph.cycles for graph in session.graphs), "vendor-model")
    assert found.value("input_fill") == found.value("ddr_read") == sum(g.total("dram_read") for g in session.graphs)
    assert [stage.name for stage in found.stages] == ["Graph Optimizations", "VTCM Allocation"]


def test_a_file_with_preparation_alone_is_refused(tmp_path: Path) -> None:
    text = "\n".join(DEVICE_CSV.splitlines()[:2]) + "\n"
    with pytest.raises(ImportFileError, match="no run and no estimate in it"):
        read(written(tmp_path, text))


def test_our_own_analysis_summary_can_be_read_again(tmp_path: Path) -> None:
    recording = profiled(tiny())
    path = tmp_path / "qhas.json"
    path.write_bytes(analysis_summary(recording, "json"))
    found = read(path)
    assert found.provenance == recording.provenance == "vendor-model"
    assert found.latency_ns == pytest.approx(recording.latency_ns, abs=1)
    mine = {plain_name(op.name): op for op in recording.ops if op.placed is not Placed.CPU}
    assert {op.name: (op.time_ns, op.placed) for op in found.ops} == {n: (o.time_ns, o.placed) for n, o in mine.items()}
    assert None in {op.time_ns for op in found.ops}


@pytest.mark.parametrize("text", ['{"header": {"artifact_type": "QHAS"}}', '{"header": "OP_TRACE", "traceEvents": []}'])
def test_damaged_json_is_one_line(tmp_path: Path, text: str) -> None:
    with pytest.raises(ImportFileError) as caught:
        read(written(tmp_path, text))
    assert "\n" not in str(caught.value)
