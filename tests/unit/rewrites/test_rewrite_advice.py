"""Findings that name the rewrites that fit where they are, and what those gained where they were tried."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from opscope import api
from opscope.core.files import sha256_of
from opscope.core.provenance import Provenance
from opscope.recording.finding import WHAT_IF, Finding, Findings
from opscope.rewrites.advice import with_rewrites_named
from opscope.rewrites.editors import can_advise
from opscope.rewrites.judge import Judged
from opscope.rewrites.outcome import TrialResult, Tried
from opscope.rewrites.rewrite import Site
from opscope.rewrites.runs import with_rewrites
from support.rewrites.searching import write_model


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("advice") / "model.onnx")


def test_findings_name_the_rewrites_that_touch_their_ops(model: Path, tmp_path: Path) -> None:
    profiled = api.profile(model, "aic100-std", backend="estimate", run=tmp_path / "run")
    slow = Finding("slow-op", "slow", "slow", ("back",), 10, 0.1, "use another")
    other = Finding("slow-op", "slow", "slow", ("last",), 10, 0.1, "wait")
    asked = replace(profiled, findings=replace(profiled.findings, findings=(slow, other)))
    told = with_rewrites_named(model, asked).findings.findings
    assert told[0].action.startswith("use another. opscope optimize tries: merge-transposes (1 place)")
    assert told[1].action == "wait"
    kept = json.loads((tmp_path / "run" / "findings.json").read_text())["findings"]
    assert [finding["action"] for finding in kept] == [finding.action for finding in told]


def test_advice_has_the_gain_of_a_search_beside_the_model(tmp_path: Path) -> None:
    model = write_model(tmp_path / "model.onnx")
    profiled = api.profile(model, "aic100-std", backend="estimate", run=tmp_path / "run")
    now_ns = profiled.run.summary.latency.value_ns
    slow = Finding("slow-op", "slow", "slow", ("back",), 10, 0.1, "use another")
    asked = replace(profiled, findings=replace(profiled.findings, findings=(slow,)))

    def told(rewrite: str, after_ns: int, sha256: str = sha256_of(model)) -> str:
        rows = [{"rewrite": rewrite, "before": {"latency_ns": now_ns}, "after": {"latency_ns": after_ns}, "with": []}]
        (tmp_path / "better.optimize").mkdir(exist_ok=True)
        found = {"model": {"sha256": sha256}, "steps": rows, "tried": []}
        (tmp_path / "better.optimize" / "optimize.json").write_text(json.dumps(found))
        return with_rewrites_named(model, asked).findings.findings[0].action

    assert "tries: merge-transposes (1 place, when tried, 1 us for all)" in told("merge-transposes", 1000)
    assert "merge-transposes" not in told("merge-transposes", now_ns)  # which gained nothing
    assert "merge-transposes (1 place)" in told("merge-transposes", 1000, "of another model")
    (tmp_path / "better.optimize" / "optimize.json").write_text("{}")
    assert "merge-transposes (1 place)" in with_rewrites_named(model, asked).findings.findings[0].action


def test_a_profile_with_advice_works_for_every_backend(model: Path) -> None:
    found = api.profile(model, "aic100-std", backend="estimate", advise=True)
    assert all("transposes" in each.action for each in found.findings.findings if {"to", "back"} & {*each.ops})


def test_only_models_that_can_be_rewritten_have_advice(model: Path, tmp_path: Path) -> None:
    assert can_advise(model)
    assert not can_advise(tmp_path / "none.onnx")
    assert not can_advise(write_text(tmp_path / "module.mlir"))


def write_text(path: Path) -> Path:
    path.write_text("module {\n}\n")
    return path


def test_what_was_tried_alone_on_the_model_is_the_gain_of_a_finding() -> None:
    def told(ns: int) -> Judged:
        return Judged(ns, ns, ns, Provenance.VENDOR_MODEL)

    findings = Findings("compute", (), 1000, Provenance.VENDOR_MODEL, (Finding("slow-op", "a", "b", ("op",)),))
    rows = (
        Tried("good", None, (Site(("op",), "g"),) * 2, TrialResult.TAKEN, told(1000), told(400)),
        Tried("fair", None, (Site(("op",), "g"),), TrialResult.NO_GAIN, told(1000), told(999)),
        Tried("later", None, (Site(("op",), "g"),), TrialResult.TAKEN, told(400), told(100)),
        Tried("apart", None, (Site(("another",), "g"),), TrialResult.TAKEN, told(1000), told(10)),
    )
    found = with_rewrites(findings, rows, before=told(1000))
    predicted = found.findings[0].predicted
    assert predicted is not None
    assert (predicted.gain_ns, predicted.latency_ns, predicted.basis) == (600, 400, WHAT_IF)
    assert predicted.text == "opscope optimize: good (2 places)"
    assert [(trial.latency_ns, trial.speedup) for trial in found.trials] == [(10, 100), (400, 2.5), (999, 1000 / 999)]
