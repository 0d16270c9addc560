"""The verb `check`."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from ..commands.command import write_result

if TYPE_CHECKING:
    from ..recording.finding import LawCheck


class CheckCommand:
    """Check the numbers of a run against laws. Conservation: busy + wait + idle = wall on every lane; bytes and MACs of
    ops, rollups, commands and spans add up; no spans overlap; timelines can be read back. Physics: nothing is faster
    than its peak or larger than its memory, and all work of the graph is done."""

    examples = """\
examples:
  opscope check profile.run
  opscope check profile.run --json

Each law is ok, VIOLATED, or — if the run has no data for it. Exit codes: 0 fine, 1 a law is violated, 2 unreadable.
"""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("run", type=Path, metavar="RUN", help="run folder, written by profile, opstats or import")
        parser.add_argument("--json", action="store_true", help="print JSON")

    def run(self, args: Namespace) -> int:
        from .. import api

        checks = api.check(args.run)
        write_result(lambda out: _json(checks, out) if args.json else _text(checks, out), None)
        return 1 if any(check.holds is False for check in checks) else 0


def _json(checks: tuple[LawCheck, ...], out: TextIO) -> None:
    from ..core.json_files import write_json

    body = {
        "schema": "opscope.check/1",
        "holds": all(check.holds is not False for check in checks),
        "checks": [asdict(check) for check in checks],
    }
    write_json(body, out)


def _text(checks: tuple[LawCheck, ...], out: TextIO) -> None:
    from ..commands.command import wants_colour
    from ..views.text.findings_text import ChecksText

    ChecksText(colour=wants_colour(sys.stdout)).render(checks, out)


COMMANDS = {"check": CheckCommand()}
