"""The interface of a verb, and the output of results."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Sequence
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TextIO, TypeVar

from ..core.errors import UsageError
from ..core.files import replacing
from ..options import comma_list

if TYPE_CHECKING:
    from ..gate.verdict import Verdict

_Shown_contra = TypeVar("_Shown_contra", contravariant=True)
MODEL_HELP = "ONNX, TensorFlow Lite, MLIR or .pt2 file; package.module:factory or hf:FOLDER for PyTorch"


class Command(Protocol):
    """A verb. Its docstring is the description in --help."""

    examples: str

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the verb's arguments to its parser."""

    def run(self, args: Namespace) -> int:
        """Execute the verb; return the exit code of the process."""


class View(Protocol[_Shown_contra]):
    """Writes one kind of result."""

    def render(self, found: _Shown_contra, out: TextIO, /) -> None: ...


def write_result(write: Callable[[TextIO], None], output: Path | None) -> None:
    """Write to stdout (None or `-`), or to a file that appears complete or not at all."""
    if output is None or str(output) == "-":
        try:
            write(sys.stdout)
            sys.stdout.flush()
        except BrokenPipeError:  # the exit code still depends on the result, not on the reader
            forget_reader()
        return
    with replacing(output) as raw, TextIOWrapper(raw, encoding="utf-8", newline="\n") as stream:
        write(stream)
    print(f"wrote {output}", file=sys.stderr)


def command_line() -> tuple[str, ...]:
    """What the user typed, as runs keep it."""
    return ("opscope", *sys.argv[1:])


def print_checks(verdict: Verdict) -> int:
    """A line on stderr for each limit of a budget; return the exit code."""
    for check in verdict.checks:
        print(("ok    " if check.passed else "FAIL  ") + check.reason, file=sys.stderr)
    return 0 if verdict.passed else 1


def forget_reader() -> None:
    """Discard further output, because its reader has closed the pipe, as `| head` does."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def keep_input(output: Path | None, model: Path) -> None:
    """Refuse to overwrite the model with the result about it."""
    try:
        same = output is not None and output.samefile(model)
    except OSError:  # a file is missing or not accessible: opening it reports that
        return
    if same:
        raise UsageError(f"{output}: is the model itself; expected another file to write to")


def wants_colour(stream: TextIO) -> bool:
    """Whether to print in colour: on a terminal, unless NO_COLOR is set (https://no-color.org)."""
    return stream.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"


def screen_width(stream: TextIO) -> int:
    """Return the width of the terminal, limited to 60–100 columns; 100 for a file."""
    from shutil import get_terminal_size

    return max(60, min(get_terminal_size((100, 24)).columns, 100)) if stream.isatty() else 100


def positive(text: str) -> int:
    """An argparse type: a whole number of at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def listed(name: str, text: str) -> tuple[str, ...]:
    """The values of a comma list; `name` is the option that it was given to."""
    values = comma_list(text)
    if not values:
        raise UsageError(f"--{name} {text!r}: no value; expected a comma list")
    return values


def add_format(parser: ArgumentParser, formats: Sequence[str], words: str = "output format (default: text)") -> None:
    """Add `--format`, and `--json` as a short form of it."""
    parser.add_argument("--format", choices=formats, default="text", help=words)
    parser.add_argument("--json", action="store_const", const="json", dest="format", help="as --format json")


def named_shape(text: str) -> tuple[str, tuple[int, ...]]:
    """An argparse type: NAME=1x3x224x224."""
    name, equals, extents = text.rpartition("=")
    parts = extents.split("x")
    if not equals or not name or not all(part.isdecimal() for part in parts):
        raise ArgumentTypeError(f"{text!r} is not of the form NAME=1x3x224x224")
    return name, tuple(int(part) for part in parts)
