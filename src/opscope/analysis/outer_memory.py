"""What goes to and from outer memory: how often the same tensor, what was moved out and back again?"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from ..core.columns import Flags, Numbers
from ..core.meaning import Carries, Does
from ..core.units import LARGEST
from ..graph.graph import DType
from ..program.program import Operand
from ..recording.run import Run
from ..recording.trace import NONE
from .timeline.intervals import total

_DTYPES = {dtype.label: dtype for dtype in DType}


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
    """By what transfers say they move, per tensor; empty where commands do not name tensors.

    Positions of transfers are sorted by tensor, and cut where the tensor changes. Example: transfers 4, 5, 7, 9 (of the
    program) move tensors 1, 0, 1, 0, so the order of their positions is 1, 3, 0, 2, cut into (1, 3) and (0, 2):
    tensor 0 is moved by transfers 5 and 9, tensor 1 by 4 and 7.
    """
    commands = run.commands
    outer = _is_outer(run)
    chosen = np.flatnonzero(outer[commands.rows["route"]]) if len(commands.rows) else np.zeros(0, np.int64)
    chosen = chosen[commands.rows["does"][chosen] != Does.STATS]
    named, tensors = named_tensors(run)
    tensor = named[commands.rows["detail"][chosen]]
    chosen, tensor = chosen[tensor != NONE], tensor[tensor != NONE]
    writing = np.array([*(route.carries is Carries.WRITE for route in run.routes), False])
    writes = writing[commands.rows["route"][chosen]]
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


def outer_bytes(run: Run) -> Numbers | None:
    """Per op, bytes to and from outer memory; None: the run does not tell routes apart."""
    rows, outer = run.commands.rows, _is_outer(run)
    if not outer.any():
        return None
    chosen = rows[outer[rows["route"]] & (rows["op"] >= 0)]
    return total(chosen["op"], chosen["moved_bytes"].astype(np.float64), len(run.ops))


def _is_outer(run: Run) -> Flags:
    """One flag per route; the last is where NO_ROUTE points."""
    return np.array([*(route.carries.is_outer for route in run.routes), False])


def _on_every_device(run: Run, commands: Numbers) -> bool:
    """Each device has a memory of its own and has to read a tensor once itself."""
    return len(np.unique(run.commands.rows["device"][commands])) > 1


def named_tensors(run: Run) -> tuple[Numbers, list[tuple[str, int | None]]]:
    """Per detail the number of the tensor that it moves or writes, and of every number the name and size.

    Tensors of two parts of a batch have one name, and a shape each.
    """
    found: dict[tuple[str, tuple[int, ...]], int] = {}
    tensors: list[tuple[str, int | None]] = []
    place = []
    for operands in run.commands.operands:
        if not operands:
            place.append(NONE)
            continue
        first = operands[0]
        key = first.tensor, first.shape
        if key not in found:
            found[key] = len(tensors)
            tensors.append((first.tensor, _tensor_bytes(first)))
        place.append(found[key])
    return np.array(place or [NONE], np.int64), tensors


def _tensor_bytes(operand: Operand) -> int | None:
    """Size of the whole tensor; None where its data type has no fixed one, or no memory could hold it."""
    dtype = _DTYPES.get(operand.dtype, DType.UNKNOWN)
    size = dtype.size_bytes(prod(operand.shape))
    return size if dtype.bits and size <= LARGEST else None
