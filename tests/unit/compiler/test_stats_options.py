"""What may be asked of the device, and how it is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from opscope.compiler.stats_options import stats_notes, stats_options
from opscope.core.errors import UsageError
from opscope.machine import catalogue as targets
from opscope.options import CompileOptions, chosen
from opscope.program.program import StatsOptions

TARGET = targets.load("aic100-std")


def stats_for(**named: object) -> StatsOptions:
    return stats_options(TARGET, chosen(CompileOptions, None, named), batch=8)


def notes_on(**named: object) -> tuple[str, ...]:
    return stats_notes(chosen(CompileOptions, None, named), stats_for(**named))


def test_the_events_of_the_vendors_page_work() -> None:
    options = stats_for(pmu_events="3F,70,200")
    assert options.events == (0x3F, 0x70, 0x200)
    assert options.event_names == ("COMMITTED_COMMANDS", "STALL_CYCLES", "HMX_ACTIVE")
    assert options.event_counts == ("commands", "wait_cycles", "busy_cycles:HMX")
    assert (options.level, options.recipe) == (40, "")


def test_events_say_which_part_of_a_core_they_tell_about() -> None:
    assert stats_for(pmu_events="3F,200,220").blocks() == {0x3F: "", 0x200: "HMX", 0x220: "DMA"}


@pytest.mark.parametrize("recipe", ["AxiRd", "AxiWr", "AxiRdWr", "KernelUtil", "HmxMacs"])
def test_a_recipe_is_a_set_of_events(recipe: str) -> None:
    options = stats_for(pmu_recipe=recipe, stats_level=100, ddr_stats=True)
    assert options.recipe == recipe
    assert len(options.events) == len(options.event_names) >= 2
    assert (options.level, options.ddr, options.batch_size) == (100, True, 8)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"stats_level": -1}, "stats level -1: negative; expected 0 or more, such as 40, 50, 70 or 100"),
        ({"stats_level": 0, "ddr_stats": True}, "ddr stats need a stats level of at least 40; found 0"),
        (
            {"pmu_recipe": "AxiRd", "pmu_events": "3F"},
            "a PMU recipe and PMU events exclude each other; expected one of them",
        ),
        (
            {"pmu_recipe": "axi"},
            "PMU recipe 'axi': not known; expected one of AxiRd, AxiWr, AxiRdWr, KernelUtil, HmxMacs",
        ),
        ({"pmu_recipe": ""}, "PMU recipe '': not known; expected one of AxiRd, AxiWr, AxiRdWr, KernelUtil, HmxMacs"),
        ({"stats_level": 39, "ddr_stats": True}, "ddr stats need a stats level of at least 40; found 39"),
        ({"pmu_events": "200,3F,0200"}, "PMU event 200: given 2 times; expected it once"),
        ({"pmu_events": "10000"}, "PMU event 10000: expected 0 to FFFF, 16 bits"),
        ({"pmu_events": "-1"}, "PMU event -1: expected 0 to FFFF, 16 bits"),
        ({"pmu_events": ""}, "PMU event '': not a hexadecimal number; expected such as 3F,70,200"),
        (
            {"stats_level": 0, "pmu_recipe": "AxiRd"},
            "PMU counters need a stats level of at least 40; found 0",
        ),
        ({"stats_level": 39, "pmu_events": "3F"}, "PMU counters need a stats level of at least 40; found 39"),
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


@pytest.mark.parametrize(
    ("asked", "recorded"), [(0, 0), (39, 0), (40, 40), (45, 40), (60, 50), (80, 70), (99, 70), (100, 100), (10**9, 100)]
)
def test_a_level_records_what_the_highest_level_below_it_does(asked: int, recorded: int) -> None:
    assert stats_for(stats_level=asked).level == recorded
    notes = notes_on(stats_level=asked, **({"pmu_recipe": "AxiRd"} if asked >= 100 else {}))
    assert [note.partition(" does:")[0] for note in notes] == (
        [] if asked == recorded else [f"stats level {asked} records what level {recorded}"]
    )


def test_counters_of_every_op_without_events_are_said_to_be_none() -> None:
    for level in (100, 101):
        assert notes_on(stats_level=level) == (
            f"stats level {level} without a PMU recipe or PMU events has nothing more to record than level 70",
        )
    assert notes_on(stats_level=100, pmu_events="3F") == ()
    assert notes_on(stats_level=70) == ()


def test_a_recipe_may_be_spelled_in_any_case() -> None:
    assert stats_for(pmu_recipe="axird") == stats_for(pmu_recipe="AxiRd")


def test_an_event_that_the_target_does_not_know_is_kept_and_counts_nothing() -> None:
    options = stats_for(pmu_events="3F,1,FFFF")
    assert options.events == (0x3F, 0x1, 0xFFFF)
    assert options.event_names == ("COMMITTED_COMMANDS", "not simulated", "not simulated")
    assert options.event_counts == ("commands", "", "")
    assert notes_on(pmu_events="3F,1,FFFF") == ("PMU events 1, FFFF are not simulated: they are N/A in summaries",)
