"""Protocol-buffer messages in columns.

A varint may be longer than it needs to be: in columns every number takes the same bytes, padded with continuation
bits, so that messages of one kind have one length and are put together as rows of a table.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ...core.protobuf import BYTES, FIXED64, VARINT, tag, varint
from .decimal_text import side_by_side

Rows = npt.NDArray[np.uint8]


def padded(value: int, width: int) -> bytes:
    return bytes((value >> 7 * i) & 0x7F | (0x80 if i < width - 1 else 0) for i in range(width))


def width_of(largest: int) -> int:
    """Bytes of the varint of a number."""
    return max(1, -(-int(largest).bit_length() // 7))


class MessageRows:
    """Many messages of one length, put together field by field."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._parts: list[bytes | Rows] = []

    def constant(self, words: bytes) -> MessageRows:
        """The same bytes in every message."""
        self._parts.append(words)
        return self

    def chosen(self, table: Rows, index: npt.NDArray[np.integer]) -> MessageRows:
        """One row of a table of encoded fields."""
        self._parts.append(table[index])
        return self

    def block(self, rows: Rows) -> MessageRows:
        """Encoded fields, one row per message."""
        self._parts.append(rows)
        return self

    def number(self, field: int, values: npt.NDArray[np.integer], *, width: int) -> MessageRows:
        """Numbers of at least 0 as varints of so many bytes."""
        self._parts.append(tag(field, VARINT))
        self._parts.append(varints(values, width))
        return self

    def double(self, field: int, values: npt.NDArray[np.float64]) -> MessageRows:
        self._parts.append(tag(field, FIXED64))
        self._parts.append(np.ascontiguousarray(values, "<f8").view(np.uint8).reshape(len(values), 8))
        return self

    def nested(self, field: int, inner: MessageRows) -> MessageRows:
        """Messages inside these."""
        self._parts += [tag(field, BYTES), varint(inner.width), *inner._parts]
        return self

    @property
    def width(self) -> int:
        return sum(len(part) if isinstance(part, bytes) else part.shape[1] for part in self._parts)

    def rows(self) -> Rows:
        return side_by_side(self.count, self._parts)


def varints(values: npt.NDArray[np.integer], width: int) -> Rows:
    rest = values.astype(np.uint64)
    rows = np.empty((len(rest), width), np.uint8)
    for place in range(width):
        rows[:, place] = rest >> np.uint64(7 * place)  # the lowest byte of it; its highest bit is set right below
    rows[:, :-1] |= 0x80
    rows[:, -1] &= 0x7F
    return rows


def fixed64s(field: int, values: npt.NDArray[np.integer]) -> Rows:
    """Encoded fixed-64 fields, one per row."""
    head = np.frombuffer(tag(field, FIXED64), np.uint8)
    rows = np.empty((len(values), len(head) + 8), np.uint8)
    rows[:, : len(head)] = head
    rows[:, len(head) :] = np.ascontiguousarray(values, "<u8").view(np.uint8).reshape(len(values), 8)
    return rows
