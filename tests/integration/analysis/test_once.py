"""What a profile finds out it finds out once: counted where everybody passes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import opscope
from opscope import readers
from opscope.analysis import run_analysis
from opscope.changes import simulate_model
from opscope.readers import containers
from opscope.workflows import decoding
from opscope.zoo import Recipe, make
from support.decode.opstats_folder import keyword_spotter

ANALYSED = ("activities_of", "dependencies_of", "critical_path", "breakdown", "waits_for")


@pytest.fixture
def count(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Counter[str]]:
    """Counts calls of the functions of a module, by name."""

    def counting(module: ModuleType, *names: str) -> Counter[str]:
        found: Counter[str] = Counter()

        def counted(name: str, asked: Callable[..., Any]) -> Callable[..., Any]:
            def call(*args: Any, **named: Any) -> Any:
                found[name] += 1
                return asked(*args, **named)

            return call

        for name in names:
            monkeypatch.setattr(module, name, counted(name, getattr(module, name)))
        return found

    return counting


def model(folder: Path, *, weights: bool = False) -> Path:
    make(Recipe("kws-cnn", weights=weights), folder / "kws.onnx")
    return folder / "kws.onnx"


@pytest.mark.parametrize(("target", "backend"), [("aic100-std", "sim"), ("cortex-m4", "estimate")])
def test_a_profile_is_analysed_once(
    tmp_path: Path, count: Callable[..., Counter[str]], target: str, backend: str
) -> None:
    calls = count(run_analysis, *ANALYSED)
    opscope.profile(model(tmp_path), target, backend=backend, run=tmp_path / "run")
    assert calls == dict.fromkeys(ANALYSED, 1)


def test_an_import_is_analysed_once(tmp_path: Path, count: Callable[..., Counter[str]]) -> None:
    opscope.profile(model(tmp_path), target="aic100-std", run=tmp_path / "run")
    calls = count(run_analysis, *ANALYSED)
    opscope.import_profile([tmp_path / "run" / "trace.json"], run=tmp_path / "again")
    assert calls == dict.fromkeys(ANALYSED, 1)


def test_a_model_is_opened_once_to_be_read_and_its_program_encoded_once(
    tmp_path: Path, count: Callable[..., Counter[str]]
) -> None:
    heads, read, encoded = (
        count(containers, "head_of"),
        count(readers, "head_of", "read_model"),
        count(simulate_model, "encode_program"),
    )
    opscope.profile(model(tmp_path), target="aic100-std", run=tmp_path / "run")
    assert heads["head_of"] + read["head_of"] == 2  # to choose who profiles it, and to read it
    assert (read["read_model"], encoded["encode_program"]) == (1, 1)


@pytest.mark.skipif(
    find_spec("onnxruntime_qnn") is None, reason="onnxruntime-qnn is not installed: pip install 'opscope[htp]'"
)
@pytest.mark.parametrize("part", ["SA8255", "SM8650"])  # one with a model of its own, and one with times of another
def test_a_model_for_a_vendors_compiler_is_read_once(
    tmp_path: Path, count: Callable[..., Counter[str]], part: str
) -> None:
    read, options = count(readers, "_read"), {"soc": part, "precision": "w8a8"}
    opscope.profile(model(tmp_path, weights=True), backend="htp", options=options, run=tmp_path / "run")
    assert read["_read"] == 1


def test_stats_buffers_of_one_device_are_summed_up_once_and_one_path_is_walked(
    tmp_path: Path, count: Callable[..., Counter[str]]
) -> None:
    folder = keyword_spotter(tmp_path / "kws")
    summed, walked = count(decoding, "summarise"), count(run_analysis, "critical_path")
    program, stats = folder / "programqpc.bin", folder / "stats"
    opscope.opstats(program, stats, tmp_path / "out", summary=True, trace=True, run=tmp_path / "run")
    assert (summed["summarise"], walked["critical_path"]) == (2, 1)  # of two inferences
