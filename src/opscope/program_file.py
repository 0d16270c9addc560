"""Program ⇄ bytes of `programqpc.bin` (docs/formats/program.md)."""

from __future__ import annotations

import hashlib
import json
import zlib
from dataclasses import asdict

import numpy as np
import numpy.typing as npt

from .errors import ProgramError
from .program import (
    COMMAND,
    Channel,
    Detail,
    Group,
    MemoryMetrics,
    OpInfo,
    Program,
    StatsOptions,
    TrafficRow,
)
from .wire import PROGRAM_HEADER, PROGRAM_MAGIC, PROGRAM_SECTION, PROGRAM_VERSION, ProgramSection

_ARRAYS = {
    ProgramSection.COMMANDS: COMMAND,
    ProgramSection.DEPENDENCY_OFFSETS: np.dtype("<u4"),
    ProgramSection.DEPENDENCY_SOURCES: np.dtype("<u4"),
    ProgramSection.DEPENDENCY_KINDS: np.dtype("u1"),
}
_META_FIELDS = (
    "name", "target", "devices", "cores", "batch", "clock_hz", "stats_hz", "kinds", "inputs", "outputs",
    "host_microseconds", "simulation", "model",
)  # fmt: skip


def encode_program(program: Program) -> bytes:
    """The program file; its id is a hash of everything in it."""
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
    """A program from its file; damage is reported with its byte offset."""
    sections = _sections(raw, source)
    try:
        meta = json.loads(bytes(sections[ProgramSection.META]))
        arrays = {kind: _array(sections, kind, source) for kind in _ARRAYS}
        return _program(meta, arrays)
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise ProgramError(source, f"section META does not describe a program ({error})") from error


def _sections(raw: bytes | memoryview, source: str) -> dict[ProgramSection, memoryview]:
    view = memoryview(raw)
    if len(view) < PROGRAM_HEADER.size:
        raise ProgramError(
            source, f"byte {len(view):#x}: cut short; a program has a header of {PROGRAM_HEADER.size} bytes"
        )
    magic, version, header_bytes, count, _identity, crc, _ = PROGRAM_HEADER.unpack_from(view)
    if magic != PROGRAM_MAGIC:
        raise ProgramError(source, f"byte 0x0: not a program; found {magic!r}, expected {PROGRAM_MAGIC!r}")
    if version != PROGRAM_VERSION or header_bytes != PROGRAM_HEADER.size:
        raise ProgramError(source, f"byte 0x8: version {version}; this opscope reads version {PROGRAM_VERSION}")
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
    meta["ops"] = [[op.name, op.type, op.kind, op.location] for op in program.ops]
    meta["details"] = [[d.name, d.memory, d.types, d.shape, d.operands, d.attributes] for d in program.details]
    meta["stats"] = asdict(program.stats)
    meta["metrics"] = asdict(program.metrics)
    return meta


def _program(meta: dict[str, object], arrays: dict[ProgramSection, npt.NDArray[np.void]]) -> Program:
    import msgspec

    plain = msgspec.convert({name: meta[name] for name in _META_FIELDS}, dict[str, object])
    ops = [OpInfo(*row) for row in msgspec.convert(meta["ops"], list[tuple[str, str, str, str]])]
    rows = msgspec.convert(meta["details"], list[tuple[str, str, str, str, tuple[str, ...], str]])
    metrics = dict(msgspec.convert(meta["metrics"], dict[str, object]))
    traffic = msgspec.convert(metrics.pop("traffic"), tuple[TrafficRow, ...])
    histogram = msgspec.convert(metrics.pop("size_histogram"), dict[str, int])
    metrics["size_histogram"] = {}
    metrics["traffic"] = ()
    base = msgspec.convert(metrics, MemoryMetrics)
    port = tuple[tuple[str, str, tuple[int, ...]], ...]
    return Program(
        name=str(plain["name"]),
        target=str(plain["target"]),
        devices=msgspec.convert(plain["devices"], int),
        cores=msgspec.convert(plain["cores"], int),
        batch=msgspec.convert(plain["batch"], int),
        clock_hz=msgspec.convert(plain["clock_hz"], float),
        stats_hz=msgspec.convert(plain["stats_hz"], float),
        groups=msgspec.convert(meta["groups"], tuple[Group, ...]),
        routes=msgspec.convert(meta["routes"], tuple[Channel, ...]),
        kinds=msgspec.convert(plain["kinds"], tuple[str, ...]),
        ops=tuple(ops),
        details=tuple(Detail(*row) for row in rows),
        commands=arrays[ProgramSection.COMMANDS],
        dependency_offsets=arrays[ProgramSection.DEPENDENCY_OFFSETS].astype(np.uint32),
        dependency_sources=arrays[ProgramSection.DEPENDENCY_SOURCES].astype(np.uint32),
        dependency_kinds=arrays[ProgramSection.DEPENDENCY_KINDS].astype(np.uint8),
        stats=msgspec.convert(meta["stats"], StatsOptions),
        metrics=MemoryMetrics(
            base.constants_bytes, base.local_bytes, base.local_capacity, traffic, base.first_read, base.barriers,
            base.macs, {int(size): count for size, count in histogram.items()},
        ),
        inputs=msgspec.convert(plain["inputs"], port),
        outputs=msgspec.convert(plain["outputs"], port),
        host_microseconds=msgspec.convert(plain["host_microseconds"], dict[str, float]),
        simulation=msgspec.convert(plain["simulation"], dict[str, float]),
        model=str(plain["model"]),
    )  # fmt: skip
