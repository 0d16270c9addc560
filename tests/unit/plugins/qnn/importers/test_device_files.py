"""Files of devices → Recording."""

from __future__ import annotations

from pathlib import Path

import pytest

from opscope.core.errors import ImportFileError
from opscope.importers.combine import combine
from opscope.importers.formats import load_importer
from opscope.plugins.qnn.manifest import MANIFEST
from opscope.recording.recording import Recording
from qnn_samples import DEVICE_CSV, OPTRACE, QHAS, VIEWER_TEXT
from qnn_session import MHZ, emulated, two_graphs


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
    assert found.latency_ns == 850_000
    assert found.value("rpc_time") == 800_000
    assert found.value("vtcm_acquisition_time") == 20_000
    assert found.value("power_up_time") == 30_000
    assert found.value("yields") == 2
    assert [(op.name, op.cycles) for op in found.ops] == [("conv0", 650_000), ("add:with:colons", 450_000)]


def test_the_text_of_the_viewer_has_averages_and_their_range(tmp_path: Path) -> None:
    found = read(written(tmp_path, VIEWER_TEXT))
    assert (found.maker, found.provenance) == ("qnn-profile-viewer", "measured")
    assert found.latency_ns == 2_952_000
    assert (found.value("latency_low"), found.value("latency_high")) == (2_800_000, 3_100_000)
    assert found.value("htp_execution_time") == 2_492_000
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
        assert found.metrics == ()
        assert all(op.cycles is None for op in found.ops)
        assert found.notes[0].startswith("of an emulated run")


def test_estimates_in_a_file_are_the_vendors_model(tmp_path: Path) -> None:
    session = two_graphs()
    found = read(session.write(tmp_path) / "prof.csv")
    assert found.provenance == "vendor-model"
    assert found.latency_ns == sum(round(graph.cycles / MHZ) for graph in session.graphs) * 1000
    assert found.value("latency_high") == sum(round(1.2 * graph.cycles / MHZ) for graph in session.graphs) * 1000


def test_a_file_with_preparation_alone_is_refused(tmp_path: Path) -> None:
    text = "\n".join(DEVICE_CSV.splitlines()[:2]) + "\n"
    with pytest.raises(ImportFileError, match="no run and no estimate in it"):
        read(written(tmp_path, text))


@pytest.mark.parametrize("text", ['{"header": {"artifact_type": "QHAS"}}', '{"header": "OP_TRACE", "traceEvents": []}'])
def test_damaged_json_is_one_line(tmp_path: Path, text: str) -> None:
    with pytest.raises(ImportFileError) as caught:
        read(written(tmp_path, text))
    assert "\n" not in str(caught.value)
