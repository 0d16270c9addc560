"""Files of other tools → bytes, lines and numbers, within bounds that no file can make us exceed."""

from __future__ import annotations

import codecs
import math
import stat
import zlib
from collections.abc import Iterator
from pathlib import Path

from ..core.errors import ImportFileError, os_reason, printable

HEAD_BYTES = 1 << 20  # what formats are told apart by
MOST_BYTES = 1 << 31
MOST_LINES = 5_000_000
LONGEST_NS = 1 << 62
_GZIP = b"\x1f\x8b"
_UTF8_MARK, _UTF16_MARKS = codecs.BOM_UTF8, (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_CHUNK = 1 << 20
_PACKED_CHUNK = 1 << 16  # inflates to 64 MB at the very most
_MOST_RATIO, _SMALL_BYTES = 100, 1 << 26  # text deflates 5 to 30 times; a bomb, a thousand times


def head_of(path: Path) -> bytes:
    """The beginning of a file, inflated; of a damaged one as much as there is."""
    try:
        _size_of(path)
        with path.open("rb") as file:
            raw = file.read(HEAD_BYTES)
    except OSError as error:
        raise ImportFileError(str(path), "", _unreadable(error)) from error
    if not raw.startswith(_GZIP):
        return _as_utf8(raw)
    try:
        return _as_utf8(zlib.decompressobj(wbits=31).decompress(raw, HEAD_BYTES))
    except zlib.error:
        return raw


def read_bytes(path: Path) -> bytes:
    """A whole file, inflated."""
    try:
        size = _size_of(path)
        with path.open("rb") as file:
            packed = file.read(2) == _GZIP
            file.seek(0)
            return _as_utf8(b"".join(_inflated(path, size)) if packed else file.read(MOST_BYTES))
    except OSError as error:
        raise ImportFileError(str(path), "", _unreadable(error)) from error


def _as_utf8(raw: bytes) -> bytes:
    """Without the mark of its encoding; UTF-16, as a Windows shell writes what a tool prints, becomes UTF-8."""
    if raw.startswith(_UTF16_MARKS):
        return raw.decode("utf-16", "replace").encode()
    return raw.removeprefix(_UTF8_MARK)


def _size_of(path: Path) -> int:
    """Of a regular file: a pipe or a device has no end that could be relied on."""
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise ImportFileError(str(path), "", "is no regular file; expected a profile file")
    if status.st_size > MOST_BYTES:
        raise ImportFileError(str(path), "", f"{status.st_size} bytes; expected at most {MOST_BYTES}")
    return status.st_size


def read_blocks(path: Path, block_bytes: int = _CHUNK) -> Iterator[bytes]:
    """A whole file, inflated, part by part, so that a long one need not be held."""
    try:
        size = _size_of(path)
        with path.open("rb") as file:
            packed = file.read(2) == _GZIP
            file.seek(0)
            if packed:
                yield from _inflated(path, size)
            else:
                while part := file.read(block_bytes):
                    yield part
    except OSError as error:
        raise ImportFileError(str(path), "", _unreadable(error)) from error


def _inflated(path: Path, size: int) -> Iterator[bytes]:
    """Part by part; what is damaged, cut short or far too long ends it."""
    most = min(MOST_BYTES, max(_SMALL_BYTES, size * _MOST_RATIO))
    total = 0
    try:
        for part in _members(path):
            total += len(part)
            if total > most:
                raise ImportFileError(str(path), "", f"inflates to more than {most} bytes; expected a profile")
            if part:
                yield part
    except (EOFError, zlib.error) as error:
        raise ImportFileError(str(path), f"byte {total:#x} of the inflated text", f"damaged gzip ({error})") from error


def _members(path: Path) -> Iterator[bytes]:
    """Straight from zlib, which checks sums and lengths: `gzip.open` copies every byte twice more."""
    inflate = zlib.decompressobj(wbits=31)
    with path.open("rb") as file:
        while raw := file.read(_PACKED_CHUNK):
            while raw:
                yield inflate.decompress(raw)
                raw = inflate.unused_data.lstrip(b"\0")  # between members, and behind the last, there may be padding
                if inflate.eof and raw:
                    inflate = zlib.decompressobj(wbits=31)
    if not inflate.eof:
        raise EOFError("it is cut short")


def _unreadable(error: OSError) -> str:
    return f"cannot be read ({os_reason(error)}); expected a profile file"


def read_text(path: Path) -> str:
    """A whole file as text; bytes that are no UTF-8 show as �."""
    return read_bytes(path).decode("utf-8", "replace").replace("\r\n", "\n")


def numbered(path: Path) -> Iterator[tuple[int, str]]:
    """Line number from 1, and line."""
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if number > MOST_LINES:
            raise ImportFileError(str(path), f"line {number}", f"more lines than {MOST_LINES}; expected a profile")
        yield number, line


def number_in(text: str) -> float | None:
    """A finite number, perhaps with thousands separators; None: it is none."""
    try:
        value = float(text.strip().replace(",", ""))
    except ValueError:
        return None
    return value if math.isfinite(value) and abs(value) < LONGEST_NS else None


def whole_in(text: str) -> int | None:
    value = number_in(text)
    return None if value is None else round(value)


def to_ns(value: float | None, unit_ns: float) -> int | None:
    """So many units as whole nanoseconds; None: unknown, negative or absurd."""
    if value is None or not 0 <= value * unit_ns < LONGEST_NS:
        return None
    return round(value * unit_ns)


class Unread:
    """Rows that could not be read: how many, and where the first of them are."""

    SHOWN = 5

    def __init__(self, what: str) -> None:
        self.what = what
        self.count = 0
        self.places: list[str] = []

    def add(self, place: str, text: str) -> None:
        self.count += 1
        if len(self.places) < self.SHOWN:
            self.places.append(f"{place}: {printable(text, 60)}")

    def notes(self) -> tuple[str, ...]:
        if not self.count:
            return ()
        more = f" and {self.count - len(self.places)} more" if self.count > len(self.places) else ""
        return (f"{self.count} {self.what} could not be read: {'; '.join(self.places)}{more}",)
