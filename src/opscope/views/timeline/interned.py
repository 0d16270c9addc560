"""Strings that a Perfetto trace says once and then calls by number."""

from __future__ import annotations

from .protobuf import bytes_field, number_field, text_field

_IID, _TEXT = 1, 2


class Interned:
    """Numbers of strings, per table of InternedData; numbers start at 1."""

    CATEGORIES, NAMES, ARGS, VALUES = 1, 2, 3, 29  # fields of InternedData

    def __init__(self) -> None:
        self._tables: dict[int, dict[str, int]] = {self.CATEGORIES: {}, self.NAMES: {}, self.ARGS: {}, self.VALUES: {}}
        self._encoded: tuple[int, bytes] = (0, b"")  # of so many strings

    def number(self, table: int, text: str) -> int:
        known = self._tables[table]
        return known.setdefault(text, len(known) + 1)

    def count(self, table: int) -> int:
        return len(self._tables[table])

    def encoded(self) -> bytes:
        """The InternedData message."""
        count = sum(map(len, self._tables.values()))
        if self._encoded[0] != count:
            fields = (
                bytes_field(table, number_field(_IID, number) + text_field(_TEXT, text))
                for table, known in self._tables.items()
                for text, number in known.items()
            )
            self._encoded = count, b"".join(fields)
        return self._encoded[1]
