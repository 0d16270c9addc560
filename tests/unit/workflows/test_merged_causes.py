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


def test_a_slow_node_that_changes_layout_is_told_of_once() -> None:
    told = [cause("layout", 9, "a", "b"), cause("slow-op", 5, "a"), cause("slow-op", 4, "c")]
    assert merged(told, []) == (told[0], told[2])


def test_the_same_op_of_every_layer_is_more_than_one_slow_node() -> None:
    block = cause("slow-op", 90, "a.0", "a.1")
    assert merged([cause("slow-op", 50, "a.0")], [block]) == (block, cause("slow-op", 50, "a.0"))
