"""The real interpreter as a backend."""

from __future__ import annotations

from pathlib import Path

import pytest

from opscope.core.errors import ModelError, UsageError
from opscope.core.provenance import Provenance
from opscope.plugins.tflm import backend
from opscope.plugins.tflm.backend import TflmBackend
from support.models.tflite_build import Type, small_cnn
from support.models.tflm_models import needs_interpreter


def saved(folder: Path, content: bytes) -> Path:
    path = folder / "model.tflite"
    path.write_bytes(content)
    return path


def test_without_the_package_it_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"tflite-micro is not installed; install it: pip install 'opscope\[tflm\]'$"):
        TflmBackend().profile(saved(tmp_path, small_cnn().build()), {})


@needs_interpreter
def test_it_runs_the_file_and_its_outputs_are_those_of_litert(tmp_path: Path) -> None:
    found = TflmBackend().profile(saved(tmp_path, small_cnn().build()), {})
    figures = {metric.name: metric.value for metric in found.metrics}
    assert found.provenance is Provenance.EMULATED
    assert (figures["arena head"], figures["arena tail"]) == (1024, 1808)
    assert figures["output 0: largest difference from LiteRT"] == pytest.approx(0, abs=1e-6)
    assert "latency" not in figures
    assert all(op.time_ns is None for op in found.ops)


@needs_interpreter
def test_what_it_refuses_is_said_in_its_own_words(tmp_path: Path) -> None:
    model = small_cnn()
    model.main.tensors[1].type = Type.INT8
    with pytest.raises(ModelError, match="Hybrid models are not supported"):
        TflmBackend().profile(saved(tmp_path, model.build()), {})
