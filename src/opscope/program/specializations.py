"""Specializations: programs of one network, each for other shapes of its inputs, in folders below that of the first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path

from ..core.errors import UsageError, printable
from .file_names import PROGRAM_FILE
from .program import Port, Program


def specialization_folder(number: int) -> str:
    """Where the program of a specialization is, below the folder of the first."""
    return f"specialization-{number}" if number else ""


def specialization_files(folder: Path) -> list[Path]:
    """Files of all programs of a network, the first one whether it is there or not."""
    return [folder / PROGRAM_FILE, *_further(folder)]


def _further(folder: Path) -> Iterator[Path]:
    for number in count(1):
        file = folder / specialization_folder(number) / PROGRAM_FILE
        if not file.is_file():
            return
        yield file


def choose_specialization(programs: Sequence[Program], shapes: Mapping[str, tuple[int, ...]], *, source: str) -> int:
    """Number of the first program whose inputs have these shapes; none is an error that lists those there are."""
    for number, program in enumerate(programs):
        ports = {name: shape for name, _, shape in program.inputs}
        if all(ports.get(name) == shape for name, shape in shapes.items()):
            return number
    found = described_ports((name, "", shape) for name, shape in shapes.items())
    raise no_specialization(programs, f"{source}: inputs {found}")


def no_specialization(programs: Sequence[Program], found: str) -> UsageError:
    """The error of inputs that no program is for."""
    known = "; or ".join(dict.fromkeys(described_ports(program.host_ports[0]) for program in programs))
    return UsageError(f"{found} fit none of {len(programs)} specializations; expected {known}")


def described_ports(ports: Iterable[Port]) -> str:
    """Names and shapes, on one line."""
    return ", ".join(f"{printable(name)} {'x'.join(map(str, shape)) or 'scalar'}" for name, _, shape in ports)
