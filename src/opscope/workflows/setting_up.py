"""`opscope setup` and the environments of `doctor`: compilers that need a Python or a C library of their own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ..backends import environment_maker, environments
from ..backends.environment_maker import Plan
from ..backends.environments import EnvironmentState


def environment_states() -> tuple[EnvironmentState, ...]:
    """Every environment of a compiler that needs one of its own, whether it is here, and how to get it."""
    return tuple(environments.state(environment.name) for environment in environments.known())


def plan_setup(name: str, *, wheels: str | Path | None = None, python: str | Path | None = None) -> Plan:
    """How `setup` would make an environment; nothing is fetched or written.

    `wheels` is a folder that packages are taken from instead of the network, `python` the interpreter to make it with.
    """
    folder, interpreter = (None if place is None else Path(place) for place in (wheels, python))
    return environment_maker.plan(environments.named(name), wheels=folder, python=interpreter)


def setup(
    plan: str | Plan, *, is_agreed: bool = False, report: Callable[[str], None] | None = None
) -> EnvironmentState:
    """Make an environment below the user's cache: of that name, or as `plan_setup` planned it.

    `is_agreed` says that the terms of its packages are agreed to, where they have any. `report` is told every step.
    """
    planned = plan_setup(plan) if isinstance(plan, str) else plan
    environment_maker.make(planned, is_agreed=is_agreed, report=report or (lambda _: None))
    return environments.state(planned.environment.name)
