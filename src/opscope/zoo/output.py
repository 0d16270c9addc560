"""Files that appear whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from ..errors import UsageError

Progress = Callable[[int, int], None]  # bytes done, bytes in total


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Open a temporary file beside `path`, and rename it to `path` if the block succeeds."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with partial.open("wb") as out:
            yield out
        partial.replace(path)
    except OSError as error:
        raise UsageError(f"{path}: cannot be written, {error.strerror}; expected a folder with room for it") from error
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
