"""Budgets: which one broke, and by how much."""

from __future__ import annotations

import pytest

from opscope.core.errors import UsageError
from opscope.estimate.build_report import build_report
from opscope.estimate.report import Report
from opscope.gate.budget import judge, parse_budget
from opscope.graph.graph import Graph
from support.build import Sketch, engine, figure, machine

PRICES = {"picojoules_per_mac": {"*": figure(1000)}}


def dense() -> Graph:
    draw = Sketch()
    return draw.graph(draw.dense(draw.input(1, 256), 1000, bias=False))  # 256,000 MACs: 256 ms at 1 MHz


def report(graph: Graph | None = None, **prices: object) -> Report:
    npu = engine("npu", ops=("conv",), accelerator=True)
    return build_report(graph or dense(), machine(npu, engine(**prices)), sha256=None, advise=False)


def test_limits_are_parsed_in_their_own_units() -> None:
    limits = parse_budget("ram=512KB, flash=1MB,latency=20ms,energy=1mJ,cpu-share=10%")
    assert limits == {"ram": 524_288, "flash": 1 << 20, "latency": 0.02, "energy": 1e-3, "cpu-share": 0.1}


def test_every_limit_kept_is_a_pass() -> None:
    verdict = judge(report(**PRICES), parse_budget("ram=5024,flash=1000KB,latency=256ms,energy=1mJ,cpu-share=100%"))
    assert verdict.passed
    assert [check.reason for check in verdict.checks][:3] == [
        "budget ram: 4.91 KB of 4.91 KB",
        "budget flash: 1,000.00 KB of 1,000.00 KB",
        "budget latency: 256 ms of 256 ms",
    ]


@pytest.mark.parametrize(
    ("budget", "reason"),
    [
        ("ram=4KB", "budget ram: 4.91 KB of 4.00 KB (22.7% over)"),
        ("flash=500KB", "budget flash: 1,000.00 KB of 500.00 KB (100.0% over)"),
        ("latency=200ms", "budget latency: 256 ms of 200 ms (28.0% over)"),
        ("energy=200uJ", "budget energy: 256 uJ of 200 uJ (28.0% over)"),
        ("cpu-share=10%", "budget cpu-share: 100.0% of 10.0% (900.0% over)"),
        ("ram=0", "budget ram: 4.91 KB of 0 B"),
    ],
)
def test_a_broken_limit_is_named_with_how_far_it_is_over(budget: str, reason: str) -> None:
    (check,) = judge(report(**PRICES), parse_budget(budget)).checks
    assert (check.passed, check.reason) == (False, reason)


def test_one_broken_limit_among_kept_ones_fails() -> None:
    verdict = judge(report(), parse_budget("ram=1MB,latency=1ms"))
    assert [check.passed for check in verdict.checks] == [True, False]
    assert not verdict.passed


def test_what_is_not_known_cannot_pass() -> None:
    draw = Sketch()
    custom = draw.graph(draw.op("custom", (draw.input(8),), (8,), type="MyOp"))
    (check,) = judge(report(custom), parse_budget("latency=100s")).checks
    assert not check.passed
    assert check.reason.startswith("budget latency: not known; latency is withheld: layer 0 (MyOp)")
    (check,) = judge(report(), parse_budget("energy=100J")).checks
    assert check.reason == "budget energy: not known; the target file has no energy figures"


def test_ram_of_tensors_without_a_size_cannot_pass_but_can_be_too_much() -> None:
    draw = Sketch()
    draw.op("relu", (draw.input(8),), None)
    open_sized = report(draw.graph())
    assert open_sized.memory.is_lower_bound
    checks = judge(open_sized, parse_budget("ram=1GB")).checks + judge(open_sized, parse_budget("ram=1B")).checks
    assert [(check.passed, check.known) for check in checks] == [(False, False), (False, True)]
    assert checks[0].reason == "budget ram: not known, at least 32 B; 1 tensor has no size in the model"
    assert checks[1].reason == "budget ram: at least 32 B of 1 B"


def test_no_limits_pass() -> None:
    assert judge(report(), {}).passed


@pytest.mark.parametrize("text", ["ram", "speed=1ms", "=5", "ram:5KB", "", "ram=1KB,"])
def test_a_budget_that_is_not_understood_lists_the_names(text: str) -> None:
    with pytest.raises(
        UsageError, match=r"not understood; expected NAME=LIMIT with ram, flash, latency, energy, cpu-share"
    ):
        parse_budget(text)


def test_a_limit_in_the_wrong_unit_names_the_budget() -> None:
    with pytest.raises(UsageError, match=r"^--budget latency: '20KB': not understood; expected a time such as 20ms"):
        parse_budget("latency=20KB")
