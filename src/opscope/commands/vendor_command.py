"""Helpers of vendor command lines: a parser that leaves all arguments to the vendor's own flag table."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Mapping, Sequence
from textwrap import fill
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .vendor_flags import Flag


def take_all(
    parser: ArgumentParser, table: Sequence[Flag], meanings: Mapping[str, tuple[str, str]] | None = None
) -> None:
    """Pass all arguments to the vendor's flag table: argparse cannot parse single-dash words of several letters.

    Args:
        parser: of the command.
        table: its flags.
        meanings: by parameter, the value placeholder and the description; given for tools with double-dash flags.
    """
    parser.prefix_chars = "\0"
    parser.usage = f"{parser.prog} -FLAG[=VALUE] …"
    if meanings is None:
        used = "\n".join(f"  {flag.shown}" for flag in table if flag.parameter)
        noted = ", ".join(flag.shown for flag in table if not flag.parameter)
    else:
        used = "\n".join(_help_line(flag, *meanings[flag.parameter]) for flag in table if flag.parameter)
        listed = ", ".join(_flag_text(flag) for flag in table if not flag.parameter)
        noted = fill(listed, 100, subsequent_indent="  ", break_on_hyphens=False)
    parser.epilog = f"flags:\n{used}\n\naccepted, without effect here:\n  {noted}\n\n{parser.epilog}"
    parser.add_argument("words", nargs="*", metavar="FLAG", help="the vendor's flags")
    parser.set_defaults(print_help=parser.print_help)


def _flag_text(flag: Flag) -> str:
    return ", ".join(f"--{name}" if len(name) > 1 else f"-{name}" for name in flag.names)


def _help_line(flag: Flag, value: str, meaning: str) -> str:
    mark = " " if len(flag.names[0]) == 1 else "="
    return f"  {_flag_text(flag) + (mark + value if value else ''):<33} {meaning}"


def show_help(args: Namespace) -> int:
    args.print_help()
    return 0


def say(notes: Iterable[str]) -> None:
    for note in notes:
        print(f"note: {note}", file=sys.stderr)
