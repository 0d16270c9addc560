"""Codec of the program file `programqpc.bin`: Program ⇄ bytes (docs/formats/program.md).

    header          magic, version, number of sections, program id, CRC-32 of everything behind it
    section table   kind, offset and bytes of each section
    META            JSON: everything small, and everything that many commands share
    COMMANDS        one fixed-size record per command
    DEPENDENCY_*    CSR arrays: command i depends on sources[offsets[i]:offsets[i + 1]], each with a kind

What repeats is stored once: kinds, ops and details are lists in META, and a command has positions in them. (16 cores
that run the same tile share one detail.) The arrays are read in place, without a copy of the commands.

Reading trusts nothing. Header and checksum come first; then the table and every section must lie in the file, and a
section must hold a whole number of records; then every value of META must have its type (`_text`, `_integer`, …); at
last `check_program` checks every index. Each failure is a ProgramError that says where.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from dataclasses import asdict, astuple

import msgspec
import numpy as np
import numpy.typing as npt

from ..core.errors import ProgramError
from ..core.meaning import Carries, Direction
from .bounds import Bounds
from .check import check_program
from .program import (
    COMMAND,
    NO_MEMORY,
    Channel,
    Detail,
    Group,
    MemoryInfo,
    MemoryMetrics,
    Operand,
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
    "device_cores",
)


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
    try:
        meta = json.loads(bytes(sections[ProgramSection.META]))
        arrays = {kind: _array(sections, kind, source) for kind in _ARRAYS}
        program = _program(meta, arrays)
    except (KeyError, TypeError, ValueError, RecursionError, msgspec.ValidationError) as error:
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
    meta["bounds"] = None if program.bounds is None else asdict(program.bounds)
    return meta


def _operand_row(operand: Operand) -> list[object]:
    o = operand
    return [o.direction.value, o.role, o.tensor, o.memory, o.dtype, o.shape, o.bytes]


def _program(meta: object, arrays: dict[ProgramSection, npt.NDArray[np.void]]) -> Program:
    """The program of a parsed META section and the arrays; a field that is absent or of another type raises."""
    fields = _mapping(meta)
    return Program(
        name=_text(fields["name"]),
        target=_text(fields["target"]),
        devices=_integer(fields["devices"]),
        cores=_integer(fields["cores"]),
        batch=_integer(fields["batch"]),
        clock_hz=_number(fields["clock_hz"]),
        stats_hz=_number(fields["stats_hz"]),
        groups=tuple(
            Group(_text(g["name"]), _text(g["engine"]), _integer(g["threads"])) for g in _mappings(fields["groups"])
        ),
        routes=tuple(
            Channel(
                _text(r["name"]),
                Carries(_text(r["carries"])),
                _number(r["bytes_per_cycle"]),
                _number(r["core_bytes_per_cycle"]),
                _place(r["memory"]),
                _number(r["latency_cycles"]),
                r["on_core_clock"] is True,
            )
            for r in _mappings(fields["routes"])
        ),
        kinds=_texts(fields["kinds"]),
        ops=tuple(OpInfo(*_texts(row)) for row in _items(fields["ops"])),
        details=tuple(_detail(_items(row)) for row in _items(fields["details"])),
        commands=arrays[ProgramSection.COMMANDS],
        dependency_offsets=arrays[ProgramSection.DEPENDENCY_OFFSETS].astype(np.uint32),
        dependency_sources=arrays[ProgramSection.DEPENDENCY_SOURCES].astype(np.uint32),
        dependency_kinds=arrays[ProgramSection.DEPENDENCY_KINDS].astype(np.uint8),
        stats=_stats(_mapping(fields["stats"])),
        metrics=_metrics(_mapping(fields["metrics"])),
        inputs=tuple(_port(_items(row)) for row in _items(fields["inputs"])),
        outputs=tuple(_port(_items(row)) for row in _items(fields["outputs"])),
        host_microseconds={key: _number(value) for key, value in _mapping(fields["host_microseconds"]).items()},
        host_bytes_per_second={key: _number(value) for key, value in _mapping(fields["host_bytes_per_second"]).items()},
        simulation={key: _number(value) for key, value in _mapping(fields["simulation"]).items()},
        model=_text(fields["model"]),
        notes=_texts(fields.get("notes", [])),
        memories=tuple(
            MemoryInfo(_text(m["name"]), m["is_outer"] is True, _rate(m["bytes_per_cycle"]), m["on_core_clock"] is True)
            for m in _mappings(fields["memories"])
        ),
        bounds=msgspec.convert(fields.get("bounds"), Bounds | None),
        retained=_texts(fields.get("retained", [])),
        device_cores=None if fields.get("device_cores") is None else _integer(fields["device_cores"]),
    )


def _without_blanks(texts: tuple[str, ...]) -> list[str]:
    """Texts up to the last that says something, and at least the four that every op has."""
    used = max((place for place, text in enumerate(texts, 1) if text), default=0)
    return list(texts[: max(used, 4)])


def _detail(row: list[object]) -> Detail:
    name, memory, types, shape, operands, attributes = row
    rows = tuple(_operand(_items(row)) for row in _items(operands))
    return Detail(_text(name), _text(memory), _text(types), _text(shape), rows, _text(attributes))


def _operand(row: list[object]) -> Operand:
    way, role, tensor, memory, dtype, shape, size = row
    return Operand(
        Direction(_text(way)),
        _text(role),
        _text(tensor),
        _place(memory),
        _text(dtype),
        _integers(shape),
        None if size is None else _integer(size),
    )


def _port(row: list[object]) -> tuple[str, str, tuple[int, ...]]:
    name, dtype, shape = row
    return _text(name), _text(dtype), _integers(shape)


def _stats(fields: dict[str, object]) -> StatsOptions:
    return StatsOptions(
        level=_integer(fields["level"]),
        ddr=fields["ddr"] is True,
        recipe=_text(fields["recipe"]),
        events=_integers(fields["events"]),
        event_names=_texts(fields["event_names"]),
        event_counts=_texts(fields["event_counts"]),
        batch_size=_integer(fields["batch_size"]),
        request_bytes=_integer(fields["request_bytes"]),
    )


def _metrics(fields: dict[str, object]) -> MemoryMetrics:
    return MemoryMetrics(
        constants_bytes=_integer(fields["constants_bytes"]),
        local_bytes=_integers(fields["local_bytes"]),
        local_capacity=_integer(fields["local_capacity"]),
        traffic=tuple(
            TrafficRow(**{key: _integer(value) for key, value in row.items()}) for row in _mappings(fields["traffic"])
        ),
        first_read=_integer(fields["first_read"]),
        barriers=_integer(fields["barriers"]),
        macs=_integer(fields["macs"]),
        size_histogram={int(size): _integer(count) for size, count in _mapping(fields["size_histogram"]).items()},
        staying_bytes=_integer(fields.get("staying_bytes", 0)),  # of older files: not told
    )


def _mapping(value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        raise TypeError(f"found {value!r:.40}, expected an object")
    return value


def _items(value: object) -> list[object]:
    if not isinstance(value, list):
        raise TypeError(f"found {value!r:.40}, expected a list")
    return value


def _mappings(value: object) -> list[dict[str, object]]:
    return [_mapping(item) for item in _items(value)]


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"found {value!r:.40}, expected text")
    return value


def _integer(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise TypeError(f"found {value!r:.40}, expected a whole number")
    return value


def _place(value: object) -> int:
    """A position in a list, or NO_MEMORY."""
    return NO_MEMORY if value == NO_MEMORY else _integer(value)


def _number(value: object) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise TypeError(f"found {value!r:.40}, expected a number")
    return float(value)


def _rate(value: object) -> float | None:
    return None if value is None else _number(value)


def _texts(value: object) -> tuple[str, ...]:
    return tuple(_text(item) for item in _items(value))


def _integers(value: object) -> tuple[int, ...]:
    return tuple(_integer(item) for item in _items(value))
