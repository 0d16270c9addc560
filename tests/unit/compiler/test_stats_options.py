"""What may be asked of the device, and how it is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from opscope.compiler.stats_options import stats_options
from opscope.core.errors import UsageError
from opscope.machine import catalogue as targets
from opscope.options import CompileOptions, chosen
from opscope.program.program import StatsOptions

TARGET = targets.load("aic100-std")


def stats_for(**named: object) -> StatsOptions:
    return stats_options(TARGET, chosen(CompileOptions, None, named), batch=8)


def test_the_events_of_the_vendors_page_work() -> None:
    options = stats_for(pmu_events="3F,70,200")
    assert options.events == (0x3F, 0x70, 0x200)
    assert options.event_names == ("COMMITTED_COMMANDS", "STALL_CYCLES", "HMX_ACTIVE")
    assert options.event_counts == ("commands", "wait_cycles", "busy_cycles:HMX")
    assert (options.level, options.recipe) == (40, "")


@pytest.mark.parametrize("recipe", ["AxiRd", "AxiWr", "AxiRdWr", "KernelUtil", "HmxMacs"])
def test_a_recipe_is_a_set_of_events(recipe: str) -> None:
    options = stats_for(pmu_recipe=recipe, stats_level=100, ddr_stats=True)
    assert options.recipe == recipe
    assert len(options.events) == len(options.event_names) >= 2
    assert (options.level, options.ddr, options.batch_size) == (100, True, 8)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"stats_level": 41}, "stats level 41: not known; expected one of 0, 40, 50, 70, 100"),
        ({"stats_level": 0, "ddr_stats": True}, "ddr stats need a stats level of at least 40; found 0"),
        (
            {"pmu_recipe": "AxiRd", "pmu_events": "3F"},
            "a PMU recipe and PMU events exclude each other; expected one of them",
        ),
        (
            {"pmu_recipe": "axird"},
            "PMU recipe 'axird': not known; expected one of AxiRd, AxiWr, AxiRdWr, KernelUtil, HmxMacs",
        ),
        (
            {"pmu_events": "3F,77"},
            "PMU event 77: not known; expected some of 2, 3F, 70, 100, 101, 110, 111, 200, 201, 210, 220",
        ),
        ({"pmu_events": "3F,x"}, "PMU event 'x': not a hexadecimal number; expected such as 3F,70,200"),
        ({"pmu_events": "3F,"}, "PMU event '': not a hexadecimal number; expected such as 3F,70,200"),
        (
            {"pmu_events": "2,3F,70,100,101,110,111,200,201"},
            "9 PMU events: a core counts 8 at once; expected 8 or fewer",
        ),
    ],
)
def test_what_cannot_be_counted_is_refused(asked: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError) as error:
        stats_for(**asked)
    assert str(error.value) == message


def test_eight_events_are_as_many_as_there_are_counters() -> None:
    assert len(stats_for(pmu_events="2,3F,70,100,101,110,111,200").events) == 8


def test_a_target_without_a_pmu_counts_nothing() -> None:
    with pytest.raises(UsageError, match=r"^aic100-std has no PMU in its target file; expected no recipe"):
        stats_options(replace(TARGET, pmu=None), CompileOptions(pmu_recipe="AxiRd"), batch=1)
