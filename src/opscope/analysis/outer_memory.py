"""What goes to and from outer memory: how often the same tensor, what was moved out and back again?"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import prod

import numpy as np

from ..gate.figures import LARGEST
from ..recording.run import Run
from ..recording.trace import NONE
from .bound_words import is_flush, reads_or_writes
from .timeline.activities import Numbers

_SHAPE = r"<(?P<shape>\d{1,18}(?: x \d{1,18})*|)>"
_OPERAND = re.compile(r"(?:in|out) \S+ \S+ (?P<tensor>.+) (?P<type>[a-z]+\d{1,3}) " + _SHAPE)


@dataclass(frozen=True, slots=True)
class TensorTraffic:
    """One tensor: what a device read of it from outer memory and wrote to it, in one inference."""

    tensor: str
    size_bytes: int | None
    read_bytes: int
    write_bytes: int
    reads: int
    writes: int
    read_commands: Numbers
    write_commands: Numbers

    @property
    def again_bytes(self) -> int:
        """Read beyond once the whole tensor, by all devices together; 0 where its size is not known."""
        return max(0, self.read_bytes - self.size_bytes) if self.size_bytes is not None else 0

    @property
    def is_spill(self) -> bool:
        """Written out and read back."""
        return bool(self.reads and self.writes)


def tensor_traffic(run: Run) -> tuple[TensorTraffic, ...]:
    """By what transfers say they move, per tensor; empty where commands do not name tensors."""
    commands = run.commands
    outer = np.array([*(reads_or_writes(name) for name in commands.routes), False])
    chosen = np.flatnonzero(outer[commands.rows["route"]]) if len(commands.rows) else np.zeros(0, np.int64)
    kept = np.array([not is_flush(kind) for kind in commands.kinds] or [True])
    chosen = chosen[kept[commands.rows["kind"][chosen]]]
    named, tensors = named_tensors(run)
    tensor = named[commands.rows["detail"][chosen]]
    chosen, tensor = chosen[tensor != NONE], tensor[tensor != NONE]
    writes = np.array([*("write" in name.lower() for name in commands.routes), False])[commands.rows["route"][chosen]]
    order = np.argsort(tensor, kind="stable")
    numbers, first = np.unique(tensor[order], return_index=True)
    groups = zip(numbers.tolist(), np.split(order, first[1:]), strict=True)
    moved = commands.rows["moved_bytes"].astype(np.int64)
    devices = max(run.info.devices, 1)
    rows = []
    for number, members in groups if len(numbers) else ():
        name, size = tensors[number]
        out, back = chosen[members[writes[members]]], chosen[members[~writes[members]]]
        whole = None if size is None else size * (devices if _on_every_device(run, back) else 1)
        rows.append(
            TensorTraffic(name, whole, int(moved[back].sum()), int(moved[out].sum()), len(back), len(out), back, out)
        )
    return tuple(rows)


def _on_every_device(run: Run, commands: Numbers) -> bool:
    """Each device has a memory of its own and has to read a tensor once itself."""
    return len(np.unique(run.commands.rows["device"][commands])) > 1


def named_tensors(run: Run) -> tuple[Numbers, list[tuple[str, int | None]]]:
    """Per detail the number of the tensor that it moves or writes, and of every number the name and size."""
    found: dict[str, int] = {}
    tensors: list[tuple[str, int | None]] = []
    place = []
    for operands in run.commands.operands:
        match = _OPERAND.match(operands[0]) if operands else None
        if match is None:
            place.append(NONE)
            continue
        name = match["tensor"]
        if name not in found:
            found[name] = len(tensors)
            tensors.append((name, _size(match["type"], match["shape"])))
        place.append(found[name])
    return np.array(place or [NONE], np.int64), tensors


def _size(kind: str, shape: str) -> int | None:
    bits = int(re.sub(r"\D", "", kind) or 0)
    extents = [int(extent) for extent in shape.split(" x ") if extent.strip()]
    size = -(-prod(extents) * bits // 8)
    return size if bits and size <= LARGEST else None
