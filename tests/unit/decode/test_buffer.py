"""Bytes of a stats buffer: what is read, and how damage is named."""

from __future__ import annotations

import struct
import zlib
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from opscope.core.errors import CaptureError, ProgramError
from opscope.decode import check_buffer, decode_buffer
from opscope.decode.lanes import LaneIndex, read_lanes
from opscope.program.program import StatsOptions
from opscope.program.program_file import decode_program
from opscope.program.wire import OP_RECORD, STATS_HEADER, STATS_SECTION, THREAD_RECORD, StatsSection
from support.decode.build import EVENTS, Profiled, small

CRC_AT = 64


def patched(raw: bytes, at: int, code: str, value: int) -> bytes:
    """One field changed, and the checksum made to fit."""
    body = bytearray(raw)
    struct.pack_into("<" + code, body, at, value)
    struct.pack_into("<I", body, CRC_AT, zlib.crc32(bytes(body[STATS_HEADER.size :])))
    return bytes(body)


def section_at(raw: bytes, kind: StatsSection, core: int) -> tuple[int, int]:
    """Where the entry of a section lies in the table, and where its records lie."""
    count = STATS_HEADER.unpack_from(raw)[3]
    for number in range(count):
        at = STATS_HEADER.size + number * STATS_SECTION.size
        found = STATS_SECTION.unpack_from(raw, at)
        if found[:2] == (kind, core):
            return at, found[5]
    raise AssertionError(kind)


@cache
def known() -> tuple[Profiled, LaneIndex]:
    return small(), LaneIndex.of(small().program)


def decode(raw: bytes) -> None:
    profile, index = known()
    buffer = decode_buffer(raw, source="a.bin")
    check_buffer(buffer, profile.program, program_id=profile.identity)
    list(read_lanes(buffer, profile.program, index))


def test_what_was_written_is_what_is_read() -> None:
    profile = small(EVENTS)
    capture = decode_buffer(profile.raw(), source="a.bin").capture
    wrote = profile.captures[0]
    assert replace(capture, sections={}) == replace(wrote, sections={})
    assert set(capture.sections) == set(wrote.sections)
    for key, records in wrote.sections.items():
        assert np.array_equal(capture.sections[key], records)


def test_records_are_views_of_the_file_and_not_copies() -> None:
    raw = small().raw()
    for records in decode_buffer(raw, source="a.bin").capture.sections.values():
        assert not records.flags.owndata
        assert not records.flags.writeable


def test_a_file_that_is_no_stats_buffer_is_told_apart() -> None:
    with pytest.raises(CaptureError, match=r"^a\.bin: byte 0x0: not a stats buffer; found b'\\x7fELF\\x00"):
        decode_buffer(b"\x7fELF" + bytes(100), source="a.bin")


def test_a_later_version_is_not_guessed_at() -> None:
    with pytest.raises(CaptureError, match=r"byte 0x8: version is 9; this opscope reads version 1"):
        decode_buffer(patched(small().raw(), 8, "H", 9), source="a.bin")


def test_a_flip_in_the_records_is_caught_by_the_checksum() -> None:
    raw = bytearray(small().raw())
    raw[-3] ^= 1
    with pytest.raises(CaptureError, match=r"byte 0x40: the checksum is 0x[0-9a-f]{8}, the header says .* is damaged"):
        decode_buffer(bytes(raw), source="a.bin")


def test_a_program_of_another_build_is_refused_by_its_id() -> None:
    profile = small()
    with pytest.raises(CaptureError, match=r"byte 0x10: program_id is 0x[0-9a-f]{16}; the program has 0x0{15}7"):
        check_buffer(profile.buffer(), profile.program, program_id=7)


@pytest.mark.parametrize(
    ("at", "code", "value", "words"),
    [
        (12, "I", 2**31, "byte 0xc: 2147483648 sections do not fit"),
        (24, "H", 5, "byte 0x18: device is 5; the program runs on 1"),
        (26, "H", 9, "byte 0x1a: cores is 9; the program has 2"),
        (28, "H", 0, "byte 0x1c: threads is 0; expected at least 1"),
        (30, "H", 40, "byte 0x1e: level is 40; the program has 70"),
        (32, "I", 64, "byte 0x20: flags 0x40; known are"),
        (32, "I", 1, "byte 0x20: flags is 1; the program has 0"),
        (32, "I", 4, "byte 0x20: flags is 4: records are lost; no section says which"),
        (44, "I", 3, "byte 0x2c: batch_size is 3; the program has 1"),
        (48, "Q", 77, "byte 0x30: stats_millihertz is 77; the program has 19200000000"),
        (56, "Q", 2**60, "cut short; the header says"),
        (68, "I", 1, "byte 0x44: reserved is 1; expected 0"),
    ],
)
def test_every_field_of_the_header_is_checked(at: int, code: str, value: int, words: str) -> None:
    with pytest.raises(CaptureError) as caught:
        decode(patched(small().raw(), at, code, value))
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("place", "code", "value", "words"),
    [
        (2, "H", 7, "section OPS of core 7; expected below 2"),
        (4, "I", 8, "section OPS: records of 8 bytes; expected 40"),
        (8, "I", 2**32 - 1, "4294967295 records at"),
        (16, "Q", 2**63, "records at 0x8000000000000000; expected them at"),
        (0, "H", StatsSection.THREADS, "records of 40 bytes; expected 32"),
    ],
)
def test_absurd_counts_and_places_of_sections_are_refused(place: int, code: str, value: int, words: str) -> None:
    raw = small().raw()
    at, _ = section_at(raw, StatsSection.OPS, 0)
    with pytest.raises(CaptureError) as caught:
        decode(patched(raw, at + place, code, value))
    assert f"byte {at:#x}" in str(caught.value)
    assert words in str(caught.value)


