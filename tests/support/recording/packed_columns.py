"""Columns of a page, unpacked: the reference for its own reader, which is in TypeScript."""

from __future__ import annotations

import zlib

import numpy as np
import numpy.typing as npt

from opscope.views.page.packed_columns import COLUMN, FLOAT, HEAD, MAGIC, STEPS


def decode(piece: bytes) -> dict[str, npt.NDArray[np.generic]]:
    """What `encode` was given."""
    body = zlib.decompress(piece)
    magic, rows, count = HEAD.unpack_from(body)
    if magic != MAGIC:
        raise ValueError(f"starts with {magic!r}; expected {MAGIC!r}")
    found: dict[str, npt.NDArray[np.generic]] = {}
    place = HEAD.size + count * COLUMN.size
    for number in range(count):
        name, coding, width, base = COLUMN.unpack_from(body, HEAD.size + number * COLUMN.size)
        planes = np.frombuffer(body, np.uint8, rows * width, place).reshape(width, rows)
        place += rows * width
        words = np.zeros((rows, 8), np.uint8)
        words[:, :width] = planes.T
        found[name.rstrip(b"\0").decode("ascii")] = _values(words.reshape(-1), coding, base)
    return found


def _values(words: npt.NDArray[np.uint8], coding: int, base: int) -> npt.NDArray[np.generic]:
    if coding == FLOAT:
        return words.view("<f8")
    numbers = words.view("<i8") + base
    return numbers.cumsum() if coding == STEPS else numbers
