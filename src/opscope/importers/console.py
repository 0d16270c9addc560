"""Logs of a board's console → lines as the program printed them, without what terminals and loggers put around."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from .reading import Unread, numbered

LONGEST_LINE = 2_000
_COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_PREFIX = re.compile(
    r"(?:\[[\d:., ]+\] )?"  # Zephyr: the time
    r"(?:<\w{3}> [\w.]{1,60}: |[EWIDV] \([\d:. ]+\) [^|]{1,40}?: )?"  # Zephyr: level and module; ESP-IDF
)


def console_lines(path: Path, unread: Unread) -> Iterator[tuple[int, str]]:
    """Line number and text; lines that no table has are counted in `unread`."""
    for number, line in numbered(path):
        if len(line) > LONGEST_LINE:
            unread.add(f"line {number}", line)
            continue
        text = _COLOUR.sub("", line).rstrip()
        yield number, text[_prefix(text) :]


def _prefix(text: str) -> int:
    found = _PREFIX.match(text)
    return 0 if found is None else found.end()
