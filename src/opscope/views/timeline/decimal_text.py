"""Columns of numbers → rows of text of one width, without a Python object per number.

Numbers are right-aligned: JSON forbids leading zeros and allows spaces between tokens.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ...core.columns import Flags, Numbers

Text = npt.NDArray[np.uint8]

_QUOTE, _SPACE = ord('"'), ord(" ")


def _digits(places: int) -> Text:
    """The digits of every number of so many places, with leading zeros, a row each."""
    return np.ascontiguousarray(np.indices((10,) * places, np.uint8).reshape(places, -1).T + np.uint8(ord("0")))


def _without_zeros(digits: Text) -> Text:
    """With spaces instead of leading zeros; all of 0 is blank."""
    leading = np.logical_and.accumulate(digits == ord("0"), axis=1)
    return np.where(leading, np.uint8(_SPACE), digits)


def _words(digits: Text) -> npt.NDArray[np.uint32]:
    """Four characters as one word."""
    return digits.view(np.uint32).ravel()


_ZEROS = _words(_digits(4))
_BLANK = _words(_without_zeros(_digits(4)))
_LAST = _BLANK.copy()
_LAST[0] = np.frombuffer(b"   0", np.uint32)[0]
_FRACTIONS = {places: np.insert(_digits(places), 0, ord("."), axis=1) for places in (2, 3)}
_POWERS = 10 ** np.arange(1, 19, dtype=np.int64)


class TextRows:
    """Rows that are put together from left to right, all at once."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._parts: list[bytes | Text] = []

    def text(self, words: bytes) -> TextRows:
        """The same in every row."""
        self._parts.append(words)
        return self

    def chosen(self, table: Text, index: Numbers) -> TextRows:
        """One row of a table of texts of one width."""
        self._parts.append(table[index])
        return self

    def number(self, values: Numbers, *, places: int = 0) -> TextRows:
        """Whole numbers of at least 0, or, with `places`, that many decimals: thousandths as 1.234."""
        self._parts.append(_number(values, places))
        return self

    def string(
        self, key: str, values: Numbers, *, places: int = 0, present: Flags | None = None, first: bool = False
    ) -> TextRows:
        """`,"key": "value"` with the number in quotes; blank in rows where it is not present."""
        if present is not None:
            values = np.where(present, values, 0)
        body = _number(values, places)
        whole = values // 10**places
        front = np.full((self.count, 1), _SPACE, np.uint8)
        text = np.concatenate((front, body), axis=1)
        width = body.shape[1] - (places + 1 if places else 0)
        text[np.arange(self.count), width - 1 - np.searchsorted(_POWERS, whole, side="right")] = _QUOTE
        name, end = (b"" if first else b",") + f'"{key}":'.encode(), b'"'
        if present is None:
            self._parts += [name, text, end]
            return self
        cell = TextRows(self.count)
        cell._parts = [name, text, end]
        block = cell.rows()
        block[~present] = _SPACE
        self._parts.append(block)
        return self

    def flag(self, key: str, present: Flags) -> TextRows:
        """`,"key":true`; blank in rows where it is not present."""
        return self.chosen(same_width([b"", f',"{key}":true'.encode()]), present.astype(np.int64))

    def rows(self) -> Text:
        """One row of text per number, as bytes."""
        return side_by_side(self.count, self._parts)


def side_by_side(count: int, parts: Sequence[bytes | Text]) -> Text:
    """Rows put together from parts that are the same in every row, and parts that are not."""
    widths = [len(part) if isinstance(part, bytes) else part.shape[1] for part in parts]
    common = b"".join(part if isinstance(part, bytes) else bytes(w) for part, w in zip(parts, widths, strict=True))
    rows = np.empty((count, len(common)), np.uint8)
    rows[:] = np.frombuffer(common, np.uint8)
    at = 0
    for part, width in zip(parts, widths, strict=True):
        if not isinstance(part, bytes):
            rows[:, at : at + width] = part
        at += width
    return rows


def _number(values: Numbers, places: int) -> Text:
    if not places:
        return _whole(values)
    step = 10**places
    whole = values // step
    return np.concatenate((_whole(whole), _FRACTIONS[places][values - whole * step]), axis=1)


def _whole(values: Numbers) -> Text:
    """Four digits at a time, blank in front."""
    limbs = max(1, -(-len(str(int(values.max(initial=0)))) // 4))
    words = np.empty((len(values), limbs), np.uint32)
    rest = values
    for limb in reversed(range(limbs)):
        higher = rest // 10_000
        digits = rest - higher * 10_000
        blank = _LAST if limb == limbs - 1 else _BLANK
        words[:, limb] = np.where(higher > 0, _ZEROS[digits], blank[digits])
        rest = higher
    return words.view(np.uint8).reshape(len(values), -1)


def same_width(texts: list[bytes]) -> Text:
    """Texts as rows of one table, filled up with spaces in front."""
    width = max(map(len, texts), default=0)
    return np.frombuffer(b"".join(text.rjust(width) for text in texts), np.uint8).reshape(len(texts), width)
