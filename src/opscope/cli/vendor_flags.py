"""What the command modules of dialects share: a parser that leaves every word to the dialect's own table."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..dialects.flags import Flag


def take_all(parser: ArgumentParser, table: Sequence[Flag]) -> None:
    """Every word goes to the dialect's own table: single-dash words of several letters are not argparse's."""
    parser.prefix_chars = "\0"
    parser.usage = f"{parser.prog} -FLAG[=VALUE] …"
    used = "\n".join(f"  {flag.shown}" for flag in table if flag.parameter)
    noted = ", ".join(flag.shown for flag in table if not flag.parameter)
    parser.epilog = f"flags:\n{used}\n\naccepted, without effect here:\n  {noted}\n\n{parser.epilog}"
    parser.add_argument("words", nargs="*", metavar="FLAG", help="the vendor's flags")
    parser.set_defaults(print_help=parser.print_help)


def show_help(args: Namespace) -> int:
    args.print_help()
    return 0


def say(notes: Iterable[str]) -> None:
    for note in notes:
        print(f"note: {note}", file=sys.stderr)
