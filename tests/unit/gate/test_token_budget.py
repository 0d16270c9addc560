"""Limits on what a language model takes, and the metrics that comparisons have of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from opscope.core.errors import UsageError
from opscope.core.provenance import Provenance
from opscope.gate.limits import parse_limit
from opscope.gate.metrics import figures_of
from opscope.gate.token_budget import judge_tokens, parse_token_budget
from opscope.recording.summary import Latency, Summary
from support.recording.token_points import MODEL, POINT

ONE = replace(MODEL, points=(POINT,))


def test_every_limit_is_held_at_the_worst_point() -> None:
    slow = replace(POINT, context=4096, tpot_ms=replace(POINT.tpot_ms, value=60.0))
    verdict = judge_tokens(replace(MODEL, points=(POINT, slow)), parse_token_budget("ttft=50ms,tpot=50ms"))
    assert [check.reason for check in verdict.checks] == [
        "budget ttft: 40 ms of 50 ms at batch=2,prompt=128,context=4096",
        "budget tpot: 60 ms of 50 ms (20.0% over) at batch=2,prompt=128,context=4096",
    ]
    assert not verdict.passed


def test_memory_and_energy_can_be_limited() -> None:
    assert judge_tokens(ONE, parse_token_budget("memory=8GB,energy=1J")).passed
    assert not judge_tokens(ONE, parse_token_budget("memory=6GB")).passed


def test_what_is_not_known_does_not_pass() -> None:
    verdict = judge_tokens(replace(ONE, points=(replace(POINT, ttft_ms=None),)), {"ttft": 1.0})
    assert [(check.passed, check.known) for check in verdict.checks] == [(False, False)]
    assert "not known at batch=2" in verdict.checks[0].reason


def test_what_does_not_fit_does_not_pass() -> None:
    verdict = judge_tokens(MODEL, {"tpot": 1.0})
    assert [check.passed for check in verdict.checks] == [True, False]
    assert verdict.checks[1].reason == "budget: batch=32,prompt=128,context=1024 does not fit the memory"
    assert judge_tokens(MODEL, {}).passed


@pytest.mark.parametrize("text", ["latency=1ms", "ttft", "ttft=fast"])
def test_a_budget_that_is_not_understood_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"--budget .*expected"):
        parse_token_budget(text)


def metrics(*points: object) -> dict[str, float | None]:
    found = replace(MODEL, points=points)
    summary = Summary(Latency(1, None, None, Provenance.ESTIMATED), None, 1, language_model=found)
    return {figure.name: figure.value for figure in figures_of(summary, provenance=Provenance.ESTIMATED, spread=None)}


def test_metrics_are_of_the_first_point_and_of_each_by_what_they_depend_on() -> None:
    later = replace(POINT, prompt=512, ttft_ms=replace(POINT.ttft_ms, value=90.0))
    found = metrics(POINT, later)
    assert found["ttft"] == found["ttft:batch=2,prompt=128"] == 40e6
    assert found["ttft:batch=2,prompt=512"] == 90e6
    assert found["tpot:batch=2,context=1024"] == 20e6
    assert (found["decode_tokens"], found["weights"], found["token_energy"]) == (100.0, 6 << 30, 0.5)
    assert "weights:batch=2,context=1024" not in found


def test_a_benchmark_of_one_phase_at_a_time_has_both_metrics() -> None:
    found = metrics(
        replace(POINT, tpot_ms=None, context=None, batch=1), replace(POINT, ttft_ms=None, prompt=None, batch=1)
    )
    assert (found["ttft"], found["tpot"]) == (40e6, 20e6)
    assert "tpot:batch=1,context=1024" in found
    assert not [name for name in found if "None" in name]


def test_limits_know_these_metrics() -> None:
    assert parse_limit("ttft:batch=2,prompt=128>5%").name == "ttft:batch=2,prompt=128"
    assert parse_limit("tpot>2ms").value == 2e6
    assert parse_limit("decode_tokens<-5%").relative
