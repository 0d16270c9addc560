"""Table of ops that tt-metal's profiler writes → rows. Columns are found by name: they differ between releases.

A dimension is written `32[19]`: padded to whole tiles, and as the model has it; older releases write one number.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from io import StringIO
from math import prod
from pathlib import Path

from ...core.errors import ImportFileError, printable
from ...importers.reading import MOST_LINES, Unread, number_in, read_text, to_ns

_TENSOR = re.compile(r"(INPUT|OUTPUT)_(\d{1,3})_DATATYPE")
_DIMENSION = re.compile(r"(\d{1,12})(?:\[(\d{1,12})\])?")
_NEEDED = ("OP CODE", "OP TYPE", "DEVICE ID", "DEVICE KERNEL DURATION [ns]")
_SIGNPOST = "signpost"
_LARGEST = 2**48
LONGEST_NS = 2**49  # of one op, and of a capture: six days
# Bits per element. In block formats 16 elements share an exponent of 8 bits: a tile of 32 x 32 takes 1088 or 576 bytes.
_BITS = {
    "BFLOAT16": 16.0,
    "FLOAT32": 32.0,
    "UINT32": 32.0,
    "INT32": 32.0,
    "UINT16": 16.0,
    "UINT8": 8.0,
    "BFLOAT8_B": 8.5,
    "BFLOAT4_B": 4.5,
}
_LABELS = {"BFLOAT16": "bf16", "FLOAT32": "f32", "UINT32": "u32", "INT32": "i32", "UINT16": "u16", "UINT8": "u8"}


@dataclass(frozen=True, slots=True)
class Tensor:
    """An operand of an op."""

    is_input: bool
    number: int
    padded: tuple[int, ...]
    shape: tuple[int, ...]  # as the model has it
    type: str
    memory: str  # as printed: DEV_0_DRAM_INTERLEAVED

    @property
    def label(self) -> str:
        return _LABELS.get(self.type, self.type.lower())

    @property
    def bytes(self) -> int | None:
        """That it takes where it lies, with its padding."""
        bits = _BITS.get(self.type)
        size = None if bits is None else prod(self.padded) * bits / 8
        return None if size is None or size >= _LARGEST else round(size)

    @property
    def is_outer(self) -> bool:
        return "DRAM" in self.memory


@dataclass(frozen=True, slots=True)
class Row:
    """One op on one device."""

    code: str
    device: int
    session: str  # replay of a captured trace that it belongs to; empty: none
    start_cycle: int | None
    end_cycle: int | None
    firmware_ns: int | None
    kernel_ns: int
    gap_ns: int | None  # since the kernel before it
    host_ns: int | None
    ideal_ns: int | None  # of the vendor's own model
    cores: int | None
    available: int | None  # cores that it could have had
    fidelity: str
    architecture: str
    kernel: str
    attributes: str
    tensors: tuple[Tensor, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """A file."""

    rows: tuple[Row, ...]
    signposts: tuple[str, ...]
    host_ops: int  # rows without work on a device


def read_table(path: Path, unread: Unread) -> Table:
    """Rows in file order; those that cannot be read are counted."""
    lines = csv.reader(StringIO(read_text(path), newline=""))
    rows: list[Row] = []
    signposts: list[str] = []
    host_ops = 0
    try:
        header = next(lines, [])
        missing = [name for name in _NEEDED if name not in header]
        if missing:
            raise ImportFileError(str(path), "line 1", f"no column {missing[0]}; expected an op table of tt-metal")
        tensors = [match for name in header if (match := _TENSOR.fullmatch(name)) is not None]
        for number, cells in enumerate(lines, start=2):
            if number > MOST_LINES:
                raise ImportFileError(str(path), f"line {number}", f"more lines than {MOST_LINES}; expected a profile")
            named = dict(zip(header, cells, strict=False))
            if not cells:
                continue
            if named.get("OP TYPE") == _SIGNPOST:
                signposts.append(named["OP CODE"])
            elif not named.get("DEVICE ID") and not named.get("DEVICE KERNEL DURATION [ns]"):
                host_ops += 1
            elif (row := _row(named, tensors)) is not None and len(cells) == len(header):
                rows.append(row)
            else:
                unread.add(f"line {number}", ",".join(cells))
    except csv.Error as error:
        raise ImportFileError(str(path), f"line {lines.line_num}", f"not CSV: {printable(str(error))}") from error
    return Table(tuple(rows), tuple(signposts), host_ops)


def _row(named: Mapping[str, str], tensors: list[re.Match[str]]) -> Row | None:
    kernel, device = to_ns(_number(named, "DEVICE KERNEL DURATION [ns]"), 1), _whole(named, "DEVICE ID")
    if kernel is None or kernel >= LONGEST_NS or device is None or device >= 2**16 or not named["OP CODE"]:
        return None
    ideal = to_ns(_number(named, "PM IDEAL [ns]"), 1)
    return Row(
        code=named["OP CODE"],
        device=device,
        session=named.get("METAL TRACE REPLAY SESSION ID", ""),
        start_cycle=_whole(named, "DEVICE FW START CYCLE"),
        end_cycle=_whole(named, "DEVICE FW END CYCLE"),
        firmware_ns=to_ns(_number(named, "DEVICE FW DURATION [ns]"), 1),
        kernel_ns=kernel,
        gap_ns=to_ns(_number(named, "OP TO OP LATENCY [ns]"), 1),
        host_ns=to_ns(_number(named, "HOST DURATION [ns]"), 1),
        ideal_ns=ideal if ideal is not None and ideal > 1 else None,  # 1: the model knows nothing of the op
        cores=_whole(named, "CORE COUNT"),
        available=_whole(named, "AVAILABLE WORKER CORE COUNT"),
        fidelity=named.get("MATH FIDELITY", ""),
        architecture=named.get("DEVICE ARCH", ""),
        kernel=_kernel(named),
        attributes=named.get("ATTRIBUTES", ""),
        tensors=tuple(_tensors(named, tensors)),
    )


def _number(named: Mapping[str, str], column: str) -> float | None:
    return number_in(named.get(column, ""))


def _whole(named: Mapping[str, str], column: str) -> int | None:
    """Exact: cycle counters have more digits than a float."""
    text = named.get(column, "").strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


def _kernel(named: Mapping[str, str]) -> str:
    """File of its compute kernel, else of one that moves data."""
    for column in ("COMPUTE KERNEL SOURCE", "DATA MOVEMENT KERNEL SOURCE"):
        first = named.get(column, "").strip("[]").partition(";")[0].strip().strip("'")
        if first:
            return first.rpartition("/")[2]
    return ""


def _tensors(named: Mapping[str, str], columns: list[re.Match[str]]) -> Iterator[Tensor]:
    for column in columns:
        way, number = column.groups()
        head = f"{way}_{number}"
        cells = [named.get(f"{head}_{axis}_PAD[LOGICAL]") or named.get(f"{head}_{axis}", "") for axis in "WZYX"]
        sizes = [_DIMENSION.fullmatch(cell.strip()) for cell in cells]
        found = [size for size in sizes if size is not None]
        if len(found) == len(sizes):
            padded = tuple(int(size[1]) for size in found)
            shape = tuple(int(size[2] or size[1]) for size in found)
            type_, memory = named.get(f"{head}_DATATYPE", ""), named.get(f"{head}_MEMORY", "")
            yield Tensor(way == "INPUT", int(number), padded, shape, type_, memory)
