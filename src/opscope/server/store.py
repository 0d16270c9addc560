"""Cache of rendered files in a folder, until they are outdated or the folder is full."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import BinaryIO

MOST_BYTES = 4 << 30


class Store:
    """Files by key. The first request renders; concurrent requests for the same key wait for that file."""

    def __init__(self, folder: Path, *, most_bytes: int = MOST_BYTES) -> None:
        self._folder = folder
        self._most_bytes = most_bytes
        self._known: dict[str, tuple[object, Path]] = {}  # oldest use first
        self._locks: dict[str, Lock] = {}
        self._guard = Lock()
        self._next = 0

    def open(self, key: str, stamp: object, render: Callable[[BinaryIO], object]) -> BinaryIO:
        """Return the opened file of a key, rendered again if the stamp has changed.

        It is opened under the lock: a file evicted while it is being sent stays readable for those who have it open.
        """
        with self._guard:
            lock = self._locks.setdefault(key, Lock())
        with lock:
            known = self._known.get(key)
            if known is None or known[0] != stamp:
                self._put(key, stamp, render)
            with self._guard:
                self._known[key] = self._known.pop(key)
                return self._known[key][1].open("rb")

    def _put(self, key: str, stamp: object, render: Callable[[BinaryIO], object]) -> None:
        """Render into a new file, then replace the old one and evict files if the folder is full."""
        with self._guard:
            self._next += 1
            path = self._folder / f"{self._next}.bin"
        try:
            with path.open("wb") as out:
                render(out)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        with self._guard:
            old = self._known.pop(key, None)
            self._known[key] = (stamp, path)
            if old is not None:
                old[1].unlink(missing_ok=True)
            self._shrink(path)

    def _shrink(self, keep: Path) -> None:
        """Evict the least recently used files until the folder fits, except `keep`."""
        sizes = {key: path.stat().st_size for key, (_, path) in self._known.items()}
        for key in list(self._known):
            if sum(sizes.values()) <= self._most_bytes:
                return
            if self._known[key][1] != keep:
                sizes.pop(key)
                with suppress(OSError):
                    self._known.pop(key)[1].unlink()
