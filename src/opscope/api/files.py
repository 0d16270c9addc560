"""How files leave the library: whole or not at all."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO

from ..errors import UsageError

PROGRAM_FILE = "programqpc.bin"
_CHUNK_BYTES = 1 << 20


def sha256_of(path: Path) -> str:
    digest = sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def write_whole(path: Path, render: Callable[[BinaryIO], object]) -> None:
    """Stream into a file that appears whole or not at all."""
    temporary = path.with_name(f".{path.name[:200]}.part")
    try:
        with temporary.open("wb") as out:
            render(out)
        temporary.replace(path)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise UsageError(f"{path}: cannot be written ({reason}); expected a writable place") from error
    finally:  # after an interrupt, too
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def write_bytes(path: Path, data: bytes) -> None:
    """The same for bytes; folders on the way are made."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise UsageError(f"{path}: cannot be written ({reason}); expected a writable place") from error
    write_whole(path, lambda out: out.write(data))
