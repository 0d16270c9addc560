"""The verb `doctor`."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace
from dataclasses import asdict
from pathlib import Path

from ...core.errors import UsageError
from ...core.plugins import manifests, problems
from .setup import show_environment


class DoctorCommand:
    """Print which backends work on this machine, which environments of vendors' compilers are installed, and how to get
    the others."""

    examples = """\
examples:
  opscope doctor
  opscope doctor --json
  opscope doctor --bundle bug.zip
  opscope doctor --bundle bug.zip --command "profile model.onnx --target aic100-std"

--bundle writes what a bug report needs: versions, this platform, the state of every backend, problems of plug-ins, and
variables OPSCOPE_* without their secrets. --command is run again, and its options, its exit code and the place of an
error in opscope are kept, but none of its text. The file has nothing of a model, no user name and none of your paths.
"""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="print JSON")
        parser.add_argument("--bundle", type=Path, metavar="FILE.zip", help="write a file for a bug report")
        parser.add_argument(
            "--command", metavar="WORDS", help="with --bundle: the command that fails, without `opscope`"
        )

    def run(self, args: Namespace) -> int:
        """Print the state of every backend and how to install the missing ones."""
        from ... import api
        from ...backends import registry
        from ...workflows.setting_up import environment_states

        states, environments, broken = api.backend_states(), environment_states(), problems()
        needs = {entry.name: entry.environment for entry in registry.entries() if entry.environment}
        found = {
            "schema": "opscope.doctor/1",
            "backends": [{**asdict(state), "environment": needs.get(state.name)} for state in states],
            "environments": [asdict(state) for state in environments],
            "plugins": [{"name": manifest.name, "title": manifest.title} for manifest in manifests()],
            "problems": list(broken),
        }
        if args.command is not None and args.bundle is None:
            raise UsageError("--command: nothing is written; expected --bundle FILE.zip too")
        if args.bundle is not None:
            from .bundle import write_bundle

            write_bundle(args.bundle, found, args.command)
            print(f"wrote {args.bundle}", file=sys.stderr)
            return 0
        if args.json:
            json.dump(found, sys.stdout, indent=1)
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
