"""How files leave the library, whole or not at all; and how files that may be hostile are opened."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from pathlib import Path
from stat import S_ISREG
from typing import BinaryIO, TextIO

from .errors import UsageError, os_reason

MOST_BYTES = 1 << 32  # of a file that is read as a whole
_CHUNK_BYTES = 1 << 20


def sha256_of(path: Path) -> str:
    from hashlib import sha256  # a tenth of the time of `opscope --help`, which has no use for it

    digest = sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


@contextmanager
def taking_place(path: Path) -> Iterator[Path]:
    """A temporary file beside `path`, for a library that writes files by name.

    It takes the place of `path` if the block succeeds, and goes away if not.
    """
    in_place = path.exists() and not path.is_file() and not path.is_dir()  # a pipe or a device is not to be replaced
    temporary = path.with_name(f".{path.name[:200]}.{os.getpid()}.part")
    try:
        yield path if in_place else temporary
        if not in_place:
            temporary.replace(path)
    finally:  # after an interrupt, too
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """The same, opened; that it cannot be written is a user's error."""
    try:
        with taking_place(path) as place, place.open("wb") as out:
            yield out
    except OSError as error:
        raise UsageError(f"{path}: cannot be written ({os_reason(error)}); expected a writable place") from error


def write_whole(path: Path, render: Callable[[BinaryIO], object]) -> None:
    """Stream into a file that appears whole or not at all."""
    with replacing(path) as out:
        render(out)


@contextmanager
def as_text(out: BinaryIO) -> Iterator[TextIO]:
    """A stream of bytes to write words to; it stays open."""
    text = TextIOWrapper(out, encoding="utf-8", newline="\n")
    yield text
    text.flush()
    text.detach()


def write_bytes(path: Path, data: bytes) -> None:
    """The same for bytes; folders on the way are made."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{path}: cannot be written ({os_reason(error)}); expected a writable place") from error
    write_whole(path, lambda out: out.write(data))


def make_folder(folder: Path) -> None:
    """A folder that results are written to, with those that it is in; one that is there stays."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{folder}: cannot be made ({error.strerror}); expected a place for a folder") from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UsageError(f"{folder}: cannot be written to; expected a writable folder")


def check_apart(outputs: Sequence[Path], inputs: Sequence[Path]) -> None:
    """No file that is read is written over, and none is written twice."""
    for number, output in enumerate(outputs):
        if any(_same(output, given) for given in inputs):
            raise UsageError(f"{output}: is one of the files that are read; expected another file to write to")
        if any(_same(output, other) for other in outputs[:number]):
            raise UsageError(f"{output}: is to be written twice; expected a file for each output")


def _same(one: Path, other: Path) -> bool:
    """Also where a link leads to it; a device is no file that could be lost."""
    try:
        if one.exists() and not one.is_file():
            return False
        return one.resolve() == other.resolve() or one.samefile(other)
    except (OSError, RuntimeError):  # not there, or not to be looked at
        return False


def read_whole(path: Path, expected: str, *, most_bytes: int = MOST_BYTES) -> bytes:
    """A file that a user named; that it cannot be read, or is too large for what it should be, is the user's error.

    Args:
        expected: what the file should be, in the words of the error.
    """
    try:
        if path.stat().st_size > most_bytes:
            raise UsageError(f"{path}: larger than {most_bytes >> 20} MB; expected {expected}")
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({os_reason(error)}); expected {expected}") from error


def open_plain(path: Path) -> BinaryIO:
    """A file of a run; links, pipes and devices are refused on the open file, so that no exchange slips in between."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        file = os.fdopen(os.open(path, flags), "rb")
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror}); expected the file of a run") from error
    if not S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise UsageError(f"{path}: is no plain file; expected the file of a run")
    return file