def test_a_section_of_a_later_version_is_passed_over() -> None:
    raw = small().raw()
    at, _ = section_at(raw, StatsSection.PORTS, 0)
    assert (StatsSection.PORTS, 0) not in decode_buffer(patched(raw, at, "H", 99), source="a.bin").capture.sections


@pytest.mark.parametrize(
    ("kind", "record", "field", "value", "words"),
    [
        (StatsSection.THREADS, 2, "group", 1, "THREADS record 2 of core 0: group 1; expected 0"),
        (StatsSection.THREADS, 1, "thread", 4, "THREADS record 1 of core 0: thread 4; expected 1"),
        (StatsSection.THREADS, 1, "end", 5, "expected a rising pair below 2^62"),
        (StatsSection.OPS, 1, "ordinal", 0xFFFFFFFF, "stands behind a later one"),
        (StatsSection.OPS, 1, "thread", 9, "stands behind a later one"),
        (StatsSection.OPS, 3, "thread", 9, "thread 9 is not of group 0"),
        (StatsSection.OPS, 5, "start", 0, "threads of a command differ in start; expected them together"),
        (StatsSection.OPS, 5, "ucycles", 0xFFFFFFFF, "threads leave a command at different ticks"),
        (StatsSection.OPS, 5, "blocker", 12, "threads of a command differ in blocker"),
        (StatsSection.OPS, 16, "blocker", 0xFFFFFFFF, "waited for a command past the end; the program has 10"),
        (StatsSection.OPS, 17, "wait", 0xFFFFFFFF, "starts to wait before the one before it is done"),
        (StatsSection.OPS, 17, "ucycles", 0xFFFFFFFF, "ends behind its thread, which stops at tick"),
        (StatsSection.OPS, 17, "start", 2**63, "ends behind its thread"),
    ],
)
def test_a_record_that_cannot_be_is_named_by_its_byte(
    kind: StatsSection, record: int, field: str, value: int, words: str
) -> None:
    raw = small().raw()
    _, start = section_at(raw, kind, 0)
    dtype = {StatsSection.THREADS: THREAD_RECORD, StatsSection.OPS: OP_RECORD}[kind]
    place, offset = dtype.fields[field]  # type: ignore[index]
    at = start + record * dtype.itemsize + offset
    with pytest.raises(CaptureError) as caught:
        decode(patched(raw, at, {2: "H", 4: "I", 8: "Q"}[place.itemsize], value))
    assert words in str(caught.value)
    named = record + 1 if "behind a later one" in words else record  # which of two is out of order, nobody can tell
    assert f"byte {start + named * dtype.itemsize:#x}: " in str(caught.value)


def test_a_missing_command_is_noticed() -> None:
    profile = small()
    sections = dict(profile.captures[0].sections)
    sections[StatsSection.OPS, 0] = sections[StatsSection.OPS, 0][:-1]
    short = replace(profile, captures=(replace(profile.captures[0], sections=sections),))
    with pytest.raises(CaptureError, match="group 2 has 2 records; expected 1 for each of 3 commands"):
        decode(short.raw())


def test_a_full_buffer_says_what_is_lost_and_the_rest_is_read() -> None:
    profile = small(capacity=8)
    trace = profile.trace()
    assert 0 < len(trace.spans) < len(small().trace().spans)


def test_bytes_between_or_behind_sections_are_refused() -> None:
    raw = small().raw()
    with pytest.raises(CaptureError, match=r"8 bytes that no section has; expected the end"):
        decode_buffer(patched(raw + bytes(8), 56, "Q", len(raw) + 8), source="a.bin")
    with pytest.raises(CaptureError, match=r"expected them at 0x"):
        decode_buffer(patched(raw, 12, "I", STATS_HEADER.unpack_from(raw)[3] - 1), source="a.bin")


def test_truncation_at_every_offset_is_an_error_with_a_place() -> None:
    raw = small(StatsOptions(level=40)).raw()
    for size in range(len(raw)):
        with pytest.raises(CaptureError, match=r"^a\.bin: byte 0x[0-9a-f]+: "):
            decode_buffer(raw[:size], source="a.bin")


def test_every_single_bit_flip_is_caught() -> None:
    profile = small()
    raw = profile.raw()
    name = (profile.captures[0].activation, profile.captures[0].inference)  # the file's name says these
    for bit in range(8 * len(raw)):
        damaged = bytearray(raw)
        damaged[bit // 8] ^= 1 << bit % 8
        try:
            decode(bytes(damaged))
        except CaptureError:
            continue
        capture = decode_buffer(bytes(damaged), source="a.bin").capture
        assert (capture.activation, capture.inference) != name


def test_truncated_and_flipped_programs_are_refused() -> None:
    raw = small().raw_program
    for size in range(0, len(raw), 7):
        with pytest.raises(ProgramError):
            decode_program(raw[:size], source="q")
    for byte in range(len(raw)):
        damaged = bytearray(raw)
        damaged[byte] ^= 0x10
        if 16 <= byte < 24 or 28 <= byte < 32:  # its id, which buffers are compared with; and a spare word
            continue
        with pytest.raises(ProgramError):
            decode_program(bytes(damaged), source="q")


def test_a_doorbell_that_rings_when_all_is_done_is_named() -> None:
    raw = small().raw()
    _, at = section_at(raw, StatsSection.DOORBELLS, 0)
    for time in (2**63, 1):
        with pytest.raises(CaptureError, match=rf"DOORBELLS record 0 of core 0: rung at tick {time}; expected 979"):
            decode(patched(raw, at + 8, "Q", time))
