"""Parts of the HTP with the vendor's real compiler: figures of its performance model, and times where it has none."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import pytest

from opscope import cli
from opscope.plugins.qnn.compilation import compile_model, graph_of_model
from opscope.plugins.qnn.hexagon import MB, hexagon_of
from opscope.plugins.qnn.options import HtpOptions
from opscope.plugins.qnn.profile import profile_model
from opscope.plugins.qnn.socs import SOCS, Soc, find_soc
from opscope.recording.build import to_run
from support.models.small_models import convnet
from support.recording.analyse_build import check_laws

pytestmark = pytest.mark.skipif(
    find_spec("onnxruntime_qnn") is None, reason="onnxruntime-qnn is not installed: pip install 'opscope[htp]'"
)
WITH_MODEL = [soc for soc in SOCS if soc.has_model]


@pytest.mark.parametrize("soc", WITH_MODEL, ids=lambda soc: soc.label)
def test_figures_of_parts_with_a_model_are_those_that_the_model_prints(soc: Soc, tmp_path: Path) -> None:
    model = convnet(tmp_path / "small.onnx")
    (graph,) = compile_model(model, HtpOptions(soc, precision="w8a8"), graph_of_model(model, {})).graphs
    assert graph.timeline is not None
    settings = {key: value for key, value in graph.timeline.settings.items() if isinstance(value, int | float)}
    hexagon = hexagon_of(soc)
    assert hexagon.core_hz.value == pytest.approx(settings["sim_core_freq"] * 1e6)
    assert hexagon.hmx_hz.value == pytest.approx(settings["sim_hmx_freq"] * 1e6)
    assert hexagon.hvx_threads.value == settings["hvx_threads"]
    assert soc.vtcm_mb * MB == settings["vtcm_size_in_bytes"]
    ddr = 2e6 * settings["sim_ddr_freq"] * settings["sim_ddr_channels"] * settings["sim_ddr_width"]
    assert hexagon.ddr_bytes_per_s.value == pytest.approx(ddr)
    assert hexagon.ddr_efficiency.value == settings["sim_ddr_efficiency"]
    way = 1e6 * settings["sim_gemnoc_freq"] * settings["sim_gemnoc_channels"] * settings["sim_gemnoc_width"]
    assert hexagon.way_bytes_per_s.value == pytest.approx(way)


def test_a_phone_has_its_own_facts_and_times_of_its_neighbour(tmp_path: Path) -> None:
    model = convnet(tmp_path / "small.onnx")
    phone = profile_model(model, HtpOptions.of({"soc": "Snapdragon 8 Gen 3", "proxy": True}), shapes={})
    (own,) = compile_model(model, HtpOptions(find_soc("57")), graph_of_model(model, {})).graphs
    assert own.timeline is None
    assert (phone.machine["id"], phone.provenance) == (57, "estimated")
    assert phone.basis == "vendor-model of SA8255, scaled"
    assert phone.latency is not None
    assert phone.latency.low_ns < phone.latency.value_ns < phone.latency.high_ns  # type: ignore[operator]
    assert phone.value("vtcm_peak") == own.schematic.occupancy().max(initial=0)
    timed = [op for op in phone.ops if op.time_ns]
    assert sum(op.path_share or 0 for op in timed) == pytest.approx(1, abs=2e-3)
    run = to_run(phone, command=(), created="", sha256=None)
    assert not [law for law in check_laws(run) if law.holds is False]
    assert any("replayed at the rates of SM8650" in note for note in phone.notes)


def test_a_part_with_less_memory_than_its_neighbour_and_its_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, run = convnet(tmp_path / "small.onnx"), tmp_path / "run"
    options = ["--backend", "htp", "--soc", "QCS6490", "--precision", "w8a8", "--qhas", "json"]
    assert cli.main(["profile", str(model), *options, "-o", str(run)]) == 0
    basis = "vendor-model of SA8540 with 2 MB VTCM, scaled"
    assert f"on QCM6490 (estimated: {basis})" in capsys.readouterr().out
    assert json.loads((run / "run.json").read_text())["basis"] == basis
    assert json.loads((run / "qhas.json").read_text())["header"]["basis"] == basis
    assert json.loads((run / "trace.json").read_text())["otherData"]["basis"] == basis
    assert cli.main(["check", str(run)]) == 0
    capsys.readouterr()
    assert cli.main(["whatif", str(model), "--backend", "htp", "--soc", "SA8255,SM8650"]) == 0
    shown = capsys.readouterr().out
    assert "times of SA8255 vendor-model; of SM8650 estimated: vendor-model of SA8255, scaled" in shown
