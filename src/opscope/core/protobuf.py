"""Protocol-buffer messages, field by field."""

from __future__ import annotations

VARINT, FIXED64, BYTES = 0, 1, 2  # wire types


def varint(value: int) -> bytes:
    """Seven bits per byte, lowest first; the top bit says that more follow. A negative number is one of 64 bits."""
    value &= 2**64 - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def tag(field: int, wire_type: int) -> bytes:
    return varint(field << 3 | wire_type)


def number_field(field: int, value: int) -> bytes:
    return tag(field, VARINT) + varint(value)


def bytes_field(field: int, value: bytes) -> bytes:
    return tag(field, BYTES) + varint(len(value)) + value


def text_field(field: int, value: str) -> bytes:
    return bytes_field(field, value.encode("utf-8", "replace"))
