"""`opscope setup` and the environments of `doctor`: compilers that need a Python or a C library of their own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ..backends import environment_maker, environments
from ..backends.environment_maker import MakingPlan
from ..backends.environments import EnvironmentState


def environment_states() -> tuple[EnvironmentState, ...]:
    """Every environment of a compiler that needs its own, whether it is installed, and how to get it."""
    return tuple(environments.state(environment.name) for environment in environments.known())


def plan_setup(name: str, *, wheels: str | Path | None = None, python: str | Path | None = None) -> MakingPlan:
    """How `setup` would make an environment; nothing is downloaded or written.

    `wheels` is a folder to take packages from instead of the network; `python` is the interpreter to use.
    """
    folder, interpreter = (None if place is None else Path(place) for place in (wheels, python))
    return environment_maker.plan(environments.named(name), wheels=folder, python=interpreter)


def setup(
    plan: str | MakingPlan, *, is_agreed: bool = False, report: Callable[[str], None] | None = None
) -> EnvironmentState:
    """Make an environment in the user's cache, by its name or by a plan of `plan_setup`.

    `is_agreed` says that you agree to the licence terms of its packages. `report` is called with every step.
    """
    planned = plan_setup(plan) if isinstance(plan, str) else plan
    environment_maker.make(planned, is_agreed=is_agreed, report=report or (lambda _: None))
    return environments.state(planned.environment.name)
