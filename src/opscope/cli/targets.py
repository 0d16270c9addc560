"""The verb `targets`."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace

from ..commands.command import write_result
from ..core.errors import UsageError


class TargetsCommand:
    """The catalogue of targets that a model can be profiled on: list it, search it, or print one entry with its
    backends and the source of every figure."""

    examples = """\
examples:
  opscope targets
  opscope targets --search cortex
  opscope targets --json
  opscope targets show aic100-std
  opscope targets show ./mychip.toml --json

`opscope profile --target` takes every name, and every alias that `show` prints; `report` and `compile` take those with
a target file.
"""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "action", nargs="?", choices=["list", "show"], default="list", help="what to do (default: list)"
        )
        parser.add_argument("name", nargs="?", metavar="NAME", help="with show: a name or a TOML file")
        parser.add_argument("--search", metavar="WORDS", help="only entries with these words in name, title or heading")
        parser.add_argument("--all", action="store_true", help="also parts without a name, known by number only")
        parser.add_argument("--json", action="store_true", help="print JSON, with everything that is known")

    def run(self, args: Namespace) -> int:
        if args.action == "show":
            return _show(args)
        if args.name is not None:
            raise UsageError(f"targets list: {args.name!r} is not expected; expected show NAME, or --search WORDS")
        from .. import api
        from ..core.entries import entry_problems
        from ..views.json.targets_json import TargetsJson
        from ..views.text.targets_text import TargetsText

        found = api.targets(args.search or "")
        view = TargetsJson() if args.json else TargetsText(minor=args.all or args.search is not None)
        for problem in entry_problems():
            print(f"note: {problem}", file=sys.stderr)
        if not found:
            print(f"note: nothing is called {args.search!r}; `opscope targets` lists everything", file=sys.stderr)
        if found or args.json:
            write_result(lambda out: view.render(found, out), None)
        return 0


def _show(args: Namespace) -> int:
    from ..views.json.targets_json import TargetJson
    from ..views.text.targets_text import TargetText
    from ..workflows import catalogue

    if args.name is None:
        raise UsageError("targets show: no name given; expected one of `opscope targets` or a TOML file")
    entry = catalogue.find(args.name)
    known = catalogue.figures_of(entry)
    view = TargetJson() if args.json else TargetText()
    write_result(lambda out: view.render(entry, known, out), None)
    return 0


COMMANDS = {"targets": TargetsCommand()}
