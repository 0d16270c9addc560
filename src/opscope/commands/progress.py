"""Progress of long work: one line on a terminal, which goes away when the work is done; nothing elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable

_WIDTH = 30
_CLEAR = "\r\033[K"


def counted(words: str) -> Callable[[int, int], None] | None:
    """Told how much is done, and of how much; None where nobody would see it."""
    if not sys.stderr.isatty():
        return None

    def show(done: int, total: int) -> None:
        filled = _WIDTH * done // max(total, 1)
        line = f"{words} [{'#' * filled}{'.' * (_WIDTH - filled)}] {100 * done // max(total, 1)}%"
        print(_CLEAR + (line if done < total else ""), end="", file=sys.stderr, flush=True)

    return show


def step(words: str) -> None:
    """What is being done now; no words: nothing any more."""
    if sys.stderr.isatty():
        print(_CLEAR + (f"{words} …" if words else ""), end="", file=sys.stderr, flush=True)
