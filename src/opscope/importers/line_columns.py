"""Lines of separated fields → columns, block by block, where a standard reader of such tables would fail.

Fields are found from the left and from the right of a line, so that one in the middle may hold separators and quotes
that its writer did not escape: of `7,conv,3x3 "a,b",120` with four fields, `left(0)` is 7, `right(0)` is 120 and
`rest(2, behind=1)` is `3x3 "a,b"`. What is held of a long file is one block of it, and its columns.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..core.ahead import ahead
from ..core.columns import Numbers
from .reading import Unread, read_blocks

if TYPE_CHECKING:
    import pyarrow as pa

Marks = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]

BLOCK_BYTES = 1 << 22
_NEWLINE, _RETURN, _SPACE, _MINUS, _ZERO = b"\n\r -0"
_MOST_DIGITS = 18  # of a number that fits in 64 bits whatever its digits are
_FEW_BLANKS = 4
_LONGEST_LINE = 1 << 20  # bytes; a line that is longer is cut there, and its row then counted as unreadable
_MARK, _UTF16_MARKS = codecs.BOM_UTF8, (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


@dataclass(frozen=True, slots=True)
class Fields:
    """One field of every line: where it begins and ends in the bytes of the block."""

    data: Bytes
    start: Numbers
    end: Numbers

    def stripped(self) -> Fields:
        """The same fields without blanks around them."""
        start, end = self.start.copy(), self.end.copy()
        last = max(len(self.data) - 1, 0)
        for _ in range(_FEW_BLANKS):
            before = (start < end) & (self.data[np.minimum(start, last)] == _SPACE)
            start += before
            behind = (start < end) & (self.data[np.clip(end - 1, 0, last)] == _SPACE)
            end -= behind
            if not (before.any() or behind.any()):
                return Fields(self.data, start, end)
        # Many blanks: one search for the nearest other byte, as a step for each blank would take too long.
        filled = np.flatnonzero(self.data != _SPACE)
        first, behind_last = np.searchsorted(filled, start), np.searchsorted(filled, end)
        start = np.minimum(np.append(filled, len(self.data))[first], end)
        return Fields(self.data, start, np.maximum(np.append(-1, filled)[behind_last] + 1, start))

    def empty(self) -> Marks:
        return self.end <= self.start

    def whole(self) -> tuple[Numbers, Marks]:
        """Whole numbers, and which fields are such; the others are 0.

        All fields at once, digit by digit from the left: value × 10 + digit, while the field has digits left.
        """
        if not len(self.start):
            return np.zeros(0, np.int64), np.zeros(0, np.bool_)
        last = len(self.data) - 1
        negative = (self.end > self.start) & (self.data[np.minimum(self.start, last)] == _MINUS)
        first = self.start + negative
        width = self.end - first
        good = (width > 0) & (width <= _MOST_DIGITS)
        value = np.zeros(len(first), np.int64)
        for place in range(int(width[good].max(initial=0))):
            inside = good & (place < width)
            digit = self.data[np.minimum(first + place, last)].astype(np.int64) - _ZERO
            good &= ~inside | ((digit >= 0) & (digit <= 9))
            value = np.where(inside, value * 10 + digit, value)
        return np.where(good, np.where(negative, -value, value), 0), good


class Texts:
    """Texts of a column, each kept once and called by its number."""

    def __init__(self) -> None:
        self._known: dict[bytes, int] = {}

    def merged(self, column: pa.DictionaryArray) -> Numbers:
        """Number of the text of every row of a column that is encoded already."""
        known = [self._known.setdefault(text, len(self._known)) for text in column.dictionary.to_pylist()]
        if not known:
            return np.zeros(0, np.int64)
        numbers: Numbers = np.array(known, np.int64)[_as_they_lie(column.indices, np.int32)]
        return numbers

    def number(self, fields: Fields) -> Numbers:
        """Number of the text of every field."""
        import pyarrow as pa

        # The fields' bytes are gathered one behind the other, as Arrow wants them, and encoded there in one pass:
        # `at` is the place in the block of every byte. Of fields at 4..6 and 9..10 it is 4 5 9.
        start = fields.start.astype(np.int32)  # a block is small
        length = fields.end.astype(np.int32) - start
        offsets = np.zeros(len(length) + 1, np.int32)
        np.cumsum(length, out=offsets[1:])
        at = np.arange(offsets[-1], dtype=np.int32)
        at += np.repeat(start - offsets[:-1], length)
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(fields.data[at])]
        return self.merged(pa.Array.from_buffers(pa.binary(), len(length), buffers).dictionary_encode())

    @property
    def texts(self) -> tuple[str, ...]:
        return self.after(0)

    def after(self, count: int) -> tuple[str, ...]:
        """All texts but the first `count`."""
        return tuple(text.decode("utf-8", "replace") for text in islice(self._known, count, None))

    def __len__(self) -> int:
        return len(self._known)


class Lines:
    """Lines of one block that are not empty, and the separators in them."""

    def __init__(self, data: Bytes, separator: bytes, first: int) -> None:
        self.data = data
        ends = np.flatnonzero(data == _NEWLINE)
        starts = np.concatenate(([0], ends[:-1] + 1)) if len(ends) else np.zeros(0, np.int64)
        # "\r\n" ends a line too; `_marks` ends with a sentinel, so that a line behind the last separator has one.
        ends = ends - ((ends > starts) & (data[np.maximum(ends - 1, 0)] == _RETURN))
        kept = ends > starts
        self.number = np.flatnonzero(kept) + first
        self.start, self.end = starts[kept], ends[kept]
        self._marks = np.concatenate((np.flatnonzero(data == separator[0]), [len(data)]))
        self._first = np.searchsorted(self._marks, self.start)
        self.separators = np.searchsorted(self._marks, self.end) - self._first

    def __len__(self) -> int:
        return len(self.start)

    def chosen(self, kept: Marks) -> Lines:
        """The lines that are marked."""
        part = object.__new__(Lines)
        part.data, part._marks = self.data, self._marks
        for name in ("number", "start", "end", "_first", "separators"):
            setattr(part, name, getattr(self, name)[kept])
        return part

    def left(self, place: int) -> Fields:
        """Field counted from the left, from 0; of lines that have a separator before and behind it."""
        last = len(self._marks) - 1
        start = self.start if not place else self._marks[np.minimum(self._first + place - 1, last)] + 1
        end = np.minimum(self._marks[np.minimum(self._first + place, last)], self.end)
        return Fields(self.data, start, np.maximum(end, start))

    def rest(self, place: int, behind: Numbers | int = 0) -> Fields:
        """Everything from field `place` on, without the last `behind` fields."""
        start = self.left(place).start
        final = self._first + self.separators
        mark = self._marks[np.maximum(final - behind, 0)]
        end = np.where(np.asarray(behind) > 0, mark, self.end)
        return Fields(self.data, start, np.maximum(end, start))

    def right(self, place: Numbers | int) -> Fields:
        """Field counted from the right, from 0; of lines that have a separator before it."""
        final = self._first + self.separators
        start = self._marks[np.maximum(final - 1 - place, 0)] + 1
        end = np.where(np.asarray(place) > 0, self._marks[np.maximum(final - place, 0)], self.end)
        return Fields(self.data, start, np.maximum(end, start))

    def refuse(self, bad: Marks, unread: Unread) -> None:
        """Count lines that cannot be read; the first are named."""
        at = np.flatnonzero(bad)
        for place in at[: Unread.SHOWN].tolist():
            text = self.data[self.start[place] : min(self.end[place], self.start[place] + 200)].tobytes()
            unread.add(f"line {self.number[place]}", text.decode("utf-8", "replace"))
        unread.count += max(len(at) - Unread.SHOWN, 0)


@dataclass(frozen=True, slots=True)
class TextBlock:
    """Whole lines of a file."""

    raw: bytes
    separator: bytes
    number: int  # of the first line
    count: int  # of lines, those that are empty too

    def lines(self) -> Lines:
        return Lines(np.frombuffer(self.raw, np.uint8), self.separator, self.number)

    def first_line(self) -> bytes:
        return self.raw.partition(b"\n")[0].rstrip(b"\r")

    def without_first(self) -> TextBlock:
        return TextBlock(self.raw.partition(b"\n")[2], self.separator, self.number + 1, self.count - 1)

    def quick(self, kinds: str) -> list[Numbers | pa.DictionaryArray] | None:
        """Columns of a block in which every line has exactly these fields; None: one has not, see `lines`.

        Args:
            kinds: one letter per field: `n` a whole number, `w` a word, `-` not wanted.
        """
        import pyarrow as pa
        from pyarrow import csv

        if not self.raw or self.raw.isspace():
            return None
        names = [str(place) for place in range(len(kinds))]
        words = pa.dictionary(pa.int32(), pa.binary())
        types = {name: pa.int64() if kind == "n" else words for name, kind in zip(names, kinds, strict=True)}
        wanted = [name for name, kind in zip(names, kinds, strict=True) if kind != "-"]
        parse = csv.ParseOptions(delimiter=self.separator.decode(), quote_char=False)
        convert = csv.ConvertOptions(column_types=types, include_columns=wanted, null_values=[], check_utf8=False)
        read = csv.ReadOptions(column_names=names, use_threads=False, block_size=len(self.raw) + 1)
        try:
            table = csv.read_csv(pa.BufferReader(self.raw), read, parse, convert).combine_chunks()
        except pa.ArrowInvalid:
            return None
        columns = (table.column(name).chunk(0) for name in wanted)
        return [_as_they_lie(c, np.int64) if pa.types.is_integer(c.type) else c for c in columns]


def _as_they_lie(column: pa.Array, kind: type[np.integer[Any]]) -> Numbers:
    """Numbers where they are in memory: `to_numpy` would import pandas where there is one."""
    numbers: Numbers = np.frombuffer(column.buffers()[1], kind)[column.offset : column.offset + len(column)]
    return numbers


def read_lines(path: Path, separator: bytes, *, block_bytes: int = BLOCK_BYTES) -> Iterator[TextBlock]:
    """The lines of a file, in blocks that end with a line; a line that two blocks share goes with the later one."""
    left, number = b"", 1  # what the last block began and did not end
    for block in _as_utf8(read_blocks(path, block_bytes)):
        cut = block.rfind(b"\n") + 1
        endless = not cut and len(left) + len(block) > _LONGEST_LINE
        if cut:
            raw, left = b"".join((left, memoryview(block)[:cut])), block[cut:]
            count = raw.count(b"\n")
            yield TextBlock(raw, separator, number, count)
            number += count
        elif endless:
            yield TextBlock(left + block + b"\n", separator, number, 1)
            left = b""
        else:
            left += block
    if left:
        yield TextBlock(left + b"\n", separator, number, 1)


def _as_utf8(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Without the mark of its encoding, and with newlines; what the file has instead, its first block tells."""
    decoder, returns = None, False
    for place, raw in enumerate(blocks):
        if not place and raw.startswith(_UTF16_MARKS):
            decoder = codecs.getincrementaldecoder("utf-16")("replace")
        block = raw if decoder is None else decoder.decode(raw).encode()
        if not place:
            block = block.removeprefix(_MARK)
            returns = with_newlines(block) is not block
        yield block.replace(b"\r", b"\n") if returns else block


