"""What a backend told of its run, beside what every run is asked."""

from __future__ import annotations

from opscope.recording.finding import UPPER_BOUND, Finding, Prediction
from opscope.workflows.analysing import merged

GAIN = Prediction(5, 5, UPPER_BOUND)


def cause(rule: str, cost: int | None, *ops: str, action: str = "", gain: Prediction | None = None) -> Finding:
    return Finding(rule, rule, "seen", ops, cost, action=action, predicted=gain)


def test_both_are_kept_costliest_first_and_unknown_costs_last() -> None:
    told = [cause("what-if", 30), cause("low-utilization", None)]
    found = [cause("slow-op", 50, "a"), cause("launch", 10)]
    assert [each.id for each in merged(told, found)] == ["slow-op", "what-if", "launch", "low-utilization"]


def test_the_same_cause_is_told_once_in_the_words_of_the_backend_with_the_advice_of_the_other() -> None:
    found = cause("slow-op", 50, "a", action="do this", gain=GAIN)
    (only,) = merged([cause("slow-op", 49, "a")], [found])
    assert (only.id, only.cost_ns, only.action, only.predicted) == ("slow-op", 49, "do this", GAIN)


def test_a_gain_is_no_more_than_what_the_backend_says_that_it_costs() -> None:
    (only,) = merged([cause("layout", 3, "a")], [cause("layout", 5, "a", "b", gain=GAIN)])
    assert only.predicted == Prediction(3, 7, UPPER_BOUND)


def test_work_that_computes_nothing_comes_first() -> None:
    assert [each.id for each in merged([cause("spill", 90)], [cause("no-compute", 5, "a")])] == ["no-compute", "spill"]
