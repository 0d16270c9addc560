"""Columns of numbers as few bytes, for a page to unpack with typed arrays: docs/formats/page.md.

A value is kept as its distance from the smallest of its column (or of the column's steps), in as many bytes as the
largest needs; all first bytes of a column come first, then all second bytes: most are zero or repeat, and deflate
makes little of them. Starts 1000, 1300, 1600 as steps are 1000, 300, 300; above the smallest, 300, they are 700, 0, 0
in two bytes: BC 00 00, then 02 00 00.
"""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt

MAGIC = b"OSC1"
HEAD = struct.Struct("<4sII4x")  # magic, rows, columns
COLUMN = struct.Struct("<16sBB6xq")  # name, coding, bytes per value, base
PLAIN, STEPS, FLOAT = 0, 1, 2  # values; differences from the row before; bits of a 64-bit float
LEVEL = 6  # of deflate: 9 takes three times as long for one percent


def encode(columns: Mapping[str, npt.NDArray[np.generic]], *, steps: Iterable[str] = ()) -> bytes:
    """A table as one deflated piece. Columns named in `steps` rise, or nearly so, and are kept as differences."""
    rising = frozenset(steps)
    rows = {len(values) for values in columns.values()}
    if len(rows) != 1:
        raise ValueError(f"columns of {sorted(rows)} rows; expected the same number in each")
    heads, bodies = [], []
    for name, values in columns.items():
        coding, base, width, body = _column(values, rises=name in rising)
        heads.append(COLUMN.pack(name.encode("ascii"), coding, width, base))
        bodies.append(body)
    return zlib.compress(b"".join((HEAD.pack(MAGIC, rows.pop(), len(heads)), *heads, *bodies)), LEVEL)


def _column(values: npt.NDArray[np.generic], *, rises: bool) -> tuple[int, int, int, bytes]:
    """Coding, base, width and bytes of one column."""
    if values.dtype.kind == "f":
        return FLOAT, 0, 8, _planes(values.astype("<f8").view("<u8"), 8)
    numbers = values.astype(np.int64)
    if rises and len(numbers):
        numbers = np.diff(numbers, prepend=0)
    base = int(numbers.min()) if len(numbers) else 0
    above = (numbers - base).astype("<u8")
    width = (int(above.max()).bit_length() + 7) // 8 if len(above) else 0
    return (STEPS if rises else PLAIN), base, width, _planes(above, width)


def _planes(values: npt.NDArray[np.unsignedinteger], width: int) -> bytes:
    """First bytes of all values, then second bytes, …"""
    return np.ascontiguousarray(values).view(np.uint8).reshape(-1, 8)[:, :width].T.tobytes()


def base64_of(piece: bytes) -> str:
    return base64.b64encode(piece).decode("ascii")
