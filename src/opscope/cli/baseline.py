"""The verb `baseline`."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from ..core.errors import printable
from .compare import add_gate_arguments, show


class BaselineCommand:
    """Save the numbers of a run in a repository or a store, and check later runs against them."""

    examples = """\
examples:
  opscope baseline save profile.run -o perf/model.json
  opscope baseline check profile.run perf/model.json --fail-on "latency>5%" --fail-on "peak_memory>0"
  opscope baseline update profile.run perf/model.json
  opscope baseline save profile.run -o fleet.store:release-1
  opscope baseline check profile.run fleet.store:release-1

A baseline is a small JSON file with sorted keys and one op per line: commit it, and review its differences. In a store
it is a cell whose commit is the name; any commit of the store is a baseline as well.
Exit codes of check: 0 pass, 1 regression or a total that an op of unknown cost is part of, 2 not comparable.
"""

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True, metavar="save|update|check")
        save = actions.add_parser("save", help="write a new baseline", allow_abbrev=False)
        save.add_argument("run", type=Path, metavar="RUN")
        save.add_argument("-o", "--output", required=True, metavar="FILE|STORE:NAME")
        update = actions.add_parser("update", help="replace a baseline, and show what changes", allow_abbrev=False)
        check = actions.add_parser("check", help="compare a run with a baseline", allow_abbrev=False)
        for part in (update, check):
            part.add_argument("run", type=Path, metavar="RUN")
            part.add_argument("file", metavar="FILE|STORE:NAME")
        add_gate_arguments(check)

    def run(self, args: Namespace) -> int:
        from .. import api
        from ..fleet.verbs import save_baseline

        if args.action == "check":
            return show(api.compare(args.file, args.run, fail_on=args.fail_on, allow=args.allow), args)
        if args.action == "save":
            save_baseline(args.run, args.output)
            print(f"wrote {args.output}", file=sys.stderr)
            return 0
        return _update(args)


def _update(args: Namespace) -> int:
    from ..fleet.verbs import update_baseline
    from ..views.text.compare_text import CompareText

    result = update_baseline(args.run, args.file)
    if result.comparison is not None:
        CompareText().render(result.comparison, sys.stdout)
    else:
        print(f"note: {printable(result.note, 400)}", file=sys.stderr)
    print(f"wrote {args.file}" + ("" if result.changed else ", which had the same content"), file=sys.stderr)
    return 0


COMMANDS = {"baseline": BaselineCommand()}
