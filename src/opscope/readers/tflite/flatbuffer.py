"""Reads flatbuffer tables, vectors and strings from untrusted bytes.

Supports only the parts that TensorFlow Lite files use, and reads only the bytes that are asked for: weights in a mapped
file are never touched. Every position is checked, and the bytes visited are counted against a budget, because a damaged
or hostile file can refer many times to the same large vector.

    table:   i32 distance back to its vtable, then its fields
    vtable:  u16 own size, u16 table size, then one u16 per field: its distance from the table start (0: absent)
    vector:  u32 count, then the elements       string: the same, elements are UTF-8 bytes
"""

from __future__ import annotations

from mmap import mmap
from operator import add
from struct import Struct
from struct import error as StructError  # noqa: N812  the standard library's name is lower case

from ...core.errors import ModelError

FIELDS = 17  # as many as the widest table of the schema has; later fields are not read
SLACK = 4  # budget per file byte: vectors and strings may be shared, so more bytes than the file has may be visited
MAX_VECTOR_ELEMENTS = 1 << 20  # elements of one vector: a graph has at most about 1e5 operators
MAX_VISITED_BYTES = 1 << 27  # budget in all: 1e5 operators with long names need a third of it

INT8 = Struct("<b")
UINT8 = Struct("<B")
UINT16_PAIR = Struct("<HH")
INT32 = Struct("<i")
UINT32 = Struct("<I")
INT64 = Struct("<q")
UINT64 = Struct("<Q")


COMMON_LENGTHS = 33  # lengths of shapes and operand lists are below this
INT32S = tuple(Struct(f"<{count}i") for count in range(COMMON_LENGTHS))


