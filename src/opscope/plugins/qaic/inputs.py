"""Inputs of `qaic-runner`: raw bytes or .npy, in the order of the program's inputs, or by name from a JSON list.

Of several specializations that one is meant whose inputs have the sizes of these files, and their `dims` if told.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from math import prod
from pathlib import Path

import msgspec
import numpy as np

from ...core.errors import UsageError, printable
from ...device.host.inputs import NUMPY_TYPES, Array, load_inputs
from ...program.program import Port, Program
from ...program.specializations import no_specialization

_MOST_BYTES = 1 << 34


class _Entry(msgspec.Struct, rename={"direction": "io-direction", "map_to": "map-to"}):
    path: str
    direction: str = "in"
    map_to: str = ""
    dims: list[int] | None = None


class _Listed(msgspec.Struct, rename={"files": "IO-files"}):
    files: list[list[_Entry]]


def given_inputs(programs: Sequence[Program], files: Sequence[Path]) -> dict[str, Array]:
    """One file per input, in the program's order; state that stays on the device may be left out."""
    return _of_first_that_fits(programs, lambda program: _in_order(program, files), f"-i: {len(files)} files")


def _in_order(program: Program, files: Sequence[Path]) -> dict[str, Array]:
    ports = program.inputs if len(files) == len(program.inputs) else program.host_ports[0]
    if len(files) != len(ports):
        names = ", ".join(printable(name) for name, _, _ in ports)
        raise UsageError(f"-i: {len(files)} files; expected one for each of {len(ports)} inputs: {names}")
    return {port[0]: _array(port, path) for port, path in zip(ports, files, strict=True)}


def listed_inputs(programs: Sequence[Program], path: Path) -> dict[str, Array]:
    """The first inputs of a batch file, a list for each inference, that fit; paths are from its own folder."""
    try:
        listed = msgspec.json.decode(path.read_bytes(), type=_Listed)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror}); expected a JSON file") from error
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise UsageError(
            f'{path}: {printable(str(error))}; expected {{"IO-files": [[{{"path": …, "map-to": …}}]]}}'
        ) from error
    problems: list[UsageError] = []
    for files in listed.files or [[]]:
        entries = [entry for entry in files if entry.direction == "in"]
        try:
            return _of_first_that_fits(programs, partial(_by_name, entries=entries, path=path), f"{path}: its inputs")
        except UsageError as error:
            problems.append(error)
    raise problems[0]


def _by_name(program: Program, entries: Sequence[_Entry], path: Path) -> dict[str, Array]:
    ports = {port[0]: port for port in program.inputs}
    if not entries:
        raise UsageError(f"{path}: gives no input; expected one for each of {', '.join(map(printable, ports))}")
    found: dict[str, Array] = {}
    for entry in entries:
        if entry.map_to not in ports:
            raise UsageError(
                f"{path}: map-to {printable(entry.map_to)!r}: no such input; expected one of {', '.join(ports)}"
            )
        shape = ports[entry.map_to][2]
        if entry.dims is not None and tuple(entry.dims) != shape:
            raise UsageError(
                f"{path}: map-to {printable(entry.map_to)!r}: dims {_extents(entry.dims)}; expected {_extents(shape)}"
            )
        found[entry.map_to] = _array(ports[entry.map_to], path.parent / entry.path)
    return found


def _of_first_that_fits(
    programs: Sequence[Program], inputs_of: Callable[[Program], dict[str, Array]], source: str
) -> dict[str, Array]:
    """Inputs of the first specialization that they fit; of a lone program, what it misses."""
    try:
        if len(programs) == 1:
            return inputs_of(programs[0])
        for program in programs:
            with suppress(UsageError):
                return inputs_of(program)
    except OSError as error:
        raise UsageError(f"{error.filename}: cannot be read ({error.strerror}); expected a file of values") from error
    raise no_specialization(programs, source)


def _extents(shape: Sequence[int]) -> str:
    return "x".join(map(str, shape))


def _array(port: Port, path: Path) -> Array:
    name, dtype, shape = port
    have = path.stat().st_size
    if path.suffix == ".npy":
        array = load_inputs({name: path})[name]
        if array.shape != shape:
            raise UsageError(
                f"{path}: {_extents(array.shape)}; expected {_extents(shape)} for input {printable(name)!r}"
            )
        return array
    if dtype not in NUMPY_TYPES or dtype == "string":
        raise UsageError(f"{path}: input {printable(name)!r} is of {printable(dtype)}; expected a .npy file")
    kind = np.dtype(NUMPY_TYPES[dtype])
    size = prod(shape) * kind.itemsize
    if have != size or size > _MOST_BYTES:
        kind_of = f"{printable(dtype)} of {_extents(shape)}"
        raise UsageError(f"{path}: {have} bytes; expected {size} for input {printable(name)!r}, {kind_of}")
    values: Array = np.fromfile(path, kind).reshape(shape)
    return values
