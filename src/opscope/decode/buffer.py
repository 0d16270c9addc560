"""Bytes of a stats buffer → Capture: header, checksum, section table; records are views of the bytes, not copies."""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from struct import calcsize

import numpy as np

from ..core.errors import CaptureError
from ..program.capture import Capture, Records
from ..program.wire import (
    STATS_HEADER,
    STATS_HEADER_FIELDS,
    STATS_MAGIC,
    STATS_RECORDS,
    STATS_SECTION,
    STATS_VERSION,
    StatsFlag,
    StatsSection,
)

_ALIGNMENT = 8


@dataclass(frozen=True, slots=True)
class Buffer:
    """A capture with the file offset of every section, so that an error can name the damaged byte."""

    source: str
    capture: Capture
    offsets: Mapping[tuple[StatsSection, int], int]

    def records(self, kind: StatsSection, core: int) -> Records:
        """Return the records of a section; empty if the section is absent."""
        found = self.capture.sections.get((kind, core))
        return np.zeros(0, STATS_RECORDS[kind]) if found is None else found

    def fault(self, kind: StatsSection, core: int, record: int, problem: str) -> CaptureError:
        """Return an error at one record of a section."""
        offset = self.offsets.get((kind, core), 0) + record * STATS_RECORDS[kind].itemsize
        return CaptureError(self.source, offset, f"{kind.name} record {record} of core {core}: {problem}")


def decode_buffer(raw: bytes | memoryview, *, source: str) -> Buffer:
    """Decode one stats buffer and check what can be checked without its program.

    The format is described in docs/formats/stats-buffer.md.
    """
    view = memoryview(raw)
    header = _header(view, source)
    offsets: dict[tuple[StatsSection, int], int] = {}
    sections: dict[tuple[StatsSection, int], Records] = {}
    end = STATS_HEADER.size + header["sections"] * STATS_SECTION.size
    for at in range(STATS_HEADER.size, end, STATS_SECTION.size):
        key, offset, count, end = _section(view, at, end, header["cores"], source)
        if key in sections:
            raise CaptureError(source, at, f"a second section {key[0].name} of core {key[1]}; expected one")
        if key is not None:
            offsets[key] = offset
            sections[key] = np.frombuffer(view, STATS_RECORDS[key[0]], count, offset)
    if end != len(view):
        raise CaptureError(source, end, f"{len(view) - end} bytes that no section has; expected the end")
    capture = Capture(
        program_id=header["program_id"],
        device=header["device"],
        cores=header["cores"],
        threads=header["threads"],
        level=header["level"],
        flags=StatsFlag(header["flags"]),
        activation=header["activation"],
        inference=header["inference"],
        batch_size=header["batch_size"],
        stats_hz=header["stats_millihertz"] / 1000,
        sections=sections,
    )
    return Buffer(source, capture, offsets)


def _header(view: memoryview, source: str) -> dict[str, int]:
    """Unpack the header and check magic, version and sizes."""
    if len(view) < STATS_HEADER.size:
        raise CaptureError(
            source, len(view), f"cut short; a stats buffer starts with a header of {STATS_HEADER.size} bytes"
        )
    values = dict(zip(STATS_HEADER_FIELDS, STATS_HEADER.unpack_from(view), strict=True))
    if values["magic"] != STATS_MAGIC:
        raise CaptureError(source, 0, f"not a stats buffer; found {values['magic']!r}, expected {STATS_MAGIC!r}")
    expected_fields = (
        ("version", STATS_VERSION, "this opscope reads version"),
        ("header_bytes", STATS_HEADER.size, "a header has"),
        ("reserved", 0, "expected"),
    )
    for name, expected, words in expected_fields:
        if values[name] != expected:
            raise CaptureError(source, field_offset(name), f"{name} is {values[name]}; {words} {expected}")
    _check_totals(view, values, source)
    return values


def _check_totals(view: memoryview, values: dict[str, int], source: str) -> None:
    """Check size, section count, counts, flags and checksum of the header against the file."""
    total = values["total_bytes"]
    if total != len(view):
        where, what = (len(view), "cut short") if len(view) < total else (total, "followed by something else")
        raise CaptureError(source, where, f"{what}; the header says {total} bytes, the file has {len(view)}")
    table = STATS_HEADER.size + values["sections"] * STATS_SECTION.size
    if table > total:
        raise CaptureError(
            source, field_offset("sections"), f"{values['sections']} sections do not fit in {total} bytes"
        )
    if not values["stats_millihertz"] or not values["cores"] or not values["threads"]:
        name = next(name for name in ("cores", "threads", "stats_millihertz") if not values[name])
        raise CaptureError(source, field_offset(name), f"{name} is 0; expected at least 1")
    known = sum(StatsFlag)
    if values["flags"] & ~known:
        raise CaptureError(source, field_offset("flags"), f"flags {values['flags']:#x}; known are {known:#x}")
    found = zlib.crc32(view[STATS_HEADER.size :])
    if found != values["crc32"]:
        raise CaptureError(
            source,
            field_offset("crc32"),
            f"the checksum is {found:#010x}, the header says {values['crc32']:#010x}; the file is damaged",
        )


def _section(
    view: memoryview, at: int, expected: int, cores: int, source: str
) -> tuple[tuple[StatsSection, int] | None, int, int, int]:
    """Return key, offset, record count and end of one entry of the section table.

    The key is None for a kind added by a later version. Sections follow each other in the order of the table, each
    padded to a multiple of eight bytes.
    """
    number, core, record_bytes, count, _, offset = STATS_SECTION.unpack_from(view, at)
    kind = StatsSection(number) if number in list(StatsSection) else None
    name = f"section {number}" if kind is None else f"section {kind.name}"
    end = offset + count * record_bytes
    if core >= cores:
        raise CaptureError(source, at, f"{name} of core {core}; expected below {cores}")
    if kind is not None and record_bytes != STATS_RECORDS[kind].itemsize:
        expected_bytes = STATS_RECORDS[kind].itemsize
        raise CaptureError(source, at, f"{name}: records of {record_bytes} bytes; expected {expected_bytes}")
    if offset != expected or end > len(view):
        raise CaptureError(
            source,
            at,
            f"{name} of core {core}: {count} records at {offset:#x}; expected them at {expected:#x}, and "
            f"their end before {len(view):#x}",
        )
    return None if kind is None else (kind, core), offset, count, end + -end % _ALIGNMENT


def field_offset(name: str) -> int:
    """Return the byte offset of a header field."""
    codes = re.findall(r"\d*[a-zA-Z]", STATS_HEADER.format)
    return calcsize("<" + "".join(codes[: STATS_HEADER_FIELDS.index(name)]))
