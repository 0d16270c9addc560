"""Codec of the program file: Program ⇄ bytes (docs/formats/program.md).

    header          magic, version, number of sections, program id, CRC-32 of everything behind it
    section table   kind, offset and bytes of each section
    META            JSON: everything small, and everything that many commands share
    COMMANDS        one fixed-size record per command
    DEPENDENCY_*    CSR arrays: command i depends on sources[offsets[i]:offsets[i + 1]], each with a kind

What repeats is stored once: kinds, ops and details are lists in META, and a command has positions in them. (16 cores
that run the same tile share one detail.) The arrays are read in place, without a copy of the commands.

Reading trusts nothing. Header and checksum come first; then the table and every section must lie in the file, and a
section must hold a whole number of records; then every value of META must have the type that `_Meta` says; at last
`check_program` checks every index. Each failure is a ProgramError that says where.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Mapping
from dataclasses import asdict, astuple

import msgspec
import numpy as np
import numpy.typing as npt

from ..core.errors import ProgramError
from ..core.meaning import Direction
from ..core.target_words import TargetWords
from .bounds import Bounds
from .check import check_program
from .program import (
    COMMAND,
    Channel,
    Count,
    Detail,
    Group,
    MemoryInfo,
    MemoryMetrics,
    Operand,
    OpInfo,
    Port,
    Program,
    StatsOptions,
)
from .wire import PROGRAM_HEADER, PROGRAM_MAGIC, PROGRAM_SECTION, PROGRAM_VERSION, ProgramSection

_ARRAYS = {
    ProgramSection.COMMANDS: COMMAND,
    ProgramSection.DEPENDENCY_OFFSETS: np.dtype("<u4"),
    ProgramSection.DEPENDENCY_SOURCES: np.dtype("<u4"),
    ProgramSection.DEPENDENCY_KINDS: np.dtype("u1"),
}
_META_FIELDS = (
    "name",
    "target",
    "devices",
    "cores",
    "batch",
    "clock_hz",
    "stats_hz",
    "kinds",
    "inputs",
    "outputs",
    "host_microseconds",
    "host_bytes_per_second",
    "simulation",
    "model",
    "notes",
    "retained",
    "stored_types",
    "device_cores",
    "card_devices",
)


_OperandRow = tuple[Direction, str, str, int, str, tuple[Count, ...], Count | None]  # the fields of an Operand
_DetailRow = tuple[str, str, str, str, tuple[_OperandRow, ...], str]  # of a Detail


class _Meta(msgspec.Struct):
    """The META section; what has a default is absent in files of earlier versions."""

    name: str
    target: str
    devices: Count
    cores: Count
    batch: Count
    clock_hz: float
    stats_hz: float
    kinds: tuple[str, ...]
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    host_microseconds: Mapping[str, float]
    host_bytes_per_second: Mapping[str, float]
    simulation: Mapping[str, float]
    model: str
    groups: tuple[Group, ...]
    routes: tuple[Channel, ...]
    ops: tuple[tuple[str, ...], ...]
    memories: tuple[MemoryInfo, ...]
    details: tuple[_DetailRow, ...]
    stats: StatsOptions
    metrics: MemoryMetrics
    notes: tuple[str, ...] = ()
    retained: tuple[str, ...] = ()
    stored_types: Mapping[str, str] = msgspec.field(default_factory=dict)
    bounds: Bounds | None = None
    device_cores: Count | None = None
    card_devices: Count | None = None
    words: TargetWords | None = None


_DECODER = msgspec.json.Decoder(_Meta)  # made here, not at first use: see core/json_files.py


def encode_program(program: Program) -> bytes:
    """The bytes of a program file. Its id is a hash of everything behind the header, so equal programs have one id."""
    bodies = {
        ProgramSection.META: json.dumps(_meta(program), separators=(",", ":"), sort_keys=True).encode(),
        ProgramSection.COMMANDS: program.commands.tobytes(),
        ProgramSection.DEPENDENCY_OFFSETS: program.dependency_offsets.astype("<u4").tobytes(),
        ProgramSection.DEPENDENCY_SOURCES: program.dependency_sources.astype("<u4").tobytes(),
        ProgramSection.DEPENDENCY_KINDS: program.dependency_kinds.astype("u1").tobytes(),
    }
    offset = PROGRAM_HEADER.size + PROGRAM_SECTION.size * len(bodies)
    table = b""
    for section, body in bodies.items():
        table += PROGRAM_SECTION.pack(section, 0, offset, len(body))
        offset += len(body)
    rest = table + b"".join(bodies.values())
    identity = int.from_bytes(hashlib.sha256(rest).digest()[:8], "little")
    header = PROGRAM_HEADER.pack(
        PROGRAM_MAGIC, PROGRAM_VERSION, PROGRAM_HEADER.size, len(bodies), identity, zlib.crc32(rest), 0
    )
    return header + rest


def program_id(raw: bytes | memoryview) -> int:
    """The id in the header of a program file."""
    return int(PROGRAM_HEADER.unpack_from(raw)[4])


def decode_program(raw: bytes | memoryview, *, source: str) -> Program:
    """The program in the bytes of a file; damage is reported with its byte offset."""
    sections = _sections(raw, source)
    arrays = {kind: _array(sections, kind, source) for kind in _ARRAYS}
    try:
        program = _program(_DECODER.decode(sections[ProgramSection.META]), arrays)
    except (msgspec.MsgspecError, TypeError, ValueError, RecursionError) as error:
        raise ProgramError(source, f"section META does not describe a program ({error})") from error
    check_program(program, source=source)
    return program


def _sections(raw: bytes | memoryview, source: str) -> dict[ProgramSection, memoryview]:
    """The sections of a file, after its header and checksum were checked; unknown kinds are skipped."""
    view = memoryview(raw)
    if len(view) < PROGRAM_HEADER.size:
        raise ProgramError(
            source, f"byte {len(view):#x}: cut short; a program has a header of {PROGRAM_HEADER.size} bytes"
        )
    magic, version, header_bytes, count, _identity, crc, _ = PROGRAM_HEADER.unpack_from(view)
    if magic != PROGRAM_MAGIC:
        raise ProgramError(source, f"byte 0x0: not a program; found {magic!r}, expected {PROGRAM_MAGIC!r}")
    if version != PROGRAM_VERSION or header_bytes != PROGRAM_HEADER.size:
        problem = f"version {version}; this opscope reads version {PROGRAM_VERSION}: compile the model again"
        raise ProgramError(source, f"byte 0x8: {problem}")
    if zlib.crc32(view[header_bytes:]) != crc:
        raise ProgramError(source, "byte 0x18: the checksum does not match; the file is damaged or cut short")
    end = header_bytes + count * PROGRAM_SECTION.size
    if end > len(view):
        raise ProgramError(source, f"byte {header_bytes:#x}: {count} sections do not fit in {len(view)} bytes")
    sections: dict[ProgramSection, memoryview] = {}
    for at in range(header_bytes, end, PROGRAM_SECTION.size):
        kind, _, offset, size = PROGRAM_SECTION.unpack_from(view, at)
        if offset + size > len(view):
            raise ProgramError(source, f"byte {at:#x}: a section of {size} bytes at {offset:#x} is past the end")
        if kind in list(ProgramSection):
            sections[ProgramSection(kind)] = view[offset : offset + size]
    for kind in ProgramSection:
        if kind not in sections:
            raise ProgramError(source, f"byte {header_bytes:#x}: section {kind.name} is missing")
    return sections


def _array(sections: dict[ProgramSection, memoryview], kind: ProgramSection, source: str) -> npt.NDArray[np.void]:
    dtype, body = _ARRAYS[kind], sections[kind]
    if len(body) % dtype.itemsize:
        raise ProgramError(source, f"section {kind.name}: {len(body)} bytes are no whole number of records")
    return np.frombuffer(body, dtype)


def _meta(program: Program) -> dict[str, object]:
    meta: dict[str, object] = {name: getattr(program, name) for name in _META_FIELDS}
    meta["groups"] = [asdict(group) for group in program.groups]
    meta["routes"] = [asdict(route) for route in program.routes]
    meta["ops"] = [_without_blanks(astuple(op)) for op in program.ops]
    meta["memories"] = [asdict(memory) for memory in program.memories]
    meta["details"] = [
        [d.name, d.memory, d.types, d.shape, [_operand_row(o) for o in d.operands], d.attributes]
        for d in program.details
    ]
    meta["stats"] = asdict(program.stats)
    meta["metrics"] = asdict(program.metrics)
    meta["words"] = None if program.words is None else asdict(program.words)
    meta["bounds"] = None if program.bounds is None else asdict(program.bounds)
    return meta


def _operand_row(operand: Operand) -> list[object]:
    o = operand
    return [o.direction.value, o.role, o.tensor, o.memory, o.dtype, o.shape, o.bytes]


def _program(meta: _Meta, arrays: Mapping[ProgramSection, npt.NDArray[np.void]]) -> Program:
    """META and the arrays as a program; what is in META as it is in the program is taken over by name."""
    same = {name: getattr(meta, name) for name in _META_FIELDS}
    return Program(
        **same,
        groups=meta.groups,
        routes=meta.routes,
        ops=tuple(OpInfo(*row) for row in meta.ops),
        memories=meta.memories,
        details=tuple(
            Detail(name, memory, types, shape, tuple(Operand(*row) for row in operands), attributes)
            for name, memory, types, shape, operands, attributes in meta.details
        ),
        stats=meta.stats,
        metrics=meta.metrics,
        words=meta.words,
        bounds=meta.bounds,
        commands=arrays[ProgramSection.COMMANDS],
        dependency_offsets=arrays[ProgramSection.DEPENDENCY_OFFSETS].astype(np.uint32),
        dependency_sources=arrays[ProgramSection.DEPENDENCY_SOURCES].astype(np.uint32),
        dependency_kinds=arrays[ProgramSection.DEPENDENCY_KINDS].astype(np.uint8),
    )


def _without_blanks(texts: tuple[str, ...]) -> list[str]:
    """Texts up to the last that says something, and at least the four that every op has."""
    used = max((place for place, text in enumerate(texts, 1) if text), default=0)
    return list(texts[: max(used, 4)])
