"""Which changes are tried of which machine, and what they come to."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from opscope import api
from opscope.changes import trials as trying
from opscope.changes.changes import Baseline, parse_change
from opscope.changes.trials import candidate_changes, fastest_dtype, run_trials
from opscope.core.errors import UsageError
from opscope.estimate.precision import precisions
from opscope.machine import catalogue as targets
from opscope.options import ProfileOptions
from opscope.simulation import simulate
from opscope.workflows.model_compiler import ModelCompiler
from opscope.zoo import Recipe, make
from support.device.build import HVX, Step, program_of


@pytest.mark.parametrize("name", sorted(targets.catalogue()))
@pytest.mark.parametrize("cores", [1, 3])
def test_only_what_the_target_has_is_tried(name: str, cores: int) -> None:
    target, program = targets.load(name), replace(program_of([Step(HVX, 1)]), cores=cores)
    changes = [parse_change(text) for text in candidate_changes(program, target, ProfileOptions())]
    assert len(set(changes)) == len(changes)
    for change in changes:
        if change.what == "cores":
            assert 1 <= int(change.value) <= max(cores, target.topology.cores.value)
            assert int(change.value) != cores
        if change.what == "precision":
            assert change.value in precisions(target)
        if change.what == "devices":
            assert 1 < int(change.value) <= target.topology.devices.value


def test_the_fastest_type_is_the_one_with_most_macs_a_cycle() -> None:
    assert fastest_dtype(targets.load("aic100-std")) == "i8"
    target = targets.load("aic100-std")
    alike = {label: replace(target.engines[0].macs_per_cycle["i8"]) for label in ("i8", "f16")}
    assert fastest_dtype(replace(target, engines=(replace(target.engines[0], macs_per_cycle=alike),))) is None


def test_a_type_that_is_in_use_is_not_tried() -> None:
    target, program = targets.load("aic100-std"), program_of([Step(HVX, 1)])
    assert "precision=i8" in candidate_changes(program, target, ProfileOptions())
    assert "precision=i8" not in candidate_changes(program, target, ProfileOptions(precision="i8"))


def test_a_type_that_every_product_is_of_already_is_not_tried(tmp_path: Path) -> None:
    model, target = tmp_path / "resnet.onnx", targets.load("aic100-std")
    make(Recipe("cifar-resnet", precision="int8", weights=False), model)
    program = api.compile_model(model, target, cores=2, stats_level=70).program
    assert "precision=i8" not in candidate_changes(program, target, ProfileOptions())


def test_a_trial_is_the_latency_of_the_program_compiled_so(tmp_path: Path) -> None:
    model, target = tmp_path / "kws.onnx", targets.load("aic100-std")
    make(Recipe("kws-cnn", weights=False), model)
    cycles = {
        cores: simulate(api.compile_model(model, target, cores=cores, stats_level=70).program, seed=0).total_cycles
        for cores in (1, 2, 14)
    }
    program = api.compile_model(model, target, cores=1, stats_level=70).program
    found = {
        trial.change: trial
        for trial in run_trials(
            Baseline.of(program, 10_000), ModelCompiler(model), target, ProfileOptions(cores=1, ddr_stats=False)
        )[0]
    }
    for cores in (2, 14):
        trial = found[f"cores={cores}"]
        assert trial.speedup == pytest.approx(cycles[1] / cycles[cores])
        assert trial.latency_ns == round(10_000 * cycles[cores] / cycles[1])


def test_a_change_that_changes_nothing_is_no_trial(tmp_path: Path) -> None:
    model, target = tmp_path / "kws.tflite", targets.load("aic100-std")
    make(Recipe("kws-cnn", format="tflite", precision="int8"), model)
    program = api.compile_model(model, target, cores=1, stats_level=70).program
    tried = [
        trial.change
        for trial in run_trials(
            Baseline.of(program, 1), ModelCompiler(model), target, ProfileOptions(cores=1, ddr_stats=False)
        )[0]
    ]
    assert sorted(tried) == ["bandwidth*2", "cores=14", "cores=2"]  # it is int8 already


def test_a_program_that_is_long_to_compile_is_only_timed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, target = tmp_path / "kws.onnx", targets.load("aic100-std")
    make(Recipe("kws-cnn", weights=False), model)
    program = api.compile_model(model, target, cores=1, stats_level=70).program
    monkeypatch.setattr(trying, "MOST_COMPILED", len(program.commands) - 1)
    assert [
        trial.change
        for trial in run_trials(Baseline.of(program, 1), ModelCompiler(model), target, ProfileOptions(cores=1))[0]
    ] == ["bandwidth*2"]


def test_of_a_program_that_does_nothing_nothing_is_tried(tmp_path: Path) -> None:
    program = program_of([])
    assert run_trials(
        Baseline.of(program, 0), ModelCompiler(tmp_path / "none"), targets.load("aic100-std"), ProfileOptions()
    ) == ((), ())


def test_a_change_that_cannot_be_compiled_is_said_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, target = tmp_path / "kws.onnx", targets.load("aic100-std")
    make(Recipe("kws-cnn", weights=False), model)
    program = api.compile_model(model, target, cores=1, stats_level=70).program

    def refuse(*_: object, **__: object) -> None:
        raise UsageError("no room")

    monkeypatch.setattr(trying, "apply_changes", refuse)
    tried, failed = run_trials(Baseline.of(program, 1), ModelCompiler(model), target, ProfileOptions(cores=1))
    assert tried == ()
    assert "not tried: cores=14 fails: no room" in failed
