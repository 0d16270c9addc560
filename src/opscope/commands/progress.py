"""Progress of long work: one line on a terminal that disappears when the work is done; nothing elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable

_WIDTH = 30
_CLEAR = "\r\033[K"


def counted(words: str) -> Callable[[int, int], None] | None:
    """Return a function that draws a progress bar for (done, total); None if stderr is not a terminal."""
    if not sys.stderr.isatty():
        return None

    def show(done: int, total: int) -> None:
        filled = _WIDTH * done // max(total, 1)
        line = f"{words} [{'#' * filled}{'.' * (_WIDTH - filled)}] {100 * done // max(total, 1)}%"
        print(_CLEAR + (line if done < total else ""), end="", file=sys.stderr, flush=True)

    return show


def step(words: str) -> None:
    """Show the current step on the terminal; an empty text clears the line."""
    if sys.stderr.isatty():
        print(_CLEAR + (f"{words} …" if words else ""), end="", file=sys.stderr, flush=True)
