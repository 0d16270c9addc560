"""The verb `doctor`."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace
from dataclasses import asdict

from ..core.plugins import manifests, problems
from .setup import show_environment


class DoctorCommand:
    """Say which backends work on this machine, which environments of vendors' compilers are here, and how to get the
    rest."""

    examples = """\
examples:
  opscope doctor
  opscope doctor --json
"""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="print JSON")

    def run(self, args: Namespace) -> int:
        """Print the state of every backend and how to install the missing ones."""
        from .. import api
        from ..backends import registry
        from ..workflows.setting_up import environment_states

        states, environments, broken = api.backend_states(), environment_states(), problems()
        needs = {entry.name: entry.environment for entry in registry.entries() if entry.environment}
        if args.json:
            json.dump(
                {
                    "schema": "opscope.doctor/1",
                    "backends": [{**asdict(state), "environment": needs.get(state.name)} for state in states],
                    "environments": [asdict(state) for state in environments],
                    "plugins": [{"name": manifest.name, "title": manifest.title} for manifest in manifests()],
                    "problems": list(broken),
                },
                sys.stdout,
                indent=1,
            )
            print()
            return 0
        for state in states:
            version = f" {state.version}" if state.version else ""
            print(f"{'ok     ' if state.works else 'missing'}  {state.name}{version}: {state.title}")
            print(f"         {state.detail}")
            if state.install:
                print(f"         install it: {state.install}")
            if state.name in needs:
                print(f"         its programs are those of the environment {needs[state.name]}, below")
        print("environments:" if environments else "environments: none")
        for environment in environments:
            show_environment(environment)
        print(f"plug-ins: {', '.join(manifest.name for manifest in manifests()) or 'none'}")
        return 0


COMMANDS = {"doctor": DoctorCommand()}