class Flatbuffer:
    """The bytes of one file, the remaining byte budget, and a cache of vtables."""

    __slots__ = ("_budget", "_vtables", "bytes", "size", "source")

    def __init__(self, content: mmap | bytes, source: str) -> None:
        self.bytes = content
        self.size = len(content)
        self.source = source
        self._budget = min(SLACK * self.size, MAX_VISITED_BYTES)
        self._vtables: dict[int, tuple[int, tuple[int, ...]]] = {}

    def root(self) -> Table:
        return self.table(self.follow(0))

    def damage(self, position: int, problem: str) -> ModelError:
        return ModelError(self.source, f"byte {position:#x}", problem)

    def cut_short(self, position: int) -> ModelError:
        return self.damage(position, f"cut short: the file ends at {self.size:#x}")

    def follow(self, position: int) -> int:
        """Return the position that the offset stored at `position` points to."""
        try:
            target: int = position + UINT32.unpack_from(self.bytes, position)[0]
        except StructError:
            raise self.cut_short(position) from None
        if target == position or target > self.size - 4:
            raise self.damage(position, f"points to {target:#x}; the file ends at {self.size:#x}")
        return target

    def table(self, position: int) -> Table:
        """Return the table at `position`; tables of one type share a vtable, which is read once."""
        try:
            vtable = position - INT32.unpack_from(self.bytes, position)[0]
        except StructError:
            raise self.cut_short(position) from None
        known = self._vtables.get(vtable)
        if known is None:
            known = self._vtables[vtable] = self._read_vtable(vtable, position)
        if position + known[0] > self.size:
            raise self.damage(position, f"table of {known[0]} bytes reaches past the end of the file, {self.size:#x}")
        return Table(self, position, known[1])

    def vector(self, position: int, width: int) -> tuple[int, int]:
        """Return the start and the number of elements of the vector that the offset at `position` points to.

        The elements are charged to the byte budget, so that a vector referred to many times cannot multiply the work.
        """
        try:
            start = position + UINT32.unpack_from(self.bytes, position)[0]
            count = UINT32.unpack_from(self.bytes, start)[0]
        except StructError:
            raise self.cut_short(position) from None
        size = count * width
        if start + 4 + size > self.size:
            raise self.damage(start, f"{size} bytes of elements reach past the end of the file, {self.size:#x}")
        if count > MAX_VECTOR_ELEMENTS:
            raise self.damage(start, f"vector of {count} elements; expected at most {MAX_VECTOR_ELEMENTS}")
        self._budget -= size
        if self._budget < 0:
            raise self.damage(start, "the same bytes are used too many times; a sound file shares little")
        return start + 4, count

    def _read_vtable(self, position: int, table: int) -> tuple[int, tuple[int, ...]]:
        """Return the table's size and the offset of each of its first FIELDS fields (0: absent)."""
        if not 0 <= position <= self.size - 4:
            raise self.damage(table, f"its vtable would be at {position:#x}; the file ends at {self.size:#x}")
        own_size, table_size = UINT16_PAIR.unpack_from(self.bytes, position)
        if own_size < 4 or own_size % 2 or position + own_size > self.size or table_size < 4:
            raise self.damage(position, f"vtable of {own_size} bytes for a table of {table_size} cannot be")
        count = min((own_size - 4) // 2, FIELDS)
        fields = Struct(f"<{count}H").unpack_from(self.bytes, position + 4)
        if any(field >= table_size for field in fields):
            raise self.damage(position, f"field {max(fields)} bytes into a table of {table_size}")
        return table_size, fields + (0,) * (FIELDS - count)


class Table:
    """One table; fields are addressed by their number in the schema, and an absent one has its default.

    A large model has about 1e5 of these, so the methods are written out instead of sharing helpers.
    """

    __slots__ = ("_bytes", "_fields", "file", "position")

    def __init__(self, file: Flatbuffer, position: int, fields: tuple[int, ...]) -> None:
        self.file = file
        self.position = position
        self._fields = fields
        self._bytes = file.bytes

    def has(self, field: int) -> bool:
        return self._fields[field] != 0

    def number(self, field: int, layout: Struct, default: int = 0) -> int:
        offset = self._fields[field]
        if not offset:
            return default
        try:
            value: int = layout.unpack_from(self._bytes, self.position + offset)[0]
        except StructError:
            raise self.file.cut_short(self.position + offset) from None
        return value

    def int32(self, field: int, default: int = 0) -> int:
        return self.number(field, INT32, default)

    def flag(self, field: int, default: bool = False) -> bool:
        return self.number(field, UINT8, default) != 0

    def table(self, field: int) -> Table | None:
        offset = self._fields[field]
        return self.file.table(self.file.follow(self.position + offset)) if offset else None

    def tables(self, field: int) -> list[Table]:
        """Return the tables in a vector of tables; empty if the field is absent."""
        return [self.file.table(position) for position in self.table_positions(field)]

    def table_positions(self, field: int) -> list[int]:
        """Return the positions of the tables in a vector of tables; each offset is relative to its own position."""
        offset = self._fields[field]
        if not offset:
            return []
        start, count = self.file.vector(self.position + offset, 4)
        offsets = Struct(f"<{count}I").unpack_from(self._bytes, start)
        positions = list(map(add, offsets, range(start, start + 4 * count, 4)))
        if positions and max(positions) > self.file.size - 4:
            raise self.file.damage(
                start - 4, f"a table would be at {max(positions):#x}; the file ends at {self.file.size:#x}"
            )
        return positions

    def int32s(self, field: int) -> tuple[int, ...]:
        offset = self._fields[field]
        if not offset:
            return ()
        start, count = self.file.vector(self.position + offset, 4)
        layout = INT32S[count] if count < COMMON_LENGTHS else Struct(f"<{count}i")
        return layout.unpack_from(self._bytes, start)

    def int64s(self, field: int) -> tuple[int, ...]:
        offset = self._fields[field]
        if not offset:
            return ()
        start, count = self.file.vector(self.position + offset, 8)
        return Struct(f"<{count}q").unpack_from(self._bytes, start)

    def string(self, field: int) -> str:
        offset = self._fields[field]
        if not offset:
            return ""
        start, length = self.file.vector(self.position + offset, 1)
        return self._bytes[start : start + length].decode("utf-8", "replace")

    def span(self, field: int) -> tuple[int, int]:
        """Return the start and length of a byte vector without reading it."""
        offset = self._fields[field]
        if not offset:
            return 0, 0
        start = self.file.follow(self.position + offset)
        size: int = UINT32.unpack_from(self._bytes, start)[0]
        if start + 4 + size > self.file.size:
            raise self.file.damage(start, f"{size} bytes of data reach past the end of the file, {self.file.size:#x}")
        return start + 4, size
