"""The search, with a judge who counts ops: what helps is taken, what is wrong, refused or failing is told."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from opscope.core.manifest import RewriteEntry
from opscope.readers import read_model
from opscope.rewrites import catalogue
from opscope.rewrites.judge import Judged
from opscope.rewrites.onnx import editor
from opscope.rewrites.outcome import TrialResult, Tried
from opscope.rewrites.proof import Prover
from opscope.rewrites.search import Search, State
from opscope.rewrites.trials import Trials
from support.rewrites.rewriting import operators
from support.rewrites.searching import RULES, Counting, entry, write_model

MERGE = catalogue.named("merge-transposes", "onnx")


@pytest.fixture(scope="module")
def prover(tmp_path_factory: pytest.TempPathFactory) -> Prover:
    folder = tmp_path_factory.mktemp("proof")
    model = write_model(folder / "model.onnx")
    return Prover(model, "onnx", read_model(model), folder / "runs")


@pytest.fixture(autouse=True)
def _rules(monkeypatch: pytest.MonkeyPatch) -> None:
    known = editor.rule_of
    monkeypatch.setattr(editor, "rule_of", lambda entry: RULES.get(entry.name) or known(entry))


def searched(
    prover: Prover, folder: Path, entries: Sequence[RewriteEntry], judge: Counting, **choices: float
) -> tuple[State, list[Tried], Trials]:
    trials = Trials(judge, folder, "model.onnx", 2, **choices)
    before = judge.ask(prover.model, longest_s=1)
    search = Search(editor, entries, trials, prover)
    return search.run(State(editor.open_model(prover.model), prover.model, before)), search.tried, trials


def verdicts(tried: Sequence[Tried]) -> dict[str, str]:
    return {each.rewrite: str(each.verdict) for each in tried}


def test_what_helps_is_taken_and_what_is_wrong_is_told(prover: Prover, tmp_path: Path) -> None:
    judge = Counting({"LeakyRelu": 1})
    state, tried, _ = searched(prover, tmp_path, [entry("relu-to-leaky"), MERGE, entry("raises")], judge)
    assert [(step.rewrite, step.speedup) for step in state.steps] == [("merge-transposes", 1.5)]
    assert operators(state.file) == ["Relu", "Relu", "Sigmoid", "Softplus"]
    assert verdicts(tried) == {"raises": "failed", "relu-to-leaky": "wrong"}
    wrong = next(each for each in tried if each.verdict is TrialResult.WRONG)
    assert "where rounding moves it by at most" in wrong.reason
    assert "no input of" in next(each for each in tried if each.verdict is TrialResult.FAILED).reason


def test_a_pair_is_found_of_which_neither_helps_alone(prover: Prover, tmp_path: Path) -> None:
    judge = Counting({"ThresholdedRelu": 10})
    state, tried, _ = searched(prover, tmp_path, [entry("two-relus"), entry("relu-twice")], judge)
    assert [step.rewrite for step in state.steps] == ["relu-twice", "two-relus"]
    assert state.steps[0].reason == "gains only with two-relus"
    assert operators(state.file).count("ThresholdedRelu") == 2
    assert verdicts(tried)["relu-twice"] == "slower"


def test_changes_that_help_only_together_are_found(prover: Prover, tmp_path: Path) -> None:
    class Both(Counting):
        def ask(self, model: Path, *, longest_s: float) -> Judged:
            self.costs = {"Sigmoid": 50 if not {"Relu", "Transpose"} & set(operators(model)) else 100}
            self.costs |= {"Transpose": 0, "Relu": 100, "ThresholdedRelu": 100}
            return super().ask(model, longest_s=longest_s)

    state, tried, _ = searched(prover, tmp_path, [entry("relu-to-limit"), MERGE], Both({}))
    assert {step.rewrite for step in state.steps} == {"relu-to-limit", "merge-transposes"}
    assert verdicts(tried) == {"relu-to-limit": "no gain", "merge-transposes": "no gain"}


def test_groups_are_tried_alone_where_all_places_together_do_not_help(
    prover: Prover, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = editor._group  # both ops are alike; here their names tell them apart
    monkeypatch.setattr(editor, "_group", lambda match: f"{match.pattern[0].name} {group(match)}")

    class Choosy(Counting):
        def ask(self, model: Path, *, longest_s: float) -> Judged:
            self.costs = {"ThresholdedRelu": 300 if operators(model).count("ThresholdedRelu") == 2 else 10}
            return super().ask(model, longest_s=longest_s)

    state, tried, _ = searched(prover, tmp_path, [entry("relu-to-limit")], Choosy({}))
    assert [len(step.sites) for step in state.steps] == [1]
    assert state.steps[0].groups is not None
    assert tried[0].verdict is TrialResult.SLOWER


def test_a_candidate_that_the_judge_refuses_ends_nothing(prover: Prover, tmp_path: Path) -> None:
    judge = Counting({}, refused="LeakyRelu")
    state, tried, _ = searched(prover, tmp_path, [entry("relu-to-leaky"), MERGE], judge)
    assert [step.rewrite for step in state.steps] == ["merge-transposes"]
    refused = next(each for each in tried if each.rewrite == "relu-to-leaky")
    assert (refused.verdict, refused.reason) == (TrialResult.REFUSED, "LeakyRelu is not for me")


def test_approximate_ones_are_held_to_the_largest_error(prover: Prover, tmp_path: Path) -> None:
    judge = Counting({"HardSigmoid": 10, "Sigmoid": 50})
    entries = [entry("sigmoid-to-hard", "approximate"), entry("softplus-to-sigmoid", "approximate")]
    prover.max_error = 0.2
    try:
        state, tried, _ = searched(prover, tmp_path, entries, judge)
    finally:
        prover.max_error = 0.01
    assert [step.rewrite for step in state.steps] == ["sigmoid-to-hard"]
    assert 0.001 < (state.steps[0].error or 0) < 0.2
    assert not state.is_exact
    assert "more than 20.00% (--max-error)" in next(e for e in tried if e.rewrite == "softplus-to-sigmoid").reason


def test_a_search_goes_on_where_it_ended_and_comes_to_the_same(prover: Prover, tmp_path: Path) -> None:
    entries = [MERGE, entry("relu-twice"), entry("two-relus")]
    first, told, trials = searched(prover, tmp_path, entries, Counting({}))
    again = Counting({})
    second, told_again, trials_again = searched(prover, tmp_path, entries, again)
    assert trials.asked > 0
    assert (trials_again.asked, len(again.asked)) == (0, 1)
    assert first.file.read_bytes() == second.file.read_bytes()
    assert (first.steps, told) == (second.steps, told_again)


def test_no_trial_begins_after_the_time_is_up(prover: Prover, tmp_path: Path) -> None:
    ticks = iter(range(0, 1000, 10))
    trials = Trials(Counting({}), tmp_path, "model.onnx", 1, seconds=15, clock=lambda: next(ticks))
    before = Counting({}).ask(prover.model, longest_s=1)
    search = Search(editor, [MERGE, entry("relu-twice")], trials, prover)
    state = search.run(State(editor.open_model(prover.model), prover.model, before))
    assert trials.stopped
    assert [step.rewrite for step in state.steps] == ["merge-transposes"]  # what was found by then
    assert verdicts(search.tried) == {"relu-twice": "no time"}
    assert [file.name for file in tmp_path.glob("work/*/*")] == ["model.onnx"]  # of the state; trials leave none


def test_what_takes_half_of_the_time_away_is_made_before_others_are_tried(prover: Prover, tmp_path: Path) -> None:
    """Both leaps are found on the model as it is; the second, on top of the first, is worth less than half."""
    judge = Counting({"Transpose": 2000})
    entries = [MERGE, entry("relu-to-limit"), entry("relu-twice")]
    state, _, _ = searched(prover, tmp_path, entries, judge)
    assert [step.rewrite for step in state.steps] == ["merge-transposes"]
    after = [kinds for kinds in judge.asked[2:] if "Transpose" in kinds]
    assert len(after) <= 2  # those that were on their way beside it


def test_a_leap_that_is_wrong_ends_nothing(prover: Prover, tmp_path: Path) -> None:
    judge = Counting({"Relu": 2000, "LeakyRelu": 1})
    state, tried, _ = searched(prover, tmp_path, [entry("relu-to-leaky"), MERGE], judge)
    assert [step.rewrite for step in state.steps] == ["merge-transposes"]
    assert verdicts(tried) == {"relu-to-leaky": "wrong"}
