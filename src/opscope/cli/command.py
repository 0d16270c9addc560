"""What every verb looks like, and how results leave the program."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Protocol, TextIO, cast

from ..errors import UsageError


class Command(Protocol):
    """A verb. Its docstring is the description in --help."""

    examples: str

    def add_arguments(self, parser: ArgumentParser) -> None: ...

    def run(self, args: Namespace) -> int: ...


def write_result(write: Callable[[TextIO], None], output: Path | None) -> None:
    """To stdout, or to a file that appears whole or not at all."""
    if output is None:
        write(sys.stdout)
        sys.stdout.flush()
        return
    try:
        with NamedTemporaryFile(
            "w", dir=output.parent, prefix=f".{output.name}.", encoding="utf-8", newline="\n", delete=False
        ) as file:
            temporary = Path(file.name)
            try:
                write(cast("TextIO", file))
            except BaseException:
                temporary.unlink()
                raise
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(output)
    except OSError as error:
        raise UsageError(f"{output}: cannot be written ({error.strerror}); expected a writable place") from error
    print(f"wrote {output}", file=sys.stderr)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


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