def with_newlines(raw: bytes) -> bytes:
    """Text whose lines end in a carriage return alone, as some spreadsheets save it, with newlines."""
    return raw.replace(b"\r", b"\n") if b"\r" in raw and b"\n" not in raw else raw


@dataclass(frozen=True, slots=True)
class Parsed:
    """A block below the header, its fields as `Block.quick` calls them, and their columns; None: see its lines."""

    block: TextBlock
    kinds: str
    columns: list[Numbers | pa.DictionaryArray] | None


def read_parsed(path: Path, separator: bytes, kinds: Callable[[bytes], str]) -> Iterator[Parsed]:
    """The lines below the header; while one block is looked at, the next is parsed.

    Args:
        path: the file.
        separator: of fields.
        kinds: what fields there are, by the first line; raises where it is no header.
    """
    return ahead(_parsed, _below_header(path, separator, kinds), threads=1)


def _parsed(told: tuple[TextBlock, str]) -> Parsed:
    block, kinds = told
    return Parsed(block, kinds, block.quick(kinds))


def _below_header(path: Path, separator: bytes, kinds: Callable[[bytes], str]) -> Iterator[tuple[TextBlock, str]]:
    wanted = ""
    for block in read_lines(path, separator):
        if wanted:
            yield block, wanted
        else:
            wanted = kinds(block.first_line())
            yield block.without_first(), wanted


def joined(parts: Sequence[Numbers]) -> Numbers:
    """Columns of all blocks as one."""
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)


class Counter:
    """A counter that only rises, put right where it was held in 32 bits: a fall of more than half is a wrap."""

    _BITS = 32

    def __init__(self) -> None:
        self._last: int | None = None
        self._turns = 0

    def unwrapped(self, values: Numbers) -> Numbers:
        """The next values of the counter, with the wraps so far added."""
        if not len(values):
            return values
        half = 1 << (self._BITS - 1)
        fell = np.diff(values, prepend=values[0]) < -half
        fell[0] = values[0] < 0 if self._last is None else int(values[0]) - self._last < -half
        self._last = int(values[-1])
        if not self._turns and not fell.any():
            return values
        turns = self._turns + np.cumsum(fell)
        self._turns = int(turns[-1])
        result: Numbers = values + (turns << self._BITS)
        return result


def unwrapped(values: Numbers) -> Numbers:
    """All values of a counter."""
    return Counter().unwrapped(values)
