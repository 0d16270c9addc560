"""Protobuf's wire format, read in place: the fields of a message as tags and offsets, without copies.

Spec: https://protobuf.dev/programming-guides/encoding. A tag is `field number << 3 | wire type`; the wire types are
0 varint, 1 eight bytes, 2 length and bytes, 5 four bytes (3 and 4, groups, are not used by ONNX).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from mmap import mmap

from ...core.errors import ModelError

_TWO_TO_63 = 1 << 63
_TWO_TO_64 = 1 << 64
_RELEASE_AFTER_BYTES = 8 << 20


class Wire:
    """A file's bytes, and its name for errors. `mmap` or `bytes`: both index to int and slice to bytes."""

    __slots__ = ("_skipped_bytes", "buffer", "source")

    def __init__(self, buffer: mmap | bytes, source: str) -> None:
        self.buffer = buffer
        self.source = source
        self._skipped_bytes = 0

    def release_pages(self, size: int) -> None:
        """Count `size` bytes of skipped weights and, every few megabytes, release the mapped pages.

        The kernel reads ahead around every page that is touched, up to megabytes at a time. Without this call, most of
        a file of which only small parts are read would become resident.
        """
        self._skipped_bytes += size
        if self._skipped_bytes > _RELEASE_AFTER_BYTES:
            self._skipped_bytes = 0
            if sys.platform == "linux" and isinstance(self.buffer, mmap):
                from mmap import MADV_DONTNEED

                self.buffer.madvise(MADV_DONTNEED)

    def error(self, offset: int, problem: str) -> ModelError:
        return ModelError(self.source, f"byte {offset:#x}", problem)

    def fields(self, start: int, end: int) -> Iterator[tuple[int, int, int]]:
        """Yield (tag, start, end) of each field's payload; for a varint (tag, value, offset of the tag).

        Most of the reading time of a large graph is spent here, so one-byte tags, lengths and values are decoded
        inline. Example: `0A 03 61 62 63` is field 1 (0x0A >> 3), wire type 2, three bytes "abc".
        """
        buffer = self.buffer
        at = position = start
        try:
            while position < end:
                at = position
                tag = buffer[position]
                position += 1
                if tag >= 0x80:
                    tag, position = self.varint(at, end)
                wire_type = tag & 7
                if tag < 8:
                    raise self.error(at, "field number 0 does not exist in protobuf; this is not an ONNX model")
                if wire_type == 2:
                    size = buffer[position]
                    position += 1
                    if size >= 0x80:
                        size, position = self.varint(position - 1, end)
                    stop = position + size
                    if stop > end:
                        remaining = max(0, end - position)
                        raise self.error(
                            at, f"field {tag >> 3} claims {size} bytes; {remaining} are left in its message"
                        )
                    yield tag, position, stop
                    position = stop
                elif wire_type == 0:
                    value = buffer[position]
                    position += 1
                    if value >= 0x80:
                        value, position = self.varint(position - 1, end)
                    yield tag, value, at
                else:
                    stop = position + self._fixed_width(wire_type, at)
                    yield tag, position, stop
                    position = stop
                if position > end:
                    raise self.error(at, f"field {tag >> 3} runs past the end of its message")
        except IndexError:
            raise self.error(at, "the file ends inside a field") from None

    def _fixed_width(self, wire_type: int, at: int) -> int:
        if wire_type == 5:
            return 4
        if wire_type == 1:
            return 8
        raise self.error(at, f"wire type {wire_type} is not used by ONNX; expected 0, 1, 2 or 5")

    def varint(self, start: int, end: int) -> tuple[int, int]:
        """Decode an unsigned 64-bit varint; return it and the offset after it."""
        value = shift = 0
        for position in range(start, min(start + 10, end)):
            byte = self.buffer[position]
            # Seven bits per byte, least significant first; the top bit says that another byte follows: AC 02 is 300.
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value % _TWO_TO_64, position + 1
            shift += 7
        problem = "a varint is longer than 10 bytes" if end - start > 10 else "a varint is cut short"
        raise self.error(start, problem)

    def varints(self, start: int, end: int) -> Iterator[int]:
        """Decode a packed run of unsigned varints."""
        position = start
        while position < end:
            value, position = self.varint(position, end)
            yield value

    def text(self, start: int, end: int) -> str:
        return self.buffer[start:end].decode("utf-8", "replace")


def signed(value: int) -> int:
    """Reinterpret an unsigned varint as protobuf's int64 (or int32, which is sign-extended to 64 bits)."""
    return value - _TWO_TO_64 if value >= _TWO_TO_63 else value
