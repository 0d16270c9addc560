"""JSON files that `qaic-compile` is given: partitions over devices, and specializations of a network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from ...core.errors import UsageError, printable

PARTITION_FLAG, SPECIALIZATION_FLAG = "-mdp-load-partition-config", "-network-specialization-config"
_MOST_BYTES = 1 << 20
_MOST_SPECIALIZATIONS = 256
_MOST_SIZE = 1 << 31
_PARTITION_KEYS = {"connections", "partitions"}


@dataclass(frozen=True, slots=True)
class Partition:
    """Devices that a program is compiled for, all with the same number of cores."""

    devices: int
    cores: int
    is_pipeline: bool  # a stage of the network per device, instead of a part of every op
    notes: tuple[str, ...]


def read_partition(path: Path) -> Partition:
    """The devices of a partition file: one partition of several devices, or several of one device each."""
    whole = _mapping(_read(path, PARTITION_FLAG), path, "", '{"partitions": [...]}')
    partitions = [_mapping(each, path, "partitions", "objects") for each in _list(whole, "partitions", path, "")]
    cores: list[int] = []
    ids: list[str] = []
    for partition in partitions:
        name = printable(str(partition.get("name", "partition")))
        for device in _list(partition, "devices", path, f"{name}: "):
            found = _mapping(device, path, f"{name}: devices", '{"deviceId": 0, "numCores": 16}')
            cores.append(_number(found.get("numCores"), path, f"{name}: numCores"))
            ids += [printable(str(found["deviceId"]))] if "deviceId" in found else []
    if len(set(cores)) != 1:
        raise UsageError(f"{path}: devices of {_words(cores)} cores; expected the same number on every device")
    if len(partitions) not in (1, len(cores)):
        raise UsageError(
            f"{path}: {len(partitions)} partitions on {len(cores)} devices; expected one partition, or one device each"
        )
    if twice := sorted({each for each in ids if ids.count(each) > 1}):
        raise UsageError(f"{path}: deviceId {twice[0]} is given twice; expected every device once")
    return Partition(len(cores), cores[0], len(partitions) > 1, tuple(_partition_notes(whole, partitions, path)))


def _partition_notes(whole: Mapping[str, object], partitions: Sequence[Mapping[str, object]], path: Path) -> list[str]:
    """What the file says and is not followed."""
    notes = [f"{path}: {printable(key)}: not known, left aside" for key in whole if key not in _PARTITION_KEYS]
    if any("nodeList" in partition for partition in partitions):
        notes.append(f"{path}: nodeList: the compiler itself chooses the ops of every stage")
    connections = whole.get("connections")
    for each in connections if isinstance(connections, list) else ():
        kind = each.get("type") if isinstance(each, dict) else None
        if kind != "p2p":
            notes.append(f"{path}: connection of type {printable(str(kind))}: simulated as p2p")
    return notes


@dataclass(frozen=True, slots=True)
class Specialization:
    """What one program of a network is for."""

    name: str  # empty: the file gives none
    sizes: dict[str, tuple[int, ...]]  # of symbols, one each; of inputs, their shapes

    def __str__(self) -> str:
        sizes = ", ".join(f"{printable(name)} {'x'.join(map(str, size))}" for name, size in self.sizes.items())
        return f"{printable(self.name)}: {sizes}" if self.name else sizes


def read_specializations(path: Path) -> tuple[Specialization, ...]:
    """All specializations of a file: sizes by name, or `{"name": …, "symbols": {…}}` as newer compilers have them."""
    whole = _mapping(_read(path, SPECIALIZATION_FLAG), path, "", '{"specializations": [...]}')
    rows = _list(whole, "specializations", path, "")
    if len(rows) > _MOST_SPECIALIZATIONS:
        raise UsageError(f"{path}: {len(rows)} specializations; expected at most {_MOST_SPECIALIZATIONS}")
    return tuple(_specialization(row, path, f"specialization {number}") for number, row in enumerate(rows))


def _specialization(row: object, path: Path, where: str) -> Specialization:
    symbols = _mapping(row, path, where, '{"batch_size": "1", "seq_len": "32"}')
    name = ""
    if isinstance(symbols.get("symbols"), dict):
        name = str(symbols.get("name", ""))
        symbols = _mapping(symbols["symbols"], path, where, '{"batch_size": "1"}')
    if not symbols:
        raise UsageError(f"{path}: {where} is empty; expected sizes of symbols")
    return Specialization(
        name, {symbol: _sizes(value, path, f"{where}: {printable(symbol)}") for symbol, value in symbols.items()}
    )


def _sizes(value: object, path: Path, where: str) -> tuple[int, ...]:
    """The size of a symbol, or the shape of an input as a list."""
    if isinstance(value, list) and value:
        return tuple(_number(each, path, where) for each in value)
    return (_number(value, path, where),)


def _read(path: Path, flag: str) -> object:
    try:
        with path.open("rb") as file:
            raw = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise UsageError(f"{flag}={path}: cannot be read ({error.strerror}); expected a JSON file") from error
    if len(raw) > _MOST_BYTES:
        raise UsageError(f"{path}: more than {_MOST_BYTES} bytes; expected a small JSON file")
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: not JSON ({printable(str(error))}); expected a file for {flag}") from error


def _mapping(value: object, path: Path, where: str, expected: str) -> Mapping[str, object]:
    if not isinstance(value, dict):
        place = f"{where}: " if where else ""
        raise UsageError(f"{path}: {place}found {printable(repr(value), 60)}; expected {expected}")
    return value


def _list(whole: Mapping[str, object], key: str, path: Path, where: str) -> list[object]:
    found = whole.get(key)
    if not isinstance(found, list) or not found:
        raise UsageError(f"{path}: {where}no {key}; expected a list of at least one")
    return found


def _number(value: object, path: Path, where: str) -> int:
    """A whole number, or text with one: the vendor's files have both."""
    text = str(value) if isinstance(value, int | str) and not isinstance(value, bool) else ""
    if not (text.isascii() and text.isdecimal()) or len(text) > 12 or not 1 <= int(text) <= _MOST_SIZE:
        raise UsageError(f"{path}: {where}: found {printable(repr(value), 60)}; expected a whole number from 1")
    return int(text)


def _words(numbers: Sequence[int]) -> str:
    return " and ".join(map(str, sorted(set(numbers))))
