"""What every verb looks like, and how results leave the program."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable
from io import TextIOWrapper
from pathlib import Path
from typing import Protocol, TextIO

from ..core.errors import UsageError
from ..core.files import replacing


class Command(Protocol):
    """A verb. Its docstring is the description in --help."""

    examples: str

    def add_arguments(self, parser: ArgumentParser) -> None: ...

    def run(self, args: Namespace) -> int: ...


def write_result(write: Callable[[TextIO], None], output: Path | None) -> None:
    """To stdout, also called `-`, or to a file that appears whole or not at all."""
    if output is None or str(output) == "-":
        try:
            write(sys.stdout)
            sys.stdout.flush()
        except BrokenPipeError:  # what the command found still decides its exit code
            forget_reader()
        return
    with replacing(output) as raw, TextIOWrapper(raw, encoding="utf-8", newline="\n") as stream:
        write(stream)
    print(f"wrote {output}", file=sys.stderr)


def forget_reader() -> None:
    """The reader of our output has gone, as `| head` does: what is left of it goes nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def keep_input(output: Path | None, model: Path) -> None:
    """A result must not take the place of the file it is about."""
    try:
        same = output is not None and output.samefile(model)
    except OSError:  # one of them is not there, or not to be seen: whoever opens it will say so
        return
    if same:
        raise UsageError(f"{output}: is the model itself; expected another file to write to")


def wants_colour(stream: TextIO) -> bool:
    """Colour is for terminals, and not for those who asked for none (https://no-color.org)."""
    return stream.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"


def screen_width(stream: TextIO) -> int:
    """Columns of a terminal, within what a line can be read at; of a file, the most of them."""
    from shutil import get_terminal_size

    return max(60, min(get_terminal_size((100, 24)).columns, 100)) if stream.isatty() else 100


def positive(text: str) -> int:
    """An argparse type: a whole number of at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def named_shape(text: str) -> tuple[str, tuple[int, ...]]:
    """An argparse type: NAME=1x3x224x224."""
    name, equals, extents = text.rpartition("=")
    parts = extents.split("x")
    if not equals or not name or not all(part.isdecimal() for part in parts):
        raise ArgumentTypeError(f"{text!r} is not of the form NAME=1x3x224x224")
    return name, tuple(int(part) for part in parts)
