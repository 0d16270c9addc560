"""Inputs of `qaic-runner`: raw bytes or .npy, in the order of the program's inputs, or by name from a JSON list."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from pathlib import Path

import msgspec
import numpy as np

from ...core.errors import UsageError, printable
from ...device.host.inputs import NUMPY_TYPES, Array, load_inputs
from ...program.program import Port, Program

_MOST_BYTES = 1 << 34


class _Entry(msgspec.Struct, rename={"direction": "io-direction", "map_to": "map-to"}):
    path: str
    direction: str = "in"
    map_to: str = ""


class _Listed(msgspec.Struct, rename={"files": "IO-files"}):
    files: list[list[_Entry]]


def given_inputs(program: Program, files: Sequence[Path]) -> dict[str, Array]:
    """One file per input, in the program's order."""
    if len(files) != len(program.inputs):
        names = ", ".join(printable(name) for name, _, _ in program.inputs)
        raise UsageError(f"-i: {len(files)} files; expected one for each of {len(program.inputs)} inputs: {names}")
    return {port[0]: _array(port, path) for port, path in zip(program.inputs, files, strict=True)}


def listed_inputs(program: Program, path: Path) -> dict[str, Array]:
    """The inputs of the first inference that a batch file lists; paths are from its own folder."""
    try:
        listed = msgspec.json.decode(path.read_bytes(), type=_Listed)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror}); expected a JSON file") from error
    except (msgspec.DecodeError, RecursionError) as error:
        raise UsageError(
            f'{path}: {printable(str(error))}; expected {{"IO-files": [[{{"path": …, "map-to": …}}]]}}'
        ) from error
    ports = {port[0]: port for port in program.inputs}
    found: dict[str, Array] = {}
    for entry in listed.files[0] if listed.files else ():
        if entry.direction == "in":
            if entry.map_to not in ports:
                raise UsageError(
                    f"{path}: map-to {printable(entry.map_to)!r}: no such input; expected one of {', '.join(ports)}"
                )
            found[entry.map_to] = _array(ports[entry.map_to], path.parent / entry.path)
    return found


def _array(port: Port, path: Path) -> Array:
    name, dtype, shape = port
    if path.suffix == ".npy":
        return load_inputs({name: path})[name]
    if dtype not in NUMPY_TYPES or dtype == "string":
        raise UsageError(f"{path}: input {printable(name)!r} is of {printable(dtype)}; expected a .npy file")
    kind = np.dtype(NUMPY_TYPES[dtype])
    size = prod(shape) * kind.itemsize
    try:
        have = path.stat().st_size
        if have != size or size > _MOST_BYTES:
            extents = "x".join(map(str, shape))
            raise UsageError(
                f"{path}: {have} bytes; expected {size} for input {printable(name)!r}, {printable(dtype)} of {extents}"
            )
        values: Array = np.fromfile(path, kind).reshape(shape)
        return values
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror}); expected a file of raw values") from error
