"""Parts of the HTP with the vendor's real compiler: figures of its performance model, and times where it has none."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

onnx = pytest.importorskip("onnx")

from opscope.plugins.qnn.compilation import compile_model  # noqa: E402
from opscope.plugins.qnn.hexagon import MB, hexagon_of  # noqa: E402
from opscope.plugins.qnn.options import HtpOptions  # noqa: E402
from opscope.plugins.qnn.socs import SOCS, Soc  # noqa: E402
from small_models import convnet  # noqa: E402

pytestmark = pytest.mark.skipif(
    find_spec("onnxruntime_qnn") is None, reason="onnxruntime-qnn is not installed: pip install 'opscope[htp]'"
)
WITH_MODEL = [soc for soc in SOCS if soc.has_model]


@pytest.mark.parametrize("soc", WITH_MODEL, ids=lambda soc: soc.label)
def test_figures_of_parts_with_a_model_are_those_that_the_model_prints(soc: Soc, tmp_path: Path) -> None:
    model = convnet(tmp_path / "small.onnx")
    (graph,) = compile_model(model, HtpOptions(soc, precision="w8a8"), shapes={}).graphs
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
