"""Files that appear whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from ..core.errors import UsageError

Progress = Callable[[int, int], None]  # bytes done, bytes in total


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Open a temporary file beside `path`, and rename it to `path` if the block succeeds."""
    in_place = path.exists() and not path.is_file() and not path.is_dir()  # a pipe or a device is not to be replaced
    partial = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with (path if in_place else partial).open("wb") as out:
            yield out
        if not in_place:
            partial.replace(path)
    except OSError as error:
        raise UsageError(f"{path}: cannot be written ({error.strerror}); expected a writable place") from error
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
