"""Set-up of an activation, thread by thread."""

from __future__ import annotations

from dataclasses import replace

import pytest

from opscope.core.errors import ProgramError
from opscope.device.activation import activate_ticks
from opscope.machine import catalogue as targets
from opscope.program.program import Program
from support.device.build import Step, program_of

NAMES = ("ticks", "ticks_per_gigabyte", "thread_ticks", "core_ticks", "least_ticks")


def program(constants: int) -> Program:
    simulation = targets.load("aic100-std").simulation
    figures = {f"activate_{name}": getattr(simulation, f"activate_{name}").value for name in NAMES}
    made = program_of([Step(), Step(core=1)], simulation=figures)
    return replace(made, metrics=replace(made.metrics, constants_bytes=constants))


@pytest.mark.parametrize(
    ("core", "published"), [(0, [4386, 4339, 4246, 4161, 4067, 1519]), (1, [4051, 4007, 3924, 3836, 3739, 1521])]
)
def test_the_published_run_comes_out(core: int, published: list[int]) -> None:
    assert activate_ticks(program(215_076_864), core).tolist() == pytest.approx(published, rel=0.01)


def test_a_large_program_takes_longer_and_a_late_core_takes_the_least() -> None:
    assert activate_ticks(program(12_868 * 10**6), 0)[0] == pytest.approx(21_000, rel=0.01)
    assert activate_ticks(program(10**6), 13).tolist() == [1520] * 6


def test_a_target_without_figures_has_no_set_up() -> None:
    assert activate_ticks(program_of([Step()]), 0).tolist() == [0] * 6


def test_an_impossible_set_up_is_refused() -> None:
    bad = program_of([Step()], simulation={"activate_core_ticks": -1.0})
    with pytest.raises(ProgramError, match=r"simulation: activate_core_ticks is -1\.0; expected 0 to 4294967295"):
        activate_ticks(bad, 0)
