"""The verb `setup`."""

from __future__ import annotations

import json
import shlex
import sys
from argparse import ArgumentParser, Namespace
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...backends.environment_maker import MakingPlan
    from ...backends.environments import EnvironmentState
    from ...core.manifest import Environment

SCHEMA = "opscope.setup/1"


class SetupCommand:
    """Make an environment for a compiler that needs another Python or C library than opscope: its packages and programs
    in their own folder in the user's cache. Without a name, list the environments."""

    examples = """\
examples:
  opscope setup
  opscope setup NAME --dry-run
  opscope setup NAME
  opscope setup NAME --wheels folder/
  opscope setup NAME --remove

uv is used if it is installed, else venv and pip of a Python of the version that the packages need. Exit codes: 0 fine,
2 wrong usage, or it cannot be made here: then nothing is left behind, and an earlier environment stays.
"""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", nargs="?", metavar="NAME", help="environment to make (default: list them)")
        parser.add_argument("--list", action="store_true", help="list the environments, and which are installed")
        parser.add_argument(
            "--yes", action="store_true", help="agree to the licence terms of its packages without being asked"
        )
        parser.add_argument("--dry-run", action="store_true", help="print what would be done, but do nothing")
        parser.add_argument(
            "--wheels", type=Path, metavar="DIR", help="take packages from this folder, not from the network"
        )
        parser.add_argument("--python", type=Path, metavar="PATH", help="Python interpreter to use")
        parser.add_argument("--remove", action="store_true", help="remove what an earlier setup made")
        parser.add_argument("--json", action="store_true", help="print JSON")

    def run(self, args: Namespace) -> int:
        """List the environments, or make or remove one."""
        from ...backends import environment_maker, environments
        from ...workflows import setting_up

        if args.name is None or args.list:
            states = setting_up.environment_states()
            wanted = [
                state for state in states if args.name is None or environments.named(args.name).name == state.name
            ]
            _show(wanted, as_json=args.json)
            return 0
        if args.remove:
            removed = environment_maker.remove(environments.named(args.name))
            print(f"{args.name}: nothing to remove" if removed is None else f"removed {removed}", file=sys.stderr)
            return 0
        plan = setting_up.plan_setup(args.name, wheels=args.wheels, python=args.python)
        _announce(plan)
        if args.dry_run:
            _show_plan(plan, as_json=args.json)
            return 0
        is_agreed = args.yes or _agrees(plan.environment)
        state = setting_up.setup(
            plan, is_agreed=is_agreed, report=lambda words: print(f"{args.name}: {words}", file=sys.stderr, flush=True)
        )
        print(f"wrote {plan.folder} ({environment_maker.size_bytes(plan.folder) // 1_000_000} MB)", file=sys.stderr)
        if args.json:
            _show([state], as_json=True)
        return 0


def _announce(plan: MakingPlan) -> None:
    """What it is, how large, and under which licence, before anything is fetched."""
    environment = plan.environment
    size = f"about {environment.megabytes} MB in {plan.folder}"
    print(f"{environment.name}: {environment.title}; {size}; licence: {environment.licence}", file=sys.stderr)


def _agrees(environment: Environment) -> bool:
    """Ask at the terminal, where there are terms to agree to."""
    if not environment.agreement or not sys.stdin.isatty():
        return False
    words = f"{environment.name}: its terms are at {environment.agreement}. Do you agree? [y/N] "
    print(words, end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _show(states: Sequence[EnvironmentState], *, as_json: bool) -> None:
    if as_json:
        json.dump({"schema": SCHEMA, "environments": [asdict(state) for state in states]}, sys.stdout, indent=1)
        print()
        return
    for state in states:
        show_environment(state)


def show_environment(state: EnvironmentState) -> None:
    """Whether it is here, where and who said so, else how to get it."""
    version = f" {state.version}" if state.version else ""
    print(f"{'ok     ' if state.works else 'missing'}  {state.name}{version}: {state.title}")
    print(f"         {state.detail}")
    if state.install:
        print(f"         get it: {state.install} (about {state.megabytes} MB; licence: {state.licence})")


def _show_plan(plan: MakingPlan, *, as_json: bool) -> None:
    if as_json:
        steps = [{"step": step.words, "command": step.command} for step in plan.steps]
        told = {"schema": SCHEMA, "name": plan.environment.name, "folder": str(plan.folder), "steps": steps}
        json.dump(told, sys.stdout, indent=1)
        print()
        return
    for step in plan.steps:
        print(f"{step.words}\n  {shlex.join(step.command)}")
    if plan.environment.finish:
        print("completing the folder")


COMMANDS = {"setup": SetupCommand()}
